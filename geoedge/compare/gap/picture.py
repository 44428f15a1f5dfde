"""The waterfall: from theory's level to the city's, an effect a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.compare.gap.readings import Interval
from geoedge.compare.gap.words import level, span
from geoedge.errors import GeoEdgeError
from geoedge.style import GAIN, INK, LEVEL, LOSS, QUIET
from geoedge.style.paper import sheet, shown, wrapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from geoedge.compare.gap.result import Gap, Spread
    from geoedge.style.paper import PaperFigure

__all__ = ["waterfall"]

ROW_IN = 0.26
"""Height of a row [inch]."""
PANELS = (1.75, 1.0)
"""Widths of the chain and of the means over orders."""
HIDDEN = 0.25
"""Steps that reach less than this share of the levels would be hidden on an axis from 0."""
LEAST_WIDTH = 0.01
"""Least that the axis shows, as a share or in seconds."""
WORDS = {1: (1.0, 1.0), 2: (0.34, 0.62)}
"""Room for words beside the bars, over the width that is drawn on, in one panel and in the first of two."""


def waterfall(gap: Gap, *, columns: int = 2) -> PaperFigure:
    """Return the picture of a gap: the chain and, if they were asked for, the means over all orders beside it.

    Parameters
    ----------
    gap
        The gap.
    columns
        Columns of a paper, 1 or 2; the means over orders stand beside the chain, or below it in one column.

    Raises
    ------
    GeoEdgeError
        If it is no gap.
    """
    _checked(gap)
    rows, panels = len(gap.steps) + 2, 1 if gap.spreads is None else 2
    below = panels == 2 and columns == 1
    with sheet(columns, ROW_IN * rows * (1.8 if below else 1.0) + (1.35 if below else 1.0)) as figure:
        if below:
            axes = figure.subplots(2, 1, height_ratios=(1.25, 1.0))
        else:
            axes = figure.subplots(1, panels, sharey=True, squeeze=False, width_ratios=PANELS[:panels])[0]
        _bars(axes[0], gap)
        _axis(axes[0], gap, rows, WORDS[columns][panels - 1])
        if gap.spreads is not None:
            _orders(axes[1], gap, gap.spreads)
            if below:
                _names(axes[1], gap, rows, ends=False)
        figure.suptitle(wrapped(_title(gap), 52 * columns), x=0.012, ha="left")
        figure.legend(handles=_legend(gap), loc="outside lower center", ncols=2 if columns == 1 else 5)
    return figure


def _checked(gap: object) -> None:
    """Refuse what is no gap.

    Raises
    ------
    GeoEdgeError
        If something else was given.
    """
    from geoedge.compare.gap.result import Gap

    if not isinstance(gap, Gap):
        msg = f"gap_waterfall: takes a Gap, not {type(gap).__name__}; make it with `geoedge.explain_gap(scenario)`"
        raise GeoEdgeError(msg)


def _title(gap: Gap) -> str:
    what = f"first token within {gap.ttft_target_s:g} s" if gap.metric == "coverage" else "mean wait"
    return f"From Poisson theory to {'the city' if gap.simulated else 'real sites'}: {shown(gap.title, 60)}, {what}"


def _scale(gap: Gap) -> float:
    return 100.0 if gap.metric == "coverage" else 1.0


def _bars(axes: Axes, gap: Gap) -> None:
    """Draw both levels, the steps between them, their intervals and what each is worth."""
    scale, last = _scale(gap), len(gap.steps) + 1
    _level(axes, 0, gap.start, gap)
    _level(axes, last, gap.end, gap)
    before = gap.start.value
    for place, step in enumerate(gap.steps, start=1):
        axes.plot([step.after * scale] * 2, [place - 0.3, place + 1.3], color=QUIET, linewidth=0.8, zorder=1)
        if step.reason:
            axes.plot(before * scale, place, "|", color=QUIET, markersize=8)
        else:
            _step(axes, place, before, step.change, gap)
        right = [before, step.after, before + step.change.high]
        words = "0, absent" if step.reason else span(step.change, gap.metric)
        _beside(axes, place, float(np.nanmax(right)) * scale, words)
        before = step.after


def _level(axes: Axes, place: int, at: Interval, gap: Gap) -> None:
    scale = _scale(gap)
    axes.barh(place, at.value * scale, height=0.6, color=LEVEL, zorder=2)
    _whisker(axes, place, at, scale)
    _beside(axes, place, float(np.fmax(at.value, at.high)) * scale, level(at.value, gap.metric), bold=True)


def _step(axes: Axes, place: int, before: float, change: Interval, gap: Gap) -> None:
    scale, better = _scale(gap), (change.value >= 0.0) == (gap.metric == "coverage")
    colour = GAIN if better else LOSS
    axes.barh(place, change.value * scale, left=before * scale, height=0.6, color=colour, zorder=2)
    _whisker(axes, place, Interval(*(before + each for each in change)), scale)


def _whisker(axes: Axes, place: int, at: Interval, scale: float) -> None:
    if at.high > at.low:
        axes.errorbar(
            at.value * scale,
            place,
            xerr=(at.high - at.value) * scale,
            color=INK,
            capsize=2,
            linewidth=0.9,
            zorder=4,
        )


def _orders(axes: Axes, gap: Gap, spreads: Mapping[str, Spread]) -> None:
    """Draw what each effect changes over all orders: on average, and how far it goes."""
    scale = _scale(gap)
    axes.axvline(0.0, color=QUIET, linewidth=0.8, zorder=1)
    for place, step in enumerate(gap.steps, start=1):
        spread = spreads.get(step.effect)
        if spread is not None:
            axes.plot(
                [spread.least * scale, spread.most * scale], [place] * 2, color=LEVEL, linewidth=4.0, zorder=2
            )
            axes.plot(spread.mean.value * scale, place, "D", color=INK, markersize=4, zorder=5)
            _whisker(axes, place, spread.mean, scale)
    unit = "points" if gap.metric == "coverage" else "s"
    axes.set_xlabel(f"change in all {gap.orders} orders [{unit}]")
    _plain(axes)


def _beside(axes: Axes, place: int, x: float, text: str, *, bold: bool = False) -> None:
    axes.annotate(
        text,
        (x, place),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=7.0,
        fontweight="bold" if bold else "normal",
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
        zorder=6,
    )


def _axis(axes: Axes, gap: Gap, rows: int, words: float) -> None:
    _names(axes, gap, rows)
    low, high = _range(gap, words)
    axes.set_xlim(low, high)
    unit = "requests in time [%]" if gap.metric == "coverage" else "mean wait [s]"
    narrow = words >= WORDS[1][0]
    brk = "\n" if narrow else " "
    axes.set_xlabel(f"{unit},{brk}the axis starts at {low:g}" if low else unit)
    axes.locator_params(axis="x", nbins=4 if narrow else 8)
    if gap.metric == "coverage":
        axes.set_xticks([tick for tick in axes.get_xticks() if low <= tick <= 100.0])
    _plain(axes)


def _names(axes: Axes, gap: Gap, rows: int, *, ends: bool = True) -> None:
    """Write what each row is; without both levels where only steps are drawn."""
    names = ["Poisson theory", *(step.label for step in gap.steps)]
    names.append("simulated city" if gap.simulated else "real sites (field)")
    shown = slice(None) if ends else slice(1, -1)
    axes.set_yticks(range(rows)[shown], names[shown])
    axes.set_ylim(rows - (0.45 if ends else 1.45), -0.6 if ends else 0.4)


def _plain(axes: Axes) -> None:
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    axes.spines["left"].set_visible(False)


def _range(gap: Gap, words: float) -> tuple[float, float]:
    """Return the ends of the axis: all that is drawn, with room for words; from 0 unless that hides the steps."""
    seen = [*gap.start, *gap.end]
    before = gap.start.value
    for step in gap.steps:
        seen += [step.after, before + step.change.low, before + step.change.high]
        before = step.after
    least, most = np.nanmin(seen) * _scale(gap), np.nanmax(seen) * _scale(gap)
    low = 0.0
    if most - least < HIDDEN * most:
        unit = 10.0 ** np.floor(np.log10(max(most - least, 1e-9)))
        low = max(0.0, float(np.floor((least - 0.6 * (most - least)) / unit) * unit))
    high = most + words * (most - low)
    return low, float(max(high, low + LEAST_WIDTH * _scale(gap)))


def _legend(gap: Gap) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    better, worse = ("more in time", "fewer in time") if gap.metric == "coverage" else ("shorter", "longer")
    handles: list[Any] = [Patch(color=GAIN, label=better), Patch(color=LOSS, label=worse)]
    whisker = Line2D([], [], color=INK, marker="|", markersize=5, linewidth=0.9)
    whisker.set_label("95 % interval of the step")
    handles.append(whisker)
    if gap.spreads is not None:
        handles.append(Line2D([], [], color=INK, marker="D", linestyle="", label="mean of all orders"))
        handles.append(Line2D([], [], color=LEVEL, linewidth=4.0, label="from least to most"))
    return handles
