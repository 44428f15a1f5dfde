"""The picture of a comparison of controllers: three stories over the clock."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from geoedge.compare.controllers.compared import ORACLE
from geoedge.style import INK, LEVEL, PALETTE
from geoedge.style.marks import clocked, warm_up
from geoedge.style.paper import sheet, shown, wrapped

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from geoedge.compare.controllers.compared import ControllerComparison
    from geoedge.style import PaperFigure

    Floats = NDArray[np.float64]
    Panels = NDArray[np.object_]

__all__ = ["picture"]

FIXED = {"none": LEVEL, "static": INK, ORACLE: "#b8860b"}
"""Yardsticks look alike in every picture."""
HEIGHT_IN = {1: 5.0, 2: 5.4}


def picture(found: ControllerComparison, *, columns: int = 2) -> PaperFigure:
    """Return coverage over the window, what each contestant earns over the baseline, and what it moves.

    Parameters
    ----------
    found
        The comparison.
    columns
        Columns of a paper, 1 or 2.
    """
    with sheet(columns, HEIGHT_IN.get(columns, 1.0)) as figure:
        rows = figure.subplots(3, 1, sharex=True, height_ratios=(1.2, 1.2, 0.7))
        colours = _colours(found.runs)
        for name, part in found.epochs.groupby("controller", sort=False):
            _draw(rows, part, str(name), colours[str(name)], found.baseline)
        _label(rows, found, columns)
        figure.suptitle(wrapped(shown(found.title), 54 * columns), x=0.012, ha="left")
        words = wrapped(_subtitle(found), 54 * columns)
        rows[0].set_title(words, fontsize=7.5, fontweight="normal")
        names = rows[0].get_legend_handles_labels()
        figure.legend(*names, loc="outside lower center", ncols=3 * columns)
    return figure


def _subtitle(found: ControllerComparison) -> str:
    count = found.replications
    runs = "one run" if count == 1 else f"means of {count} paired runs, bands of 95 %"
    return f"Requests answered within {found.ttft_target_s:g} s, by who moves caches ({runs})"


def _colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour each; what has none of its own takes those of the palette in turn."""
    turn = cycle(PALETTE)
    return {name: FIXED.get(name) or next(turn) for name in names}


def _draw(rows: Panels, part: pd.DataFrame, name: str, colour: str, base: str) -> None:
    """Draw one contestant into all three panels."""
    hours = np.append(part["start_s"], part["end_s"].iloc[-1]) / 3600.0
    style = {"color": colour, "linewidth": 1.2, "linestyle": "--" if name == ORACLE else "-"}
    rows[0].stairs(100 * part["coverage"], hours, baseline=None, label=name, **style)
    middle = (hours[1:] + hours[:-1]) / 2
    if name != base:
        rows[1].plot(middle, 100 * part["change"], marker=".", markersize=4, **style)
        if part["change_low"].notna().any():
            low, high = 100 * part["change_low"], 100 * part["change_high"]
            rows[1].fill_between(middle, low, high, color=colour, alpha=0.13, linewidth=0)
    if part["moved_gb"].any():
        rows[2].plot(hours[1:], part["moved_gb"].cumsum(), **style)


def _label(rows: Panels, found: ControllerComparison, columns: int) -> None:
    rows[0].set_ylabel("requests in time [%]")
    rows[1].set_ylabel(f"gain over {found.baseline} [points]")
    rows[1].axhline(0.0, color=INK, linewidth=0.8)
    rows[1].set_ylim(*_reach(found.epochs["change"].to_numpy()))
    rows[2].set_ylabel("moved so far [GB]")
    rows[2].set_ylim(bottom=0.0)
    start, end = found.epochs["start_s"].min() / 3600.0, found.window_s[1] / 3600.0
    clocked(rows[2], start, end, most=6 * columns)
    for axes in rows:
        axes.grid()
        warm_up(axes, start, found.window_s[0] / 3600.0, words=axes is rows[0])


def _reach(change: Floats) -> tuple[float, float]:
    """Return the ends of the axis of differences [points]: all means, with some room for their bands."""
    low, high = 100.0 * min(float(change.min()), 0.0), 100.0 * max(float(change.max()), 0.0)
    room = 0.3 * max(high - low, 1.0)
    return low - room, high + room
