"""Shocks to a town: they begin and end at their instants, nobody is lost, and nobody else's requests shift."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from geoedge.compare.gap import explain_gap
from geoedge.control.actions import REPAIRS
from geoedge.errors import CityError, ScenarioError
from geoedge.results import Results
from geoedge.simulation.audit import audit_run
from geoedge.simulation.dynamics import Occurrence, Timeline, occurrences
from geoedge.simulation.happened import EVENT_COLUMNS
from geoedge.simulation.model import EdgeCity
from geoedge.study import events_exist, field_answers, needs_map, prepare

START = 16.75 * 3600.0
LON, LAT = 9.00833, 49.65533
"""Near the middle of the town."""
CROWD = {
    "kind": "flash_crowd",
    "start_hour": 17.0,
    "duration_s": 900.0,
    "people": 150,
    "lon": LON,
    "lat": LAT,
    "radius_m": 120.0,
    "gather_s": 120.0,
    "types": [{"name": "chat", "weight": 3.0}, {"name": "evening", "weight": 1.0}],
}
FAILURE = {"kind": "site_failure", "start_hour": 17.02, "duration_s": 600.0, "sites": [2, 4]}
RESIDENTS = ("created_s", "user", "request_type", "activity", "x_m", "y_m", "epoch")


def make(study, *events, seed=11, **changes):
    scenario = study.scenario.override({"dynamics.events": list(events)} | changes)
    same = scenario.dynamics.expected == study.scenario.dynamics.expected
    known = study.with_scenario(scenario) if same else prepare(scenario, city=study.city, layout=study.layout)
    return EdgeCity(scenario, study=known, rng=seed)


def run(study, *events, **given):
    model = make(study, *events, **given)
    return model, model.run()


def frame(results) -> pd.DataFrame:
    return results.records.to_pandas()


@pytest.fixture(scope="module")
def calm(study):
    """A run in which nothing happens and caches stay."""
    return frame(run(study, **{"control.controller": "none"})[1])


@pytest.fixture(scope="module")
def crowded(study):
    return run(study, CROWD, **{"control.controller": "none"})


@pytest.fixture(scope="module")
def broken(study):
    return run(study, FAILURE, **{"control.controller": "none"})


# -- crowds --------------------------------------------------------------------------------------------


def test_with_and_without_a_crowd_residents_ask_the_same(calm, crowded):
    records = frame(crowded[1])
    residents = records[records["user"] < 400].reset_index(drop=True)
    for name in RESIDENTS:
        assert residents[name].equals(calm[name]), name
    assert len(records) > len(residents)


def test_a_crowd_comes_stands_asks_and_leaves(study, crowded):
    records = frame(crowded[1])
    crowd = records[records["user"] >= 400]
    begin, end = 17.0 * 3600.0, 17.25 * 3600.0
    assert crowd["created_s"].between(begin, end).all()
    assert crowd["user"].between(400, 549).all()
    centre = study.city.from_lonlat([(LON, LAT)])[0]
    away = np.hypot(crowd["x_m"] - centre[0], crowd["y_m"] - centre[1])
    assert away.max() <= 120.0
    assert crowd.groupby("user")[["x_m", "y_m"]].nunique().max().max() == 1
    # 150 people at 0.015/s for 900 s less half of the 120 s in which they arrive, within four deviations.
    wanted = 150 * 0.015 * (900.0 - 60.0)
    assert len(crowd) == pytest.approx(wanted, abs=4 * np.sqrt(wanted))
    early = crowd["created_s"] < begin + 120.0
    assert early.sum() == pytest.approx(150 * 0.015 * 60.0, abs=4 * np.sqrt(150 * 0.015 * 60.0))
    share = (crowd["request_type"] == 0).mean()
    assert set(crowd["request_type"]) == {0, 2}
    assert share == pytest.approx(0.75, abs=4 * np.sqrt(0.75 * 0.25 / len(crowd)))


def test_arrived_is_served_and_waiting_and_the_table_says_what_happened(crowded):
    model, results = crowded
    drawn = sum(len(part.asked.created_s) for part in model.drawn)
    assert sum(results.status_counts().values()) == results.records.num_rows == drawn
    (row,) = results.tables["events"].itertuples()
    crowd = frame(results).query("user >= 400")
    assert row.kind == "flash_crowd"
    assert (row.start_s, row.end_s) == (17.0 * 3600.0, 17.25 * 3600.0)
    assert (row.people, row.requests) == (150, len(crowd))
    assert row.coverage == (crowd["ttft_s"] <= 0.8).mean()
    assert (row.lon, row.lat) == pytest.approx((LON, LAT), abs=1e-6)


def test_people_at_a_crowd_ask_as_people_at_leisure_if_nothing_is_said(study):
    plain = {key: value for key, value in CROWD.items() if key != "types"} | {"people": 600}
    crowd = frame(run(study, plain, **{"control.controller": "none"})[1]).query("user >= 400")
    weight = np.array([0.4, 0.4 * 0.2, 0.2 * 4.0 * 0.8])
    found = np.bincount(crowd["request_type"], minlength=3) / len(crowd)
    assert found == pytest.approx(weight / weight.sum(), abs=4 * np.sqrt(0.25 / len(crowd)))


def test_the_expected_demand_knows_an_announced_crowd_alone(study):
    known = make(study, CROWD | {"announced": True}).study
    hidden = make(study, CROWD).study
    more = [a.request_rate - b.request_rate for a, b in zip(known.demand, hidden.demand, strict=True)]
    assert more == pytest.approx([0.0, 150 * 0.015 * 840.0 / 900.0, 0.0])
    assert [d.request_rate for d in hidden.demand] == [d.request_rate for d in study.demand]
    surprised, told = (field_answers(one).answers[1].ttft_coverage(0.8) for one in (hidden, known))
    assert told < surprised - 0.02


# -- popularity ----------------------------------------------------------------------------------------

DRIFT = {
    "kind": "popularity_drift",
    "start_hour": 17.0,
    "duration_s": 900.0,
    "types": [{"name": "chat", "weight": 0.5}, {"name": "evening", "weight": 0.5}],
}


def test_under_a_drift_the_same_people_ask_at_the_same_instants_for_other_things(study, calm):
    records = frame(run(study, DRIFT, **{"control.controller": "none"})[1])
    for name in RESIDENTS:
        assert records[name].equals(calm[name]) == (name != "request_type"), name
    before = records["created_s"] < 17.0 * 3600.0
    assert records["request_type"][before].equals(calm["request_type"][before])
    assert (records["request_type"][records["created_s"] > 17.25 * 3600.0] != 1).all()


def test_theory_and_field_expect_a_stated_drift(study):
    model = make(study, DRIFT, **{"control.controller": "none"})
    asked = np.zeros((2, 3))
    for seed in range(6):
        other = EdgeCity(model.scenario, study=model.study, rng=seed)
        other.run()
        for epoch in (1, 2):
            asked[epoch - 1] += np.bincount(other.drawn[epoch].asked.request_type, minlength=3)
    for epoch in (1, 2):
        expected = model.study.demand[epoch].total * 900.0 * 6
        assert np.abs(asked[epoch - 1] - expected).max() < 5 * np.sqrt(expected.max()) + 0.02 * expected.max()
    assert model.study.demand[2].mix[1] == 0.0


def test_a_random_walk_is_the_runs_own_and_no_answer_knows_it(study):
    walk = {"kind": "popularity_drift", "start_hour": 16.0, "duration_s": 6000.0, "sd_per_hour": 3.0}
    still = {"control.controller": "none"}
    first, again, other = (
        frame(run(study, walk, seed=seed, **still)[1])["request_type"] for seed in (11, 11, 12)
    )
    assert first.equals(again)
    mixes = [np.bincount(kinds, minlength=3) / len(kinds) for kinds in (first, other)]
    assert np.abs(mixes[0] - mixes[1]).max() > 0.05
    model = make(study, walk, **still)
    assert [d.mix.tolist() for d in model.study.demand] == [d.mix.tolist() for d in study.demand]


# -- failures ------------------------------------------------------------------------------------------


def test_a_failed_site_starts_nothing_until_it_is_back_and_nobody_is_lost(calm, broken):
    _model, results = broken
    records = frame(results)
    fails, back = round(17.02 * 3600.0, 6), round(17.02 * 3600.0, 6) + 600.0
    for name in RESIDENTS:
        assert records[name].equals(calm[name]), name
    assert sum(results.status_counts().values()) == len(records)
    assert results.status_counts()["rejected"] == 0
    assert np.isfinite(records["ttft_s"]).all()
    for site in (2, 4):
        mine = records[records["site"] == site]
        assert not mine["started_s"].between(fails, back, inclusive="neither").any()
        assert not mine["created_s"].between(fails, back, inclusive="neither").any()
        assert (mine["started_s"] < fails).any()
        assert (mine["started_s"] > back).any()
        # What runs when the site fails has had its first token, or was sent elsewhere.
        early = mine[mine["started_s"] < fails]
        assert (early["first_token_s"] <= fails + 1e-9).all()
        assert (early["finished_s"] <= fails + 1e-9).all()


def test_requests_of_a_failed_site_are_sent_again_and_counted(calm, broken):
    (row,) = broken[1].tables["events"].itertuples()
    fails = row.start_s
    lost = calm[calm["site"].isin([2, 4]) & (calm["created_s"] < fails) & (calm["first_token_s"] > fails)]
    assert row.rerouted == len(lost) > 0
    assert row.sites == "2 4"
    moved = frame(broken[1]).loc[lost.index]
    assert not moved["site"].isin([2, 4]).any()
    assert (moved["arrived_s"] >= fails).all()
    parts = moved["radio_s"] + moved["wait_s"] + moved["prefill_s"]
    assert np.allclose(parts, moved["ttft_s"])


def test_a_site_comes_back_empty_and_fetches_its_profile_by_itself(study, broken):
    model, results = broken
    back = round(17.02 * 3600.0, 6) + 600.0
    rows = results.actions
    assert rows["action"].tolist() == ["restore", "restore"]
    assert rows["time_s"].tolist() == [back, back]
    assert rows["site"].tolist() == [2, 4]
    assert rows["to_profile"].tolist() == study.layout.profile[[2, 4]].tolist()
    assert (rows["from_profile"] == 0).all()
    assert np.allclose(rows["effective_s"], back + rows["bytes_moved"] / 2e7)
    assert results.tables["events"]["restored_bytes"].tolist() == [rows["bytes_moved"].sum()]
    records = frame(results)
    for row in rows.itertuples():
        mine = records[(records["site"] == row.site) & (records["started_s"] >= back)]
        early = mine["started_s"] < row.effective_s
        assert (mine["hit_tokens"][early] == 0).all()
        assert early.any()
        assert (mine["profile"][~early] == row.to_profile).all()
    assert np.array_equal(model.placement.profile, study.layout.profile)


def test_what_is_on_its_way_to_a_site_that_fails_is_called_off_and_fetched_again(study):
    slow = {"control.backhaul_bytes_per_s": 2e6}
    _, plain = run(study, **slow)
    first = plain.actions.iloc[0]
    assert first["effective_s"] > first["time_s"] + 30.0
    fail = {
        "kind": "site_failure",
        "start_hour": (first["time_s"] + 20.0) / 3600.0,
        "duration_s": 30.0,
        "sites": [int(first["site"])],
    }
    model, results = run(study, fail, **slow)
    restored = results.actions[results.actions["action"] == "restore"]
    assert restored["site"].tolist() == [first["site"]]
    assert restored["to_profile"].tolist() == [first["to_profile"]]
    assert restored["from_profile"].tolist() == [0]
    names = [event.event for event in model.placement.journal if event.site == first["site"]]
    assert names[names.index("fail") :][:2] == ["fail", "cancel"]


def test_overlapping_failures_end_with_the_last_one(study):
    again = FAILURE | {"start_hour": 17.05, "duration_s": 1200.0, "sites": [4]}
    _model, results = run(study, FAILURE, again, **{"control.controller": "none"})
    back = round(17.05 * 3600.0, 6) + 1200.0
    restored = results.actions.set_index("site")["time_s"]
    assert restored[4] == back
    assert restored[2] < back
    mine = frame(results).query("site == 4")
    assert not mine["started_s"].between(round(17.02 * 3600.0, 6), back, inclusive="neither").any()


def test_prices_forget_a_site_that_is_down_and_know_it_again(study):
    model = make(study, FAILURE, **{"control.controller": "none"})
    prices = {}
    while model.running:
        model.step()
        prices[model.clock_s] = (model.operator.prediction, model.operator.catalogue.prices)
    down = [seen for time, seen in prices.items() if 61_320.0 < time < 61_800.0]
    up = [seen for time, seen in prices.items() if time < 61_200.0 or time > 61_920.0]
    for prediction, price in down:
        assert (prediction.arrival_rate[[2, 4]] == 0.0).all()
        assert (price[[2, 4]] == 3600.0).all()
        assert prediction.arrival_rate.sum() == pytest.approx(up[0][0].arrival_rate.sum(), rel=0.2)
    for prediction, price in up:
        assert (prediction.arrival_rate > 0.0).all()
        assert (price < 3600.0).all()


def test_planners_leave_sites_that_are_down_alone(study):
    long = FAILURE | {"start_hour": 16.9, "duration_s": 1500.0}
    _, results = run(study, long)
    planned = results.actions[~results.actions["action"].isin(REPAIRS)]
    assert len(planned)
    during = planned[planned["time_s"].between(16.9 * 3600.0, 16.9 * 3600.0 + 1500.0)]
    assert len(during)
    touched = set(during["site"]) | set(during["partner_site"])
    assert not touched & {2, 4}


# -- links, catalogue, controller, versions ------------------------------------------------------------


def test_a_lost_backhaul_slows_what_is_under_way_and_comes_back(study):
    _, plain = run(study)
    first = plain.actions.iloc[0]
    loss = {
        "kind": "backhaul_loss",
        "start_hour": (first["time_s"] + 5.0) / 3600.0,
        "duration_s": 200.0,
        "rate_left": 0.0,
    }
    model, slowed = run(study, loss)
    same = slowed.actions.iloc[0]
    assert same["site"] == first["site"]
    assert same["effective_s"] == pytest.approx(first["effective_s"] + 200.0, abs=1e-3)
    assert (model.placement.rate == 2e7).all()


def test_losses_at_a_time_multiply_and_end_apart(study):
    half = {"kind": "backhaul_loss", "start_hour": 17.0, "duration_s": 600.0, "rate_left": 0.5}
    tenth = half | {"start_hour": 17.1, "rate_left": 0.1, "sites": [3]}
    model = make(study, half, tenth)
    seen = {}
    while model.running:
        model.step()
        seen[round(model.clock_s - 17.0 * 3600.0)] = model.placement.rate[[0, 3]].tolist()
    assert seen[60] == [1e7, 1e7]
    assert seen[420] == [1e7, 1e6]
    assert seen[660] == [2e7, 2e6]
    assert seen[1020] == [2e7, 2e7]


def test_in_a_partition_routers_keep_what_they_have_heard(study):
    part = {"kind": "catalogue_partition", "start_hour": 16.9, "duration_s": 1500.0}
    model = make(study, part)
    heard = []
    while model.running:
        model.step()
        inside = 16.9 * 3600.0 < model.clock_s < 16.9 * 3600.0 + 1500.0
        advert = model.dynamics.advert(model.operator.catalogue.advert())
        heard.append((inside, np.array(advert.wait_s), np.array(model.operator.catalogue.prices)))
    during = [(wait, price) for inside, wait, price in heard if inside]
    assert all(np.array_equal(wait, during[0][0]) for wait, _ in during)
    assert any(not np.array_equal(wait, price) for wait, price in during)
    assert all(np.array_equal(wait, price) for inside, wait, price in heard if not inside)


@pytest.mark.parametrize("advertise", ["state", "measured"])
def test_a_partition_stops_reports_too(study, advertise):
    part = {"kind": "catalogue_partition", "start_hour": 17.0, "duration_s": 600.0}
    model = make(study, part, **{"routing.advertise": advertise, "control.controller": "none"})
    while model.clock_s < 17.0 * 3600.0 + 60.0:
        model.step()
    before = model.engine.advertised_wait_s
    while model.clock_s < 17.0 * 3600.0 + 540.0:
        model.step()
        assert np.array_equal(model.engine.advertised_wait_s, before)
    model.step()
    model.step()
    assert not np.array_equal(model.engine.advertised_wait_s, before)


@pytest.mark.parametrize(
    "changes",
    [
        {"policy": "power_of_two"},
        {"policy": "preble", "routers": 3},
        {"policy": "risk_aware", "routers": 2},
        {"policy": "load_aware", "local_count": True},
        {"policy": "load_aware", "telemetry_period_s": 0.0},
    ],
    ids=lambda changes: " ".join(str(value) for value in changes.values()),
)
def test_every_router_lives_through_a_partition(study, changes):
    part = {"kind": "catalogue_partition", "start_hour": 17.0, "duration_s": 600.0}
    routing = {f"routing.{key}": value for key, value in changes.items()}
    given = {"routing.advertise": "state", "control.controller": "none"} | routing
    _model, results = run(study, part, **given)
    assert sum(results.status_counts().values()) == results.records.num_rows
    assert audit_run(results).violations == []
    _, plain = run(study, **given)
    created, site, other = (
        results.records.column("created_s").to_numpy(),
        results.records.column("site").to_numpy(),
        plain.records.column("site").to_numpy(),
    )
    early = created < 17.0 * 3600.0
    assert np.array_equal(site[early], other[early])
    assert not np.array_equal(site, other)


def test_a_new_version_is_no_hit_for_routers_that_are_cut_off_either(study):
    part = {"kind": "catalogue_partition", "start_hour": 17.0, "duration_s": 600.0}
    update = {"kind": "prefix_update", "start_hour": 17.1, "prefix": "root"}
    model = make(study, part, update, **{"control.controller": "none"})
    while model.clock_s < 17.1 * 3600.0 + 60.0:
        model.step()
    full = np.broadcast_to(model.study.workload.full_prefill_time, model.beliefs.prefill.shape)
    assert np.array_equal(model.beliefs.prefill, full)
    assert (model.placement.profile > 0).any()  # renewed meanwhile, and not heard of
    assert np.array_equal(model._advert().prefill, full)


def test_without_its_controller_a_town_keeps_prices_and_caches(study):
    down = {"kind": "controller_down", "start_hour": 16.9, "duration_s": 900.0}
    _model, results = run(study, down)
    _, plain = run(study)
    assert (plain.actions["epoch"] == 1).any()
    assert (results.actions["epoch"] == 2).all()
    assert len(results.actions)
    rows = results.epochs.set_index("epoch")["advertised_wait_s"]
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[1], rows[2])
    decisions = results.tables["decisions"].set_index("epoch")
    assert decisions["why"][1] == "absent"
    assert (decisions["actions"][1], decisions["horizon_epochs"][1]) == (0, 0)
    assert (plain.tables["decisions"]["why"] != "absent").all()
    assert audit_run(results).violations == []


def test_a_new_version_of_a_prefix_makes_caches_useless_until_they_are_renewed(study):
    update = {"kind": "prefix_update", "start_hour": 17.1, "prefix": "left"}
    _model, results = run(study, update, **{"control.controller": "none"})
    rows = results.actions
    (site,) = np.flatnonzero(study.layout.profile == 2)
    assert rows["action"].tolist() == ["invalidate", "restore"]
    assert rows["site"].tolist() == [site, site]
    assert rows["from_profile"].tolist() == [2, 1]
    assert rows["to_profile"].tolist() == [1, 2]
    # The left branch alone is fetched: 2560 tokens of 131,072 B.
    assert rows["bytes_moved"].tolist() == [0.0, 2560 * 131_072.0]
    begin, renewed = 61_560.0, rows["effective_s"].iloc[1]
    assert renewed == pytest.approx(begin + 2560 * 131_072.0 / 2e7)
    mine = frame(results).query("site == @site and request_type == 1")
    stale = mine["started_s"].between(begin, renewed, inclusive="left")
    assert stale.any()
    assert (mine["hit_tokens"][stale] == 512).all()
    assert (mine["hit_tokens"][~stale] == 3072).all()


def test_a_new_root_empties_every_cache(study):
    update = {"kind": "prefix_update", "start_hour": 17.1, "prefix": "root"}
    _, results = run(study, update, **{"control.controller": "none"})
    lost = results.actions.query("action == 'invalidate'")
    assert lost["site"].tolist() == np.flatnonzero(study.layout.profile > 0).tolist()
    assert (lost["to_profile"] == 0).all()


UNDER_WAY = [
    {"kind": "prefix_update", "start_hour": 17.1, "prefix": "left"},
    {"kind": "prefix_update", "start_hour": 61_580.0 / 3600.0, "prefix": "root"},
    {"kind": "prefix_update", "start_hour": 61_590.0 / 3600.0, "prefix": "left"},
]
"""The second and the third come while a site waits for what the first has made it fetch."""


def test_a_site_that_waits_for_states_uses_no_outdated_ones_and_forgets_no_update(study):
    slow = {"control.controller": "none", "control.backhaul_bytes_per_s": 2e6, "routing.policy": "nearest"}
    model = make(study, *UNDER_WAY, **slow)
    (site,) = np.flatnonzero(study.layout.profile == 2)
    arrives = 61_560.0 + 2560 * 131_072.0 / 2e6
    while model.clock_s < arrives:
        model.step()
    assert model.placement.profile[site] == 0
    # What is advertised is priced by what the site holds after it has given up what has just arrived.
    assert model.operator.prediction.profile[site] == 0
    results = model.run()
    lost = results.actions.query("action == 'invalidate' and site == @site")
    assert lost["to_profile"].tolist() == [1, 0]
    assert lost["reason"].tolist() == ["left has a new version", "root has a new version"]
    mine = frame(results).query("site == @site and request_type < 2")
    outdated = mine["started_s"].between(61_580.0, arrives, inclusive="neither")
    assert outdated.any()
    assert (mine["profile"][outdated] == 1).all()
    assert (mine["hit_tokens"][outdated] == 0).all()
    assert np.allclose(
        mine["prefill_s"][outdated], study.workload.full_prefill_time[mine["request_type"][outdated]]
    )
    before = mine["started_s"].between(61_560.0, 61_580.0, inclusive="right")
    assert before.any()
    assert (mine["hit_tokens"][before] == 512).all()
    assert audit_run(results).violations == []


def test_a_site_that_is_down_has_no_servers(study):
    fail = FAILURE | {"sites": [0]}
    _, results = run(study, fail, **{"control.controller": "none"})
    rows = results.epochs.query("site == 0").set_index("epoch")
    servers = rows["concurrency"].iloc[0]
    assert rows["server_s"].tolist() == pytest.approx([900.0 * servers, 300.0 * servers, 900.0 * servers])
    own = frame(results).query("site == 0 and epoch == 1")
    assert len(own)
    assert rows["utilization"][1] > 0.0


def test_what_is_said_of_a_site_that_is_down_leaves_out_types_that_it_does_not_serve(study):
    workload = study.scenario.model_dump(mode="json", exclude_none=True)["workload"]
    workload["profiles"] += [
        {"name": "other", "prefixes": [], "made_with": {"model": "big"}, "placement_probability": 0.1}
    ]
    workload["profiles"][0]["placement_probability"] = 0.2
    workload["requests"][1] |= {"needs": {"model": "big"}}
    scenario = study.scenario.override(
        {"workload": workload, "dynamics.events": [FAILURE | {"sites": [2, 5]}]}
    )
    layout = replace(study.layout, profile=np.array([0, 0, 1, 1, 2, 4]))
    model = EdgeCity(scenario, study=prepare(scenario, city=study.city, layout=layout), rng=11)
    while model.clock_s < FAILURE["start_hour"] * 3600.0 + 60.0:
        model.step()
    times = model.study.workload.occupancy_time
    idle, share = model.operator.prediction.occupancy[[2, 5]], model.study.workload.type_probability
    assert idle[1] == pytest.approx(times[4, 1])
    assert idle[0] == pytest.approx(np.average(times[0, [0, 2]], weights=share[[0, 2]]))


# -- chance, order, places -----------------------------------------------------------------------------

RANDOM = [
    {"kind": "site_failure", "per_day": 200.0, "duration_s": 120.0, "count": 1},
    {"kind": "flash_crowd", "per_day": 80.0, "duration_s": 300.0, "people": 30},
    {"kind": "backhaul_loss", "per_day": 80.0, "duration_s": 300.0, "rate_left": 0.2},
    {"kind": "controller_down", "per_day": 50.0, "duration_s": 600.0},
    {"kind": "catalogue_partition", "per_day": 50.0, "duration_s": 300.0},
    {"kind": "prefix_update", "per_day": 50.0, "prefix": "root"},
]


def test_random_shocks_lose_nobody_and_the_same_seed_gives_the_same_bytes(study, tmp_path):
    model, results = run(study, *RANDOM)
    _, again = run(study, *RANDOM)
    assert results.records.equals(again.records)
    assert results.actions.equals(again.actions)
    pd.testing.assert_frame_equal(results.tables["events"], again.tables["events"])
    drawn = sum(len(part.asked.created_s) for part in model.drawn)
    assert sum(results.status_counts().values()) == results.records.num_rows == drawn
    events = results.tables["events"]
    assert list(events.columns) == list(EVENT_COLUMNS)
    assert events["kind"].nunique() >= 4
    assert events["start_s"].is_monotonic_increasing
    _, other = run(study, *RANDOM, seed=12)
    assert not other.tables["events"]["start_s"].equals(events["start_s"])
    saved = Results.load(results.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(saved.tables["events"], events)


def test_random_instants_are_poisson_and_do_not_depend_on_the_window(study):
    often = {"kind": "controller_down", "per_day": 400.0, "duration_s": 1.0}
    scenario = study.scenario.override({"dynamics.events": [often]})
    known = study.with_scenario(scenario)
    counts = np.array([len(occurrences(known, seed)) for seed in range(300)])
    mean = 400.0 * 2701.0 / 86_400.0
    assert counts.mean() == pytest.approx(mean, abs=4 * np.sqrt(mean / 300))
    assert counts.var() == pytest.approx(mean, rel=4 * np.sqrt(2 / 300))
    short = scenario.override({"simulation.duration_s": 900.0, "simulation.warm_up_s": 0.0})
    part = prepare(short, city=study.city, layout=study.layout)
    early = [one.start_s for one in occurrences(known, 5) if one.start_s < START + 900.0]
    assert [one.start_s for one in occurrences(part, 5)] == early


def test_a_timeline_begins_what_has_begun_and_ends_before_it_begins():
    one, two = (
        Occurrence(k, 0, "controller_down", start, end) for k, (start, end) in enumerate([(5, 20), (20, 30)])
    )
    line = Timeline([one, two], 10.0)
    assert line.next_s() == 10.0
    assert list(line.due(10.0)) == [(one, True)]
    assert list(line.due(19.9)) == []
    assert list(line.due(25.0)) == [(one, False), (two, True)]
    assert list(line.due(30.0)) == [(two, False)]
    assert line.next_s() == np.inf


def test_sites_fail_around_a_place_and_only_where_there_are_any(study):
    near = {"kind": "site_failure", "start_hour": 17.0, "duration_s": 60.0, "lon": LON, "lat": LAT}
    centre = study.city.from_lonlat([(LON, LAT)])[0]
    away = np.hypot(*(study.layout.xy - centre).T)
    model = make(study, near | {"radius_m": 450.0})
    assert model.dynamics.happening[0].sites == tuple(np.flatnonzero(away <= 450.0).tolist())
    with pytest.raises(ScenarioError, match="no site so near the place"):
        make(study, near | {"radius_m": 0.5})


@pytest.mark.parametrize(
    ("event", "error", "words"),
    [
        (FAILURE | {"sites": [6]}, ScenarioError, r"sites are numbered 0 to 5"),
        ({**FAILURE, "sites": None, "count": 7}, ScenarioError, r"there are 6 sites"),
        ({**CROWD, "lon": None, "lat": None, "place": "Brot"}, CityError, 'did you mean "<b>Brot</b>"'),
        (CROWD | {"lat": 10.0}, CityError, "no land of town within 120 m"),
    ],
    ids=["site", "count", "name", "sea"],
)
def test_what_the_city_does_not_have_is_refused_in_one_line(study, event, error, words):
    given = {key: value for key, value in event.items() if value is not None}
    with pytest.raises(error, match=words) as caught:
        make(study, given)
    assert str(caught.value).isprintable()


def test_a_place_that_does_not_exist_is_refused_before_anything_long_begins(study, monkeypatch):
    def too_late(*args, **kwargs):
        pytest.fail("the town's streets are walked for nothing")

    monkeypatch.setattr("geoedge.city.trips.make_mobility", too_late)
    nowhere = {key: value for key, value in CROWD.items() if key not in ("lon", "lat")} | {"place": "Brot"}
    words = (
        r'dynamics.events\[1\]: place = "Brot": town has no place of this name, did you mean "<b>Brot</b>"'
    )
    for layout in (study.layout, None):
        with pytest.raises(CityError, match=words):
            prepare(
                study.scenario.override({"dynamics.events": [FAILURE, nowhere]}),
                city=study.city,
                layout=layout,
            )
    with pytest.raises(ScenarioError, match=r"dynamics.events\[0\].sites = 6: sites are numbered 0 to 5"):
        prepare(
            study.scenario.override({"dynamics.events": [FAILURE | {"sites": [6]}]}),
            city=study.city,
            layout=study.layout,
        )


def test_only_events_with_places_or_sites_need_a_map(study):
    def needs(*events):
        return needs_map(study.scenario.override({"dynamics.events": list(events)}))

    down = {"kind": "controller_down", "start_hour": 17.0, "duration_s": 60.0}
    anywhere = {key: value for key, value in CROWD.items() if key not in ("lon", "lat")}
    assert not needs()
    assert not needs(down, anywhere)
    assert needs(down, FAILURE)
    assert needs(CROWD)


def test_events_are_looked_up_without_a_run_where_the_map_is_at_hand(study, monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("geoedge.study.prepared.prepare", lambda scenario: asked.append(scenario.city.source))
    calm, crowd = study.scenario, study.scenario.override({"dynamics.events": [CROWD]})
    assert events_exist(calm), "there is nothing to look up"
    assert not events_exist(crowd), "the town is no shipped city and no file: its map would be downloaded"
    assert asked == []
    file = tmp_path / "town.osm"
    file.touch()
    at_hand = crowd.override({"city.source": str(file)})
    assert events_exist(at_hand)
    assert events_exist(crowd.override({"city.source": "Monaco"}))
    assert asked == [str(file), "Monaco"]


def test_a_town_in_which_nothing_happens_has_no_table_of_events(study):
    assert "events" not in run(study, **{"control.controller": "none"})[1].tables


def test_people_of_a_crowd_have_no_sessions_and_leave_those_of_residents_alone(study):
    still = {"control.controller": "none", "sessions.mean_turns": 3.0}
    plain, crowd = (frame(run(study, *events, **still)[1]) for events in ((), (CROWD,)))
    residents = crowd[crowd["user"] < 400].reset_index(drop=True)
    for name in (*RESIDENTS, "session", "turn"):
        assert residents[name].equals(plain[name]), name
    assert (crowd.loc[crowd["user"] >= 400, "session"] == -1).all()
    assert (residents["turn"] > 0).any()


@pytest.mark.parametrize("controller", ["none", "greedy", "oracle"])
def test_the_log_of_a_run_full_of_shocks_replays_and_keeps_to_the_rules(study, controller):
    _, results = run(study, *RANDOM, **{"control.controller": controller})
    assert {"restore", "invalidate"} <= set(results.actions["action"])
    audit = audit_run(results)
    assert audit.violations == []
    assert audit.requests == results.status_counts()
    repairs = results.actions["action"].isin(REPAIRS)
    assert results.actions.loc[repairs, "realised_gain"].isna().all()


def test_a_gap_is_explained_for_an_ordinary_day(study):
    scenario = study.scenario.override({"dynamics.events": [CROWD | {"announced": True}, FAILURE]})
    with pytest.raises(ScenarioError, match=r"dynamics.events\[1\] = site_failure: a gap is explained for"):
        explain_gap(scenario, study.city, study.layout)
