"""`geoedge sweep`: values in words, a table with intervals, and a file of all runs."""

from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

import geoedge as ge
from geoedge.cli.asking import grid
from geoedge.compare.columns import interval
from geoedge.report.sweep import print_sweep, summary
from tests.cli.calling import FAST, call, refused

HOME = import_module("geoedge.sweep")  # the module: `geoedge.sweep` is its function
VALUES = {"routing.policy": ["nearest", "load_aware"], "demand.users": [100, 200]}
COVERAGE = np.array([[0.50, 0.54], [0.52, 0.58], [0.60, 0.62], [0.65, 0.71]])


def made(coverage=COVERAGE, **more) -> pd.DataFrame:
    """Return runs as a sweep gives them, in the order of its grid."""
    points = [(policy, users) for policy in VALUES["routing.policy"] for users in VALUES["demand.users"]]
    return pd.DataFrame(
        [
            {
                "routing.policy": policy,
                "demand.users": users,
                "replication": r,
                "seed": r + 1,
                "coverage": value,
                "mean_ttft_s": 1.0 - value,
                "p95_ttft_s": 2.0,
                "utilization": 0.5,
            }
            | more
            for (policy, users), line in zip(points, coverage, strict=True)
            for r, value in enumerate(line)
        ]
    )


@pytest.mark.parametrize(
    ("words", "values"),
    [
        ("routing.policy=nearest,load_aware", ["nearest", "load_aware"]),
        ("demand.users=1000, 2000", [1000, 2000]),
        ("plan.load_factors=[0.5,1.0],[1.0, 2.0]", [[0.5, 1.0], [1.0, 2.0]]),
        ('title="a, b",c', ["a, b", "c"]),
        ("sessions={turns = 2, x = [1]},1", [{"turns": 2, "x": [1]}, 1]),
        ("a.b=0.5", [0.5]),
        ("a.b=true,false", [True, False]),
    ],
)
def test_values_are_what_stands_between_commas(words, values) -> None:
    (found,) = grid([words]).values()
    assert found == values
    assert [type(each) for each in found] == [type(each) for each in values]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--vary", "routing.policy"], "must be KEY=V1,V2"),
        (["--vary", "=1,2"], "must be KEY=V1,V2"),
        (["--vary", "demand.users=1,,2"], "empty value"),
        (["--vary", "demand.users=1,1"], "twice"),
        (["--vary", "demand.users=1", "--vary", "demand.users=2"], "twice"),
        (["--vary", "demand.user=1,2"], "demand.users"),
        (["--vary", "routing.policy=load_aware,neerest"], "did you mean 'nearest'"),
        (["--vary", "seed=1,2"], "replications are paired by it"),
        (["--vary", "simulation.replications=1,2"], "(--replications)"),
        (["--vary", "demand.users=5,6", "-o", "table.xlsx"], ".csv or .parquet"),
        (["--vary", "demand.users=5,6", "-o", "/proc/none/table.csv"], "cannot be written there"),
    ],
)
def test_what_cannot_be_swept_is_said_before_the_work(capsys, monkeypatch, words, told) -> None:
    monkeypatch.setattr(HOME, "_studies", None)  # no city is made
    assert told in refused(capsys, monkeypatch, "sweep", "monaco", *words)


def test_sites_that_are_read_are_never_written_over(capsys, monkeypatch, tmp_path) -> None:
    path = tmp_path / "sites.csv"
    path.write_text("lon,lat\n7.42,43.73\n", encoding="utf-8")
    words = [
        "sweep",
        "monaco",
        "--vary",
        "demand.users=5,6",
        "--set",
        f"sites.source={path}",
        "-o",
        str(path),
    ]
    assert "is the same file as sites.source" in refused(capsys, monkeypatch, *words)


def test_a_row_a_combination_with_paired_differences() -> None:
    found = summary(made(), VALUES)
    assert list(found["routing.policy"]) == ["nearest", "nearest", "load_aware", "load_aware"]
    assert list(found["demand.users"]) == [100, 200, 100, 200]
    last = found.iloc[-1]
    assert (last["coverage"], last["coverage_low"], last["coverage_high"]) == interval(COVERAGE[3])
    assert (last["change"], last["change_low"], last["change_high"]) == pytest.approx(
        interval(COVERAGE[3] - COVERAGE[0])
    )
    assert found["change"][0] == 0.0
    assert "rejected_share" not in found


def test_the_table_has_intervals_where_there_are_some(capsys) -> None:
    print_sweep(made(), VALUES, "a [red]title")
    out = capsys.readouterr().out
    assert "a [red]title: 4 combinations, 2 paired runs each" in out
    assert "0.680 ±" in out
    assert "+16.00 ±" in out
    assert "rejected" not in out
    print_sweep(made(COVERAGE[:, :1], rejected_share=0.125), VALUES, "one")
    out = capsys.readouterr().out
    assert "one run each" in out
    assert "±" not in out
    assert "12.5%" in out


@pytest.fixture
def instant(monkeypatch):
    """Let a sweep give the runs above at once, and return what it was asked."""
    asked = {}

    def sweep(scenario, values, **given):
        asked.update(given, values=values, title=scenario.title)
        return made()

    monkeypatch.setattr(HOME, "sweep", sweep)
    return asked


@pytest.mark.parametrize(("ending", "read"), [("csv", pd.read_csv), ("parquet", pd.read_parquet)])
def test_the_file_holds_every_run(capsys, monkeypatch, tmp_path, instant, ending, read) -> None:
    words = [
        "sweep",
        "monaco",
        "--vary",
        "routing.policy=nearest,load_aware",
        "--vary",
        "demand.users=100,200",
    ]
    path = tmp_path / "new" / f"runs.{ending}"
    code, out, err = call(capsys, monkeypatch, *words, "--seed", "3", "--replications", "2", "-o", str(path))
    assert (code, err) == (0, "")
    assert str(path) in out
    assert instant["values"] == VALUES
    assert (instant["rng"], instant["replications"], instant["workers"]) == (3, 2, None)
    pd.testing.assert_frame_equal(read(path), made())
    code, out, _ = call(capsys, monkeypatch, *words, "-q", "-o", str(path))
    assert str(path) not in out
    assert "0.680 ±" in out


def test_json_has_the_summary_and_the_runs(capsys, monkeypatch, instant) -> None:
    words = [
        "sweep",
        "monaco",
        "--vary",
        "routing.policy=nearest,load_aware",
        "--vary",
        "demand.users=100,200",
    ]
    code, out, err = call(capsys, monkeypatch, *words, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["vary"] == VALUES
    assert [row["coverage"] for row in found["rows"]] == pytest.approx(list(COVERAGE.mean(axis=1)))
    assert [row["coverage"] for row in found["runs"]] == pytest.approx(list(COVERAGE.ravel()))


def test_values_of_several_kinds_are_text_in_a_file(capsys, monkeypatch, tmp_path) -> None:
    kinds = {"routing.policy": ["nearest", 3], "demand.users": [[1], [2]]}
    runs = made().assign(**{"routing.policy": ["nearest", 3] * 4, "demand.users": [[1]] * 8})
    monkeypatch.setattr(HOME, "sweep", lambda *_, **__: runs)
    words = [f"--vary={key}={','.join(map(str, tried))}" for key, tried in kinds.items()]
    path = tmp_path / "runs.parquet"
    assert call(capsys, monkeypatch, "sweep", "monaco", *words, "-q", "-o", str(path))[0] == 0
    assert list(pd.read_parquet(path)["routing.policy"][:2]) == ["nearest", "3"]


@pytest.mark.slow
def test_a_sweep_is_that_of_the_library(capsys, monkeypatch, small_scenario) -> None:
    light = {
        "demand.users": 100,
        "simulation.duration_s": 900.0,
        "simulation.warm_up_s": 300.0,
        "simulation.epoch_s": 300.0,
    }
    words = [*FAST, *(f"--set={key}={value}" for key, value in light.items())]
    varied = ["--vary", "routing.policy=nearest,load_aware", "--replications=1", "--workers=1"]
    code, out, err = call(capsys, monkeypatch, "sweep", "monaco", *words, *varied, "--json")
    assert (code, err) == (0, "")
    own = ge.sweep(
        small_scenario.override(light),
        {"routing.policy": ["nearest", "load_aware"]},
        replications=1,
        workers=1,
    )
    assert [row["coverage"] for row in json.loads(out)["runs"]] == pytest.approx(list(own["coverage"]))
