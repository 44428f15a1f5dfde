"""The page of a plan of places: every candidate once, in the order of building, in a browser without network."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import shapely

from geoedge.city import City
from geoedge.city.demand import Demand
from geoedge.maps import places, places_map
from geoedge.maps.places import FEW, _squares
from geoedge.planning.places import PlacesPlan
from geoedge.planning.places.planner import EquippedPlace
from geoedge.planning.places.yardsticks import Yardsticks
from geoedge.scenario import load_scenario
from geoedge.sites import Layout
from geoedge.study import Study
from geoedge.workload import build_workload
from tests.browser import SIZES, requested, settle, visit
from tests.maps.conftest import EAST, HOSTILE, NORTH
from tests.maps.test_browser import BOXES, SLIDE

AGENT, GUIDE = 2, 3
SPAN = 800.0


def made(town: City, count: int = 9, built: int = 5) -> PlacesPlan:
    """Return a plan of candidates with names that nobody should trust; no search is needed to draw one."""
    scenario = load_scenario("monaco").override({"title": "Plan </title><script>window.broken=3</script>"})
    rng = np.random.default_rng(4)
    xy = np.array((EAST, NORTH)) + rng.uniform(0, SPAN, (count, 2))
    names = tuple(HOSTILE[k % len(HOSTILE)] for k in range(count))
    layout = Layout(
        xy, np.zeros(count, dtype=np.int64), names, ("amenity=<i>post</i>",) * count, "towers </ul>", town.crs
    )
    cells = np.array((EAST, NORTH)) + np.stack(
        np.meshgrid(*[np.arange(25.0, SPAN, 50.0)] * 2), axis=-1
    ).reshape(-1, 2)
    demand = Demand(cells, rng.uniform(0, 1e-3, (len(cells), 4)), 50.0)
    epochs = round(scenario.simulation.duration_s / scenario.simulation.epoch_s)
    workload = build_workload(scenario.workload, scenario.hardware)
    shares = np.full((epochs, 4), 0.25)
    study = Study(scenario, town, layout, workload, SimpleNamespace(), (demand,) * epochs, shares)  # type: ignore[arg-type]
    held = np.full(count, -1)
    order = rng.permutation(count)[:built]
    held[order] = rng.integers(AGENT, GUIDE + 1, built)
    lonlat = town.to_lonlat(xy)
    rows = tuple(
        EquippedPlace(
            int(place),
            names[place],
            layout.kind[place],
            HOSTILE[k % len(HOSTILE)],
            float(lonlat[place, 0]),
            float(lonlat[place, 1]),
            workload.profile_names[held[place]],
            0.1 * k * (k > 1),
            0.1 * k,
            1.0 if k > 1 else 0.5,
        )
        for k, place in enumerate(order, 1)
    )
    nothing = np.zeros(1)
    beside = Yardsticks(np.ones(1, dtype=np.int64), np.zeros((1, 3)), (np.inf,) * 3, nothing, np.inf)
    return PlacesPlan(study, 0.8, 0.9, rows, held, 0.51, False, None, nothing, 0.4, beside, 0.67, 0)


@pytest.fixture(scope="module")
def plan(town: City) -> PlacesPlan:
    return made(town)


def layers(html: str) -> dict[str, Any]:
    found = (
        json.loads(text)
        for text in re.findall(r"^\s*geoedge\.add\((\{.*\})\);\s*$", html, flags=re.MULTILINE)
    )
    return {layer["theme"]: layer for layer in found}


def test_every_candidate_is_drawn_once_and_numbered_as_it_is_built(plan: PlacesPlan) -> None:
    drawn = layers(places_map(plan).to_html())
    assert list(drawn) == ["demand", "candidates", "order", "streets", "land"]
    chosen, left = drawn["order"]["features"], drawn["candidates"]["features"]
    places = np.array([feature[1] for feature in [*chosen, *left]]) * 1e-5
    of = [row.place for row in plan.order] + np.flatnonzero(plan.held < 0).tolist()
    assert sorted(of) == list(range(len(plan.held)))
    np.testing.assert_allclose(places, plan.study.city.to_lonlat(plan.study.layout.xy[of]), atol=1e-5)
    assert [feature[4]["badge"] for feature in chosen] == ["1", "2", "3", "4", "5"]
    assert [feature[4]["from"] for feature in chosen] == [0, 1, 2, 3, 4]
    legend = drawn["order"]["legends"][0]
    for feature, row in zip(chosen, plan.order, strict=True):
        profile = plan.study.workload.profile_names.index(row.profile)
        assert feature[2] == profile == legend["names"].index(row.profile)
        assert drawn["order"]["styles"][profile]["fillColor"] == legend["colours"][profile]
        assert drawn["order"]["styles"][profile]["shape"] == legend["shapes"][profile]


def test_a_tip_says_what_a_step_comes_to_and_what_is_turned_away(plan: PlacesPlan) -> None:
    drawn = layers(places_map(plan).to_html())["order"]
    tips = [dict(zip(("name", *drawn["fields"]), feature[3], strict=True)) for feature in drawn["features"]]
    assert tips[0]["In time, once it is built"] == "0.0 %"
    assert tips[0]["Turned away, and then in time"] == "50.0 %, 10.0 %"
    assert tips[3]["In time, once it is built"] == "40.0 %"
    assert all(tip["Turned away, and then in time"] == "" for tip in tips[1:])
    assert all(tip["name"] for tip in tips)  # a place without a name has a number


def test_the_squares_of_demand_are_its_cells(plan: PlacesPlan) -> None:
    mean = plan.study.demand[0]
    rate, land = mean.rate.sum(axis=1), plan.study.city.boundary
    centre, density, side = _squares(mean.xy, rate, 50.0, land)
    assert side == 50.0
    assert len(centre) == len(mean.xy)
    of = {tuple(place): asked for place, asked in zip(mean.xy, rate, strict=True)}
    np.testing.assert_allclose(density, [of[tuple(place)] / 0.05**2 for place in centre])


def test_a_square_at_the_edge_counts_by_the_land_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    # Cells of 50 m from (10, 20) on, 5 × 3, all ask alike but for (1, 1), which is a park, and (4, 2), which is sea.
    corner, asked = np.array((10.0, 20.0)), 3e-3
    number = np.array([(x, y) for x in range(5) for y in range(3) if (x, y) not in ((1, 1), (4, 2))])
    land = shapely.difference(shapely.box(10.0, 20.0, 260.0, 170.0), shapely.box(210.0, 120.0, 999.0, 999.0))
    monkeypatch.setattr(places, "CELLS", 6)
    centre, density, side = _squares(corner + (number + 0.5) * 50.0, np.full(len(number), asked), 50.0, land)
    assert side == 100.0
    np.testing.assert_allclose(np.unique((centre - corner) / side % 1.0), 0.5)
    numbers = map(tuple, ((centre - corner) // side).astype(int).tolist())
    found = dict(zip(numbers, density.tolist(), strict=True))
    full = asked / 0.05**2
    assert found == pytest.approx(
        {(0, 0): full * 3 / 4, (1, 0): full, (2, 0): full, (0, 1): full, (1, 1): full}
    )  # the last column is half a square, and its upper part is sea


def test_the_page_says_how_far_the_plan_comes_and_whose_the_map_is(plan: PlacesPlan) -> None:
    html = places_map(plan).to_html()
    assert "5 of 9 candidates: 51.0 % of requests with their first token within 0.8 s, by the field" in html
    assert "The plan does NOT reach it." in html
    assert "Candidates: towers &lt;/ul&gt;." in html
    assert "openstreetmap.org/copyright" in html
    assert "; extract of 2016-03-05" in html
    assert "<script>window.broken" not in html
    reached = places_map(replace(plan, reached=True)).to_html()
    assert "The plan reaches it." in reached
    so_many = places_map(replace(plan, asked_sites=5)).to_html()
    assert "Asked for" not in so_many


def test_equal_plans_make_equal_pages_and_many_places_carry_no_numbers(town: City, plan: PlacesPlan) -> None:
    assert places_map(plan).to_html() == places_map(made(town)).to_html()
    many = layers(places_map(made(town, 3 * FEW, 2 * FEW)).to_html())["order"]["features"]
    assert len(many) == 2 * FEW
    assert not any("badge" in feature[4] for feature in many)


PLACED = "return document.querySelectorAll('.leaflet-sites-pane path').length"
NUMBERS = "return [...document.querySelectorAll('.number')].map((e) => e.textContent)"
LISTED = "return [...document.querySelectorAll('#ranking .name')].map((e) => e.textContent)"


@pytest.mark.browser
@SIZES
def test_in_a_browser_the_slider_builds_and_nothing_is_asked_for(
    browser: Any, plan: PlacesPlan, tmp_path: Path, size: tuple[int, int]
) -> None:
    address = places_map(plan).save(tmp_path / "a.html").as_uri()  # type: ignore[union-attr]
    visit(browser, address, size)
    assert browser.get_log("browser") == []
    assert [url for url in requested(browser) if not url.startswith(("data:", address))] == []
    assert browser.execute_script("return window.broken") is None
    left, all_built = len(plan.held) - len(plan.order), len(plan.order)
    for step, built in ((all_built - 1, all_built), (1, 2), (0, 1), (3, 4)):
        browser.execute_script(SLIDE, step)
        settle(browser)
        assert browser.execute_script(PLACED) == left + built
        assert browser.execute_script(NUMBERS) == [str(k + 1) for k in range(built)]
        assert len(browser.execute_script(LISTED)) == built
    assert "4 places: 40.0 % in time" in browser.execute_script(
        "return document.querySelector('.clock').textContent"
    )
    browser.execute_script("document.querySelector('[data-theme=order]').click()")
    assert browser.execute_script(PLACED) == left
    assert browser.execute_script(NUMBERS) == []
    browser.execute_script("document.querySelector('#ranking button')?.click()")
    browser.execute_script("document.querySelector('[data-theme=order]').click()")
    assert browser.execute_script(NUMBERS) == ["1", "2", "3", "4"]
    frame = browser.execute_script(BOXES, ".page-head, .page-map, .page-time, .page-side")
    assert len(frame) == 4
    for a, b in combinations(frame, 2):
        assert min(min(a[3], b[3]) - max(a[1], b[1]), min(a[4], b[4]) - max(a[2], b[2])) <= 0.5, (a, b)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= size[0]
