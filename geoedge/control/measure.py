"""Measuring: the demand of the time just past, from the requests that were seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geoedge.city.demand import Demand
from geoedge.errors import GeoEdgeError

__all__ = ["measure_demand"]


def measure_demand(
    xy_m: NDArray[np.float64],
    request_type: NDArray[np.integer],
    n_types: int,
    duration_s: float,
    cell_m: float,
) -> Demand:
    """Return the demand that requests make known, on a raster.

    Parameters
    ----------
    xy_m
        Where each request was made [m], shape (m, 2).
    request_type
        Its type, shape (m,).
    n_types
        Number of types Q.
    duration_s
        How long requests were watched [s].
    cell_m
        Side of a cell [m]; cells stand at its multiples.

    Raises
    ------
    GeoEdgeError
        If nothing was seen, or the time is not positive.
    """
    if not len(xy_m) or not duration_s > 0:
        msg = f"control: no demand can be measured from {len(xy_m)} requests in {duration_s} s; make epochs longer"
        raise GeoEdgeError(msg)
    cell = np.floor(xy_m / cell_m).astype(np.int64)
    low, rows = cell.min(axis=0), int(np.ptp(cell[:, 1])) + 1
    packed = (cell[:, 0] - low[0]) * rows + cell[:, 1] - low[1]
    kept, place = np.unique(packed, return_inverse=True)
    cells = np.column_stack(np.divmod(kept, rows)) + low
    key = place.reshape(-1) * n_types + np.asarray(request_type, dtype=np.int64)
    count = np.bincount(key, minlength=len(cells) * n_types).reshape(len(cells), n_types)
    centre = np.asarray((cells + 0.5) * cell_m, dtype=np.float64)
    return Demand(centre, np.asarray(count / duration_s, dtype=np.float64), cell_m)
