"""What lies beyond the city's edge: nothing, a ring of the like, or the opposite side.

Sites and people near the edge of a map look beyond it. **cut** leaves out what is there: only the city's sites serve,
and only its people ask. **buffer** lets a ring around the city take part, with the sites that stand there and demand
as dense as in the nearest part of the city; averages still count the city's requests alone. **torus** joins the
opposite sides of a rectangular city, as is usual for point processes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.field.problem import Demandlike
    from geoedge.sites.layout import Layout

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["EDGES", "Edged", "edged", "rectangle", "ring_demand"]

EDGES = ("cut", "buffer", "torus")
"""Treatments of the edge."""
NEAREST_CELLS = 25
"""Cells of land that the density at a place of the ring is the mean of."""
RECTANGULAR = 1e-6
"""Share of its bounding box that a rectangle may lack."""


@dataclass(frozen=True, eq=False)
class Edged:
    """Demand and sites that take part, and which of them are the city's.

    Parameters
    ----------
    xy
        Places [m], shape (n_points, 2).
    rate
        Requests of every place and type [1/s], shape (n_points, Q).
    cell_m
        Side of the cells that the places are centres of [m]; ``None`` for points.
    layout
        Sites, the city's first.
    counted
        Whether a place is the city's, shape (n_points,); ``None`` if all are.
    own_sites
        How many of the sites are the city's; ``None`` if all are.
    """

    xy: Floats
    rate: Floats
    cell_m: float | None
    layout: Layout
    counted: Bools | None = None
    own_sites: int | None = None


def edged(
    demand: Demandlike,
    layout: Layout,
    land: Any,
    edge: str,
    *,
    buffer_m: float = 0.0,
    ring: Layout | None = None,
) -> Edged:
    """Return who takes part under a treatment of the edge.

    Parameters
    ----------
    demand
        Demand of the city.
    layout
        Sites of the city.
    land
        The city's land, a (multi)polygon [m].
    edge
        One of `EDGES`.
    buffer_m
        Width of the ring of ``"buffer"`` [m].
    ring
        Sites in that ring.

    Raises
    ------
    GeoEdgeError
        If the treatment is unknown, a ring has no width or no sites, or a torus is asked of land that is no rectangle.
    """
    if edge == "cut":
        return Edged(demand.xy, demand.rate, demand.cell_m, layout)
    if edge == "torus":
        return _joined_sides(demand, layout, land)
    if edge != "buffer":
        msg = f"`edge` must be one of {', '.join(EDGES)}, not {edge!r}"
        raise GeoEdgeError(msg)
    if ring is None or not len(ring):
        msg = '`ring` must hold the sites around the city for edge = "buffer"; use "cut" where there are none'
        raise GeoEdgeError(msg)
    xy, rate = ring_demand(demand, land, buffer_m)
    return Edged(
        np.concatenate((demand.xy, xy)),
        np.concatenate((demand.rate, rate)),
        demand.cell_m,
        replace(
            layout,
            xy=np.concatenate((layout.xy, ring.xy)),
            profile=np.concatenate((layout.profile, ring.profile)),
            name=layout.name + ring.name,
            kind=layout.kind + ring.kind,
        ),
        np.arange(len(demand.xy) + len(xy)) < len(demand.xy),
        len(layout),
    )


def _joined_sides(demand: Demandlike, layout: Layout, land: Any) -> Edged:
    """Return demand and sites on the torus of a rectangular city."""
    corner, size = rectangle(land)
    moved = replace(layout, xy=layout.xy - corner, period_m=size)
    return Edged(np.mod(demand.xy - corner, size), demand.rate, demand.cell_m, moved)


def rectangle(land: Any) -> tuple[Floats, tuple[float, float]]:
    """Return the lower left corner and the sides of land whose opposite sides can be joined [m].

    Parameters
    ----------
    land
        A (multi)polygon [m].

    Raises
    ------
    GeoEdgeError
        If it is no upright rectangle.
    """
    west, south, east, north = land.bounds
    box = (east - west) * (north - south)
    if box - land.area > RECTANGULAR * box:
        msg = (
            f'edge = "torus": the land fills {land.area / box:.1%} of its bounding box, but only the sides of a '
            'rectangle can be joined; use "cut" or "buffer"'
        )
        raise GeoEdgeError(msg)
    return np.array([west, south]), (float(east - west), float(north - south))


def ring_demand(demand: Demandlike, land: Any, buffer_m: float) -> tuple[Floats, Floats]:
    """Return demand in a ring around land, as dense as in the nearest part of it.

    Every cell of the ring asks for the mean of the nearest cells of land, quiet ones among them. The ring knows no
    sea and no border.

    Parameters
    ----------
    demand
        Demand on a square lattice of cells.
    land
        The city's land [m]; its holes within reach are ring too.
    buffer_m
        Width of the ring [m].

    Returns
    -------
    xy, rate
        Cells [m], shape (m, 2), and their requests by type [1/s], shape (m, Q).

    Raises
    ------
    GeoEdgeError
        If the demand has no cells, or the ring is so narrow that it holds none.
    """
    from scipy.spatial import cKDTree

    cell = demand.cell_m
    if cell is None or not buffer_m > 0:
        msg = f'edge = "buffer" needs demand on cells and a width above 0 m, not cells of {cell} and {buffer_m} m'
        raise GeoEdgeError(msg)
    origin = demand.xy[0] % cell
    asking = _numbers(demand.xy, origin, cell)
    inside = np.unique(np.concatenate((asking, _cells_on(land, origin, cell))), axis=0)
    around = _cells_on(land.buffer(buffer_m).difference(land), origin, cell)
    known = {tuple(key) for key in inside.tolist()}
    around = around[np.array([tuple(key) not in known for key in around.tolist()], dtype=bool)]
    if not len(around):
        msg = f'edge = "buffer": a ring of {buffer_m:g} m holds no cell of {cell:g} m; make it wider'
        raise GeoEdgeError(msg)
    rate = np.zeros((len(inside), demand.rate.shape[1]))
    where = {tuple(key): k for k, key in enumerate(inside.tolist())}
    np.add.at(rate, [where[tuple(key)] for key in asking.tolist()], demand.rate)
    near = cKDTree(inside).query(around, k=min(NEAREST_CELLS, len(inside)))[1]
    return around * cell + origin, rate[near.reshape(len(around), -1)].mean(axis=1)


def _numbers(xy: Floats, origin: Floats, cell: float) -> Ints:
    """Return column and row of cells by their centres, shape (m, 2)."""
    return np.asarray(np.rint((xy - origin) / cell), dtype=np.int64)


def _cells_on(area: Any, origin: Floats, cell: float) -> Ints:
    """Return column and row of the cells with their centre in an area, shape (m, 2)."""
    import shapely

    west, south, east, north = area.bounds
    low = np.floor((np.array([west, south]) - origin) / cell).astype(np.int64)
    high = np.ceil((np.array([east, north]) - origin) / cell).astype(np.int64)
    grid = np.stack(np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True))), axis=-1)
    every = grid.reshape(-1, 2)
    return np.asarray(every[shapely.contains_xy(area, *(every * cell + origin).T)], dtype=np.int64)
