"""Sessions in a whole run: what people do stays theirs, what is asked stays as much, parts add up."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.results import RECORD_COLUMNS, Results
from geoedge.serving.sessions import OUTCOMES
from geoedge.simulation.model import EdgeCity
from geoedge.simulation.sessions import SESSION_COLUMNS

SESSIONS = {"sessions.mean_turns": 3.0, "sessions.think_time_s": 40.0}


def run(study, seed=11, **changes):
    model = EdgeCity(study.scenario, study=study, rng=seed, changes=changes)
    return model, model.run()


@pytest.fixture(scope="module")
def talking(study):
    return run(study, **SESSIONS, **{"control.controller": "greedy"})


def column(results, name):
    return results.records.column(name).to_numpy()


def test_who_opens_a_session_is_who_would_have_asked(study, talking):
    _, results = talking
    _, single = run(study, **{"control.controller": "none"})
    first = column(results, "turn") == 0
    opened = {
        name: column(results, name)[first] for name in ("created_s", "user", "request_type", "x_m", "y_m")
    }
    row = np.searchsorted(column(single, "created_s"), opened["created_s"])
    for name, values in opened.items():
        assert np.array_equal(values, column(single, name)[row]), name
    # later turns replace the first ones that are not made
    asked, alone = results.records.num_rows, single.records.num_rows
    assert abs(asked - alone) < 5.0 * np.sqrt(3.0 * alone)
    kinds = [np.bincount(column(each, "request_type"), minlength=3) for each in (results, single)]
    assert (abs(kinds[0] - kinds[1]) < 5.0 * np.sqrt(3.0 * kinds[1])).all()


def test_turns_follow_each_other_where_their_user_is(talking):
    model, results = talking
    session, turn, created = (column(results, name) for name in ("session", "turn", "created_s"))
    order = np.lexsort((turn, session))
    same = np.diff(session[order]) == 0
    assert same.sum() > 1000
    assert (np.diff(turn[order])[same] == 1).all()
    for name in ("user", "request_type"):
        assert (np.diff(column(results, name)[order].astype(int))[same] == 0).all()
    # nobody asks again before the answer that is prefilled without a cache and not waited for
    dialogue, least = model.sessions.dialogue, column(results, "full_prefill_s")
    assert (np.diff(created[order])[same] > least[order][:-1][same]).all()
    last = column(results, "epoch") == len(model.study.epochs) - 1
    xy, activity = model.population.position(column(results, "user")[last], created[last])
    assert np.array_equal(xy[:, 0], column(results, "x_m")[last])
    assert np.array_equal(activity, column(results, "activity")[last])
    context = dialogue.prompt_tokens(turn, column(results, "request_type"))
    assert np.array_equal(context, column(results, "context_tokens"))


def test_parts_of_the_ttft_add_up_and_every_turn_is_counted(talking):
    model, results = talking
    assert results.records.column_names == [*RECORD_COLUMNS, *SESSION_COLUMNS]
    assert sum(results.status_counts().values()) == results.records.num_rows
    parts = sum(column(results, f"{part}_s") for part in ("radio", "wait", "prefill"))
    assert np.allclose(parts, column(results, "ttft_s"))
    context, hit = column(results, "context_tokens"), column(results, "hit_tokens")
    computed = model.sessions.prefill_s[context - hit]
    later = column(results, "turn") > 0
    rest = column(results, "prefill_s") - column(results, "fetch_s") - column(results, "reload_s")
    assert np.allclose(rest[later], computed[later])
    handovers = results.tables["handovers"]
    assert list(handovers.handover) == list(OUTCOMES)
    assert handovers.turns.sum() == results.requests
    assert (results.tables["host_memory"].peak_bytes <= results.tables["host_memory"].room_bytes).all()
    assert 0.0 < results.offloading_ratio() < 1.0
    assert results.offloading_ratio("prefill_time") < 1.0


def test_handovers_do_not_change_what_people_do(study, talking, tmp_path):
    _, results = talking
    _, other = run(study, **SESSIONS, **{"sessions.handover": "re_prefill", "control.controller": "none"})
    for name in ("created_s", "user", "request_type", "x_m", "y_m", "activity", "session", "turn"):
        assert np.array_equal(column(results, name), column(other, name)), name
    assert column(other, "moved_bytes").sum() == 0
    saved = Results.load(other.save(tmp_path / "run"))
    assert saved.records.equals(other.records)
    assert saved.offloading_ratio() == other.offloading_ratio()


def test_sessions_go_on_where_a_site_fails(study):
    failure = {"kind": "site_failure", "start_hour": 17.1, "duration_s": 300.0, "sites": [2]}
    changes = {"dynamics.events": [failure], "control.controller": "none"}
    model, results = run(study, **SESSIONS, **changes)
    assert sum(results.status_counts().values()) == results.records.num_rows
    hosts = model.engine.host_memory
    assert (hosts["kept"] + hosts["held"] <= hosts["limit"]).all()
    assert not hosts["held"].any()
    assert np.isin(column(results, "handover"), range(len(OUTCOMES))).all()


@pytest.mark.parametrize("handover", ["by_cost", "migrate"])
@pytest.mark.parametrize("rate_left", [0.0, 0.001])
def test_sessions_go_on_where_a_backhaul_is_lost(study, handover, rate_left):
    loss = {"kind": "backhaul_loss", "start_hour": 17.1, "duration_s": 60.0, "rate_left": rate_left}
    changes = {"dynamics.events": [loss], "control.controller": "none", "sessions.handover": handover}
    model, results = run(study, **SESSIONS, **changes)
    assert sum(results.status_counts().values()) == results.records.num_rows
    assert not model.engine.host_memory["held"].any()
    # A turn whose fetch is slow waits for it no longer than computing everything again would take.
    _, calm = run(study, **SESSIONS, **{"control.controller": "none", "sessions.handover": handover})
    longest = model.engine.stations.warm.seconds[-1]
    assert column(results, "fetch_s").max() <= max(column(calm, "fetch_s").max(), longest)
    started = column(results, "started_s")
    assert ((started >= 61_560.0) & (started < 61_620.0)).sum() > 20
