"""Layouts to compare with: uniform sites, Poisson sites of an uneven density, or what a caller draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import positions, study_window
from geoedge.sites._windows import wrapped
from geoedge.streams import generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.sites._edges import Sites, StudyWindow, WindowLike
    from geoedge.sites.layout import Layout

    Simulate: TypeAlias = Callable[[np.random.Generator], Layout | ArrayLike]

__all__ = ["draw_layouts", "uneven_poisson"]

NEIGHBOURS = 16
"""The density of an uneven layout is smoothed over the distance to this many neighbours."""

MAX_ROUNDS = 10_000
"""Rounds of drawing places anew that fell outside the window."""


def draw_layouts(
    xy: NDArray[np.float64],
    window: StudyWindow,
    simulations: int,
    rng: np.random.Generator | int,
    *,
    simulate: Simulate | None = None,
    count: str = "fixed",
) -> list[NDArray[np.float64]]:
    """Draw layouts of the hypothesis, each of shape (m, 2) [m].

    Parameters
    ----------
    xy
        Positions of the layout [m], shape (n, 2), for their number.
    window
        Where to draw.
    simulations
        How many layouts.
    rng
        Random generator, or a seed for one.
    simulate
        Draws one layout; uniform sites when left out.
    count
        ``"fixed"`` or ``"poisson"``.

    Raises
    ------
    CityError
        If a number or name is impossible, or a drawn layout leaves the window.
    """
    if simulations < 1:
        msg = f"`simulations` must be at least 1, not {simulations}"
        raise CityError(msg)
    if count not in ("fixed", "poisson"):
        msg = f"`count` must be 'fixed' or 'poisson', not {count!r}"
        raise CityError(msg)
    rng = generator(rng)
    if simulate is not None:
        return [positions(simulate(rng), window, at_least=0) for _ in range(simulations)]
    n = len(xy)
    many = np.full(simulations, n) if count == "fixed" else rng.poisson(n, simulations)
    return [window.uniform(int(k), rng) for k in many]


def uneven_poisson(sites: Sites, window: WindowLike = None, *, neighbours: int = NEIGHBOURS) -> Simulate:
    """Return a hypothesis for `envelope_test`: Poisson layouts of as uneven a density as this one's.

    The density is the layout's own, smoothed by a normal kernel at each site whose standard deviation is the distance
    to its 16th neighbour; kernels are renormalised over the window. What a layout has in finer detail than that, it
    has by arrangement and not by unevenness. Smoothing keeps a part of what is chance as unevenness, so a layout that
    is Poisson reads about one standard deviation too regular: a layout still clustered is so all the more.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m]; may be left out for a layout on a torus.
    neighbours
        Over how many neighbours to smooth; at most n − 1 are.

    Raises
    ------
    CityError
        If there are fewer than two sites, some are outside, or `neighbours` is not positive.
    """
    from scipy.spatial import cKDTree

    if neighbours < 1:
        msg = f"`neighbours` must be at least 1, not {neighbours}"
        raise CityError(msg)
    where = study_window(window, sites)
    xy = positions(sites, where, at_least=2, use="An uneven density")
    boxsize: Any = where.period_m
    nth = min(neighbours, len(xy) - 1) + 1
    width = np.asarray(cKDTree(xy, boxsize=boxsize).query(xy, k=[nth])[0])

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        near = rng.integers(0, len(xy), len(xy))
        drawn, todo = np.empty_like(xy), np.arange(len(xy))
        for _ in range(MAX_ROUNDS):
            place = xy[near[todo]] + rng.normal(size=(len(todo), 2)) * width[near[todo]]
            place = place if where.period_m is None else wrapped(place, where.period_m)
            inside = where.contains(place)
            drawn[todo[inside]] = place[inside]
            todo = todo[~inside]
            if not len(todo):
                return drawn
        msg = f"`window` is too thin to draw sites in it within {MAX_ROUNDS} rounds; buffer it"
        raise CityError(msg)

    return draw
