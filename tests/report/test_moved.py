"""The ledger: promise and hindsight are summed over the same moves, and what nobody can judge is named."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from geoedge.report.page.moved import (
    epochs_grid,
    hindsight_words,
    ledger_grid,
    moved_words,
    repairs_of,
    still_grid,
    totals_grid,
)
from geoedge.report.page.told import Told
from geoedge.results import Results
from geoedge.texts import plain_text
from tests.report.conftest import HOSTILE


@pytest.fixture
def told(one: Results) -> Told:
    """A run with two moves in its second epoch; of the one that is not judged, site 3 failed in that epoch."""
    return Told("one", one)


def with_actions(told: Told, actions: pd.DataFrame, **tables: pd.DataFrame) -> Told:
    return Told(told.name, replace(told.results, actions=actions, tables=told.results.tables | tables))


def totals(told: Told) -> dict[str, str]:
    return {row[0]: row[1] for row in totals_grid([told]).rows}


def test_promise_and_hindsight_are_summed_over_the_moves_that_were_judged(told: Told) -> None:
    found = totals(told)
    assert found["judged in hindsight"] == "1 of 2"
    assert found["predicted gain, all moves"] == "+0.0130"
    assert found["predicted gain, moves that were judged"] == "+0.0120"
    assert found["in hindsight, moves that were judged"] == "+0.0090"


def test_sites_that_lost_what_moves_had_brought_are_named(told: Told) -> None:
    words = f"1 of 2 judged in hindsight. Not judged: moves at sites that lost meanwhile what they held: {plain_text(HOSTILE[3])} (failed)."
    assert hindsight_words(told) == words
    assert totals_grid([told]).note == words
    ledger = ledger_grid(told)
    assert ledger is not None
    assert words in ledger.note
    assert totals_grid([told, told]).note == f"one: {words} one: {words}"


def test_a_failure_in_another_epoch_took_nothing(told: Told) -> None:
    events = told.results.tables["events"].assign(start_s=[29_000.0, 26_000.0])
    before = with_actions(told, told.results.actions, events=events)
    assert hindsight_words(before) == "1 of 2 judged in hindsight."


def test_sites_that_repaired_themselves_are_named_and_their_repairs_are_no_moves(told: Told) -> None:
    repair = told.results.actions.tail(1).assign(
        action="invalidate", site=2, partner_site=-1, bytes_moved=5e9, predicted_gain=float("nan")
    )
    actions = pd.concat([told.results.actions, repair, repair.assign(action="restore")], ignore_index=True)
    repaired = with_actions(told, actions)
    assert repairs_of(repaired) == 2
    assert f"{plain_text(HOSTILE[2])} (out of date)" in hindsight_words(repaired)
    assert totals(repaired) == totals(told)


def test_waits_that_sites_report_are_judged_by_nobody(told: Told) -> None:
    actions = told.results.actions.assign(realised_gain=float("nan"))
    reported = Told("one", with_actions(told, actions).results.with_meta(advertise="state"))
    found = totals(reported)
    assert found["judged in hindsight"] == "0 of 2"
    assert found["predicted gain, all moves"] == "+0.0130"
    assert (
        found["in hindsight, moves that were judged"]
        == found["predicted gain, moves that were judged"]
        == "–"
    )
    assert "waits that sites report themselves" in hindsight_words(reported)


def test_without_moves_nothing_is_to_be_judged(told: Told) -> None:
    still = with_actions(told, told.results.actions.head(0))
    assert totals(still)["judged in hindsight"] == "–"
    assert hindsight_words(still) == totals_grid([still]).note == ""


def test_bytes_are_counted_in_gigabytes(told: Told) -> None:
    assert totals(told)["moved [GB]"] == "2.1"
    assert "made 2 moves of 2.1 GB in all" in moved_words(told)
    ledger = ledger_grid(told)
    assert ledger is not None
    assert [row[4] for row in ledger.rows] == ["2.10", "0.00"]


def test_moves_of_one_run_are_counted_and_of_several_averaged(told: Told) -> None:
    several = epochs_grid(told)
    single = epochs_grid(Told("one", told.results.with_meta(replications=1)))
    assert several is not None
    assert single is not None
    assert [row[1] for row in several.rows] == ["0.0", "2.0"]
    assert [row[1] for row in single.rows] == ["0", "2"]
    assert several.note.startswith("Mean of the paired runs.")
    assert single.note.startswith("One pair of runs.")


# -- gains over a horizon, and decisions to do nothing --------------------------------------------------


def ahead(told: Told) -> Told:
    """Return the run as one of a planner that looks three epochs ahead."""
    actions = told.results.actions.assign(horizon_gain=[0.001, 0.014], horizon_epochs=3)
    promised = told.results.tables["control_epochs"].assign(horizon_gain=[0.0, 0.015])
    return with_actions(told, actions, control_epochs=promised)


def test_gains_over_a_horizon_stand_beside_those_of_the_epoch_and_name_it(told: Told) -> None:
    plain, further = ledger_grid(told), ledger_grid(ahead(told))
    assert plain is not None
    assert further is not None
    assert "mean of 3 epochs" not in plain.columns
    assert further.columns[-3:] == ["predicted gain", "in hindsight", "mean of 3 epochs"]
    assert [row[:-1] for row in further.rows] == plain.rows
    assert [row[-1] for row in further.rows] == ["+0.0010", "+0.0140"]
    assert "chosen by the predicted mean over 3 epochs ahead" in further.note
    assert totals(ahead(told)) == totals(told) | {"mean over the horizon, all moves": "+0.0150 (3 epochs)"}
    both = {row[0]: row[1:] for row in totals_grid([told, ahead(told)]).rows}
    assert both["mean over the horizon, all moves"] == ["–", "+0.0150 (3 epochs)"]
    epochs = epochs_grid(ahead(told))
    assert epochs is not None
    assert epochs.columns[-1] == "mean of 3 epochs so far"
    assert [row[-1] for row in epochs.rows] == ["+0.0000", "+0.0150"]
    assert "each for the epoch that started" in epochs.note


DECIDED = pd.DataFrame(
    {
        "epoch": [1, 2, 3],
        "time_s": [28_800.0, 32_400.0, 36_000.0],
        "actions": [2, 0, 0],
        "horizon_epochs": [1, 1, 0],
        "looked_at": [6, 4, 0],
        "left_out": ["", "migrate site 2 a -> b; site 3 b -> a", ""],
        "left_out_gain": [float("nan"), 0.0008, float("nan")],
        "left_out_solved": [False, True, False],
        "unseen_gain": [float("nan"), 0.0004, float("nan")],
        "why": ["nothing to gain", "least gain, budget", "absent"],
    }
)


def test_epochs_without_a_move_say_why(told: Told) -> None:
    grid = still_grid(with_actions(told, told.results.actions, decisions=DECIDED))
    assert grid is not None
    first, second = grid.rows
    assert first[0] == "9:00" or first[0] == "09:00"
    assert plain_text(HOSTILE[2]) in first[1]
    assert plain_text(HOSTILE[3]) in first[1]
    assert first[2:] == [
        "it promised less than the least gain; its bytes were beyond what was left of the budget",
        "+0.0008",
        "4",
        "+0.0004",
    ]
    assert second[1:3] == ["–", "the controller was down"]
    assert grid.note.startswith(
        "2 epochs of 3 without a move: the best promised less than the least gain and the budget kept back what would "
        "have gained, 1×; the controller was down, 1×."
    )


def test_a_run_that_does_not_tell_has_no_such_table(told: Told) -> None:
    assert still_grid(with_actions(told, told.results.actions, decisions=DECIDED.drop(columns="why"))) is None
    assert still_grid(with_actions(told, told.results.actions, decisions=DECIDED.head(1))) is None
