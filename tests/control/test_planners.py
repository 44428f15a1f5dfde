"""Planners: inside budget and shares whatever the predictor says, and each true to its own idea."""

from itertools import pairwise, product
from typing import get_args

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from geoedge.city.demand import Demand
from geoedge.control.actions import RETURN_EPOCHS
from geoedge.control.planners import PLANNERS, Limits, Prediction, Situation, make_limits
from geoedge.control.planners.ahead import look_ahead, multi_period
from geoedge.control.planners.base import NEVER
from geoedge.control.planners.greedy import greedy
from geoedge.control.planners.mix import theory_mix, whole_sites
from geoedge.control.planners.yardsticks import best_placement, random_moves
from geoedge.errors import GeoEdgeError
from geoedge.scenario.operation import ControlConfig

BYTES = np.array([[0.0, 10.0, 40.0], [0.0, 0.0, 30.0], [0.0, 0.0, 0.0]])


class Additive:
    """A predictor under which every site has a value for every profile, and the screen tells the truth."""

    def __init__(self, value: np.ndarray) -> None:
        self.value = np.asarray(value, dtype=float)
        self.solved = 0

    def solve(self, profile, start=None):
        self.solved += 1
        n = len(profile)
        rows = np.arange(n)
        one = np.ones(n)
        coverage = float(self.value[rows, profile].sum())
        return Prediction(coverage, profile, 0.1 * one, 0.5 * one, one, 0.1 * one, 0.2 * one, one)

    def screen(self, profile, base):
        return self.value - self.value[np.arange(len(profile)), profile][:, None]

    def judge(self, profile, wait):
        return self.solve(profile).coverage

    def coarse(self):
        return self


def situation(value, profile, limits, *, busy=frozenset(), **more):
    """A situation whose forecast is one demand, or as many as there are tables of values."""
    tables = value if isinstance(value, list) else [value]
    demands = [Demand(np.zeros((1, 2)), np.ones((1, 1))) for _ in tables]
    predictors = {id(demand): Additive(table) for demand, table in zip(demands, tables, strict=True)}
    profile = np.array(profile, dtype=np.int64)
    fields = {"rng": np.random.default_rng(5)} | more
    return Situation(
        1, 0.0, profile, busy, tuple(demands), lambda d: predictors[id(d)], limits, BYTES, **fields
    )


def open_limits(n, **changes):
    fields = {
        "budget_bytes": 1e9,
        "least_sites": np.zeros(3, dtype=np.int64),
        "most_sites": np.full(3, n, dtype=np.int64),
        "min_gain": 0.001,
        "rounds": 50,
    }
    return Limits(**(fields | changes))


def test_takes_the_best_of_every_site_when_nothing_limits():
    value = np.array([[0.0, 0.2, 0.1], [0.3, 0.0, 0.0], [0.0, 0.1, 0.5]])
    plan = greedy(situation(value, [0, 1, 0], open_limits(3)))
    assert plan.profile.tolist() == [1, 0, 2]
    assert plan.after.coverage == pytest.approx(1.0)
    gains = [action.predicted_gain for action in plan.actions]
    assert sum(gains) == pytest.approx(plan.after.coverage - plan.before.coverage)
    assert all(a >= b - 1e-12 for a, b in pairwise(gains))


def test_stops_below_the_least_gain():
    value = np.array([[0.0, 0.0009, 0.0]])
    assert greedy(situation(value, [0], open_limits(1))).actions == ()
    assert len(greedy(situation(value, [0], open_limits(1, min_gain=0.0))).actions) == 1
    # with no least gain at all, nothing is moved for nothing
    assert greedy(situation(np.zeros((4, 3)), [0] * 4, open_limits(4, min_gain=0.0))).actions == ()


def test_migrates_when_the_mix_may_not_change():
    value = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.1]])
    limits = open_limits(2, most_sites=np.array([2, 2, 1]))
    plan = greedy(situation(value, [0, 2], limits))
    assert [action.kind for action in plan.actions] == ["migrate"]
    assert plan.actions[0].sites == (0, 1)
    assert plan.profile.tolist() == [2, 0]
    assert plan.actions[0].bytes_moved == 40.0


def test_busy_sites_stay():
    value = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    plan = greedy(situation(value, [0, 0], open_limits(2), busy=frozenset({0})))
    assert plan.profile.tolist() == [0, 1]


def test_reason_tells_numbers_in_words():
    value = np.array([[0.0, 0.25, 0.0]])
    plan = greedy(situation(value, [0], open_limits(1), profile_names=("none", "shallow", "deep")))
    reason = plan.actions[0].reason
    assert "0.0000 -> 0.2500" in reason
    assert "site 0 none -> shallow" in reason
    assert "requests/s" in reason


def test_limits_of_other_length_are_refused():
    limits = open_limits(2, least_sites=np.zeros(2, dtype=np.int64), most_sites=np.full(2, 2))
    with pytest.raises(GeoEdgeError, match="limits are for 2 profiles"):
        greedy(situation(np.zeros((2, 3)), [0, 0], limits))


def test_shares_become_whole_sites():
    hits = np.array([[0, 0], [512, 512], [512, 3072], [6144, 512]])
    limits = make_limits(10, hits, budget_bytes=5.0, fallback_floor=0.25, deep_cap=0.39, min_gain=0.0)
    assert limits.least_sites.tolist() == [3, 0, 0, 0]
    assert limits.most_sites.tolist() == [10, 10, 3, 3]
    assert (limits.deep.tolist(), limits.most_deep, limits.rounds) == ([False, False, True, True], 10, 8)
    both = {"deep_share_cap": 0.45, "most_actions": 3}
    limits = make_limits(10, hits, budget_bytes=5.0, fallback_floor=0.0, deep_cap=1.0, min_gain=0.0, **both)
    assert (limits.most_deep, limits.rounds) == (4, 3)


@st.composite
def cases(draw):
    n = draw(st.integers(1, 7))
    numbers = st.floats(-1.0, 1.0, allow_nan=False)
    value = np.array(draw(st.lists(numbers, min_size=3 * n, max_size=3 * n))).reshape(n, 3)
    profile = np.array(draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    least = np.array([draw(st.integers(0, n)), 0, 0])
    most = np.array([n, n, draw(st.integers(0, n))])
    limits = Limits(
        draw(st.sampled_from([0.0, 10.0, 35.0, 80.0, 1e6])),
        least,
        most,
        draw(st.sampled_from([0.0, 0.1])),
        8,
        draw(st.sampled_from([2, 50])),
        deep=np.array([False, draw(st.booleans()), True]),
        most_deep=draw(st.integers(0, n)),
    )
    return value, profile, limits


@pytest.mark.parametrize("name", PLANNERS)
@given(cases(), st.integers(1, 3))
def test_budget_floor_and_cap_hold_for_every_planner(name, case, horizon):
    value, profile, limits = case
    planner = PLANNERS[name]
    tables = [np.roll(value, k, axis=0) for k in range(horizon)] if planner.looks_ahead else value
    told = situation(tables, profile, limits, mix_of=lambda _: np.array([0.5, 0.2, 0.3]))
    plan = planner.plan(told)
    if not planner.at_once:
        assert sum(action.bytes_moved for action in plan.actions) <= limits.budget_bytes
    before, after = np.bincount(profile, minlength=3), np.bincount(plan.profile, minlength=3)
    # a bound that was broken at the start may stay broken for want of bytes or actions, but no further
    assert limits.allow(after, before)
    left_outside, was_outside = limits.outside(after), limits.outside(before)
    if limits.budget_bytes >= 1e6 and (limits.rounds == 50 or planner.at_once) and planner.moves:
        assert left_outside == 0
    elif was_outside and planner.moves and not planner.at_once:
        by_actions = len(plan.actions) == limits.rounds
        ways = limits.nearer(after)[plan.profile] & (BYTES[plan.profile] <= limits.budget_bytes)
        spent = sum(action.bytes_moved for action in plan.actions)
        touched = [site for action in plan.actions for site in action.sites]
        ways[touched] = False
        ways &= BYTES[plan.profile] <= limits.budget_bytes - spent
        assert left_outside == 0 or by_actions or not ways.any()
    if not planner.at_once:
        assert len(plan.actions) <= limits.rounds
    touched = [site for action in plan.actions for site in action.sites]
    assert len(touched) == len(set(touched))
    replayed = profile
    for action in plan.actions:
        replayed = action.apply(replayed)
    assert replayed.tolist() == plan.profile.tolist()
    gained = sum(action.predicted_gain for action in plan.actions)
    assert gained == pytest.approx(plan.after.coverage - plan.before.coverage, abs=1e-9)
    if name == "greedy":
        assert all(
            action.predicted_gain >= max(limits.min_gain, 1e-9)
            for action in plan.actions
            if not action.reason.startswith("back within")
        )
    if name not in ("random", "multi_period") and not was_outside:
        assert gained >= -1e-12


def test_planners_are_those_that_a_scenario_may_name():
    assert set(get_args(ControlConfig.model_fields["controller"].annotation)) == set(PLANNERS)


# -- reluctance -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", [greedy, look_ahead, multi_period])
def test_undoing_a_change_must_gain_more(planner):
    value, limits = np.array([[0.0, 0.02, 0.0]]), open_limits(1, hysteresis=0.05)
    other, back, long_ago = ([[NEVER, NEVER, 1]], [[NEVER, 1, NEVER]], [[NEVER, RETURN_EPOCHS + 1, NEVER]])
    assert planner(situation(value, [0], limits, left_since=np.array(other))).actions
    assert planner(situation(value, [0], limits, left_since=np.array(back))).actions == ()
    assert planner(situation(value, [0], limits, left_since=np.array(long_ago))).actions
    assert planner(situation(10 * value, [0], limits, left_since=np.array(back))).actions


@pytest.mark.parametrize("planner", [greedy, look_ahead, multi_period])
def test_a_way_back_by_a_third_profile_is_not_free(planner):
    """Left 1 for 2 three epochs ago and 2 for 0 an epoch ago: going on to 1 is a return as well."""
    value, limits = np.array([[0.0, 0.02, 0.0]]), open_limits(1, hysteresis=0.05)
    assert planner(situation(value, [0], limits, left_since=np.array([[NEVER, 3, 1]]))).actions == ()


@pytest.mark.parametrize("planner", [greedy, look_ahead, multi_period, random_moves])
def test_a_site_keeps_what_it_was_given_for_a_while(planner):
    value, limits = np.array([[0.0, 0.2, 0.0], [0.0, 0.2, 0.1]]), open_limits(2, least_hold_epochs=3)
    plan = planner(situation(value, [0, 0], limits, held_since=np.array([2, 3])))
    assert [site for action in plan.actions for site in action.sites] == [1]


@pytest.mark.parametrize("planner", [greedy, look_ahead, multi_period])
def test_moving_must_be_worth_its_bytes(planner):
    value = np.array([[0.0, 0.02, 0.05]])
    free, dear = open_limits(1), open_limits(1, migration_price=1e9 * 0.0012)  # 10 B cost 0.012, 40 B 0.048
    assert planner(situation(value, [0], free)).profile.tolist() == [2]
    assert planner(situation(value, [0], dear)).profile.tolist() == [1]


# -- looking ahead --------------------------------------------------------------------------------------


def test_looking_ahead_leaves_what_soon_does_harm():
    tables = [np.array([[0.0, 0.3, 0.0]]), np.array([[0.0, -0.5, 0.0]])]
    assert greedy(situation(tables, [0], open_limits(1))).profile.tolist() == [1]
    assert look_ahead(situation(tables, [0], open_limits(1))).actions == ()


def test_a_sequence_moves_early_only_what_the_budget_cannot_move_in_time():
    calm, busy = np.zeros((2, 3)), np.array([[0.0, 0.3, 0.0], [0.0, 0.2, 0.0]])
    wide, narrow = open_limits(2, budget_bytes=20.0), open_limits(2, budget_bytes=10.0)
    assert multi_period(situation([calm, busy], [0, 0], wide)).actions == ()
    plan = multi_period(situation([calm - 0.01 * (busy > 0), busy], [0, 0], narrow))
    assert [action.sites for action in plan.actions] == [(1,)]


@example([0.5, 0.0, 0.0, 0.0, -1.0, 0.0, -1.0, *[0.0] * 11], 0.0)
@given(st.lists(st.floats(-1.0, 1.0), min_size=18, max_size=18), st.sampled_from([0.0, 0.004]))
def test_a_sequence_is_the_best_of_all_where_sites_do_not_meddle(numbers, price):
    tables = list(np.array(numbers).reshape(3, 2, 3))
    limits = open_limits(2, migration_price=1e9 * price, min_gain=0.0, looks=9)
    plan = multi_period(situation(tables, [0, 1], limits))
    for site, start in enumerate([0, 1]):
        worth = {}
        for path in product(range(3), repeat=3):
            held = (start, *path)
            cost = sum(price * BYTES[held[k], held[k + 1]] for k in range(3))
            worth[path] = sum(table[site, s] for table, s in zip(tables, path, strict=True)) - cost
        best = max(worth.values())
        first = {path[0] for path in worth if worth[path] >= best - 1e-9}
        stays = best - worth[(start,) * 3] <= 1e-8
        assert int(plan.profile[site]) in first or stays


# -- theory's mix ---------------------------------------------------------------------------------------


def test_theorys_mix_is_gone_to_at_the_fields_places():
    value = np.array([[0.0, 0.1, 0.0], [0.0, 0.3, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.1]])
    told = situation(value, [0] * 4, open_limits(4), mix_of=lambda _: np.array([0.25, 0.5, 0.25]))
    assert theory_mix(told).profile.tolist() == [0, 1, 1, 2]


def test_theorys_mix_is_not_gone_to_where_the_field_expects_a_loss():
    value = np.array([[0.0, 0.4, 0.0], [0.0, -0.1, 0.0]])
    told = situation(value, [0, 0], open_limits(2), mix_of=lambda _: np.array([0.0, 1.0, 0.0]))
    assert theory_mix(told).profile.tolist() == [1, 0]


def test_theorys_mix_reached_sites_are_not_exchanged_for_rounding():
    value = np.array([[0.0, 1e-13, 0.0], [0.0, 0.0, 0.0]])
    told = situation(value, [0, 1], open_limits(2, min_gain=0.0), mix_of=lambda _: np.array([0.5, 0.5, 0.0]))
    assert theory_mix(told).actions == ()


def test_theorys_mix_must_be_asked_for():
    with pytest.raises(GeoEdgeError, match="mix_of"):
        theory_mix(situation(np.zeros((1, 3)), [0], open_limits(1)))


@given(st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda m: sum(m) > 0), st.integers(1, 40))
def test_shares_in_whole_sites_are_near_and_add_up(numbers, n):
    mix = np.array(numbers) / sum(numbers)
    count = whole_sites(mix, open_limits(n), n)
    assert count.sum() == n
    assert (np.abs(count - mix * n) < 1.0 + 1e-6).all()


# -- yardsticks -----------------------------------------------------------------------------------------


def test_chance_is_repeatable_and_spends_what_it_may():
    value, limits = np.zeros((12, 3)), open_limits(12, budget_bytes=45.0, rounds=4)
    one, same = (random_moves(situation(value, [0] * 12, limits)) for _ in range(2))
    other = random_moves(situation(value, [0] * 12, limits, rng=np.random.default_rng(6)))
    assert one.profile.tolist() == same.profile.tolist() != other.profile.tolist()
    assert 1 <= len(one.actions) <= 4


def test_who_knows_all_needs_no_budget_and_finds_the_best():
    rng = np.random.default_rng(2)
    value = rng.uniform(-1.0, 1.0, (9, 3))
    limits = open_limits(9, budget_bytes=0.0, rounds=1, least_sites=np.array([4, 0, 0]))
    plan = best_placement(situation(value, [0] * 9, limits))
    extra = np.sort(value[:, 1:].max(axis=1) - value[:, 0])[::-1][:5]
    assert plan.after.coverage - plan.before.coverage == pytest.approx(np.maximum(extra, 0.0).sum())


def test_the_best_for_several_epochs_is_best_on_the_mean():
    tables = [np.array([[0.0, 0.5, 0.3]]), np.array([[0.0, -0.4, 0.3]])]
    assert best_placement(situation(tables, [0], open_limits(1))).profile.tolist() == [2]
