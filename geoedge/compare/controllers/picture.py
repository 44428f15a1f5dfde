"""The picture of a comparison of controllers: three stories over the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.compare.controllers.compared import ORACLE
from geoedge.units import clock

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from geoedge.compare.controllers.compared import ControllerComparison

    Floats = NDArray[np.float64]
    Panels = NDArray[np.object_]

__all__ = ["picture"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a6d00")
"""Colours of contestants, which everybody can tell apart."""
FIXED = {"none": "#8a949e", "static": "#222222", ORACLE: "#b8860b"}
"""Yardsticks look alike in every picture."""
INK = "#222222"
SIZE_IN = (10.0, 9.0)


def picture(found: ControllerComparison) -> Figure:
    """Return coverage over the window, what each contestant earns over the baseline, and what it moves.

    Parameters
    ----------
    found
        The comparison.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(mpl.rcParamsDefault):  # the caller's style must not change the picture
        figure = Figure(figsize=SIZE_IN, layout="constrained", facecolor="white")
        rows = figure.subplots(3, 1, sharex=True, height_ratios=(1.2, 1.2, 0.7))
        for place, (name, part) in enumerate(found.epochs.groupby("controller", sort=False)):
            _draw(rows, part, str(name), _colour(str(name), place), found.baseline)
        _label(rows, found)
        figure.suptitle(found.title, x=0.012, ha="left", fontsize=12, fontweight="bold", color=INK)
        rows[0].set_title(_subtitle(found), loc="left", fontsize=10, color=INK)
        figure.legend(
            *rows[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False
        )
    return figure


def _subtitle(found: ControllerComparison) -> str:
    count = found.replications
    runs = "one run" if count == 1 else f"means of {count} paired runs, bands of 95 %"
    return f"Requests answered within {found.ttft_target_s:g} s, by who moves caches ({runs})"


def _colour(name: str, place: int) -> str:
    return FIXED.get(name, COLOURS[place % len(COLOURS)])


def _draw(rows: Panels, part: pd.DataFrame, name: str, colour: str, base: str) -> None:
    """Draw one contestant into all three panels."""
    hours = np.append(part["start_s"], part["end_s"].iloc[-1]) / 3600.0
    style = {"color": colour, "linewidth": 1.4, "linestyle": "--" if name == ORACLE else "-"}
    rows[0].stairs(100 * part["coverage"], hours, baseline=None, label=name, **style)
    middle = (hours[1:] + hours[:-1]) / 2
    if name != base:
        rows[1].plot(middle, 100 * part["change"], marker=".", markersize=4, **style)
        if part["change_low"].notna().any():
            low, high = 100 * part["change_low"], 100 * part["change_high"]
            rows[1].fill_between(middle, low, high, color=colour, alpha=0.13, linewidth=0)
    if part["moved_gb"].any():
        rows[2].plot(hours[1:], part["moved_gb"].cumsum(), **style)


def _label(rows: Panels, found: ControllerComparison) -> None:
    rows[0].set_ylabel("requests in time [%]")
    rows[1].set_ylabel(f"points over {found.baseline}")
    rows[1].axhline(0.0, color=INK, linewidth=0.8)
    rows[1].set_ylim(*_reach(found.epochs["change"].to_numpy()))
    rows[2].set_ylabel("moved so far [GB]")
    rows[2].set_ylim(bottom=0.0)
    for axes in rows:
        _plain(axes)
    start, end = found.epochs["start_s"].min(), found.window_s[1]
    ticks = np.arange(np.ceil(start / 3600.0), np.floor(end / 3600.0) + 1e-9, _hours_a_tick(end - start))
    rows[2].set_xticks(ticks, [clock(3600.0 * tick) for tick in ticks])
    rows[2].set_xlim(start / 3600.0, end / 3600.0)
    if start < found.window_s[0]:
        for axes in rows:
            axes.axvspan(start / 3600.0, found.window_s[0] / 3600.0, color="#f0f2f4", zorder=0)


def _reach(change: Floats) -> tuple[float, float]:
    """Return the ends of the axis of differences [points]: all means, with some room for their bands."""
    low, high = 100.0 * min(float(change.min()), 0.0), 100.0 * max(float(change.max()), 0.0)
    room = 0.3 * max(high - low, 1.0)
    return low - room, high + room


def _hours_a_tick(span_s: float) -> float:
    return next((step for step in (0.25, 0.5, 1.0, 2.0) if span_s / 3600.0 / step <= 12.0), 3.0)


def _plain(axes: Axes) -> None:
    axes.grid(color="#e3e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
