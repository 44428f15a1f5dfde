"""The catalogue of what sites hold: old news, verified, and targets that are never worth it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.control.catalogue import Reports, worthwhile
from geoedge.errors import GeoEdgeError

FIRST, SECOND, THIRD = np.array([0, 0]), np.array([1, 0]), np.array([1, 2])


def test_without_period_and_delay_routers_know_at_once():
    reports = Reports(FIRST, 0.0)
    reports.note(5.0, SECOND)
    assert reports.believed.tolist() == [1, 0]
    assert reports.next_s() == np.inf


def test_reports_are_made_on_their_beat_and_heard_later():
    reports = Reports(FIRST, 100.0, period_s=10.0, delay_s=3.0)
    reports.note(101.0, SECOND)
    assert reports.next_s() == 113.0
    reports.note(105.0, THIRD)  # the report of 110 s says this
    reports.hear(112.9)
    assert reports.believed.tolist() == [0, 0]
    reports.note(112.0, FIRST)  # and this is said at 120 s
    reports.hear(113.0)
    assert reports.believed.tolist() == [1, 2]
    assert reports.next_s() == 123.0
    reports.hear(1000.0)
    assert reports.believed.tolist() == [0, 0]


def test_a_change_at_the_beat_itself_is_in_the_report():
    reports = Reports(FIRST, 100.0, period_s=10.0)
    reports.note(110.0, SECOND)
    assert reports.believed.tolist() == [1, 0]


def test_news_without_news_is_none():
    reports = Reports(FIRST, 0.0, delay_s=3.0)
    reports.note(1.0, FIRST.copy())
    assert reports.next_s() == np.inf


def test_what_a_new_version_has_made_useless_is_not_believed_either():
    reports = Reports(THIRD, 0.0, delay_s=3.0)
    reports.note(1.0, np.array([2, 2]))
    reports.forget(np.array([0, 1, 1]))
    assert reports.believed.tolist() == [1, 1]
    reports.hear(4.0)
    assert reports.believed.tolist() == [1, 1]


@pytest.mark.parametrize("times", [(-1.0, 0.0), (0.0, np.inf)])
def test_nonsense_is_refused(times):
    with pytest.raises(GeoEdgeError, match="finite"):
        Reports(FIRST, 0.0, *times)


@given(
    st.lists(st.tuples(st.floats(0.0, 50.0), st.integers(0, 3)), max_size=8),
    st.sampled_from([0.0, 1.0, 7.0]),
    st.sampled_from([0.0, 0.5, 9.0]),
    st.floats(0.0, 100.0),
)
def test_belief_is_what_was_held_at_the_last_report_heard(changes, period, delay, now):
    changes = sorted(changes)
    reports = Reports(np.array([0]), 0.0, period, delay)
    for time, profile in changes:
        if time <= now:
            reports.hear(time)
            reports.note(time, np.array([profile]))
    reports.hear(now)
    heard_of = now - delay if period == 0.0 else np.floor((now - delay) / period + 1e-12) * period
    held = [0] + [profile for time, profile in changes if time <= heard_of]
    assert reports.believed.tolist() == [held[-1]]


def test_a_dominated_target_is_not_worth_a_look():
    hits = np.array([[0, 0], [5, 0], [5, 8], [4, 0]])
    servers, stored = np.array([9, 8, 8, 8]), np.array([0, 10, 10, 12])
    moved = np.array(
        [[0.0, 10.0, 10.0, 12.0], [0.0, 0.0, 6.0, 5.0], [0.0, 2.0, 0.0, 9.0], [0.0, 3.0, 3.0, 0.0]]
    )
    worth = worthwhile(hits, servers, stored, moved)
    # from the fallback, 2 beats 1 and 3; who holds 1 moves more for 2 than by staying, and keeps what it holds
    assert worth[0].tolist() == [True, False, True, False]
    assert worth[1].tolist() == [True, True, True, False]
    assert worth[2].tolist() == [True, False, True, False]
    assert worth[3].tolist() == [True, False, True, True]


def test_a_profile_that_may_have_run_out_makes_no_other_superfluous():
    hits, servers, stored = np.array([[0], [5], [10]]), np.full(3, 5), np.array([0, 20, 10])
    moved = np.array([[0.0, 20.0, 10.0], [0.0, 0.0, 10.0], [0.0, 20.0, 0.0]])
    assert worthwhile(hits, servers, stored, moved)[0].tolist() == [True, False, True]
    capped = np.array([True, True, False])
    assert worthwhile(hits, servers, stored, moved, capped)[0].tolist() == [True, True, True]


def test_of_equals_the_first_is_kept():
    same = np.zeros((3, 3))
    worth = worthwhile(np.ones((3, 1), int), np.ones(3, int), np.ones(3, int), same)
    assert worth[1].tolist() == [True, True, False]
