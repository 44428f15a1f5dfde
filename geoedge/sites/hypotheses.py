"""Layouts to compare with: uniform sites, Poisson sites of an uneven density, or what a caller draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import positions, study_window
from geoedge.sites.unevenness import NEIGHBOURS, smoothed_sites
from geoedge.streams import generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.demand import Demand
    from geoedge.sites._edges import Sites, StudyWindow, WindowLike
    from geoedge.sites.layout import Layout

    Simulate: TypeAlias = Callable[[np.random.Generator], Layout | ArrayLike]

__all__ = ["draw_layouts", "following_demand", "merged_alike", "uneven_poisson"]


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
    known = smoothed_sites(sites, window, neighbours=neighbours)
    return lambda rng: known.draw(len(known.xy), rng)


def following_demand(demand: Demand, window: WindowLike, count: int) -> Simulate:
    """Return a hypothesis for `envelope_test`: independent sites that follow demand.

    Sites that stand where people are look clustered beside uniform ones. Against this hypothesis they do only if they
    are closer to each other than demand alone explains, and regular if they keep apart more than it explains.

    Parameters
    ----------
    demand
        Requests per second at points or cells, in the window's CRS.
    window
        Polygon [m], or width and height of a torus [m].
    count
        Sites of each layout.

    Raises
    ------
    CityError
        If there is to be no site, or no demand lies in the window.
    """
    from geoedge.sites._windows import drawing_window
    from geoedge.sites.restricted import demand_points

    if count < 1:
        msg = f"`count` must be at least 1 site, not {count}"
        raise CityError(msg)
    where = study_window(window)
    land = drawing_window(where.polygon if where.period_m is None else where.period_m)
    xy, place = np.unique(demand.xy, axis=0, return_inverse=True)
    rate: NDArray[np.float64] = np.zeros((len(xy), 1))
    np.add.at(rate[:, 0], place.reshape(-1), demand.rate.sum(axis=1))
    demand = replace(demand, xy=xy, rate=rate)  # each cell once, so that every draw is quick

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        drawn = np.empty((0, 2))
        while len(drawn) < count:  # a Poisson number at a time: the first ones of many are as good as any
            drawn = np.vstack((drawn, demand_points(land, count / land.area_m2, rng, demand=demand)))
        return drawn[:count]

    return draw


def merged_alike(simulate: Simulate, distance_m: float, window: WindowLike = None) -> Simulate:
    """Return a hypothesis whose layouts are drawn as objects and merged to sites, as the layout itself was.

    Merging leaves sites at least so far apart. Beside layouts that were not merged, that reads as regular; beside
    these it does only if the sites keep apart more than merging explains.

    Parameters
    ----------
    simulate
        Draws a layout of objects, as many as there were before merging.
    distance_m
        Objects linked by steps of at most this are one site, at their middle [m].
    window
        Where sites may be: one whose middle falls outside stands at its first object instead.

    Raises
    ------
    CityError
        If the distance is negative.
    """
    from geoedge.sites import merge_nearby

    if not 0.0 <= distance_m < np.inf:
        msg = f"`distance_m` must be 0 or more metres, not {distance_m}"
        raise CityError(msg)
    where = None if window is None else study_window(window)

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        xy = positions(simulate(rng))
        group = merge_nearby(xy, distance_m)
        size = np.bincount(group)
        middle = np.column_stack([np.bincount(group, xy[:, axis]) / size for axis in (0, 1)])
        if where is not None:
            first = xy[np.unique(group, return_index=True)[1]]
            middle = np.where(where.contains(middle)[:, None], middle, first)
        return middle

    return draw
