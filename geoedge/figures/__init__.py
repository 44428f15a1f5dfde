"""Figures for papers, one call each: a Matplotlib figure in one style, to be written as svg, pdf or png.

`three_answers` and `ttft_distribution` draw runs side by side, `wait_distribution` a run's waits against
M/M/c queues, `moves_over_time` what a controller did, `layout_functions` how far layouts are from
Poisson, `gap_waterfall` what makes theory and city differ. `save_figure` writes one.

>>> from geoedge.figures import layout_functions
>>> from geoedge.sites import draw_layout, envelope_test
>>> sites = draw_layout("lattice", (4000.0, 4000.0), density_per_km2=3.0, rng=1)
>>> figure = layout_functions(envelope_test(sites, simulations=39, rng=1), names=["A shaken lattice"])
>>> print(figure.axes[0].get_title(loc="left"))
A shaken lattice

Every figure takes ``columns``, 1 or 2 columns of a paper, and is made without pyplot; equal input gives equal
bytes. Axes name their units. Figures draw what a run or a comparison kept and compute nothing new. The
figures of a gap, a comparison of controllers, a deployment gain and a plan of places, which their ``figure``
methods make, are in the same style.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.compare.gap.picture import waterfall as gap_waterfall
    from geoedge.figures.clocked import coverage_over_time, moves_over_time
    from geoedge.figures.compared import profile_shares, three_answers
    from geoedge.figures.distributions import load_distribution, ttft_distribution, wait_distribution
    from geoedge.figures.ground import site_map
    from geoedge.figures.layouts import layout_functions
    from geoedge.style import check_picture, save_figure

__all__ = [
    "check_picture",
    "coverage_over_time",
    "gap_waterfall",
    "layout_functions",
    "load_distribution",
    "moves_over_time",
    "profile_shares",
    "save_figure",
    "site_map",
    "three_answers",
    "ttft_distribution",
    "wait_distribution",
]

_HOMES = {
    "check_picture": "style.saving",
    "coverage_over_time": "figures.clocked",
    "gap_waterfall": "compare.gap.picture",
    "layout_functions": "figures.layouts",
    "load_distribution": "figures.distributions",
    "moves_over_time": "figures.clocked",
    "profile_shares": "figures.compared",
    "save_figure": "style.saving",
    "site_map": "figures.ground",
    "three_answers": "figures.compared",
    "ttft_distribution": "figures.distributions",
    "wait_distribution": "figures.distributions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        home = import_module(f"geoedge.{_HOMES[name]}")
        return getattr(home, "waterfall" if name == "gap_waterfall" else name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
