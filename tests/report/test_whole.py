"""The report of real runs says the same as the terminal, and pairs what the runs really paired."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from geoedge.answers import METRICS
from geoedge.cli import app
from geoedge.compare import run
from geoedge.compare.columns import STEERED, interval
from geoedge.report.page import report_page
from geoedge.report.page.answers import answers_grid
from geoedge.report.page.beside import difference
from geoedge.report.page.told import told_runs
from geoedge.results import Results
from geoedge.scenario import Scenario
from geoedge.study import Study

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folders(
    small_scenario: Scenario, small_study: Study, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    place = tmp_path_factory.mktemp("runs")
    found = []
    for name, changes in {"steered": {}, "random": {"control.controller": "random"}}.items():
        results = run(small_scenario.override(changes), study=small_study, layouts=2, workers=1)
        found.append(results.save(place / name))
    return found


def compared(*arguments: str) -> str:
    found = CliRunner().invoke(app, ["compare", *arguments])
    assert found.exit_code == 0, found.output
    return found.output


def test_numbers_are_those_of_the_terminal(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    (told,) = told_runs(folders[:1], None)
    grid = answers_grid(told)
    assert grid is not None
    printed = [line.split("  ") for line in compared(str(folders[0])).splitlines()]
    rows = [[cell.strip() for cell in line if cell.strip()] for line in printed]
    for row in grid.rows:
        assert any(line[-len(row) + 1 :] == list(row[1:]) for line in rows), row
    page = report_page(folders[0], maps=False).to_html()
    for row in grid.rows:
        assert all(f"<bdi>{cell}</bdi>" in page for cell in row[1:])


def test_numbers_are_those_for_machines(folders: list[Path]) -> None:
    (told,) = told_runs(folders[:1], None)
    said = json.loads(compared(str(folders[0]), "--json"))
    for row in said["answers"]:
        value = told.value(row["metric"], row["column"])[0]
        assert value == pytest.approx(row["value"], nan_ok=True)


def test_replications_are_kept_and_add_up_to_the_answers(folders: list[Path]) -> None:
    results = Results.load(folders[0])
    answers, kept = results.tables["answers"], results.tables["replications"]
    for (column, metric), rows in kept.groupby(["column", "metric"]):
        mean, low, high = interval(rows["value"].to_numpy())
        (row,) = answers[(answers["column"] == column) & (answers["metric"] == metric)].to_dict("records")
        np.testing.assert_allclose([row["value"], row["low"], row["high"]], [mean, low, high], rtol=1e-12)
    first = kept[(kept["column"] == STEERED) & (kept["replication"] == 0)].set_index("metric")["value"]
    np.testing.assert_allclose(
        first[list(METRICS)], [results.metrics()[name] for name in METRICS], rtol=1e-12
    )


def test_differences_between_runs_are_paired(folders: list[Path]) -> None:
    first, second = told_runs(folders, None)
    for metric in ("coverage", "mean_ttft_s"):
        kept = [told.results.tables["replications"] for told in (first, second)]
        one, other = (
            table[(table["column"] == STEERED) & (table["metric"] == metric)]["value"].to_numpy()
            for table in kept
        )
        mean, low, high = interval(other - one)
        found = difference(first, second, metric)
        assert (found.mean, found.half) == pytest.approx((mean, (high - low) / 2))


def test_both_are_told_on_one_page_of_bounded_size(folders: list[Path], tmp_path: Path) -> None:
    page = report_page(*folders)
    html = page.to_html()
    assert len(html.encode()) < 3_000_000
    assert "random and steered share people and requests" in html
    assert "Not drawn" not in html
    assert "No map here" not in html
    assert report_page(*folders).to_html() == html
