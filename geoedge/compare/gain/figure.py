"""A deployment gain as a picture and in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.compare.gain.crossings import band_rank, band_share
from geoedge.style import LEVEL, PALETTE
from geoedge.style.paper import sheet

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from geoedge.compare.gain.deployment import DeploymentGain
    from geoedge.style import PaperFigure

__all__ = ["gain_figure", "gain_sentences"]

DASH = {"layouts": "-", "theory": (0, (4, 2))}
NEAR = 0.1
"""Gains that differ by no more than this share are called the same."""


def gain_figure(found: DeploymentGain, *, columns: int = 2) -> PaperFigure:
    """Return gain and shift over the targets, a colour for each load, theory dashed, Poisson bands light.

    Parameters
    ----------
    found
        A deployment gain.
    columns
        Columns of a paper, 1 or 2; in one the panels stand one over the other.
    """
    with sheet(columns, 3.2 if columns == 2 else 5.4) as figure:
        panels = figure.subplots(*((1, 2) if columns == 2 else (2, 1)), sharex=True)
        words = ("How many Poisson sites one site is worth", "How much later Poisson covers as much")
        units = ("gain in density [–]", "shift at equal coverage [s]")
        for axes, name, word, unit in zip(panels, ("gain", "shift_s"), words, units, strict=True):
            _lines(axes, found.table, name)
            axes.axhline(1.0 if name == "gain" else 0.0, color=LEVEL, linewidth=0.8, zorder=1)
            axes.set(xlabel="target of the time to first token [s]", ylabel=unit)
            axes.set_title(word)
            axes.grid()
        names = panels[0].get_legend_handles_labels()
        figure.legend(*names, loc="outside lower center", ncols=columns, handlelength=2.8)
    return figure


def _lines(axes: Axes, table: pd.DataFrame, name: str) -> None:
    word = name.removesuffix("_s")
    low, high = (f"{word}_{end}{name.removeprefix(word)}" for end in ("low", "high"))
    for colour, load in zip(cycle(PALETTE), np.unique(table["load"])):
        part = table[table["load"] == load]
        for reference in part["reference"].unique():
            rows = part[part["reference"] == reference]
            label = f"{_load_words(load, rows['present'].any())}, against Poisson {reference}"
            x = rows["ttft_target_s"]
            style: dict[str, Any] = {
                "color": colour,
                "linestyle": DASH[reference],
                "marker": "o",
            }
            axes.plot(x, rows[name], label=label, **style)
            if reference == "layouts":
                _filled(axes, x, rows[low], rows[high], {"color": colour, "alpha": 0.25})
                light: dict[str, Any] = {"color": colour, "alpha": 0.08}
                if load == table["load"].iloc[0]:
                    light["label"] = "single Poisson layouts"
                least, most = (rows[f"poisson_{end.removeprefix('gain_')}"] for end in (low, high))
                _filled(axes, x, least, most, light)


def _filled(axes: Axes, x: pd.Series, low: pd.Series, high: pd.Series, style: dict[str, Any]) -> None:
    """Fill between ends, or draw a broad bar where there is one target, over which an area has no width."""
    if len(x) == 1:
        axes.vlines(x, low, high, linewidth=8, **style)
    else:
        axes.fill_between(x, low, high, linewidth=0, **style)


def _load_words(load: float, present: bool) -> str:
    return f"load {load:.2f}" + (" (present)" if present else "")


def gain_sentences(found: DeploymentGain) -> list[str]:
    """Return what a deployment gain says, in plain words.

    Parameters
    ----------
    found
        A deployment gain.
    """
    return [*_main(found), *_constancy(found), *_by_load(found), *_unknown(found)]


def _main(found: DeploymentGain) -> Iterator[str]:
    table = found.table[found.table["gain"].notna()]
    if not len(table):
        yield "No density of a Poisson network covers what this layout covers at the targets and loads asked."
        return
    row = _middle(table[table["reference"] == "layouts"]) if (table["reference"] == "layouts").any() else None
    if row is not None:
        layouts, count = found.layouts
        yield (
            f"At {row['ttft_target_s']:g} s and {_load_words(row['load'], row['present'])} of capacity the layout covers "
            f"{row['coverage']:.3f}, as many Poisson sites on the same ground under the same demand "
            f"{row['reference_coverage']:.3f} ({layouts} layouts, {count} number of sites). Poisson sites would have to "
            f"be {row['gain']:.2f} times as dense ({_interval(row, 'gain_low', 'gain_high')} by the luck of the mean), "
            f"{row['equivalent_per_km2']:.2f} instead of {found.site_density:.2f} per km²; with as many, they cover as "
            f"much {row['shift_s']:.2f} s later ({_interval(row, 'shift_low_s', 'shift_high_s', ' s')}). {_judged(row, layouts)}"
        )
    theory = table[table["reference"] == "theory"]
    if len(theory):
        row = _middle(theory)
        yield (
            f"Against Poisson theory, which spreads demand evenly and gives all sites of a profile one load, the gain at "
            f"{row['ttft_target_s']:g} s is {row['gain']:.2f} and the shift {row['shift_s']:+.2f} s: what the layout wins "
            "and what unequal loads, the edge and concentrated demand cost, together."
        )


def _middle(rows: pd.DataFrame) -> Any:
    """Return the row of the present demand, or of the middle load, at the middle target."""
    if rows["present"].any():
        rows = rows[rows["present"]]
    else:
        loads = np.sort(rows["load"].unique())
        rows = rows[rows["load"] == loads[len(loads) // 2]]
    return rows.iloc[(len(rows) - 1) // 2]


def _interval(row: Any, low: str, high: str, unit: str = "") -> str:
    ends = [f"{row[end]:.2f}" if np.isfinite(row[end]) else "unknown" for end in (low, high)]
    return f"{ends[0]} to {ends[1]}{unit}"


def _judged(row: Any, layouts: int) -> str:
    """Say what single Poisson layouts are worth, and whether the layout is more or less than one of them may be."""
    rank, share = int(row["rank"]), band_share(layouts)
    verdict = "no more and no less than luck may give"  # by rank: at its edge the band is a little wide
    if not band_rank(layouts) <= rank <= layouts - band_rank(layouts):
        verdict = f"by that rank {'more' if 2 * rank > layouts else 'less'} than luck gives"
    few = "" if share >= 0.95 else "; 39 layouts make a band of 95 %"
    return (
        f"Single Poisson layouts, each against the others, are worth {_interval(row, 'poisson_low', 'poisson_high')} "
        f"(a band that holds {share:.0%} of them), and this layout covers more than {rank} of {layouts}: {verdict}{few}."
    )


def _constancy(found: DeploymentGain) -> Iterator[str]:
    spread = found.spread()
    for reference in spread["reference"].unique():
        row = spread[(spread["reference"] == reference) & (spread["over"] == "both")].iloc[0]
        if row["known"] < 2:
            continue
        least, most = row["gain_least"], row["gain_most"]
        steady = "about one number" if most <= (1.0 + NEAR) * least else "not one number"
        yield (
            f"Against {reference} the gain is {steady}: {least:.2f} to {most:.2f} over {row['known']} pairs of target and "
            f"load, the shift {row['shift_s_least']:+.2f} to {row['shift_s_most']:+.2f} s."
        )


def _by_load(found: DeploymentGain) -> Iterator[str]:
    """Say how the gain over layouts changes with the load, where intervals at the ends of the loads lie apart."""
    rows = found.table[(found.table["reference"] == "layouts") & found.table["gain"].notna()]
    if not len(rows):
        return
    tau = _middle(rows)["ttft_target_s"]
    rows = rows[rows["ttft_target_s"] == tau]
    light, heavy = rows.iloc[0], rows.iloc[-1]
    falls, rises = light["gain_low"] > heavy["gain_high"], heavy["gain_low"] > light["gain_high"]
    if falls or rises:
        why = ": near capacity it counts how many servers there are, not where they stand" if falls else ""
        yield (
            f"The gain at {tau:g} s goes from {light['gain']:.2f} at load {light['load']:.2f} to {heavy['gain']:.2f} at "
            f"load {heavy['load']:.2f}{why}."
        )


def _unknown(found: DeploymentGain) -> Iterator[str]:
    for note, rows in found.table[found.table["note"] != ""].groupby("note", sort=False):
        where = ", ".join(
            f"{row['ttft_target_s']:g} s at load {row['load']:.2f}" for _, row in rows.iterrows()
        )
        yield f"Against {' and '.join(rows['reference'].unique())}, {where}: {note}."
