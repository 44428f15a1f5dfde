"""Routing and admission through the whole model: every policy runs, people stay the same, nothing is lost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geoedge.compare import compare
from geoedge.errors import ScenarioError
from geoedge.policies import POLICIES
from geoedge.simulation.model import EdgeCity
from geoedge.simulation.routing import routing_of


def run(study, **changes):
    still = {"control.controller": "none", "routing.advertise": "state"}
    return EdgeCity(study.scenario, study=study, rng=5, changes=still | changes).run()


@pytest.fixture(scope="module")
def plain(study):
    return run(study)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_serves_the_same_people(study, plain, policy):
    results = run(study, **{"routing.policy": policy})
    for name in ("created_s", "user", "request_type", "x_m", "y_m"):
        np.testing.assert_array_equal(results.records.column(name), plain.records.column(name), err_msg=name)
    assert results.meta["solved_as"] == POLICIES[policy].solved_as
    assert results.status_counts()["rejected"] == 0
    assert results.epochs["requests"].sum() == results.records.num_rows


def test_rejected_requests_are_misses_and_everybody_else_is_served(study, plain):
    closed = {"admission.close_threshold": 0.9, "admission.reopen_threshold": 0.5, "admission.redirects": 0}
    results = run(study, **closed | {"routing.policy": "nearest"})
    table, rejected = results.records, results.status_counts()["rejected"]
    site, ttft = (table.column(name).to_numpy() for name in ("site", "ttft_s"))
    assert 0 < rejected < results.records.num_rows == plain.records.num_rows
    assert (np.isinf(ttft) == (site < 0)).all()
    assert (site < 0).sum() == rejected == results.epochs["rejected"].sum()
    assert results.epochs["requests"].sum() == results.records.num_rows
    assert results.epochs["missed"].sum() == (ttft > results.meta["ttft_target_s"]).sum()
    metrics = results.metrics()
    assert np.isfinite(metrics["mean_ttft_s"])
    assert metrics["coverage"] == pytest.approx((results.column("ttft_s") <= 0.8).mean())
    assert sum(results.parts().values()) == pytest.approx(metrics["mean_ttft_s"])
    assert results.site_table()["requests"].sum() == results.requests
    assert results.profile_share.sum() == pytest.approx(1.0)


def test_users_keep_their_routers_and_redirection_saves_requests(study):
    options = {"routing.routers": 4, "routing.telemetry_period_s": 5.0, "admission.close_threshold": 2.0}
    few = run(study, **options | {"admission.redirects": 0})
    many = run(study, **options | {"admission.redirects": 9})
    assert many.status_counts()["rejected"] <= few.status_counts()["rejected"]
    assert many.records.column("redirects").to_numpy().max() > 0


def test_redirections_take_as_long_as_they_are_said_to(study):
    options = {"admission.close_threshold": 1.0, "admission.redirects": 9, "routing.policy": "nearest"}
    free, paid = (run(study, **options | {"admission.redirect_s": each}) for each in (0.0, 0.1))
    redirects, wait, arrived, created, radio = (
        paid.records.column(name).to_numpy()
        for name in ("redirects", "wait_s", "arrived_s", "created_s", "radio_s")
    )
    served = paid.records.column("site").to_numpy() >= 0
    assert redirects.max() >= 3
    assert arrived[served] == pytest.approx((created + radio + 0.1 * redirects)[served])
    took, started, prefill, ttft = (
        paid.records.column(name).to_numpy() for name in ("redirect_s", "started_s", "prefill_s", "ttft_s")
    )
    assert took[served] == pytest.approx(0.1 * redirects[served])
    assert (wait[served] == (started - arrived)[served]).all()
    assert ttft[served] == pytest.approx((radio + took + wait + prefill)[served])
    assert "redirect_s" not in free.records.column_names
    told = paid.metrics()
    assert told["redirect_s"] > 0.0
    assert told["redirect_s"] == pytest.approx(took[served & (created >= paid.measured_from_s)].mean())
    assert sum(paid.parts().values()) == pytest.approx(told["mean_ttft_s"])
    assert "redirect_s" not in free.metrics()
    table = compare(paid, free, labels=["paid", "free"]).wide
    assert table.loc["redirect_s"].notna().tolist() == [True, False]
    assert paid.metrics()["mean_ttft_s"] > free.metrics()["mean_ttft_s"]
    with pytest.raises(ScenarioError, match="no site ever sends a request on"):
        study.scenario.override({"admission.redirect_s": 0.1})


@pytest.mark.parametrize(
    "more", [{"routing.routers": 2}, {"admission.close_threshold": 5.0}, {"routing.local_count": True}]
)
def test_a_policy_that_hears_nothing_runs_whatever_is_advertised(study, more):
    """What the scenario takes the engine takes: a tier's mean at every request is not heard."""
    deaf = {"routing.policy": "prefix_only", "routing.telemetry_period_s": 0.0} | more
    tier, site = (run(study, **{"routing.scope": scope} | deaf) for scope in ("tier", "site"))
    pd.testing.assert_frame_equal(tier.records.to_pandas(), site.records.to_pandas())


def test_routers_know_how_often_each_type_is_asked(study):
    workload = study.workload
    prompts = routing_of(study.scenario, workload, 1)["prompts"]
    model = EdgeCity(
        study.scenario,
        study=study,
        changes={"routing.policy": "dynamo_kv", "routing.advertise": "state", "control.controller": "none"},
    )
    blocks = (prompts.tokens + prompts.output_tokens) @ workload.type_probability
    numbers = POLICIES["dynamo_kv"].values(None)
    assert model.engine.routing._blocks_each == pytest.approx(blocks / numbers[2])
