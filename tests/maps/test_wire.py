from __future__ import annotations

import json

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.errors import OutputError
from geoedge.maps.wire import UNIT, encode_lines, encode_paths, encode_point, encode_polygons, script_json
from geoedge.maps.words import byte_count, clock, percent, points, rate, seconds

PLACES = st.lists(st.tuples(st.floats(-180, 180), st.floats(-85, 85)), min_size=2, max_size=30)


def decoded(path: list[int]) -> np.ndarray:
    """Decode as the page does."""
    return np.cumsum(np.array(path).reshape(-1, 2), axis=0) * UNIT


def same(path: list[int], area: shapely.Polygon) -> bool:
    return shapely.Polygon(decoded(path)).symmetric_difference(area).area < 1e-9


@given(PLACES)
def test_a_line_comes_back_within_half_a_unit(places: list[tuple[float, float]]) -> None:
    lines = encode_lines([shapely.LineString(places)], lambda xy: xy)
    units = np.rint(np.array(places) / UNIT)
    kept = np.ones(len(units), dtype=bool)
    kept[1:] = (units[1:] != units[:-1]).any(axis=1)
    if kept.sum() == 1:
        assert lines == []
    else:
        np.testing.assert_allclose(decoded(lines[0]), units[kept] * UNIT, rtol=0, atol=1e-9)


@given(st.lists(PLACES, min_size=1, max_size=3))
def test_paths_come_back_with_every_point(ways: list[list[tuple[float, float]]]) -> None:
    places, path = np.concatenate(ways), np.repeat(np.arange(len(ways)), [len(way) for way in ways])
    for way, found in zip(ways, encode_paths(places, path), strict=True):
        np.testing.assert_allclose(decoded(found), np.rint(np.array(way) / UNIT) * UNIT, rtol=0, atol=1e-9)


def test_polygons_keep_holes_and_parts_and_leave_the_closing_point_to_the_page() -> None:
    ring = shapely.Polygon(shapely.box(0, 0, 1, 1).exterior, [shapely.box(0.2, 0.2, 0.4, 0.4).exterior])
    both = shapely.MultiPolygon([ring, shapely.box(2, 2, 3, 3)])
    first, second = encode_polygons(both, lambda xy: xy)
    assert [len(part) // 2 for part in first] == [4, 4]
    assert same(first[0], shapely.box(0, 0, 1, 1))
    assert same(first[1], shapely.box(0.2, 0.2, 0.4, 0.4))
    assert same(second[0], shapely.box(2, 2, 3, 3))


def test_what_vanishes_at_the_resolution_of_the_page_is_left_out() -> None:
    speck = shapely.box(0, 0, UNIT / 10, UNIT / 10)
    assert encode_polygons(speck, lambda xy: xy) == []
    assert encode_polygons(shapely.MultiPolygon(), lambda xy: xy) == []
    assert encode_lines([], lambda xy: xy) == []


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_coordinate_that_is_not_finite_is_an_error_not_a_dead_layer(bad: float) -> None:
    with pytest.raises(OutputError, match="not finite"):
        encode_point(np.array([bad, 43.0]))


@settings(max_examples=50)
@given(
    st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_json_in_a_script_holds_no_markup_and_reads_back_equal(value: object) -> None:
    text = script_json(value)
    assert not set(text) & set("<>&\u2028\u2029")
    assert text.isascii()
    assert json.loads(text) == value


def test_json_refuses_nan() -> None:
    with pytest.raises(OutputError, match="not finite"):
        script_json([1.0, float("nan")])


def test_numbers_in_the_unit_that_reads_best() -> None:
    assert [seconds(v) for v in (0.0, 2e-4, 0.0162, 0.9996, 2.5, 3600.0, np.inf, np.nan)] == [
        "0 s",
        "below 1 ms",
        "16.2 ms",
        "1 s",
        "2.5 s",
        "3600 s",
        "unbounded",
        "–",
    ]
    assert [byte_count(v) for v in (0, 1500, 2.1e6, 3e9)] == ["0 B", "1.5 kB", "2.1 MB", "3 GB"]
    assert [clock(v) for v in (0, 25_200, 86_400 + 5_400)] == ["00:00", "07:00", "01:30 +1 d"]
    assert (percent(0.8412), percent(np.nan), rate(0.2034, "/s")) == ("84.1 %", "–", "0.203 /s")
    assert (points(0.0123), points(-0.05), points(np.nan)) == ("+1.2 points", "-5.0 points", "–")
