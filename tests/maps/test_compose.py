from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import shapely

import geoedge as ge
from geoedge.city import City
from geoedge.errors import CityError, OutputError
from geoedge.maps import city_map
from geoedge.maps.compose import DETAILS, RunView
from geoedge.maps.page import MapLayer
from geoedge.results import Results
from geoedge.workload import build_workload


def map_layers(page: object) -> list[MapLayer]:
    return [child for child in page._children.values() if isinstance(child, MapLayer)]  # type: ignore[attr-defined]


def test_every_question_has_its_layers(run: Results, town: City) -> None:
    page = city_map(run, town)
    count = Counter(layer.theme for layer in map_layers(page))
    types = len(run.meta["type_names"])
    assert count == {
        "regions": 2 * types,
        "coverage": 2,
        "difference": 2,
        "demand": 2,
        "sites": 2,
        "hot_sites": 2,
        "actions": 1,
        "hot_places": 2,
        "streets": 1,
        "land": 1,
    }
    assert page.epochs == ["07:00–08:00 (warm-up)", "08:00–09:00"]


def test_the_same_run_gives_the_same_bytes(run: Results, town: City) -> None:
    assert city_map(run, town).to_html() == city_map(run, town).to_html()


def test_regions_tile_the_land_and_hold_the_cheapest_site(run: Results, town: City) -> None:
    view = RunView.of(run, town)
    land = view.land(5.0)
    workload = build_workload(view.scenario.workload, view.scenario.hardware)
    site_km = run.sites[["x_m", "y_m"]].to_numpy() / 1e3
    rng = np.random.default_rng(2)
    places = np.array([373_000.0, 4_843_000.0]) + rng.uniform(0, 800, (400, 2))
    radio = view.scenario.radio
    for epoch in range(2):
        rows = run.epochs[run.epochs.epoch == epoch]
        for kind in range(len(workload.type_names)):
            regions = list(view.regions(land, 2.0, epoch=epoch, request_type=kind))
            assert sum(r.geometry.area for r in regions) == pytest.approx(land.area, rel=1e-6)
            for a, b in pairwise(regions):
                assert a.geometry.intersection(b.geometry).area < 1e-3
            prefill = workload.prefill_time[rows.profile.to_numpy(), kind]
            distance = np.linalg.norm(places[:, None] / 1e3 - site_km, axis=2)
            cost = (
                radio.delay_coefficient * distance**radio.delay_exponent
                + prefill
                + rows.advertised_wait_s.to_numpy()
            )
            best = cost.argmin(axis=1)
            right = sum(shapely.intersects_xy(r.geometry, *places[best == r.site].T).sum() for r in regions)
            assert right >= 0.95 * len(places)  # the rest lies within a cell of an edge


def test_a_site_without_a_finite_wait_serves_nobody_and_is_still_drawn(run: Results, town: City) -> None:
    epochs = run.epochs.assign(
        advertised_wait_s=np.where(run.epochs.site == 0, np.inf, run.epochs.advertised_wait_s)
    )
    view = RunView.of(replace(run, epochs=epochs), town)
    assert all(region.site != 0 for region in view.regions(view.land(5.0), 2.0))
    everyone = replace(run, epochs=run.epochs.assign(advertised_wait_s=np.inf))
    count = Counter(layer.theme for layer in map_layers(city_map(everyone, town)))
    assert count["regions"] == 0
    assert count["sites"] == 2


def test_lines_give_the_answers_and_the_circumstances(run: Results, town: City) -> None:
    assert RunView.of(run, town).lines() == [
        "First token within 0.8 s: theory 80.0 % · field 90.0 %",
        "6 sites · routing load-aware · waits advertised: equilibrium · controller: greedy",
    ]


def test_a_run_without_cells_says_what_is_missing(run: Results, town: City) -> None:
    page = city_map(replace(run, tables={}), town)
    assert {"coverage", "difference", "demand"}.isdisjoint(layer.theme for layer in map_layers(page))
    assert any("no table of cells" in note for note in page.page.notes)


def test_a_tight_limit_makes_the_page_coarser_and_the_page_says_so(run: Results, town: City) -> None:
    fine = city_map(run, town)
    coarse = city_map(run, town, limit_bytes=fine.size_bytes - 1)
    assert coarse.size_bytes < fine.size_bytes
    assert f"streets by up to {DETAILS[0].streets_m:g} m" in fine.page.notes[0]
    assert f"streets by up to {DETAILS[0].streets_m:g} m" not in coarse.page.notes[0]
    with pytest.raises(OutputError, match="more than its limit"):
        city_map(run, town, limit_bytes=1000).to_html()


def test_another_city_is_refused(run: Results, town: City) -> None:
    with pytest.raises(CityError, match="is not the one of the run"):
        city_map(run, replace(town, checksum="other"))


def test_a_run_without_a_city_is_refused(run: Results) -> None:
    paper = ge.load_scenario("paper")
    with pytest.raises(CityError, match="no city to draw"):
        city_map(replace(run, scenario_toml=paper.to_toml()))


def test_a_place_off_the_earth_is_an_error_not_an_empty_map(run: Results, town: City) -> None:
    with pytest.raises(OutputError, match="not finite"):
        city_map(replace(run, sites=run.sites.assign(lon=np.nan)), town)


def test_importing_the_room_imports_neither_folium_nor_matplotlib() -> None:
    code = "import sys, geoedge.maps; sys.exit(any(m in sys.modules for m in ('folium', 'matplotlib', 'shapely')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
