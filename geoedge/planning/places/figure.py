"""A plan of places as a picture: coverage over the number of sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from geoedge.planning.places.plan import PlacesPlan

__all__ = ["places_figure"]

BLUE, SKY, ORANGE, GREEN, GREY, INK = "#0072B2", "#56B4E9", "#E69F00", "#009E73", "#8a949e", "#222222"


def places_figure(plan: PlacesPlan) -> Figure:
    """Return coverage over the number of sites: the plan in its order, greedy growth, random orders, theory.

    Parameters
    ----------
    plan
        A plan of places.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 5.2), facecolor="white", layout="constrained")
    axes = figure.subplots()
    beside = plan.yardsticks
    low, middle, high = 100.0 * beside.random.T
    axes.fill_between(beside.counts, low, high, color=ORANGE, alpha=0.25, linewidth=0)
    axes.plot(
        beside.counts,
        middle,
        color=ORANGE,
        marker="s",
        markersize=3.5,
        label="random order: median and 95 % of orders",
    )
    axes.plot(
        beside.counts,
        100.0 * beside.theory,
        color=GREEN,
        linestyle="--",
        marker="^",
        markersize=3.5,
        label="Poisson theory, as many sites",
    )
    grown = np.arange(1, len(plan.greedy) + 1)
    axes.plot(grown, 100.0 * plan.greedy, color=BLUE, linestyle=":", label="greedy, before exchanges")
    built = np.arange(1, len(plan.order) + 1)
    covered, carried = (
        [100.0 * getattr(row, name) for row in plan.order] for name in ("coverage", "served_in_time")
    )
    axes.plot(built, carried, color=SKY, label="this plan, if the network turns away what it cannot carry")
    axes.plot(built, covered, color=BLUE, marker="o", markersize=3.5, label="this plan")
    if plan.asked_sites is None:
        axes.axhline(100.0 * plan.reliability, color=GREY, linewidth=1.0)
        axes.annotate("asked", (0.5, 100.0 * plan.reliability + 0.8), color=GREY, fontsize=9)
    _words(axes, plan)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure


def _words(axes: Axes, plan: PlacesPlan) -> None:
    axes.set(
        xlabel="sites equipped",
        ylabel=f"requests with their first token within {plan.ttft_target:g} s [%]",
        xlim=(0, len(plan.held) + 1),
        ylim=(0, 100),
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("Which places to equip first", loc="left", fontsize=11, fontweight="bold", color=INK)
