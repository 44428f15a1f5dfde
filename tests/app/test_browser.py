"""The app in a real browser that reaches this machine alone: it renders, steps, changes, and complains of nothing."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.app.conftest import PROFILE, TITLE
from tests.browser import PHONE, chromium, requested, resize, screenshot, shades, violations
from tests.maps.conftest import HOSTILE

pytestmark = pytest.mark.browser

DESKTOP = (1280, 900)
PATIENCE_S = 150.0
"""Kernels may have to be compiled on the way."""
CLICK = """
const all = [...document.querySelectorAll("button")];
const found = all.find((e) => e.textContent.trim().toLowerCase() === arguments[0] && !e.disabled);
if (found) found.click();
return Boolean(found);
"""
FACTS = """
const facts = [...document.querySelectorAll(".ge-facts .fact")];
return Object.fromEntries(facts.map((e) => [e.children[1].textContent.split(",")[0], e.children[0].textContent]));
"""
LINES = """
return [...document.querySelectorAll(".ge-card svg")].map(
  (e) => (e.querySelector(".line.main")?.getAttribute("d") ?? "").split(/[ML]/).length - 1);
"""
BOXES = """
return [...document.querySelectorAll(arguments[0])].map((e) => {
  const r = e.getBoundingClientRect();
  return [r.left, r.top, r.right, r.bottom];
});
"""
ALARMS = """
return [...document.querySelectorAll(".v-alert")].map((e) => e.textContent.trim()).filter(Boolean);
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the town's app is served, by a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name("town_server.py"))]
    home = Path(__file__).parents[2]
    with subprocess.Popen(
        command, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as town:
        assert town.stdout is not None
        assert town.stderr is not None
        try:
            found = next(filter(None, (re.search(r"http://\S+/", line) for line in town.stdout)), None)
            assert found, town.stderr.read()
            yield found[0]
        finally:
            town.send_signal(signal.SIGINT)  # as Ctrl-C does
            complaints = town.communicate(timeout=60)[1]
    assert (town.returncode, complaints) == (0, "")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser that reaches this machine alone."""
    with chromium("127.0.0.1") as session:
        yield session


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Any:
    """The page, opened once; tests go on from where the last one left it."""
    return opened(browser, address, DESKTOP)


def opened(browser: Any, address: str, size: tuple[int, int]) -> Any:
    resize(browser, size)
    browser.get(address)
    until(lambda: browser.execute_script("return document.querySelectorAll('.ge-card svg').length == 4"))
    until(lambda: clickable(browser, "step"))
    return browser


def until(true: Callable[[], Any]) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.05)


def clickable(browser: Any, words: str) -> bool:
    script = CLICK.replace("if (found) found.click();", "")
    return bool(browser.execute_script(script, words))


def click(browser: Any, words: str) -> None:
    until(lambda: browser.execute_script(CLICK, words))


def facts(browser: Any) -> dict[str, str]:
    found: dict[str, str] = browser.execute_script(FACTS)
    return found


def step_to(browser: Any, clock: str) -> None:
    click(browser, "step")
    until(lambda: facts(browser).get("time") == clock)


def slider(browser: Any, label: str) -> Any:
    """Return the handle of the slider whose label begins so."""
    found = [
        e
        for e in browser.find_elements("css selector", ".v-input__slider")
        if e.find_element("css selector", "label").text.startswith(label)
    ]
    return found[0].find_element("css selector", "[role=slider]")


def slide(browser: Any, label: str, keys: str) -> None:
    """Move the slider whose label begins so by the keyboard."""
    slider(browser, label).send_keys(keys)


def labels(browser: Any) -> list[str]:
    return [e.text for e in browser.find_elements("css selector", ".v-input__slider label")]


def field(browser: Any, label: str) -> Any:
    """Return the control whose label is this."""
    found = browser.find_elements("css selector", ".v-text-field")
    return next(e for e in found if e.find_element("css selector", "label").text == label)


def choose(browser: Any, label: str, value: str) -> None:
    """Choose a value from the list whose label is this."""
    field(browser, label).find_element("css selector", "[role=button]").click()
    script = """
    const found = [...document.querySelectorAll(".menuable__content__active .v-list-item")]
      .find((e) => e.textContent.trim() === arguments[0]);
    if (found) found.click();
    return Boolean(found);
    """
    until(lambda: browser.execute_script(script, value))


def write(browser: Any, label: str, words: str) -> None:
    """Write into the field whose label is this, in place of what stands there."""
    from selenium.webdriver.common.keys import Keys

    place = field(browser, label).find_element("css selector", "input")
    place.send_keys(Keys.CONTROL + "a" + Keys.NULL + words + Keys.TAB)


def test_it_opens_with_everything_on_it(page: Any) -> None:
    assert facts(page)["time"] == "16:45"
    assert page.title == TITLE
    assert len(page.find_elements("css selector", ".ge-over .site")) == len(HOSTILE)
    assert page.execute_script(LINES) == [0, 0, 0, 0]
    assert "Load: 100 %" in labels(page)
    assert "Number of sites: 100 %" in labels(page)
    assert drawer(page)[0] >= 0


def test_a_step_advances_clock_and_charts(page: Any) -> None:
    before = page.execute_script("return document.querySelector('.ge-over').innerHTML")
    step_to(page, "16:46")
    step_to(page, "16:47")
    until(lambda: page.execute_script(LINES) == [2, 2, 2, 0])
    assert page.execute_script("return document.querySelector('.ge-over').innerHTML") != before
    fills = {e.value_of_css_property("fill") for e in page.find_elements("css selector", ".ge-over .site")}
    assert len(fills) > 1


def test_it_plays_and_stops(page: Any) -> None:
    click(page, "▶")
    until(lambda: facts(page)["time"] > "16:50")
    click(page, "❚❚")
    until(lambda: clickable(page, "step"))
    time.sleep(1.0)  # a step that has begun is made
    stopped = facts(page)["time"]
    time.sleep(0.5)
    assert facts(page)["time"] == stopped


def test_colours_follow_what_one_chooses(page: Any) -> None:
    before = page.find_element("css selector", ".ge-legend").text
    click(page, "wait")
    until(lambda: "Mean wait [s]" in page.find_element("css selector", ".ge-legend").text)
    assert "Utilisation [%]" in before
    click(page, "utilisation")


def test_a_slider_makes_the_model_anew(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    slide(page, "Number of sites", Keys.ARROW_LEFT * 10)
    until(lambda: len(page.find_elements("css selector", ".ge-over .site")) == 3)
    until(lambda: facts(page)["time"] == "16:45")
    assert page.execute_script(LINES) == [0, 0, 0, 0]
    step_to(page, "16:46")


def test_real_sites_cannot_become_more_and_those_of_a_process_can(page: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    def standing(share: int) -> bool:
        return f"Number of sites: {share} %" in labels(page)

    slide(page, "Number of sites", Keys.ARROW_RIGHT * 20)
    until(lambda: standing(100))
    until(lambda: len(page.find_elements("css selector", ".ge-over .site")) == 6)
    assert slider(page, "Number of sites").get_attribute("aria-valuemax") == "1"
    choose(page, "Where sites stand", "lattice")
    until(lambda: slider(page, "Number of sites").get_attribute("aria-valuemax") == "2")
    slide(page, "Number of sites", Keys.ARROW_RIGHT * 10)
    until(lambda: standing(150))
    until(lambda: len(page.find_elements("css selector", ".ge-over .site")) > 6)
    choose(page, "Where sites stand", "as given")
    until(lambda: standing(100))
    until(lambda: len(page.find_elements("css selector", ".ge-over .site")) == 6)
    assert page.execute_script(ALARMS) == []


def test_what_does_not_fit_is_one_line_and_can_be_mended(page: Any) -> None:
    write(page, "Seed", "x")
    until(lambda: page.execute_script(ALARMS))
    (alarm,) = page.execute_script(ALARMS)
    assert alarm.startswith("seed = 'x': must be a whole number")
    assert "Traceback" not in page.execute_script("return document.body.innerText")
    click(page, "reset")
    time.sleep(0.3)
    assert page.execute_script(ALARMS) == [alarm]
    write(page, "Seed", "3")
    until(lambda: page.execute_script(ALARMS) == [])
    assert len(page.find_elements("css selector", ".ge-over .site")) == 6
    step_to(page, "16:46")


def test_reset_begins_again_and_the_end_is_an_end(page: Any) -> None:
    click(page, "reset")
    until(lambda: facts(page)["time"] == "16:45")
    click(page, "▶")
    until(lambda: facts(page)["time"] == "17:30")
    until(lambda: not clickable(page, "step"))
    assert "time, over" in page.find_element("css selector", ".ge-facts").text
    assert page.execute_script("return document.querySelectorAll('.ge-card .column').length") == 3
    click(page, "reset")
    until(lambda: facts(page)["time"] == "16:45")
    step_to(page, "16:46")


def test_names_stay_text(page: Any) -> None:
    assert page.execute_script("return window.broken") is None
    assert not page.find_elements("css selector", ".ge-page img, .ge-page script, .v-card img")
    titles = page.execute_script(
        "return [...document.querySelectorAll('.ge-over .site title')].map((e) => e.textContent)"
    )
    assert titles[0].startswith(HOSTILE[0])
    assert PROFILE in page.find_element("css selector", ".ge-legend").text
    assert "<script>" in page.find_element("css selector", ".v-app-bar").text


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_nothing_covers_anything_and_nothing_sticks_out(page: Any, size: tuple[int, int]) -> None:
    resize(page, size)
    until(lambda: page.execute_script("return document.documentElement.clientWidth") == size[0])
    time.sleep(0.6)  # the sidebar slides
    boxes = page.execute_script(BOXES, ".ge-facts, .ge-map, .ge-credit, .ge-choose, .ge-legend, .ge-card")
    assert len(boxes) == 9
    for a, b in combinations(boxes, 2):
        overlap = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        assert min(overlap) <= 0.5, (a, b)
    for left, _, right, _ in boxes:
        assert left >= -0.5
        assert right <= size[0] + 0.5
    (frame,) = page.execute_script(BOXES, ".ge-map")
    assert frame[2] - frame[0] >= 0.33 * size[0]
    pixels = screenshot(page)
    assert pixels.shape[:2] == (size[1], size[0])
    inside = pixels[int(frame[1]) : min(int(frame[3]), size[1]), int(frame[0]) : int(frame[2])]
    assert shades(inside) > 50


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_in_what_is_ours(page: Any, size: tuple[int, int]) -> None:
    """The frame around it and the controls are Solara's and Mesa's."""
    resize(page, size)
    assert violations(page, within=".ge-page", least=10) == []


def test_on_a_phone_the_controls_open_and_close(page: Any, address: str) -> None:
    """They leave the page in sight until they are asked for, then room beside them, a touch on which closes them."""
    from selenium.webdriver.common.actions.action_builder import ActionBuilder

    opened(page, address, PHONE)
    assert drawer(page)[1] <= 0
    page.execute_script("document.querySelector('.v-app-bar button').click()")
    until(lambda: drawer(page)[0] >= 0)
    (_, width), words = drawer(page), "return document.querySelector('.v-navigation-drawer').scrollWidth"
    assert 250 < width < 0.9 * PHONE[0]
    assert page.execute_script(words) <= width + 1
    touch = ActionBuilder(page)
    touch.pointer_action.move_to_location(PHONE[0] - 10, PHONE[1] // 2).click()
    touch.perform()
    until(lambda: drawer(page)[1] <= 0)


def drawer(browser: Any) -> tuple[float, float]:
    """Return from where to where the controls lie."""
    ((left, _, right, _),) = browser.execute_script(BOXES, ".v-navigation-drawer")
    return left, right


def test_it_asked_nobody_else_and_complained_of_nothing(page: Any, address: str) -> None:
    complaints = [entry["message"] for entry in page.get_log("browser") if entry["level"] == "SEVERE"]
    assert complaints == []
    asked = requested(page)
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith(("data:", "blob:", address))] == []


def test_only_this_machine_may_ask(address: str) -> None:
    def status(path: str = "", **headers: str) -> int:
        request = urllib.request.Request(
            address + path, headers={k.capitalize(): v for k, v in headers.items()}
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    assert status() == 200
    assert status(host="example.org") == 400  # a name that somebody made point here
    assert status(origin="https://example.org") == 403
    assert status("_solara/cdn/somebody@1.0.0/else.js") == 404  # and not fetched for us
