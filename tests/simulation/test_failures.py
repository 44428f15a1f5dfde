"""Failures that are found out late: what is held, what is sent again, and who knows of it when."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geoedge.compare.happenings import happenings
from geoedge.control.actions import REPAIRS
from geoedge.results import STATUS, Results
from geoedge.simulation.audit import audit_run
from geoedge.simulation.dynamics import Moment, Occurrence, Timeline
from tests.simulation.test_dynamics import FAILURE, frame, make, run

CALM = {"control.controller": "none"}
FAILED, BACK = round(17.02 * 3600.0, 6), round(17.02 * 3600.0, 6) + 600.0
SITES = FAILURE["sites"]


def late(seconds, **given):
    return FAILURE | {"detection_s": seconds} | given


def table(model, results) -> pd.DataFrame:
    """Return the records, and how many sites that each was sent to have failed."""
    return frame(results).assign(lost=model.engine.records().lost)


@pytest.fixture(scope="module")
def at_once(study):
    return run(study, FAILURE, **CALM)


@pytest.fixture(scope="module")
def missed(study):
    """Two sites fail, and for 45 s nobody knows."""
    return run(study, late(45.0), **CALM)


def test_at_once_is_what_it_was(study, at_once):
    _, results = run(study, late(0.0), **CALM)
    assert results.records.equals(at_once[1].records)
    assert "known_s" not in results.tables["events"]


def test_requests_go_to_a_silent_site_are_held_and_sent_elsewhere_when_it_is_missed(missed, at_once):
    records, known = table(*missed), FAILED + 45.0
    there = records["site"].isin(SITES)
    assert not (there & records["started_s"].between(FAILED, BACK, inclusive="neither")).any()
    again = records[records["lost"] > 0]
    silence = again["created_s"].between(FAILED, known)
    assert silence.sum() > 10
    assert (again["started_s"] >= known).all()
    assert (again["arrived_s"] >= known).all()
    assert again["ttft_s"].to_numpy() == pytest.approx(again["first_token_s"] - again["created_s"])
    # who asked in the silence waits for its end
    assert (again["ttft_s"][silence] >= known - again["created_s"][silence]).all()
    in_silence = again.index[silence]
    assert again["ttft_s"][in_silence].mean() > frame(at_once[1])["ttft_s"][in_silence].mean() + 10.0
    (row,) = missed[1].tables["events"].itertuples()
    assert row.rerouted == records["lost"].sum() > at_once[1].tables["events"]["rerouted"].sum()
    assert (row.start_s, row.end_s, row.known_s) == (FAILED, BACK, known)
    assert audit_run(missed[1]).violations == []


def test_failing_over_takes_as_long_as_finding_out(study):
    """The longer nobody knows, the more requests are late, in proportion."""
    counts = [table(*run(study, late(seconds), **CALM))["lost"].sum() for seconds in (20.0, 60.0)]
    assert counts[1] == pytest.approx(3 * counts[0], rel=0.35)


def test_nobody_is_lost_and_sums_agree(missed):
    model, results = missed
    drawn = sum(len(part.asked.created_s) for part in model.drawn)
    assert sum(results.status_counts().values()) == results.records.num_rows == drawn
    assert results.epochs["requests"].sum() == drawn


def test_prices_and_controller_hear_of_it_when_it_is_found(study):
    model = make(study, late(200.0), **CALM)
    seen = []
    while model.running:
        model.step()
        seen.append(
            (model.clock_s, model.operator.prediction.arrival_rate[SITES], sorted(model.placement.down))
        )
    silent = [(rate, down) for time, rate, down in seen if FAILED < time < FAILED + 200.0]
    known = [(rate, down) for time, rate, down in seen if FAILED + 200.0 < time < BACK]
    assert all((rate > 0.0).all() and down == [] for rate, down in silent)
    assert all((rate == 0.0).all() and down == SITES for rate, down in known)
    assert len(silent) >= 3
    assert len(known) >= 3


def test_a_site_that_is_back_before_it_is_missed_serves_what_it_holds_without_its_cache(study):
    model, results = run(study, late(900.0), **CALM)
    records = table(model, results)
    assert (records["lost"] == 0).all()
    held = records[records["site"].isin(SITES) & records["created_s"].between(FAILED, BACK)]
    assert len(held) > 50
    assert (held["started_s"] >= BACK).all()
    restored = results.actions
    assert restored["action"].tolist() == ["restore", "restore"]
    assert restored["time_s"].tolist() == [BACK, BACK]
    for row in restored.itertuples():
        there = records[(records["site"] == row.site) & (records["started_s"] >= BACK)]
        early = there["started_s"] < row.effective_s
        assert early.any()
        assert (there["hit_tokens"][early] == 0).all()
        assert (there["hit_tokens"][~early] > 0).any()
    assert results.tables["events"]["known_s"].tolist() == [BACK]
    assert audit_run(results).violations == []


def test_a_second_cause_may_give_away_the_first(study):
    loud = FAILURE | {"start_hour": (FAILED + 100.0) / 3600.0, "duration_s": 200.0, "sites": [4]}
    model, results = run(study, late(500.0), loud, **CALM)
    records = table(model, results)
    again = records[records["lost"] > 0]
    first, second = again["arrived_s"].between(FAILED + 99, FAILED + 101), again["arrived_s"] > FAILED + 499
    assert first.sum() > 5
    assert second.sum() > 5
    assert set(records["site"][records["started_s"].between(FAILED + 0.1, FAILED + 599)]) == {0, 1, 3, 5}
    assert results.tables["events"]["rerouted"].min() > 0


LATE = 17.0 + 29.0 / 60.0
"""When something fails a minute before the window ends [h]."""


@pytest.fixture(scope="module")
def unfound(study):
    """A failure that would be found after the window ends."""
    return run(study, late(180.0, start_hour=LATE), **CALM)


def test_a_window_that_ends_in_silence_leaves_what_is_held_waiting(unfound):
    """Nobody is sent again after the horizon; times are settled as if the sites were back when they are missed."""
    model, results = unfound
    assert model.clock_s < LATE * 3600.0 + 180.0
    records = table(model, results)
    held = records[records["site"].isin(SITES) & (records["started_s"] > model.clock_s)]
    assert len(held) > 5
    assert (held["started_s"] >= LATE * 3600.0 + 180.0 - 1e-6).all()
    assert set(held["status"]) <= {STATUS.index("waiting"), STATUS.index("in_flight")}
    assert records["lost"].sum() == results.tables["events"]["rerouted"].sum() == 0
    assert np.isfinite(records["ttft_s"]).all()
    assert sum(results.status_counts().values()) == len(records)
    assert audit_run(results).violations == []


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "backhaul_loss", "start_hour": LATE + 0.01, "duration_s": 4000.0, "rate_left": 0.999},
        {"kind": "site_failure", "start_hour": 16.8, "duration_s": 1.0, "sites": SITES},
    ],
)
def test_what_has_not_silenced_a_site_does_not_end_its_silence(study, unfound, other):
    """Another event at the same sites changes nothing of what the silence costs."""
    _, results = run(study, late(180.0, start_hour=LATE), other, **CALM)
    in_silence = frame(unfound[1])["created_s"] > LATE * 3600.0
    for name in ("site", "arrived_s", "ttft_s", "status"):
        one, two = frame(results)[name][in_silence], frame(unfound[1])[name][in_silence]
        np.testing.assert_allclose(one, two, rtol=0.02 if name == "ttft_s" else 1e-12)


def test_a_failure_that_nobody_finds_rejects_nobody(study):
    """All sites are silent at the horizon; they would be back before they are missed, and serve what they hold then."""
    everywhere = list(range(len(study.layout)))
    unknown = late(86_400.0, start_hour=LATE, sites=everywhere)
    closing = {"admission.close_threshold": 1.5, "admission.redirects": 9}
    (_, plain), (model, results) = run(study, **CALM | closing), run(study, unknown, **CALM | closing)
    assert results.status_counts()["rejected"] <= plain.status_counts()["rejected"]
    records = table(model, results)
    held = records[(records["started_s"] > LATE * 3600.0) & (records["created_s"] > LATE * 3600.0)]
    assert len(held) > 20
    assert (held["started_s"] >= LATE * 3600.0 + FAILURE["duration_s"] - 1e-6).all()
    assert records["lost"].sum() == 0


def test_a_failure_before_the_window_is_found_within_it(study):
    begin = 16.75 - 60.0 / 3600.0
    early = late(30.0, start_hour=begin, sites=[3])
    model, results = run(study, late(150.0, start_hour=begin), early, **CALM)
    records = table(model, results)
    again = records[records["lost"] > 0]
    assert (again["arrived_s"] >= begin * 3600.0 + 150.0 - 1e-6).all()
    assert len(again) > 5
    assert (records["site"] == 3)[records["created_s"] < begin * 3600.0 + 600.0].sum() == 0


@pytest.mark.parametrize("controller", ["greedy", "none"])
@pytest.mark.parametrize("sessions", [{}, {"sessions.mean_turns": 3.0, "sessions.think_time_s": 20.0}])
def test_random_failures_that_are_found_late(study, controller, sessions, tmp_path):
    often = {"kind": "site_failure", "per_day": 900.0, "duration_s": 90.0, "count": 1, "detection_s": 60.0}
    other = often | {"detection_s": 200.0, "per_day": 300.0}
    given = {"control.controller": controller, "admission.close_threshold": 3.0} | sessions
    model, results = run(study, often, other, **given)
    _, again = run(study, often, other, **given)
    pd.testing.assert_frame_equal(frame(results), frame(again))
    drawn = sum(len(part.asked.created_s) for part in model.drawn)
    assert sum(results.status_counts().values()) == results.records.num_rows == drawn
    assert audit_run(results).violations == []
    assert (model.engine.records().lost > 0).sum() > 30
    if sessions:
        hosts = model.engine.host_memory
        assert (hosts["kept"] + hosts["held"] <= hosts["limit"]).all()
        assert not hosts["held"].any()
    saved = Results.load(results.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(saved.tables["events"], results.tables["events"])


def test_plans_made_in_silence_may_be_for_a_site_that_is_gone(study):
    """The controller moves caches to it; they are lost, and the site has again what it was last meant to hold."""
    _, plain = run(study)
    first = plain.actions.iloc[0]
    gone = late(
        400.0, start_hour=(first["time_s"] - 30.0) / 3600.0, duration_s=600.0, sites=[int(first["site"])]
    )
    _, results = run(study, gone)
    planned = results.actions[~results.actions["action"].isin(REPAIRS)].iloc[0]
    assert planned["site"] == first["site"]
    restored = results.actions[results.actions["action"] == "restore"]
    assert restored["site"].tolist() == [first["site"]]
    assert restored["to_profile"].tolist() == [first["to_profile"]]
    assert audit_run(results).violations == []


def test_a_timeline_finds_what_is_not_over_before():
    one, two, three = (
        Occurrence(k, 0, "site_failure", 5.0, end, detection_s=after)
        for k, (end, after) in enumerate([(20.0, 10.0), (20.0, 15.0), (30.0, 0.0)])
    )
    line = Timeline([one, two, three], 0.0)
    assert [moment for _, moment in line.due(14.0)] == [Moment.BEGINS] * 3
    assert list(line.due(16.0)) == [(one, Moment.IS_FOUND)]
    assert [moment for _, moment in line.due(40.0)] == [Moment.ENDS] * 3


def test_the_report_says_when_it_was_known(missed, at_once):
    text = " ".join(happenings(missed[1].tables["events"], 6))
    assert "known after 45 s" in text
    assert "known after" not in " ".join(happenings(at_once[1].tables["events"], 6))


def test_the_report_says_what_was_not_known(unfound):
    _, results = unfound
    events, horizon = results.tables["events"], results.meta["horizon_s"]
    assert "not known within the run" in next(happenings(events, 6, horizon))
    assert "known after 180 s" in next(happenings(events, 6))
    assert "known after 2,000 s" in next(
        happenings(events.assign(known_s=events["start_s"] + 2000.0, end_s=1e6), 6)
    )
    assert "not known before it was over" in next(happenings(events.assign(known_s=events["end_s"]), 6))
