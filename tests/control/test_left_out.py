"""What a plan left out: the best action, what it promised, and the rule that kept it out."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.city.demand import Demand
from geoedge.control.left_out import WHY, left_out
from geoedge.control.noting import Noted, Notes
from geoedge.control.planners import PLANNERS, Limits, Situation
from geoedge.control.planners.base import NEVER
from tests.control.test_planners import BYTES, Additive


def limits(n, **changes):
    fields = {
        "budget_bytes": 1e9,
        "least_sites": np.zeros(3, dtype=np.int64),
        "most_sites": np.full(3, n, dtype=np.int64),
        "min_gain": 0.001,
    }
    return Limits(**(fields | changes))


def decided(tables, profile, kept, planner="greedy", *, rates=(1.0,), **more):
    """Return plan, notes and what was left out, for one demand of each rate."""
    demands = tuple(Demand(np.zeros((1, 2)), np.full((1, 1), rate)) for rate in rates)
    notes = Notes(demands, [each if isinstance(each, Additive) else Additive(each) for each in tables])
    fields = {"in_transit": frozenset(), "rng": np.random.default_rng(5)} | more
    told = Situation(
        epoch=1,
        time_s=0.0,
        profile=np.array(profile, dtype=np.int64),
        forecast=demands,
        predictor_of=notes.predictor_of,
        limits=kept,
        transfer_bytes=BYTES,
        **fields,
    )
    plan = PLANNERS[planner].plan(told)
    return plan, notes, left_out(told, plan, notes, at_once=PLANNERS[planner].at_once)


ONE = [[[0.0, 0.2, 0.0]]]


@pytest.mark.parametrize(
    ("why", "changes", "more"),
    [
        ("budget", {"budget_bytes": 9.0}, {}),
        ("floor", {"least_sites": np.array([1, 0, 0])}, {}),
        ("cap", {"most_sites": np.array([1, 0, 0])}, {}),
        ("hold", {"least_hold_epochs": 3}, {"held_since": np.array([2])}),
        ("busy", {}, {"in_transit": frozenset({0})}),
        ("most actions", {"rounds": 0}, {}),
        ("least gain", {"min_gain": 0.5}, {}),
        ("toll", {"migration_price": 0.25e9 / 10.0}, {}),
        ("toll", {"hysteresis": 0.25}, {"left_since": np.array([[NEVER, 1, NEVER]])}),
        ("busy, budget", {"budget_bytes": 9.0}, {"in_transit": frozenset({0})}),
    ],
)
def test_the_rule_that_kept_the_best_action_out_is_named(why, changes, more):
    plan, notes, found = decided(ONE, [0], limits(1, **changes), **more)
    assert plan.actions == ()
    assert found.why == why
    assert set(why.split(", ")) <= set(WHY)
    assert found.words(("none", "shallow", "deep")) == "replicate site 0 none -> shallow"
    assert found.gain == pytest.approx(0.2)
    assert found.action.bytes_moved == 10.0
    assert (found.toll > 0.0) == (why == "toll")
    assert not found.solved
    assert notes.looked_at == 0


def test_where_nothing_gains_it_says_so():
    _, _, found = decided([[[0.5, 0.2, 0.1]]], [0], limits(1))
    assert (found.why, found.gain) == ("nothing to gain", pytest.approx(-0.3))


def test_the_best_of_those_that_were_looked_at_is_told_with_the_fields_gain():
    value = [[0.0, 0.0008, 0.0006], [0.0, 0.0007, 0.0004]]
    plan, notes, found = decided([value], [0, 0], limits(2, looks=2))
    assert plan.actions == ()
    assert notes.looked_at == 2
    assert (found.why, found.solved) == ("least gain", True)
    assert found.action.sites == (0,)
    assert found.gain == pytest.approx(0.0008)
    assert found.unseen_gain == pytest.approx(0.0006)  # of the same site, at the rough look


class Overrated(Additive):
    """A predictor under which some sites are worth less than the screen tells."""

    def __init__(self, value, told):
        super().__init__(value)
        self.told = Additive(told)

    def screen(self, profile, base):
        return self.told.screen(profile, base)


NEVER_ELSEWHERE = [[0.0, -0.01, -1.0]] * 5
DISAPPOINTING = [[0.0, 0.02 - 0.002 * i, -1.0] for i in range(5)]


@pytest.mark.parametrize(
    ("looks", "changes", "why", "site"),
    [
        (4, {}, "not looked at", 4),
        (5, {}, "nothing to gain", 0),
        (4, {"min_gain": 0.015}, "nothing to gain", 0),  # what is left promises too little
        (4, {"budget_bytes": 9.0}, "budget", 0),  # nothing was looked at
    ],
)
def test_what_the_search_had_no_looks_left_for_is_said_to_be_not_looked_at(looks, changes, why, site):
    one = Overrated(NEVER_ELSEWHERE, DISAPPOINTING)
    plan, notes, found = decided([one], [0] * 5, limits(5, looks=looks, **changes))
    assert plan.actions == ()
    assert (found.why, found.action.sites) == (why, (site,))
    assert found.solved == (why == "nothing to gain")
    if why == "not looked at":
        assert notes.looked_at == looks
        assert found.gain == found.unseen_gain == pytest.approx(0.012)


def test_a_rule_counts_only_where_the_action_would_pay():
    _, _, found = decided([[[0.0, 0.0002, 0.0]]], [0], limits(1, budget_bytes=9.0))
    assert found.why == "least gain"


def test_what_follows_a_plan_is_told_of_the_other_sites():
    value = [[0.0, 0.3, 0.2], [0.0, 0.2, 0.1], [0.0, 0.1, 0.0]]
    plan, _, found = decided([value], [0, 0, 0], limits(3, rounds=2))
    assert [action.sites for action in plan.actions] == [(0,), (1,)]
    assert (found.why, found.action.sites) == ("most actions", (2,))


def test_an_exchange_that_was_left_out_is_told_with_both_sites():
    value = [[0.0, 0.0, 0.5], [0.3, 0.0, 0.1]]
    kept = limits(2, least_sites=np.array([0, 0, 1]), most_sites=np.array([2, 2, 1]), budget_bytes=39.0)
    _, _, found = decided([value], [0, 2], kept)
    assert found.why == "budget"
    assert found.words("abc") == "migrate site 0 a -> c; site 1 c -> a"


def test_gains_of_a_horizon_are_means_by_requests():
    tables = [[[0.0, 0.004, 0.0]], [[0.0, 0.0, 0.0]]]
    _, notes, found = decided(tables, [0], limits(1, min_gain=0.002), "look_ahead", rates=(1.0, 3.0))
    assert notes.varies
    assert found.gain == pytest.approx(0.001)
    assert found.why == "least gain"
    assert notes.coverage_now(np.array([0])) == 0.0


@pytest.mark.parametrize("name", PLANNERS)
def test_every_planner_can_be_asked(name):
    rng = np.random.default_rng(3)
    value = rng.normal(0.0, 0.1, (5, 3))
    horizon = 2 if PLANNERS[name].looks_ahead else 1
    more = {"mix_of": lambda _: np.array([0.4, 0.4, 0.2])}
    _, notes, found = decided(
        [value, np.roll(value, 1, axis=0)][:horizon],
        rng.integers(0, 3, 5),
        limits(5),
        name,
        rates=(1.0, 2.0)[:horizon],
        **more,
    )
    assert set(found.why.split(", ")) <= set(WHY)
    assert notes.looked_at >= 0


def test_a_noted_predictor_answers_as_the_other_one_and_asks_no_more_of_it():
    plain = Additive([[0.0, 0.2, 0.1]])
    noted, profile = Noted(plain), np.array([0])
    assert noted.solve(profile).coverage == 0.0
    assert noted.coarse() is noted.coarse()
    assert noted.judge(profile, np.zeros(1)) == 0.0
    assert np.array_equal(noted.screen(profile, noted.solve(profile)), plain.value)
    assert plain.solved == 3
    assert list(noted.solved.values()) == [0.0]
