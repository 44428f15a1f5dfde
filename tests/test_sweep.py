"""Sweeps: pairs share their seeds, and workers change nothing."""

from __future__ import annotations

import importlib.util
import math
import threading
from itertools import chain, count, pairwise
from pathlib import Path

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError, ScenarioError
from geoedge.simulation.model import STEP_S
from geoedge.study import prepare
from geoedge.sweep import replicate, replication_seed, sweep

spec = importlib.util.spec_from_file_location("town", Path(__file__).parent / "simulation" / "conftest.py")
town = importlib.util.module_from_spec(spec)
spec.loader.exec_module(town)

VARIANTS = [{}, {"control.controller": "none"}, {"routing.policy": "nearest", "control.controller": "none"}]


@pytest.fixture(scope="module")
def study():
    return prepare(town.make_scenario(), city=town.make_town(), layout=town.make_layout())


@pytest.fixture(scope="module")
def runs(study):
    return replicate(study, VARIANTS, 2, workers=1, keep=[0])


def test_variants_are_paired(runs):
    assert [[run.replication for run in line] for line in runs] == [[0, 1]] * 3
    assert len({run.seed for line in runs for run in line}) == 2
    for r in range(2):
        asked = [line[r].epochs["requests"].tolist() for line in runs]
        assert asked[0] == asked[1] == asked[2]
    assert runs[0][0].epochs["requests"].tolist() != runs[0][1].epochs["requests"].tolist()


def test_only_what_was_asked_for_is_kept(runs):
    kept = [[run.results is not None for run in line] for line in runs]
    assert kept == [[True, False], [False, False], [False, False]]
    assert runs[0][0].results.metrics() == runs[0][0].metrics
    assert runs[1][0].actions.empty


def test_epochs_add_up_to_the_metrics(study, runs):
    for run in (run for line in runs for run in line):
        after = run.epochs[run.epochs["start_s"] >= study.epochs[0][0] + study.scenario.simulation.warm_up_s]
        assert 1 - after["missed"].sum() / after["requests"].sum() == pytest.approx(run.metrics["coverage"])


def test_first_replication_is_the_scenarios_own_seed():
    assert replication_seed(7, 0) == 7
    assert len({replication_seed(7, r) for r in range(50)}) == 50
    assert replication_seed(7, 3) != replication_seed(8, 3)


def _moves_well(told, total):
    """Check that what was told starts at nothing, never goes back, tells every run and ends at all."""
    done = [each for each, _ in told]
    assert {each for _, each in told} == {total}
    assert done == sorted(done)
    assert (done[0], done[-1]) == (0, total)
    assert all(each < total for each in done[:-1])


@pytest.mark.slow
def test_workers_change_nothing(study, runs):
    told = []
    parallel = replicate(
        study, VARIANTS, 2, workers=2, keep=[0], progress=lambda done, total: told.append((done, total))
    )
    _moves_well(told, 6)
    for one, other in zip(chain(*runs), chain(*parallel), strict=True):
        assert (one.variant, one.replication, one.seed) == (other.variant, other.replication, other.seed)
        assert one.metrics == other.metrics
        assert one.epochs.equals(other.epochs)
        assert one.actions.equals(other.actions)
    assert runs[0][0].results.records.equals(parallel[0][0].results.records)


def test_sweep_runs_the_grid(study):
    scenario = study.scenario.override({"control.controller": "none", "simulation.duration_s": 1800.0})
    table = sweep(
        scenario,
        {"routing.policy": ["nearest", "load_aware"], "demand.users": [200, 300]},
        replications=1,
        rng=4,
        city=study.city,
        layout=study.layout,
        workers=1,
    )
    assert table[["routing.policy", "demand.users"]].to_numpy().tolist() == [
        ["nearest", 200],
        ["nearest", 300],
        ["load_aware", 200],
        ["load_aware", 300],
    ]
    assert (table["seed"] == 4).all()
    assert np.isfinite(table["coverage"]).all()
    light = table[table["demand.users"] == 200].set_index("routing.policy")["utilization"]
    assert (light < table[table["demand.users"] == 300].set_index("routing.policy")["utilization"]).all()


def test_empty_sweeps_are_refused(study):
    with pytest.raises(ScenarioError, match="at least one"):
        replicate(study, [], 1)
    with pytest.raises(ScenarioError, match="at least one"):
        replicate(study, VARIANTS, 0)
    with pytest.raises(ScenarioError, match=r"\[demand\] differs"):
        replicate(study, [{"demand.users": 5}], 1)


def test_rejections_are_told_of_all_runs_if_one_has_some(study, runs):
    assert all("rejected_share" not in run.metrics for line in runs for run in line)
    closed = {"admission.close_threshold": 0.1, "admission.redirects": 0}
    (still,), (closing,) = replicate(study, [{}, closed], 1, workers=1, keep=[1])
    assert still.metrics == runs[0][0].metrics | {"rejected_share": 0.0}
    share = closing.results.records.column("site").to_numpy()[closing.results._window] < 0
    assert 0.0 < closing.metrics["rejected_share"] == share.mean() == closing.rejected_share


def test_an_epochs_mean_wait_is_that_of_the_requests_that_were_taken(study):
    closing = {"admission.close_threshold": 0.8, "admission.reopen_threshold": 0.5, "admission.redirects": 0}
    (run,) = replicate(study, [closing], 1, workers=1, keep=[0])[0]
    records = run.results.records.to_pandas()
    taken = records[records["site"] >= 0]
    assert len(taken) < len(records)
    assert run.epochs["mean_wait_s"].to_numpy() == pytest.approx(taken.groupby("epoch")["wait_s"].mean())


def test_a_wrong_value_is_said_before_anything_is_prepared(study, monkeypatch):
    monkeypatch.setattr("geoedge.study.prepare", None)
    with pytest.raises(ScenarioError, match="did you mean 'nearest'"):
        sweep(study.scenario, {"routing.policy": ["load_aware", "neerest"]})


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr("geoedge.underway.UPDATE_S", 0.0)


def test_progress_moves_while_a_run_goes_on(study, often):
    told = []
    replicate(study, [{}], 2, workers=1, progress=lambda *each: told.append((*each, threading.get_ident())))
    _moves_well([each[:2] for each in told], 2)
    steps = sum(math.ceil((end - start) / STEP_S) for start, end in study.epochs)
    assert len(told) == 1 + 2 * (steps + 1)
    assert [each[0] for each in told].count(1.0) == 1
    assert {thread for *_, thread in told} == {threading.get_ident()}
    assert all(0 < after[0] - before[0] < 0.2 for before, after in pairwise(told))


@pytest.mark.slow
def test_progress_moves_while_runs_go_on_elsewhere(study, often):
    told = []
    replicate(study, [{}], 2, workers=2, progress=lambda *each: told.append((*each, threading.get_ident())))
    _moves_well([each[:2] for each in told], 2)
    assert len({done for done, *_ in told if 0 < done < 1}) > 5
    assert len({done for done, *_ in told if done % 1}) > 10
    assert {thread for *_, thread in told} == {threading.get_ident()}


def test_progress_is_told_seldom(study, monkeypatch):
    now, told = count(step=0.125), []
    monkeypatch.setattr("geoedge.underway.monotonic", lambda: float(next(now)))
    replicate(study, [{}], 1, workers=1, progress=lambda done, _: told.append(done))
    steps = sum(math.ceil((end - start) / STEP_S) for start, end in study.epochs)
    # an eighth of a second goes by at each look and at each telling: four looks are enough
    assert len(told) == 2 + steps // 4


WORKERS = pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])


@WORKERS
def test_whom_progress_stops_gets_the_error_and_no_more(study, often, workers, recwarn):
    told = []

    def stop(done, total):
        told.append(done)
        if done % 1:
            raise LookupError(done)

    with pytest.raises(LookupError) as stopped:
        replicate(study, [{}], 4, workers=workers, progress=stop)
    assert told[-1:] == list(stopped.value.args)
    assert 0 < told[-1] < 2
    assert not recwarn


@WORKERS
def test_a_run_that_fails_says_why_in_one_line(study, workers):
    told = []
    with pytest.raises(GeoEdgeError, match="`rng` = -1: must be a nonnegative integer") as failed:
        replicate(study, VARIANTS, 1, seed=-1, workers=workers, progress=lambda done, _: told.append(done))
    assert "\n" not in str(failed.value)
    assert set(told) == {0.0}
