"""What wait models have in common that know no unit: all that matters is the load in servers and the concurrency.

Such a queue is given by its wait curve, the mean wait in mean service times, and by the tail of its wait on the same
clock. From these two `ScaleFreeQueue` makes a `WaitModel`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.compiled import kernel
from geoedge.errors import GeoEdgeError
from geoedge.theory.queueing import load_and_servers, probabilities, rates_and_servers, times

__all__ = ["RatioCurves", "ScaleFreeQueue", "load_by_load"]

FloatArray = NDArray[np.float64]

_TINY = 1e-100  # a load that is as good as none, and whose square is still a number
_FURTHEST = 230.0  # log of the largest ratio between a load and its slack
_STEPS = 200
_DEGREES = (16, 24, 32, 48, 72, 96, 160)


class ScaleFreeQueue(ABC):
    """A `WaitModel` made of a wait curve and a tail without units."""

    @abstractmethod
    def _curve(
        self, load: FloatArray, servers: FloatArray, slack: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the log of the mean wait in services, and its derivative by the log of the load, for 0 < a < c."""

    @abstractmethod
    def _tail(self, time: FloatArray, load: FloatArray, servers: FloatArray) -> FloatArray:
        """Return the probability to wait longer than a time ≥ 0 in services, for 0 < a < c."""

    def normalised_wait_and_slope(
        self, offered_load: ArrayLike, concurrency: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean wait in mean service times and its derivative by the load, infinite where a ≥ c.

        Parameters
        ----------
        offered_load
            Offered load a [servers], nonnegative, any shape.
        concurrency
            Number of servers c, positive integers, broadcast against `offered_load`.
        """
        load, servers = load_and_servers(offered_load, concurrency)
        inside = load < servers
        safe = np.where(inside, np.maximum(load, _TINY), 0.5 * servers)
        log_wait, elasticity = self._curve(safe, servers, servers - safe)
        slope = np.exp(log_wait - np.log(safe)) * elasticity
        wait = np.where(load > 0.0, np.exp(log_wait), 0.0)
        return np.where(inside, wait, np.inf)[()], np.where(inside, slope, np.inf)[()]

    def mean_wait(
        self, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the mean wait [s], infinite where the load reaches the concurrency.

        Parameters
        ----------
        arrival_rate
            Arrival rate λ [1/s], nonnegative, any shape.
        service_rate
            Rate μ of one server [1/s], positive.
        concurrency
            Number of servers c, positive integers.
        """
        arrivals, service, servers = rates_and_servers(arrival_rate, service_rate, concurrency)
        return np.asarray(self.normalised_wait_and_slope(arrivals / service, servers)[0] / service)[()]

    def wait_cdf(
        self, time: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the probability to wait at most `time` [s], with an atom at zero; 0 everywhere where a ≥ c.

        Parameters
        ----------
        time
            Waits w [s], any shape.
        arrival_rate, service_rate, concurrency
            As in `mean_wait`, broadcast against `time`.
        """
        waits = times(time)
        arrivals, service, servers = rates_and_servers(arrival_rate, service_rate, concurrency)
        load, servers = load_and_servers(arrivals / service, servers)
        alive = load < servers
        safe = np.where(alive, np.maximum(load, _TINY), 0.5 * servers)
        # inf times a rate stays inf, and no tail is asked for times below zero
        over = self._tail(np.maximum(waits, 0.0) * service, safe, servers)
        within = np.where(load > 0.0, 1.0 - over, 1.0)
        return np.where((waits < 0.0) | ~alive, 0.0, within)[()]

    def wait_quantile(
        self, probability: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the least wait [s] that is kept with this probability; infinite at 1 or where a ≥ c.

        Parameters
        ----------
        probability
            Probabilities in [0, 1], any shape.
        arrival_rate, service_rate, concurrency
            As in `mean_wait`, broadcast against `probability`.
        """
        level = probabilities(probability)
        arrivals, service, servers = rates_and_servers(arrival_rate, service_rate, concurrency)
        load, servers = load_and_servers(arrivals / service, servers)
        alive = load < servers
        safe = np.where(alive, np.maximum(load, _TINY), 0.5 * servers)
        shape = np.broadcast_shapes(level.shape, safe.shape)
        exceeded = np.broadcast_to(1.0 - level, shape)
        open_ended = (exceeded <= 0.0) | ~np.broadcast_to(alive, shape)
        asked = np.where(open_ended, 1.0, exceeded)
        delayed = self._tail(np.zeros(()), safe, servers)
        waits = np.where(
            asked < np.where(load > 0.0, delayed, 0.0), self._exceeded(asked, safe, servers), 0.0
        )
        return np.where(open_ended & (level > 0.0), np.inf, waits / service)[()]

    def offered_load_for_wait(self, wait: ArrayLike, concurrency: ArrayLike) -> FloatArray:
        """Return the load [servers] at which the normalised wait has this value, in [0, c].

        Parameters
        ----------
        wait
            Mean wait in mean service times, nonnegative, any shape; infinite gives c.
        concurrency
            Number of servers c, positive integers, broadcast against `wait`.
        """
        waits, servers = load_and_servers(wait, concurrency, name="wait")
        inside = (waits > 0.0) & np.isfinite(waits)
        load = _invert(self._curve, np.where(inside, waits, 1.0), servers)
        return np.where(inside, load, np.where(waits > 0.0, servers, 0.0))[()]

    def _exceeded(self, probability: FloatArray, load: FloatArray, servers: FloatArray) -> FloatArray:
        """Return the time in services that is exceeded with a probability, where some wait that long."""
        log_wait, _ = self._curve(load, servers, servers - load)
        delayed = self._tail(np.zeros(()), load, servers)
        scale = np.broadcast_to(np.exp(log_wait) / delayed, probability.shape)
        asked = np.minimum(probability, delayed)
        low, high = np.zeros(probability.shape), 1.0 * scale
        for _ in range(_STEPS):
            short = self._tail(high, load, servers) > asked
            if not short.any():
                break
            low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
        for _ in range(_STEPS):
            middle = 0.5 * (low + high)
            short = self._tail(middle, load, servers) > asked
            low, high = np.where(short, middle, low), np.where(short, high, middle)
            if ((high - low) <= 1e-13 * high).all():
                break
        return high


def _invert(
    curve: Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    wait: FloatArray,
    servers: FloatArray,
) -> FloatArray:
    """Solve for the load of positive finite waits: Newton on log h against log a/(c − a), inside a bracket."""
    target = np.log(wait)
    theta = np.log(np.maximum(servers * wait - 1.0, 1.0 / servers))
    low, high = np.full_like(target, -_FURTHEST), np.full_like(target, _FURTHEST)
    for _ in range(_STEPS):
        odds = np.exp(theta)
        slack = servers / (1.0 + odds)
        log_wait, elasticity = curve(np.maximum(odds * slack, _TINY), servers, slack)
        miss = target - log_wait
        low, high = np.where(miss > 0.0, theta, low), np.where(miss < 0.0, theta, high)
        step = miss * (1.0 + odds) / elasticity
        after = theta + step
        settled = np.abs(step) <= 1e-9 + 1e-15 * odds
        astray = ~(settled | ((after > low) & (after < high)))
        theta = np.where(astray, 0.5 * (low + high), np.clip(after, -_FURTHEST, _FURTHEST))
        if settled.all():
            break
    odds = np.exp(theta)
    return np.asarray(servers * (odds / (1.0 + odds)))


def load_by_load(
    one: Callable[[FloatArray, float, int], FloatArray],
    time: FloatArray,
    load: FloatArray,
    servers: FloatArray,
) -> FloatArray:
    """Return a function of times at one load and concurrency for all of them, each pair prepared once.

    Parameters
    ----------
    one
        The function, of times, a load and a concurrency.
    time, load, servers
        Where it is wanted, to be broadcast against each other.
    """
    if load.size == 1:
        return one(time, load.item(), int(servers.item()))
    times, loads, c = np.broadcast_arrays(time, load, servers)
    found = np.empty(times.shape)
    pairs, which = np.unique(np.stack([loads.ravel(), c.ravel()]), axis=1, return_inverse=True)
    for k, (a, count) in enumerate(pairs.T):
        mine = (which.reshape(-1) == k).reshape(times.shape)
        found[mine] = one(times[mine], float(a), int(count))
    return found


class RatioCurves:
    """The log of a smooth positive function of the utilisation, one for each concurrency, fitted when first asked for.

    Parameters
    ----------
    log_ratio
        The function to fit, of a utilisation and a concurrency.
    span
        Lowest and highest utilisation to fit between, by concurrency; the fit is continued as a constant below and
        as it is above.
    accuracy
        Size of the last coefficients of a fit that is good enough.
    """

    def __init__(
        self,
        log_ratio: Callable[[float, int], float],
        span: Callable[[int], tuple[float, float]],
        accuracy: float,
    ) -> None:
        self._log_ratio, self._span, self._accuracy = log_ratio, span, accuracy
        self._row: dict[float, int] = {}
        self._table = np.zeros((0, _DEGREES[-1]))
        self._ends = np.zeros((0, 2))

    def __call__(self, utilization: FloatArray, servers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log and its derivative by the utilisation.

        Parameters
        ----------
        utilization
            ρ in [0, 1].
        servers
            Concurrency, whole numbers of the same shape.
        """
        asked = servers.ravel().tolist()
        for c in sorted(set(asked) - self._row.keys()):
            self._add(int(c))
        row = np.array([self._row[c] for c in asked], dtype=np.int64)
        flat = np.ascontiguousarray(utilization, dtype=np.float64).ravel()
        value, slope = _chebyshev(flat, row, self._table, self._ends)
        return value.reshape(utilization.shape), slope.reshape(utilization.shape)

    def _add(self, servers: int) -> None:
        """Fit one concurrency, by as many Chebyshev polynomials as it takes."""
        low, high = self._span(servers)
        for degree in _DEGREES:
            node = np.cos(np.pi * (np.arange(degree) + 0.5) / degree)
            place = low + (node + 1.0) * 0.5 * (high - low)
            value = np.array([self._log_ratio(float(rho), servers) for rho in place])
            fit = 2.0 / degree * np.cos(np.outer(np.arange(degree), np.arccos(node))) @ value
            fit[0] /= 2.0
            if np.abs(fit[-3:]).max() <= self._accuracy * max(1.0, float(np.abs(fit).max())):
                break
        else:
            msg = f"queues: the wait curve of {servers} servers needs more than {degree} polynomials"
            raise GeoEdgeError(msg)
        self._row[float(servers)] = len(self._table)
        self._table = np.vstack([self._table, np.pad(fit, (0, _DEGREES[-1] - degree))])
        self._ends = np.vstack([self._ends, [low, high]])


@kernel
def _chebyshev(
    place: FloatArray, row: NDArray[np.int64], table: FloatArray, ends: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return sums of Chebyshev polynomials, one row of coefficients each, and their derivatives (Clenshaw)."""
    value, slope = np.empty(place.size), np.empty(place.size)
    for i in range(place.size):
        low, high = ends[row[i], 0], ends[row[i], 1]
        fit = table[row[i]]
        x = 2.0 * (max(place[i], low) - low) / (high - low) - 1.0
        last = fit.size - 1
        while last > 0 and fit[last] == 0.0:
            last -= 1
        b1, b2, d1, d2 = 0.0, 0.0, 0.0, 0.0
        for k in range(last, 0, -1):
            d1, d2 = 2.0 * b1 + 2.0 * x * d1 - d2, d1
            b1, b2 = fit[k] + 2.0 * x * b1 - b2, b1
        value[i] = fit[0] + x * b1 - b2
        slope[i] = 0.0 if place[i] < low else (b1 + x * d1 - d2) * 2.0 / (high - low)
    return value, slope
