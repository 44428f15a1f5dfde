"""Trips in a real browser: along the streets, cut to the epoch, told by the pointer and without one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from geoedge.city import City
from geoedge.maps import city_map
from geoedge.maps.layers import DARK_PEOPLE_COLOURS, PEOPLE_COLOURS
from geoedge.results import Results
from tests.browser import SIZES, settle, visit
from tests.maps.test_browser import SLIDE, click

pytestmark = pytest.mark.browser

TRIPS = "#show=land,streets,people"
MIDDLE = """
const path = document.querySelectorAll(arguments[0])[arguments[1]];
const { x, y } = path.getPointAtLength(path.getTotalLength() * arguments[2]).matrixTransform(path.getScreenCTM());
return [Math.round(x), Math.round(y)];
"""
STROKES = "return [...document.querySelectorAll('path.trip')].map((e) => e.getAttribute('stroke'))"


@pytest.fixture(scope="module")
def address(run: Results, town: City, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = city_map(run, town).save(tmp_path_factory.mktemp("trips") / "map.html")
    assert path is not None
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Callable[..., Any]:
    def show(size: tuple[int, int] = (1280, 800), hash: str = TRIPS) -> Any:
        visit(browser, address + hash, size)
        return browser

    return show


def point_at(browser: Any, number: int, share: float = 0.5) -> None:
    """Move the pointer onto a trip."""
    from selenium.webdriver import ActionChains

    actions = ActionChains(browser)
    actions.w3c_actions.pointer_action.move_to_location(
        *browser.execute_script(MIDDLE, "path.touch", number, share)
    )
    actions.perform()


@SIZES
def test_the_pointer_is_told_what_when_and_how_far(opened: Callable[..., Any], size: tuple[int, int]) -> None:
    browser = opened(size)
    assert len(browser.find_elements("css selector", "path.trip")) == 3
    seen = []
    for number, share in enumerate((0.9, 0.5, 0.9)):
        point_at(browser, number, share)
        seen.append(browser.find_element("css selector", ".tip").text.split("\n"))
    length = ["Length", "600 m", "Resident"]
    assert ["Home → leisure, by car", "From–to", "08:03–08:05", *length, "no. 7"] in seen
    assert ["Work → home, on foot", "From–to", "08:53–09:03", *length, "no. 3"] in seen
    assert browser.get_log("browser") == []


def test_a_trip_is_cut_to_the_epoch_and_stays_on_the_streets(
    opened: Callable[..., Any], run: Results, town: City
) -> None:
    browser = opened()
    graph = town.streets["walk"]
    places = town.to_lonlat(graph.geometry_xy).reshape(-1, 2, 2)
    streets = shapely.MultiLineString([shapely.LineString(ends) for ends in places])
    trips = [rows for _, rows in run.tables["paths"].groupby(["user", "trip"])]
    spans = run.epochs.groupby("epoch")[["start_s", "end_s"]].first().to_numpy()
    count = 0
    for epoch, (start, end) in enumerate(spans):
        found = browser.execute_script("return marks.tripsIn(arguments[0])", epoch)
        for one in found:
            (rows,) = [
                r for r in trips if r.user.iloc[0] == one["user"] and r.depart_s.iloc[0] == one["depart_s"]
            ]
            part = np.array(one["part"])[:, ::-1]
            times = np.clip([rows.time_s.iloc[0], rows.time_s.iloc[-1]], start, end)
            ends = np.column_stack([np.interp(times, rows.time_s, rows[axis]) for axis in ("x_m", "y_m")])
            np.testing.assert_allclose(part[[0, -1]], town.to_lonlat(ends), atol=2e-5)  # two metres
            assert shapely.distance(shapely.points(part), streets).max() < 1.5e-5
            count += 1
    assert count == 4  # one of three goes on over the turn of the epochs


def test_the_slider_and_the_scheme_reach_the_trips(opened: Callable[..., Any]) -> None:
    browser = opened(hash=TRIPS + "&scheme=light")
    light = [PEOPLE_COLOURS[k] for k in (1, 2, 0)]  # by departure: to work, to leisure, home
    assert browser.execute_script(STROKES) == light
    click(browser, "#scheme")
    settle(browser)
    assert browser.execute_script(STROKES) == [DARK_PEOPLE_COLOURS[k] for k in (1, 2, 0)]
    browser.execute_script(SLIDE, 0)
    settle(browser)
    assert browser.execute_script(STROKES) == [DARK_PEOPLE_COLOURS[1]]
    click(browser, "[data-theme=people]")
    assert browser.execute_script(STROKES) == []


def test_trips_are_listed_for_those_without_a_pointer(opened: Callable[..., Any]) -> None:
    browser = opened()
    listed = [one.text.split("\n") for one in browser.find_elements("css selector", "#ranking button")]
    assert listed == [
        ["•", "Home → work, on foot", "07:55–08:05"],
        ["•", "Home → leisure, by car", "08:03–08:05"],
        ["•", "Work → home, on foot", "08:53–09:03"],
    ]
    click(browser, "#ranking li:nth-child(2) button")
    browser.execute_async_script("setTimeout(arguments[0], 700)")
    box, frame = browser.execute_script(
        "return ['path.trip:nth-of-type(5)', '.page-map'].map((s) => document.querySelector(s).getBoundingClientRect().toJSON())"
    )
    assert (
        box["width"] > 0.25 * frame["width"] or box["height"] > 0.25 * frame["height"]
    )  # it is looked at closely
    assert frame["left"] < box["left"]
    assert box["right"] < frame["right"]


def test_every_trip_has_a_head_and_a_casing(opened: Callable[..., Any]) -> None:
    browser = opened()
    ways = "return [...document.querySelectorAll(arguments[0])].map((e) => e.getAttribute('d').split('M').length - 1)"
    assert browser.execute_script(ways, "path.trip") == [2, 2, 2]
    assert browser.execute_script(ways, "path.casing") == [2, 2, 2]


def test_a_run_without_paths_draws_people_and_no_trips(
    browser: Any, run: Results, town: City, tmp_path: Path
) -> None:
    old = replace(run, tables={name: table for name, table in run.tables.items() if name != "paths"})
    path = city_map(old, town).save(tmp_path / "old.html")
    assert path is not None
    visit(browser, path.as_uri() + TRIPS)
    assert browser.find_elements("css selector", ".leaflet-people-pane path")
    assert browser.find_elements("css selector", "path.trip, path.touch") == []
    assert "no trips are drawn" in browser.find_element("css selector", ".notes").text
    assert browser.get_log("browser") == []
