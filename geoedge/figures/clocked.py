"""Figures over the clock: requests in time, and what the controller moved for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.compare.tables import planned
from geoedge.figures.given import asked, epoch_spans, in_time, named
from geoedge.style import GAIN, INK, LEVEL, PALETTE, QUIET, sheet, shown
from geoedge.style.marks import beside, clocked, counted, legend_above, legend_room, line_styles, warm_up
from geoedge.units import GB

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from geoedge.results import Results
    from geoedge.style import PaperFigure

    Floats = NDArray[np.float64]

__all__ = ["coverage_over_time", "moves_over_time"]

MOST_DIRECT = 4
"""Most lines that carry their names at their ends."""


def coverage_over_time(*runs: Results, names: Sequence[str] | None = None, columns: int = 1) -> PaperFigure:
    """Draw the share of requests that were in time in every epoch, for one run or several; for one, by steps too.

    Parameters
    ----------
    *runs
        The runs.
    names
        What to call them; labels, titles or rules by default, whichever tells them apart.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If there is no run, or one without requests.
    """
    asked("coverage_over_time", runs)
    called = named("coverage_over_time", runs, names)
    direct = columns == 2 and 1 < len(runs) <= MOST_DIRECT
    with sheet(columns, 2.2 + (0.0 if direct else legend_room(len(runs)))) as figure:
        axes, styles = figure.subplots(), line_styles(len(runs))
        shares = [100.0 * in_time(run.epochs) for run in runs]
        words = [f"{name}, {counted(run.requests)}" for name, run in zip(called, runs, strict=True)]
        seen = [*shares, _by_steps(axes, runs[0]) if len(runs) == 1 else np.zeros(0)]
        for run, share, name, style in zip(runs, shares, words, styles, strict=True):
            axes.stairs(share, epoch_spans(run.epochs), baseline=None, label=name, **style)
        axes.set_ylim(*_reach(np.concatenate(seen)))
        axes.set_ylabel(_within(runs))
        start, end = _spanned(runs)
        clocked(axes, start, end, most=7 * columns - 2 * direct)
        warm_up(axes, *_warming(runs[0]))
        axes.grid()
        if direct:
            last = [float(share[np.isfinite(share)][-1]) for share in shares]
            colours = [str(style["color"]) for style in styles]
            beside(
                axes, end, last, [name.replace(", ", "\n") for name in words], colours, height_in=1.7, lines=3
            )
        elif len(runs) > 1:
            figure.legend(loc="outside lower center")
        else:
            legend_above(axes, 2)
    return figure


def _spanned(runs: Sequence[Results]) -> tuple[float, float]:
    ends = np.array([epoch_spans(run.epochs)[[0, -1]] for run in runs])
    return float(ends[:, 0].min()), float(ends[:, 1].max())


def _warming(run: Results) -> tuple[float, float]:
    """Return begin and end of the warm-up [h since midnight]."""
    begin = float(run.meta["start_s"]) / 3600.0
    return begin, begin + float(run.meta["warm_up_s"]) / 3600.0


def _within(runs: Sequence[Results]) -> str:
    targets = sorted({float(run.meta["ttft_target_s"]) for run in runs})
    words = f"within {targets[0]:g} s" if len(targets) == 1 else "in time"
    return f"requests {words} [%]"


def _by_steps(axes: Axes, run: Results) -> Floats:
    """Draw the share in time by steps of the run, lightly, and return it."""
    series = run.series
    if not {"time_s", "coverage"} <= set(series.columns) or len(series) < 2:
        return np.zeros(0)
    share = 100.0 * series["coverage"].to_numpy(dtype=np.float64)
    hours = series["time_s"].to_numpy(dtype=np.float64) / 3600.0
    axes.plot(
        hours - (hours[1] - hours[0]) / 2.0,
        share,
        color=LEVEL,
        linewidth=0.6,
        label=f"each {3600.0 * (hours[1] - hours[0]):.3g} s",
    )
    return share


def _reach(share: Floats) -> tuple[float, float]:
    """Return ends of an axis of percentages that show what is drawn; 0 and 100 where that is most of them."""
    share = share[np.isfinite(share)]
    if not len(share):
        return 0.0, 104.0
    low, high = float(share.min()), float(share.max())
    room = max(0.1 * (high - low), 1.0)
    return max(low - room, 0.0), min(high + room, 104.0)


def moves_over_time(run: Results, *, columns: int = 1) -> PaperFigure:
    """Draw what the controller moved in every epoch, what it promised of that, and what came of it.

    Above stands the share of requests in time; with the paired runs of the main job beside caches that stay, with
    the 95 % interval of the difference.

    Parameters
    ----------
    run
        The run.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If the run has no request.
    """
    asked("moves_over_time", (run,))
    with sheet(columns, 3.6) as figure:
        top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=(1.4, 1.0, 1.0))
        hours = epoch_spans(run.epochs)
        _paired(top, run, hours)
        _moved(middle, run.actions, hours)
        _ledger(bottom, run.actions, hours)
        clocked(bottom, float(hours[0]), float(hours[-1]), most=6 * columns)
        for axes in (top, middle, bottom):
            warm_up(axes, *_warming(run), words=axes is top)
            axes.grid(axis="y")
            axes.yaxis.set_label_coords(-0.13 if columns == 1 else -0.07, 0.5)
    return figure


def _paired(axes: Axes, run: Results, hours: Floats) -> None:
    """Draw the share in time: of this run, or as means of paired runs with and without the controller."""
    table = run.tables.get("control_epochs")
    if table is None or not len(table):
        share = 100.0 * in_time(run.epochs)
        axes.stairs(share, hours, baseline=None, color=GAIN)
        axes.set_ylim(*_reach(share))
        axes.set_ylabel("in time [%]")
        return
    still = 100.0 * table["still"].to_numpy(dtype=np.float64)
    change, low, high = (100.0 * table[name].to_numpy(dtype=np.float64) for name in ("change", "low", "high"))
    if np.isfinite(low).all():
        axes.stairs(still + high, hours, baseline=still + low, fill=True, color=GAIN, alpha=0.2, linewidth=0)
    axes.stairs(still, hours, baseline=None, color=QUIET, linestyle="--", label="caches stay")
    axes.stairs(still + change, hours, baseline=None, color=GAIN, label="with controller")
    axes.set_ylim(*_reach(np.concatenate([still, still + change, still + low, still + high])))
    axes.set_ylabel("in time [%]")
    count = int(run.meta.get("replications", 1))
    words = f"{count} pairs, 95 %" if count > 1 else "one pair of runs"
    axes.set_title(words, fontweight="normal", fontsize=7.0)
    legend_above(axes, 2)


def _moved(axes: Axes, actions: pd.DataFrame, hours: Floats) -> None:
    """Draw bytes moved in each epoch, a colour for each kind of action."""
    base = np.zeros(len(hours) - 1)
    for place, kind in enumerate(sorted(set(actions["action"].astype(str)))):
        part = actions[actions["action"].astype(str) == kind]
        size = _by_epoch(part, "bytes_moved", len(base)) / GB
        label = f"{shown(kind, 20)} {len(part)}×"
        axes.bar(
            hours[:-1],
            size,
            np.diff(hours) * 0.9,
            base,
            align="edge",
            color=PALETTE[place % len(PALETTE)],
            label=label,
        )
        base = base + size
    axes.set_ylabel("moved [GB]")
    axes.set_ylim(0.0, 1.05 * float(base.max()) or 1.0)
    if len(actions):
        legend_above(axes, 3)
    else:
        axes.text(0.5, 0.5, "no moves", transform=axes.transAxes, ha="center", color=QUIET)


def _by_epoch(actions: pd.DataFrame, name: str, epochs: int) -> Floats:
    """Return sums over each epoch's actions, shape (epochs,)."""
    sums = actions.groupby("epoch")[name].sum().reindex(range(epochs), fill_value=0.0)
    return np.asarray(sums.to_numpy(dtype=np.float64))


def _ledger(axes: Axes, actions: pd.DataFrame, hours: Floats) -> None:
    """Draw what was promised for each epoch's moves and what the field says in hindsight, of those that it judges.

    What was promised for the others stands on top, hollow.
    """
    width, moves = np.diff(hours) * 0.45, planned(actions)
    known = moves["realised_gain"].notna()
    promised, hindsight = (
        100.0 * _by_epoch(moves[known], name, len(width)) for name in ("predicted_gain", "realised_gain")
    )
    if known.any() or not len(moves):
        axes.bar(hours[:-1], promised, width, align="edge", color=LEVEL, label="promised")
        axes.bar(hours[:-1] + width, hindsight, width, align="edge", color=GAIN, label="in hindsight")
    if not known.all():
        label = "not judged" if known.any() else "promised, not judged in hindsight"
        others = 100.0 * _by_epoch(moves[~known], "predicted_gain", len(width))
        look: dict[str, Any] = {"facecolor": "none", "edgecolor": LEVEL, "linewidth": 0.6}
        axes.bar(hours[:-1], others, width, promised, align="edge", label=label, **look)
    axes.axhline(0.0, color=INK, linewidth=0.6)
    axes.set_ylabel("gain [points]")
    if len(moves):
        legend_above(axes, 3)
    else:
        axes.set_ylim(-1.0, 1.0)
