"""Combinations of worlds: pairs cancel, independent sources add, and what is infinite is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from geoedge.compare.gap.readings import Reading, combined
from geoedge.errors import GeoEdgeError

A, B, C = (frozenset({name}) for name in "abc")


def reading(source: str, values: list[float], **more: float) -> Reading:
    return Reading(source, np.array(values), **more)


def test_what_pairs_share_cancels() -> None:
    luck = np.random.default_rng(1).normal(size=20)
    own = 0.01 * np.random.default_rng(2).normal(size=20)
    readings = {A: reading("runs", luck), B: reading("runs", luck + 0.3 + own)}
    value, low, high = combined(readings, {B: 1.0, A: -1.0})
    assert value == pytest.approx(0.3 + own.mean())
    assert (low, high) == pytest.approx(stats.t.interval(0.95, 19, 0.3 + own.mean(), stats.sem(own)))
    assert combined(readings, {A: 1.0}).high - combined(readings, {A: 1.0}).low > 20 * (high - low)


def test_independent_sources_add_up_as_welch_has_it() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=12), 3 * rng.normal(size=7)
    readings = {A: reading("layouts", x), B: reading("runs", y)}
    value, low, high = combined(readings, {A: 1.0, B: -1.0})
    known = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert (low, high) == pytest.approx((known.low, known.high))
    assert value == pytest.approx(x.mean() - y.mean())


def test_a_stated_error_counts_with_its_own_freedom() -> None:
    readings = {A: reading("", [0.8]), B: reading("torus", [0.7], error=0.01, freedom=5.0)}
    value, low, high = combined(readings, {B: 1.0, A: -1.0})
    assert (low, value, high) == pytest.approx(
        (-0.1 - stats.t.ppf(0.975, 5) * 0.01, -0.1, -0.1 + stats.t.ppf(0.975, 5) * 0.01)
    )


def test_without_luck_there_is_no_interval_and_with_one_sample_none_is_known() -> None:
    readings = {A: reading("", [0.8]), B: reading("", [0.5]), C: reading("runs", [0.4])}
    assert combined(readings, {B: 1.0, A: -1.0}) == pytest.approx((-0.3, -0.3, -0.3))
    value, low, high = combined(readings, {C: 1.0, B: -1.0})
    assert value == pytest.approx(-0.1)
    assert np.isnan([low, high]).all()


def test_an_infinite_answer_is_refused_in_one_line() -> None:
    readings = {A: reading("", [0.3]), frozenset({"load", "window"}): reading("layouts", [1.0, np.inf])}
    with pytest.raises(GeoEdgeError, match=r"infinite with load, window.*coverage") as error:
        combined(readings, {frozenset({"load", "window"}): 1.0, A: -1.0})
    assert "\n" not in str(error.value)
