"""Real sites: hosts of a city, files of one's own, and everything wrong with them."""

from __future__ import annotations

import json
from types import SimpleNamespace

import geopandas
import numpy as np
import pytest
import shapely

from geoedge.city import City, PlaceTable
from geoedge.city.city import BuildingTable
from geoedge.errors import CityError
from geoedge.sites import HOST_KINDS, host_layout, make_layout, merge_nearby, read_sites

CENTRE = np.array([373_000.0, 4_844_000.0])  # Monaco, UTM 32N


def at(x: float, y: float) -> np.ndarray:
    return np.add(CENTRE, (x, y))


def city(places: list[tuple[float, float, str, str]] = ()) -> City:
    xy = np.array([at(x, y) for x, y, _, _ in places]).reshape(-1, 2)
    table = PlaceTable(
        xy,
        np.array([kind for *_, kind, _ in places], dtype=object),
        np.array([name for *_, name in places], dtype=object),
    )
    nothing = np.empty(0)
    buildings = BuildingTable(np.empty((0, 2)), nothing, nothing, nothing.astype(int), nothing.astype(bool))
    land = shapely.Point(*CENTRE).buffer(2000.0)
    return City("testville", "EPSG:32632", "", "", "2020-01-01", land, {}, buildings, table)


def lonlat(x: float, y: float) -> tuple[float, float]:
    lon, lat = city().to_lonlat([at(x, y)])[0]
    return float(lon), float(lat)


HOSTS = [
    (0.0, 0.0, "amenity=police", ""),
    (30.0, 0.0, "amenity=townhall", "Mairie"),
    (500.0, 0.0, "amenity=fuel", "<b>Total</b>"),
    (520.0, 10.0, "man_made=mast", ""),
    (900.0, 900.0, "shop=bakery", "Pain"),
    (9000.0, 0.0, "amenity=hospital", "far away"),
]


def test_hosts_are_merged_and_named_by_the_likeliest():
    sites = host_layout(city(HOSTS))
    assert len(sites) == 2
    found = dict(zip(sites.kind, sites.name, strict=True))
    assert found["man_made=mast"] == "<b>Total</b>"  # the mast has no name of its own
    assert "amenity=police" in found
    middle = sites.xy[sites.kind.index("amenity=police")] - CENTRE
    np.testing.assert_allclose(middle, [15.0, 0.0], atol=1e-6)
    assert "not an operator's network" in sites.label
    assert sites.report["objects"] == 5
    assert sites.report["merged"] == 2
    assert sites.report["dropped"] == {"outside": 1}


def test_a_city_without_hosts_says_what_to_do():
    with pytest.raises(CityError, match=r'none of the 18 kinds.*set `sites.source` to "poisson"') as caught:
        host_layout(city(HOSTS[4:]))
    assert "\n" not in str(caught.value)


def test_merging_chains_and_keeps_order():
    xy = np.array([[0, 0], [500, 0], [40, 0], [80, 0], [500, 0]], dtype=float)
    assert merge_nearby(xy, 50.0).tolist() == [0, 1, 0, 0, 1]
    assert merge_nearby(xy, 0.0).tolist() == [0, 1, 2, 3, 1]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [("lon,lat", ","), ("Longitude;Latitude", ";"), ("lng\tlat", "\t"), (" x , y ", ","), ("lat,lon", ",")],
)
def test_csv_columns_are_guessed(tmp_path, header, delimiter):
    rows = [lonlat(100, 100), lonlat(-300, 50)]
    swapped = header.startswith("lat")
    body = [delimiter.join(map(str, row[::-1] if swapped else row)) for row in rows]
    sites = read_sites(write(tmp_path / "s.csv", "\n".join([header, *body])), city())
    np.testing.assert_allclose(sites.xy - CENTRE, [[100, 100], [-300, 50]], atol=1e-3)


def test_csv_with_decimal_commas_and_a_byte_order_mark(tmp_path):
    lon, lat = (str(v).replace(".", ",") for v in lonlat(100, 100))
    path = tmp_path / "s.csv"
    path.write_bytes(f"\ufeffname;lon;lat\r\nHôtel;{lon};{lat}\r\n\r\n".encode())
    sites = read_sites(path, city())
    assert sites.name == ("Hôtel",)
    np.testing.assert_allclose(sites.xy - CENTRE, [[100, 100]], atol=1e-3)


def test_bad_rows_are_counted_not_used(tmp_path):
    lon, lat = lonlat(10, 10)
    rows = [
        f"{lon},{lat}",
        f"{lat},{lon}",  # swapped
        "nan,43.7",
        ",",
        "here,there",
        "500,43.7",  # no longitude
        "2.35,48.85",  # Paris
        "inf,43",
        "7.4",  # short row
    ]
    sites = read_sites(write(tmp_path / "s.csv", "\n".join(["lon,lat", *rows])), city())
    assert len(sites) == 1
    dropped = sites.report["dropped"]
    assert dropped == {"missing": 4, "out_of_range": 1, "swapped": 1, "outside": 1}
    assert sites.report["rows"] == 8  # a row of nothing but commas is no row
    assert sites.report["dropped_rows"]["swapped"] == [2]


def test_a_file_far_away_is_one_clear_line(tmp_path):
    path = write(tmp_path / "paris.csv", "lon,lat\n2.35,48.85\n2.36,48.86")
    with pytest.raises(
        CityError, match="no site inside testville: of 2 rows 2 outside; check lon/lat"
    ) as caught:
        read_sites(path, city())
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("s.csv", "a,b\n1,2", "needs a header with longitude"),
        ("s.csv", "", "is empty"),
        ("s.csv", "\n \n", "is empty"),
        (
            "s.csv",
            "\x89PNG\x00\x01",
            "no file of sites that is known; sites come as CSV, GeoJSON, GeoPackage",
        ),
        ("s.csv", "<html>", "no file of sites that is known"),
        ("s.txt", "lon,lat", "no site inside"),
        ("s.geojson", "{nonsense", "cannot be read as geojson"),
        ("s.csv", "lon,lat", "no site inside"),
    ],
)
def test_unreadable_files_are_one_clear_line(tmp_path, name, text, words):
    with pytest.raises(CityError, match=words) as caught:
        read_sites(write(tmp_path / name, text), city())
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_one_clear_line(tmp_path):
    with pytest.raises(CityError, match="no file"):
        read_sites(tmp_path / "none.csv", city())


@pytest.mark.parametrize("suffix", ["geojson", "gpkg"])
def test_any_geometry_in_any_crs(tmp_path, suffix):
    shapes = [
        shapely.Point(*at(100, 0)),
        shapely.Point(*at(-400, 0)).buffer(50.0),
        shapely.LineString([at(0, 500), at(0, 700)]),
        None,
    ]
    frame = geopandas.GeoDataFrame({"name": ["a", "b", "c", "d"]}, geometry=shapes, crs="EPSG:32632")
    path = tmp_path / f"s.{suffix}"
    frame.to_crs("EPSG:4326" if suffix == "geojson" else "EPSG:3857").to_file(path)
    sites = read_sites(path, city())
    assert sites.name == ("a", "b", "c")
    np.testing.assert_allclose(sites.xy[0] - CENTRE, [100, 0], atol=0.1)
    np.testing.assert_allclose(sites.xy[1] - CENTRE, [-400, 0], atol=60)
    assert sites.report["dropped"]["missing"] == 1
    assert sites.report["notes"][0].startswith("2 rows are lines, areas or several points, not one; each")


def test_no_crs_is_taken_for_degrees_and_said(tmp_path):
    for name, place in (("degrees", lonlat(100, 0)), ("metres", at(100, 0))):
        frame = geopandas.GeoDataFrame({"name": ["a"]}, geometry=[shapely.Point(*place)])
        with pytest.warns(UserWarning, match="'crs' was not provided"):
            frame.to_file(tmp_path / f"{name}.gpkg")
    sites = read_sites(tmp_path / "degrees.gpkg", city())
    np.testing.assert_allclose(sites.xy[0] - CENTRE, [100, 0], atol=0.1)
    assert sites.report["notes"] == ["the file states no CRS; WGS 84 degrees assumed"]
    with pytest.raises(CityError, match=r"1 projected; check lon/lat; the file states no CRS; WGS 84"):
        read_sites(tmp_path / "metres.gpkg", city())


def test_what_is_wrong_with_geometry_is_said_and_what_is_harmless_is_not(tmp_path):
    (a, b), (c, d) = lonlat(0, 0), lonlat(100, 100)
    shapes = [
        {"type": "Polygon", "coordinates": [[[a, b], [c, d], [c, b], [a, d], [a, b]]]},
        {"type": "Point", "coordinates": [a, b, 1, 2]},
        {"type": "Nonsense"},
    ]
    rows = [{"type": "Feature", "id": 1, "properties": {}, "geometry": shape} for shape in shapes]
    text = json.dumps({"type": "FeatureCollection", "features": rows})
    sites = read_sites(write(tmp_path / "s.geojson", text), city())
    assert len(sites) == 2
    assert sites.report["dropped"]["missing"] == 1
    assert sites.report["notes"] == [
        "Unsupported geometry type detected. Feature gets NULL geometry assigned.",
        "1 row is a line, an area or several points, not one; each counts as one site at a point on it",
        "geometry not valid in rows: 1; check where these sites are",
    ]


def test_a_crs_without_a_place_on_earth_is_one_clear_line(tmp_path):
    crs = 'ENGCRS["shop floor",EDATUM["y"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],LENGTHUNIT["metre",1]]'
    path = tmp_path / "s.gpkg"
    geopandas.GeoDataFrame(geometry=[shapely.Point(1, 2)], crs=crs).to_file(path)
    with pytest.raises(CityError, match="cannot be turned into degrees; save the file in WGS 84") as caught:
        read_sites(path, city())
    assert "\n" not in str(caught.value)


def test_stated_profiles_are_kept_and_such_sites_not_merged(tmp_path):
    lines = ["lon,lat,profile"] + [
        f"{x},{y},{p}" for (x, y), p in zip([lonlat(0, 0), lonlat(5, 0)], "01", strict=True)
    ]
    path = write(tmp_path / "s.csv", "\n".join(lines))
    assert read_sites(path, city(), merge_distance_m=50.0).profile.tolist() == [0, 1]
    named = write(tmp_path / "n.csv", "\n".join(lines).replace(",0\n", ",none\n").replace(",1", ",deep"))
    sites = read_sites(named, city(), profile_names=("none", "deep"))
    assert sites.profile.tolist() == [0, 1]
    with pytest.raises(CityError, match="profile 'deep' is unknown; allowed: none, shallow"):
        read_sites(named, city(), profile_names=("none", "shallow"))


def config(source: str, density: float | None = None) -> SimpleNamespace:
    return SimpleNamespace(
        source=source,
        merge_distance_m=50.0,
        density_per_km2=density,
        placement=None,
        process=None,
        operator=None,
        radio=None,
        columns=None,
        crs=None,
    )


def test_make_layout_takes_what_the_scenario_says(tmp_path):
    share = (0.5, 0.5)
    hosts = make_layout(city(HOSTS), config("hosts"), share, 7)
    assert sorted(hosts.profile.tolist()) == [0, 1]
    random = make_layout(city(), config("poisson", 5.0), share, 7)
    assert random.label == "Poisson"
    assert random.crs == "EPSG:32632"
    assert city().contains(random.xy).all()
    path = write(
        tmp_path / "s.csv", "lon,lat\n" + "\n".join(f"{a},{b}" for a, b in [lonlat(0, 0), lonlat(9, 9)])
    )
    assert len(make_layout(city(), config(str(path)), share, 7)) == 1
    with pytest.raises(CityError, match=r"`sites.density_per_km2` must be given"):
        make_layout(city(), config("poisson"), share, 7)


def test_without_probabilities_profiles_are_not_placed_and_the_report_says_so(tmp_path):
    for sites in (config("hosts"), config("poisson", 5.0)):
        found = make_layout(city(HOSTS), sites, rng=7)
        assert found.profile.max() == 0
        assert found.report["profiles_placed"] is False
        placed = make_layout(city(HOSTS), sites, (1.0,), rng=7)
        assert placed.report["profiles_placed"] is True
        np.testing.assert_array_equal(found.xy, placed.xy)
        assert found.with_profile(np.ones(len(found))).report["profiles_placed"] is True
        assert found.report["profiles_placed"] is False
    lon, lat = lonlat(0, 0)
    stated = write(tmp_path / "s.csv", f"lon,lat,profile\n{lon},{lat},1")
    found = make_layout(city(), config(str(stated)), rng=7)
    assert found.report["profiles_placed"] is True
    assert found.profile.tolist() == [1]


@pytest.mark.parametrize(("name", "low", "high"), [("monaco", 40, 55), ("neubrandenburg", 20, 35)])
def test_the_shipped_cities_have_hosts(name, low, high):
    from geoedge.city import load_city

    sites = host_layout(load_city(name))
    assert low <= len(sites) <= high
    assert set(sites.kind) <= set(HOST_KINDS)
