from __future__ import annotations

import numpy as np
import pytest

from geoedge.city import City
from geoedge.city.names import NamedWay, name_streets
from geoedge.maps.outlines import (
    FINEST_NAMED_M,
    SHORTEST_NAMED_M,
    named_lines,
    scale_bar,
    street_lines,
)


def test_every_street_is_drawn_once_whatever_its_directions_and_modes(town: City) -> None:
    paths, streets, roads = street_lines(town.streets, tolerance_m=0.5)
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


@pytest.mark.parametrize(
    ("longest", "length", "words"),
    [
        (0.7, 0.5, "0.5 m"),
        (100.0, 100.0, "100 m"),
        (199.0, 100.0, "100 m"),
        (999.0, 500.0, "500 m"),
        (1000.0, 1000.0, "1 km"),
        (2345.0, 2000.0, "2 km"),
        (6e4, 5e4, "50 km"),
    ],
)
def test_a_scale_bar_is_as_long_as_fits_in_round_numbers(longest: float, length: float, words: str) -> None:
    assert scale_bar(longest) == (length, words)


def test_named_streets_are_few_smooth_lines_and_the_weightiest_stay() -> None:
    x = np.arange(0.0, 400.0, 10.0)
    wavy = np.column_stack([x, np.where(np.arange(40) % 2, 0.4 * FINEST_NAMED_M, 0.0)])
    stub = np.array([(0.0, 900.0), (SHORTEST_NAMED_M - 1, 900.0)])
    ways = [("Wavy", 1, wavy), ("Stub", 0, stub), ("Path", 2, wavy + 500.0), ("Wavy", 1, stub + 50.0)]
    names = name_streets([NamedWay(*way) for way in ways], np.asarray)
    found = list(named_lines(names, 1.0, 10))
    assert [(name, rank, len(lines)) for name, rank, lines in found] == [("Wavy", 1, 1), ("Path", 2, 1)]
    assert all(len(lines[0].coords) == 2 for _, _, lines in found)
    assert [name for name, _, _ in named_lines(names, 1.0, 2)] == ["Wavy"]  # the stub counts, and has no room
    assert list(named_lines(names, 1.0, 0)) == []
    none = type(names).none()
    assert list(named_lines(none, 1.0, 10)) == []
