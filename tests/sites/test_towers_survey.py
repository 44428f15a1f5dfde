"""A file of sites surveyed: real files, layouts whose kind is known, and files too small to say anything."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from geoedge.errors import CityError
from geoedge.sites import draw_layout, read_sites, survey_sites
from tests.sites.site_files import CENTRE, DATA, city, lonlat, write


def table(tmp_path, xy):
    rows = [f"{lon:.8f},{lat:.8f}" for lon, lat in city().to_lonlat(xy)]
    return write(tmp_path / "s.csv", ["lon,lat", *rows])


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "sites", "format"),
    [
        ("luxembourg-lte", 38, "table"),
        ("melbourne-cbd-optus", 125, "ACMA list of sites"),
        ("melbourne-metro-optus", 1464, "table"),
    ],
)
def test_real_files_are_read_whole(name, sites, format):
    found = survey_sites(DATA / f"{name}.csv", merge_distance_m=0.0)
    report = found.report
    assert (len(found.layout), report["rows"], report["kept"]) == (sites, sites, sites)
    assert report["format"] == format
    assert report["problems"] == []
    assert found.statistics is not None
    assert found.statistics.sites == sites
    lon, lat = found.lonlat.T
    assert found.layout.crs == ("EPSG:32632" if name.startswith("lux") else "EPSG:32755")
    assert (np.abs(lat) < 60).all()
    assert np.ptp(lon) < 3


@pytest.mark.shared_data
def test_merging_what_stands_close_is_said_to_make_regular():
    path = DATA / "melbourne-cbd-optus.csv"
    apart, merged = (survey_sites(path, merge_distance_m=distance) for distance in (0.0, 50.0))
    assert apart.statistics.clark_evans.z < -2 < 2 < merged.statistics.clark_evans.z
    assert "notes" not in apart.report
    assert "a fair part of their mean spacing of 151 m" in merged.report["notes"][-1]


def test_the_survey_of_drawn_layouts_says_what_they_are(tmp_path):
    for process, kind in (("hard_core", "regular"), ("thomas", "clustered")):
        layout = draw_layout(process, city(), 15.0, rng=4)
        found = survey_sites(table(tmp_path, layout.xy), city(), merge_distance_m=0.0, rng=1)
        assert found.statistics.kind == kind
        assert found.window_name == "testville"
        assert found.area_km2 == pytest.approx(city().area_km2)
        np.testing.assert_allclose(found.layout.xy, layout.xy, atol=0.01)


def test_without_a_city_sites_are_looked_at_in_their_own_hull(tmp_path):
    xy = CENTRE + np.random.default_rng(1).uniform(-1000, 1000, (80, 2))
    found = survey_sites(table(tmp_path, xy), merge_distance_m=0.0)
    assert found.window_name == "the sites' own hull"
    assert found.area_km2 == pytest.approx(4.0, rel=0.1)
    again = found.to_dict()
    assert again["density_per_km2"] == pytest.approx(80 / found.area_km2)
    assert again["statistics"]["kind"] == "poisson"
    assert json.loads(json.dumps(again, allow_nan=True))["sites"] == 80


@pytest.mark.parametrize("xy", [[(0, 0)], [(0, 0), (500, 10)], [(0, 0), (100, 0), (200, 0), (300, 0)]])
def test_too_few_sites_for_a_hull_are_listed_and_not_judged(tmp_path, xy):
    found = survey_sites(table(tmp_path, CENTRE + np.array(xy, dtype=float)))
    assert found.statistics is None
    assert found.why_no_statistics
    assert len(found.layout) == len(xy)
    assert found.to_dict()["statistics"] is None


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([(0.1, 0.1), (-179, 60), (179, -60), (90, 10), (-90, 5)], r"km apart.*--city\), or cut the file"),
        ([(2.35, 48.85), (13.4, 52.5), (7.0, 50.0), (-9.1, 38.7)], r"sites up to 2,\d{3} km apart"),
        ([(179.99, -16), (-179.99, -15.99), (179.95, -15.98)], "on both sides of the antimeridian"),
    ],
)
def test_sites_that_no_projection_measures_are_one_clear_line(tmp_path, places, words):
    path = write(tmp_path / "s.csv", ["lon,lat", *(f"{lon},{lat}" for lon, lat in places)])
    with pytest.raises(CityError, match=words) as caught:
        survey_sites(path)
    assert "\n" not in str(caught.value)


def test_a_country_is_still_measured(tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"{lon},{lat}" for lon, lat in rng.uniform((2.0, 45.0), (9.0, 50.0), (60, 2))]
    found = survey_sites(write(tmp_path / "s.csv", ["lon,lat", *rows]))
    assert found.area_km2 == pytest.approx(293_000, rel=0.1)  # 5 degrees by 7 times the cosine of 47.5


def test_one_seed_one_verdict_and_the_same_bytes(tmp_path):
    xy = CENTRE + np.random.default_rng(1).uniform(-1000, 1000, (60, 2))
    path = table(tmp_path, xy)
    first, second = (survey_sites(path, rng=5).to_dict() for _ in range(2))
    assert first == second
    assert math.isfinite(first["statistics"]["clark_evans"])


def test_a_scenario_reads_the_file_by_the_same_path(tmp_path):
    from types import SimpleNamespace

    from geoedge.sites import make_layout

    (a, b), (c, d) = lonlat(0, 0), lonlat(500, 0)
    path = write(tmp_path / "s.txt", ["Breite|Länge|Netz", f"{b}|{a}|X", f"{d}|{c}|Y"])
    config = SimpleNamespace(
        source=str(path),
        merge_distance_m=50.0,
        density_per_km2=None,
        placement=None,
        process=None,
        operator="y",
        radio=None,
        columns="lat=Breite,lon=Länge,operator=Netz",
        crs=None,
    )
    made = make_layout(city(), config, rng=1)
    read = read_sites(path, city(), merge_distance_m=50.0, operator="y", columns=config.columns)
    np.testing.assert_array_equal(made.xy, read.xy)
    assert made.report == read.report
    assert made.kind == ("Y",)
