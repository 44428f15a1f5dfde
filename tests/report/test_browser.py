"""The report in a real browser without network: it asks for nothing, complains of nothing, fits a phone, and its map works."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

import pytest

from geoedge.city import City
from geoedge.report.page import report_page
from geoedge.results import Results
from geoedge.texts import plain_text
from tests.browser import DESKTOP, PHONE, SIZES, requested, screenshot, shades, violations, visit
from tests.maps.test_browser import DRAWN
from tests.report.conftest import HOSTILE

pytestmark = pytest.mark.browser

OUTSIDE = """
const edge = document.documentElement.clientWidth + 0.5;
return [...document.querySelectorAll("body *")].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && (box.right > edge || box.left < -0.5) && !e.closest(".skip, thead, svg");
}).map((e) => `${e.tagName} ${e.className} ${e.textContent.slice(0, 40)}`);
"""
ALONE = """
return [...document.querySelectorAll("figure:not(.print-only)")].filter((f) => {
  const box = f.getBoundingClientRect(), whole = f.parentElement.getBoundingClientRect();
  const beside = [...f.parentElement.children].some((e) => {
    const other = e.getBoundingClientRect();
    return e !== f && other.height > 0 && other.top < box.bottom && other.bottom > box.top;
  });
  return !beside && box.width < 0.95 * whole.width;
}).map((f) => f.textContent.slice(-60));
"""


@pytest.fixture(scope="module")
def pages(
    one: Results, other: Results, town: City, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("report")
    made = {
        "one": report_page(one, city=town),
        "both": report_page(one, other, city=town),
    }
    return {name: page.save(folder / f"{name}.html").as_uri() for name, page in made.items()}


@pytest.fixture
def opened(browser: Any, pages: dict[str, str]) -> Callable[..., Any]:
    def show(
        name: str = "one", size: tuple[int, int] = DESKTOP, scheme: str = "light", media: str = ""
    ) -> Any:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        visit(browser, pages[name], size)
        return browser

    return show


def into_map(browser: Any) -> None:
    """Open all that can be opened, and go into the first frame with a map once it is drawn."""
    browser.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    frame = browser.find_element("css selector", "iframe")
    browser.execute_script("arguments[0].scrollIntoView()", frame)
    browser.switch_to.frame(frame)
    drawn, deadline = "[data-theme=regions], .leaflet-sites-pane path", time.monotonic() + 60
    while len(browser.find_elements("css selector", drawn)) < 2:
        assert time.monotonic() < deadline, "the map is not drawn"
        time.sleep(0.1)


@SIZES
@pytest.mark.parametrize("name", ["one", "both"])
def test_it_asks_for_nothing_and_complains_of_nothing(
    opened: Callable[..., Any], pages: dict[str, str], size: tuple[int, int], name: str
) -> None:
    browser = opened(name, size)
    into_map(browser)
    browser.switch_to.default_content()
    time.sleep(0.3)
    assert browser.get_log("browser") == []
    outside = [url for url in requested(browser) if not url.startswith(("data:", "about:", pages[name]))]
    assert outside == []


@SIZES
@pytest.mark.parametrize("name", ["one", "both"])
def test_nothing_sticks_out(opened: Callable[..., Any], size: tuple[int, int], name: str) -> None:
    browser = opened(name, size)
    browser.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
    assert browser.execute_script(OUTSIDE) == []


@pytest.mark.parametrize("name", ["one", "both"])
def test_no_figure_leaves_half_of_a_wide_page_empty(opened: Callable[..., Any], name: str) -> None:
    browser = opened(name)
    browser.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert browser.execute_script(ALONE) == []
    figures = browser.find_elements("css selector", "#answers figure")
    answers, shares = (each.rect for each in figures[:2])
    assert shares["x"] > answers["x"] + answers["width"]
    assert shares["y"] < answers["y"] + answers["height"]


@pytest.mark.parametrize(
    "blocks", ["<figure></figure>", "<p>a</p><figure></figure><div class='table wide'></div>"]
)
def test_a_figure_with_nothing_to_stand_beside_takes_the_whole_width(
    opened: Callable[..., Any], blocks: str
) -> None:
    browser = opened()
    script = "document.querySelector('#why .blocks').innerHTML = arguments[0];"
    browser.execute_script(script, blocks)
    wide = (
        "const f = document.querySelector('#why figure'); return f.offsetWidth / f.parentElement.offsetWidth;"
    )
    assert browser.execute_script(wide) > 0.95
    browser.execute_script(script, "<figure></figure><figure></figure>")
    assert 0.4 < browser.execute_script(wide) < 0.5


@SIZES
def test_letters_of_figures_can_be_read(opened: Callable[..., Any], size: tuple[int, int]) -> None:
    browser = opened("one", size)
    heights = browser.execute_script(
        "return [...document.querySelectorAll('figure:not(.print-only) text')].filter((e) => e.textContent.trim())"
        ".map((e) => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a).filter((h) => h > 0)"
    )
    upright = sorted(heights)
    assert len(upright) > 50
    assert upright[0] >= 8.5


def test_the_map_inside_works(opened: Callable[..., Any]) -> None:
    browser = opened()
    into_map(browser)
    before = browser.execute_script(DRAWN, "surface")
    browser.execute_script("document.querySelector('[data-theme=demand]').click()")
    after = browser.execute_script(DRAWN, "surface")
    assert before != after
    clock = "return document.querySelector('.clock').textContent"
    first = browser.execute_script(clock)
    browser.execute_script("document.querySelector('[data-step=\"-1\"]').click()")
    assert browser.execute_script(clock) != first
    browser.switch_to.default_content()
    assert browser.get_log("browser") == []


def test_the_map_cannot_reach_the_report(opened: Callable[..., Any]) -> None:
    browser = opened()
    into_map(browser)
    script = "try { return parent.document.title } catch (error) { return error.name }"
    assert browser.execute_script(script) == "SecurityError"
    browser.switch_to.default_content()


@pytest.mark.parametrize("name", ["one", "both"])
def test_hostile_names_stay_text(opened: Callable[..., Any], one: Results, name: str) -> None:
    browser = opened(name)
    browser.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    said = browser.find_element("css selector", "body").text
    for each in HOSTILE[:3]:
        assert plain_text(each) in said
    assert "<script>window.broken=3</script>" in browser.find_element("css selector", "h1").text
    assert (
        browser.find_elements("css selector", "body script, body img, svg a, svg script, svg foreignObject")
        == []
    )
    into_map(browser)
    assert browser.execute_script("return window.broken") is None
    browser.switch_to.default_content()
    assert browser.execute_script("return window.broken") is None


def test_no_script_can_be_brought_in(opened: Callable[..., Any]) -> None:
    browser = opened()
    browser.execute_script(
        "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.broken=9\">')"
    )
    time.sleep(0.3)
    assert browser.execute_script("return window.broken") is None


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("one", DESKTOP, "light"),
        ("one", PHONE, "dark"),
        ("both", DESKTOP, "dark"),
        ("both", PHONE, "light"),
    ],
)
def test_axe_finds_nothing_that_keeps_anybody_out(
    opened: Callable[..., Any], name: str, size: tuple[int, int], scheme: str
) -> None:
    browser = opened(name, size, scheme)
    browser.execute_script("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert violations(browser, least=20, iframes=False) == []


def test_dark_and_light_differ_in_figures_too(opened: Callable[..., Any]) -> None:
    script = (
        "const at = (e, what) => getComputedStyle(document.querySelector(e))[what];"
        "return [at('body', 'backgroundColor'), at('figure text', 'fill'), at('figure path', 'fill')];"
    )
    light, dark = (opened(scheme=scheme).execute_script(script) for scheme in ("light", "dark"))
    assert all(a != b for a, b in zip(light, dark, strict=True))


def test_paper_is_light_and_has_the_still_map(opened: Callable[..., Any]) -> None:
    browser = opened(scheme="dark", media="print")
    shown = "return getComputedStyle(document.querySelector(arguments[0])).display"
    assert browser.execute_script(shown, "iframe") == "none"
    assert browser.execute_script(shown, "nav") == "none"
    assert browser.execute_script(shown, ".print-only") == "block"
    script = "return getComputedStyle(document.body).getPropertyValue('--ground').trim()"
    assert browser.execute_script(script) == "#fff"
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")


def test_the_keyboard_skips_to_the_content(opened: Callable[..., Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    browser = opened()
    browser.find_element("css selector", "body").send_keys(Keys.TAB)
    assert browser.execute_script("return document.activeElement.className") == "skip"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert browser.execute_script("return document.activeElement.id") == "content"


@SIZES
def test_the_screenshot_shows_a_report(opened: Callable[..., Any], size: tuple[int, int]) -> None:
    pixels = screenshot(opened("one", size))
    assert pixels.shape[:2] == size[::-1]
    assert shades(pixels[::2, ::2]) > 20
