from __future__ import annotations

import pytest

from geoedge.city import City
from geoedge.maps.outlines import STREET_CLASSES, scale_bar, street_lines


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
