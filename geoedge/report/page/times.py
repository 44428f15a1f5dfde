"""Times to the first token and waits: quantiles, and how each type of request fares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geoedge.maps.samples import NO_WAIT_S, Served
from geoedge.report._text import number
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told, heads
from geoedge.texts import plain_text

__all__ = ["quantiles_grid", "types_grid", "waits_grid"]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
RARE = 0.99
"""Share of requests beyond which the tail is laid beside that of a queue formula."""
YARDSTICKS = (
    "M/M/c takes each site's load as measured in each epoch: at rest it is Erlang's formula, in its time the same queue "
    "followed from the empty start. An epoch too short for a queue to come to rest is too short to know its load, and "
    "as waits grow ever faster with the load, chance in what is measured makes the tail of the formula too long. What it "
    "still leaves out: services that vary less or more than exponential ones, and routing that looks at queues."
)


def quantiles_grid(runs: Sequence[Told]) -> Grid:
    """Return quantiles of the time to the first token, one column a run.

    Parameters
    ----------
    runs
        The runs.
    """
    rows = [
        [f"{level:.0%} of requests within", *(number(each.results.ttft_quantile(level)) for each in runs)]
        for level in LEVELS
    ]
    rows.append(["mean", *(number(each.results.mean_ttft) for each in runs)])
    rows.append(["requests counted", *(f"{each.results.requests:,}" for each in runs)])
    note = "From the records of one run each, rejected requests counted as never; means are of those that were taken."
    return Grid("Time to first token [s]", ["", *heads(runs)], rows, note)


def waits_grid(runs: Sequence[Told]) -> Grid:
    """Return how long requests that were taken wait at the site, one column a run, beside M/M/c.

    Parameters
    ----------
    runs
        The runs.
    """
    waits = [_taken(each, "wait_s") for each in runs]
    rows = [
        [
            "requests that wait at all",
            *(f"{np.mean(each > NO_WAIT_S):.1%}" if len(each) else "–" for each in waits),
        ]
    ]
    rows.append(["mean wait [s]", *(number(float(each.mean()) if len(each) else None) for each in waits)])
    rows += [
        [f"{level:.0%} wait at most [s]", *(_quantile(each, level) for each in waits)]
        for level in (0.5, 0.9, 0.95, 0.99)
    ]
    for cells in zip(*(_beside_queue(each) for each in runs), strict=True):
        rows.append([cells[0][0], *(cell for _, cell in cells)])
    return Grid("Wait for a free place at the site", ["", *heads(runs)], rows, YARDSTICKS)


def _beside_queue(told: Told) -> list[tuple[str, str]]:
    """Return how M/M/c sees the tail of the waits, what it believes, and how well that is known: names and cells."""
    names = (
        f"wait longer than {RARE:.0%} do: simulated",
        "the same by M/M/c in its time",
        "the same by M/M/c at rest (Erlang C)",
        "requests at sites and epochs without time to come to rest",
        "standard error of a site's load in an epoch",
        "variation of service c², by time waited (M/M/c: 1)",
    )
    if not len(wait := _taken(told, "wait_s")):
        return [(name, "–") for name in names]
    served, mark = Served.of(told.results), np.quantile(wait, RARE)
    weight = served.count / served.count.sum()
    times = np.full((weight.shape[1], 1), mark)
    at_rest = 1.0 - weight.sum(axis=0) @ served.erlang(times)
    values = (
        f"{np.mean(wait > mark + NO_WAIT_S):.2%}",
        f"{served.in_time(times[0])[0]:.2%}",
        f"{at_rest[0]:.2%}",
        f"{weight[~served.rests()].sum():.1%}",
        f"{(weight * served.load_errors()).sum():.1%}",
        number(served.waiting_scv(), 2),
    )
    return list(zip(names, values, strict=True))


def _quantile(values: np.ndarray[tuple[int], np.dtype[np.float64]], level: float) -> str:
    return number(float(np.quantile(values, level)) if len(values) else None)


def types_grid(runs: Sequence[Told]) -> Grid | None:
    """Return coverage by type of request, one column a run; None if the runs have different types.

    Parameters
    ----------
    runs
        The runs.
    """
    names = runs[0].meta["type_names"]
    if any(each.meta["type_names"] != names for each in runs):
        return None
    rows = []
    for kind, name in enumerate(names):
        cells = []
        for each in runs:
            mine = each.results.column("request_type") == kind
            ttft = each.results.column("ttft_s")[mine]
            cells += [
                f"{mine.mean():.1%}",
                number(float(np.mean(ttft <= each.target_s)) if len(ttft) else None),
            ]
        rows.append([plain_text(name), *cells])
    columns = [
        f"{what}{_of(runs, name)}" for name in heads(runs) for what in ("share of requests", "in time")
    ]
    note = "From the records of one run each; in time as a share of the type's own requests."
    return Grid("TTFT coverage by type of request", ["", *columns], rows, note)


def _of(runs: Sequence[Told], name: str) -> str:
    return f", {name}" if len(runs) > 1 else ""


def _taken(told: Told, name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    results = told.results
    return np.asarray(results.column(name)[results.column("site") >= 0], dtype=np.float64)
