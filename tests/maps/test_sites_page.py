"""The page of a file of sites: every site once, whose it is, in words that stay text, in a browser without network."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoedge.city import City
from geoedge.errors import OutputError
from geoedge.maps import sites_map
from geoedge.maps.sites import OTHERS, operator_scale
from geoedge.sites import SiteSurvey, survey_sites
from geoedge.texts import plain_text
from tests.browser import SIZES, requested, violations, visit
from tests.maps.conftest import EAST, HOSTILE, NORTH
from tests.maps.test_browser import BOXES, drawn


def write(path: Path, town: City, names: list[str], operators: list[str]) -> Path:
    xy = np.random.default_rng(2).uniform(0, 800, (len(names), 2)) + np.array([EAST, NORTH])
    places = [{"type": "Point", "coordinates": place} for place in town.to_lonlat(xy).tolist()]
    rows = [
        {"type": "Feature", "properties": {"name": name, "operator": operator}, "geometry": place}
        for name, operator, place in zip(names, operators, places, strict=True)
    ]
    rows.append({"type": "Feature", "properties": {"name": HOSTILE[1]}, "geometry": None})
    path.write_text(json.dumps({"type": "FeatureCollection", "features": rows}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def survey(town: City, tmp_path_factory: pytest.TempPathFactory) -> SiteSurvey:
    names = [*HOSTILE, *(f"m{k}" for k in range(24))]
    operators = [HOSTILE[k % 3] for k in range(30)]
    folder = tmp_path_factory.mktemp("sites")
    return survey_sites(
        write(folder / "<b>masts.geojson", town, names, operators), town, merge_distance_m=0.0
    )


def layers(html: str) -> dict[str, Any]:
    found = (
        json.loads(text)
        for text in re.findall(r"^\s*geoedge\.add\((\{.*\})\);\s*$", html, flags=re.MULTILINE)
    )
    return {layer["theme"]: layer for layer in found}


def test_every_site_is_drawn_once_in_the_colour_of_its_operator(survey: SiteSurvey, town: City) -> None:
    page = sites_map(survey, town)
    drawn = layers(page.to_html())
    assert list(drawn) == ["sites", "streets", "land"]
    points = drawn["sites"]["features"]
    assert len(points) == len(survey.layout) == 30
    lonlat = np.array([point[1] for point in points]) * 1e-5
    np.testing.assert_allclose(lonlat, survey.lonlat, atol=1e-5)
    colours = [drawn["sites"]["styles"][point[2]]["fillColor"] for point in points]
    by_operator = dict(zip(survey.operator, colours, strict=True))
    assert len(set(by_operator.values())) == 3
    assert colours == [by_operator[name] for name in survey.operator]
    legend = drawn["sites"]["legends"][0]
    assert legend["colours"] == [style["fillColor"] for style in drawn["sites"]["styles"]]
    assert legend["filled"]  # so that it shows the colours


def test_the_page_says_what_was_not_used_and_whose_data_it_shows(survey: SiteSurvey, town: City) -> None:
    html = sites_map(survey, town).to_html()
    assert "30 sites of 30 rows · 1 of 31 rows not usable" in html
    assert "1 row missing: no coordinates, or text that is no number." in html
    assert "openstreetmap.org/copyright" in html
    assert "<b>masts" not in html
    own = sites_map(survey).to_html()
    assert "openstreetmap.org/copyright" not in own
    assert "streets" not in layers(own)


def test_equal_files_make_equal_pages(survey: SiteSurvey, town: City) -> None:
    assert sites_map(survey, town).to_html() == sites_map(survey, town).to_html()


def test_many_operators_share_the_last_colour() -> None:
    operators = [f"o{k}" for k in range(12) for _ in range(20 - k)]
    scale, of_site = operator_scale(operators)
    assert scale.names == (*(f"o{k}" for k in range(7)), OTHERS)
    assert of_site.tolist() == [min(int(name[1:]), 7) for name in operators]
    assert len(set(scale.colours)) == 8
    one, _ = operator_scale(["", ""])
    assert (one.title, one.names) == ("Sites", ("Site",))
    two, which = operator_scale(["", "A", "A"])
    assert (two.names, which.tolist()) == (("A", "not stated"), [1, 0, 0])


def test_too_many_sites_for_a_page_say_what_to_do(survey: SiteSurvey, town: City) -> None:
    with pytest.raises(
        OutputError, match=r"30 sites make a page of 0.\d MB.*choose an operator, a technology or a city"
    ):
        sites_map(survey, town, limit_bytes=50_000)


@pytest.fixture(scope="module")
def crowd(town: City, tmp_path_factory: pytest.TempPathFactory) -> SiteSurvey:
    folder = tmp_path_factory.mktemp("crowd")
    path = write(folder / "a.geojson", town, [f"m{k}" for k in range(2500)], ["A", "B"] * 1250)
    return survey_sites(path, town, merge_distance_m=0.0, simulations=39)


@pytest.fixture(params=["few", "many"])
def address(
    request: pytest.FixtureRequest, survey: SiteSurvey, crowd: SiteSurvey, town: City, tmp_path: Path
) -> str:
    return sites_map(survey if request.param == "few" else crowd, town).save(tmp_path / "a.html").as_uri()


@pytest.mark.browser
@SIZES
def test_in_a_browser_it_asks_for_nothing_and_nothing_covers_anything(
    browser: Any, address: str, size: tuple[int, int]
) -> None:
    visit(browser, address, size)
    assert browser.get_log("browser") == []
    assert [url for url in requested(browser) if not url.startswith(("data:", address))] == []
    pane = "sites" if drawn(browser, "sites") else "surface"
    before = drawn(browser, pane)
    assert before
    browser.execute_script("document.querySelector('[data-theme=sites]').click()")
    assert drawn(browser, pane) != before
    browser.execute_script("document.querySelector('[data-theme=sites]').click()")
    assert drawn(browser, pane) == before
    assert browser.execute_script("return window.broken") is None
    over = "const bar = document.querySelector('.leaflet-control-scale-line'); return bar.scrollWidth - bar.clientWidth"
    assert browser.execute_script(over) <= 0
    frame = browser.execute_script(BOXES, ".page-head, .page-map, .page-side")
    on_map = browser.execute_script(BOXES, ".leaflet-control-zoom, .leaflet-control-scale, .credit")
    for boxes in (frame, on_map):
        assert len(boxes) == 3
        for a, b in combinations(boxes, 2):
            assert min(min(a[3], b[3]) - max(a[1], b[1]), min(a[4], b[4]) - max(a[2], b[2])) <= 0.5, (a, b)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert violations(browser) == []


@pytest.mark.browser
def test_the_pointer_finds_whose_a_site_is(
    browser: Any, survey: SiteSurvey, town: City, tmp_path: Path
) -> None:
    from selenium.webdriver import ActionChains

    path = sites_map(survey, town).save(tmp_path / "a.html")
    assert path is not None
    visit(browser, path.as_uri())
    seen = set()
    for mark in browser.find_elements("css selector", ".leaflet-sites-pane path.leaflet-interactive"):
        ActionChains(browser).move_to_element(mark).perform()
        tip = browser.find_element("css selector", ".tip")
        assert "Operator" in tip.text
        assert "Rows of the file\n1" in tip.text
        seen.add(tip.find_element("css selector", "h3").text)
        assert not browser.find_elements("css selector", ".leaflet-container img, .leaflet-container script")
    assert {plain_text(HOSTILE[0]), plain_text(HOSTILE[1]), plain_text(HOSTILE[2])} <= seen
    assert len(seen) >= 25  # some lie under others
    assert browser.execute_script("return window.broken") is None
