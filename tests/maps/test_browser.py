"""The page in a real browser, without network: it asks for nothing, complains of nothing, and its switches work."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from geoedge.city import City
from geoedge.maps import city_map, words
from geoedge.maps.levels import LevelScale
from geoedge.maps.view import RunView
from geoedge.results import Results
from geoedge.texts import plain_text
from tests.browser import DESKTOP, PHONE, SIZES, requested, screenshot, settle, shades, violations, visit
from tests.maps.conftest import EAST, HOSTILE, NORTH, make_events

pytestmark = pytest.mark.browser

DRAWN = """
const pane = document.querySelector(`.leaflet-${arguments[0]}-pane`);
const canvas = pane.querySelector("canvas");
if (canvas) {
  const blank = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const drawn = canvas.toDataURL();
  return drawn === blank.toDataURL() ? "" : drawn;
}
return [...pane.querySelectorAll("path, .leaflet-marker-icon")].map((e) => e.outerHTML).join();
"""
SLIDE = """
const slider = document.querySelector("[data-choose=epoch]");
slider.value = arguments[0];
slider.dispatchEvent(new Event("input"));
"""
CHOOSE = """
const list = document.querySelector(`[data-choose=${arguments[0]}]`);
list.value = arguments[1];
list.dispatchEvent(new Event("change"));
"""
BOXES = """
return [...document.querySelectorAll(arguments[0])].map((e) => {
  const r = e.getBoundingClientRect();
  return [e.className, r.left, r.top, r.right, r.bottom];
});
"""


@pytest.fixture(scope="module")
def address(run: Results, town: City, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "map.html"
    assert city_map(run, town).save(path) == path
    assert path.stat().st_size < 5_000_000
    return path.as_uri()


@pytest.fixture
def opened(browser: Any, address: str) -> Callable[..., Any]:
    def show(size: tuple[int, int] = DESKTOP, hash: str = "") -> Any:
        visit(browser, address + hash, size)
        return browser

    return show


def drawn(browser: Any, pane: str) -> str:
    settle(browser)
    return str(browser.execute_script(DRAWN, pane))


def click(browser: Any, selector: str) -> None:
    browser.execute_script("document.querySelector(arguments[0]).click()", selector)


@SIZES
def test_it_asks_for_nothing_and_complains_of_nothing(
    opened: Callable[..., Any], address: str, size: tuple[int, int]
) -> None:
    browser = opened(size)
    for theme in ("ttft", "coverage", "difference", "demand", "crowd", "none", "regions", "people", "places"):
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
        "actions": "actions",
        "hot_places": "outline",
        "people": "people",
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
        "ttft": "Mean time to first token",
        "coverage": "Requests in time",
        "difference": "Real map minus Poisson prediction",
        "demand": "Request density",
        "crowd": "People who asked",
    }
    own = set(legends.values()) - {None, "Cache profile"}
    for theme, legend in legends.items():
        click(browser, f"[data-theme={theme}]")
        seen[theme] = drawn(browser, "surface")
        shown = browser.execute_script(
            "return [...document.querySelectorAll('[data-legend]')].map((e) => e.dataset.legend)"
        )
        assert legend is None or legend in shown
        assert own & set(shown) <= {legend}
    assert len(set(seen.values())) == len(legends)


def clock(browser: Any) -> str:
    return str(browser.execute_script("return document.querySelector('.clock').textContent"))


def test_the_slider_moves_everything_that_depends_on_the_epoch(opened: Callable[..., Any]) -> None:
    browser = opened()
    click(browser, "[data-theme=people]")
    panes = ("surface", "sites", "actions", "ranks", "people")
    late = {pane: drawn(browser, pane) for pane in panes}
    assert clock(browser) == "08:00–09:00"  # the first after the warm-up
    assert late["actions"] != ""  # in which the controller acted
    browser.execute_script(SLIDE, 0)
    assert clock(browser) == "07:00–08:00 (warm-up)"
    early = {pane: drawn(browser, pane) for pane in panes}
    assert early["actions"] == ""
    assert all(early[pane] != late[pane] for pane in panes)
    click(browser, "[data-step='1']")
    assert {pane: drawn(browser, pane) for pane in panes} == late
    for theme in ("coverage", "difference", "demand", "crowd", "ttft"):
        click(browser, f"[data-theme={theme}]")
        now = drawn(browser, "surface")
        browser.execute_script(SLIDE, 0)
        assert drawn(browser, "surface") != now, theme
        browser.execute_script(SLIDE, 1)
        assert drawn(browser, "surface") == now, theme


def test_the_request_type_changes_regions_and_times(opened: Callable[..., Any]) -> None:
    browser = opened()
    for theme in ("regions", "ttft"):
        click(browser, f"[data-theme={theme}]")
        browser.execute_script(CHOOSE, "type", 0)
        first = drawn(browser, "surface")
        browser.execute_script(CHOOSE, "type", 2)
        assert drawn(browser, "surface") != first
        browser.execute_script(CHOOSE, "type", 0)
        assert drawn(browser, "surface") == first


def test_sites_are_coloured_by_what_is_chosen(opened: Callable[..., Any]) -> None:
    browser = opened()
    seen = set()
    for way, legend in enumerate(("Utilisation", "Mean wait", "Requests in time", "Cache profile")):
        browser.execute_script(CHOOSE, "colouring", way)
        seen.add(drawn(browser, "sites"))
        assert browser.find_elements("css selector", f"[data-legend='{legend}']")
    assert len(seen) == 4


def test_the_keyboard_steps_and_plays(opened: Callable[..., Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = opened()
    body = browser.find_element("css selector", "body")
    body.send_keys(Keys.ARROW_LEFT)
    assert clock(browser).startswith("07:00")
    body.send_keys(Keys.ARROW_LEFT)
    assert clock(browser).startswith("07:00")  # there is none before
    body.send_keys(Keys.ARROW_RIGHT)
    assert clock(browser).startswith("08:00")
    slider = browser.find_element("css selector", "[data-choose=epoch]")
    slider.send_keys(Keys.HOME)
    assert clock(browser).startswith("07:00")
    assert slider.get_attribute("aria-valuetext") == "07:00–08:00 (warm-up)"
    body.send_keys(" ")
    play = browser.find_element("css selector", "[data-play]")
    assert play.get_attribute("aria-label") == "Pause"
    deadline = time.monotonic() + 10
    while play.get_attribute("aria-label") == "Pause" and time.monotonic() < deadline:
        time.sleep(0.1)
    assert play.get_attribute("aria-label") == "Play"  # it stops at the end
    assert clock(browser).startswith("08:00")


def test_playing_can_be_stopped_and_begins_again_from_the_end(opened: Callable[..., Any]) -> None:
    browser = opened()
    click(browser, "[data-play]")
    assert clock(browser).startswith("07:00")
    click(browser, "[data-play]")
    time.sleep(1.2)
    assert clock(browser).startswith("07:00")


def test_the_page_finds_the_same_site_as_the_field(
    opened: Callable[..., Any], run: Results, town: City
) -> None:
    browser = opened()
    view = RunView.of(run, town)
    rng = np.random.default_rng(8)
    places = np.array([373_000.0, 4_843_000.0]) + rng.uniform(-50, 850, (300, 2))
    for epoch in range(2):
        for kind in (0, 3):
            script = "return arguments[2].map((place) => surfaces.served(arguments[0], arguments[1], place))"
            found = browser.execute_script(script, epoch, kind, places.tolist())
            owner = np.array([one["site"] for one in found])
            regions = {
                r.site: r.geometry for r in view.regions(town.boundary, 0.0, epoch=epoch, request_type=kind)
            }
            inside = [
                shapely.distance(regions[site], shapely.Point(*place))
                for site, place in zip(owner, places, strict=True)
            ]
            assert np.max(inside) < 1.5 * view.region_cell_m
            rows = run.epochs[run.epochs.epoch == epoch].sort_values("site")
            prefill = view.workload.prefill_time[rows.profile.to_numpy(), kind]
            away = np.linalg.norm(places - run.sites[["x_m", "y_m"]].to_numpy()[owner], axis=1) / 1e3
            radio = view.scenario.radio
            expected = radio.delay_coefficient * away**radio.delay_exponent
            expected += (prefill + rows.advertised_wait_s.to_numpy())[owner]
            np.testing.assert_allclose([one["ttft"] for one in found], expected, rtol=3e-3)


def test_all_types_together_are_the_mean_over_what_is_asked(opened: Callable[..., Any], run: Results) -> None:
    browser = opened(hash="#show=land,ttft")
    lists = "return [...document.querySelectorAll('[data-choose=type] option')].map((e) => e.textContent)"
    assert browser.execute_script(lists) == ["all types", *run.meta["type_names"]]
    assert browser.execute_script("return document.querySelector('[data-choose=type]').value") == "-1"
    together = drawn(browser, "surface")
    places = (np.array([EAST, NORTH]) + np.random.default_rng(3).uniform(0, 800, (60, 2))).tolist()
    epoch, kind = (run.records.column(name).to_numpy() for name in ("epoch", "request_type"))
    script = "return arguments[1].map((place) => surfaces.servedAll(arguments[0], place).ttft)"
    each = "return arguments[2].map((place) => surfaces.served(arguments[0], arguments[1], place).ttft)"
    for at in range(2):
        found = browser.execute_script(script, at, places)
        shares = np.bincount(kind[epoch == at], minlength=4) / np.sum(epoch == at)
        single = [browser.execute_script(each, at, q, places) for q in np.flatnonzero(shares).tolist()]
        np.testing.assert_allclose(found, shares[shares > 0] @ single, rtol=1e-4)
    browser.execute_script(CHOOSE, "type", 1)
    assert drawn(browser, "surface") != together
    browser.execute_script(CHOOSE, "type", -1)
    assert drawn(browser, "surface") == together
    click(browser, "[data-theme=regions]")
    assert (
        browser.execute_script(lists) == run.meta["type_names"]
    )  # a region is of one type: the one asked for most
    assert browser.execute_script("return document.querySelector('[data-choose=type]').value") == "1"


def test_the_pointer_finds_what_all_types_wait(opened: Callable[..., Any]) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(hash="#show=land,ttft")
    where = browser.find_element("css selector", ".page-map")
    ActionChains(browser).move_to_element_with_offset(where, 15, 20).perform()
    text = browser.find_element("css selector", ".probe").text
    assert text.startswith("First token after\nAll types\n")
    assert "navigation, 5" in text  # half of all requests, and served by a site with a name
    assert text.count(" %") == 3  # nobody asks for the third


def test_the_pointer_finds_numbers_with_units(opened: Callable[..., Any]) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(hash="#show=land,regions&type=0")
    where = browser.find_element("css selector", ".page-map")
    seen = {}
    for theme in ("regions", "ttft", "coverage", "difference", "demand", "crowd"):
        click(browser, f"[data-theme={theme}]")
        for step in (0, 7):
            ActionChains(browser).move_to_element_with_offset(where, 15 + step, 20).perform()
        seen[theme] = browser.find_element("css selector", ".probe").text
    for theme in ("regions", "ttft"):
        assert all(
            name in seen[theme] for name in ("Profile", "Distance", "Wait advertised", "First token after")
        )
        assert " m\n" in seen[theme]
    for theme in ("coverage", "difference", "demand", "crowd"):
        assert "Poisson prediction" in seen[theme]
        assert "/km²" in seen[theme]
        assert " points" in seen[theme]
        assert "requests/(s km²)" in seen[theme]


def test_words_and_numbers_of_the_page_are_those_of_python(opened: Callable[..., Any]) -> None:
    browser = opened()
    values = [0.0, 1e-5, 0.00123, 0.0456, 0.9994, 0.9996, 1.0, 3.14159, 12.345, 123.4, 999.4, 1234.6, 98765.0]
    for name, python in {
        "seconds": words.seconds,
        "percent": words.percent,
        "points": words.points,
        "bytes": words.byte_count,
        "clock": words.clock,
    }.items():
        given = [1e4 * v for v in values] if name in ("bytes", "clock") else values
        found = browser.execute_script(f"return arguments[0].map((v) => codec.{name}(v))", given)
        assert found == [python(v) for v in given], name
    found = browser.execute_script("return arguments[0].map((v) => codec.rate(v, '/s'))", values)
    assert found == [words.rate(v, "/s") for v in values]
    assert browser.execute_script(
        "return [codec.seconds(NaN), codec.seconds(Infinity), codec.percent(NaN)]"
    ) == [
        "–",
        "unbounded",
        "–",
    ]


def test_numbers_come_back_as_python_wrote_them(opened: Callable[..., Any], run: Results) -> None:
    browser = opened()
    for scale in (LevelScale(0.0, 1.0), LevelScale(1e-4, 50.0, log=True)):
        values = [0.0, 0.1234, 0.5, 1.0]
        back = browser.execute_script(
            "return [...codec.numbers(arguments[0], arguments[1])]", scale.encode(values), scale.described()
        )
        np.testing.assert_allclose(back, values, rtol=2e-3, atol=1e-4)
    odd = browser.execute_script(
        "return [...codec.numbers(arguments[0], arguments[1])].map(String)",
        LevelScale.shares().encode([np.nan, np.inf]),
        LevelScale.shares().described(),
    )
    assert odd == ["NaN", "Infinity"]


def test_a_click_on_a_site_opens_its_charts(opened: Callable[..., Any], run: Results) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser = opened(hash="#show=land,sites")
    card = browser.find_element("css selector", "#card")
    assert not card.is_displayed()
    path = browser.find_elements("css selector", ".leaflet-sites-pane path.leaflet-interactive")[0]
    ActionChains(browser).move_to_element(path).click().perform()
    assert card.is_displayed()
    assert card.find_element("css selector", "h2").text == run.sites["name"][0]
    charts = card.find_elements("css selector", "svg[role=img]")
    assert len(charts) == 4
    assert all(chart.get_attribute("aria-label") for chart in charts)
    assert "Erlang" in card.text
    before = card.text
    browser.execute_script(SLIDE, 0)
    assert card.text != before  # its numbers follow the epoch
    assert browser.execute_script("return document.activeElement.id") == "card-title"
    browser.find_element("css selector", "#card h2").send_keys(Keys.ESCAPE)
    assert not card.is_displayed()


def test_charts_open_without_a_pointer_too(opened: Callable[..., Any], run: Results) -> None:
    browser = opened()
    browser.execute_script(CHOOSE, "site", 1)
    card = browser.find_element("css selector", "#card")
    assert card.find_element("css selector", "h2").text == run.sites["name"][1]
    assert "replicate" in card.text
    browser.execute_script(CHOOSE, "site", 5)
    assert "No request was served here" in card.text


def test_what_moved_says_why(opened: Callable[..., Any]) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(hash="#show=land,actions&epoch=1")
    moved = browser.find_elements("css selector", ".leaflet-actions-pane path.move")
    assert len(moved) == 5  # a ring for a copy, two rings and two arrows for an exchange
    badge = browser.find_element("css selector", ".glyph")
    ActionChains(browser).move_to_element(badge).perform()
    text = browser.find_element("css selector", ".tip").text
    for words_of_it in (
        "replicate",
        "2.1 GB",
        "08:00",
        "+1.2 points",
        "+0.9 points",
        "expected coverage 0.80 -> 0.81",
    ):
        assert words_of_it in text
    assert "<b>agent</b>" in text
    listed = browser.find_elements("css selector", "#ranking button")
    assert [one.text.split("\n")[-1] for one in listed] == [
        "+1.2 points",
        "+0.1 points",
    ]  # without a pointer, too
    browser.execute_script(SLIDE, 0)
    assert browser.find_elements("css selector", "#ranking button") == []


def test_a_tip_is_never_cut_off(opened: Callable[..., Any], run: Results) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(hash="#show=land,sites,actions&epoch=1")
    shown = 0
    for path in browser.find_elements("css selector", "path.leaflet-interactive"):
        ActionChains(browser).move_to_element(path).perform()
        for _, left, top, right, bottom in browser.execute_script(BOXES, ".leaflet-tooltip.tip"):
            (frame,) = browser.execute_script(BOXES, ".page-map")
            assert frame[1] <= left
            assert right <= frame[3]
            assert frame[2] <= top
            assert bottom <= frame[4]
            shown += 1
    assert shown >= len(run.sites)


def test_events_are_drawn_and_told(
    browser: Any, opened: Callable[..., Any], run: Results, town: City, tmp_path: Path
) -> None:
    path = city_map(run.with_tables(events=make_events()), town).save(tmp_path / "events.html")
    assert path is not None
    browser.get(path.as_uri() + "#show=land,events&epoch=1")
    settle(browser)
    assert len(browser.find_elements("css selector", ".leaflet-actions-pane path.event")) == 3
    facts = browser.find_element("css selector", ".facts").text
    assert "Crowd" in facts
    assert "Sites fail" in facts
    assert len(browser.find_elements("css selector", "#ranking button")) == 2
    browser.execute_script(SLIDE, 0)
    assert browser.find_elements("css selector", ".leaflet-actions-pane path.event") == []
    click(browser, "#ranking button")
    assert clock(browser) == "08:00–09:00"
    assert browser.execute_script("return window.broken") is None


def test_dark_and_light_differ_and_both_are_remembered_by_the_address(opened: Callable[..., Any]) -> None:
    browser = opened(hash="#scheme=dark")
    dark = (
        browser.execute_script("return getComputedStyle(document.body).backgroundColor"),
        drawn(browser, "land"),
    )
    click(browser, "#scheme")
    light = (
        browser.execute_script("return getComputedStyle(document.body).backgroundColor"),
        drawn(browser, "land"),
    )
    assert dark[0] != light[0]
    assert dark[1] != light[1]


def test_the_address_opens_a_view(opened: Callable[..., Any]) -> None:
    browser = opened(hash="#show=land,demand&epoch=0")
    assert browser.execute_script("return document.querySelector('[data-choose=epoch]').value") == "0"
    assert browser.execute_script("return document.querySelector('[data-theme=demand]').checked")
    assert drawn(browser, "sites") == ""


def test_hostile_names_stay_text(opened: Callable[..., Any], run: Results) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(hash="#show=sites")
    titles, told = [], ""
    for path in browser.find_elements("css selector", ".leaflet-sites-pane path.leaflet-interactive"):
        ActionChains(browser).move_to_element(path).perform()
        titles += [title.text for title in browser.find_elements("css selector", ".tip h3")]
        told += browser.find_element("css selector", ".tip").text
        assert not browser.find_elements("css selector", ".leaflet-container img, .leaflet-container script")
    assert all(f"Street\n{plain_text(street)}" in told for street in run.streets if street)
    assert told.count("Street\n") == sum(map(bool, run.streets))
    assert run.sites["name"][0] in titles
    assert run.sites["name"][1] in titles
    assert "Site 5" in titles
    assert browser.execute_script("return window.broken") is None
    assert "<script>" in browser.find_element("css selector", "h1").text
    assert browser.title == run.meta["title"]


def test_names_of_places_stay_text_and_leave_each_other_room(opened: Callable[..., Any], town: City) -> None:
    from selenium.webdriver import ActionChains

    browser = opened(hash="#show=land,places")
    named = {name.text for name in browser.find_elements("css selector", ".place-name")}
    plain = [plain_text(name, 40) for name in town.places.name]
    assert named == {plain[0], plain[1], plain[3], plain[4]}  # the shop has to wait until the map is nearer
    boxes = browser.execute_script(BOXES, ".place-name")
    for a, b in combinations(boxes, 2):
        assert min(min(a[3], b[3]) - max(a[1], b[1]), min(a[4], b[4]) - max(a[2], b[2])) <= 0, (a, b)
    leaflet = browser.find_element("css selector", ".page-map").get_attribute("id")
    lon, lat = town.to_lonlat(town.places.xy[2:3])[0].tolist()
    browser.execute_script(f"{leaflet}.setView(arguments[0], 18, {{ animate: false }})", [lat, lon])
    settle(browser)  # small places come after the names of streets
    near = {name.text for name in browser.find_elements("css selector", ".place-name")}
    assert plain[2] in near
    for dot in browser.find_elements("css selector", ".leaflet-places-pane path"):
        ActionChains(browser).move_to_element(dot).perform()
        assert browser.find_element("css selector", ".tip h3").text in near
    assert not browser.find_elements("css selector", ".leaflet-container img, .leaflet-container script")
    assert browser.execute_script("return window.broken") is None


def test_names_of_types_profiles_and_events_stay_text(
    browser: Any, run: Results, town: City, tmp_path: Path
) -> None:
    names = {"type_names": list(HOSTILE[:4]), "profile_names": list(HOSTILE[1:5])}
    told = replace(run, meta=run.meta | names).with_tables(events=make_events())
    path = city_map(told, town).save(tmp_path / "hostile.html")
    assert path is not None
    for size in (DESKTOP, PHONE):
        visit(
            browser, f"{path.as_uri()}#show=land,ttft,sites,actions,events&epoch=1&site=1&colouring=3", size
        )
        assert browser.execute_script("return window.broken") is None
        assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
        assert not browser.find_elements("css selector", "body b, body img, body script:not(body > script)")
        seen = browser.execute_script("return document.body.innerText")
        for name in (*HOSTILE[:5], "<img src=x"):
            assert plain_text(name)[:12] in seen, name
    visit(browser, f"{path.as_uri()}#show=land,ttft")
    listed = browser.execute_script(
        "return [...document.querySelectorAll('[data-choose=type] option')].map((e) => e.text)"
    )
    assert listed[1:] == [plain_text(name) for name in HOSTILE[:4]]


def test_badges_of_hot_sites_do_not_hide_each_other(opened: Callable[..., Any]) -> None:
    browser = opened(hash="#show=land,hot_sites")
    boxes = browser.execute_script(BOXES, ".rank")
    assert len(boxes) >= 4
    for a, b in combinations(boxes, 2):
        away = np.hypot((a[1] + a[3] - b[1] - b[3]) / 2, (a[2] + a[4] - b[2] - b[4]) / 2)
        assert away >= (a[3] - a[1] + b[3] - b[1]) / 2 - 1


def test_on_a_phone_the_charts_leave_the_map_and_the_slider_in_sight(opened: Callable[..., Any]) -> None:
    browser = opened(PHONE, "#site=1")
    (card,) = browser.execute_script(BOXES, "#card")
    for _, _, top, _, bottom in browser.execute_script(BOXES, ".page-map, .page-time"):
        assert bottom <= card[2] + 0.5
        assert bottom - top >= 60
    assert card[4] - card[2] >= 0.4 * PHONE[1]


def test_the_policy_stops_scripts_that_are_not_the_pages_own(opened: Callable[..., Any]) -> None:
    browser = opened()
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken=9\">')"
    )
    time.sleep(0.3)
    assert browser.execute_script("return window.broken") is None


@SIZES
def test_nothing_covers_anything_and_nothing_sticks_out(
    opened: Callable[..., Any], size: tuple[int, int]
) -> None:
    browser = opened(size)
    frame = browser.execute_script(BOXES, ".page-head, .page-map, .page-time, .page-side")
    on_map = browser.execute_script(BOXES, ".leaflet-control-zoom, .leaflet-control-scale, .credit")
    assert (len(frame), len(on_map)) == (4, 3)
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


@SIZES
@pytest.mark.parametrize("hash", ["#", "#scheme=dark&site=1", "#show=land,ttft,sites,actions,people&site=2"])
def test_axe_finds_nothing_that_keeps_anybody_out(
    opened: Callable[..., Any], size: tuple[int, int], hash: str
) -> None:
    assert violations(opened(size, hash)) == []


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


def test_the_screenshot_shows_a_map(opened: Callable[..., Any]) -> None:
    pixels = screenshot(opened())
    assert pixels.shape[:2] == (800, 1280)
    assert shades(pixels[::4, :940:4]) > 50
