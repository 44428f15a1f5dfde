"""The second shipped city: the main job, small, on another map, with other users and no line of code of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from geoedge.city import load_city
from geoedge.compare import run
from geoedge.maps import city_map
from geoedge.results import Results
from geoedge.scenario import load_scenario

pytestmark = pytest.mark.slow

SMALL = {
    "simulation.duration_s": 2700.0,
    "simulation.warm_up_s": 900.0,
    "simulation.epoch_s": 900.0,
    "simulation.replications": 1,
    "demand.users": 1500,
    "demand.request_rate_per_user_s": 0.014,
    "mobility.destinations": 60,
    "demand.cell_m": 100.0,
}
"""Fewer, busier people and three quarters of an hour; the sites are as busy as in the full scenario."""


@pytest.fixture(scope="module")
def results() -> Results:
    return run(load_scenario("neubrandenburg").override(SMALL), layouts=0, workers=1)


def test_every_request_is_counted_once(results) -> None:
    records = results.records
    assert records.num_rows > 30_000
    assert sum(results.status_counts().values()) == records.num_rows
    assert results.epochs["requests"].sum() == results.series["requests"].sum() == records.num_rows
    site = records.column("site").to_numpy()
    assert np.array_equal(
        np.bincount(site, minlength=len(results.sites)), results.epochs.groupby("site")["requests"].sum()
    )
    parts = sum(records.column(f"{part}_s").to_numpy() for part in ("radio", "wait", "prefill"))
    assert np.allclose(parts, records.column("ttft_s").to_numpy())


def test_people_and_sites_are_in_town(results) -> None:
    city = load_city("neubrandenburg")
    assert results.meta["city"] == "neubrandenburg"
    assert results.meta["crs"] == city.crs == "EPSG:32633"
    assert results.sites["lon"].between(13.2, 13.3).all()
    assert results.sites["lat"].between(53.52, 53.6).all()
    assert 15 <= len(results.sites) <= 30
    west, south, east, north = city.boundary.bounds
    x, y = (results.records.column(name).to_numpy() for name in ("x_m", "y_m"))
    assert west <= x.min() < x.max() <= east
    assert south <= y.min() < y.max() <= north
    assert x.max() - x.min() > 2000


def test_the_three_answers_stand_side_by_side(results) -> None:
    wide = results.tables["answers"].pivot(index="metric", columns="column", values="value")
    assert len(wide.columns) == 5  # theory, field, three simulations; no ensemble was asked for
    assert wide.loc["coverage"].between(0.3, 1.0).all()
    assert wide.loc["utilization"].between(0.4, 0.75).all()
    parts = wide.loc["radio_s"] + wide.loc["wait_s"] + wide.loc["prefill_s"]
    assert np.allclose(parts, wide.loc["mean_ttft_s"])
    shares = wide[wide.index.str.startswith("share:")]
    assert np.allclose(shares.sum(), 1.0)


def test_its_map_is_drawn_and_small(results, tmp_path: Path) -> None:
    page = city_map(results)
    text = page.to_html()
    assert 100_000 < len(text.encode()) < 5_000_000
    assert "Neubrandenburg" in text
    assert "OpenStreetMap" in text
    folder = results.save(tmp_path / "run", {"map.html": text})
    assert city_map(Results.load(folder)).to_html() == text
