"""Names of streets on a page: those that fit, each along its street, none over another, as text, in a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoedge.city import City, load_city
from geoedge.maps import city_map
from geoedge.maps.layers import LONGEST_NAME, land_layer, street_layer
from geoedge.maps.page import MapPage
from geoedge.results import Results
from geoedge.texts import plain_text
from tests.browser import DESKTOP, SIZES, settle, violations, visit
from tests.maps.conftest import EAST, HOSTILE_STREETS, NORTH

pytestmark = pytest.mark.browser

LETTERS = """
const map = document.querySelector(".page-map").getBoundingClientRect();
return [...document.querySelectorAll(".street-names text")].map((text) => {
  const to = text.getScreenCTM();
  const middles = Array.from({ length: text.getNumberOfChars() }, (_, i) => {
    const [a, b] = [text.getStartPositionOfChar(i), text.getEndPositionOfChar(i)].map((p) => p.matrixTransform(to));
    return [(a.x + b.x) / 2 - map.left, (a.y + b.y) / 2 - map.top];
  });
  const line = document.querySelector(text.firstChild.getAttribute("href"));
  return { name: text.textContent, middles, size: parseFloat(getComputedStyle(text).fontSize), rank: Number(text.dataset.rank),
    room: line.getTotalLength() - text.getComputedTextLength(), width: map.width, height: map.height };
});
"""
BOXES = """
const map = document.querySelector(".page-map").getBoundingClientRect();
return [...document.querySelectorAll(arguments[0])].map((e) => e.getBoundingClientRect())
  .map((r) => [r.left - map.left, r.top - map.top, r.right - map.left, r.bottom - map.top]);
"""
COLOURS = """
const { fill, stroke } = getComputedStyle(document.querySelector(".street-names text"));
return [fill, stroke].map((colour) => colour.match(/[0-9.]+/g).map(Number));
"""
TAKEN = ".place-name, .leaflet-sites-pane path, .leaflet-control"


@pytest.fixture(scope="module")
def address(run: Results, town: City, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = city_map(run, town).save(tmp_path_factory.mktemp("page") / "map.html")
    assert path is not None
    return path.as_uri()


@pytest.fixture
def at_zoom(browser: Any, address: str, town: City) -> Callable[..., list[dict[str, Any]]]:
    lon, lat = town.to_lonlat(np.array([[EAST + 400, NORTH + 400]]))[0].tolist()

    def show(zoom: float, size: tuple[int, int] = DESKTOP, hash: str = "") -> list[dict[str, Any]]:
        visit(browser, address + hash, size)
        return letters(browser, [lat, lon], zoom)

    return show


def letters(browser: Any, centre: list[float], zoom: float) -> list[dict[str, Any]]:
    """Return the names that stand on the map at a zoom, with the middle of each of their letters [px]."""
    leaflet = browser.find_element("css selector", ".page-map").get_attribute("id")
    browser.execute_script(
        f"{leaflet}.setView(arguments[0], arguments[1], {{ animate: false }})", centre, zoom
    )
    settle(browser)
    found: list[dict[str, Any]] = browser.execute_script(LETTERS)
    return found


def assert_legible(browser: Any, found: list[dict[str, Any]]) -> None:
    """Refuse names that are cut, leave the map, or lie over each other or over what else stands there."""
    boxes = np.array(browser.execute_script(BOXES, TAKEN))
    for one in found:
        middles = np.array(one["middles"])
        assert one["room"] > 0, one["name"]
        assert (middles > 0).all()
        assert (middles < (one["width"], one["height"])).all()
        for left, top, right, bottom in boxes:
            inside = (middles > (left, top)) & (middles < (right, bottom))
            assert not inside.all(axis=1).any(), one["name"]
    for one, other in combinations(found, 2):
        apart = np.array(one["middles"])[:, None] - np.array(other["middles"])[None, :]
        assert np.hypot(*apart.T).min() >= 0.9 * max(one["size"], other["size"]), (one["name"], other["name"])


@SIZES
@pytest.mark.parametrize("zoom", [16.0, 17.0, 18.0])
def test_names_that_nobody_should_trust_stand_along_their_streets_as_text(
    at_zoom: Callable[..., list[dict[str, Any]]], browser: Any, zoom: float, size: tuple[int, int]
) -> None:
    found = at_zoom(zoom, size)
    known = {plain_text(name, LONGEST_NAME) for name in HOSTILE_STREETS}
    assert {one["name"] for one in found} <= known
    assert len(found) >= (3 if size == DESKTOP or zoom == 16 else 1)
    assert_legible(browser, found)
    assert browser.execute_script("return window.broken") is None
    assert browser.get_log("browser") == []
    inside = (
        "return [...new Set([...document.querySelectorAll('.street-names *')].map((e) => e.tagName))].sort()"
    )
    assert browser.execute_script(inside) == ["path", "text", "textPath"]
    assert not browser.find_elements("css selector", ".leaflet-container img, .leaflet-container script")


def test_names_appear_as_the_map_comes_near_main_roads_first(
    at_zoom: Callable[..., list[dict[str, Any]]],
) -> None:
    assert at_zoom(12) == []
    far, near = at_zoom(14.75), at_zoom(17)
    assert {one["rank"] for one in far} <= {0}
    assert len({one["name"] for one in near}) >= 6
    assert {0, 1} <= {one["rank"] for one in near}


def test_a_street_bears_its_name_along_itself(
    at_zoom: Callable[..., list[dict[str, Any]]], browser: Any, town: City
) -> None:
    names, found = town.street_names, at_zoom(17)
    leaflet = browser.find_element("css selector", ".page-map").get_attribute("id")
    for one in found:
        lonlat = [
            browser.execute_script(
                f"const p = {leaflet}.containerPointToLatLng(arguments[0]); return [p.lng, p.lat]", middle
            )
            for middle in one["middles"][:: max(1, len(one["middles"]) // 5)]
        ]
        street = names.nearest(town.from_lonlat(lonlat), 8.0)
        assert {plain_text(names.name[k], LONGEST_NAME) for k in street if k >= 0} == {one["name"]}
        assert (street >= 0).all()


def test_they_go_and_come_with_the_streets_and_make_room_for_places(
    at_zoom: Callable[..., list[dict[str, Any]]], browser: Any
) -> None:
    before = at_zoom(17)
    toggle = "document.querySelector('[data-theme=streets]').click()"
    browser.execute_script(toggle)
    settle(browser)
    assert browser.execute_script(LETTERS) == []
    assert browser.execute_script(BOXES, ".place-name")
    browser.execute_script(toggle)
    settle(browser)
    assert browser.execute_script(LETTERS) == before
    assert at_zoom(17, hash="#show=land,sites,places") == []
    assert_legible(browser, at_zoom(17, hash="#show=land,streets,places"))


def test_they_stand_beside_sites(browser: Any, run: Results, town: City, tmp_path: Path) -> None:
    xy = np.array([(EAST + 400, NORTH + 200 * k) for k in range(5)] + [(EAST + 200, NORTH + 300)])
    lonlat = town.to_lonlat(xy)
    moved = run.sites.assign(x_m=xy[:, 0], y_m=xy[:, 1], lon=lonlat[:, 0], lat=lonlat[:, 1])
    path = city_map(replace(run, sites=moved), town).save(tmp_path / "map.html")
    assert path is not None
    visit(browser, f"{path.as_uri()}#show=land,streets,sites")
    assert_legible(browser, letters(browser, lonlat[2, ::-1].tolist(), 17))
    visit(browser, f"{path.as_uri()}#show=land,streets")
    freely = [tuple(one["middles"][0]) for one in letters(browser, lonlat[2, ::-1].tolist(), 17)]
    assert len(freely) >= 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_they_can_be_read_and_do_not_catch_the_mouse(
    at_zoom: Callable[..., list[dict[str, Any]]], browser: Any, scheme: str
) -> None:
    found = at_zoom(17, hash=f"#scheme={scheme}")
    ink, halo = (luminance(colour) for colour in browser.execute_script(COLOURS))
    assert (ink < halo) == (scheme == "light")
    assert (max(ink, halo) + 0.05) / (min(ink, halo) + 0.05) > 7
    x, y = found[0]["middles"][0]
    under = """
    const map = document.querySelector(".page-map").getBoundingClientRect();
    return document.elementFromPoint(map.left + arguments[0], map.top + arguments[1]).closest(".street-names") === null;
    """
    assert browser.execute_script(under, x, y)
    assert violations(browser) == []


def luminance(colour: list[float]) -> float:
    """Return the relative luminance of an sRGB colour, as WCAG 2 defines it."""
    share = np.array(colour[:3]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@pytest.mark.parametrize(("name", "least"), [("monaco", 20), ("neubrandenburg", 25)])
def test_streets_of_a_real_city_bear_their_names(browser: Any, tmp_path: Path, name: str, least: int) -> None:
    city = load_city(name)
    west, south, east, north = city.bounds_lonlat
    page = MapPage(name, bounds=city.bounds_lonlat)
    page.add_child(street_layer(city, 1.0))
    page.add_child(land_layer(city.boundary, city.to_lonlat))
    path = page.save(tmp_path / "city.html")
    assert path is not None
    visit(browser, path.as_uri())
    centre = [(south + north) / 2, (west + east) / 2]
    for zoom in (14, 15.25, 16, 17):
        found = letters(browser, centre, zoom)
        assert_legible(browser, found)
        assert {one["name"] for one in found} <= set(city.street_names.name)
        assert all(one["middles"][-1][0] > one["middles"][0][0] - 1 for one in found)  # none upside down
        if zoom == 16:
            assert len({one["name"] for one in found}) >= least
    assert browser.get_log("browser") == []
