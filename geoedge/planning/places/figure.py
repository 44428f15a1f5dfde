"""A plan of places as a picture: coverage over the number of sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.style import BLUE, GREEN, LEVEL, ORANGE, QUIET, SKY
from geoedge.style.marks import percents
from geoedge.style.paper import sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from geoedge.planning.places.plan import PlacesPlan
    from geoedge.style import PaperFigure

__all__ = ["places_figure"]


def places_figure(plan: PlacesPlan, *, columns: int = 2) -> PaperFigure:
    """Return coverage over the number of sites: the plan in its order, greedy growth, random orders, theory.

    Parameters
    ----------
    plan
        A plan of places.
    columns
        Columns of a paper, 1 or 2.
    """
    from matplotlib.ticker import MaxNLocator

    with sheet(columns, 3.9) as figure:
        axes = figure.subplots()
        _beside(axes, plan)
        _chosen(axes, plan)
        if plan.asked_sites is None:
            axes.axhline(100.0 * plan.reliability, color=LEVEL, linewidth=0.8)
            spot = (0.01, 100.0 * plan.reliability)
            axes.annotate("asked", spot, (0, 2), axes.get_yaxis_transform(), "offset points", color=QUIET)
        percents(axes, f"first token within {plan.ttft_target:g} s [% of requests]")
        axes.set(xlabel="sites equipped", xlim=(0, len(plan.held) + 1), title="Which places to equip first")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.grid()
        figure.legend(loc="outside lower center", ncols=columns)
    return figure


def _beside(axes: Axes, plan: PlacesPlan) -> None:
    """Draw what random orders and theory give of as many sites."""
    beside = plan.yardsticks
    low, middle, high = 100.0 * beside.random.T
    axes.fill_between(beside.counts, low, high, color=ORANGE, alpha=0.25, linewidth=0)
    label = "random order: median and 95 % of orders"
    axes.plot(beside.counts, middle, color=ORANGE, marker="s", label=label)
    theory = 100.0 * beside.theory
    axes.plot(beside.counts, theory, "--", color=GREEN, marker="^", label="Poisson theory, as many sites")


def _chosen(axes: Axes, plan: PlacesPlan) -> None:
    """Draw the plan in its order of building, and the greedy growth that it came from."""
    grown, built = (np.arange(1, len(each) + 1) for each in (plan.greedy, plan.order))
    axes.plot(grown, 100.0 * plan.greedy, ":", color=BLUE, label="greedy, before exchanges")
    covered, carried = (
        [100.0 * getattr(row, name) for row in plan.order] for name in ("coverage", "served_in_time")
    )
    axes.plot(built, carried, color=SKY, label="this plan, turning away what it cannot carry")
    axes.plot(built, covered, color=BLUE, marker="o", label="this plan")
