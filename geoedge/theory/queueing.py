"""The M/M/c queue and its inverse; other queues are in `geoedge.theory.queues`.

Everything is vectorised and broadcasts. A queue is described by its arrival rate λ [1/s], the service rate μ of
one server [1/s] and its concurrency c (servers), or without units by the offered load a = λ/μ [servers].
Its wait in mean service times is the normalised wait h_c(a) = C/(c − a) of Eqs. (18, 19), so that W̄ = h_c(a)/μ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, gammaln

from geoedge.errors import GeoEdgeError
from geoedge.theory.protocols import WaitModel

__all__ = [
    "ErlangC",
    "WaitModel",
    "erlang_c",
    "mean_wait",
    "normalised_wait",
    "normalised_wait_and_slope",
    "offered_load_for_wait",
    "offered_load_slope",
    "wait_cdf",
    "wait_quantile",
]

FloatArray = NDArray[np.float64]

_FEW = np.arange(1.0, 16.0)
_STIRLING_ERROR = np.append(
    0.0, gammaln(_FEW + 1.0) - (_FEW + 0.5) * np.log(_FEW) + _FEW - 0.5 * np.log(2.0 * np.pi)
)
_TINY = np.finfo(np.float64).tiny
_SPLIT = 134217729.0  # 2**27 + 1, Dekker's constant: halves a double exactly


def erlang_c(offered_load: ArrayLike, concurrency: ArrayLike) -> FloatArray:
    """Return the probability that an arrival has to wait, Eq. (18).

    The blocking probability B is a Poisson probability over a Poisson tail, evaluated without factorials, which
    equals the recursion of Eq. (18) to 1e-12 for any concurrency up to 10,000 and costs no loop over servers.

    Parameters
    ----------
    offered_load
        Offered load a = λ/μ [servers], nonnegative, any shape.
    concurrency
        Number of servers c, positive integers, broadcast against `offered_load`.

    Returns
    -------
    FloatArray
        Erlang's C, in [0, 1]; 1 where a ≥ c, as every arrival then waits.

    Raises
    ------
    GeoEdgeError
        If a load is negative or NaN, or a concurrency is no positive integer.

    Examples
    --------
    >>> float(erlang_c(0.7, 1))  # one server: the probability that it is busy
    0.7
    """
    load, servers = load_and_servers(offered_load, concurrency)
    inside = np.minimum(load, servers)
    blocked = np.exp(_log_erlang_b(inside, servers, _log_of_servers(servers)))
    waits = servers * blocked / ((servers - inside) + inside * blocked)
    return np.where(load >= servers, 1.0, waits)[()]


def mean_wait(arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike) -> FloatArray:
    """Return the mean wait of all arrivals W̄ = C/(cμ − λ) [s], Eq. (19).

    Parameters
    ----------
    arrival_rate
        Arrival rate λ [1/s], nonnegative, any shape.
    service_rate
        Rate μ of one server [1/s], positive.
    concurrency
        Number of servers c, positive integers.

    Returns
    -------
    FloatArray
        Mean wait [s], infinite where λ ≥ cμ.

    Raises
    ------
    GeoEdgeError
        If a rate is negative or NaN, a service rate is not positive, or a concurrency is no positive integer.
    """
    delayed, drain = _delayed_and_drain(arrival_rate, service_rate, concurrency)
    with np.errstate(divide="ignore"):
        return np.where(drain > 0.0, delayed / np.maximum(drain, 0.0), np.inf)[()]


def wait_cdf(
    time: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
) -> FloatArray:
    """Return the distribution of the wait F_W(w) = 1 − C e^{−(cμ−λ)w}, Eq. (20).

    Parameters
    ----------
    time
        Waits w [s], any shape; the distribution has an atom 1 − C at zero and is 0 below it.
    arrival_rate, service_rate, concurrency
        As in `mean_wait`, broadcast against `time`.

    Returns
    -------
    FloatArray
        Probability to wait at most w; 0 everywhere for a queue with λ ≥ cμ.

    Raises
    ------
    GeoEdgeError
        As `mean_wait`, or if a time is NaN.
    """
    waits = times(time)
    delayed, drain = _delayed_and_drain(arrival_rate, service_rate, concurrency)
    alive = drain > 0.0
    exponent = np.where(alive, drain, 1.0) * np.maximum(waits, 0.0)
    # 1 - C e^{-x} = (1 - C) + C (1 - e^{-x}) keeps its digits where C is next to one
    reached = (1.0 - delayed) - delayed * np.expm1(-exponent)
    return np.where((waits < 0.0) | ~alive, 0.0, reached)[()]


def wait_quantile(
    probability: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
) -> FloatArray:
    """Return the least wait w with F_W(w) ≥ probability [s], the inverse of Eq. (20).

    Parameters
    ----------
    probability
        Probabilities in [0, 1], any shape.
    arrival_rate, service_rate, concurrency
        As in `mean_wait`, broadcast against `probability`.

    Returns
    -------
    FloatArray
        Quantile [s]; 0 up to the atom 1 − C, infinite at probability 1 or where λ ≥ cμ.

    Raises
    ------
    GeoEdgeError
        As `mean_wait`, or if a probability lies outside [0, 1].
    """
    level = probabilities(probability)
    delayed, drain = _delayed_and_drain(arrival_rate, service_rate, concurrency)
    alive = drain > 0.0
    with np.errstate(divide="ignore"):
        excess = np.log(np.maximum(delayed, _TINY)) - np.log(1.0 - level)
        quantile = np.maximum(excess, 0.0) / np.where(alive, drain, 1.0)
    quantile = np.where(level <= 1.0 - delayed, 0.0, quantile)
    return np.where(alive, quantile, np.where(level > 0.0, np.inf, 0.0))[()]


def normalised_wait(offered_load: ArrayLike, concurrency: ArrayLike) -> FloatArray:
    """Return the mean wait in mean service times h_c(a) = C/(c − a), Eq. (19) without units.

    Parameters
    ----------
    offered_load
        Offered load a [servers], nonnegative, any shape.
    concurrency
        Number of servers c, positive integers.

    Returns
    -------
    FloatArray
        W̄ μ, infinite where a ≥ c.

    Raises
    ------
    GeoEdgeError
        As `erlang_c`.
    """
    return normalised_wait_and_slope(offered_load, concurrency)[0]


def normalised_wait_and_slope(
    offered_load: ArrayLike, concurrency: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the normalised wait h_c(a) and its derivative dh_c/da [1/servers], both infinite where a ≥ c.

    Parameters
    ----------
    offered_load, concurrency
        As in `normalised_wait`.

    Raises
    ------
    GeoEdgeError
        As `erlang_c`.
    """
    load, servers = load_and_servers(offered_load, concurrency)
    inside = load < servers
    safe = np.where(inside, np.maximum(load, _TINY), 0.5 * servers)
    log_wait, elasticity = log_wait_and_elasticity(safe, servers, servers - safe)
    slope = np.exp(log_wait - np.log(safe)) * elasticity
    wait = np.where(load > 0.0, np.exp(log_wait), 0.0)
    return np.where(inside, wait, np.inf)[()], np.where(inside, slope, np.inf)[()]


def offered_load_for_wait(wait: ArrayLike, concurrency: ArrayLike) -> FloatArray:
    """Return the offered load whose normalised wait is the given one, a = h_c⁻¹(W̄ μ).

    This inverse is what equilibria are solved with: unlike the wait of a load, it is finite and smooth for
    every wait, also for one that only an overload would cause. Newton's method on log h_c against log a/(c − a),
    where it is increasing and flattens, comes from the left to the root without a bracket.

    Parameters
    ----------
    wait
        Mean wait in mean service times W̄ μ, nonnegative, any shape; infinite is allowed and gives a = c.
    concurrency
        Number of servers c, positive integers, broadcast against `wait`.

    Returns
    -------
    FloatArray
        Offered load a in [0, c] [servers], accurate to about 1e-13 c.

    Raises
    ------
    GeoEdgeError
        If a wait is negative or NaN, or a concurrency is no positive integer.

    Examples
    --------
    >>> round(float(offered_load_for_wait(1.0, 1)), 12)  # one server: h(a) = a/(1 - a)
    0.5
    """
    waits, servers = load_and_servers(wait, concurrency, name="wait")
    inside = (waits > 0.0) & np.isfinite(waits)
    load = _invert(np.where(inside, waits, 1.0), servers)
    return np.where(inside, load, np.where(waits > 0.0, servers, 0.0))[()]


def offered_load_slope(wait: ArrayLike, concurrency: ArrayLike) -> FloatArray:
    """Return the derivative of `offered_load_for_wait` [servers], infinite at a zero wait of c > 1 servers.

    Parameters
    ----------
    wait, concurrency
        As in `offered_load_for_wait`.

    Raises
    ------
    GeoEdgeError
        As `offered_load_for_wait`.
    """
    with np.errstate(divide="ignore"):
        load = offered_load_for_wait(wait, concurrency)
        return np.divide(1.0, normalised_wait_and_slope(load, concurrency)[1])[()]


@dataclass(frozen=True)
class ErlangC:
    """The M/M/c queue of Eqs. (18)–(20) as a `WaitModel`: the functions of this module under their own names."""

    mean_wait = staticmethod(mean_wait)
    wait_cdf = staticmethod(wait_cdf)
    wait_quantile = staticmethod(wait_quantile)
    normalised_wait_and_slope = staticmethod(normalised_wait_and_slope)
    offered_load_for_wait = staticmethod(offered_load_for_wait)


def load_and_servers(
    load: ArrayLike, concurrency: ArrayLike, name: str = "offered_load"
) -> tuple[FloatArray, FloatArray]:
    """Return both as broadcast float arrays, or say in one line what is wrong with them."""
    loads, servers = np.broadcast_arrays(
        np.asarray(load, dtype=np.float64), np.asarray(concurrency, dtype=np.float64)
    )
    require(bool((loads >= 0.0).all()), name, loads, "nonnegative numbers")
    whole = (servers >= 1.0) & (servers == np.rint(servers)) & np.isfinite(servers)
    require(bool(whole.all()), "concurrency", servers, "positive integers")
    return loads, servers


def require(fine: bool, name: str, value: FloatArray, allowed: str) -> None:
    """Raise the one-line error of an argument that is not as allowed."""
    if not fine:
        shown = np.array2string(value, threshold=8, separator=", ").replace("\n", "")
        msg = f"queueing: `{name}` must hold {allowed}, not {shown}"
        raise GeoEdgeError(msg)


def rates_and_servers(
    arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all three as float arrays, or say in one line what is wrong with the rates."""
    arrivals = np.asarray(arrival_rate, dtype=np.float64)
    service = np.asarray(service_rate, dtype=np.float64)
    require(bool(((arrivals >= 0.0) & np.isfinite(arrivals)).all()), "arrival_rate", arrivals, "rates >= 0")
    require(bool(((service > 0.0) & np.isfinite(service)).all()), "service_rate", service, "rates > 0")
    return arrivals, service, np.asarray(concurrency, dtype=np.float64)


def times(time: ArrayLike) -> FloatArray:
    """Return waits [s] as an array without NaN."""
    waits = np.asarray(time, dtype=np.float64)
    if np.isnan(waits).any():
        msg = "wait_cdf: `time` holds NaN; give waits in seconds"
        raise GeoEdgeError(msg)
    return waits


def probabilities(probability: ArrayLike) -> FloatArray:
    """Return probabilities as an array inside [0, 1]."""
    level = np.asarray(probability, dtype=np.float64)
    if not ((level >= 0.0) & (level <= 1.0)).all():
        msg = f"wait_quantile: `probability` must lie in [0, 1], not {level.tolist()}"
        raise GeoEdgeError(msg)
    return level


def _delayed_and_drain(
    arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return Erlang's C and the rate cμ − λ [1/s] at which a busy queue drains."""
    arrivals, service, servers = rates_and_servers(arrival_rate, service_rate, concurrency)
    return erlang_c(arrivals / service, servers), _exact_drain(servers, service, arrivals)


def _exact_drain(servers: FloatArray, service: FloatArray, arrivals: FloatArray) -> FloatArray:
    """Return cμ − λ with the rounding of the product cμ added back, as its digits are lost when ρ → 1."""
    product = servers * service
    folded = _SPLIT * service
    high = folded - (folded - service)
    low = service - high
    # c below 2**26 times either half is exact, so that what is left is the rounding of the product
    rounding = (servers * high - product) + servers * low
    return (product - arrivals) + rounding


def _log_of_servers(servers: FloatArray) -> FloatArray:
    """Return the part of log B that depends on c alone: −log √(2πc), less what Stirling's formula leaves of log c!."""
    inverse = 1.0 / (servers * servers)
    series = 1 / 1260 - inverse * (1 / 1680 - inverse / 1188)
    series = (1 / 12 - inverse * (1 / 360 - inverse * series)) / servers
    few = _STIRLING_ERROR[np.minimum(servers, 15.0).astype(np.int64)]
    return np.asarray(-np.where(servers < 16.0, few, series) - 0.5 * np.log(2.0 * np.pi * servers))


def _log_erlang_b(load: FloatArray, servers: FloatArray, of_servers: FloatArray) -> FloatArray:
    """Return log B for 0 ≤ a ≤ c: a Poisson probability in saddle-point form over the Poisson tail."""
    utilization = load / servers
    shortfall = (load - servers) / servers
    with np.errstate(divide="ignore"):
        # either logarithm keeps all digits of the load on its own side
        log_utilization = np.where(utilization < 0.5, np.log(utilization), np.log1p(shortfall))
    deviance = servers * (shortfall - log_utilization)
    return np.asarray(of_servers - deviance - np.log(gammaincc(servers + 1.0, load)))


def log_wait_and_elasticity(
    load: FloatArray, servers: FloatArray, slack: FloatArray, of_servers: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return log h_c(a) and d log h / d log a for 0 < a < c, given c − a to its last digit.

    `of_servers` is what depends on c alone, where it has been computed before.
    """
    log_blocked = _log_erlang_b(load, servers, _log_of_servers(servers) if of_servers is None else of_servers)
    blocked = np.exp(log_blocked)
    mixed = slack + load * blocked
    log_wait = log_blocked + np.log(servers / (mixed * slack))
    return log_wait, slack + load * ((1.0 - blocked) / mixed + 1.0 / slack)


def _invert(wait: FloatArray, servers: FloatArray) -> FloatArray:
    """Solve h_c(a) = wait for positive finite waits by Newton on log h against θ = log a/(c − a)."""
    target, of_servers = np.log(wait), _log_of_servers(servers)
    # C <= 1 puts the root above c - 1/wait; below that the light-load slope c carries the first step
    odds = np.maximum(servers * wait - 1.0, 1.0 / servers)
    for _ in range(60):
        slack = servers / (1.0 + odds)
        log_wait, elasticity = log_wait_and_elasticity(odds * slack, servers, slack, of_servers)
        step = (target - log_wait) * (1.0 + odds) / elasticity
        odds = odds * np.exp(np.minimum(np.maximum(step, -700.0), 20.0))
        # convergence is quadratic: what a step below 1e-9 leaves is rounding, which grows as c - a runs out of digits
        if bool((np.abs(step) <= 1e-9 + 1e-15 * odds).all()):
            break
    return np.asarray(servers * (odds / (1.0 + odds)))
