"""Runs side by side: differences are paired where the same people ask the same, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.city import City
from geoedge.compare.columns import STEERED, interval
from geoedge.errors import GeoEdgeError
from geoedge.report.page.beside import difference, differences_grid, pairing_words
from geoedge.report.page.given import difference_grid
from geoedge.report.page.told import Told, share_people, told_runs
from geoedge.results import Results
from tests.report.conftest import told_run


@pytest.fixture
def pair(one: Results, other: Results) -> tuple[Told, Told]:
    return Told("one", one), Told("other", other)


def test_differences_of_the_same_people_are_paired_seed_by_seed(pair: tuple[Told, Told]) -> None:
    mean, half = difference(*pair, "coverage")
    expected, low, high = interval([0.05, 0.0504, 0.0508])
    assert mean == pytest.approx(expected)
    assert half == pytest.approx((high - low) / 2)
    assert half < 0.2 * (pair[0].value("coverage", STEERED)[2] - pair[0].value("coverage", STEERED)[0])
    assert list(pairing_words(pair)) == [
        "other and one share people and requests: differences are means over paired replications, ± 95 % interval."
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
    mean, half = difference(first, second, "coverage")
    assert mean == pytest.approx(0.0504)
    assert np.isnan(half)
    assert why in " ".join(pairing_words((first, second)))
    assert "has no interval" in differences_grid((first, second)).note


def test_a_run_without_its_replications_is_not_paired(pair: tuple[Told, Told]) -> None:
    first, second = pair
    tables = {name: table for name, table in second.results.tables.items() if name != "replications"}
    second = Told("other", replace(second.results, tables=tables))
    assert np.isnan(difference(first, second, "coverage")[1])
    assert "other kept no table of replications" in " ".join(pairing_words((first, second)))


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


def test_runs_have_names_of_their_own(one: Results) -> None:
    assert [told.name for told in told_runs([one, one], None)] == ["one (1)", "one (2)"]
    assert [told.name for told in told_runs([one], None)] == ["this run"]


@pytest.mark.parametrize("count", [0, 9])
def test_none_and_too_many_are_refused(one: Results, count: int) -> None:
    with pytest.raises(GeoEdgeError, match=f"{count} runs; a page takes 1 to 8"):
        told_runs([one] * count, None)
