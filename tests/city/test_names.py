"""Named streets: one entry a name, pieces joined, cut at the map's edge, and the nearest of them found."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import shapely

from geoedge.city import City, load_city
from geoedge.city.cache import city_from_bytes, city_to_bytes
from geoedge.city.names import RANKS, NamedWay, StreetNames, name_streets, street_rank
from geoedge.city.read import read_map
from geoedge.errors import CityError
from geoedge.shipped import data_path
from geoedge.texts import LONGEST

MAIN, STREET, PATH = range(3)


def named(*ways: tuple[str, int, list[tuple[float, float]]], frame=None) -> StreetNames:
    """Return the names of ways given in metres."""
    return name_streets([NamedWay(n, r, np.array(xy, dtype=float)) for n, r, xy in ways], np.asarray, frame)


def lines_of(names: StreetNames, name: str) -> list[list[tuple[float, float]]]:
    index = names.name.tolist().index(name)
    return [list(line.coords) for line in names.lines[names.line_name == index]]


@pytest.mark.parametrize(
    ("tags", "rank"),
    [
        ({"highway": "primary", "name": "A"}, MAIN),
        ({"highway": "tertiary_link", "name": "A"}, MAIN),
        ({"highway": "residential", "name": "A"}, STREET),
        ({"highway": "residential", "name": "A", "access": "private"}, STREET),
        ({"highway": "pedestrian", "name": "A", "area": "yes"}, STREET),
        ({"highway": "footway", "name": "A"}, PATH),
        ({"highway": "service", "name": "A"}, PATH),
        ({"highway": "residential", "name": ""}, -1),
        ({"highway": "residential"}, -1),
        ({"highway": "residential", "name": "A", "tunnel": "yes"}, -1),
        ({"highway": "steps", "name": "A", "tunnel": "building_passage"}, PATH),
        ({"highway": "proposed", "name": "A"}, -1),
        ({"highway": "construction", "name": "A"}, -1),
        ({"highway": "bus_stop", "name": "A"}, -1),
        ({"building": "yes", "name": "A"}, -1),
    ],
)
def test_which_things_are_named_streets(tags: dict[str, str], rank: int) -> None:
    assert street_rank(tags) == rank


def test_pieces_of_a_name_are_one_street_and_main_roads_come_first() -> None:
    names = named(
        ("Short", STREET, [(0, 500), (50, 500)]),
        ("Long", STREET, [(0, 0), (100, 0)]),
        ("Long", STREET, [(200, 0), (100, 0)]),
        ("Way", PATH, [(0, 900), (900, 900)]),
        ("Road", MAIN, [(0, 700), (10, 700)]),
    )
    assert names.name.tolist() == ["Road", "Long", "Short", "Way"]
    assert [RANKS[rank] for rank in names.rank] == ["main roads", "streets", "streets", "foot paths"]
    (line,) = lines_of(names, "Long")
    assert sorted(line) == [(0, 0), (100, 0), (200, 0)]
    assert shapely.LineString(line).length == 200.0
    assert repr(names) == "StreetNames(4 names on 4 lines)"


def test_the_class_is_that_of_most_of_the_length() -> None:
    mixed = named(("A", PATH, [(0, 0), (90, 0)]), ("A", MAIN, [(90, 0), (100, 0)]))
    even = named(("A", PATH, [(0, 0), (50, 0)]), ("A", MAIN, [(50, 0), (100, 0)]))
    assert (mixed.rank.tolist(), even.rank.tolist()) == ([PATH], [MAIN])


def test_at_a_fork_the_straightest_go_on_in_each_other() -> None:
    names = named(
        ("A", STREET, [(0, 0), (100, 0)]),
        ("A", STREET, [(100, 0), (200, 5)]),
        ("A", STREET, [(100, 0), (100, 80)]),
    )
    long, short = sorted(lines_of(names, "A"), key=len, reverse=True)
    assert sorted(long) == [(0, 0), (100, 0), (200, 5)]
    assert sorted(short) == [(100, 0), (100, 80)]


def test_no_vertex_is_lost_or_made_by_joining(rng: np.random.Generator) -> None:
    nodes = rng.uniform(0, 1000, (12, 2)).round(2)
    pairs = [(a, b) for a in range(12) for b in range(a + 1, 12) if rng.random() < 0.4]
    names = named(*(("A", STREET, nodes[[a, b]].tolist()) for a, b in pairs))
    assert len(names.line_name) < len(pairs)
    pieces = {tuple(sorted(map(tuple, nodes[[a, b]].tolist()))) for a, b in pairs}
    drawn = [
        tuple(sorted((tuple(one), tuple(other))))
        for line in names.lines
        for one, other in zip(line.coords[:-1], line.coords[1:], strict=True)
    ]
    assert len(drawn) == len(set(drawn))
    assert set(drawn) == pieces


def test_a_ring_stays_whole() -> None:
    ring = [(0, 0), (100, 0), (100, 100), (0, 100), (0, 0)]
    names = named(("Ring", STREET, ring[:3]), ("Ring", STREET, ring[2:]))
    assert sum(line.length for line in names.lines) == 400.0


def test_streets_are_cut_at_the_frame() -> None:
    ways = [("In and out", STREET, [(-50, 10), (150, 10)]), ("Out", STREET, [(200, 0), (300, 0)])]
    names = named(*ways, frame=shapely.box(0, 0, 100, 100))
    assert names.name.tolist() == ["In and out"]
    assert sorted(lines_of(names, "In and out")[0]) == [(0, 10), (100, 10)]


@pytest.mark.parametrize("turn", [0, 1])
def test_a_square_is_the_line_through_its_middle(turn: int) -> None:
    outline = np.array([(0, 0), (100, 0), (100, 20), (0, 20), (0, 0)], dtype=float)
    outline = outline[:, ::-1] if turn else outline
    (line,) = name_streets([NamedWay("Place", STREET, outline, is_area=True)], np.asarray).lines
    assert line.length == pytest.approx(100.0)
    assert set(np.asarray(line.coords)[:, 1 - turn].round(9)) == {10.0}
    flat = [NamedWay("Line", STREET, part * (1, 0), is_area=True) for part in (outline[:3], outline)]
    assert [len(name_streets([way], np.asarray)) for way in flat] == [1, 0]


def test_names_are_cleaned_once_and_equal_ones_merged() -> None:
    names = named(
        ("Rue\u202e \x07A\u2028", STREET, [(0, 0), (10, 0)]),
        ("Rue A", STREET, [(10, 0), (20, 0)]),
        ("\u202e\x00", STREET, [(0, 50), (10, 50)]),
        ("x" * 500, PATH, [(0, 90), (10, 90)]),
        ("<b>Söhne</b>", PATH, [(0, 95), (5, 95)]),
        ("Nowhere", PATH, [(0, 99), (0, 99)]),
    )
    assert names.name.tolist() == ["Rue A", "x" * (LONGEST - 1) + "…", "<b>Söhne</b>"]


def test_the_nearest_is_that_of_all_lines_one_by_one(rng: np.random.Generator) -> None:
    ways = [
        (
            f"n{k % 25}",
            int(rng.integers(3)),
            (rng.uniform(0, 2000, 2) + rng.uniform(-80, 80, (4, 2))).tolist(),
        )
        for k in range(60)
    ]
    names, points = named(*ways), rng.uniform(-100, 2100, (400, 2))
    distance = shapely.distance(shapely.points(points)[:, None], names.lines[None, :])
    for within in (5.0, 60.0, 1e6):
        want = np.where(distance.min(axis=1) <= within, names.line_name[distance.argmin(axis=1)], -1)
        np.testing.assert_array_equal(names.nearest(points, within), want)
        assert names.at(points, within) == [names.name[k] if k >= 0 else "" for k in want]
    assert (names.nearest(points, 60.0) < 0).any()
    assert (names.nearest(points, 60.0) >= 0).any()


def test_at_a_crossing_the_weightier_street_counts() -> None:
    names = named(("Lane", PATH, [(0, 0), (0, 100)]), ("Avenue", MAIN, [(-50, 0), (50, 0)]))
    assert names.at([(0, 0), (0, 50), (0, 200)]) == ["Avenue", "Lane", ""]
    assert names.at([(0, 160.0), (0, 160.1)]) == ["Lane", ""]


def test_a_city_without_names_has_none_near() -> None:
    none = StreetNames.none()
    assert len(none) == len(none.lines) == 0
    assert none.nearest([(0, 0), (1, 1)]).tolist() == [-1, -1]
    assert none.at(np.zeros((0, 2))) == []
    assert len(name_streets([], np.asarray)) == 0


def test_arrays_that_do_not_belong_together_are_refused() -> None:
    names = named(("A", STREET, [(0, 0), (1, 0)]))
    with pytest.raises(CityError, match="do not agree in length; compile the city anew"):
        StreetNames(names.name, names.rank, names.line_name, names.line_offset, names.xy[:1])
    with pytest.raises(CityError, match=r"a line bears a name outside 0\.\.0"):
        StreetNames(names.name, names.rank, names.line_name + 1, names.line_offset, names.xy)
    two = named(("A", STREET, [(0, 0), (1, 0)]), ("B", STREET, [(0, 9), (1, 9)]))
    with pytest.raises(CityError, match="do not follow their names"):
        StreetNames(two.name, two.rank, two.line_name[::-1], two.line_offset, two.xy)
    with pytest.raises(CityError, match="a class is unknown"):
        StreetNames(two.name, two.rank + 3, two.line_name, two.line_offset, two.xy)
    for cuts in ([2, 3, 4], [0, 1, 4], [0, 6, 4]):
        with pytest.raises(CityError, match="do not agree in length"):
            StreetNames(two.name, two.rank, two.line_name, np.array(cuts), two.xy)


def test_a_map_gives_its_names_and_nothing_else_changes(town, tmp_path: Path) -> None:
    cross = town.grid(4, 100.0)
    plain = load_city(town.write(tmp_path / "a.osm"), cache=False)
    for number, (refs, tags) in town.ways.items():
        town.ways[number] = (refs, {**tags, "name": f"Weg {number % 3}"})
    town.way([cross[0][0], cross[1][1]], highway="footway", access="private", name="Hidden")
    town.way([town.node(0, 0), town.node(9, 9)], highway="proposed", name="Some day")
    square = [town.node(x, y) for x, y in ((110, 110), (190, 110), (190, 150), (110, 150))]
    town.way([*square, square[0]], highway="pedestrian", area="yes", name="Markt")
    city = load_city(town.write(tmp_path / "b.osm"), cache=False)
    assert set(city.street_names.name) == {"Weg 0", "Weg 1", "Weg 2", "Hidden", "Markt"}
    assert city.street_names.at(city.from_lonlat([(9.0 + 150 / 71_696, 50.0 + 130 / 111_229)])) == ["Markt"]
    for mode, graph in plain.streets.items():
        np.testing.assert_array_equal(city.streets[mode].geometry_xy, graph.geometry_xy)
    assert city.boundary.equals_exact(plain.boundary, 0.0)
    assert city.report["streets"] == plain.report["streets"]
    assert len(plain.street_names) == 0


def test_names_survive_the_cache_and_a_cache_without_them_is_damaged(shipped: City) -> None:
    again = city_from_bytes(city_to_bytes(shipped)).street_names
    assert again.name.tolist() == shipped.street_names.name.tolist()
    for name in ("rank", "line_name", "line_offset", "xy"):
        np.testing.assert_array_equal(getattr(again, name), getattr(shipped.street_names, name))
    with np.load(io.BytesIO(city_to_bytes(shipped))) as kept:
        old = {key: kept[key] for key in kept.files if not key.startswith("names.")}
    stream = io.BytesIO()
    np.savez(stream, **old)
    with pytest.raises(CityError, match="damaged"):
        city_from_bytes(stream.getvalue())


def test_shipped_cities_name_their_main_streets_within_their_land(shipped: City) -> None:
    main = {"monaco": "Boulevard des Moulins", "neubrandenburg": "Friedrich-Engels-Ring"}[shipped.name]
    names = shipped.street_names
    assert names.rank[names.name.tolist().index(main)] == MAIN
    assert 300 < len(names) < 500
    west, south, east, north = shipped.boundary.bounds
    assert (names.xy > (west - 200, south - 200)).all()
    assert (names.xy < (east + 200, north + 200)).all()


def test_two_extracts_of_one_city_agree_on_where_streets_are() -> None:
    old = load_city("monaco")
    newer = read_map(data_path("osm", "monaco-2023.osm.pbf")).named
    names = name_streets(newer, old.from_lonlat)
    points = shapely.get_coordinates(shapely.line_interpolate_point(names.lines, 0.5, normalized=True))
    in_both = np.isin(names.name[names.line_name], old.street_names.name)
    asked = in_both & old.contains(points)
    found = old.street_names.at(points[asked], 30.0)
    same = np.mean(
        [one == other for one, other in zip(found, names.name[names.line_name][asked], strict=True)]
    )
    assert asked.sum() > 100
    assert same > 0.8
