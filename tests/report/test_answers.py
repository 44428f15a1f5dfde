"""The verdict, the table and the steps of one run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from geoedge.compare.columns import ENSEMBLE, FIELD, STEERED, THEORY, TWINS, interval
from geoedge.report.page.answers import (
    answers_grid,
    change_words,
    steps_beside,
    steps_of,
    steps_table,
    verdict,
)
from geoedge.report.page.told import Told
from geoedge.results import Results
from tests.report.conftest import LEVELS, OWN


@pytest.fixture
def told(one: Results) -> Told:
    return Told("one", one)


def with_answers(told: Told, **changed: object) -> Told:
    table = told.answers
    assert table is not None
    rows = (table["column"] == STEERED) & (table["metric"] == "coverage")
    table = table.copy()
    for name, value in changed.items():
        table.loc[rows, name] = value
    return Told("one", told.results.with_tables(answers=table))


def test_the_verdict_is_one_sentence_with_its_numbers(told: Told) -> None:
    said = verdict(told)
    assert said.count(". ") == 0
    value = LEVELS[STEERED] + 0.01  # the mean of three replications
    assert said.startswith(f"{100 * value:.1f} % (± 2.5) of requests, with the greedy controller,")
    assert f"{100 * (0.9 - value):.1f} points short of the 90 % asked for" in said
    assert (
        f"Poisson theory, which knows no map, says 83.0 %, {100 * (0.83 - value):.1f} points too high" in said
    )
    assert "the field on the map 77.0 %" in said


def test_more_than_was_asked_for_is_above(told: Told) -> None:
    said = verdict(with_answers(told, value=0.95, low=0.94, high=0.96))
    assert "5.0 points above the 90 % asked for" in said
    assert "12.0 points too low" in said


def test_an_interval_around_the_wanted_share_decides_nothing(told: Told) -> None:
    assert "not told apart from the 90 % asked for" in verdict(
        with_answers(told, value=0.91, low=0.89, high=0.93)
    )


def test_one_run_has_no_interval(told: Told) -> None:
    assert "±" not in verdict(with_answers(told, low=np.nan, high=np.nan))


def test_a_simulation_by_itself_has_a_verdict_too(one: Results) -> None:
    alone = Told("one", replace(one, tables={}))
    share = one.ttft_coverage(0.8)
    assert verdict(alone) == (
        f"{100 * share:.1f} % of requests have their first token within 0.8 s, {100 * (0.9 - share):.1f} points short of "
        "the 90 % asked for."
    )
    assert steps_of(alone) == []
    assert answers_grid(alone) is None


def test_steps_lead_from_theory_to_the_scenario_and_add_up(told: Told) -> None:
    steps = steps_of(told)
    assert [step.name for step in steps] == [THEORY, ENSEMBLE, TWINS, FIELD, OWN, STEERED]
    assert math.isnan(steps[0].change)
    assert steps[0].level + sum(step.change for step in steps[1:]) == pytest.approx(steps[-1].level)
    assert steps[1].level == pytest.approx(0.55)  # the mean of the layouts, not their median in the table


def test_intervals_of_steps_hold_what_either_end_does_not_know(told: Told) -> None:
    steps = {step.name: step for step in steps_of(told)}
    _, low, high = interval(np.linspace(0.4, 0.7, 10))
    layouts = (high - low) / 2
    assert steps[ENSEMBLE].high - steps[ENSEMBLE].change == pytest.approx(layouts)  # theory is exact
    assert steps[TWINS].high - steps[TWINS].change == pytest.approx(math.hypot(layouts, layouts))
    assert steps[FIELD].high - steps[FIELD].change == pytest.approx(layouts)
    _, low, high = interval([0.02, 0.018, 0.022])
    assert steps[STEERED].high - steps[STEERED].low == pytest.approx(
        high - low
    )  # paired: less than of either run
    assert steps[OWN].high - steps[OWN].low > 3 * (high - low)


def test_bars_of_the_waterfall_stand_on_each_other(told: Told) -> None:
    steps = steps_of(told)
    bars = [row[-1] for row in steps_table(steps).rows]
    assert bars[0].left == 0.0
    assert [bar.tone for bar in bars] == ["level", "worse", "worse", "better", "worse", "better"]
    for step, before, bar in zip(steps[1:], bars, bars[1:], strict=False):
        end = before.right if before.tone in ("level", "better") else before.left
        assert end == pytest.approx(bar.left if step.change > 0 else bar.right, abs=0.011)
    assert all(
        0.0 <= place <= 100.0
        for bar in bars
        for place in (bar.left, bar.right, bar.low or 0.0, bar.high or 0.0)
    )


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("simulation: equilibrium", "Routers go by equilibrium waits, solved for a forecast of demand."),
        (
            "simulation: state",
            "Routers go by waits that follow from the sites' queues when these were last reported.",
        ),
        ("simulation: measured", "Routers go by the mean waits that sites measured last."),
        ("simulation", ""),  # routers that read no waits go by none
    ],
)
def test_the_step_to_the_simulation_says_what_routers_go_by(told: Told, column: str, words: str) -> None:
    answers = told.results.tables["answers"]
    answers = answers.assign(column=answers["column"].replace(OWN, column))
    run = told.results.with_tables(answers=answers).with_meta(
        advertise=column.partition(": ")[2] or "equilibrium"
    )
    (step,) = (step for step in steps_of(Told("one", run)) if step.name == column)
    assert step.words == f"People move and come in crowds, queues fill and drain. {words}".rstrip()


def test_words_of_a_change_have_sign_and_interval(told: Told) -> None:
    steps = {step.name: step for step in steps_of(told)}
    assert change_words(steps[THEORY]) == ""
    assert change_words(steps[STEERED]).startswith("+2.0 ± 0.")
    assert change_words(steps[ENSEMBLE]).startswith("−28.0 ± ")


def test_the_note_says_how_often_it_was_run(told: Told) -> None:
    grid = answers_grid(told)
    assert grid is not None
    assert "mean of 3 paired runs" in grid.note
    single = answers_grid(Told("one", told.results.with_meta(replications=1)))
    assert single is not None
    assert "one run, no interval" in single.note


def with_layouts(told: Told, poisson: list[float], fixed: list[float]) -> Told:
    rows = [("Poisson", value) for value in poisson] + [("fixed", value) for value in fixed]
    ensemble = pd.DataFrame(rows, columns=["count", "coverage"])
    return Told("one", told.results.with_tables(ensemble=ensemble))


@pytest.mark.parametrize("draws", [[0.38, 0.70], [0.54]], ids=["two far apart", "one"])
def test_few_layouts_give_no_interval_and_no_whisker(told: Told, draws: list[float]) -> None:
    steps = steps_of(with_layouts(told, draws, draws))
    found = {step.name: step for step in steps}
    for name in (ENSEMBLE, TWINS, FIELD):
        assert found[name].lacking == "layouts"
        assert math.isnan(found[name].low)
        assert "±" not in change_words(found[name])
    assert found[OWN].lacking == found[STEERED].lacking == ""
    rows = {row[0]: row for row in steps_table(steps).rows}
    assert rows[ENSEMBLE][1] == "−29.0"
    assert rows[ENSEMBLE][3].endswith("Interval: too few layouts to tell.")
    assert rows[ENSEMBLE][4].low is None
    assert rows[STEERED][4].low is not None
    beside = steps_beside([told, with_layouts(told, draws, draws)])
    assert beside is not None
    assert beside.rows[1][2] == "54.0 % (−29.0, too few layouts to tell)"
    assert "too few" not in beside.rows[1][1]


def test_an_interval_that_leaves_something_out_is_kept_however_wide(told: Told) -> None:
    draws = [0.50, 0.58]
    _, low, high = interval(draws)
    assert low > 0.0
    assert high > 1.0  # beyond what is possible at one end alone
    steps = {step.name: step for step in steps_of(with_layouts(told, draws, list(np.linspace(0.5, 0.6, 10))))}
    assert steps[ENSEMBLE].lacking == ""
    assert steps[ENSEMBLE].high - steps[ENSEMBLE].low == pytest.approx(high - low)


def test_few_runs_are_called_runs(told: Told) -> None:
    answers = told.results.tables["answers"].copy()
    rows = (answers["column"] == OWN) & (answers["metric"] == "coverage")
    answers.loc[rows, ["low", "high"]] = (-0.8, 2.3)
    steps = {step.name: step for step in steps_of(Told("one", told.results.with_tables(answers=answers)))}
    assert steps[OWN].lacking == "runs"
    assert math.isnan(steps[OWN].high)
