"""Ground from a tile server: only where it is asked for, only from that host, credited, and never needed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from geoedge.city import City
from geoedge.errors import OutputError
from geoedge.maps import city_map
from geoedge.maps.tiles import EXAMPLE, Tiles
from geoedge.results import Results
from tests.browser import requested, violations, visit
from tests.maps.test_browser import click, drawn

ADDRESS, CREDIT = "https://tiles.example/{z}/{x}/{y}.png", "Tiles by Example & <b>Sons</b>"
ONE_PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs="
ANSWER = f"""
const real = Object.getOwnPropertyDescriptor(HTMLImageElement.prototype, "src");
window.asked = [];
Object.defineProperty(HTMLImageElement.prototype, "src", {{
  get: real.get,
  set(value) {{
    if (value.startsWith("https://tiles.example/")) window.asked.push(value);
    real.set.call(this, value.startsWith("https:") ? "{ONE_PIXEL}" : value);
  }},
}});
"""


@pytest.fixture(scope="module")
def address(run: Results, town: City, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tiles") / "map.html"
    city_map(run, town, tiles=ADDRESS, tiles_credit=CREDIT).save(path)
    return path.as_uri()


def rules(html: str) -> str:
    found = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert found is not None
    return found[1]


def test_nothing_is_allowed_unless_asked_for(run: Results, town: City) -> None:
    plain = city_map(run, town).to_html()
    asked = city_map(run, town, tiles=ADDRESS, tiles_credit=CREDIT).to_html()
    assert "img-src data:; " in rules(plain)
    assert "tiles.example" not in plain
    assert "img-src data: https://tiles.example; " in rules(asked)
    assert rules(asked).count("https:") == 1
    assert "loads nothing from outside" in plain
    assert "loads nothing from outside" not in asked


def test_what_an_address_allows() -> None:
    assert Tiles.of(EXAMPLE).source == "https://tile.openstreetmap.org"
    assert Tiles.of(EXAMPLE).credit[0][0] == "© OpenStreetMap contributors"
    assert Tiles.of(EXAMPLE, "somebody else").credit == (("somebody else", ""),)
    spread = Tiles.of("https://{s}.tiles.example:8443/a/{z}/{y}/{x}{r}.jpg?key=A1-b", CREDIT)
    assert spread.source == "https://*.tiles.example:8443"


@pytest.mark.parametrize(
    "wrong",
    [
        "http://tiles.example/{z}/{x}/{y}.png",
        "https://tiles.example/{z}/{x}.png",
        "tiles.example/{z}/{x}/{y}.png",
        "https://*/{z}/{x}/{y}.png",
        "https://tiles.example; script-src */{z}/{x}/{y}.png",
        'https://tiles.example/{z}/{x}/{y}.png" onload="x()',
        "https://tiles.example/{z}/{x}/{y}.png\nmore",
        "https://user:word@tiles.example/{z}/{x}/{y}.png",
        "https://tiles.example/{{ 7*7 }}/{z}/{x}/{y}.png",
        "",
    ],
)
def test_another_address_is_refused_in_one_line(wrong: str, run: Results, town: City) -> None:
    with pytest.raises(
        OutputError, match=r"^map: `tiles` is .*; give an https address with \{z\}, \{x\} and \{y\}"
    ) as e:
        city_map(run, town, tiles=wrong, tiles_credit="x")
    assert "\n" not in str(e.value)


def test_tiles_of_nobody_are_refused() -> None:
    with pytest.raises(OutputError, match=r"`tiles_credit` is missing for tiles from tiles\.example"):
        Tiles.of(ADDRESS)


@pytest.mark.browser
def test_without_network_the_page_goes_on_without_tiles(browser: Any, address: str) -> None:
    visit(browser, address)
    time.sleep(1.0)
    outside = [url for url in requested(browser) if not url.startswith(("data:", address))]
    assert len(outside) == 1  # one tile is tried, and no more
    assert outside[0].startswith("https://tiles.example/")
    assert len(browser.get_log("browser")) <= 1  # of which the browser itself complains
    assert "cannot be reached" in browser.find_element("css selector", "#controls").text
    assert drawn(browser, "land")
    before = drawn(browser, "surface")
    click(browser, "[data-theme=ttft]")
    assert drawn(browser, "surface") != before
    assert browser.execute_script("return document.querySelector('.page-map').dataset.tiles") is None
    assert violations(browser) == []


@pytest.fixture
def answered(browser: Any) -> Iterator[Any]:
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": ANSWER})
    yield browser
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


@pytest.mark.browser
def test_tiles_lie_under_everything_and_can_be_switched_off(answered: Any, address: str) -> None:
    count = "return document.querySelectorAll('.leaflet-tiles-pane img').length"
    visit(answered, address)
    time.sleep(0.5)
    assert answered.execute_script(count) >= 4
    asked = answered.execute_script("return window.asked")
    assert all(re.fullmatch(r"https://tiles\.example/\d+/\d+/\d+\.png", one) for one in asked)
    assert (
        answered.execute_script(
            "return getComputedStyle(document.querySelector('.leaflet-land-pane')).opacity"
        )
        < "1"
    )
    assert (
        answered.find_element("css selector", ".credit")
        .text.replace("\n", " ")
        .endswith(f"; tiles: {CREDIT}")
    )
    click(answered, "[data-theme=tiles]")
    assert answered.execute_script(count) == 0
    assert (
        answered.execute_script(
            "return getComputedStyle(document.querySelector('.leaflet-land-pane')).opacity"
        )
        == "1"
    )
    click(answered, "[data-theme=tiles]")
    assert answered.execute_script(count) >= 4
    assert answered.get_log("browser") == []


@pytest.mark.browser
def test_the_policy_stops_every_other_host(browser: Any, address: str) -> None:
    visit(browser, address)
    stopped = """
    const done = arguments[1];
    document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective), { once: true });
    const picture = new Image();
    picture.onerror = () => setTimeout(() => done("asked"), 300);
    picture.src = arguments[0];
    """
    assert browser.execute_async_script(stopped, "https://elsewhere.example/0/0/0.png") == "img-src"
    assert browser.execute_async_script(stopped, "https://tiles.example/0/0/0.png") == "asked"
