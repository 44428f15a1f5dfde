"""Auditing a run: an honest one passes, and whatever is changed in its tables afterwards is found out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from geoedge.cli import app
from geoedge.errors import GeoEdgeError
from geoedge.report.audit import print_audit
from geoedge.simulation.audit import audit_run, bounds_told
from geoedge.simulation.model import EdgeCity


@pytest.fixture(scope="module")
def run(study):
    """A run in which states take minutes and two sites at most receive some at a time."""
    changes = {"control.backhaul_bytes_per_s": 3e6, "control.most_transfers": 2, "control.min_gain": 0.0}
    return EdgeCity(study.scenario, study=study, rng=11, changes=changes).run()


def with_placement(run, change):
    frame = run.tables["placement"].copy()
    change(frame)
    return run.with_tables(placement=frame)


def first(frame, event):
    return frame.index[frame["event"] == event][0]


def test_what_breaks_a_bound_is_printed_with_its_time(run, capsys):
    lower = run.scenario_toml.replace("fallback_floor = 0.0", "fallback_floor = 0.6")
    found = audit_run(replace(run, scenario_toml=lower))
    print_audit(found, "a run")
    assert found.outside_s["fallback_floor"] > 60.0
    assert "sites held what breaks control.fallback_floor for" in capsys.readouterr().out


def test_an_honest_run_passes(run):
    found = audit_run(run)
    assert found.outside_s == {}
    assert found.violations == []
    assert found.actions == len(run.actions) > 0
    assert found.events == len(run.tables["placement"])
    assert sum(found.requests.values()) == run.records.num_rows


def test_states_do_not_arrive_before_their_bytes(run):
    def early(frame):
        frame.loc[first(frame, "hold"), "time_s"] -= 60.0

    assert any("replaying gives" in line for line in audit_run(with_placement(run, early)).violations)


def test_bytes_are_those_of_the_states(run):
    def cheap(frame):
        at = first(frame, "start")
        site, time = frame.loc[at, "site"], frame.loc[at, "time_s"]
        same = (
            (frame["site"] == site)
            & (frame["time_s"] == time)
            & frame["event"].isin(["start", "drain", "move"])
        )
        frame.loc[same, "bytes_moved"] /= 2.0

    assert any("its states are" in line for line in audit_run(with_placement(run, cheap)).violations)


def test_the_budget_is_the_scenarios(run):
    tight = run.scenario_toml.replace("migration_budget_bytes = 4000000000", "migration_budget_bytes = 1")
    assert tight != run.scenario_toml
    assert any(
        "the budget is 1 B" in line for line in audit_run(replace(run, scenario_toml=tight)).violations
    )


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("epoch", 2),
        ("time_s", 61_201.0),
        ("action", "demote"),
        ("action", "restore"),
        ("site", 5),
        ("from_profile", 3),
        ("to_profile", 0),
        ("partner_site", 0),
        ("bytes_moved", 1e9),
        ("transfer_s", 1.0),
        ("compute_s", 1.0),
        ("moving_s", 0.0),
        ("effective_s", 0.0),
        ("predicted_gain", 0.5),
        ("horizon_epochs", 3),
    ],
)
def test_whatever_is_changed_in_an_action_is_found(run, column, value):
    actions = run.actions.copy()
    assert actions.loc[0, column] != value
    actions[column] = actions[column].astype("object")
    actions.loc[0, column] = value
    assert audit_run(replace(run, actions=actions)).violations != []


@pytest.mark.parametrize("rows", [slice(1, None), slice(None, -1)])
def test_an_action_that_is_left_out_is_missed(run, rows):
    found = audit_run(replace(run, actions=run.actions.iloc[rows]))
    assert "the table of actions and the journal do not have the same changes" in found.violations


@pytest.mark.parametrize("column", ["time_s", "budget_bytes", "actions", "bytes_moved", "coverage_after"])
def test_whatever_is_changed_in_a_decision_is_found(run, column):
    decisions = run.tables["decisions"].copy()
    decisions.loc[0, column] += 1
    assert audit_run(run.with_tables(decisions=decisions)).violations != []
    left_out = run.tables["decisions"].iloc[1:]
    assert any(
        "not among the decisions" in x for x in audit_run(run.with_tables(decisions=left_out)).violations
    )


def test_no_planner_but_a_yardsticks_moves_at_once(run):
    def at_once(frame):
        frame.loc[first(frame, "start"), "event"] = "become"

    assert any("at once" in line for line in audit_run(with_placement(run, at_once)).violations)


def change_records(run, name, change):
    values = run.records.column(name).to_numpy().copy()
    change(values)
    at = run.records.column_names.index(name)
    return replace(run, records=run.records.set_column(at, name, pa.array(values)))


def test_requests_are_served_by_what_their_site_holds(run):
    def another(profile):
        profile[100] = (profile[100] + 1) % 4

    found = audit_run(change_records(run, "profile", another)).violations
    assert len(found) == 1
    assert found[0].startswith("1 requests were served by a profile that their site did not hold")


def test_running_requests_fit_beside_the_states(run):
    def endless(finished):
        finished[np.isfinite(finished)] += 30.0

    assert any(
        "requests and" in line for line in audit_run(change_records(run, "finished_s", endless)).violations
    )


def test_time_goes_forward(run):
    def backward(created):
        created[50] += 1e4

    assert any(
        "a request is created" in x for x in audit_run(change_records(run, "created_s", backward)).violations
    )


def test_epochs_end_with_what_the_journal_says(run):
    epochs = run.epochs.copy()
    epochs.loc[0, "profile_at_end"] = (epochs.loc[0, "profile_at_end"] + 1) % 4
    assert audit_run(replace(run, epochs=epochs)).violations == [
        "epoch 0: site 0 ends it with another profile than the journal says"
    ]


def test_a_run_without_a_log_is_refused(run):
    with pytest.raises(GeoEdgeError, match=r"placement\.parquet"):
        audit_run(replace(run, tables={}))


@pytest.mark.parametrize(
    ("table", "column"), [("actions", "horizon_gain"), ("decisions", "why"), ("decisions", "looked_at")]
)
def test_a_run_of_an_older_version_is_not_called_damaged(run, table, column):
    older = {"actions": run.actions} | run.tables
    frame = older[table].drop(columns=column)
    old = replace(run, actions=frame) if table == "actions" else run.with_tables(**{table: frame})
    with pytest.raises(GeoEdgeError, match=rf"made by an older version: it has no {table}\.{column}; run it"):
        audit_run(old)


@pytest.mark.parametrize(
    ("column", "value", "told"),
    [("why", "junk", "why is 'junk'; known are absent"), ("looked_at", -3, "looked_at is -3")],
)
def test_a_decision_says_nothing_unheard_of(run, column, value, told):
    decisions = run.tables["decisions"].copy()
    decisions.loc[0, column] = value
    assert any(told in line for line in audit_run(run.with_tables(decisions=decisions)).violations)


def test_requests_are_sent_on_as_often_as_admission_allows(run):
    def often(redirects):
        redirects[7] = 500

    found = audit_run(change_records(run, "redirects", often)).violations
    assert found == [
        "1 requests were sent on a number of times that admission does not allow, the first 500 times; "
        "allowed are 0 to 0"
    ]


@pytest.fixture(scope="module")
def failing(study):
    """A run in which failures are found out late, and sites at their limit send requests on."""
    fail = {"kind": "site_failure", "start_hour": 17.05, "duration_s": 240.0, "sites": [0, 1]}
    changes = {
        "dynamics.events": [fail | {"detection_s": 100.0}, fail | {"sites": [2]}],
        "admission.close_threshold": 1.0,
        "admission.redirects": 2,
    }
    return EdgeCity(study.scenario, study=study, rng=11, changes=changes).run()


def test_failures_found_late_and_requests_sent_on_keep_the_rules(failing):
    assert failing.tables["events"]["known_s"].notna().tolist() == [True, False]
    assert failing.records.column("redirects").to_numpy().max() > 0
    assert audit_run(failing).violations == []


@pytest.mark.parametrize("known", [0.0, 1e9])
def test_a_failure_is_known_while_it_lasts(failing, known):
    events = failing.tables["events"].copy()
    events.loc[0, "known_s"] = known
    found = audit_run(failing.with_tables(events=events)).violations
    assert any("site_failure: known at" in line for line in found)


def test_an_instant_that_is_none_is_told_in_one_line(failing):
    events = failing.tables["events"].assign(known_s="soon")
    with pytest.raises(GeoEdgeError, match="do not belong together"):
        audit_run(failing.with_tables(events=events))


def test_the_command_line_audits_a_folder(run, tmp_path):
    folder = run.save(tmp_path / "run")
    told = CliRunner().invoke(app, ["check", str(folder)])
    assert told.exit_code == 0
    assert "the log replays, and all rules are kept" in told.output
    forged = run.with_tables(decisions=run.tables["decisions"].assign(budget_bytes=1.0)).save(
        tmp_path / "forged"
    )
    told = CliRunner().invoke(app, ["check", str(forged)])
    assert told.exit_code != 0
    assert "budget_bytes is 1.0" in told.output
    told = CliRunner().invoke(app, ["check", str(folder), "--set", "seed=2"])
    assert told.exit_code != 0


@pytest.mark.parametrize("toml", ["x = ", "x = 1"])
def test_a_damaged_scenario_is_one_line(run, toml) -> None:
    with pytest.raises(GeoEdgeError) as caught:
        audit_run(replace(run, scenario_toml=toml))
    assert "\n" not in str(caught.value)


def complaints(run) -> list[str]:
    try:
        return audit_run(run).violations
    except GeoEdgeError as error:
        return [str(error)]


@pytest.mark.parametrize("value", [-1, 10**12, 2**63 - 1])
def test_profiles_that_there_are_not_are_refused_before_anything_is_counted_by_them(run, value) -> None:
    sites = run.sites.copy()
    sites.loc[0, "profile"] = value
    with pytest.raises(GeoEdgeError, match=rf"profile = {value} in sites\.parquet, known are 0 to 3"):
        audit_run(replace(run, sites=sites))


@pytest.mark.parametrize(("column", "value"), [("site", 999), ("to_profile", -3), ("to_profile", 10**12)])
def test_a_damaged_journal_is_told_in_one_line_by_whoever_asks_for_bounds(run, column, value) -> None:
    placement = run.tables["placement"].copy()
    placement[column] = placement[column].astype("int64")
    placement.loc[0, column] = value
    with pytest.raises(GeoEdgeError, match=rf"do not belong together .*{column} = {value}"):
        bounds_told(run.with_tables(placement=placement))


def test_a_table_without_any_decision_is_told(run) -> None:
    empty = run.tables["decisions"].iloc[:0]
    assert any(
        "epoch 1: nothing was decided" in line for line in complaints(run.with_tables(decisions=empty))
    )


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_numbers_of_no_site_and_no_epoch_are_told_in_one_line(run, value) -> None:
    decisions = run.tables["decisions"].astype({"epoch": "float64"})
    actions = run.actions.astype({"site": "float64"})
    decisions.loc[0, "epoch"] = actions.loc[0, "site"] = value
    for damaged in (run.with_tables(decisions=decisions), replace(run, actions=actions)):
        with pytest.raises(GeoEdgeError, match="do not belong together") as caught:
            audit_run(damaged)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("column", "value"), [("site", 99), ("to_profile", 77), ("event", "bogus")])
def test_a_damaged_journal_is_told_in_lines(run, column, value) -> None:
    lines = complaints(run.with_tables(placement=run.tables["placement"].assign(**{column: value})))
    assert lines
    assert not any("\n" in line for line in lines)
