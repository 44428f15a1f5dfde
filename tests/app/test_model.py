"""The model behind the page: EdgeCity's own numbers, and problems instead of errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mesa
import numpy as np
import pytest

from geoedge.app.bench import KEPT_STUDIES, Bench
from geoedge.app.choices import Choices
from geoedge.app.model import WINDOW_S, CityModel
from geoedge.app.parts import facts
from geoedge.compare.tables import planned
from geoedge.errors import ScenarioError
from geoedge.scenario import load_scenario
from geoedge.simulation import EdgeCity
from geoedge.study import Study
from geoedge.units import GB
from tests.app.conftest import hostile_layout, hostile_scenario
from tests.simulation.conftest import make_town


def test_it_is_the_same_city_step_by_step(bench: Bench, choices: Choices) -> None:
    model, city = CityModel(bench, **choices.flat()), EdgeCity(bench.scenario, study=bench.base())
    while model.running:
        model.step()
        city.step()
    assert model.steps == 45
    assert not city.running
    model.step()
    assert model.steps == 45  # nothing is left to pass
    rows, same = (one.datacollector.get_model_vars_dataframe() for one in (model, city))
    for column in ("time_s", "utilization", "waiting"):
        np.testing.assert_array_equal(rows[column], same[column])
    assert model.moved_bytes == city.moved_bytes > 0
    np.testing.assert_array_equal(np.nansum(model.epoch_bytes()), model.moved_bytes)


def test_what_sites_fetch_by_themselves_is_not_the_controllers() -> None:
    failure = {"kind": "site_failure", "start_hour": 17.02, "duration_s": 600.0, "sites": [2, 4]}
    scenario = hostile_scenario().override({"dynamics.events": [failure], "control.controller": "greedy"})
    bench = Bench(scenario, city=make_town(), layout=hostile_layout())
    model = CityModel(bench, **Choices.of(scenario).flat())
    while model.running:
        model.step()
    assert model.city is not None
    actions = model.city.run().actions  # at its end already: the results alone
    plan = planned(actions)
    assert 0.0 < plan["bytes_moved"].sum() < actions["bytes_moved"].sum()
    assert model.moved_bytes == plan["bytes_moved"].sum()
    by_epoch = plan.groupby("epoch")["bytes_moved"].sum().reindex(range(3), fill_value=0.0)
    np.testing.assert_array_equal(model.epoch_bytes(), by_epoch)
    assert f"{model.moved_bytes / GB:.3g} GB" in facts(model)
    assert f"{model.city.moved_bytes / GB:.3g} GB" not in facts(model)


def test_recent_numbers_are_those_of_the_records(model: CityModel) -> None:
    for _ in range(20):
        model.step()
    city = model.city
    assert city is not None
    records, target = city.engine.records(), bench_target(model)
    known = (records.created_s >= city.clock_s - WINDOW_S) & (records.created_s <= city.clock_s - target)
    ttft = np.where(np.isnan(records.ttft_s), city.clock_s - records.created_s, records.ttft_s)[known]
    assert len(ttft) > 500
    assert model.coverage == np.mean(ttft <= target)
    assert np.mean(ttft <= model.p95_ttft_s) >= 0.95 > np.mean(ttft < model.p95_ttft_s)
    for site in range(len(city.sites)):
        waits = records.wait_s[known & (records.site == site) & np.isfinite(records.wait_s)]
        assert model.recent.wait_s[site] == pytest.approx(waits.mean())


def bench_target(model: CityModel) -> float:
    return model.bench.scenario.target.ttft_target_s


@pytest.mark.parametrize(
    ("changed", "words"), [({"seed": "x"}, "seed = 'x'"), ({"mix": (0.0,) * 4}, "mix: all weights are 0")]
)
def test_a_problem_is_a_line_and_the_model_stands_still(
    bench: Bench, choices: Choices, changed: dict[str, Any], words: str
) -> None:
    model = CityModel(bench, **replace(choices, **changed).flat())
    assert model.problem.startswith(words)
    assert (model.city, model.running) == (None, False)
    model.step()
    assert model.steps == 0
    assert len(model.datacollector.get_model_vars_dataframe()) == 0


def test_a_problem_on_the_way_stops_it(model: CityModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model.step()

    def fail(_: EdgeCity) -> None:
        raise ScenarioError("the bridge is out")

    monkeypatch.setattr(model.city, "step", fail.__get__(model.city))
    model.step()
    assert (model.problem, model.running) == ("the bridge is out", False)


def test_it_can_be_forgotten(bench: Bench, choices: Choices) -> None:
    model = CityModel(bench, **choices.flat())
    assert model.city in mesa.Agent._ids
    model.forget()
    assert model.city not in mesa.Agent._ids
    assert model not in mesa.Agent._ids
    model.step()


def test_studies_are_shared_where_they_can_be(
    bench: Bench, choices: Choices, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = bench.base()
    assert bench.study(replace(choices, policy="nearest", controller="none")).mobility is base.mobility
    fewer = bench.study(replace(choices, sites=0.5))
    assert (len(fewer.layout), fewer.mobility) == (3, base.mobility)
    assert set(fewer.layout.name) < set(base.layout.name)
    busier = bench.study(replace(choices, load=2.0))
    assert sum(d.request_rate for d in busier.demand) == pytest.approx(
        2 * sum(d.request_rate for d in base.demand)
    )
    assert len(bench.study(replace(choices, layout="lattice")).layout) > 1
    for k in range(KEPT_STUDIES + 1):
        bench.study(replace(choices, load=1.1 + 0.01 * k))
    monkeypatch.setattr("geoedge.app.bench.prepare", lambda *_, **__: pytest.fail("prepared twice"))
    assert isinstance(bench.study(choices), Study)


def test_a_scenario_without_a_city_has_nothing_to_watch() -> None:
    with pytest.raises(ScenarioError, match="no \\[city\\] to watch"):
        Bench(load_scenario("paper"))
