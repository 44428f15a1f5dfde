"""The exact FCFS queue with c servers, for services that are known when requests arrive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.errors import GeoEdgeError
from geoedge.streams import generator

__all__ = ["Marks", "fcfs_starts", "pop_root", "push", "replace_root", "simulate_waits"]

Floats = npt.NDArray[np.float64]
Marks = Callable[[np.random.Generator, int], npt.ArrayLike]
"""Service times over their mean, shape (n,), from a random generator and their number n."""


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


def simulate_waits(
    arrival_rate: float,
    service_rate: float,
    concurrency: int,
    customers: int,
    rng: np.random.Generator | int,
    *,
    marks: Marks | None = None,
    warm_up: int | None = None,
) -> Floats:
    """Return the waits of Poisson arrivals at one site by events, the twin of Eqs. (18)–(20), as in Figure 5.

    Waits follow each other in order of arrival and depend on each other: errors are those of batch means
    (`geoedge.theory.mean_and_error`), or of independent runs.

    Parameters
    ----------
    arrival_rate
        Arrival rate λ [1/s], positive.
    service_rate
        Rate μ of one server [1/s], positive.
    concurrency
        Number of servers c, with λ < cμ.
    customers
        Number of waits to return.
    rng
        Random generator, or a seed.
    marks
        Draws service times over their mean 1/μ; exponential if omitted, which makes the queue M/M/c.
    warm_up
        Customers served before from an empty site on, which do not count; a tenth of the customers if omitted.

    Returns
    -------
    numpy.ndarray
        Waits [s], shape (customers,).

    Raises
    ------
    GeoEdgeError
        If a rate or number is out of its range, the queue has no stationary state, or a service is negative.
    """
    cut = customers // 10 if warm_up is None else warm_up
    if not (0.0 < arrival_rate < np.inf and 0.0 < service_rate < np.inf):
        msg = f"`arrival_rate` {arrival_rate} and `service_rate` {service_rate} must be positive and finite [1/s]"
        raise GeoEdgeError(msg)
    if customers < 1 or cut < 0:
        msg = f"`customers` {customers} and `warm_up` {cut} must be at least 1 and 0 requests"
        raise GeoEdgeError(msg)
    if arrival_rate >= concurrency * service_rate:
        msg = (
            f"`arrival_rate` {arrival_rate} must be below the {concurrency * service_rate} /s that {concurrency} "
            "servers can do; a fuller queue grows for ever"
        )
        raise GeoEdgeError(msg)
    rng = generator(rng)
    arrival = np.cumsum(rng.standard_exponential(cut + customers)) / arrival_rate
    drawn = rng.standard_exponential(arrival.size) if marks is None else np.asarray(marks(rng, arrival.size))
    return (fcfs_starts(arrival, drawn / service_rate, concurrency) - arrival)[cut:]
