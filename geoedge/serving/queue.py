"""The exact FCFS queue with c servers, for services that are known when requests arrive."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.errors import GeoEdgeError

__all__ = ["fcfs_starts", "pop_root", "push", "replace_root"]

Floats = npt.NDArray[np.float64]


@inlined
def replace_root(heaps: Floats, i: int, size: int, value: float) -> None:
    """Put a value in the place of the least one of the i-th heap."""
    j, child = 0, 1
    while child < size:
        if child + 1 < size and heaps[i, child + 1] < heaps[i, child]:
            child += 1
        if heaps[i, child] >= value:
            break
        heaps[i, j] = heaps[i, child]
        j, child = child, 2 * child + 1
    heaps[i, j] = value


@inlined
def push(heaps: Floats, i: int, size: int, value: float) -> None:
    """Add a value to the i-th heap, which holds `size` values."""
    j = size
    while j > 0 and heaps[i, (j - 1) // 2] > value:
        heaps[i, j] = heaps[i, (j - 1) // 2]
        j = (j - 1) // 2
    heaps[i, j] = value


@inlined
def pop_root(heaps: Floats, i: int, size: int) -> None:
    """Remove the least of the `size` values of the i-th heap."""
    replace_root(heaps, i, size - 1, heaps[i, size - 1])


@kernel
def _starts(arrival: Floats, service: Floats, servers: int) -> Floats:
    free = np.full((1, servers), -np.inf)
    start = np.empty(arrival.size)
    for k in range(arrival.size):
        start[k] = max(arrival[k], free[0, 0])
        replace_root(free, 0, servers, start[k] + service[k])
    return start


def fcfs_starts(arrival_s: npt.ArrayLike, service_s: npt.ArrayLike, concurrency: int) -> Floats:
    """Return when each request starts at a site that is empty at first.

    First come, first served: request k starts when it has arrived and one of the servers is free of all
    requests before it (the recursion of Kiefer and Wolfowitz).

    Parameters
    ----------
    arrival_s
        Arrival times [s], nondecreasing, shape (m,).
    service_s
        Times for which a server is held [s], shape (m,).
    concurrency
        Number of servers c, at least 1.

    Returns
    -------
    numpy.ndarray
        Start times [s], shape (m,); the wait is this less the arrival time.

    Raises
    ------
    GeoEdgeError
        If arrivals are not sorted, a service is negative or not finite, or there is no server.

    Examples
    --------
    >>> fcfs_starts([0.0, 1.0, 2.0], [5.0, 5.0, 5.0], 2).tolist()
    [0.0, 1.0, 5.0]
    """
    arrival = np.ascontiguousarray(arrival_s, dtype=np.float64)
    service = np.ascontiguousarray(service_s, dtype=np.float64)
    if arrival.ndim != 1 or arrival.shape != service.shape:
        msg = f"`arrival_s` and `service_s` must be one column each of one length, not {arrival.shape}, {service.shape}"
        raise GeoEdgeError(msg)
    if not (np.isfinite(arrival).all() and (np.diff(arrival) >= 0).all()):
        msg = "`arrival_s` must be finite and nondecreasing; sort the requests by arrival"
        raise GeoEdgeError(msg)
    if not (np.isfinite(service).all() and (service >= 0).all()):
        msg = "`service_s` must be finite times >= 0 in s"
        raise GeoEdgeError(msg)
    if concurrency < 1:
        msg = f"`concurrency` must be at least 1 server, not {concurrency}"
        raise GeoEdgeError(msg)
    return _starts(arrival, service, int(concurrency))
