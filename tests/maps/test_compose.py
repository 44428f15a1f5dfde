from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import shapely

import geoedge as ge
from geoedge.city import City
from geoedge.errors import CityError, OutputError
from geoedge.maps import city_map
from geoedge.maps.compose import DETAILS
from geoedge.maps.page import MapLayer, RunData
from geoedge.maps.view import RunView
from geoedge.results import Results
from geoedge.workload import build_workload
from tests.maps.conftest import EAST, NORTH, make_events


def map_layers(page: object) -> list[MapLayer]:
    return [child for child in page._children.values() if isinstance(child, MapLayer)]  # type: ignore[attr-defined]


def test_every_question_has_its_layer(run: Results, town: City) -> None:
    page = city_map(run.with_tables(events=make_events()), town)
    assert [layer.theme for layer in map_layers(page)] == [
        "regions",
        "ttft",
        "coverage",
        "difference",
        "demand",
        "crowd",
        "sites",
        "hot_sites",
        "actions",
        "events",
        "hot_places",
        "people",
        "places",
        "streets",
        "land",
    ]
    assert page.epochs == ["07:00–08:00 (warm-up)", "08:00–09:00"]


def test_what_did_not_happen_has_no_layer(run: Results, town: City) -> None:
    tables = {name: table for name, table in run.tables.items() if name != "paths"}
    page = city_map(
        replace(run, actions=run.actions.iloc[:0], records=run.records.slice(0, 0), tables=tables), town
    )
    assert {"actions", "events", "people"}.isdisjoint(layer.theme for layer in map_layers(page))


def test_a_run_from_before_paths_were_kept_is_drawn_without_trips_and_says_so(
    run: Results, town: City
) -> None:
    said = "This run has no table of paths, so that no trips are drawn; run the scenario again to have them."
    old = replace(run, tables={name: table for name, table in run.tables.items() if name != "paths"})
    page = city_map(old, town)
    assert said in page.page.notes
    (layer,) = [one for one in map_layers(page) if one.theme == "people"]
    assert len(layer.description["legends"]) == 1
    now = city_map(run, town).page.notes
    assert said not in now
    assert any(note.startswith("Trips are those of 2 residents") for note in now)
    nobody = run.with_tables(
        paths=run.tables["paths"].iloc[:0]
    )  # nobody left home: nothing to draw, nothing old
    assert not any("rips" in note for note in city_map(nobody, town).page.notes)


def trips_of(page: object) -> set[int]:
    """Return whose trips a page draws."""
    (data,) = [child.data for child in page._children.values() if isinstance(child, RunData)]  # type: ignore[attr-defined]
    return set(data["trips"]["user"]) if data["trips"] else set()


def a_day_of_trips() -> pd.DataFrame:
    """Return six trips of 35 vertices each by a hundred residents, as long as those of Monaco's day."""
    rng = np.random.default_rng(2)
    trips, vertices = 600, 35
    depart = 25_200.0 + np.sort(rng.uniform(0.0, 7_000.0, (100, 6)), axis=1).ravel()
    middle = np.array([EAST + 400.0, NORTH + 400.0])
    way = (middle + rng.normal(0.0, 40.0, (trips, vertices, 2)).cumsum(axis=1)).reshape(-1, 2)
    each = {
        "user": np.repeat(np.arange(100), 6),
        "trip": np.tile(np.arange(6), 100),
        "mode": "walk",
        "from_activity": "home",
        "to_activity": "leisure",
        "depart_s": depart,
        "arrive_s": depart + 600.0,
        "length_m": 2_000.0,
    }
    table = pd.DataFrame(each).loc[np.repeat(np.arange(trips), vertices)].reset_index(drop=True)
    time = (depart[:, None] + np.linspace(0.0, 600.0, vertices)).ravel()
    return table.assign(time_s=time, x_m=way[:, 0], y_m=way[:, 1])


def test_a_whole_day_of_a_thousand_sites_fits_and_says_what_it_left_out(run: Results, town: City) -> None:
    times = 167
    sites = pd.concat([run.sites] * times, ignore_index=True).assign(site=np.arange(6 * times))
    site = np.concatenate([run.epochs.site.to_numpy() + 6 * k for k in range(times)])
    two = pd.concat([run.epochs] * times, ignore_index=True).assign(site=site)
    epochs = pd.concat([two.assign(epoch=2 * k + two.epoch) for k in range(42)], ignore_index=True)
    wide = pd.concat([run.tables["cells"].assign(x_m=run.tables["cells"].x_m + 800.0 * k) for k in range(15)])
    cells = pd.concat([wide.assign(epoch=2 * k + wide.epoch) for k in range(42)], ignore_index=True)
    tables = {"cells": cells, "paths": a_day_of_trips()}
    page = city_map(replace(run, sites=sites, epochs=epochs, tables=tables), town)
    assert len(page.epochs) == 84
    assert page.size_bytes < 5_000_000
    small = city_map(replace(run, sites=sites, epochs=epochs, tables=tables), town, limit_bytes=2_300_000)
    assert small.size_bytes < 2_300_000
    assert len(trips_of(small)) < len(trips_of(page)) == 100
    assert any("kept here on cells of" in note for note in small.page.notes)


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
    assert list(RunView.of(everyone, town).regions(view.land(5.0), 2.0)) == []
    assert city_map(everyone, town).to_html()


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
