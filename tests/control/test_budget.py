"""Plans under a budget that binds: gain per byte counts, and nothing changes where it does not bind."""

from __future__ import annotations

from importlib import import_module
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.control.planners.ahead import look_ahead, multi_period
from geoedge.control.planners.greedy import greedy
from geoedge.control.planners.mix import theory_mix
from tests.control.test_planners import BYTES, open_limits, situation

# a site that gains .02 for 40 B, and six that gain .015 for 10 B each
DEAR = np.array([[0.0, 0.0, 0.020], *[[0.0, 0.015, 0.0]] * 6])
EVERYWHERE = lambda _: np.array([0.0, 6.0, 1.0]) / 7  # noqa: E731


@pytest.mark.parametrize("planner", [greedy, look_ahead, multi_period, theory_mix])
def test_many_small_moves_beat_a_large_one_that_takes_the_budget(planner):
    limits = open_limits(7, budget_bytes=45.0)
    plan = planner(situation(DEAR, [0] * 7, limits, mix_of=EVERYWHERE))
    assert sorted(action.sites for action in plan.actions) == [(i,) for i in range(1, 5)]
    assert plan.after.coverage - plan.before.coverage == pytest.approx(4 * 0.015)
    assert sum(action.bytes_moved for action in plan.actions) <= 45.0


@pytest.mark.parametrize("planner", [greedy, look_ahead, multi_period])
def test_a_large_move_is_kept_where_it_brings_more(planner):
    value = np.array([[0.0, 0.0, 0.5], [0.0, 0.15, 0.0], [0.0, 0.15, 0.0]])
    plan = planner(situation(value, [0] * 3, open_limits(3, budget_bytes=45.0)))
    assert plan.profile.tolist() == [2, 0, 0]


@pytest.mark.parametrize("planner", [greedy, look_ahead])
def test_where_the_budget_does_not_bind_there_is_one_plan(planner, monkeypatch):
    asked, module = [], import_module("geoedge.control.planners.greedy")

    class Watched(module.Search):
        def __init__(self, *told, **how):
            asked.append(how)
            super().__init__(*told, **how)

    monkeypatch.setattr(module, "Search", Watched)
    planner(situation(DEAR, [0] * 7, open_limits(7, budget_bytes=100.0)))
    assert asked == [{}]
    planner(situation(DEAR, [0] * 7, open_limits(7, budget_bytes=99.0)))
    assert asked[1:] == [{}, {"per_byte": True}]


def test_what_no_budget_can_pay_does_not_make_it_bind():
    told = situation(DEAR, [0] * 7, open_limits(7, budget_bytes=1e9))
    never = np.where(BYTES == 40.0, 1e18, BYTES)
    limited = type(told)(**{**told.__dict__, "transfer_bytes": never})
    assert len(greedy(limited).actions) == 6


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.floats(0.0, 1.0)), min_size=1, max_size=6),
    st.sampled_from([10.0, 25.0, 40.0, 55.0, 90.0]),
)
def test_half_of_the_best_where_sites_do_not_meddle(sites, budget):
    """Of additive gains the better of both plans is at least half of the best choice under the budget."""
    value = np.full((len(sites), 3), -1.0)
    value[:, 0] = 0.0
    for i, (profile, gain) in enumerate(sites):
        value[i, profile] = gain
    plan = greedy(
        situation(value, [0] * len(sites), open_limits(len(sites), budget_bytes=budget, min_gain=0.0))
    )
    best = 0.0
    for taken in product((False, True), repeat=len(sites)):
        chosen = [each for each, takes in zip(sites, taken, strict=True) if takes]
        if sum(BYTES[0, profile] for profile, _ in chosen) <= budget:
            best = max(best, sum(gain for _, gain in chosen))
    assert plan.after.coverage - plan.before.coverage >= 0.5 * best - 1e-8
