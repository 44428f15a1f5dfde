"""What several figures draw alike: names at the ends of lines, the clock, the target, the warm-up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.style import DASHES, INK, PALETTE, QUIET, SHADE
from geoedge.units import clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "beside",
    "clocked",
    "counted",
    "legend_above",
    "legend_room",
    "line_styles",
    "percents",
    "round_ticks",
    "spread_out",
    "warm_up",
]

LINE_IN = 0.125
"""Height of a line of small words [inch]."""

NARROW = 0.13
"""Share of the axis from which on a warm-up has room for its name."""


def spread_out(at: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Return places as near as can be to those given, in their order, at least so far apart and within ends.

    Parameters
    ----------
    at
        Where each should be.
    apart
        Least distance of two.
    low, high
        Ends; if all do not fit between them they run over.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(np.asarray(at, dtype=np.float64), kind="stable")
    steps = apart * np.arange(len(at))
    wished = np.clip(np.asarray(at, dtype=np.float64)[order], low, high) - steps
    level = isotonic_regression(wished).x  # neighbours that touch move together, to their mean
    room = max(high - low - (steps[-1] if len(at) else 0.0), 0.0)
    placed = np.empty(len(at))
    placed[order] = np.clip(level, low, low + room) + steps
    return [float(place) for place in placed]


def clocked(axes: Axes, start_h: float, end_h: float, *, most: int = 8) -> None:
    """Write the time of day along an axis in hours.

    Parameters
    ----------
    axes
        The axes.
    start_h, end_h
        What it spans [h since midnight].
    most
        Most times that are written.
    """
    steps = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 12.0, 24.0)
    step = next((each for each in steps if (end_h - start_h) / each <= most), 24.0)
    ticks = np.arange(np.ceil(start_h / step - 1e-9), np.floor(end_h / step + 1e-9) + 1) * step
    axes.set_xticks(ticks, [clock(3600.0 * tick) for tick in ticks])
    axes.set_xlim(start_h, end_h)
    axes.set_xlabel("time of day [h:min]")


def warm_up(axes: Axes, start_h: float, end_h: float, *, words: bool = True) -> None:
    """Shade the warm-up, which does not count, on axes with their limits set; nothing if there is none.

    Parameters
    ----------
    axes
        The axes, over hours since midnight.
    start_h, end_h
        When it begins and ends [h since midnight].
    words
        Whether to write what it is, where there is room.
    """
    if end_h > start_h:
        axes.axvspan(start_h, end_h, color=SHADE, zorder=0, linewidth=0)
    first, last = axes.get_xlim()
    if words and end_h - start_h >= NARROW * (last - first):
        where, middle = axes.get_xaxis_transform(), (start_h + end_h) / 2
        axes.text(middle, 0.03, "warm-up", transform=where, ha="center", fontsize=6.5, color=QUIET)


def counted(number: int) -> str:
    """Return a number of requests in words."""
    return f"{number:,} request" + ("" if number == 1 else "s")


def round_ticks(axes: Axes, low: float, high: float) -> None:
    """Write 1, 2 and 5 times powers of ten along a logarithmic horizontal axis, as plain numbers.

    Parameters
    ----------
    axes
        The axes.
    low, high
        What it spans, above 0.
    """
    axes.set_xscale("log")
    powers = 10.0 ** np.arange(np.floor(np.log10(low)) - 1, np.ceil(np.log10(high)) + 1)
    steps = (1.0, 2.0, 5.0) if high / low <= 3e3 else (1.0,)
    ticks = [step * power for power in powers for step in steps if low <= step * power <= high]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(low, high)


def beside(
    axes: Axes,
    x: float,
    at: Sequence[float],
    words: Sequence[str],
    colours: Sequence[str],
    *,
    height_in: float,
    lines: int = 1,
) -> None:
    """Write words right of points that stand one over the other, apart where the points are not.

    Parameters
    ----------
    axes
        The axes, with their limits set.
    x
        Where all points are.
    at
        How high each is.
    words
        Words of each.
    colours
        Colour of each.
    height_in
        Height of the axes, about [inch].
    lines
        Lines of each.
    """
    low, high = axes.get_ylim()
    apart = (high - low) * lines * LINE_IN / height_in
    for y, text, colour in zip(spread_out(at, apart, low, high), words, colours, strict=True):
        halo = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.8}
        axes.annotate(
            text,
            (x, y),
            (6, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=6.5,
            bbox=halo,
            zorder=6,
        )


def legend_room(number: int) -> float:
    """Return the height that names of so many lines take below the axes, a line each; none for one [inch]."""
    return 0.0 if number == 1 else 0.14 * number + 0.05


def legend_above(axes: Axes, columns: int) -> None:
    """Write names of lines above the axes at their right end, where they hide nothing.

    Parameters
    ----------
    axes
        The axes.
    columns
        How many names stand side by side.
    """
    axes.legend(
        loc="lower right", bbox_to_anchor=(1.0, 0.98), ncols=columns, borderaxespad=0.0, columnspacing=1.0
    )


def line_styles(number: int) -> list[dict[str, Any]]:
    """Return how to draw so many lines, so that they differ in colour and, in print without colour, in dashes."""
    if number == 1:
        return [{"color": INK, "linestyle": "-"}]
    return [
        {"color": PALETTE[place % len(PALETTE)], "linestyle": DASHES[place % len(DASHES)]}
        for place in range(number)
    ]


def percents(axes: Axes, label: str, *, log: bool = False, least: float = 0.1) -> None:
    """Let the vertical axis hold percentages.

    Parameters
    ----------
    axes
        The axes.
    label
        What they are.
    log
        On a logarithmic scale, down to the least.
    least
        End of a logarithmic scale.
    """
    axes.set_ylabel(label)
    if not log:
        axes.set_ylim(0.0, 104.0)
        axes.set_yticks(range(0, 101, 20))
        return
    axes.set_yscale("log")
    ticks = [tick for tick in (0.001, 0.01, 0.1, 1.0, 10.0, 100.0) if tick >= least]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_ylim(least, 130.0)
