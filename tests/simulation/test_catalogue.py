"""Runs in which routers hear late what sites hold, sites compute their own states, or not all serve all."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.simulation.audit import audit_run
from geoedge.simulation.model import EdgeCity


def run(study, **changes):
    model = EdgeCity(study.scenario, study=study, rng=11, changes=changes)
    return model, model.run()


def test_routers_that_hear_late_act_on_what_was_held(study):
    model, results = run(study, **{"catalogue.delay_s": 45.0})
    _, fresh = run(study)
    assert audit_run(results).violations == []
    holds = results.tables["placement"].query("event == 'hold'")
    assert len(holds) > 0
    assert model.beliefs.reports.believed.tolist() == model.placement.profile.tolist()
    created = results.records.column("created_s").to_numpy()
    until = holds["time_s"].min()
    assert np.array_equal(*(r.records.column("site").to_numpy()[created < until] for r in (results, fresh)))
    # a hit that was counted on and is not there costs prefill: services are by what sites really hold
    hits = model.study.workload.hit_tokens
    profile, kind = (results.records.column(n).to_numpy() for n in ("profile", "request_type"))
    assert np.array_equal(results.records.column("hit_tokens").to_numpy(), hits[profile, kind])
    assert not np.array_equal(*(r.records.column("site").to_numpy() for r in (results, fresh)))


@pytest.mark.parametrize("states", ["compute", "sooner"])
def test_sites_that_compute_their_states_need_no_backhaul(study, states):
    _, results = run(study, **{"control.states": states, "control.backhaul_bytes_per_s": 1e5})
    admitted = results.actions[results.actions["action"] == "admit"]
    assert len(admitted) > 0
    assert (admitted["bytes_moved"] == 0.0).all()
    assert (admitted["compute_s"] > 0.0).all()
    assert np.allclose(admitted["effective_s"], admitted["moving_s"] + admitted["compute_s"])
    assert audit_run(results).violations == []
