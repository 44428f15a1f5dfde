"""M/M/c in the time that it has: rates that change at given instants, from an empty queue on.

A queue at rest forgets where it came from; near capacity that takes longer than any epoch, and beyond it there is no
rest at all. The number of requests at a site is a birth–death process, whose law is followed here to 1e-10, with
nothing random in it.

References
----------
Grassmann, W. K. (1977). Transient solutions in Markovian queueing systems. Computers & Operations Research 4.
Morse, P. M. (1955). Stochastic properties of waiting lines. Journal of the Operations Research Society of America 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.theory._births_deaths import FAR, GONE, more_than_leave, passed
from geoedge.theory.queueing import load_and_servers, rates_and_servers, require

__all__ = ["relaxation_time", "transient_wait_tail"]

FloatArray = NDArray[np.float64]


def relaxation_time(arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike) -> FloatArray:
    """Return how long M/M/c takes to come to rest, 1/(√(cμ) − √λ)² or a service, whichever is longer [s].

    What is left of the start falls by a factor e in such a time, exactly for one server and near capacity for several.
    A load measured for so long by Poisson arrivals and exponential services is known to about 0.7 of what it leaves
    free, √(2aμ⁻¹/T)/(c − a) → 1/√2 for ρ → 1, so that a queue without time to come to rest has no known load either.

    Parameters
    ----------
    arrival_rate
        Arrival rate λ [1/s], nonnegative, any shape.
    service_rate
        Rate μ of one server [1/s], positive.
    concurrency
        Number of servers c, positive integers.

    Raises
    ------
    GeoEdgeError
        If a rate is negative or NaN, a service rate is not positive, or a concurrency is no positive integer.

    Examples
    --------
    >>> float(relaxation_time(0.25, 1.0, 1))
    4.0
    """
    arrivals, service, servers = rates_and_servers(arrival_rate, service_rate, concurrency)
    load_and_servers(arrivals / service, servers)
    with np.errstate(divide="ignore"):
        slow = 1.0 / np.maximum(np.sqrt(servers * service) - np.sqrt(arrivals), 0.0) ** 2
    return np.asarray(np.maximum(slow, 1.0 / service))[()]


def transient_wait_tail(
    time: ArrayLike,
    arrival_rate: ArrayLike,
    service_rate: ArrayLike,
    concurrency: ArrayLike,
    duration: ArrayLike,
) -> FloatArray:
    """Return the share of the arrivals of each stretch of time that wait longer than a time, from an empty M/M/c on.

    Rates and servers are constant within a stretch, and the queue that one leaves is the next one's to serve. Those who
    wait are served at the rate of the stretch in which they came.

    Parameters
    ----------
    time
        Waits w [s], shape (times,).
    arrival_rate, service_rate, concurrency
        As in `relaxation_time`, shape (stretches,).
    duration
        Length of each stretch [s], positive, shape (stretches,).

    Returns
    -------
    FloatArray
        Mean over the stretch of P(W > w), shape (stretches, times).

    Raises
    ------
    GeoEdgeError
        As `relaxation_time`, or if a time is NaN, or a duration not positive and finite.
    """
    given = np.asarray(time, dtype=np.float64)
    require(not np.isnan(given).any(), "time", given, "times without NaN")
    waits = np.maximum(given, 0.0)
    arrivals, service, servers = rates_and_servers(arrival_rate, service_rate, concurrency)
    load_and_servers(arrivals / service, servers)
    length = np.asarray(duration, dtype=np.float64)
    require(bool(((length > 0.0) & np.isfinite(length)).all()), "duration", length, "times > 0")
    stretches = np.broadcast_arrays(arrivals, service, servers, length)
    law = np.zeros(_room(*stretches) + 1)
    law[0] = 1.0
    tail = np.empty((len(stretches[0]), len(waits)))
    for k, (births, deaths, c, span) in enumerate(zip(*(each.tolist() for each in stretches), strict=True)):
        mean, _ = passed(law, births, deaths, int(c), span)
        tail[k] = _tail(mean[int(c) :], c * deaths * waits)
    return np.where(given < 0.0, 1.0, tail)


def _tail(queue: FloatArray, leaving: FloatArray) -> FloatArray:
    """Return how likely more stand before an arrival, itself included, than leave while it waits, by their mean number.

    Parameters
    ----------
    queue
        Probability that all servers are busy and so many wait.
    leaving
        Mean number of services that end in each time.
    """
    at_least = np.cumsum(queue[::-1])[::-1]
    return more_than_leave(at_least[: np.count_nonzero(at_least > GONE)], leaving)


def _room(arrivals: FloatArray, service: FloatArray, servers: FloatArray, length: FloatArray) -> int:
    """Return a number of requests at the site that is never reached: as a fluid would, and many deviations more."""
    queue = most = 0.0
    for growth in ((arrivals - servers * service) * length).tolist():
        queue = max(queue + growth, 0.0)
        most = max(most, queue)
    events = float(((arrivals + servers * service) * length).sum())
    return int(servers.max(initial=1.0) + most + FAR * np.sqrt(events)) + 20
