"""The whole model: nothing is lost, seeds decide everything, policies share arrivals, caches act when they are there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.results import RECORD_COLUMNS, STATUS
from geoedge.simulation.mobility import Population
from geoedge.simulation.model import STEP_S, EdgeCity
from geoedge.streams import stream
from geoedge.study import prepare

ARRIVALS = ("created_s", "user", "request_type", "activity", "x_m", "y_m", "epoch")
"""What people do, whoever serves them."""


def run(study, seed=11, **changes):
    model = EdgeCity(study.scenario, study=study, rng=seed, changes=changes)
    return model, model.run()


@pytest.fixture(scope="module")
def steered(study):
    """A run with the greedy controller, and its model."""
    return run(study)


def test_every_request_is_counted_once(steered):
    model, results = steered
    drawn = sum(len(part.asked.created_s) for part in model.drawn)
    assert results.records.num_rows == drawn > 10_000
    assert sum(results.status_counts().values()) == drawn
    assert set(results.status_counts()) == set(STATUS)
    assert results.epochs["requests"].sum() == drawn
    assert results.series["requests"].sum() == drawn
    assert results.records.column_names == list(RECORD_COLUMNS)


def test_times_follow_each_other_and_ttft_is_the_sum_of_its_parts(steered):
    _, results = steered
    column = {name: results.records.column(name).to_numpy() for name in RECORD_COLUMNS}
    assert all(np.isfinite(column[name]).all() for name in column)
    assert (np.diff(column["created_s"]) >= 0).all()
    order = ("created_s", "arrived_s", "started_s", "first_token_s", "finished_s")
    for earlier, later in pairwise(order):
        assert (column[earlier] <= column[later] + 1e-9).all()
    parts = column["radio_s"] + column["wait_s"] + column["prefill_s"]
    assert np.allclose(parts, column["ttft_s"])
    assert np.allclose(column["first_token_s"] - column["created_s"], column["ttft_s"])


def test_status_is_that_of_the_horizon(steered):
    _, results = steered
    horizon = results.meta["horizon_s"]
    status, started, arrived, finished = (
        results.records.column(name).to_numpy() for name in ("status", "started_s", "arrived_s", "finished_s")
    )
    assert (finished[status == STATUS.index("served")] <= horizon).all()
    in_service = status == STATUS.index("in_service")
    assert in_service.any()
    assert ((started[in_service] <= horizon) & (finished[in_service] > horizon)).all()
    waiting = status == STATUS.index("waiting")
    assert ((arrived[waiting] <= horizon) & (started[waiting] > horizon)).all()


def test_same_seed_same_bytes(study, steered):
    _, first = steered
    _, again = run(study)
    assert first.records.equals(again.records)
    assert first.epochs.equals(again.epochs)
    assert first.series.equals(again.series)
    assert first.actions.equals(again.actions)
    assert first.meta == again.meta


def test_another_seed_is_another_run(study, steered):
    _, other = run(study, seed=12)
    assert not other.records.equals(steered[1].records)
    assert other.sites.equals(steered[1].sites)


@pytest.mark.parametrize(
    "changes",
    [
        {"routing.policy": "nearest"},
        {"routing.policy": "prefix_only"},
        {"routing.advertise": "state"},
        {"routing.advertise": "measured", "routing.telemetry_period_s": 60.0},
        {"routing.scope": "tier"},
        {"control.controller": "none"},
    ],
    ids=str,
)
def test_variants_see_the_same_people_ask_the_same(study, steered, changes):
    _, results = run(study, **{"control.controller": "none"} | changes)
    for name in ARRIVALS:
        assert results.records.column(name).equals(steered[1].records.column(name)), name
    assert sum(results.status_counts().values()) == steered[1].records.num_rows


def test_a_variant_does_what_its_name_says(study):
    _, nearest = run(study, **{"routing.policy": "nearest", "control.controller": "none"})
    sites = study.layout.xy_km
    xy = np.column_stack([nearest.records.column(name).to_numpy() for name in ("x_m", "y_m")]) / 1000.0
    distance = np.hypot(*(xy[:, None] - sites[None]).transpose(2, 0, 1))
    assert np.allclose(distance.min(axis=1), nearest.records.column("distance_km").to_numpy())
    _, aware = run(study, **{"control.controller": "none"})
    assert aware.mean_ttft < nearest.mean_ttft


def held_at(results, layout):
    """Return for every request the profile its site held when the request started, from the log alone."""
    records, actions = results.records, results.actions
    site, started = (records.column(name).to_numpy() for name in ("site", "started_s"))
    held = np.array(layout.profile)[site]
    changes = []
    for row in actions.itertuples():
        changes.append((row.effective_s, row.site, row.to_profile))
        if row.partner_site >= 0:
            changes.append((None, row.partner_site, row.from_profile))
    for time, changed, profile in sorted((c for c in changes if c[0] is not None), key=lambda c: c[0]):
        held[(site == changed) & (started >= time)] = profile
    return held, {changed for time, changed, _ in changes if time is None}


def test_hits_are_those_of_what_the_site_held_at_the_start(study, steered):
    # states in transit are not used: until `effective_s` the old profile serves
    _, results = steered
    assert len(results.actions) > 0
    assert (results.actions["transfer_s"] > 5.0).any()
    held, exchanged = held_at(results, study.layout)
    records = results.records
    site, kind = records.column("site").to_numpy(), records.column("request_type").to_numpy()
    certain = ~np.isin(site, list(exchanged))
    profile = records.column("profile").to_numpy()
    assert np.array_equal(profile[certain], held[certain])
    assert np.array_equal(study.workload.hit_tokens[profile, kind], records.column("hit_tokens").to_numpy())
    assert np.allclose(study.workload.prefill_time[profile, kind], records.column("prefill_s").to_numpy())


def test_controller_keeps_to_budget_and_tells_why(study, steered):
    _, results = steered
    spent = results.actions.groupby("epoch")["bytes_moved"].sum()
    assert (spent <= study.scenario.control.migration_budget_bytes).all()
    assert (results.actions["epoch"] > 0).all(), "nothing has been measured before the first epoch"
    assert (results.actions["predicted_gain"] >= study.scenario.control.min_gain).all()
    assert np.isfinite(results.actions["realised_gain"]).all()
    assert results.actions["reason"].str.contains("expected coverage").all()
    backhaul = study.scenario.control.backhaul_bytes_per_s
    single = results.actions[results.actions["action"] != "migrate"]
    assert np.allclose(single["transfer_s"], single["bytes_moved"] / backhaul)


def test_realised_gain_and_error_add_up_to_what_was_measured(steered):
    model, results = steered
    for epoch, review in model.operator.reviews.items():
        rows, sums = results.actions[results.actions["epoch"] == epoch], results.epochs.groupby("epoch")
        measured = 1.0 - sums["missed"].sum()[epoch] / sums["requests"].sum()[epoch]
        assert rows["realised_gain"].sum() == pytest.approx(measured - review.without)
        assert rows["model_error"].iloc[0] == pytest.approx(measured - review.with_actions)


def test_floor_and_cap_hold_in_every_epoch(study):
    _, results = run(study, **{"control.fallback_floor": 0.3, "control.deep_cap": 0.35})
    for _, epoch in results.epochs.groupby("epoch"):
        count = np.bincount(epoch["profile"], minlength=4)
        assert count[0] >= 2  # 0.3 of six sites
        assert count[2:].max() <= 2  # 0.35 of six sites


def test_no_budget_moves_no_bytes(study):
    _, results = run(study, **{"control.migration_budget_bytes": 0})
    assert results.actions["bytes_moved"].sum() == 0.0
    assert (results.actions["action"] == "demote").all()


def test_still_controller_moves_nothing(study):
    model, results = run(study, **{"control.controller": "none"})
    assert results.actions.empty
    assert np.array_equal(model.placement.profile, study.layout.profile)
    assert results.actions.columns.tolist() == run(study)[1].actions.columns.tolist()


def test_warm_up_is_kept_in_the_records_and_cut_from_the_metrics(study, steered):
    _, results = steered
    created = results.records.column("created_s").to_numpy()
    cut = results.meta["start_s"] + study.scenario.simulation.warm_up_s
    assert created.min() < cut
    assert results.requests == int((created >= cut).sum())


def test_steps_end_at_epochs_and_series_has_one_row_each(study, steered):
    _, results = steered
    start, horizon = study.epochs[0][0], study.epochs[-1][1]
    assert len(results.series) == round((horizon - start) / STEP_S)
    assert results.series["time_s"].iloc[-1] == horizon
    assert results.series["coverage"].between(0, 1).all()
    assert ((results.series["sites_in_transit"] > 0) == (results.series["sites_in_transit"] >= 1)).all()


def test_a_finished_run_cannot_be_stepped(steered):
    with pytest.raises(GeoEdgeError, match="the run ended"):
        steered[0].step()


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_seed_is_a_nonnegative_integer(study, seed):
    with pytest.raises(GeoEdgeError, match="nonnegative integer"):
        EdgeCity(study.scenario, study=study, rng=seed)


@pytest.mark.parametrize("policy", ["load_aware", "nearest"])
def test_overload_is_a_finding_and_no_crash(study, policy):
    changes = {"demand.request_rate_per_user_s": 0.05, "routing.policy": policy}
    heavy = prepare(study.scenario.override(changes), city=study.city, layout=study.layout)
    _, results = run(heavy)
    over = results.epochs[results.epochs["offered_load"] >= 1.0]
    flagged = [(flag["epoch"], flag["site"]) for flag in results.meta["unstable"]]
    assert flagged == list(zip(over["epoch"], over["site"], strict=True))
    assert flagged
    assert results.status_counts()["waiting"] > 100
    assert np.isfinite(results.column("ttft_s")).all()


@pytest.mark.slow
def test_still_users_meet_the_field(study):
    """With still users, prices at their positions and one epoch, the run is the field's M/M/c network."""
    flat = {f"workload.requests[{q}].hour_weight": [1.0] * 24 for q in range(3)}
    window = {"simulation.duration_s": 18_000.0, "simulation.epoch_s": 18_000.0, "simulation.warm_up_s": 0.0}
    law = {
        "service.law": "exponential_mixture",
        "control.controller": "none",
        "demand.request_rate_per_user_s": 0.011,
    }
    scenario = study.scenario.override(flat | window | law)
    still = prepare(scenario, city=study.city, layout=study.layout)
    people = Population.draw(study.mobility, 400, stream(1, "people"))
    people.advance(16.75 * 3600.0)
    model = EdgeCity(scenario, study=still, population=Population.at_points(people.positions()[0]), rng=2)
    field, results = model.operator.prediction, model.run()
    batches = [np.mean(part <= 0.8) for part in np.array_split(results.column("ttft_s"), 20)]
    half = 2.1 * np.std(batches, ddof=1) / np.sqrt(len(batches))
    assert abs(np.mean(batches) - field.coverage) < max(half, 0.01) + 0.01
    assert np.abs(results.epochs["utilization"].to_numpy() - field.utilization).mean() < 0.05
