"""The planner: greedy by predicted gain, inside budget and shares, whatever the predictor says."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.control.replan import Limits, Prediction, make_limits, plan_epoch
from geoedge.errors import GeoEdgeError

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
    plan = plan_epoch(Additive(value), np.array([0, 1, 0]), BYTES, open_limits(3))
    assert plan.profile.tolist() == [1, 0, 2]
    assert plan.after.coverage == pytest.approx(1.0)
    gains = [action.predicted_gain for action in plan.actions]
    assert sum(gains) == pytest.approx(plan.after.coverage - plan.before.coverage)
    assert all(a >= b - 1e-12 for a, b in pairwise(gains))


def test_stops_below_the_least_gain():
    value = np.array([[0.0, 0.0009, 0.0]])
    assert plan_epoch(Additive(value), np.array([0]), BYTES, open_limits(1)).actions == ()
    assert len(plan_epoch(Additive(value), np.array([0]), BYTES, open_limits(1, min_gain=0.0)).actions) == 1
    # with no least gain at all, nothing is moved for nothing
    assert (
        plan_epoch(Additive(np.zeros((4, 3))), np.zeros(4, int), BYTES, open_limits(4, min_gain=0.0)).actions
        == ()
    )


def test_migrates_when_the_mix_may_not_change():
    value = np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 0.1]])
    limits = open_limits(2, most_sites=np.array([2, 2, 1]))
    plan = plan_epoch(Additive(value), np.array([0, 2]), BYTES, limits)
    assert [action.kind for action in plan.actions] == ["migrate"]
    assert plan.actions[0].sites == (0, 1)
    assert plan.profile.tolist() == [2, 0]
    assert plan.actions[0].bytes_moved == 40.0


def test_busy_sites_stay():
    value = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    plan = plan_epoch(Additive(value), np.array([0, 0]), BYTES, open_limits(2), busy=frozenset({0}))
    assert plan.profile.tolist() == [0, 1]


def test_reason_tells_numbers_in_words():
    value = np.array([[0.0, 0.25, 0.0]])
    plan = plan_epoch(
        Additive(value), np.array([0]), BYTES, open_limits(1), profile_names=("none", "shallow", "deep")
    )
    reason = plan.actions[0].reason
    assert "0.0000 -> 0.2500" in reason
    assert "site 0 none -> shallow" in reason
    assert "requests/s" in reason


def test_limits_of_other_length_are_refused():
    limits = open_limits(2, least_sites=np.zeros(2, dtype=np.int64), most_sites=np.full(2, 2))
    with pytest.raises(GeoEdgeError, match="limits are for 2 profiles"):
        plan_epoch(Additive(np.zeros((2, 3))), np.array([0, 0]), BYTES, limits)


def test_shares_become_whole_sites():
    hits = np.array([[0, 0], [512, 512], [512, 3072], [6144, 512]])
    limits = make_limits(10, hits, budget_bytes=5.0, fallback_floor=0.25, deep_cap=0.39, min_gain=0.0)
    assert limits.least_sites.tolist() == [3, 0, 0, 0]
    assert limits.most_sites.tolist() == [10, 10, 3, 3]


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
        50,
    )
    return value, profile, limits


@given(cases())
def test_budget_floor_and_cap_hold_and_gain_never_falls(case):
    value, profile, limits = case
    plan = plan_epoch(Additive(value), profile, BYTES, limits)
    assert sum(action.bytes_moved for action in plan.actions) <= limits.budget_bytes
    before, after = np.bincount(profile, minlength=3), np.bincount(plan.profile, minlength=3)
    # a limit that was broken at the start may stay broken, but no further
    assert (after >= np.minimum(limits.least_sites, before)).all()
    assert (after <= np.maximum(limits.most_sites, before)).all()
    touched = [site for action in plan.actions for site in action.sites]
    assert len(touched) == len(set(touched))
    assert all(action.predicted_gain >= max(limits.min_gain, 1e-9) for action in plan.actions)
    replayed = profile
    for action in plan.actions:
        replayed = action.apply(replayed)
    assert replayed.tolist() == plan.profile.tolist()
