"""Controllers by name on the town: what they know, where they start, and that their logs hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from geoedge.control.actions import NEVER_BYTES
from geoedge.control.left_out import WHY
from geoedge.control.planners import PLANNERS
from geoedge.scenario import ControlConfig
from geoedge.simulation import steering
from geoedge.simulation.audit import audit_run, bounds_told
from geoedge.simulation.model import EdgeCity
from geoedge.simulation.steering import control_limits, field_predictor, started
from geoedge.study import prepare


def model_of(study, **changes):
    return EdgeCity(study.scenario, study=study, rng=11, changes=changes)


def measured_coverage(study, profile):
    """Return the field's coverage of a placement over the measured epochs, by requests."""
    parts = [field_predictor(study, demand).solve(profile).coverage for demand in study.demand]
    return float(np.average(parts, weights=study.expected_requests))


@pytest.mark.parametrize("name", PLANNERS)
def test_every_controller_keeps_an_honest_log(study, name):
    model = model_of(study, **{"control.controller": name, "control.forecast": "movement"})
    results = model.run()
    assert results.meta["controller"] == name
    assert audit_run(results).violations == []
    moved = results.actions["bytes_moved"].sum()
    assert model.moved_bytes == pytest.approx(moved)
    decisions = results.tables["decisions"]
    if not PLANNERS[name].moves:
        assert len(results.actions) == len(decisions) == 0
        return
    assert set(decisions["planner"]) == {name}
    assert {word for why in decisions["why"] for word in why.split(", ")} <= set(WHY)
    ahead = PLANNERS[name].looks_ahead
    assert (decisions["horizon_epochs"].max() > 1) == ahead
    for part in ("before", "after"):
        now, mean = decisions[f"coverage_{part}"], decisions[f"horizon_coverage_{part}"]
        assert now.notna().all()
        assert (now != mean).any() == ahead


@pytest.mark.parametrize("changes", [{"control.controller": "static"}, {"control.start": "best"}])
def test_the_best_start_is_better_than_the_layout_and_keeps_limits(study, changes):
    with_keys = study.with_scenario(study.scenario.override(changes))
    best = started(with_keys).layout.profile
    assert started(with_keys).layout.profile.tolist() == best.tolist()
    assert measured_coverage(study, best) > measured_coverage(study, study.layout.profile)
    count, limits = np.bincount(best, minlength=4), control_limits(study)
    assert (count >= limits.least_sites).all()
    assert (count <= limits.most_sites).all()
    model = model_of(study, **changes)
    assert model.placement.profile.tolist() == best.tolist()
    assert model.engine.stations.sites["profile"].tolist() == best.tolist()
    assert study.layout.profile.tolist() == [0, 0, 1, 1, 2, 3]


def test_a_best_start_found_before_is_not_taken_for_another_study(study, monkeypatch):
    """A search without sessions, or with other weights of the same parts, does not answer for this one."""
    sought, weights = [], [np.array([0.5, 0.5]), np.array([0.4, 0.6])]
    monkeypatch.setattr(steering, "_best", {})
    monkeypatch.setattr(steering, "improve", lambda *told: sought.append(told) or study.layout.profile)
    plain = study.scenario.override({"control.start": "best"})
    several = plain.override({"sessions.mean_turns": 3.0})
    for scenario, weight in product((plain, several, plain), weights):
        monkeypatch.setattr(steering, "window_parts", lambda study, _, w=weight: (study.demand[-2:], w))
        started(study.with_scenario(scenario))
    assert len(sought) == 4


@pytest.mark.parametrize("name", ["greedy", "oracle", "none"])
def test_a_layout_below_the_floor_is_led_back_epoch_by_epoch(study, name):
    """Two of six sites hold the fallback, four are asked for, an action an epoch."""
    changes = {"control.fallback_floor": 0.6, "control.most_actions": 1, "control.controller": name}
    results = model_of(study, **changes).run()
    found = audit_run(results)
    held = [
        int((rows["profile_at_end"] == 0).sum()) for _, rows in results.epochs.groupby("epoch", sort=True)
    ]
    moves = results.actions.groupby("epoch").size()
    assert found.violations == []
    if name == "oracle":
        assert min(held) >= 4
        assert found.outside_s == {}
        assert bounds_told(results) == []
        return
    length = float(results.epochs["end_s"].max() - results.epochs["start_s"].min())
    (line,) = bounds_told(results)
    assert line.startswith("control.fallback_floor = 0.6 was not kept for")
    assert 0.0 < found.outside_s["fallback_floor"] <= length
    if name == "greedy":
        assert held == [min(2 + k, 4) for k in range(len(held))]
        assert moves.max() == 1
    else:
        assert set(held) == {2}
        assert found.outside_s["fallback_floor"] == length


@pytest.mark.parametrize("name", ["random", "greedy", "multi_period"])
def test_actions_of_an_epoch_are_as_many_as_the_scenario_lets(study, name):
    changes = {"control.controller": name, "control.most_actions": 2, "control.min_gain": 0.0}
    results = model_of(study, **changes).run()
    taken = results.actions.groupby("epoch").size()
    assert taken.max() == 2
    assert audit_run(results).violations == []
    fewer = results.scenario_toml.replace("most_actions = 2", "most_actions = 1")
    assert any(
        "2 actions, allowed are 1" in line
        for line in audit_run(replace(results, scenario_toml=fewer)).violations
    )


def test_a_profile_under_a_cap_or_floor_is_judged_by_it():
    """The second profile stores more and hits less than the third, which only so many sites may hold."""
    hits, moved = (
        np.array([[0], [500], [1000]]),
        np.array([[0.0, 20.0, 10.0], [0.0, 0.0, 10.0], [0.0, 20.0, 0.0]]),
    )
    workload = SimpleNamespace(
        serves=np.ones((3, 1), dtype=bool),
        hit_tokens=hits,
        concurrency=np.full(3, 5),
        persistent_bytes=np.array([0, 20, 10]),
    )

    def prospects(**control):
        told = SimpleNamespace(
            workload=workload,
            layout=range(6),
            scenario=SimpleNamespace(control=ControlConfig(**control)),
        )
        return steering._prospects(told, SimpleNamespace(moved_bytes=moved))

    assert prospects()[0].tolist() == [0.0, NEVER_BYTES, 10.0]
    assert prospects(deep_cap=0.5)[0].tolist() == [0.0, 20.0, 10.0]
    assert prospects(deep_share_cap=0.5)[0].tolist() == [0.0, 20.0, 10.0]


def test_under_constant_demand_hysteresis_ends_coming_and_going(study):
    """People stay where they are for three quarters of an hour; what differs from epoch to epoch is chance."""
    still = {
        "mobility.departures_per_hour": [0.0] * 24,
        "simulation.start_hour": 17.0,
        "simulation.epoch_s": 180.0,
        "simulation.warm_up_s": 180.0,
        "control.min_gain": 0.0,
    }
    returns = []
    for hysteresis in (0.0, 0.02):
        town = prepare(study.scenario.override(still), city=study.city, layout=study.layout)
        results = model_of(town, **{"control.hysteresis": hysteresis}).run()
        assert len(results.actions) > 3
        returns.append(len(audit_run(results).oscillations))
    assert returns[0] > 0
    assert returns[1] == 0


def test_the_oracle_knows_what_will_be_asked(study):
    model = model_of(study, **{"control.controller": "oracle"})
    asked, told = model.steering.known, []
    model.steering.known = lambda epoch: told.append(asked(epoch)) or told[-1]
    for epoch in (0, 1):
        while model.epoch == epoch:
            model.step()
    while model.running:
        model.step()
    (known,), came = told[-1], model.steering.measured
    assert len(told) == 2
    assert np.array_equal(came.xy, known.xy)
    assert np.array_equal(came.rate, known.rate)


def test_knowing_changes_nothing_that_people_do(study):
    knowing = model_of(study, **{"control.controller": "oracle", "control.forecast": "known"}).run()
    plain = model_of(study, **{"control.controller": "none"}).run()
    for name in ("created_s", "user", "request_type", "x_m"):
        assert knowing.records.column(name).equals(plain.records.column(name))


def test_the_oracle_moves_at_once_in_every_epoch(study):
    model = model_of(study, **{"control.controller": "oracle", "control.migration_budget_bytes": 0})
    results = model.run()
    assert (results.actions["transfer_s"] == 0.0).all()
    starts = {start for start, _ in study.epochs}
    assert set(results.actions["effective_s"]) <= starts
    # what is there at once takes no bytes, in whatever table one looks
    assert len(results.actions) > 0
    assert results.actions["bytes_moved"].sum() == results.tables["decisions"]["bytes_moved"].sum() == 0.0
    assert audit_run(results).bytes_moved == model.moved_bytes == 0.0


def test_chance_follows_the_seed_of_the_run(study):
    changes = {"control.controller": "random"}
    one, same = (model_of(study, **changes).run().actions for _ in range(2))
    other = EdgeCity(study.scenario, study=study, rng=12, changes=changes).run().actions
    assert one.equals(same)
    assert len(one) > 0
    assert not one[["site", "to_profile"]].equals(other[["site", "to_profile"]])
