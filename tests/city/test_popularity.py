"""Popularity drifts: who asks when stays, what is asked moves as stated, in expectation and in runs."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.city.demand import RequestRates
from geoedge.city.popularity import Popularity, drifting
from geoedge.city.trips import HOUR_S
from geoedge.errors import ScenarioError
from geoedge.scenario import EventConfig, TypeWeight

NAMES = ("chat", "agent", "guide")
START = (0.5, 0.3, 0.2)
PLACE = np.array([[1.0, 1.0, 1.0, 1.0], [0.2, 3.0, 0.2, 0.1], [0.5, 0.2, 4.0, 1.0]])
HOUR = np.array([np.ones(24), np.linspace(0.5, 1.5, 24), np.linspace(1.5, 0.5, 24)])


def drift(start_hour, duration_s, **given):
    types = tuple(TypeWeight(name=name, weight=weight) for name, weight in given.pop("types", {}).items())
    return EventConfig(
        kind="popularity_drift",
        start_hour=start_hour,
        duration_s=duration_s,
        types=types or None,
        **given,
    )


def rates(popularity):
    return RequestRates(2e-3 * np.array(START), PLACE, HOUR, popularity)


def test_a_stated_drift_is_a_straight_line_between_what_was_and_what_is_stated():
    course = drifting([drift(10.0, 3600.0, types={"chat": 1.0, "guide": 3.0})], NAMES, START)
    found = course.at(np.array([9.0, 10.0, 10.5, 11.0, 20.0]) * HOUR_S).T
    end = np.array([0.25, 0.0, 0.75])
    assert found == pytest.approx(np.array([START, START, 0.5 * (np.array(START) + end), end, end]))


def test_drifts_follow_each_other_whatever_their_order_in_the_scenario():
    first, second = drift(10.0, 3600.0, types={"agent": 1.0}), drift(11.0, 1800.0, types={"chat": 1.0})
    course = drifting([second, first], NAMES, START)
    assert course.at(11.25 * HOUR_S)[:, 0] == pytest.approx([0.5, 0.5, 0.0])
    assert course.time_s.tolist() == [10.0 * HOUR_S, 11.0 * HOUR_S, 11.5 * HOUR_S]


def test_a_random_walk_has_the_stated_spread_and_is_known_to_its_run_alone():
    walk = drift(10.0, 4 * 3600.0, sd_per_hour=0.3)
    assert drifting([walk], NAMES, START) is None
    ends = np.array([drifting([walk], NAMES, START, seed).share[-1] for seed in range(400)])
    # Differences of log weights: two independent walks, each of sd 0.3 after an hour, over four hours.
    gap = np.log(ends[:, 0] / ends[:, 1]) - np.log(START[0] / START[1])
    wanted = 0.3 * np.sqrt(2 * 4)
    assert abs(gap.mean()) < 4 * wanted / np.sqrt(400)
    assert gap.std(ddof=1) == pytest.approx(wanted, rel=4 / np.sqrt(2 * 400))
    again = drifting([walk], NAMES, START, 7)
    assert np.array_equal(again.share, drifting([walk], NAMES, START, 7).share)
    assert again.share[0] == pytest.approx(START)


def test_nobody_asks_more_or_less_often_under_a_drift():
    course = drifting([drift(10.0, 7200.0, types={"chat": 1.0, "guide": 3.0})], NAMES, START)
    plain, moved = rates(None), rates(course)
    for hour in (9, 10, 11, 20):
        low = hour * HOUR_S
        assert moved.during(low, low + HOUR_S).sum(axis=0) == pytest.approx(
            plain.at(hour).sum(axis=0), rel=1e-12
        )
    assert moved.during(9 * HOUR_S, 10 * HOUR_S) == pytest.approx(plain.at(9))
    assert (moved.during(20 * HOUR_S, 21 * HOUR_S)[1] == 0.0).all()


def test_the_mean_over_a_stretch_is_the_integral_of_the_instants():
    course = drifting([drift(10.2, 1200.0, types={"chat": 1.0, "guide": 3.0})], NAMES, START)
    moved = rates(course)
    when = np.linspace(10.1 * HOUR_S, 10.9 * HOUR_S, 20_001)
    for activity in range(4):
        exact = moved.by_type(when, np.full(when.size, activity), 10).mean(axis=1)
        assert moved.during(when[0], when[-1])[:, activity] == pytest.approx(exact, rel=1e-3)


def test_no_drift_is_the_rate_itself():
    assert np.array_equal(rates(None).during(10.2 * HOUR_S, 10.4 * HOUR_S), rates(None).at(10))


def test_a_drift_to_what_nobody_asks_for_somewhere_is_refused():
    place = PLACE.copy()
    place[0, 1] = 0.0
    course = drifting([drift(10.0, 3600.0, types={"chat": 1.0})], NAMES, START)
    with pytest.raises(
        ScenarioError, match="people at work ask for none of the types that are left"
    ) as caught:
        RequestRates(2e-3 * np.array(START), place, HOUR, course)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("times", "shares", "why"),
    [
        ([1.0, 1.0], [[1.0], [1.0]], "must increase"),
        ([1.0], [[0.5, 0.4]], "sum to 1"),
        ([1.0, 2.0], [[1.0]], "a row for each"),
    ],
)
def test_a_course_that_is_none_is_refused(times, shares, why):
    with pytest.raises(ScenarioError, match=why):
        Popularity(np.array(times), np.array(shares))
