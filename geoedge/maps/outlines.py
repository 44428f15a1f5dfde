"""Geometry that maps share: streets as few long lines, and how long their scale bar is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoedge.city.names import RANKS
from geoedge.units import KM

if TYPE_CHECKING:
    from geoedge.city import StreetGraph
    from geoedge.city.names import StreetNames

__all__ = ["named_lines", "scale_bar", "street_lines"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAIN_ROAD_SPEED = 45 / 3.6
"""Streets on which one drives at least this fast [m/s] are drawn as main roads."""
FINEST_NAMED_M = 2.5
"""How far the line under a name may lie from its street at least [m]; letters stand no smoother on a finer one."""
SHORTEST_NAMED_M = 15.0
"""Pieces of a named street that are shorter have no room for a name at any zoom [m]."""
SAME_VERTEX_M = 0.1
"""Vertices this close are one vertex of the map [m]."""


def street_lines(streets: Mapping[str, StreetGraph], tolerance_m: float) -> tuple[list[Any], ...]:
    """Return the streets of each class of `RANKS` as long line strings, every piece once, as drawn: main roads last.

    Parameters
    ----------
    streets
        Street graphs by mode, ``"walk"`` and ``"drive"``, in one projected CRS.
    tolerance_m
        How far a simplified line may lie from the street [m].
    """
    pieces, ranks = [], []
    for mode, graph in streets.items():
        ends, edge = _pieces(graph)
        fast = graph.edge_speed[edge] >= MAIN_ROAD_SPEED
        pieces.append(ends)
        ranks.append(np.where(fast, 0, 1) if mode == "drive" else np.full(len(edge), 2, dtype=np.int64))
    if not pieces:
        return tuple([] for _ in RANKS)
    ends, rank = _once(np.concatenate(pieces), np.concatenate(ranks))
    return tuple(_joined(ends[rank == level], tolerance_m) for level in reversed(range(len(RANKS))))


def _pieces(graph: StreetGraph) -> tuple[Floats, Ints]:
    """Return the straight pieces of all edges, shape (k, 2, 2), and the edge that each belongs to."""
    xy, offset = graph.geometry_xy, graph.geometry_offset
    edge = np.repeat(np.arange(graph.edge_count), np.diff(offset))
    inside = edge[:-1] == edge[1:]
    return np.stack([xy[:-1][inside], xy[1:][inside]], axis=1), edge[:-1][inside]


def _once(ends: Floats, rank: Ints) -> tuple[Floats, Ints]:
    """Keep each piece once, whichever way and mode it was drawn in, with its weightiest class."""
    grid = np.rint(ends / SAME_VERTEX_M).astype(np.int64)
    backward = (grid[:, 0, 0] > grid[:, 1, 0]) | (
        (grid[:, 0, 0] == grid[:, 1, 0]) & (grid[:, 0, 1] > grid[:, 1, 1])
    )
    grid[backward] = grid[backward, ::-1]
    order = np.lexsort((rank, *grid.reshape(len(grid), 4).T))
    flat = grid[order].reshape(len(grid), 4)
    first = np.ones(len(flat), dtype=bool)
    first[1:] = np.any(flat[1:] != flat[:-1], axis=1)
    first &= np.any(flat[:, :2] != flat[:, 2:], axis=1)
    return np.asarray(flat[first].reshape(-1, 2, 2) * SAME_VERTEX_M, dtype=np.float64), rank[order][first]


def _joined(ends: Floats, tolerance_m: float) -> list[Any]:
    if not len(ends):
        return []
    merged = shapely.line_merge(shapely.multilinestrings(shapely.linestrings(ends)))
    return list(shapely.get_parts(shapely.simplify(merged, tolerance_m)))


def named_lines(names: StreetNames, tolerance_m: float, most: int) -> Iterator[tuple[str, int, list[Any]]]:
    """Yield the name of each street, its class, and its lines, as far as there is room for a name on them.

    Parameters
    ----------
    names
        Named streets of a city.
    tolerance_m
        How far a simplified line may lie from the street [m].
    most
        How many names at most; the weightiest stay.
    """
    lines = shapely.simplify(names.lines, max(tolerance_m, FINEST_NAMED_M))
    long = shapely.length(lines) >= SHORTEST_NAMED_M
    first = np.searchsorted(names.line_name, np.arange(min(len(names), most) + 1))
    for index, (start, stop) in enumerate(pairwise(first.tolist())):
        if long[start:stop].any():
            yield str(names.name[index]), int(names.rank[index]), list(lines[start:stop][long[start:stop]])


def scale_bar(longest_m: float) -> tuple[float, str]:
    """Return the largest of 1, 2 and 5 times a power of ten that is not longer than a length, and its words.

    Parameters
    ----------
    longest_m
        What a scale bar may take [m].

    Returns
    -------
    tuple
        Length of the bar [m], and what stands at it.
    """
    power = float(10.0 ** np.floor(np.log10(longest_m)))
    metres = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= longest_m)
    return metres, f"{metres / KM:g} km" if metres >= KM else f"{metres:g} m"
