"""Answers side by side: what theory, field and simulation say, and which profiles serve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.answers import REDIRECTED
from geoedge.compare import Comparison
from geoedge.errors import GeoEdgeError
from geoedge.figures.given import asked, legend_across
from geoedge.maps.scales import profile_scale
from geoedge.results import Results
from geoedge.style import INK, LEVEL, PALETTE, QUIET, colour_of, sheet, shown
from geoedge.texts import plain_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from geoedge.style import PaperFigure

    Floats = NDArray[np.float64]

__all__ = ["profile_shares", "three_answers"]

PARTS = (("radio_s", "radio"), ("wait_s", "wait"), ("prefill_s", "prefill"))
PART_COLOURS = (LEVEL, PALETTE[4], PALETTE[0])
REDIRECTING = ((REDIRECTED, "redirections"), PALETTE[2])
"""A part that some simulations have besides, and its colour."""
ROW_IN = 0.17
"""Height of a row [inch]."""
SHARE = "share:"
"""How metrics begin that are a profile's share of requests."""


def three_answers(answers: Results | Comparison, *, columns: int = 2) -> PaperFigure:
    """Draw coverage, mean TTFT by its parts and p95 of TTFT as theory, field and simulation have them.

    Parameters
    ----------
    answers
        A run of the main job, or a comparison.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If the run has asked no theory or field, or the numbers are not in the table.
    """
    table = _table(
        "three_answers", answers, ("coverage", "mean_ttft_s", "p95_ttft_s", *(key for key, _ in PARTS))
    )
    rows = list(dict.fromkeys(table["column"]))
    panels, height = (1, 3) if columns == 2 else (3, 1), ROW_IN * len(rows)
    from matplotlib.lines import Line2D

    with sheet(columns, height + 0.85 if columns == 2 else 3 * (height + 0.45) + 0.2) as figure:
        made = figure.subplots(*panels, sharey=True)
        for axes in made:
            axes.set_ylim(len(rows) - 0.4, -0.6)
            axes.grid(axis="x")
            axes.spines["left"].set_visible(False)
            axes.tick_params(axis="y", length=0)
        made[0].set_yticks(range(len(rows)), [shown(row, 26) for row in rows])
        _dots(made[0], _lines(table, "coverage", rows) * 100.0, rows, _in_time(answers))
        _stacked(made[1], table, rows)
        _dots(made[2], _lines(table, "p95_ttft_s", rows), rows, "95th percentile of TTFT [s]")
        handles, words = made[1].get_legend_handles_labels()
        bar = Line2D([], [], color=INK, linewidth=1.0)
        handles, words = [*handles, bar], [*words, "95 % interval, of layouts: 95 % range"]
        figure.legend(handles, words, loc="outside lower center", ncols=2 * columns, columnspacing=1.0)
    return figure


def _table(figure: str, answers: object, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Return the long table of answers: metric, column, value, low, high.

    Raises
    ------
    GeoEdgeError
        If there is none, or it lacks a metric.
    """
    if not isinstance(answers, Results | Comparison):
        msg = f"{figure}: takes a run of the main job (Results) or a Comparison, not {type(answers).__name__}"
        raise GeoEdgeError(msg)
    table = answers.table if isinstance(answers, Comparison) else answers.tables.get("answers")
    if table is None or not len(table):
        msg = f"{figure}: the run has no table of answers; make it with `geoedge.run(scenario)`, or give a Comparison"
        raise GeoEdgeError(msg)
    lacking = [name for name in metrics if name not in set(table["metric"])]
    if lacking:
        msg = f"{figure}: the table of answers has no {', '.join(lacking)}; make it with `geoedge.run(scenario)`"
        raise GeoEdgeError(msg)
    return table


def _lines(table: pd.DataFrame, metric: str, rows: list[str]) -> Floats:
    """Return value, low and high of a metric for each row, shape (3, rows); NaN where unknown."""
    part = table[table["metric"] == metric].set_index("column").reindex(rows)
    names = [part[name] if name in part else part["value"] * np.nan for name in ("value", "low", "high")]
    return np.array([each.to_numpy(dtype=np.float64) for each in names])


def _in_time(answers: Results | Comparison) -> str:
    if isinstance(answers, Results):
        return f"in time (within {answers.meta['ttft_target_s']:g} s) [%]"
    return "requests in time [%]"


def _dots(axes: Axes, lines: Floats, rows: list[str], label: str) -> None:
    """Draw a dot and its interval in each row; what is infinite is said at the end of the axis."""
    top = _top(lines)
    for place, (row, (value, low, high)) in enumerate(zip(rows, lines.T, strict=True)):
        if np.isfinite(value):
            axes.plot(value, place, "o", color=colour_of(row), zorder=4)
        if high > low:
            axes.plot(
                [low, min(high, 1.1 * top)], [place, place], color=colour_of(row), linewidth=1.0, zorder=3
            )
        if np.isinf([value, high]).any():
            _unbounded(axes, place, top)
    axes.set_xlim(0.0, 1.1 * top)
    axes.set_xlabel(label)


def _top(values: Floats) -> float:
    """Return the greatest finite number, 1 if there is none."""
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size and finite.max() > 0.0 else 1.0


def _unbounded(axes: Axes, place: int, top: float) -> None:
    """Say at the end of the axis that a row goes on without bound."""
    halo = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
    axes.annotate(
        "→ ∞",
        (1.1 * top, place),
        (1, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color=QUIET,
        bbox=halo,
        zorder=6,
    )


def _stacked(axes: Axes, table: pd.DataFrame, rows: list[str]) -> None:
    """Draw mean TTFT as a bar of radio, wait and prefill, and redirections if any, with the interval of the whole."""
    whole = _lines(table, "mean_ttft_s", rows)
    top, base = _top(whole), np.zeros(len(rows))
    parts = list(zip(PARTS, PART_COLOURS, strict=True))
    if REDIRECTED in set(table["metric"]):
        parts.append(REDIRECTING)
    for (key, name), colour in parts:
        part = _lines(table, key, rows)[0]
        length = np.where(np.isfinite(part), part, 0.0)
        axes.barh(range(len(rows)), length, 0.62, base, color=colour, label=name)
        base = base + length
    for place, (value, low, high) in enumerate(whole.T):
        if high > low:
            axes.plot([low, min(high, 1.1 * top)], [place, place], color=INK, linewidth=1.0)
        if np.isinf([value, high]).any():
            _unbounded(axes, place, top)
    axes.set_xlim(0.0, 1.1 * top)
    axes.set_xlabel("mean TTFT [s]")


def profile_shares(answers: Results | Comparison, *, columns: int = 1) -> PaperFigure:
    """Draw which share of requests each profile serves, as theory, field and simulation have it.

    Parameters
    ----------
    answers
        A run, or a comparison. A run that has asked no theory or field stands alone.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If the run has no request, or none that was served.
    """
    names, rows, shares = _shares(answers)
    scale = profile_scale(names)
    across = legend_across([shown(name, 24) for name in names], columns)
    with sheet(columns, ROW_IN * len(rows) + 0.75 + 0.14 * -(-len(names) // across)) as figure:
        axes, base = figure.subplots(), np.zeros(len(rows))
        for name, colour, part in zip(scale.names, scale.colours, shares, strict=True):
            length = 100.0 * np.nan_to_num(part)
            axes.barh(
                range(len(rows)),
                length,
                0.7,
                base,
                color=colour,
                label=shown(name, 24),
                edgecolor="white",
                linewidth=0.4,
            )
            for place in np.flatnonzero(length >= 8.0).tolist():
                middle = base[place] + length[place] / 2.0
                axes.text(
                    middle,
                    place,
                    f"{length[place]:.0f}",
                    ha="center",
                    va="center",
                    fontsize=6.5,
                    color=_on(colour),
                )
            base = base + length
        axes.set_yticks(range(len(rows)), [shown(row, 26) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0.0, 100.0)
        axes.set_xlabel("served by each profile [% of requests]")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        figure.legend(loc="outside lower center", ncols=across, columnspacing=1.0)
    return figure


def _on(colour: str) -> str:
    """Return the colour of words that can be read on another."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255.0 for at in (1, 3, 5))
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else INK


def _shares(answers: Results | Comparison) -> tuple[list[str], list[str], Floats]:
    """Return profiles, answers, and the share of each profile in each answer, shape (profiles, answers)."""
    if isinstance(answers, Results) and "answers" not in answers.tables:
        asked("profile_shares", (answers,))
        if not (answers.column("site") >= 0).any():
            msg = f"profile_shares: all requests of run {plain_text(answers.label)!r} were rejected; no profile served"
            raise GeoEdgeError(msg)
        names = [str(name) for name in answers.meta["profile_names"]]
        return names, [shown(answers.label, 26)], answers.profile_share[:, None]
    table = _table("profile_shares", answers, ())
    rows = list(dict.fromkeys(table["column"]))
    keys = [key for key in dict.fromkeys(table["metric"]) if str(key).startswith(SHARE)]
    if not keys:
        msg = "profile_shares: the table of answers has no shares of profiles; make it with `geoedge.run(scenario)`"
        raise GeoEdgeError(msg)
    return (
        [key.removeprefix(SHARE) for key in keys],
        rows,
        np.array([_lines(table, key, rows)[0] for key in keys]),
    )
