"""Runs side by side: differences are paired where the same people ask the same, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from geoedge.city import City
from geoedge.compare.columns import ENSEMBLE, FIELD, STEERED, THEORY, TWINS, interval
from geoedge.errors import GeoEdgeError
from geoedge.report.page.beside import answers_beside, difference, differences_grid, pairing_words
from geoedge.report.page.compose import Asked, _changes
from geoedge.report.page.given import _shown, difference_grid
from geoedge.report.page.told import Told, share_people, told_runs
from geoedge.results import Results
from geoedge.scenario import load_scenario
from tests.report.conftest import OWN, told_run


@pytest.fixture
def pair(one: Results, other: Results) -> tuple[Told, Told]:
    return Told("one", one), Told("other", other)


def test_differences_of_the_same_people_are_paired_seed_by_seed(pair: tuple[Told, Told]) -> None:
    found = difference(*pair, "coverage")
    mean, half = found.mean, found.half
    assert found.means is None  # the columns beside it have them
    expected, low, high = interval([0.05, 0.0504, 0.0508])
    assert mean == pytest.approx(expected)
    assert half == pytest.approx((high - low) / 2)
    assert half < 0.2 * (pair[0].value("coverage", STEERED)[2] - pair[0].value("coverage", STEERED)[0])
    assert list(pairing_words(pair)) == [
        "other and one share people and requests: differences are means over 3 paired replications, ± 95 % interval."
    ]


@pytest.mark.parametrize(
    ("what", "why"),
    [("seed", "seeds differ (7 and 8)"), ("city", "the cities differ"), ("records", "other people")],
)
def test_other_people_are_not_paired_and_the_page_says_why(
    pair: tuple[Told, Told], town: City, what: str, why: str
) -> None:
    first, second = pair
    changed = second.results
    if what == "seed":
        changed = told_run(town, "other", gain=0.05, seed=8)
    elif what == "city":
        changed = changed.with_meta(checksums={"city": "another"})
    else:
        changed = replace(changed, records=changed.records.slice(1))
    second = Told("other", changed)
    assert why in share_people(first, second)
    found = difference(first, second, "coverage")
    assert found.mean == pytest.approx(0.0504)
    assert np.isnan(found.half)
    assert why in " ".join(pairing_words((first, second)))
    assert "has no interval" in differences_grid((first, second)).note


def test_a_run_without_its_replications_is_not_paired(pair: tuple[Told, Told]) -> None:
    first, second = pair
    tables = {name: table for name, table in second.results.tables.items() if name != "replications"}
    second = Told("other", replace(second.results, tables=tables))
    assert np.isnan(difference(first, second, "coverage").half)
    assert "other kept no table of replications" in " ".join(pairing_words((first, second)))


def with_seeds(told: Told, seeds: tuple[int, ...]) -> Told:
    """Return a run that kept the replications of some seeds alone, and has their means in its answers."""
    kept = told.results.tables["replications"]
    kept = kept[kept["seed"].isin(seeds)]
    answers = told.results.tables["answers"].copy()
    for (column, metric), rows in kept.groupby(["column", "metric"]):
        here = (answers["column"] == column) & (answers["metric"] == metric)
        answers.loc[here, ["value", "low", "high"]] = interval(rows["value"].to_numpy())
    return Told(told.name, told.results.with_tables(replications=kept, answers=answers))


def test_with_other_counts_the_difference_says_over_which_seeds_and_between_which_means(
    pair: tuple[Told, Told],
) -> None:
    first, second = pair[0], with_seeds(pair[1], (7, 11))
    found = difference(first, second, "coverage")
    mean, low, high = interval([0.05, 0.0504])
    assert (found.mean, found.half) == pytest.approx((mean, (high - low) / 2))
    assert found.means == pytest.approx((0.765, 0.8152))
    assert found.means[1] - found.means[0] == pytest.approx(found.mean)
    columns = [each.value("coverage", STEERED)[0] for each in (first, second)]
    assert abs(columns[1] - columns[0] - found.mean) > 0.004  # what a reader would take from the columns
    assert found.words == "+0.050 ± 0.003 (0.765 → 0.815)"
    (words,) = pairing_words((first, second))
    assert "over the 2 seeds that both have" in words
    assert "one → other, ± 95 % interval" in words
    assert words.endswith("Columns are over all seeds of their run (3 and 2).")
    said = list(_changes(Asked([first, second], None, False)))
    assert said[0] == "other against one: +5.0 ± 0.3 points of coverage, from 76.5 % to 81.5 %."


def test_one_pair_has_no_interval_and_is_not_said_to_have_one(pair: tuple[Told, Told]) -> None:
    single = with_seeds(pair[0], (7,)), with_seeds(pair[1], (7,))
    found = difference(*single, "coverage")
    assert found.words == "+0.050"
    (words,) = pairing_words(single)
    assert "one pair has no interval" in words
    assert "±" not in words
    (words,) = pairing_words((pair[0], single[1]))
    assert "over the one seed that both have" in words
    assert "±" not in words


def test_runs_without_a_common_seed_are_not_said_to_be_paired(pair: tuple[Told, Told]) -> None:
    apart = with_seeds(pair[0], (7,)), with_seeds(pair[1], (11, 13))
    found = difference(*apart, "coverage")
    assert np.isnan(found.half)
    assert found.means is None
    assert "have no seed in common; their difference has no interval" in " ".join(pairing_words(apart))


def test_differences_of_what_is_beyond_all_bounds_are_words(pair: tuple[Told, Told]) -> None:
    kept = pair[1].results.tables["replications"].copy()
    kept.loc[(kept["metric"] == "p95_ttft_s") & (kept["seed"] == 7), "value"] = np.inf
    late = Told("late", pair[1].results.with_tables(replications=kept))
    assert difference(pair[0], late, "p95_ttft_s").words == "+∞"
    assert difference(late, pair[0], "p95_ttft_s").words == "−∞"
    assert difference(late, late, "p95_ttft_s").words == "–"


def test_targets_that_differ_are_told(pair: tuple[Told, Told]) -> None:
    first, second = pair
    second = Told("other", second.results.with_meta(ttft_target_s=1.0))
    assert "TTFT targets differ (0.8 s and 1 s)" in " ".join(pairing_words((first, second)))


def test_only_keys_that_differ_are_listed(pair: tuple[Told, Told]) -> None:
    grid = difference_grid(pair)
    assert grid is not None
    assert list(grid.rows) == [["routing.policy", "load_aware", "nearest"]]
    same = difference_grid((pair[0], pair[0]))
    assert same is not None
    assert same.rows == []
    assert "the same, key by key" in same.note


def test_long_values_are_compared_whole_and_shown_around_where_they_differ(pair: tuple[Told, Told]) -> None:
    titles = [f"{'x' * 99}{letter}{'y' * 100}" for letter in "AB"]
    scenarios = [load_scenario("monaco").override({"title": title}).to_toml() for title in titles]
    titled = [
        Told(each.name, replace(each.results, scenario_toml=scenario))
        for each, scenario in zip(pair, scenarios, strict=True)
    ]
    grid = difference_grid(titled)
    assert grid is not None
    ((key, one, other),) = grid.rows
    assert key == "title"
    assert one.replace("A", "B") == other
    assert "A" in one
    assert (one[0], one[-1], len(one)) == ("…", "…", 122)


def test_values_that_begin_alike_end_apart() -> None:
    begin = [float(k) for k in range(100)]
    one, other = _shown([[*begin, 1.0], [*begin, 2.0, 3.0]])
    assert (one[-6:], other[-11:]) == (", 1.0]", ", 2.0, 3.0]")
    assert _shown(["short", None]) == ["short", "–"]


def test_runs_have_names_of_their_own(one: Results) -> None:
    assert [told.name for told in told_runs([one, one], None)] == ["one (1)", "one (2)"]
    assert [told.name for told in told_runs([one], None)] == ["this run"]


@pytest.mark.parametrize("count", [0, 9])
def test_none_and_too_many_are_refused(one: Results, count: int) -> None:
    with pytest.raises(GeoEdgeError, match=f"{count} runs; a page takes 1 to 8"):
        told_runs([one] * count, None)


def renamed(told: Told, name: str, **columns: str) -> Told:
    """Return a run whose columns bear other names, as another policy and other waits give them."""
    answers = told.results.tables["answers"]
    answers = answers.assign(column=answers["column"].replace(columns))
    advertise = columns.get(OWN, OWN).partition(": ")[2] or "equilibrium"
    return Told(name, told.results.with_tables(answers=answers).with_meta(advertise=advertise))


def test_an_answer_is_one_row_whatever_its_column_is_called(pair: tuple[Told, Told]) -> None:
    first, second = pair
    still = {name: f"{name}: load_aware" for name in (THEORY, ENSEMBLE, TWINS, FIELD)}
    named = renamed(second, "named", **still, **{OWN: "simulation"})
    grid = answers_beside([first, second, named])
    assert grid is not None
    assert [row[0] for row in grid.rows] == [THEORY, ENSEMBLE, TWINS, FIELD, "simulation", STEERED]
    assert not any("–" in cell for row in grid.rows for cell in row)
    assert all(row[2] == row[3] for row in grid.rows)  # the same numbers under other names
    assert grid.rows[0][1].startswith("0.830")
    assert (
        "named: theory, layouts and field are those of load-aware routing, its simulation routes by nearest."
        in (grid.note)
    )
    assert "one: theory" not in grid.note
    assert "one, equilibrium waits; other, equilibrium waits; named, none." in grid.note


def test_the_kept_simulation_stands_in_the_row_and_the_others_are_pointed_to(pair: tuple[Told, Told]) -> None:
    first = pair[0]
    answers = first.results.tables["answers"]
    stale = answers[answers["column"] == OWN].assign(
        column="simulation: state", value=0.25, low=0.2, high=0.3
    )
    both = Told("both", first.results.with_tables(answers=pd.concat([stale, answers], ignore_index=True)))
    grid = answers_beside([first, both])
    assert grid is not None
    cells = {row[0]: row[1:] for row in grid.rows}
    assert cells["simulation"][0] == cells["simulation"][1]
    assert grid.note == "Simulations with other waits stand in the tables of their runs below."


def test_an_answer_that_only_one_run_has_keeps_its_row(pair: tuple[Told, Told]) -> None:
    answers = pair[1].results.tables["answers"]
    still = Told("still", pair[1].results.with_tables(answers=answers[answers["column"] != STEERED]))
    grid = answers_beside([pair[0], still])
    assert grid is not None
    assert [grid.rows[-1][0], grid.rows[-1][2]] == [STEERED, "–"]
    assert answers_beside([Told("bare", replace(pair[0].results, tables={}))]) is None
