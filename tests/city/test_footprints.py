"""Buildings from a file of their own."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely
from shapely.affinity import translate
from typer.testing import CliRunner

from geoedge.city import BUILDING_KINDS, City, load_city
from geoedge.city.footprints import FOOTPRINT_SUFFIXES, check_footprints, footprints_checksum
from geoedge.cli import app
from geoedge.errors import CityError
from geoedge.scenario import load_scenario

CRS = "EPSG:32632"
CORNER = (500_000.0, 5_538_630.0)
"""South-west corner of the village in its own UTM zone [m]: 9° E, 50° N."""


def square(x: float, y: float, side: float = 30.0) -> shapely.Polygon:
    """Return a square with its lower left corner at x, y [m] from the village's own."""
    return translate(shapely.box(0, 0, side, side), CORNER[0] + x, CORNER[1] + y)


@pytest.fixture
def streets(village, tmp_path: Path, fresh_cache: Path) -> Path:
    """The village's map, with nine buildings of its own."""
    return village.write(tmp_path / "village.osm")


@pytest.fixture
def frame() -> geopandas.GeoDataFrame:
    """Five footprints among the streets; storeys as text, as a number, as a height, and twice not at all."""
    return geopandas.GeoDataFrame(
        {
            "building": ["office", "retail", "apartments", "garage", None],
            "Levels": [4.0, 2.0, np.nan, 0.0, np.nan],
            "height": [None, None, "16 m", None, None],
            "owner": ["=cmd()", "b", "c", "d", "e"],
        },
        geometry=[square(20 + 50 * k, 40) for k in range(5)],
        crs=CRS,
    )


def saved(frame: geopandas.GeoDataFrame, path: Path) -> Path:
    """Write footprints in the format of the file's name."""
    if path.suffix == ".zip":
        folder = path.parent / "parts"
        folder.mkdir()
        frame.to_file(folder / "b.shp")
        with zipfile.ZipFile(path, "w") as bundle:
            for part in sorted(folder.iterdir()):
                bundle.write(part, part.name)
    else:
        frame.to_file(path)
    return path


def kinds(city: City) -> list[str]:
    order = np.argsort(city.buildings.xy[:, 0])
    return [BUILDING_KINDS[kind] for kind in city.buildings.kind[order]]


@pytest.mark.parametrize("suffix", FOOTPRINT_SUFFIXES)
def test_footprints_of_every_format_take_the_place_of_the_maps_own(
    streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path, suffix: str
) -> None:
    city = load_city(streets, buildings=saved(frame, tmp_path / f"b{suffix}"))
    assert kinds(city) == ["office", "retail", "residential", "minor", "unspecified"]
    order = np.argsort(city.buildings.xy[:, 0])
    assert city.buildings.levels[order][:3].tolist() == [4.0, 2.0, 5.0]
    assert city.buildings.levels_imputed[order].tolist() == [False, False, False, True, True]
    # The village lies on the central meridian, where UTM shortens by 0.9996.
    np.testing.assert_allclose(city.buildings.footprint_m2, 900.0, rtol=1e-4)
    assert city.report["buildings"]["count"] == 5
    assert city.report["buildings_file"]["replaced"] == 9
    assert not any(city.report["buildings_file"]["dropped"].values())
    assert city.report["origin"] == f"OpenStreetMap file village.osm; buildings of b{suffix}"
    assert len(city.places) == 2


def test_the_land_follows_the_footprints(
    streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path
) -> None:
    own = load_city(streets)
    path = saved(frame, tmp_path / "b.gpkg")
    other = load_city(streets, buildings=path, boundary_buffer_m=20.0)
    assert other.area_km2 < own.area_km2
    assert other.contains([square(20, 40).centroid.coords[0]]).all()


def test_what_is_no_building_there_is_dropped_and_counted(streets: Path, tmp_path: Path) -> None:
    whole = square(20, 40)
    shapes = [
        whole,
        shapely.reverse(whole),  # twice, drawn the other way round
        square(120, 40),  # not a building
        square(5000, 40),  # touches the frame that the reader looks at, its centre is outside
        shapely.box(*square(260, 260).bounds[:2], CORNER[0] + 900, CORNER[1] + 290),
        shapely.Point(CORNER[0] + 50, CORNER[1] + 50),
        shapely.LineString([CORNER, (CORNER[0] + 100, CORNER[1] + 100)]),
        None,
        shapely.Polygon(),
        shapely.Polygon([(0, 0), (40, 40), (40, 0), (0, 40)]),  # a bow tie, made two triangles
    ]
    shapes[-1] = translate(shapes[-1], CORNER[0] + 200, CORNER[1] + 120)
    tags = ["yes", "yes", "no", *["yes"] * 7]
    frame = geopandas.GeoDataFrame({"building": tags}, geometry=shapes, crs=CRS)
    city = load_city(streets, buildings=saved(frame, tmp_path / "b.gpkg"))
    assert sorted(np.round(city.buildings.footprint_m2)) == [800.0, 900.0]
    file = city.report["buildings_file"]
    assert file["dropped"] == {"not an area": 2, "twice": 1, "outside": 1, "not a building": 1}
    assert file["rows"] == 7  # the reader passes over what is far away and what has no geometry


def test_courtyards_and_buildings_of_several_parts_stay_whole(streets: Path, tmp_path: Path) -> None:
    yard = square(20, 20, 60).difference(square(35, 35, 30))
    pair = shapely.MultiPolygon([square(120, 20, 10), square(140, 20, 10)])
    frame = geopandas.GeoDataFrame(geometry=[yard, pair], crs=CRS)
    city = load_city(streets, buildings=saved(frame, tmp_path / "b.gpkg"))
    np.testing.assert_allclose(sorted(city.buildings.footprint_m2), [200.0, 2700.0], rtol=1e-4)
    assert kinds(city) == ["unspecified", "unspecified"]


def test_a_box_cuts_them(streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path) -> None:
    path = saved(frame, tmp_path / "b.gpkg")
    city = load_city(streets, buildings=path, bbox=(8.999, 49.999, 9.00205, 50.00135))
    assert 0 < len(city.buildings) < 5
    assert city.report["buildings_file"]["dropped"]["outside"] <= 1


def test_another_file_is_another_city_and_the_same_one_is_kept(
    streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path, fresh_cache: Path
) -> None:
    path = saved(frame, tmp_path / "b.geojson")
    first = load_city(streets, buildings=path)
    stages: list[str] = []
    again = load_city(streets, buildings=path, progress=stages.append)
    assert not stages
    assert again.report == first.report
    saved(frame.iloc[:4], path)
    assert len(load_city(streets, buildings=path).buildings) == 4
    assert len(load_city(streets).buildings) == 9
    assert len(list(fresh_cache.glob("*.npz"))) == 3


def test_a_shapefile_is_all_its_parts(frame: geopandas.GeoDataFrame, tmp_path: Path) -> None:
    path = saved(frame, tmp_path / "b.shp")
    before = footprints_checksum(path)
    shape = path.read_bytes()
    saved(frame.assign(Levels=7.0), path)
    assert path.read_bytes() == shape
    assert footprints_checksum(path) != before


def test_a_file_without_crs_is_in_degrees_or_refused(
    streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path
) -> None:
    degrees = saved(frame.to_crs("EPSG:4326"), tmp_path / "degrees.shp")
    metres = saved(frame, tmp_path / "metres.shp")
    for path in (degrees, metres):
        path.with_suffix(".prj").unlink()
    assert len(load_city(streets, buildings=degrees).buildings) == 5
    with pytest.raises(
        CityError, match=r"states no CRS, and its coordinates, up to 5.\d+e\+06, are no degrees"
    ):
        load_city(streets, buildings=metres)


def refusal(streets: Path, path: Path) -> str:
    with pytest.raises(CityError) as caught:
        load_city(streets, buildings=path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_that_are_none_are_refused_in_one_line(
    streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path, fresh_cache: Path
) -> None:
    assert "no file" in refusal(streets, tmp_path / "gone.gpkg")
    assert "no file" in refusal(streets, tmp_path)
    assert "village.osm is none of .gpkg" in refusal(streets, streets)
    (tmp_path / "noise.gpkg").write_bytes(b"noise" * 1000)
    assert "noise.gpkg cannot be read" in refusal(streets, tmp_path / "noise.gpkg")
    far = saved(frame.translate(50_000).to_frame("geometry"), tmp_path / "far.gpkg")
    assert "far.gpkg has no building among the city's streets" in refusal(streets, far)
    points = saved(frame.set_geometry(frame.centroid), tmp_path / "points.gpkg")
    assert "has no layer of polygons" in refusal(streets, points)
    two = tmp_path / "two.gpkg"
    frame.to_file(two, layer="houses")
    frame.to_file(two, layer="sheds")
    assert "2 layers of them: houses, sheds" in refusal(streets, two)
    assert not list(fresh_cache.glob("*.npz"))


def test_check_names_what_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "b.parquet").write_bytes(b"")
    with pytest.raises(CityError, match=r"none of \.gpkg, \.geojson, \.json, \.shp, \.zip"):
        check_footprints(tmp_path / "b.parquet")


def test_a_scenario_names_them_beside_itself(
    streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path
) -> None:
    saved(frame, tmp_path / "b.gpkg")
    text = load_scenario("monaco").override({"city.source": "village.osm", "city.buildings": "b.gpkg"})
    (tmp_path / "village.toml").write_text(text.to_toml(), encoding="utf-8")
    scenario = load_scenario(tmp_path / "village.toml")
    assert scenario.city is not None
    assert scenario.city.buildings == str(tmp_path / "b.gpkg")
    city = load_city(scenario.city)
    assert len(city.buildings) == 5
    assert city.report["buildings_checksum"] == footprints_checksum(tmp_path / "b.gpkg")


def test_city_info_takes_them(streets: Path, frame: geopandas.GeoDataFrame, tmp_path: Path) -> None:
    path = saved(frame, tmp_path / "b.gpkg")
    done = CliRunner().invoke(app, ["city", "info", str(streets), "--buildings", str(path), "--json"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert report["buildings"]["count"] == 5
    assert report["buildings_file"]["name"] == "b.gpkg"
