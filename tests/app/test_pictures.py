"""What the page draws: well-formed, to scale, and names as text alone."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from geoedge.app import charts, parts, townmap
from geoedge.app.model import CityModel
from geoedge.app.svg import marker_path, nice_ticks, polyline
from geoedge.maps.scales import SHAPES, utilisation_scale
from tests.app.conftest import PROFILE
from tests.maps.conftest import HOSTILE

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def stepped(bench) -> CityModel:  # type: ignore[no-untyped-def]
    from geoedge.app.choices import Choices

    model = CityModel(bench, **Choices.of(bench.scenario).flat())
    for _ in range(17):
        model.step()
    return model


def places(path: str) -> np.ndarray:
    """Return the corners of a path of straight lines."""
    return np.array(re.findall(r"(-?[\d.]+) (-?[\d.]+)", path), dtype=float)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_markers_have_one_area(shape: str) -> None:
    x, y = places(marker_path(shape, 500.0, 300.0, 100.0)).T
    area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    assert area == pytest.approx(np.pi * 100.0**2, rel=2e-3)
    assert (x.mean(), y.mean()) == pytest.approx((500.0, 300.0), abs=0.1)


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    assert polyline(np.array([(0, 0), (1, 1), (np.nan, 2), (3, 3.25)])) == "M0 0L1 1M3 3.2"


@pytest.mark.parametrize("top", [0.003, 0.8, 1.0, 1.2, 6.2, 55.0, 999.0])
def test_ticks_reach_the_top_in_round_steps(top: float) -> None:
    ticks = nice_ticks(top)
    assert ticks[0] == 0.0
    assert ticks[-2] < top <= ticks[-1] * (1 + 1e-9)
    assert 2 <= len(ticks) <= 6
    assert float(f"{ticks[1]:.2g}") == pytest.approx(ticks[1])


def test_the_ground_holds_streets_and_a_scale_bar_to_scale(stepped: CityModel) -> None:
    assert stepped.city is not None
    city = stepped.city.study.city
    root = ElementTree.fromstring(townmap.ground(city))
    drawn = {path.get("class"): path.get("d", "") for path in root.iter(f"{SVG}path")}
    assert set(drawn) >= {"land", "street", "bar"}
    frame = townmap.Frame.of(city)
    words = next(root.iter(f"{SVG}text")).text
    assert words == "200 m"
    length = float(re.search(r"h([\d.]+)", drawn["bar"])[1])  # type: ignore[index]
    assert length == pytest.approx(200.0 * frame.scale, abs=0.1)
    assert frame.place(np.array([city.boundary.bounds[:2]]))[0] == pytest.approx(
        (0.03 * 1000 / 1.06, frame.height - 0.03 * 1000 / 1.06), abs=0.1
    )


@pytest.mark.parametrize("colouring", townmap.COLOURINGS)
def test_sites_have_the_colours_of_the_legend_and_names_as_text(
    stepped: CityModel, colouring: townmap.Colouring
) -> None:
    city = stepped.city
    assert city is not None
    root = ElementTree.fromstring(townmap.moving(stepped, colouring))
    sites = [path for path in root.iter(f"{SVG}path") if "site" in path.get("class", "").split()]
    assert len(sites) == len(HOSTILE)
    scale = townmap.scale_of(colouring)
    value = city.last.utilization if colouring == "utilisation" else stepped.recent.wait_s
    assert [path.get("style") for path in sites] == [f"fill:{scale.colour(one)}" for one in value]
    titles = [path[0].text or "" for path in sites]
    assert titles[0].startswith(HOSTILE[0] + "\n")
    assert "\u202e" not in "".join(titles)
    assert titles[5].startswith("Site 5\n")
    assert titles[0].split("\n")[1] == "at bell and[31m red"
    streets = [f"at {name}" if name else "" for name in stepped.site_streets]
    assert [("\n" + street in title) for street, title in zip(streets, titles, strict=True)] == [True] * 6
    assert len(set(streets)) >= 4
    assert {element.tag for element in root.iter()} <= {f"{SVG}{tag}" for tag in ("svg", "path", "title")}
    people = sum(path.get("d", "").count("M") for path in root.iter() if "people" in path.get("class", ""))
    assert people == townmap.people_shown(city)[0] == 400


def test_many_people_are_drawn_in_part(monkeypatch: pytest.MonkeyPatch, stepped: CityModel) -> None:
    assert stepped.city is not None
    monkeypatch.setattr(townmap, "MOST_PEOPLE", 150)
    assert townmap.people_shown(stepped.city) == (134, 400)


def test_sites_that_are_out_or_wait_for_states_show_it(model: CityModel) -> None:
    city = model.city
    assert city is not None
    while city.epoch == 0:
        model.step()
    assert city.placement.in_transit
    root = ElementTree.fromstring(townmap.moving(model, "wait"))
    assert len(root.findall(f".//{SVG}path[@class='transit']")) == len(city.placement.in_transit)
    city.placement.down = frozenset({2})
    drawn = townmap.moving(model, "wait")
    assert len(ElementTree.fromstring(drawn).findall(f".//{SVG}path[@class='site down']")) == 1
    assert drawn.count("out of service") == 1


def test_charts_show_what_was_collected(stepped: CityModel) -> None:
    roots = [ElementTree.fromstring(chart) for chart in charts.charts(stepped)]
    rows = stepped.datacollector.get_model_vars_dataframe()
    lines = [root.find(f".//{SVG}path[@class='line main']") for root in roots]
    assert [len(places(line.get("d", ""))) for line in lines[:3] if line is not None] == [17, 17, 17]
    last = places(lines[0].get("d", ""))[-1]  # type: ignore[union-attr]
    floor, top = charts.FLOOR, charts.TOP
    assert (floor - last[1]) / (floor - top) == pytest.approx(rows["coverage"].iloc[-1], abs=1e-3)
    assert f"{100 * rows['coverage'].iloc[-1]:.0f} %" in (roots[0].get("aria-label") or "")
    bars = roots[3].findall(f".//{SVG}rect[@class='column']")
    assert len(bars) == 2  # the epochs so far, of three
    assert f"{stepped.moved_bytes / 1e9:.3g} GB" in charts.charts(stepped)[3]


def test_a_model_that_has_not_begun_claims_nothing(model: CityModel) -> None:
    assert "style=" not in townmap.moving(model, "utilisation")
    assert "time, warm-up" in parts.facts(model)
    assert parts.facts(model).count("–") == 4
    for chart in charts.charts(model):
        ElementTree.fromstring(chart)
    assert "–" in charts.coverage_chart(model)


def test_unbounded_times_end_at_the_edge(model: CityModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model.step()
    rows = model.datacollector.get_model_vars_dataframe()
    rows["p95_ttft_s"] = np.inf
    monkeypatch.setattr(model.datacollector, "get_model_vars_dataframe", lambda: rows)
    root = ElementTree.fromstring(charts.ttft_chart(model))
    assert float(root.find(f".//{SVG}circle").get("cy", "")) == charts.TOP  # type: ignore[union-attr]
    assert "unbounded" in (root.get("aria-label") or "")


def test_legend_and_facts_are_text(stepped: CityModel) -> None:
    for markup in (parts.legend(stepped, "utilisation"), parts.facts(stepped)):
        assert "<img" not in markup
        assert "<script" not in markup
        ElementTree.fromstring(f"<div>{markup}</div>")
    assert PROFILE.replace(">", "&gt;").replace("<", "&lt;") in parts.legend(stepped, "utilisation")
    for colour in utilisation_scale().colours:
        assert colour in parts.legend(stepped, "utilisation")
    assert "17:02" in parts.facts(stepped)
    assert "epoch 2 of 3" in parts.facts(stepped)
    assert "warm-up" not in parts.facts(stepped)


def test_the_credit_links_to_whom_it_names(stepped: CityModel) -> None:
    assert stepped.city is not None
    markup = parts.credit(stepped.city.study.city)
    assert "© OpenStreetMap contributors" in markup
    assert 'href="https://www.openstreetmap.org/copyright"' in markup
    assert "extract of 2020-01-01" in markup
