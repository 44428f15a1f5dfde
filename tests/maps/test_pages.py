"""Every page that is drawn: large cities and whole days within the limit, and those that the repository shows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from geoedge.city import City, StreetGraph
from geoedge.maps import city_map
from geoedge.maps.page import LIMIT_BYTES, MapPage
from geoedge.results import Results
from tests.browser import DESKTOP, PHONE, SIZES, requested, violations, visit
from tests.maps.conftest import EAST, NORTH, make_events
from tests.maps.test_browser import SLIDE, click, drawn

SHOWN = sorted((Path(__file__).parents[2] / "maps").glob("*.html"))
SITES, BLOCKS = 1000, 72


def crooked_streets(mode: str, speed: float) -> StreetGraph:
    """Return 20,736 one-way edges between crooked crossings, each edge with three bends."""
    rng = np.random.default_rng(4)
    side = BLOCKS + 1
    node = np.arange(side * side).reshape(side, side)
    row, column = np.divmod(np.arange(side * side), side)
    xy = np.column_stack([EAST + 100.0 * column, NORTH + 100.0 * row]) + rng.normal(0, 15, (side * side, 2))
    ends = np.concatenate(
        [
            np.stack([node[:, :-1], node[:, 1:]], -1)[:-1].reshape(-1, 2),
            np.stack([node[:-1], node[1:]], -1)[:, :-1].reshape(-1, 2),
        ]
    )
    bent = np.linspace(xy[ends[:, 0]], xy[ends[:, 1]], 5, axis=1)
    bent[:, 1:-1] += rng.normal(0, 6, bent[:, 1:-1].shape)
    both = np.concatenate([bent, bent[:, ::-1]])
    ways = np.concatenate([ends, ends[:, ::-1]]).astype(np.int32)
    length = np.hypot(*np.moveaxis(np.diff(both, axis=1), -1, 0)).sum(axis=1)
    speeds = np.where(rng.random(len(ways)) < 0.1, 2 * speed, speed)
    offset = np.arange(0, 5 * len(ways) + 1, 5)
    return StreetGraph(mode, xy, ways[:, 0], ways[:, 1], length, speeds, offset, both.reshape(-1, 2))


@pytest.fixture(scope="module")
def metropolis(run: Results, town: City) -> tuple[Results, City]:
    """Return a run of twelve epochs with a thousand sites in a city of 20,736 edges and as many cells."""
    rng = np.random.default_rng(7)
    streets = {"walk": crooked_streets("walk", 1.35), "drive": crooked_streets("drive", 8.0)}
    reach = 100.0 * BLOCKS
    land = shapely.box(EAST - 100, NORTH - 100, EAST + reach + 100, NORTH + reach + 100)
    city = replace(town, streets=streets, boundary=land)
    xy = np.array([EAST, NORTH]) + rng.uniform(0, reach, (SITES, 2))
    lonlat = city.to_lonlat(xy)
    sites = run.sites.iloc[np.arange(SITES) % 6].reset_index(drop=True).assign(
        site=np.arange(SITES), name=[f"Site {k} of a street with a long name" for k in range(SITES)],
        x_m=xy[:, 0], y_m=xy[:, 1], lon=lonlat[:, 0], lat=lonlat[:, 1],
    )  # fmt: skip
    one = run.epochs[run.epochs.epoch == 0]
    epochs = pd.concat(
        [
            one.iloc[rng.integers(0, 6, SITES)].assign(
                site=np.arange(SITES),
                epoch=k,
                start_s=25_200.0 + 600 * k,
                end_s=25_800.0 + 600 * k,
                advertised_wait_s=rng.uniform(0, 0.5, SITES),
                utilization=rng.uniform(0, 1, SITES),
            )
            for k in range(12)
        ],
        ignore_index=True,
    )
    centres = np.arange(25.0, reach, 50.0)
    x, y = (axis.ravel() for axis in np.meshgrid(EAST + centres, NORTH + centres))
    cells = pd.concat(
        [
            pd.DataFrame(
                {
                    "x_m": x,
                    "y_m": y,
                    "cell_m": 50.0,
                    "epoch": k,
                    "demand_per_km2_s": rng.lognormal(0, 1, x.size),
                    "local_coverage": rng.uniform(0.5, 1, x.size),
                    "ppp_coverage": 0.8,
                }
            )
            for k in range(12)
        ],
        ignore_index=True,
    )
    places = np.array([EAST, NORTH]) + rng.uniform(0, reach, (run.records.num_rows, 2))
    records = run.records
    new = {
        "x_m": places[:, 0],
        "y_m": places[:, 1],
        "epoch": ((records.column("created_s").to_numpy() - 25_200.0) // 600).astype(np.int16),
        "site": rng.integers(0, SITES, records.num_rows).astype(np.int32),
    }
    table = {name: new.get(name, records.column(name)) for name in records.column_names}
    return replace(run, sites=sites, epochs=epochs, records=pa.table(table), tables={"cells": cells}), city


@pytest.fixture(scope="module")
def large(metropolis: tuple[Results, City]) -> MapPage:
    return city_map(*metropolis)


def test_a_thousand_sites_and_twenty_thousand_edges_fit(
    metropolis: tuple[Results, City], large: MapPage
) -> None:
    _, city = metropolis
    assert len(city.streets["drive"].edge_from) == 4 * BLOCKS**2 >= 20_000
    assert large.size_bytes < LIMIT_BYTES
    assert any("Simplified for the page: streets by up to" in note for note in large.page.notes)


@pytest.mark.browser
@SIZES
def test_a_large_city_opens_and_steps_quickly(
    browser: Any, large: MapPage, tmp_path: Path, size: tuple[int, int]
) -> None:
    path = large.save(tmp_path / "large.html")
    assert path is not None
    visit(browser, path.as_uri(), size)
    for theme in ("ttft", "coverage", "crowd", "regions"):
        click(browser, f"[data-theme={theme}]")
        before = drawn(browser, "surface")
        taken = browser.execute_script(
            f"const start = performance.now(); {SLIDE}; return performance.now() - start", 11
        )
        assert taken < 15_000  # an idle machine needs a third of a second
        assert drawn(browser, "surface") != before
        browser.execute_script(SLIDE, 0)
    assert browser.get_log("browser") == []


def test_a_day_in_half_hours_fits_beside_its_picture(run: Results, town: City) -> None:
    assert day(run, town).size_bytes < 1_500_000


def day(run: Results, town: City) -> MapPage:
    two = run.epochs
    epochs = pd.concat(
        [
            two[two.epoch == k % 2].assign(epoch=k, start_s=1800.0 * k, end_s=1800.0 * (k + 1))
            for k in range(48)
        ]
    )
    cells = run.tables["cells"]
    every = pd.concat([cells[cells.epoch == k % 2].assign(epoch=k) for k in range(48)], ignore_index=True)
    tables = {"cells": every, "events": make_events()}
    meta = run.meta | {"start_s": 0.0, "warm_up_s": 0.0, "horizon_s": 86_400.0}
    return city_map(replace(run, epochs=epochs, tables=tables, meta=meta), town, limit_bytes=1_450_000)


@pytest.fixture(scope="module", params=["day", *(path.stem for path in SHOWN)])
def shown(
    request: pytest.FixtureRequest, run: Results, town: City, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    if request.param != "day":
        yield next(path for path in SHOWN if path.stem == request.param)
        return
    path = day(run, town).save(tmp_path_factory.mktemp("day") / "day.html")
    assert path is not None
    yield path


def state(browser: Any) -> tuple[str, ...]:
    """Return what the map shows of the step that is chosen."""
    return tuple(drawn(browser, pane) for pane in ("surface", "sites"))


@pytest.mark.browser
@pytest.mark.parametrize(
    ("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop-light", "phone-dark"]
)
def test_a_page_opens_offline_steps_and_is_open_to_everybody(
    browser: Any, shown: Path, size: tuple[int, int], scheme: str
) -> None:
    assert shown.stat().st_size < 1_500_000
    visit(browser, f"{shown.as_uri()}#scheme={scheme}", size)
    browser.execute_script(SLIDE, 0)
    first, early = state(browser), browser.find_element("css selector", ".clock").text
    click(browser, "[data-step='1']")
    assert state(browser) != first
    assert browser.find_element("css selector", ".clock").text != early
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert violations(browser) == []
    themes = browser.execute_script(
        "return [...document.querySelectorAll('[data-theme]')].map((e) => e.dataset.theme)"
    )
    assert {"streets", "land"} < set(themes)
    for theme in themes:
        click(browser, f"[data-theme={theme}]")
        drawn(browser, "surface")
        click(browser, f"[data-theme={theme}]")
    time.sleep(0.2)
    assert browser.get_log("browser") == []
    assert [url for url in requested(browser) if not url.startswith(("data:", shown.as_uri()))] == []
