"""When there is something to earn: a run's own luck does not choose its epochs, and requests weigh them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from geoedge.compare.controllers import ControllerComparison
from geoedge.compare.controllers.hours import hours_table
from geoedge.sweep import Replication

HALF_HOUR = 1800.0


def line(coverage: Sequence[Sequence[float]], requests: Sequence[int]) -> list[Replication]:
    """Return replications with these coverages by epoch, shape (R, E)."""
    made = []
    for r, values in enumerate(coverage):
        starts = 21600.0 + HALF_HOUR * np.arange(len(values))
        epochs = pd.DataFrame(
            {
                "epoch": np.arange(len(values)),
                "start_s": starts,
                "end_s": starts + HALF_HOUR,
                "requests": requests,
                "coverage": values,
                "utilization": 0.5,
                "mean_wait_s": 0.1,
            }
        )
        level = float(np.average(values, weights=requests))
        metrics = {"coverage": level, "p95_ttft_s": 1.0, "mean_ttft_s": 0.5}
        log = pd.DataFrame(columns=["action", "bytes_moved", "time_s", "site", "epoch"])
        made.append(Replication(0, r, r, metrics, epochs, log, []))
    return made


STATIC = np.full((4, 3), 0.7)
REQUESTS = [100, 300, 100]


def runs(oracle: np.ndarray, greedy: np.ndarray) -> dict[str, list[Replication]]:
    return {
        name: line((STATIC + gain).tolist(), REQUESTS)
        for name, gain in (("static", np.zeros((4, 3))), ("greedy", greedy), ("oracle", oracle))
    }


def test_gains_are_weighed_by_requests_in_the_epochs_where_the_oracle_is_ahead() -> None:
    luck = np.array([[0.001], [-0.001], [0.002], [-0.002]])
    oracle = np.array([0.04, 0.08, 0.01]) + luck
    greedy = np.array([0.02, 0.06, -0.01]) + luck
    table = hours_table(runs(oracle, greedy), "static", "oracle", 21600.0, 0.03).set_index(
        ["worth_it", "controller"]
    )
    assert table.loc[(True, "oracle"), "change"] == pytest.approx(0.07)  # (100 × .04 + 300 × .08) / 400
    assert table.loc[(True, "greedy"), "change"] == pytest.approx(0.05)
    assert table.loc[(True, "greedy"), "oracle_share"] == pytest.approx(5 / 7)
    assert table.loc[(True, "greedy"), "epochs"] == 2
    assert table.loc[(False, "greedy"), "change"] == pytest.approx(-0.01)
    assert table.loc[(False, "greedy"), "requests"] == 100


def test_an_epoch_lucky_in_one_run_is_not_chosen_by_it() -> None:
    oracle = np.zeros((4, 3))
    oracle[0, 0] = 0.2  # by its own measure that epoch would be worth it
    oracle[:, 1] = 0.05
    table = hours_table(runs(oracle, oracle), "static", "oracle", 21600.0, 0.03).set_index(
        ["worth_it", "controller"]
    )
    # the other three choose that epoch for their mean of .067, where they themselves earned nothing
    assert table.loc[(True, "oracle"), "epochs"] == pytest.approx((1 + 2 + 2 + 2) / 4)
    assert table.loc[(True, "oracle"), "change"] == pytest.approx((0.05 + 3 * 0.05 * 300 / 400) / 4)


def test_epochs_of_the_warm_up_do_not_count() -> None:
    oracle = np.tile([0.5, 0.05, 0.0], (4, 1))
    table = hours_table(runs(oracle, oracle), "static", "oracle", 21600.0 + HALF_HOUR, 0.03)
    assert table.loc[table["worth_it"], "change"].iloc[0] == pytest.approx(0.05)


@pytest.mark.parametrize("count", [1, 2])
def test_two_runs_cannot_choose_for_each_other(count: int) -> None:
    few = {name: rows[:count] for name, rows in runs(STATIC, STATIC).items()}
    assert hours_table(few, "static", "oracle", 0.0, 0.03).empty


def test_without_an_oracle_nobody_knows_when_it_is_worth_it() -> None:
    some = {name: rows for name, rows in runs(STATIC, STATIC).items() if name != "oracle"}
    assert hours_table(some, "static", "oracle", 0.0, 0.03).empty


def test_sentences_tell_the_share_where_it_is_worth_it_alone() -> None:
    luck = np.array([[0.001], [-0.001], [0.002], [-0.002]])
    oracle, greedy = np.array([0.04, 0.08, 0.01]) + luck, np.array([0.02, 0.06, -0.01]) + 2 * luck
    found = ControllerComparison("Town", 0.8, (21600.0, 27000.0), "static", runs(oracle, greedy))
    worth, other = [text for text in found.sentences() if text.startswith(("In 2", "In the other"))]
    assert worth.startswith("In 2 of 3 epochs the oracle is 3 points or more ahead of static")
    assert "greedy +5.00" in worth
    assert "(71% [" in worth
    assert "greedy −1.00" in other
    assert "of that" not in other
    assert {row["controller"] for row in found.to_dict()["hours"]} == {"greedy", "oracle"}


def test_an_epoch_without_requests_in_one_run_is_judged_by_the_rest() -> None:
    oracle = np.tile([0.4, 0.0, 0.0], (4, 1))
    made = runs(oracle, oracle)
    for rows in made.values():
        rows[3].epochs.loc[0, ["requests", "coverage"]] = [0, np.nan]
    table = hours_table(made, "static", "oracle", 21600.0, 0.03).set_index(["worth_it", "controller"])
    assert table.loc[(True, "oracle"), "change"] == pytest.approx(0.4)
    assert table.loc[(True, "oracle"), "epochs"] == 1
    assert table.loc[(False, "oracle"), "change"] == pytest.approx(0.0)


def test_where_it_is_never_worth_it_the_sentence_says_so() -> None:
    luck = np.array([[0.001], [-0.001], [0.002], [-0.002]])
    gains = np.array([0.01, 0.02, 0.0]) + luck
    found = ControllerComparison("Town", 0.8, (21600.0, 27000.0), "static", runs(gains, gains / 2))
    told = [text for text in found.sentences() if "epochs the oracle" in text]
    assert told == ["In none of 3 epochs the oracle is 3 points or more ahead of static, by the other days."]
