"""The page in a real browser, without network: it asks for nothing, complains of nothing, and its switches work."""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from geoedge.city import City
from geoedge.maps import city_map
from geoedge.results import Results

pytestmark = pytest.mark.browser

DESKTOP, PHONE = (1280, 800), (400, 800)
DRAWN = """
const pane = document.querySelector(`.leaflet-${arguments[0]}-pane`);
const canvas = pane.querySelector("canvas");
if (canvas) {
  const blank = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const drawn = canvas.toDataURL();
  return drawn === blank.toDataURL() ? "" : drawn;
}
return [...pane.querySelectorAll("path, .rank")].map((e) => e.outerHTML).join();
"""
BOXES = """
return [...document.querySelectorAll(arguments[0])].map((e) => {
  const r = e.getBoundingClientRect();
  return [e.className, r.left, r.top, r.right, r.bottom];
});
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        reason = "needs chromium and chromedriver; install both to run it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND")  # no name resolves: the machine is cut off
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    session = webdriver.Chrome(options=options, service=Service(executable_path=driver))
    yield session
    session.quit()


@pytest.fixture(scope="module")
def address(run: Results, town: City, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "map.html"
    assert city_map(run, town).save(path) == path
    assert path.stat().st_size < 5_000_000
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Callable[..., Any]:
    def show(size: tuple[int, int] = DESKTOP, hash: str = "") -> Any:
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.get("about:blank")
        for kind in ("browser", "performance"):
            browser.get_log(kind)
        browser.get(address + hash)
        settle(browser)
        return browser

    return show


def settle(browser: Any) -> None:
    """Wait until what the script asked for is drawn."""
    browser.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


def drawn(browser: Any, pane: str) -> str:
    settle(browser)
    return str(browser.execute_script(DRAWN, pane))


def click(browser: Any, selector: str) -> None:
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


def requested(browser: Any) -> list[str]:
    entries = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [e["params"]["request"]["url"] for e in entries if e["method"] == "Network.requestWillBeSent"]


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_asks_for_nothing_and_complains_of_nothing(
    opened: Callable[..., Any], address: str, size: tuple[int, int]
) -> None:
    browser = opened(size)
    for theme in ("coverage", "difference", "demand", "none", "regions"):
        click(browser, f"[data-theme={theme}]")
    time.sleep(0.3)
    assert browser.get_log("browser") == []
    outside = [url for url in requested(browser) if not url.startswith(("data:", address))]
    assert outside == []


def test_every_switch_changes_what_is_drawn_and_back(opened: Callable[..., Any]) -> None:
    browser = opened()
    for theme, pane in {
        "sites": "sites",
        "hot_sites": "ranks",
        "hot_places": "outline",
        "streets": "streets",
        "land": "land",
    }.items():
        before = drawn(browser, pane)
        click(browser, f"[data-theme={theme}]")
        after = drawn(browser, pane)
        assert after != before, theme
        click(browser, f"[data-theme={theme}]")
        assert drawn(browser, pane) == before, theme


def test_surfaces_exclude_each_other_and_each_brings_its_legend(opened: Callable[..., Any]) -> None:
    browser = opened()
    seen = {}
    legends = {
        "none": None,
        "regions": "Cache profile",
        "coverage": "Requests in time",
        "difference": "Real map minus Poisson prediction",
        "demand": "Request density",
    }
    for theme, legend in legends.items():
        click(browser, f"[data-theme={theme}]")
        seen[theme] = drawn(browser, "surface")
        shown = browser.execute_script(
            "return [...document.querySelectorAll('[data-legend]')].map((e) => e.dataset.legend)"
        )
        assert legend is None or legend in shown
        assert {"Requests in time", "Request density"} & set(shown) <= {legend}
    assert len(set(seen.values())) == len(legends)


def test_the_epoch_and_the_request_type_change_the_regions(opened: Callable[..., Any]) -> None:
    browser = opened()
    regions, sites = drawn(browser, "surface"), drawn(browser, "sites")
    chosen = "return document.querySelector('[data-choose=epoch]').selectedOptions[0].textContent"
    assert browser.execute_script(chosen) == "08:00–09:00"  # the first after the warm-up
    assert drawn(browser, "actions") != ""  # in which the controller acted
    click(browser, "[data-step='-1']")
    assert browser.execute_script(chosen) == "07:00–08:00 (warm-up)"
    assert drawn(browser, "surface") != regions
    assert drawn(browser, "sites") != sites
    assert drawn(browser, "actions") == ""
    click(browser, "[data-step='1']")
    assert drawn(browser, "surface") == regions
    browser.execute_script(
        "const s = document.querySelector('[data-choose=type]'); s.value = 2; s.dispatchEvent(new Event('change'))"
    )
    assert drawn(browser, "surface") != regions


def test_the_address_opens_a_view(opened: Callable[..., Any]) -> None:
    browser = opened(hash="#show=land,demand&epoch=0")
    assert browser.execute_script("return document.querySelector('[data-choose=epoch]').value") == "0"
    assert browser.execute_script("return document.querySelector('[data-theme=demand]').checked")
    assert drawn(browser, "sites") == ""


def test_hostile_names_stay_text(opened: Callable[..., Any], run: Results) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(hash="#show=sites")
    titles = []
    for path in browser.find_elements("css selector", ".leaflet-sites-pane path.leaflet-interactive"):
        ActionChains(browser).move_to_element(path).perform()
        titles += [title.text for title in browser.find_elements("css selector", ".tip h3")]
        assert not browser.find_elements("css selector", ".leaflet-container img, .leaflet-container script")
    assert run.sites["name"][0] in titles
    assert run.sites["name"][1] in titles
    assert "Site 5" in titles
    assert browser.execute_script("return window.broken") is None
    assert "<script>" in browser.find_element("css selector", "h1").text
    assert browser.title == run.meta["title"]


def test_the_policy_stops_scripts_that_are_not_the_pages_own(opened: Callable[..., Any]) -> None:
    browser = opened()
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken=9\">')"
    )
    time.sleep(0.3)
    assert browser.execute_script("return window.broken") is None


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_covers_anything_and_nothing_sticks_out(
    opened: Callable[..., Any], size: tuple[int, int]
) -> None:
    browser = opened(size)
    frame = browser.execute_script(BOXES, ".page-head, .page-map, .page-side")
    on_map = browser.execute_script(BOXES, ".leaflet-control-zoom, .leaflet-control-scale, .credit")
    assert len(frame) == len(on_map) == 3
    for boxes in (frame, on_map):
        for a, b in combinations(boxes, 2):
            overlap = min(a[3], b[3]) - max(a[1], b[1]), min(a[4], b[4]) - max(a[2], b[2])
            assert min(overlap) <= 0.5, (a, b)
    for _, left, top, right, bottom in [*frame, *on_map]:
        assert left >= -0.5
        assert top >= -0.5
        assert right <= size[0] + 0.5
        assert bottom <= size[1] + 0.5
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    wide = "return document.querySelector('.page-side').scrollWidth - document.querySelector('.page-side').clientWidth"
    assert browser.execute_script(wide) <= 0
    assert frame[1][3] - frame[1][1] >= 0.7 * min(size)


def test_the_credit_is_on_the_map_and_readable(opened: Callable[..., Any]) -> None:
    browser = opened(PHONE)
    credit = browser.find_element("css selector", ".page-map .credit")
    assert credit.text.replace("\n", " ") == (
        "© OpenStreetMap contributors, data available under the Open Database License (ODbL) 1.0; extract of 2016-03-05"
    )
    links = [link.get_attribute("href") for link in credit.find_elements("css selector", "a")]
    assert links == [
        "https://www.openstreetmap.org/copyright",
        "https://opendatacommons.org/licenses/odbl/1-0/",
    ]


def test_the_screenshot_shows_a_map(opened: Callable[..., Any], tmp_path: Path) -> None:
    from matplotlib.image import imread

    browser = opened()
    (tmp_path / "shot.png").write_bytes(base64.b64decode(browser.get_screenshot_as_base64()))
    pixels = imread(tmp_path / "shot.png")[..., :3]
    assert pixels.shape[:2] == (800, 1280)
    shades = {tuple(pixel) for pixel in (pixels[::4, :940:4] * 255).round().astype(int).reshape(-1, 3)}
    assert len(shades) > 50
