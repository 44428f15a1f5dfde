"""Reading maps and building street graphs from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import osmnx
import pytest

from geoedge.city.city import _transform
from geoedge.city.osm import build_streets, osmnx_settings
from geoedge.city.read import read_map
from geoedge.city.speeds import parse_maxspeed, speed_kmh, street_usable
from geoedge.errors import CityError

HELSINKI = Path(__file__).parents[3] / "shared" / "data" / "osm" / "helsinki-2019.osm.pbf"


def metres(lonlat):
    return _transform("EPSG:4326", "EPSG:32632", lonlat)


@pytest.mark.parametrize(
    ("text", "kmh"),
    [
        ("50", 50.0),
        ("30 mph", 30 * 1.609344),
        ("50 km/h", 50.0),
        ("walk", 6.0),
        ("none", 130.0),
        ("50;30", 30.0),
        ("60|80", 60.0),
        ("FR:urban", 50.0),
        ("DE:zone:30", 30.0),
        ("DE:zone30", 30.0),
        ("zone:20", 20.0),
        ("12,5", 12.5),
        ("signals", None),
        ("variable;80", 80.0),
        ("fast", None),
        ("-50", None),
        ("0", None),
        ("99999", None),
        ("", None),
        (None, None),
    ],
)
def test_speed_limits_as_mappers_write_them(text: str | None, kmh: float | None) -> None:
    assert parse_maxspeed(text) == (None if kmh is None else pytest.approx(kmh))


def test_speeds_by_mode() -> None:
    assert speed_kmh("walk", {"highway": "primary", "maxspeed": "50"})[0] / 3.6 == pytest.approx(1.35)
    assert speed_kmh("walk", {"highway": "steps"})[0] < 3.0
    assert speed_kmh("drive", {"highway": "primary", "maxspeed": "70"}) == (70.0, False)
    assert speed_kmh("drive", {"highway": "residential", "maxspeed": "?"}) == (30.0, True)


@pytest.mark.parametrize(
    ("tags", "walk", "drive"),
    [
        ({"highway": "residential"}, True, True),
        ({"highway": "footway"}, True, False),
        ({"highway": "motorway"}, False, True),
        ({"highway": "residential", "access": "private"}, False, False),
        ({"highway": "residential", "access": "no", "foot": "yes"}, True, False),
        ({"highway": "residential", "motor_vehicle": "no"}, True, False),
        ({"highway": "cycleway"}, False, False),
        ({"highway": "cycleway", "foot": "designated"}, True, False),
        ({"highway": "pedestrian", "area": "yes"}, False, False),
        ({"highway": "construction"}, False, False),
        ({"building": "yes"}, False, False),
    ],
)
def test_who_may_use_a_street(tags: dict[str, str], walk: bool, drive: bool) -> None:
    assert (street_usable("walk", tags), street_usable("drive", tags)) == (walk, drive)


def test_a_grid_has_its_nodes_and_lengths(town, tmp_path: Path) -> None:
    town.grid(4, 100.0)
    streets, report = build_streets(read_map(town.write(tmp_path / "a.osm")).ways, metres)
    for graph in streets.values():
        # 16 crossings less four corners, where two streets meet and none ends; 24 blocks of 100 m, both ways.
        assert graph.node_count == 12
        assert graph.edge_length.sum() == pytest.approx(2 * 24 * 100.0, rel=2e-3)
    assert report["drive"]["street_km"] == pytest.approx(2.4, rel=2e-3)
    assert report["drive"]["dropped_share"] == 0.0
    assert report["drive"]["speed_imputed_share"] == 1.0


def test_one_way_dead_ends_and_islands_are_dropped_and_counted(town, tmp_path: Path) -> None:
    cross = town.grid(3, 100.0)
    town.way([cross[2][2], town.node(300, 200)], highway="residential", oneway="yes")
    town.way([town.node(900, 0), town.node(1000, 0)], highway="residential")
    streets, report = build_streets(read_map(town.write(tmp_path / "a.osm")).ways, metres)
    assert report["drive"]["dropped_share"] == pytest.approx(200 / 1400, rel=1e-2)
    assert report["walk"]["dropped_share"] == pytest.approx(100 / 1400, rel=1e-2)
    assert streets["drive"].node_xy[:, 0].max() < streets["walk"].node_xy[:, 0].max()


@pytest.mark.parametrize(("oneway", "clockwise"), [("yes", False), ("-1", True)])
def test_one_way_rings_turn_as_signed(town, tmp_path: Path, oneway: str, clockwise: bool) -> None:
    ring = [town.node(*point) for point in ((0, 0), (100, 0), (100, 100), (0, 100))]
    town.way([*ring, ring[0]], highway="residential", oneway=oneway)
    for corner in ring:
        x, y, _ = town.nodes[corner]
        town.nodes[corner] = (x, y, {})
    town.way([ring[0], town.node(-50, 0)], highway="residential")
    town.way([ring[2], town.node(150, 100)], highway="residential")
    graph = build_streets(read_map(town.write(tmp_path / "a.osm")).ways, metres)[0]["drive"]
    curved = np.flatnonzero(np.diff(graph.geometry_offset) > 2)
    assert len(curved) == 2
    for edge in curved:
        shape = graph.geometry_xy[graph.geometry_offset[edge] : graph.geometry_offset[edge + 1]]
        one, two = np.diff(shape, axis=0)[:2]
        assert (one[0] * two[1] - one[1] * two[0] < 0) == clockwise


def test_speed_of_a_merged_street_keeps_its_travel_time(town, tmp_path: Path) -> None:
    # 300 m at 30 and 100 m at 60 km/h, one street without a junction: 42 s.
    a, b, c = town.node(0, 0), town.node(300, 0), town.node(400, 0)
    town.way([a, b], highway="residential", maxspeed="30")
    town.way([b, c], highway="residential", maxspeed="60")
    graph = build_streets(read_map(town.write(tmp_path / "a.osm")).ways, metres)[0]["drive"]
    assert graph.edge_count == 2
    np.testing.assert_allclose(graph.edge_time, 42.0, rtol=2e-3)


def test_streets_end_at_the_window(town, tmp_path: Path) -> None:
    town.grid(5, 100.0)
    ways = read_map(town.write(tmp_path / "a.osm")).ways
    east, north, _ = town.nodes[13]  # the middle crossing
    window = (8.999, 49.999, east + 1e-6, north + 1e-6)
    streets, _ = build_streets(ways, metres, window)
    assert streets["walk"].node_xy.max(axis=0) == pytest.approx(metres([town.nodes[13][:2]])[0], abs=0.2)


def test_settings_of_osmnx_are_put_back_even_after_an_error() -> None:
    before = osmnx.settings.useful_tags_way, osmnx.settings.requests_timeout
    with (
        pytest.raises(ZeroDivisionError),
        osmnx_settings(useful_tags_way=["x"], requests_timeout=1) as inside,
    ):
        1 // (inside.settings.requests_timeout - 1)
    assert (osmnx.settings.useful_tags_way, osmnx.settings.requests_timeout) == before


def test_references_to_absent_nodes_are_dropped_and_counted(town, tmp_path: Path) -> None:
    a, b, c = town.node(0, 0), town.node(100, 0), town.node(200, 0)
    town.way([a, 777_777, b, c], highway="residential")
    town.way([c, 888_888], highway="residential")
    data = read_map(town.write(tmp_path / "a.osm"))
    assert (data.references_dropped, data.ways_dropped) == (2, 1)
    assert [way.refs for way in data.ways] == [[a, b, c]]


def test_ways_of_which_only_the_name_is_used_do_not_count(town, tmp_path: Path) -> None:
    a, b = town.node(0, 0), town.node(100, 0)
    town.way([a, 777_777, b], highway="service", access="private", name="Allée Privée")
    town.way([b, 888_888], highway="service", access="private", name="Impasse Privée")
    data = read_map(town.write(tmp_path / "a.osm"))
    assert (data.references_dropped, data.ways_dropped) == (0, 0)
    assert [way.name for way in data.named] == ["Allée Privée"]
    assert data.ways == []


@pytest.mark.shared_data
def test_a_file_clipped_by_others_loads_with_its_gaps_counted() -> None:
    data = read_map(HELSINKI)
    assert data.references_dropped > 1000
    assert data.extract_date == "2019-04-21"
    streets, report = build_streets(data.ways, metres, data.bbox)
    assert report["walk"]["dropped_share"] < 0.1
    assert streets["walk"].node_count > 1000


def test_buildings_of_several_outlines_come_once_with_their_courtyard(town, tmp_path: Path) -> None:
    outer, inner = town.square(0, 0, 50, building="yes"), town.square(10, 10, 20)
    hut = town.square(12, 12, 5, building="hut")
    town.relations[1] = (
        [("w", outer, "outer"), ("w", inner, "inner")],
        {"type": "multipolygon", "building": "yes"},
    )
    data = read_map(town.write(tmp_path / "a.osm"))
    areas = sorted(polygon.area for polygon in data.buildings)
    assert len(areas) == 2
    assert areas[1] / areas[0] == pytest.approx((2500 - 400) / 25, rel=1e-2)
    assert {tags["building"] for tags in data.building_tags} == {"yes", "hut"}
    assert hut


def test_a_building_relation_with_a_gap_leaves_its_outline_and_is_counted(town, tmp_path: Path) -> None:
    outer = town.square(0, 0, 50, building="yes")
    town.relations[1] = (
        [("w", outer, "outer"), ("w", 999_999, "outer")],
        {"type": "multipolygon", "building": "yes"},
    )
    data = read_map(town.write(tmp_path / "a.osm"))
    assert len(data.buildings) == 1
    assert data.relations_dropped == 1


@pytest.mark.parametrize("name", ["x.osm", "x.osm.gz", "x.osm.bz2", "x.osm.pbf"])
def test_nonsense_is_no_map(tmp_path: Path, name: str, rng: np.random.Generator) -> None:
    path = tmp_path / name
    path.write_bytes(rng.bytes(5000))
    with pytest.raises(CityError, match="not a readable OpenStreetMap file") as caught:
        read_map(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"<html><body>Error 504</body></html>", b"<osm version='0.6'><node id='1' lat="]
)
def test_broken_xml_is_no_map(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.osm"
    path.write_bytes(content)
    with pytest.raises(CityError, match="not a readable OpenStreetMap file"):
        read_map(path)


def test_a_tag_too_long_for_any_map_is_refused_in_one_line(town, tmp_path: Path) -> None:
    town.grid(2, 100.0, name="A" * 5000)
    with pytest.raises(CityError, match="not a readable OpenStreetMap file") as caught:
        read_map(town.write(tmp_path / "a.osm"))
    assert "\n" not in str(caught.value)


def test_missing_and_foreign_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CityError, match=r"no file .*nowhere\.osm"):
        read_map(tmp_path / "nowhere.osm")
    (tmp_path / "a.shp").write_bytes(b"x")
    with pytest.raises(CityError, match=r"none of \.osm"):
        read_map(tmp_path / "a.shp")
