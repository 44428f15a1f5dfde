"""The whole model: nothing is lost, seeds decide everything, policies share arrivals, caches act when they are there."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from geoedge.control.actions import transfer_bytes
from geoedge.control.measure import measure_demand
from geoedge.control.predict import FieldPredictor
from geoedge.errors import GeoEdgeError
from geoedge.results import RECORD_COLUMNS, STATUS
from geoedge.simulation.mobility import Population
from geoedge.simulation.model import STEP_S, EdgeCity
from geoedge.streams import stream
from geoedge.study import field_answers, field_inputs, prepare
from geoedge.theory import queue_for

ARRIVALS = ("created_s", "user", "request_type", "activity", "x_m", "y_m", "epoch")
"""What people do, whoever serves them."""


def run(study, seed=11, **changes):
    model = EdgeCity(study.scenario, study=study, rng=seed, changes=changes)
    return model, model.run()


SLOW = {"control.backhaul_bytes_per_s": 2e6}
"""States take minutes."""
EXCHANGE = SLOW | {"control.fallback_floor": 0.33, "control.deep_cap": 0.17, "control.min_gain": 0.0}
"""With as many fallbacks and deep caches as may be, all that is left is to exchange them."""


@pytest.fixture(scope="module")
def steered(study):
    """A run with the greedy controller, and its model."""
    return run(study)


@pytest.fixture(scope="module", params=[(11, SLOW), (12, EXCHANGE)], ids=["slow", "exchange"])
def slow(request, study):
    """Runs with the greedy controller in which states are long on their way."""
    seed, changes = request.param
    model, results = run(study, seed=seed, **changes)
    assert (results.actions["action"] == ("migrate" if changes is EXCHANGE else "replicate")).all()
    assert len(results.actions) >= 2
    return model, results


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


def site_changes(run):
    """Return every site's changes from the log: when they began and took effect, the site, and its new profile.

    The two sites of an exchange receive side by side, each for as long as its own states take, from when its
    running requests leave room; the action is in effect with the later of them.
    """
    model, results = run
    scenario = model.scenario
    moved = transfer_bytes(scenario.workload, scenario.hardware.kv_bytes_per_token)
    moves = {(event.site, event.time_s): event for event in model.placement.journal if event.event == "move"}
    changes = []
    for row in results.actions.itertuples():
        parts = [(row.site, row.from_profile, row.to_profile)]
        if row.partner_site >= 0:
            parts.append((row.partner_site, row.to_profile, row.from_profile))
        seconds = [moved[before, after] / scenario.control.backhaul_bytes_per_s for _, before, after in parts]
        begun = [min(t for i, t in moves if i == site and t >= row.time_s) for site, _, _ in parts]
        ends = [at + took for at, took in zip(begun, seconds, strict=True)]
        assert row.moving_s == max(begun)
        if np.isnan(row.effective_s):
            assert max(ends) > model.clock_s
        else:
            assert row.effective_s == pytest.approx(max(ends))
        changes += [(row.time_s, end, site, after) for end, (site, _, after) in zip(ends, parts, strict=True)]
    return changes


def held_at(run):
    """Return for every request the profile its site held when the request started, from the log alone."""
    model, results = run
    site, started = (results.records.column(name).to_numpy() for name in ("site", "started_s"))
    held = np.array(model.study.layout.profile)[site]
    for _, effective, changed, profile in sorted(site_changes(run), key=lambda c: c[1]):
        held[(site == changed) & (started >= effective)] = profile
    return held


def test_hits_are_those_of_what_the_site_held_at_the_start(study, slow):
    # states in transit are not used: until they are there, the old profile serves
    _, results = slow
    assert (results.actions["transfer_s"] > 60.0).any()
    records = results.records
    kind, profile = (records.column(name).to_numpy() for name in ("request_type", "profile"))
    assert np.array_equal(profile, held_at(slow))
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


def test_realised_gain_is_the_fields_in_hindsight_and_its_error_stands_apart(study, slow):
    """Solved here from scratch: the demand that came, with the epoch's actions and without, at the prices before."""
    model, results = slow
    assert len(model.operator.reviews) == results.actions["epoch"].nunique() > 0
    start, length = study.epochs[0][0], study.scenario.simulation.epoch_s

    def predictor(epoch):
        asked = model.drawn[epoch].asked
        xy = np.column_stack((asked.x_m, asked.y_m))
        demand = measure_demand(xy, asked.request_type, 3, length, study.scenario.demand.cell_m)
        return FieldPredictor(field_inputs(study, demand), "load_aware", "site", 0.8)

    changes = site_changes(slow)
    for epoch, rows in results.actions.groupby("epoch"):
        end, coverage = start + length * (epoch + 1), []
        for last in (epoch + 1, epoch):
            profile = np.array(study.layout.profile)
            for begun, effective, site, after in sorted(changes, key=lambda c: c[1]):
                if effective < end and begun < start + length * last:
                    profile[site] = after
            wait = predictor(epoch - 1).solve(profile).wait
            coverage.append(predictor(epoch).judge(profile, wait))
        # The field is solved to a tolerance, from another start.
        assert rows["realised_gain"].sum() == pytest.approx(coverage[0] - coverage[1], abs=1e-3)
        share = rows["realised_gain"] / rows["realised_gain"].sum()
        assert np.allclose(share, rows["predicted_gain"] / rows["predicted_gain"].sum())
        sums = results.epochs[results.epochs["epoch"] == epoch][["missed", "requests"]].sum()
        measured = 1.0 - sums["missed"] / sums["requests"]
        assert np.allclose(rows["model_error"], measured - coverage[0], atol=1e-3)


def test_floor_and_cap_hold_in_every_epoch(study):
    _, results = run(study, **{"control.fallback_floor": 0.3, "control.deep_cap": 0.35})
    for _, epoch in results.epochs.groupby("epoch"):
        count = np.bincount(epoch["profile_at_end"], minlength=4)
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


def test_sites_are_in_transit_until_their_states_are_there(slow):
    _, results = slow
    changes = site_changes(slow)
    for time, number in results.series[["time_s", "sites_in_transit"]].itertuples(index=False):
        assert number == sum(begun < time < effective for begun, effective, _, _ in changes), time
    assert results.series["sites_in_transit"].max() > 0
    last = results.actions["effective_s"].max()
    after = results.series["time_s"] >= last
    assert after.any()
    assert (results.series.loc[after, "sites_in_transit"] == 0).all()


def test_epochs_tell_what_sites_held_meanwhile(study, slow):
    """From the log and the records alone: servers over time, the profile held longest, and the busy share."""
    _, results = slow
    servers, changes = study.workload.concurrency, site_changes(slow)
    site, begun, ended = (results.records.column(n).to_numpy() for n in ("site", "started_s", "finished_s"))
    mixed = 0
    for row in results.epochs.itertuples():
        held, now, at = np.zeros(len(servers)), study.layout.profile[row.site], row.start_s
        for _, effective, changed, after in sorted(changes, key=lambda c: c[1]):
            if changed == row.site and effective < row.end_s:
                held[now] += max(effective - at, 0.0)
                now, at = after, max(effective, at)
        held[now] += row.end_s - at
        mixed += (held > 0).sum() > 1
        assert row.profile == held.argmax()
        assert row.profile_at_end == now
        assert row.concurrency == servers[row.profile]
        assert row.server_s == pytest.approx(held @ servers)
        used = np.clip(np.minimum(ended, row.end_s) - np.maximum(begun, row.start_s), 0.0, None)
        assert row.utilization == pytest.approx(used[site == row.site].sum() / row.server_s)
    assert mixed > 0


def test_two_policies_run_on_one_given_population(study):
    people = Population.draw(study.mobility, 400, stream(1, "people"))
    before, runs = people.positions()[0], []
    for policy in ("nearest", "load_aware"):
        changes = {"routing.policy": policy, "control.controller": "none"}
        runs.append(EdgeCity(study.scenario, study=study, population=people, rng=4, changes=changes).run())
    for name in ARRIVALS:
        assert runs[0].records.column(name).equals(runs[1].records.column(name)), name
    assert not runs[0].records.column("site").equals(runs[1].records.column("site"))
    assert np.array_equal(people.positions()[0], before)


def test_the_mixture_that_a_site_serves_is_as_much_work_as_the_types_themselves(small_study):
    """Through the evening, as demand shifts from epoch to epoch: equal loads and equal waits under both laws."""
    scenario = small_study.scenario.override(
        {"simulation.duration_s": 10_800.0, "control.controller": "none"}
    )
    evening = prepare(scenario, city=small_study.city, layout=small_study.layout)
    types, mixture = (
        run(evening, seed=1, **{"service.law": law})[1] for law in ("exponential_type", "exponential_mixture")
    )
    assert mixture.mean_utilization == pytest.approx(types.mean_utilization, abs=0.005)
    gap = mixture.column("wait_s") - types.column("wait_s")
    batches = [part.mean() for part in np.array_split(gap, 20)]
    half = 2.1 * np.std(batches, ddof=1) / np.sqrt(len(batches))
    assert abs(gap.mean()) < half + 0.05 < 0.25


def test_every_new_price_brings_the_mixture_that_is_expected_with_it(study):
    changes = SLOW | {"service.law": "exponential_mixture"}
    model = EdgeCity(study.scenario, study=study, rng=11, changes=changes)
    seen = set()
    while model.running:
        expected = model.operator.prediction.occupancy
        assert np.array_equal(model.engine.stations.scale, np.repeat(expected[:, None], 3, axis=1))
        seen.add(expected.tobytes())
        model.step()
    # The first epoch, the starts of the two others, and two arrivals of the states for four sites.
    assert len(seen) >= 5


def test_with_foresight_every_epoch_has_the_prices_of_the_field(study):
    still = {"control.controller": "none"}
    field = field_answers(study)
    _, seeing = run(study, **still, **{"control.forecast": "expected"})
    _, measuring = run(study, **still)
    for epoch, answer in enumerate(field.answers):
        known, late = (
            table.loc[table["epoch"] == epoch].sort_values("site")["advertised_wait_s"].to_numpy()
            for table in (seeing.epochs, measuring.epochs)
        )
        assert known == pytest.approx(answer.advertised_wait, rel=0.02, abs=1e-3)
        assert epoch == 0 or late != pytest.approx(answer.advertised_wait, rel=0.02, abs=1e-3)


def test_a_finished_run_cannot_be_stepped(steered):
    with pytest.raises(GeoEdgeError, match="the run ended"):
        steered[0].step()


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_seed_is_a_nonnegative_integer(study, seed):
    with pytest.raises(GeoEdgeError, match="nonnegative integer"):
        EdgeCity(study.scenario, study=study, rng=seed)


def test_a_study_is_no_scenario(study):
    with pytest.raises(
        GeoEdgeError, match=r"not Study; a study holds one: write EdgeCity\(study.scenario, study=study\)"
    ):
        EdgeCity(study)
    with pytest.raises(GeoEdgeError, match=r"not str; load one: `load_scenario"):
        EdgeCity("monaco")


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
    assert half < 0.007
    assert abs(np.mean(batches) - field.coverage) < 0.01
    # The field shares out the users on a border, one of whom is 0.006 of a site's load; the run sends each one way.
    assert np.abs(results.epochs["utilization"].to_numpy() - field.utilization).max() < 0.03


def test_prices_assume_the_queue_that_the_scenario_says_and_service_is_as_variable_as_it_says(small_study):
    changes = {"control.controller": "none", "service.law": "phase_type", "service.scv": 5.0}
    erlang = run(small_study, seed=4, **changes)[0]
    model, results = run(small_study, seed=4, **changes, **{"service.queue": "service_law"})
    assert model.operator.prediction.wait.max() > erlang.operator.prediction.wait.max()
    expected = FieldPredictor(
        field_inputs(small_study, small_study.demand[0]),
        "load_aware",
        "site",
        0.8,
        queue=queue_for("phase_type", 5.0),
    )
    first = EdgeCity(
        small_study.scenario, study=small_study, rng=4, changes=changes | {"service.queue": "service_law"}
    )
    np.testing.assert_allclose(
        first.operator.prediction.wait, expected.solve(small_study.layout.profile).wait, atol=1e-12
    )
    held = results.column("finished_s") - results.column("started_s")
    kind = results.column("request_type")
    assert results.meta["queue"] == "service_law"
    for q in np.unique(kind[np.isfinite(held)]):
        mine = held[np.isfinite(held) & (kind == q)]
        if len(mine) > 2000:  # prefill differs from site to site, which adds a little
            assert mine.var() / mine.mean() ** 2 == pytest.approx(5.0, rel=0.3)
