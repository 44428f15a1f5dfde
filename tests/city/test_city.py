"""Cities: land, buildings, places, and the shipped ones."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import shapely

from geoedge.city import (
    ATTRIBUTION,
    BUILDING_KINDS,
    BuildingTable,
    City,
    PlaceTable,
    load_city,
    shipped_cities,
)
from geoedge.city.boundary import inhabited_land, sea
from geoedge.city.buildings import (
    building_kind,
    building_table,
    enrich,
    impute_levels,
    match_footprints,
    tagged_levels,
)
from geoedge.city.cache import city_to_bytes
from geoedge.city.places import merge_places, place_kind
from geoedge.errors import CityError
from geoedge.shipped import data_path

WINDOW = shapely.box(0, 0, 1000, 1000)


# Sea and land


def coast(*points: tuple[float, float]) -> np.ndarray:
    return np.array(points, dtype=float)


def test_without_a_coastline_there_is_no_sea() -> None:
    assert sea([], WINDOW).is_empty
    assert sea([coast((-500, -500), (-400, -400))], WINDOW).is_empty


@pytest.mark.parametrize("reverse", [False, True])
def test_the_sea_lies_right_of_the_coast(reverse: bool) -> None:
    line = coast((-50, 300), (500, 300), (1050, 300))  # eastwards: land north, sea south
    water = sea([line[::-1] if reverse else line], WINDOW)
    assert water.area == pytest.approx(700_000 if reverse else 300_000)
    assert water.contains(shapely.Point(500, 900 if reverse else 100))


def test_an_island_and_a_lagoon() -> None:
    ring = coast((400, 400), (600, 400), (600, 600), (400, 600), (400, 400))  # anticlockwise: land inside
    assert sea([ring], WINDOW).area == pytest.approx(1_000_000 - 40_000)
    assert sea([ring[::-1]], WINDOW).area == pytest.approx(40_000)


def test_a_coast_in_pieces_in_any_order_is_one_coast() -> None:
    x = np.linspace(-50, 1050, 12)
    y = 300 + 50 * np.sin(x / 60)
    pieces = [coast((x[i], y[i]), (x[i + 1], y[i + 1])) for i in range(11)]
    whole = sea([np.column_stack([x, y])], WINDOW)
    assert sea(pieces[::-1], WINDOW).equals_exact(whole, 1e-6) or sea(
        pieces[::-1], WINDOW
    ).symmetric_difference(whole).area == pytest.approx(0.0, abs=1e-3)


def test_a_coast_that_ends_inside_is_prolonged_to_the_nearest_edge() -> None:
    water = sea([coast((-50, 300), (900, 300))], WINDOW)
    assert water.area == pytest.approx(300_000)


def test_land_around_one_street_is_a_stadium() -> None:
    street = np.array([shapely.LineString([(0, 0), (400, 0)])])
    none = np.array([], dtype=object)
    land, areas = inhabited_land(street, none, shapely.Polygon(), None, 100.0)
    # The arcs are polygons of few corners, and vertices move by up to 2 m.
    for metres, area in areas.items():
        radius = float(metres)
        assert area * 1e6 == pytest.approx(2 * radius * 400 + math.pi * radius**2, rel=0.03)
    assert land.area / 1e6 == pytest.approx(areas["100"], abs=1e-4)


def test_land_ends_at_the_sea_and_at_the_window() -> None:
    street = np.array([shapely.LineString([(-500, 500), (1500, 500)])])
    none = np.array([], dtype=object)
    land, _ = inhabited_land(street, none, shapely.box(0, 0, 1000, 470), WINDOW, 100.0)
    assert land.area == pytest.approx(1000 * 130, rel=0.02)
    assert not land.intersects(shapely.box(10, 10, 990, 460))


def test_gaps_between_neighbours_are_closed() -> None:
    pair = np.array([shapely.box(0, 0, 10, 10), shapely.box(350, 0, 360, 10)])
    none = np.array([], dtype=object)
    near, _ = inhabited_land(none, pair, shapely.Polygon(), None, 100.0)
    far, _ = inhabited_land(none, pair, shapely.Polygon(), None, 50.0)
    assert near.geom_type == "Polygon"
    assert far.geom_type == "MultiPolygon"


# Buildings


@pytest.mark.parametrize(
    ("tags", "levels"),
    [
        ({"building:levels": "5"}, 5.0),
        ({"building:levels": "5.5"}, 5.5),
        ({"building:levels": "3;4"}, 3.0),
        ({"building:levels": "0"}, math.nan),
        ({"building:levels": "many", "height": "16 m"}, 5.0),
        ({"height": "2"}, 1.0),
        ({"height": "9,6"}, 3.0),
        ({"building:levels": "4000"}, math.nan),
        ({"building": "yes"}, math.nan),
    ],
)
def test_levels_as_mappers_write_them(tags: dict[str, str], levels: float) -> None:
    assert tagged_levels(tags) == pytest.approx(levels, nan_ok=True)


@pytest.mark.parametrize(
    ("tags", "kind"),
    [
        ({"building": "yes"}, "unspecified"),
        ({"building": "apartments", "shop": "bakery"}, "residential"),
        ({"building": "yes", "office": "company"}, "office"),
        ({"building": "yes", "shop": "mall"}, "retail"),
        ({"building": "yes", "amenity": "school"}, "public"),
        ({"building": "yes", "tourism": "hotel"}, "hotel"),
        ({"building": "garages"}, "minor"),
        ({"building": "spaceship"}, "unspecified"),
    ],
)
def test_uses_of_buildings(tags: dict[str, str], kind: str) -> None:
    assert BUILDING_KINDS[building_kind(tags)] == kind


def row_of(
    levels: list[float], side: float = 15.0, step: float = 40.0, kind: str = "unspecified"
) -> BuildingTable:
    """Return square buildings in a row."""
    count = len(levels)
    xy = np.column_stack([step * np.arange(count), np.zeros(count)])
    kinds = np.full(count, BUILDING_KINDS.index(kind))
    values = np.array(levels, dtype=float)
    return BuildingTable(xy, np.full(count, side**2), values, kinds, np.isnan(values))


def test_unknown_levels_are_the_median_of_near_buildings_of_like_size() -> None:
    table, report = impute_levels(row_of([7, 7, math.nan, 7, 9, 3]))
    assert table.levels.tolist() == [7, 7, 7, 7, 9, 3]
    assert table.levels_imputed.tolist() == [False, False, True, False, False, False]
    assert table.levels_source.tolist() == [0, 0, 2, 0, 0, 0]
    assert report["neighbours_share"] == 1.0
    # Each known one guessed from the other four: medians 7, 7, 7, 7, 7, so that only 9 and 3 are missed.
    assert report["mean_abs_error"] == pytest.approx((2 + 4) / 5)


def test_far_buildings_and_other_sizes_tell_nothing() -> None:
    far, report = impute_levels(row_of([9, 9, 9, math.nan], step=400.0))
    assert far.levels[3] == 3.0  # typical for 225 m²
    assert report["neighbours_share"] == 0.0
    assert report["mean_abs_error"] is None
    table = row_of([9, 9, 9, math.nan])
    table.footprint_m2[3] = 20.0
    assert impute_levels(table)[0].levels[3] == 1.0


def test_garages_have_one_storey_whatever_stands_beside_them() -> None:
    table = row_of([9, 9, 9, math.nan])
    table.kind[3] = BUILDING_KINDS.index("minor")
    assert impute_levels(table)[0].levels[3] == 1.0


def test_a_newer_map_gives_levels_and_uses_where_footprints_match() -> None:
    old = np.array([shapely.box(0, 0, 10, 10), shapely.box(50, 0, 60, 10), shapely.box(99, 0, 120, 10)])
    new = np.array([shapely.box(1, 0, 11, 10), shapely.box(56, 0, 66, 10), shapely.box(95, 0, 130, 10)])
    match = match_footprints(old, new)
    assert match.tolist() == [0, -1, 2]
    base = building_table(
        old, [{"building": "yes"}, {"building": "yes"}, {"building": "yes", "building:levels": "2"}]
    )
    newer = building_table(new, [{"building": "apartments", "building:levels": "8"}] * 3)
    table = enrich(base, match, newer)
    np.testing.assert_array_equal(table.levels, [8, math.nan, 2])
    assert table.levels_source.tolist() == [1, 2, 0]
    assert [BUILDING_KINDS[kind] for kind in table.kind] == ["residential", "unspecified", "residential"]


def test_matching_with_nothing_is_no_match() -> None:
    none = np.array([], dtype=object)
    assert match_footprints(none, none).shape == (0,)
    assert match_footprints(np.array([WINDOW]), none).tolist() == [-1]


# Places


@pytest.mark.parametrize(
    ("tags", "kind"),
    [
        ({"amenity": "post_office", "shop": "kiosk"}, "amenity=post_office"),
        ({"amenity": "bench"}, None),
        ({"amenity": "parking", "shop": "car"}, "shop=car"),
        ({"shop": "vacant"}, None),
        ({"office": "company"}, "office=company"),
        ({"man_made": "mast"}, "man_made=mast"),
        ({"man_made": "tower"}, None),
        ({"man_made": "tower", "tower:type": "communication"}, "man_made=communications_tower"),
        ({"man_made": "tower", "tower:type": "cooling"}, None),
        ({"building": "yes", "telecom": "exchange"}, "telecom=exchange"),
        ({"highway": "residential"}, None),
    ],
)
def test_what_is_a_place(tags: dict[str, str], kind: str | None) -> None:
    assert place_kind(tags) == kind


def places(*rows: tuple[float, str, str]) -> PlaceTable:
    xy = np.array([(x, 0.0) for x, _, _ in rows]).reshape(-1, 2)
    return PlaceTable(
        xy, np.array([r[1] for r in rows], dtype=object), np.array([r[2] for r in rows], dtype=object)
    )


def test_places_of_both_maps_come_once() -> None:
    old = places((0, "shop=bakery", "A"), (200, "amenity=cafe", "B"), (500, "amenity=bank", ""))
    new = places(
        (30, "shop=bakery", "A renamed"),  # one kind, near
        (280, "amenity=bar", "B"),  # one name, near
        (580, "amenity=bank", ""),  # one kind, too far
        (40, "shop=bakery", "second"),  # the first bakery is taken
    )
    merged, both = merge_places(old, new)
    assert both == 2
    assert merged.name.tolist() == ["A", "B", "", "", "second"]


def test_merging_with_an_empty_map() -> None:
    some, none = places((0, "shop=x", "")), places()
    assert merge_places(some, none) == (some, 0)
    assert merge_places(none, some) == (some, 0)


def test_choosing_places_and_buildings_by_kind() -> None:
    table = places((0, "shop=bakery", ""), (1, "amenity=cafe", ""), (2, "shop=car", ""))
    assert table.is_kind("shop=", "amenity=bank").tolist() == [True, False, True]
    assert table.is_kind("amenity=cafe").tolist() == [False, True, False]
    with pytest.raises(CityError, match="building kinds are"):
        row_of([1.0]).is_kind("castle")


# Whole cities


def test_a_village_is_what_was_built(village, tmp_path: Path, fresh_cache: Path) -> None:
    city = load_city(village.write(tmp_path / "village.osm"))
    assert (city.name, city.crs, city.extract_date) == ("village", "EPSG:32632", "2020-05-01")
    assert city.checksum == hashlib.sha256((tmp_path / "village.osm").read_bytes()).hexdigest()
    assert city.attribution == ATTRIBUTION
    assert len(city.buildings) == 9
    np.testing.assert_allclose(city.buildings.footprint_m2, 900.0, rtol=2e-3)
    assert city.buildings.is_kind("residential").sum() == 3
    assert city.report["buildings"]["levels_imputed_share"] == 1.0
    assert city.places.kind.tolist() == ["shop=bakery", "amenity=post_office"]
    # A square of 300 m, 100 m around it, with round corners.
    assert city.area_km2 * 1e6 == pytest.approx(500**2 - (4 - math.pi) * 100**2, rel=0.02)
    assert city.contains([city.places.xy[0], (0.0, 0.0)]).tolist() == [True, False]


def test_hostile_names_stay_text(town, tmp_path: Path, fresh_cache: Path) -> None:
    town.grid()
    names = [
        "<script>alert(1)</script>",
        "'; DROP TABLE sites; --",
        "=1+1",
        "../../etc",
        "\u202eemag",
        "{0.__class__}",
        "x" * 255,
    ]
    for index, name in enumerate(names):
        town.node(10 * index, 5, shop="yes", name=name)
    path = town.write(tmp_path / "a.osm.pbf")
    for city in (load_city(path), load_city(path)):  # compiled, then from the cache
        assert sorted(city.places.name.tolist()) == sorted(names)


@pytest.mark.parametrize("suffix", ["osm.gz", "osm.bz2", "osm.pbf"])
def test_every_format_gives_the_same_city(village, tmp_path: Path, suffix: str) -> None:
    plain = load_city(village.write(tmp_path / "a.osm"), cache=False)
    other = load_city(village.write(tmp_path / f"a.{suffix}"), cache=False)
    assert other.report["origin"] == f"OpenStreetMap file a.{suffix}"
    other = replace(other, checksum=plain.checksum, report={**other.report, "origin": plain.report["origin"]})
    assert city_to_bytes(other) == city_to_bytes(plain)


def test_a_newer_file_enriches_a_city(village, tmp_path: Path, fresh_cache: Path) -> None:
    old = village.write(tmp_path / "old.osm")
    for number, (refs, tags) in list(village.ways.items()):
        if "building" in tags:
            village.ways[number] = (refs, {"building": "yes", "building:levels": "4"})
    village.node(250, 250, shop="books", name="Neu")
    city = load_city(old, enrichment=village.write(tmp_path / "new.osm"))
    assert city.buildings.levels.tolist() == [4.0] * 9
    assert city.report["buildings"]["levels_share"] == {"tagged": 0.0, "enriched": 1.0, "imputed": 0.0}
    assert city.report["places"] == {"count": 3, "added": 1, "in_both": 2}
    assert (
        city.report["enrichment_checksum"] == hashlib.sha256((tmp_path / "new.osm").read_bytes()).hexdigest()
    )


def test_only_the_part_inside_a_box(village, tmp_path: Path, fresh_cache: Path) -> None:
    whole = load_city(village.write(tmp_path / "a.osm"))
    part = load_city(tmp_path / "a.osm", bbox=(8.999, 49.999, 9.00205, 50.00135))
    assert len(part.buildings) == 4
    assert 0.0 < part.area_km2 < whole.area_km2
    west, south, east, north = part.bounds_lonlat
    assert west >= 8.999 - 1e-5
    assert east <= 9.00205 + 1e-5
    assert south >= 49.999 - 1e-5
    assert north <= 50.00135 + 1e-5


@dataclass(frozen=True)
class Table:
    """As the `city` table of a scenario."""

    source: str
    bbox: tuple[float, ...] | None = None
    boundary_buffer_m: float = 100.0


def test_the_table_of_a_scenario_is_a_source(village, tmp_path: Path, fresh_cache: Path) -> None:
    path = str(village.write(tmp_path / "a.osm"))
    narrow = load_city(Table(path, boundary_buffer_m=50.0))
    assert narrow.area_km2 < load_city(Table(path)).area_km2
    assert load_city(Table(path, bbox=(8.999, 49.999, 9.00205, 50.00135))).report["bbox"]


def test_files_without_streets_and_empty_boxes(town, village, tmp_path: Path, fresh_cache: Path) -> None:
    town.square(0, 0, 10, building="yes")
    with pytest.raises(CityError, match="no streets"):
        load_city(town.write(tmp_path / "bare.osm"))
    with pytest.raises(CityError, match="no walk street inside bbox 1,1,2,2"):
        load_city(village.write(tmp_path / "a.osm"), bbox=(1, 1, 2, 2))
    with pytest.raises(CityError, match="west must be below east"):
        load_city(tmp_path / "a.osm", bbox=(2, 1, 1, 2))
    assert not list(fresh_cache.glob("*"))


def test_a_park_without_drives_is_refused(town, tmp_path: Path, fresh_cache: Path) -> None:
    town.grid(3, highway="footway")
    with pytest.raises(CityError, match="no drive street"):
        load_city(town.write(tmp_path / "a.osm"))


@pytest.mark.parametrize("buffer", [0.0, -5.0, 1e9, math.nan])
def test_buffers_that_are_none(buffer: float) -> None:
    with pytest.raises(CityError, match="`boundary_buffer_m`"):
        load_city("monaco", boundary_buffer_m=buffer)


def test_missing_files_and_empty_sources(tmp_path: Path) -> None:
    for source in (tmp_path / "gone", str(tmp_path / "gone.osm.pbf"), tmp_path):
        with pytest.raises(CityError, match="no file"):
            load_city(source)
    with pytest.raises(CityError, match="`source` is empty"):
        load_city("  ")


# Shipped cities


def test_shipped_cities_are_whole(shipped: City) -> None:
    report = shipped.report
    assert shipped.boundary.is_valid
    areas = list(report["area_km2_by_buffer_m"].values())
    assert areas == sorted(areas)
    assert shipped.area_km2 == pytest.approx(report["area_km2_by_buffer_m"]["100"], abs=1e-3)
    assert 12.0 < shipped.area_km2 < 30.0
    assert len(shipped.buildings) > 5000
    assert len(shipped.places) > 400
    assert np.isfinite(shipped.buildings.levels).all()
    assert shipped.buildings.levels.min() >= 1.0
    assert report["references_dropped"] == 0
    assert report["streets"]["walk"]["dropped_share"] < 0.03
    assert report["streets"]["drive"]["dropped_share"] < 0.12
    assert shipped.contains(shipped.buildings.xy).mean() > 0.995
    assert shipped.contains(shipped.streets["walk"].node_xy).mean() > 0.98


def test_positions_survive_the_way_to_degrees_and_back(shipped: City, rng: np.random.Generator) -> None:
    xy = rng.uniform(shipped.boundary.bounds[:2], shipped.boundary.bounds[2:], (100, 2))
    np.testing.assert_allclose(shipped.from_lonlat(shipped.to_lonlat(xy)), xy, atol=1e-3)


def test_monaco_has_its_land_and_sea() -> None:
    city = load_city("Monaco")
    land = {"casino": (7.4276, 43.7395), "palace": (7.4203, 43.7312), "stadium": (7.4155, 43.7276)}
    water = {"offshore": (7.4450, 43.7250), "harbour": (7.4260, 43.7350)}
    assert city.contains(city.from_lonlat(list(land.values()))).all()
    assert not city.contains(city.from_lonlat(list(water.values()))).any()
    share = city.report["buildings"]["levels_share"]
    assert share["enriched"] > 0.03
    assert sum(share.values()) == pytest.approx(1.0, abs=1e-5)


def test_shipped_files_are_small_and_their_checksums_are_in_the_readme() -> None:
    readme = data_path("README.md").read_text(encoding="utf-8")
    assert ATTRIBUTION in readme
    for entry in shipped_cities().values():
        for key in {"file", "enrichment"} & set(entry):
            data = data_path("osm", entry[key]).read_bytes()
            assert len(data) < 1_000_000
            assert hashlib.sha256(data).hexdigest() in readme


def test_missing_shipped_files_are_named() -> None:
    with pytest.raises(ValueError, match=r"no osm/atlantis\.osm\.pbf; there are cities\.toml"):
        data_path("osm", "atlantis.osm.pbf")
