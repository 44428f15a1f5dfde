"""Expected presence on a raster: buildings and destinations by their points, streets by their exact pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.streets import polyline_lengths
from geoedge.city.trips import ACTIVITIES, HOME, STREET
from geoedge.errors import ScenarioError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.presence import Presence
    from geoedge.city.streets import StreetGraph

__all__ = ["presence_raster", "street_pieces"]


def presence_raster(presence: Presence, cell_m: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the centres of occupied cells [m], shape (n, 2), and a user's seconds there, shape (n, 4, P).

    Parameters
    ----------
    presence
        Expected time of a user at each place.
    cell_m
        Side of a cell [m]; cells stand at its multiples.

    Raises
    ------
    ScenarioError
        If `cell_m` is not positive.
    """
    if not 0.0 < cell_m < np.inf:
        msg = f"`cell_m` = {cell_m}: must be a positive number of metres"
        raise ScenarioError(msg)
    from scipy.sparse import csr_array

    mobility = presence.mobility
    part, street, share = street_pieces(mobility.routes.streets, presence.part_offset, cell_m)
    home, place = (_cells(points, cell_m) for points in (mobility.home_xy, mobility.destination_xy))
    cells, cell = _distinct(np.concatenate([home, place, street]))
    at_home, at_place, on_street = np.split(cell, [len(home), len(home) + len(place)])
    spent = np.zeros((len(cells), len(ACTIVITIES), len(presence.piece_start)))
    np.add.at(spent[:, HOME], at_home, presence.home_s)
    np.add.at(spent, (at_place, mobility.destination_activity), presence.place_s)
    pieces = csr_array((share, (on_street, part)), shape=(len(cells), len(presence.street_s)))
    spent[:, STREET] = np.asarray(pieces @ presence.street_s)
    return np.asarray((cells + 0.5) * cell_m, dtype=np.float64), spent


def street_pieces(
    streets: StreetGraph, part_offset: NDArray[np.int64], cell_m: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Cut the equal parts of edges at cell borders.

    Returns for each piece its part, shape (m,), its cell by column and row, shape (m, 2), and its share of the
    part's length, shape (m,).

    Parameters
    ----------
    streets
        Streets with E edges.
    part_offset
        Where the parts of each edge begin, shape (E + 1,).
    cell_m
        Side of a cell [m]; cells stand at its multiples.
    """
    offset, xy = streets.geometry_offset, streets.geometry_xy
    parts = np.diff(part_offset)
    part_m = polyline_lengths(offset, xy) / parts
    edge = np.repeat(np.arange(len(parts)), np.diff(offset) - 1)
    first = np.delete(np.arange(len(xy)), offset[1:] - 1)
    start, step = xy[first], xy[first + 1] - xy[first]
    length = np.hypot(step[:, 0], step[:, 1])
    along = np.cumsum(length) - length
    along -= along[offset[edge] - edge]

    cuts = [
        (np.arange(len(edge)), np.zeros(len(edge))),
        _crossings(start[:, 0], step[:, 0], cell_m),
        _crossings(start[:, 1], step[:, 1], cell_m),
        _crossings(along, length, part_m[edge]),
    ]
    segment, begin = (np.concatenate(column) for column in zip(*cuts, strict=True))
    order = np.lexsort((begin, segment))
    segment, begin = segment[order], begin[order]
    end = np.append(begin[1:], 1.0)
    end[np.append(segment[1:] != segment[:-1], True)] = 1.0

    middle = 0.5 * (begin + end)
    owner, long = edge[segment], part_m[edge[segment]] > 0.0
    passed = np.divide(
        along[segment] + middle * length[segment], part_m[owner], out=np.zeros(len(owner)), where=long
    )
    share = np.divide((end - begin) * length[segment], part_m[owner], out=np.zeros(len(owner)), where=long)
    part = part_offset[owner] + np.minimum(passed.astype(np.int64), parts[owner] - 1)
    return part, _cells(start[segment] + middle[:, None] * step[segment], cell_m), share


def _crossings(
    start: NDArray[np.float64], step: NDArray[np.float64], spacing: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the segments that pass multiples of a spacing, and the share of the segment at which they do."""
    spacing = np.broadcast_to(np.asarray(spacing, dtype=np.float64), start.shape)
    moving = (step != 0.0) & (spacing > 0.0)
    scale = np.where(moving, spacing, 1.0)
    low = np.floor(np.minimum(start, start + step) / scale) + 1.0
    high = np.ceil(np.maximum(start, start + step) / scale) - 1.0
    count = np.where(moving, np.maximum(high - low + 1.0, 0.0), 0.0).astype(np.int64)
    segment = np.repeat(np.arange(len(start)), count)
    line = low[segment] + np.arange(len(segment)) - np.repeat(np.cumsum(count) - count, count)
    return segment, np.clip((line * scale[segment] - start[segment]) / step[segment], 0.0, 1.0)


def _distinct(cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct cells by column and row, shape (n, 2), and which of them each one is."""
    low = cells.min(axis=0)
    rows = int(np.ptp(cells[:, 1])) + 1
    key, index = np.unique((cells[:, 0] - low[0]) * rows + cells[:, 1] - low[1], return_inverse=True)
    return np.column_stack(np.divmod(key, rows)) + low, index


def _cells(xy: NDArray[np.float64], cell_m: float) -> NDArray[np.int64]:
    return np.floor(xy / cell_m).astype(np.int64)
