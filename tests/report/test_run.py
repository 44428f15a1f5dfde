"""What the terminal says of a run: what is shown depends on how many runs there were."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from geoedge.compare.columns import intervals, long_table
from geoedge.control.left_out import WHY
from geoedge.report._text import with_half, with_interval
from geoedge.report.decided import still_words
from geoedge.report.run import print_run
from geoedge.results import Results
from tests.results.made import make_results

MOVE = {
    "time_s": 20.0,
    "action": "replicate",
    "site": 0,
    "from_profile": 0,
    "to_profile": 1,
    "bytes_moved": 2.5e9,
    "predicted_gain": 0.01,
}


def told(replications: int, *, ensemble: bool = False, rejected: bool = False) -> Results:
    """Return a run of so many replications with its tables."""
    metrics = [
        {"coverage": 0.7 + 0.01 * r} | ({"rejected_share": 0.02} if rejected else {})
        for r in range(replications)
    ]
    columns = {"theory (PPP)": {"coverage": (0.6, np.nan, np.nan)}, "simulation": intervals(metrics)}
    if ensemble:
        columns["PPP ensemble: load_aware"] = {"coverage": (0.65, 0.6, 0.72)}
    change = np.nan if replications == 1 else 0.01
    epochs = {
        "epoch": [0],
        "start_s": [0.0],
        "moves": [1.0],
        "bytes_moved": [2e9],
        "predicted_gain": [0.01],
        "still": [0.7],
        "change": [0.02],
        "low": [0.02 - change],
        "high": [0.02 + change],
    }
    made = make_results(actions=pd.DataFrame([MOVE]))
    tables = {"answers": long_table(columns), "control_epochs": pd.DataFrame(epochs)}
    return made.with_tables(**tables).with_meta(replications=replications, controller="greedy")


def printed(results: Results, **given) -> str:
    out = io.StringIO()
    print_run(results, console=Console(file=out, width=200), **given)
    return " ".join(out.getvalue().split())


def test_one_run_has_no_intervals_and_no_pairs() -> None:
    text = printed(told(1))
    assert "Simulated numbers: of one run, without interval." in text
    assert "one run; gains of all moves so far, as predicted when they were made and as it shows" in text
    assert "Controller: 1 move, 2.5 GB time" in text
    for words in ("paired", "±", "95 %", "first replication", "Poisson layouts", "rejected"):
        assert words not in text


def test_several_runs_have_both() -> None:
    text = printed(told(3, ensemble=True, rejected=True))
    assert "Simulated numbers: mean of 3 paired runs ± 95 % interval." in text
    assert "median and 95 % range of Poisson layouts" in text
    assert (
        "mean of 3 runs; gains of all moves so far, as predicted when they were made and as paired runs show"
        in text
    )
    assert "(first replication)" in text
    assert "0.710 ± 0.025" in text  # t of 2 degrees, 97.5 %, times 0.01 / sqrt 3
    assert "+0.0200 ± 0.0100" in text
    assert "rejected – – 0.020 ± 0.000 – " in text


def test_where_the_run_is_is_said_if_asked(tmp_path) -> None:
    assert f"run {tmp_path}" in printed(told(1), folder=tmp_path)
    assert "run /" not in printed(told(1))
    (tmp_path / "map.html").write_text("", encoding="utf-8")
    assert f"map {tmp_path / 'map.html'}" in printed(told(1), folder=tmp_path)


def test_an_interval_around_the_number_is_half_of_it_and_another_one_both_ends() -> None:
    assert with_interval(0.5, 0.4, 0.6) == "0.500 ± 0.100"
    assert with_interval(0.5, 0.3, 0.6) == "0.50 [0.30, 0.60]"
    assert with_interval(0.5, np.nan, np.nan) == "0.500"


@pytest.mark.parametrize(
    ("asked", "given", "words"),
    [
        ((0.5, np.nan, np.nan), {}, "0.500"),
        ((0.5, 0.4, 0.6), {}, "0.500 ± 0.100"),
        ((-2.0, -2.5, -1.5), {"digits": 1, "signed": True}, "-2.0 ± 0.5"),
        ((-0.0, np.nan, np.nan), {"signed": True}, "+0.000"),
        ((np.inf, np.nan, np.nan), {}, "∞"),
    ],
)
def test_a_number_with_half_of_its_interval(asked, given, words) -> None:
    assert with_half(*asked, **given) == words


@pytest.mark.parametrize("width", [80, 160])
def test_hottest_sites_name_their_street_as_text_on_any_terminal(width: int) -> None:
    base = told(1)
    streets = ["[red]Rue\x1b[31m \u202egnp\x07", "x" * 500]
    out = io.StringIO()
    results = replace(base, sites=base.sites.assign(street=streets))
    print_run(results, console=Console(file=out, width=width))
    text = out.getvalue()
    assert "[red]Rue[31m" in text
    assert "xxxxxxxx" in text
    assert not {"\x1b", "\u202e", "\x07"} & set(text)
    table = text[text.index("Hottest sites") : text.index("Controller")].splitlines()
    assert max(map(len, table)) <= width
    assert all(head in " ".join(table).split() for head in ("street", "requests", "utilisation", "kind"))


def test_gains_over_a_horizon_are_named() -> None:
    ahead = told(1)
    actions = ahead.actions.assign(horizon_gain=0.02, horizon_epochs=3)
    promised = ahead.tables["control_epochs"].assign(horizon_gain=0.02)
    text = printed(replace(ahead, actions=actions).with_tables(control_epochs=promised))
    assert text.count("mean of 3 epochs") == 2
    assert "mean of" not in printed(told(1))


@pytest.mark.parametrize("why", [*WHY, "floor, budget", "of another version"])
def test_no_epoch_without_a_move_is_told_in_a_word_of_the_table_alone(why) -> None:
    decisions = pd.DataFrame({"epoch": [1], "actions": [0], "why": [why]})
    words = still_words(told(1).with_tables(decisions=decisions))
    if why == "floor, budget":
        assert words.endswith(": the fallback floor and the budget kept back what would have gained, 1×")
    assert (f": {why}, 1×" in words) == (why not in WHY and why != "floor, budget")


def test_epochs_without_a_move_are_counted_with_why() -> None:
    decisions = pd.DataFrame({"epoch": [1, 2, 3], "actions": [1, 0, 0], "why": ["cap", "floor", "floor"]})
    words = "2 epochs of 3 without a move: the fallback floor kept back what would have gained, 2×"
    assert words in printed(told(1).with_tables(decisions=decisions))
    none = told(1).with_tables(decisions=decisions.tail(2))
    assert f"no moves. {words.replace('of 3', 'of 2')}." in printed(
        replace(none, actions=none.actions.head(0))
    )
