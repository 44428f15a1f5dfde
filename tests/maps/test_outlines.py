from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.city import City
from geoedge.maps.outlines import STREET_CLASSES, cell_areas, clip_area, street_lines

GRID = np.array([(column, row) for row in range(12) for column in range(12)], dtype=float) * 50.0 + 1_000.0


def classes(seed: int, count: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1, count, len(GRID))


def test_every_street_is_drawn_once_whatever_its_directions_and_modes(town: City) -> None:
    paths, streets, roads = street_lines(town.streets, tolerance_m=0.5)
    assert len(STREET_CLASSES) == 3
    # 40 streets of 200 m; four of them are fast; everything that can be walked can be driven here
    assert sum(line.length for line in paths) == 0
    assert sum(line.length for line in streets) == pytest.approx(36 * 200, abs=0.5)
    assert sum(line.length for line in roads) == pytest.approx(4 * 200, abs=0.5)


def test_streets_for_walking_alone_are_foot_paths(town: City) -> None:
    paths, streets, roads = street_lines({"walk": town.streets["walk"]}, tolerance_m=0.5)
    assert sum(line.length for line in paths) == pytest.approx(40 * 200, abs=0.5)
    assert streets == roads == []
    assert street_lines({}, 1.0) == ([], [], [])


def test_pieces_are_joined_into_long_lines(town: City) -> None:
    _, streets, roads = street_lines(town.streets, tolerance_m=0.5)
    assert len(roads) < 4 + 1
    assert len(streets) + len(roads) <= 40


@settings(deadline=None)
@given(st.integers(0, 200))
def test_unsmoothed_areas_are_exactly_the_cells(seed: int) -> None:
    index = classes(seed)
    areas = cell_areas(GRID, 50.0, index, 4, 0.0)
    for level, area in enumerate(areas):
        squares = [shapely.box(x - 25, y - 25, x + 25, y + 25) for x, y in GRID[index == level]]
        assert shapely.union_all(squares).symmetric_difference(area).area == pytest.approx(0, abs=1e-3)


@settings(deadline=None)
@given(st.integers(0, 200), st.sampled_from([25.0, 50.0, 100.0]))
def test_smoothed_areas_neither_overlap_nor_leave_gaps(seed: int, tolerance: float) -> None:
    index = np.maximum(classes(seed), 0)
    areas = [area for area in cell_areas(GRID, 50.0, index, 4, tolerance) if not area.is_empty]
    assert shapely.coverage_is_valid(areas)
    whole = shapely.union_all(areas)
    assert sum(area.area for area in areas) == pytest.approx(whole.area, rel=1e-9)
    assert not any(polygon.interiors for polygon in shapely.get_parts(whole))


def test_smoothing_makes_fewer_corners_and_moves_little_area() -> None:
    disc = (np.hypot(*(GRID - GRID.mean(axis=0)).T) < 200).astype(np.int64)
    raw, smooth = (cell_areas(GRID, 50.0, disc, 2, tolerance)[1] for tolerance in (0.0, 50.0))
    assert shapely.get_num_coordinates(smooth) < shapely.get_num_coordinates(raw)
    assert smooth.area == pytest.approx(raw.area, rel=0.1)


def test_nothing_to_draw_gives_empty_areas() -> None:
    assert all(area.is_empty for area in cell_areas(GRID[:0], 50.0, np.zeros(0, dtype=np.int64), 3, 50.0))
    assert all(area.is_empty for area in cell_areas(GRID, 50.0, np.full(len(GRID), -1), 3, 50.0))


def test_clipping_drops_lines_where_areas_only_touch_the_land() -> None:
    land = shapely.box(0, 0, 10, 10)
    assert clip_area(shapely.box(10, 0, 20, 10), land).is_empty
    assert clip_area(shapely.box(5, 5, 20, 20), land).equals(shapely.box(5, 5, 10, 10))
    assert clip_area(shapely.box(5, 5, 20, 20), None).area == 225
