"""Controllers by name on the town: what they know, where they start, and that their logs hold."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from geoedge.control.planners import PLANNERS
from geoedge.simulation import steering
from geoedge.simulation.audit import audit_run
from geoedge.simulation.model import EdgeCity
from geoedge.simulation.steering import control_limits, field_predictor, started


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
    if not PLANNERS[name].moves:
        assert len(results.actions) == 0


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
