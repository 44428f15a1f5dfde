"""Measuring: the demand of the time just past, from the requests that were seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.city.demand import Demand
from geoedge.errors import GeoEdgeError

__all__ = ["Seen", "Sources", "measure_demand"]


@dataclass(frozen=True, eq=False)
class Seen:
    """Requests of an epoch as routers saw them, as columns.

    Parameters
    ----------
    start_s, end_s
        The epoch [s since midnight].
    time_s
        When each was made [s since midnight], shape (m,).
    user
        By whom, shape (m,).
    request_type
        Of which type, shape (m,).
    xy_m
        Where [m], shape (m, 2).
    """

    start_s: float
    end_s: float
    time_s: NDArray[np.float64]
    user: NDArray[np.integer]
    request_type: NDArray[np.integer]
    xy_m: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sources:
    """What forecasts are made from.

    Parameters
    ----------
    n_types
        Number of request types Q.
    cell_m
        Side of a cell of measured demand [m].
    expected
        Expected demand of each epoch.
    ask
        Tells what will really be asked in an epoch.
    """

    n_types: int
    cell_m: float
    expected: Sequence[Demand]
    ask: Callable[[int], Seen]

    def measured(self, seen: Seen) -> Demand | None:
        """Return the demand of an epoch; None if nothing was asked.

        Parameters
        ----------
        seen
            Its requests.
        """
        if not len(seen.time_s):
            return None
        return measure_demand(
            seen.xy_m, seen.request_type, self.n_types, seen.end_s - seen.start_s, self.cell_m
        )


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
