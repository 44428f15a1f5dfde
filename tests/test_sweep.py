"""Sweeps: pairs share their seeds, and workers change nothing."""

from __future__ import annotations

import importlib.util
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from geoedge.errors import ScenarioError
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


@pytest.mark.slow
def test_workers_change_nothing(study, runs):
    told = []
    parallel = replicate(
        study, VARIANTS, 2, workers=2, keep=[0], progress=lambda done, total: told.append((done, total))
    )
    assert told == [(k, 6) for k in range(7)]
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
