"""Values tried over a grid, for a terminal."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from geoedge.compare.columns import interval, named
from geoedge.report._narrow import show
from geoedge.report._text import number, table, terminal, with_half
from geoedge.texts import plain_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["print_sweep", "summary"]

MEANS = ("p95_ttft_s", "mean_ttft_s", "utilization", "rejected_share")
"""What is shown of a combination besides its coverage."""
HEADINGS = {
    "p95_ttft_s": "p95 TTFT s",
    "mean_ttft_s": "mean TTFT s",
    "utilization": "utilisation",
    "rejected_share": "rejected",
}


def summary(runs: pd.DataFrame, values: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return one row a combination of values: coverage and its paired difference to the first row, with intervals.

    Parameters
    ----------
    runs
        As `geoedge.sweep` gives them.
    values
        Values tried by dotted key.

    Returns
    -------
    pandas.DataFrame
        Columns: the keys; replications; coverage and change, each with ``_low`` and ``_high`` (95 % interval, NaN
        for one run); the means ``p95_ttft_s``, ``mean_ttft_s``, ``utilization`` and, where requests were rejected,
        ``rejected_share``.
    """
    import pandas as pd

    count = int(runs["replication"].max()) + 1
    lines = [runs.iloc[k : k + count] for k in range(0, len(runs), count)]
    first = lines[0]["coverage"].to_numpy()
    rows = []
    for line in lines:
        coverage = line["coverage"].to_numpy()
        row = {key: line[key].iloc[0] for key in values} | {"replications": count}
        row |= named("coverage", interval(coverage)) | named("change", interval(coverage - first))
        rows.append(row | {name: float(line[name].mean()) for name in MEANS if name in line})
    return pd.DataFrame(rows)


def print_sweep(
    runs: pd.DataFrame, values: Mapping[str, Sequence[Any]], title: str, written: Path | None = None
) -> None:
    """Print one row a combination of values, with intervals.

    Parameters
    ----------
    runs
        As `geoedge.sweep` gives them.
    values
        Values tried by dotted key.
    title
        Title of the study.
    written
        Where the table of runs was written, if it was.
    """
    found, console = summary(runs, values), terminal()
    count = int(found["replications"].iloc[0])
    shown = [name for name in MEANS if name in found]
    columns = (*values, "coverage", "points over the first", *(HEADINGS[name] for name in shown))
    head = Text(f"{plain_text(title)}: {len(found)} combinations, {_runs(count)} each")
    made = table(head, *(Text(plain_text(name)) for name in columns), left=len(values))
    for row in found.to_dict("records"):
        made.add_row(*_cells(row, values, shown))
    made.caption = "coverage and what it changes: " + (
        "of one run, which says nothing of its luck" if count == 1 else "mean of paired runs ± 95 % interval"
    )
    made.caption_justify = "left"
    show(console, made)
    if written is not None:
        console.print(Text(f"table  {written}"))


def _cells(row: Mapping[Hashable, Any], values: Mapping[str, Any], shown: Sequence[str]) -> Iterator[Text]:
    for key in values:
        yield Text(plain_text(str(row[key])))
    yield Text(with_half(row["coverage"], row["coverage_low"], row["coverage_high"]))
    points = (100.0 * row[f"change{end}"] for end in ("", "_low", "_high"))
    yield Text(with_half(*points, digits=2, signed=True))
    for name in shown:
        yield Text(f"{row[name]:.1%}" if name == "rejected_share" else number(row[name], 2))


def _runs(count: int) -> str:
    return "one run" if count == 1 else f"{count} paired runs"
