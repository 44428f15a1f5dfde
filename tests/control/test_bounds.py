"""Floor and caps: a placement that breaks them is led back, and who looks at a run can tell for how long it was out."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.control.actions import change_profile
from geoedge.control.audit import audit_actions
from geoedge.control.bounds import outside_s
from geoedge.control.log import LogEntry
from geoedge.control.placement import Placement
from geoedge.control.planners import PLANNERS, Limits
from geoedge.control.planners.limits import shares_outside
from geoedge.control.planners.placing import improve
from geoedge.scenario import ControlConfig
from tests.control.test_planners import BYTES, Additive, open_limits, situation

MOVERS = [name for name, planner in PLANNERS.items() if planner.moves]
LOSSES = np.array([[0.0, 0.5, 0.0], [0.0, 0.1, 0.0], [0.0, 0.3, 0.0], [0.0, 0.2, 0.0]])
"""What sites lose by giving profile 1 up."""


def planned(name, profile, limits, **more):
    told = situation(LOSSES, profile, limits, mix_of=lambda _: np.array([0.5, 0.5, 0.0]), **more)
    return PLANNERS[name].plan(told)


@pytest.mark.parametrize("name", MOVERS)
def test_a_broken_floor_is_mended_where_it_costs_least(name):
    limits = open_limits(4, least_sites=np.array([2, 0, 0]), min_gain=0.001)
    plan = planned(name, [1, 1, 1, 1], limits)
    assert (plan.profile == 0).sum() >= 2
    if name != "random":
        assert plan.profile.tolist() == [1, 0, 1, 0]
    if not PLANNERS[name].at_once:
        assert "back within floor and caps" in plan.actions[0].reason
        assert plan.actions[0].sites == (1,)


@pytest.mark.parametrize("name", [name for name in MOVERS if not PLANNERS[name].at_once])
def test_it_takes_as_many_epochs_as_the_number_of_actions_asks_for(name):
    limits, profile = open_limits(4, least_sites=np.array([3, 0, 0]), rounds=1), np.array([1, 1, 1, 1])
    for left in (2, 1, 0):
        plan = planned(name, profile, limits)
        assert len(plan.actions) == 1
        profile = plan.profile
        assert limits.outside(np.bincount(profile, minlength=3)) == left
    assert profile.tolist() == [1, 0, 0, 0]


def test_sites_that_must_wait_wait():
    limits = open_limits(4, least_sites=np.array([2, 0, 0]), least_hold_epochs=3)
    plan = planned("greedy", [1, 1, 1, 1], limits, busy=frozenset({1}), held_since=np.array([9, 9, 9, 1]))
    assert plan.profile.tolist() == [0, 1, 0, 1]


def test_a_bound_that_takes_bytes_keeps_to_the_budget():
    # profile 1 on two sites at least: 10 B each
    limits = open_limits(4, least_sites=np.array([0, 2, 0]), budget_bytes=15.0)
    plan = planned("greedy", [0, 0, 0, 0], limits)
    assert [action.sites for action in plan.actions] == [(0,)]


def test_the_budget_of_later_epochs_is_whole_whatever_the_way_back_took():
    # site 0 goes back within bounds for 10 B; what site 1 needs in the second epoch alone, 40 B, fits there at once
    limits = open_limits(2, least_sites=np.array([0, 1, 0]), budget_bytes=45.0)
    now = np.array([[0.0, 0.1, 0.0], [0.0, -0.01, -0.5]])
    soon = np.array([[0.0, 0.1, 0.0], [0.0, 0.0, 0.4]])
    plan = PLANNERS["multi_period"].plan(situation([now, soon], [0, 0], limits))
    assert [action.sites for action in plan.actions] == [(0,)]
    # where it does not fit, half of the way is gone before
    narrow = open_limits(2, least_sites=np.array([0, 1, 0]), budget_bytes=35.0)
    plan = PLANNERS["multi_period"].plan(situation([now, soon], [0, 0], narrow))
    assert [action.sites for action in plan.actions] == [(0,), (1,)]


def test_one_change_does_where_one_is_enough():
    # all must hold the fallback, and none a deep profile: not first a shallow one, though it loses less
    limits = open_limits(4, least_sites=np.array([4, 0, 0]), most_sites=np.array([4, 4, 0]))
    plan = planned("greedy", [2, 2, 2, 1], limits)
    assert plan.profile.tolist() == [0, 0, 0, 0]
    assert len(plan.actions) == 4


@pytest.mark.parametrize("name", MOVERS)
def test_deep_profiles_together_keep_to_their_cap(name):
    deep = {"deep": np.array([False, True, True]), "most_deep": 1}
    plan = planned(name, [1, 2, 1, 0], open_limits(4, **deep))
    assert (plan.profile > 0).sum() <= 1
    again = planned(name, [1, 0, 0, 0], open_limits(4, **deep))
    assert (again.profile > 0).sum() <= 1
    if name in ("greedy", "look_ahead", "oracle"):
        assert plan.profile.tolist() == [1, 0, 0, 0]


def test_the_best_start_keeps_bounds_that_the_layout_breaks():
    limits = open_limits(4, least_sites=np.array([3, 0, 0]))
    assert improve(Additive(LOSSES), np.array([1, 1, 2, 1]), limits).tolist() == [1, 0, 0, 0]


def test_deep_to_deep_is_free_under_the_cap_of_all():
    limits = open_limits(4, deep=np.array([False, True, True]), most_deep=2)
    assert limits.allowed(np.array([2, 1, 1])).tolist() == [
        [True, False, False],
        [True, True, True],
        [True, True, True],
    ]
    assert limits.unlimited(4).tolist() == [True, False, False]
    assert open_limits(4, most_sites=np.array([4, 4, 3])).unlimited(4).tolist() == [True, True, False]


# -- telling of it --------------------------------------------------------------------------------------


def entry(epoch, action):
    return LogEntry(epoch, 100.0 * epoch, action, 0.0)


def test_an_audit_counts_actions_and_deep_sites_together():
    initial = np.array([0, 0, 0])
    log = [
        entry(1, change_profile(0, 0, 1, BYTES)),
        entry(1, change_profile(1, 0, 2, BYTES)),
        entry(2, change_profile(2, 0, 1, BYTES)),
    ]
    rules = {"least_sites": np.zeros(3, int), "most_sites": np.full(3, 3), "transfer_bytes": BYTES}
    deep = np.array([False, True, True])
    assert audit_actions(log, initial, **rules, deep=deep, most_deep=3, most_actions=2) == []
    (one,) = audit_actions(log, initial, **rules, most_actions=1)
    assert one == "epoch 1: 2 actions, allowed are 1"
    (one,) = audit_actions(log, initial, **rules, deep=deep, most_deep=2)
    assert "epoch 2" in one
    assert "3 sites are left with deep profiles, allowed are 2" in one


def test_time_outside_is_from_the_layout_until_what_is_held_keeps_the_bound():
    limits = Limits(1e9, np.array([2, 0, 0]), np.array([4, 4, 4]), 0.0)
    placement = Placement(np.array([1, 1, 0, 1]), 1.0)
    placement.start([change_profile(0, 1, 0, BYTES)], 100.0)
    placement.advance(150.0)
    assert outside_s(placement.journal, np.array([1, 1, 0, 1]), limits, 50.0, 400.0) == {
        "fallback_floor": 50.0
    }
    # kept: nothing to tell, though the states of an exchange arrive one after the other
    inside = np.array([0, 0, 1, 1])
    placement = Placement(inside, 1.0)
    placement.start([change_profile(0, 0, 1, BYTES), change_profile(2, 1, 2, BYTES)], 100.0)
    placement.start([change_profile(3, 1, 0, BYTES)], 100.0)
    placement.advance(300.0)
    assert outside_s(placement.journal, inside, limits, 0.0, 400.0) == {}
    assert outside_s([], np.array([1, 1, 0, 1]), limits, 50.0, 400.0) == {"fallback_floor": 350.0}


def test_shares_that_break_bounds_are_told_by_key():
    hits = np.array([[0, 0], [512, 512], [512, 3072], [6144, 512]])
    share, names = np.array([0.1, 0.2, 0.4, 0.3]), ("none", "low", "agent", "guide")
    kept = ControlConfig(fallback_floor=0.1, deep_cap=0.4, deep_share_cap=0.7)
    assert list(shares_outside(share, hits, names, kept)) == []
    broken = ControlConfig(fallback_floor=0.2, deep_cap=0.35, deep_share_cap=0.6)
    assert list(shares_outside(share, hits, names, broken)) == [
        "control.fallback_floor = 0.2: only 10.0% of the sites hold none",
        "control.deep_cap = 0.35: 40.0% of the sites hold agent",
        "control.deep_share_cap = 0.6: 70.0% of the sites hold deep profiles (agent, guide)",
    ]
