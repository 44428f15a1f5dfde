"""Layouts that follow the city: its demand, its streets or its rooftops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._windows import drawing_window, uniform_points
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.city.demand import Demand
    from geoedge.city.streets import StreetGraph
    from geoedge.sites._windows import DrawingWindow, Floats

__all__ = ["MODES", "WEIGHTS", "demand_points", "rooftop_points", "street_lengths", "street_points"]

MODES = ("drive", "walk")
"""Whose streets."""

WEIGHTS = ("floor_area", "uniform")
"""What makes a roof likelier."""

MAX_ROUNDS = 1000
"""Rounds of rejection before streets are given up as outside of the window."""

QUICK_ROUNDS = 20
"""Rounds in which a place in a demand cell is drawn anew before the cell is cut to the land."""


def demand_points(
    window: DrawingWindow, density: float, rng: np.random.Generator, *, demand: Demand
) -> Floats:
    """Draw an inhomogeneous Poisson process whose density follows demand.

    The number of sites is Poisson with mean λ times area. Each stands at one of the demand's points, drawn by its
    requests per second, uniformly in its cell where points are the centres of cells; a cell that reaches out of the
    land gives its sites to its part inside. Points of no land are left out.

    Parameters
    ----------
    window
        Where.
    density
        λ, mean over the window [1/m²].
    rng
        Random generator.
    demand
        Requests per second at points or cells.

    Raises
    ------
    CityError
        If no demand lies in the window.
    """
    weight = np.asarray(demand.rate.sum(axis=1), dtype=np.float64)
    weight = np.where(_touched(window, demand), weight, 0.0)
    if not weight.sum() > 0:
        msg = "`demand`: none of it lies in `window`; give a demand on this land, in its CRS"
        raise CityError(msg)
    many = rng.poisson(density * window.area_m2)
    chosen = rng.choice(len(weight), size=many, p=weight / weight.sum())
    centre = demand.xy[chosen]
    if demand.cell_m is None:
        return centre if window.period_m is None else window.cut(centre)
    xy = centre + demand.cell_m * (rng.random((many, 2)) - 0.5)
    if window.period_m is not None:
        return window.cut(xy)
    for _ in range(QUICK_ROUNDS):
        outside = np.flatnonzero(~window.kept(xy))
        if not outside.size:
            return xy
        xy[outside] = centre[outside] + demand.cell_m * (rng.random((len(outside), 2)) - 0.5)
    return _within_cells(xy, centre, demand.cell_m, window, rng)


def _touched(window: DrawingWindow, demand: Demand) -> NDArray[np.bool_]:
    """Return which points, or which cells with more than their edge, are in the window, shape (n,)."""
    kept = window.kept(demand.xy)
    if demand.cell_m is None or kept.all():
        return kept
    import shapely

    rest = np.flatnonzero(~kept)
    cells = _cells(demand.xy[rest], demand.cell_m)
    shapely.prepare(window.polygon)
    met = np.flatnonzero(shapely.intersects(window.polygon, cells))
    kept[rest[met]] = shapely.area(shapely.intersection(window.polygon, cells[met])) > 0
    return kept


def _cells(centre: Floats, cell_m: float) -> NDArray[np.object_]:
    import shapely

    low, high = centre - 0.5 * cell_m, centre + 0.5 * cell_m
    return np.asarray(shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1]), dtype=object)


def _within_cells(
    xy: Floats, centre: Floats, cell_m: float, window: DrawingWindow, rng: np.random.Generator
) -> Floats:
    """Return places with those outside drawn from their cell cut to the land [m]."""
    outside = np.flatnonzero(~window.kept(xy))
    for k, cell in zip(outside, _cells(centre[outside], cell_m), strict=True):
        xy[k] = uniform_points(drawing_window(window.polygon.intersection(cell)), 1, rng)[0]
    return xy


def street_lengths(streets: StreetGraph) -> Floats:
    """Return the length of each directed edge [m], 0 for the second direction of a street, shape (E,).

    Parameters
    ----------
    streets
        Streets of one mode.
    """
    ends = np.stack((streets.edge_from, streets.edge_to)).astype(np.int64)
    # two ways between the same junctions are two streets when they differ by more than a rounding
    key = np.stack((ends.min(axis=0), ends.max(axis=0), np.rint(10.0 * streets.edge_length).astype(np.int64)))
    order = np.lexsort(key)
    same = np.r_[False, (np.diff(key[:, order], axis=1) == 0).all(axis=0)]
    length = streets.edge_length.astype(np.float64).copy()
    length[order[same]] = 0.0
    return length


def street_points(
    window: DrawingWindow, density: float, rng: np.random.Generator, *, city: City, mode: str
) -> Floats:
    """Draw a Poisson number of sites, uniform by length on the streets in the window.

    A street that can be driven both ways counts once. The mean number is λ times the window's area.

    Parameters
    ----------
    window
        Where.
    density
        λ, mean over the window [1/m²].
    rng
        Random generator.
    city
        City whose streets they are.
    mode
        ``"drive"`` or ``"walk"``.

    Raises
    ------
    CityError
        If the city has no such streets in the window.
    """
    streets = city.streets.get(mode)
    if streets is None or not streets.edge_count:
        msg = f"`mode` = {mode!r}: {city.name} has streets for {', '.join(sorted(city.streets)) or 'nobody'}; choose one"
        raise CityError(msg)
    length = street_lengths(streets)
    many = rng.poisson(density * window.area_m2)
    found = np.empty((0, 2))
    for _ in range(MAX_ROUNDS):
        if len(found) >= many:
            return found[:many]
        edge = rng.choice(len(length), size=many + 16, p=length / length.sum())
        found = np.vstack((found, window.cut(streets.position(edge, rng.random(len(edge))))))
    msg = f"`window`: hardly any of {city.name}'s {mode} streets lie in it; give the city's own land"
    raise CityError(msg)


def rooftop_points(
    window: DrawingWindow, density: float, rng: np.random.Generator, *, city: City, weight: str
) -> Floats:
    """Put a site on each building with a probability of its own, never two on one roof.

    Probabilities are proportional to floor area or alike, at most 1, and add up to λ times the window's area; so
    the number of sites scatters a little less than a Poisson one. Minor buildings (garages, sheds) have none.

    Parameters
    ----------
    window
        Where.
    density
        λ, mean over the window [1/m²].
    rng
        Random generator.
    city
        City whose buildings they are.
    weight
        ``"floor_area"`` or ``"uniform"``.

    Raises
    ------
    CityError
        If there are fewer buildings than sites.
    """
    table = city.buildings
    usable = window.kept(table.xy) & ~table.is_kind("minor")
    share = np.where(usable, table.floor_m2 if weight == "floor_area" else 1.0, 0.0)
    mean = density * window.area_m2
    if mean >= np.count_nonzero(share):
        msg = (
            f"`density_per_km2` = {density * M2_PER_KM2:g}: {mean:.0f} sites on {np.count_nonzero(share)} roofs of "
            f"{city.name}; ask for fewer sites"
        )
        raise CityError(msg)
    return np.asarray(table.xy[rng.random(len(share)) < capped_shares(share, mean)])


def capped_shares(share: Floats, total: float) -> Floats:
    """Return probabilities proportional to shares, none above 1, that add up to a total, shape (n,).

    Parameters
    ----------
    share
        Nonnegative shares, more of them positive than the total, shape (n,).
    total
        What probabilities add up to.
    """
    full = np.zeros(len(share), dtype=np.bool_)
    while True:
        rest = np.where(full, 0.0, share)
        probability = np.where(full, 1.0, rest * ((total - full.sum()) / rest.sum()))
        over = probability > 1.0
        if not over.any():
            return probability
        full |= over
