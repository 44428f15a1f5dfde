"""Mesa's own tools on the model: agent sets, data collection, batch runs, and no model kept alive."""

from __future__ import annotations

import gc
import weakref

import mesa
import numpy as np
import pytest
from mesa.batchrunner import batch_run

from geoedge.city.trips import ACTIVITIES
from geoedge.simulation import ControllerAgent, EdgeCity, SiteAgent, UserAgent
from geoedge.simulation.model import REPORTERS


@pytest.fixture(scope="module")
def model(study):
    """A model after ten steps."""
    made = EdgeCity(study.scenario, study=study, rng=5)
    for _ in range(10):
        made.step()
    return made


def test_agents_are_of_three_types(model, study):
    assert set(model.agent_types) == {UserAgent, SiteAgent, ControllerAgent}
    counts = {kind: len(model.agents_by_type[kind]) for kind in model.agent_types}
    assert counts == {UserAgent: 400, SiteAgent: 6, ControllerAgent: 1}
    assert len(model.agents) == 407
    assert model.steps == 10
    assert model.clock_s == study.epochs[0][0] + 600.0


def test_agent_sets_select_get_and_aggregate(model, study):
    sites = model.agents_by_type[SiteAgent]
    assert sites.get("concurrency") == study.workload.concurrency[study.layout.profile].tolist()
    deep = sites.select(lambda site: site.profile_name in ("left", "right"))
    assert [site.row for site in deep] == [4, 5]
    assert sites.agg("queue_length", sum) == model.waiting
    assert sites.agg("utilization", max) <= 1.0 + 1e-9
    travelling = model.users.select(lambda user: user.activity == "street")
    assert len(travelling) == round(model.travelling_share * 400)
    by_mode = model.users.groupby("mode").count()
    assert sum(by_mode.values()) == 400


def test_views_show_the_columns(model):
    xy, activity = model.population.positions(model.clock_s)
    for user in list(model.users)[::37]:
        assert user.position == tuple(xy[user.row])
        assert user.activity == ACTIVITIES[activity[user.row]]
        assert user.home == tuple(model.population.home_xy[user.row])
    at_home = model.users.select(lambda user: user.activity == "home")
    assert all(user.position == user.home for user in at_home)
    for site in model.sites:
        assert site.position == tuple(model.study.layout.xy[site.row])
        assert site.advertised_wait == model.operator.catalogue.prices[site.row]
        assert site.running <= site.concurrency
        assert site.name == f"site {site.row}"
        assert not site.in_transit


def test_reporters_are_numbers_by_step(model):
    frame = model.datacollector.get_model_vars_dataframe()
    assert frame.columns.tolist() == list(REPORTERS)
    assert len(frame) == model.steps
    assert np.allclose(np.diff(frame["time_s"]), 60.0)
    assert frame["coverage"].between(0, 1).all()
    assert all(
        isinstance(value, int | float)
        for values in model.datacollector.model_vars.values()
        for value in values
    )


def test_agent_reporters_by_type_are_for_snapshots(study):
    made = EdgeCity(
        study.scenario,
        study=study,
        rng=5,
        agent_reporters={SiteAgent: {"queue": "queue_length", "held": "profile"}},
    )
    made.step()
    frame = made.datacollector.get_agenttype_vars_dataframe(SiteAgent)
    assert len(frame) == 6
    assert frame["held"].tolist() == study.layout.profile.tolist()


def test_live_coverage_is_that_of_the_records(study):
    # what was decided step by step is exact: together it is the coverage of all requests decided by then
    made = EdgeCity(study.scenario, study=study, rng=5)
    target, shares, counts = study.scenario.target.ttft_target_s, [], []
    while made.running:
        before = made._decided
        made.step()
        shares.append(made.coverage)
        counts.append(made._decided - before)
    results = made.run()
    ttft = results.records.column("ttft_s").to_numpy()[: sum(counts)]
    assert np.average(shares, weights=counts) == pytest.approx(np.mean(ttft <= target))


def test_batch_run_takes_a_scenario_in_a_list(study):
    rows = batch_run(
        EdgeCity,
        {
            "scenario": [
                study.scenario.override({"simulation.duration_s": 900.0, "simulation.warm_up_s": 0.0})
            ],
            "city": [study.city],
            "layout": [study.layout],
            "rng": [1, 2],
        },
        number_processes=1,
        max_steps=1000,
        data_collection_period=-1,
        display_progress=False,
    )
    assert [row["rng"] for row in rows] == [1, 2]
    assert all(row["Step"] == 14 for row in rows)
    assert rows[0]["coverage"] != rows[1]["coverage"]


def test_a_finished_model_is_not_kept_alive(study):
    made = EdgeCity(study.scenario, study=study, rng=5)
    made.run()
    assert made not in mesa.Agent._ids
    kept = weakref.ref(made)
    del made
    gc.collect()
    assert kept() is None
