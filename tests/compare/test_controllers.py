"""Controllers compared: pairs pay, shares have honest intervals, moves for nothing are counted."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

import geoedge as ge
from geoedge import cli
from geoedge.compare.controllers import ControllerComparison
from geoedge.compare.controllers.ratios import paired, share
from geoedge.compare.controllers.tables import returns
from geoedge.compare.controllers.words import heading, row_words
from geoedge.errors import GeoEdgeError, ScenarioError
from geoedge.sweep import Replication
from tests.conftest import SMALL

EPOCHS = pd.DataFrame(
    {
        "epoch": [0, 1],
        "start_s": [25200.0, 27000.0],
        "end_s": [27000.0, 28800.0],
        "requests": [100, 300],
        "missed": [10, 60],
        "coverage": [0.9, 0.8],
        "utilization": [0.5, 0.6],
        "mean_wait_s": [0.1, 0.2],
    }
)
MOVE = {
    "epoch": 1,
    "time_s": 27000.0,
    "action": "replicate",
    "site": 0,
    "partner_site": -1,
    "from_profile": 0,
    "to_profile": 1,
    "bytes_moved": 2e9,
    "transfer_s": 1.6,
}


def log(*rows: dict) -> pd.DataFrame:
    """Return a controller's log of moves that differ from the first one in what is given."""
    return pd.DataFrame([MOVE | row for row in rows], columns=list(MOVE))


def days(coverage, moves: int = 0) -> list[Replication]:
    """Return replications of these coverages."""
    made = []
    for r, value in enumerate(coverage):
        metrics = {"coverage": value, "p95_ttft_s": 2.0 - value, "mean_ttft_s": 1.0 - value}
        epochs = EPOCHS.assign(coverage=EPOCHS["coverage"] + value - coverage[0])
        made.append(Replication(0, r, r, metrics, epochs, log(*[{"site": i} for i in range(moves)]), []))
    return made


def contest(**coverages) -> ControllerComparison:
    """Return a comparison whose contestants have these coverages in paired runs."""
    runs = {name: days(np.asarray(each), 3 * (name == "greedy")) for name, each in coverages.items()}
    return ControllerComparison("Town", 0.8, (25200.0, 28800.0), next(iter(coverages)), runs)


STATIC = np.array([0.70, 0.74, 0.66, 0.71, 0.69])
NOISE = np.array([0.001, -0.002, 0.0, 0.002, -0.001])


def test_differences_are_taken_pair_by_pair() -> None:
    table = contest(static=STATIC, greedy=STATIC + 0.02 + NOISE).table.set_index("controller")
    told = ttest_rel(STATIC + 0.02 + NOISE, STATIC).confidence_interval(0.95)
    row = table.loc["greedy"]
    assert row["change"] == pytest.approx(0.02)
    assert (row["change_low"], row["change_high"]) == pytest.approx((told.low, told.high))
    wide = row["coverage_high"] - row["coverage_low"]
    assert row["change_high"] - row["change_low"] < 0.1 * wide  # days differ far more than pairs do
    assert table.loc["static", "change"] == 0.0
    assert (row["moves"], row["moved_gb"]) == (3, pytest.approx(6.0))


def test_rejections_have_a_column_where_there_are_some() -> None:
    found = contest(static=STATIC, greedy=STATIC + NOISE)
    assert "rejected" not in heading(found)
    runs = {
        name: [replace(run, rejected_share=0.04 * (name == "greedy") * run.replication) for run in line]
        for name, line in found.runs.items()
    }
    found = replace(found, runs=runs)
    rows = [
        dict(zip(heading(found), row_words(found, row), strict=True)) for _, row in found.table.iterrows()
    ]
    assert [row["rejected"] for row in rows] == ["0.0%", "8.0%"]
    assert "8.0%" in repr(found)


def test_a_share_is_every_theta_that_is_not_refuted() -> None:
    rng = np.random.default_rng(3)
    whole = 0.05 + 0.01 * rng.standard_normal(6)
    part = 0.6 * whole + 0.005 * rng.standard_normal(6)
    value, low, high = share(part, whole)
    assert value == pytest.approx(part.mean() / whole.mean())
    thetas = np.linspace(-1.0, 3.0, 4001)
    held = [
        theta for theta in thetas if paired(part, theta * whole)[1] <= 0.0 <= paired(part, theta * whole)[2]
    ]
    assert (low, high) == pytest.approx((held[0], held[-1]), abs=2e-3)


def test_shares_hold_the_truth_as_often_as_they_say() -> None:
    rng, hits, count = np.random.default_rng(5), 0, 4000
    for _ in range(count):
        whole = 0.03 + 0.01 * rng.standard_normal(5)
        part = 0.5 * whole + 0.006 * rng.standard_normal(5)
        _, low, high = share(part, whole)
        hits += not low > 0.5 and not high < 0.5  # undefined where the whole is not told apart from zero
    assert 0.94 < hits / count < 0.97


def test_no_share_of_a_gain_that_is_not_there() -> None:
    assert np.isnan(share(0.01 + NOISE, 0.001 + NOISE * 3)).all()
    assert np.isnan(share(np.array([0.01]), np.array([-0.02]))).all()
    value, low, high = share(np.array([0.01]), np.array([0.02]))
    assert value == 0.5
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (({}, {"epoch": 3, "from_profile": 1, "to_profile": 0}), 1),
        (({}, {"epoch": 6, "from_profile": 1, "to_profile": 0}), 0),
        (({}, {"epoch": 3, "site": 5, "from_profile": 1, "to_profile": 0}), 0),
        (({}, {"epoch": 2, "from_profile": 1, "to_profile": 2}), 0),
        # exchanged with site 7 and back
        (
            (
                {"partner_site": 7},
                {"epoch": 2, "site": 7, "partner_site": 0, "from_profile": 0, "to_profile": 1},
            ),
            2,
        ),
        # by way of a third profile
        (
            (
                {},
                {"epoch": 2, "from_profile": 1, "to_profile": 2},
                {"epoch": 4, "from_profile": 2, "to_profile": 0},
            ),
            1,
        ),
    ],
)
def test_coming_back_within_four_epochs_is_counted(rows, expected) -> None:
    table = log(*[row | {"time_s": 900.0 * row.get("epoch", 1)} for row in rows])
    assert returns(table.sample(frac=1.0, random_state=1), 4) == expected


def test_what_a_controller_earns_is_said_of_half_the_gain_of_the_oracle() -> None:
    oracle = STATIC + 0.06 + NOISE
    words = contest(static=STATIC, greedy=STATIC + 0.04 + NOISE, oracle=oracle).sentences()
    assert any("there is something to earn" in each for each in words)
    assert any(
        "greedy: +4.00" in each and "67% of the oracle's gain, half or more." in each for each in words
    )
    words = contest(static=STATIC, greedy=STATIC + 0.01 + NOISE, oracle=oracle).sentences()
    assert any("17% of the oracle's gain, less than half." in each for each in words)


def test_where_nothing_is_to_be_earned_harm_is_said() -> None:
    oracle = STATIC + 0.01 + NOISE
    told = {
        -0.02: "it does harm, beyond its interval",
        0.0: "not told apart from zero",
        0.008: "it earns something",
    }
    for change, verdict in told.items():
        words = contest(static=STATIC, greedy=STATIC + change + NOISE, oracle=oracle).sentences()
        assert any(each.startswith("greedy: ") and each.endswith(f"{verdict}.") for each in words)


def test_one_run_has_no_interval_and_says_so() -> None:
    found = contest(static=STATIC[:1], greedy=STATIC[:1] + 0.01)
    assert np.isnan(found.table["change_low"]).all()
    assert "one run, which says nothing of its luck" in found.sentences()[0]
    assert "one run does not tell whether that is luck" in found.sentences()[1]
    assert "±" not in repr(found)
    assert found.figure().axes


def test_the_same_controller_twice_differs_by_nothing(small_study) -> None:
    still = {"control.controller": "none"}
    found = ge.compare_controllers(
        small_study.scenario,
        controllers={"none": still, "again": still, "greedy": {"control.controller": "greedy"}},
        study=small_study,
        replications=2,
        keep=("greedy",),
        workers=1,
    )
    table = found.table.set_index("controller")
    assert (table.loc["again", ["change", "change_low", "change_high"]] == 0.0).all()
    assert table.loc["greedy", "change"] != 0.0
    assert table.loc["none", "moves"] == 0
    epochs = found.epochs[found.epochs["controller"] == "greedy"]
    assert epochs["moves"].sum() == pytest.approx(table.loc["greedy", "moves"])
    assert epochs["moved_gb"].sum() == pytest.approx(table.loc["greedy", "moved_gb"])
    late = epochs[epochs["start_s"] >= found.window_s[0]]
    together = np.average(late["coverage"], weights=late["requests"])
    assert together == pytest.approx(table.loc["greedy", "coverage"], abs=2e-3)
    assert list(found.kept) == ["greedy"]
    assert found.kept["greedy"].metrics()["coverage"] == found.runs["greedy"][0].metrics["coverage"]


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"controllers": ("none",)}, GeoEdgeError, "at least two"),
        ({"controllers": ("none", "none")}, GeoEdgeError, "each once"),
        (
            {"controllers": ("none", "greedy"), "baseline": "static"},
            GeoEdgeError,
            "'static' does not take part",
        ),
        (
            {"controllers": ("none", "greedy"), "keep": ("oracle",)},
            GeoEdgeError,
            "'oracle' does not take part",
        ),
        ({"controllers": ("none", "wizard")}, ScenarioError, "wizard"),
        ({"controllers": {"a": {}, "b": {"control.magic": 1}}}, ScenarioError, "magic"),
    ],
)
def test_a_bad_question_is_refused_in_one_line(small_scenario, asked, error, words) -> None:
    with pytest.raises(error, match=words) as caught:
        ge.compare_controllers(small_scenario, **asked)
    assert "\n" not in str(caught.value)


def test_the_command_prints_what_the_library_finds(capsys, monkeypatch, tmp_path, small_study) -> None:
    picture = tmp_path / "day.png"
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    words = [
        "compare",
        "monaco",
        "--controllers=none,greedy",
        "--replications=1",
        "--workers=1",
        *settings,
        f"--figure={picture}",
    ]
    monkeypatch.setattr(sys, "argv", ["geoedge", *words, "--json"])
    with pytest.raises(SystemExit, match="0"):
        cli.main()
    told = json.loads(capsys.readouterr().out)
    found = ge.compare_controllers(
        small_study.scenario, controllers=("none", "greedy"), study=small_study, replications=1, workers=1
    )
    assert [row["coverage"] for row in told["table"]] == pytest.approx(list(found.table["coverage"]))
    assert told["sentences"] == found.sentences()
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("monaco", "--controllers=none"), "at least two"),
        (("monaco", "--controllers=none,greedy", "--explain"), "leave one out"),
        (("monaco", "--explain", "--baseline=none"), "needs --controllers"),
        (("runs/none", "--set=seed=3"), "nothing can be set"),
        (("monaco", "--controllers=none,greedy", "--figure=day.gif"), "a picture ends in"),
    ],
)
def test_a_bad_command_is_one_line(capsys, monkeypatch, words, told) -> None:
    monkeypatch.setattr(sys, "argv", ["geoedge", "compare", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    _, error = capsys.readouterr()
    assert stop.value.code == 1
    assert told in error
    assert error.count("\n") == 1
