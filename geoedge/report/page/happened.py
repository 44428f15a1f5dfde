"""What happened besides an ordinary day: events, sessions, rejected requests."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from geoedge.report._text import number
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told, heads
from geoedge.units import GB, clock

__all__ = ["events_grid", "handovers_grid", "requests_grid"]

LISTED = 40
"""Events listed."""


def requests_grid(runs: Sequence[Told]) -> Grid:
    """Return what became of the requests, one column a run.

    Parameters
    ----------
    runs
        The runs.
    """
    counts = [each.results.status_counts() for each in runs]
    rows = [[name.replace("_", " "), *(f"{count[name]:,}" for count in counts)] for name in counts[0]]
    rows.append(["all", *(f"{sum(count.values()):,}" for count in counts)])
    rows.append(["rejected after the warm-up", *(f"{each.results.rejected_share:.2%}" for each in runs)])
    note = "At the horizon of one run each, warm-up included. Rejected requests count as not in time."
    return Grid("What became of the requests", ["", *heads(runs, "requests")], rows, note)


def events_grid(told: Told) -> Grid | None:
    """Return what happened, one row an event; None if nothing did.

    Parameters
    ----------
    told
        A run.
    """
    events = told.results.tables.get("events")
    if events is None or events.empty:
        return None
    rows = [_event(row) for row in events.head(LISTED).to_dict("records")]
    columns = ["event", "from", "to", "sites", "people", "requests", "in time", "others in time", "detail"]
    more = f"{len(events) - LISTED} more in events.parquet." if len(events) > LISTED else ""
    return Grid("Events", columns, rows, more)


def _event(row: Mapping[Hashable, Any]) -> list[str]:
    people, requests = int(row.get("people", 0)), int(row.get("requests", 0))
    return [
        str(row["kind"]).replace("_", " "),
        clock(row["start_s"]),
        clock(row["end_s"]) if math.isfinite(row["end_s"]) else "not within the run",
        str(row.get("sites", "")) or "–",
        f"{people:,}" if people else "–",
        f"{requests:,}" if requests else "–",
        number(row.get("coverage")),
        number(row.get("coverage_of_others")),
        str(row.get("detail", "")) or "–",
    ]


def handovers_grid(told: Told) -> Grid | None:
    """Return what became of the warm states of conversations; None in a run without sessions.

    Parameters
    ----------
    told
        A run.
    """
    table = told.results.tables.get("handovers")
    if table is None:
        return None
    rows = [
        [
            str(row["handover"]).replace("_", " "),
            f"{row['turns']:,}",
            f"{row['share']:.1%}",
            number(row["coverage"]),
            number(row["ttft_s"]),
            f"{row['moved_bytes'] / GB:.2f}",
        ]
        for row in table.to_dict("records")
    ]
    columns = ["the state", "turns", "of all turns", "in time", "mean TTFT [s]", "fetched [GB]"]
    return Grid("What became of the states of conversations", columns, rows)
