"""What a file of sites holds and what is wrong with it, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from geoedge.report._narrow import show
from geoedge.report._text import table, terminal
from geoedge.sites._rows import counted
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from geoedge.sites import SiteSurvey

__all__ = ["print_sites"]

LISTED = 10
"""Operators listed."""
SAMPLES = 2
"""Rows of each problem shown as they stand in the file."""
SAMPLE_CHARACTERS = 110


def print_sites(
    survey: SiteSurvey, written: Mapping[str, str] | None = None, console: Console | None = None
) -> None:
    """Print what a file of sites holds, what was dropped and why, and how the sites stand.

    Parameters
    ----------
    survey
        A file of sites, surveyed.
    written
        Files that were written beside, by what they are.
    console
        Where to print; the terminal by default.
    """
    console = console or terminal()
    report = survey.report
    console.print()
    console.print(Text(f"{plain_text(report['file'])}: {report['format']}", style="bold"))
    for line in _recognised(report):
        console.print(Text(line))
    show(console, _rows_table(report))
    for row in _samples(report):
        console.print(row)
    if len(report["operators"]) > 1:
        show(console, _counts_table("Operators", report["operators"]))
    if any(report["radios"]):
        show(console, _counts_table("Technologies", report["radios"]))
    console.print()
    for line in _sites_lines(survey):
        console.print(Text(line))
    for note in report.get("notes", ()):
        console.print(Text(f"• {plain_text(note, 1000)}"))
    for what, path in (written or {}).items():
        console.print(Text(f"{what}  {path}"))


def _recognised(report: Mapping[str, Any]) -> Iterator[str]:
    facts = [f"{key} {plain_text(value)}" for key, value in report["facts"].items()]
    columns = [f"{role} = {plain_text(name)}" for role, name in report["columns"].items()]
    if facts:
        yield "; ".join(facts)
    if columns:
        yield f"columns: {', '.join(columns)}"


def _rows_table(report: Mapping[str, Any]) -> Table | Text:
    """Return the rows of the file by what became of them; those dropped and kept add up to those read."""
    if not report["problems"] and not any(report["filtered"].values()):
        return Text(
            "the only row can be used" if report["rows"] == 1 else f"all {report['rows']:,} rows can be used"
        )
    made = table("", "", "rows", "first of them", "likely cause")
    made.columns[1].justify, made.columns[2].justify, made.columns[3].justify = "right", "left", "left"
    made.add_row("read", f"{report['rows']:,}", "", "")
    for problem in report["problems"]:
        if not problem["used"]:
            made.add_row(*_problem_cells(problem))
    for key, count in report["filtered"].items():
        if count:
            made.add_row(f"of another {_words(key)}", f"{count:,}", "", "not asked for")
    made.add_row("used", f"{report['kept']:,}", "", "")
    for problem in report["problems"]:
        if problem["used"]:
            name, count, rows, cause = _problem_cells(problem)
            made.add_row(f"  of these {name}", count, rows, cause)
    return made


def _problem_cells(problem: Mapping[str, Any]) -> tuple[str, str, str, Text]:
    rows = ", ".join(map(str, problem["rows"])) + (" …" if problem["count"] > len(problem["rows"]) else "")
    return _words(problem["reason"]), f"{problem['count']:,}", rows, Text(plain_text(problem["cause"], 200))


def _words(name: str) -> str:
    return {"radio": "technology"}.get(name, name.replace("_", " "))


def _samples(report: Mapping[str, Any]) -> Iterator[Padding]:
    """Yield the first rows of each problem as they stand in the file."""
    for problem in report["problems"]:
        for row, text in list(zip(problem["rows"], problem["samples"], strict=False))[:SAMPLES]:
            line = f"{_words(problem['reason'])}, row {row}: {plain_text(text, SAMPLE_CHARACTERS)}"
            yield Padding(Text(line, style="dim", overflow="ellipsis", no_wrap=True), (0, 0, 0, 2))


def _counts_table(title: str, counts: Mapping[str, int]) -> Table:
    made = table(title, "", "rows used")
    for name, count in list(counts.items())[:LISTED]:
        made.add_row(Text(plain_text(name) or "not stated"), f"{count:,}")
    if len(counts) > LISTED:
        made.add_row(f"{len(counts) - LISTED} more", f"{sum(list(counts.values())[LISTED:]):,}")
    return made


def _sites_lines(survey: SiteSurvey) -> Iterator[str]:
    report = survey.report
    by_distance = report["objects"] - report["sites"]
    yield (
        f"{counted(report['sites'], 'site')} of {counted(report['kept'], 'row')}: {report['grouped']}; then {by_distance:,} merged with "
        f"another within {report['merge_distance_m']:g} m"
    )
    if survey.area_km2 is not None:
        density = report["sites"] / survey.area_km2
        yield f"{density:.3g} per km² on {survey.area_km2:.4g} km² ({plain_text(survey.window_name)})"
    if survey.statistics is not None:
        index = survey.statistics.clark_evans
        yield f"Clark-Evans index {index.ratio:.3f}; Poisson layouts have about 1, regular ones more, clustered ones less"
        yield survey.statistics.verdict
    else:
        yield f"Not compared with Poisson: {plain_text(survey.why_no_statistics, 300)}"
