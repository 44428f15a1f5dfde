"""The plain peer of theory: Eqs. (25), (33–36), (39) and (42) by `scipy.integrate.quad` over distance.

It is what a careful user writes from the equations as they stand: one integral over r for each tier and type, cut
where the integrand has vanished and split at its kinks, Erlang's C by the recursion, and damped iteration. Nothing
of geoedge is used but `TieredNetwork` as a bag of numbers, so that it is an oracle as well as a peer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad

from geoedge.theory import TieredNetwork

__all__ = ["FixedPoint", "association", "coverage", "fixed_point", "mean_ttft", "queues"]

FloatArray = NDArray[np.float64]

NOTHING_LEFT = 45.0  # exp(-45): the mean number of nearer sites beyond which a tier serves nobody


class FixedPoint(NamedTuple):
    """What damped iteration ends with."""

    wait: FloatArray
    """Advertised waits [s], shape (S,)."""
    residual: float
    """Largest difference between an advertised wait and the wait it causes [s]."""
    iterations: int
    """Maps W → Q(A(W)) evaluated."""


def serving_integral(
    network: TieredNetwork, offset: FloatArray, s: int, weigh: Callable[[float], float], limit: float = np.inf
) -> float:
    """Return ∫ weigh(r) f_sel(r) dr of tier s up to a distance, Eqs. (24)–(26), for the offsets of one type."""
    alpha = network.delay_exponent
    power = 2.0 / alpha
    rates = (math.pi * network.tier_density).tolist()
    gaps = ((offset[s] - offset) / network.delay_coefficient).tolist()
    if rates[s] == 0.0 or limit <= 0.0:
        return 0.0

    def nearer(r: float) -> float:
        raised = r**alpha
        return sum(rate * max(raised + gap, 0.0) ** power for rate, gap in zip(rates, gaps, strict=True))

    def integrand(r: float) -> float:
        return weigh(r) * 2.0 * rates[s] * r * math.exp(-nearer(r))

    end = min(limit, math.sqrt(NOTHING_LEFT / rates[s]))
    while nearer(0.5 * end) > NOTHING_LEFT:
        end *= 0.5
    kinks = sorted({(-gap) ** (1.0 / alpha) for gap in gaps if gap < 0.0})
    ends = [0.0, *(kink for kink in kinks if kink < end), end]
    pieces = itertools.pairwise(ends)
    return sum(quad(integrand, low, high, epsabs=1e-12, epsrel=1e-10, limit=200)[0] for low, high in pieces)


def association(network: TieredNetwork, wait: FloatArray, types: int | None = None) -> FloatArray:
    """Return the association probabilities at given waits, Eq. (25), of the first types or all, shape (S, Q)."""
    offsets = network.prefill_time + wait[:, None]
    count = network.types if types is None else types
    return np.array(
        [
            [serving_integral(network, offsets[:, q], s, lambda r: 1.0) for q in range(count)]
            for s in range(network.tiers)
        ]
    )


def erlang_c(load: float, servers: int) -> float:
    """Return the probability of having to wait, by the recursion of Eq. (18)."""
    blocked = 1.0
    for k in range(1, servers + 1):
        blocked = load * blocked / (k + load * blocked)
    return servers * blocked / (servers - load + load * blocked)


def queues(network: TieredNetwork, served: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean waits [s], chances to wait and drain rates [1/s] of an association, Eqs. (15)–(20).

    An overloaded tier waits for ever: infinite wait, and a drain rate of zero.
    """
    wait, delayed, drain = np.zeros(network.tiers), np.zeros(network.tiers), np.zeros(network.tiers)
    for s in range(network.tiers):
        weights = network.type_probability * served[s]
        if network.tier_density[s] == 0.0 or weights.sum() == 0.0:
            drain[s] = network.concurrency[s] / network.occupancy_time[s].max()
            continue
        arrivals = network.request_intensity * weights.sum() / network.tier_density[s]
        service = weights.sum() / (weights @ network.occupancy_time[s])
        load, servers = arrivals / service, int(network.concurrency[s])
        if load >= servers:
            wait[s], delayed[s] = np.inf, 1.0
            continue
        delayed[s] = erlang_c(load, servers)
        drain[s] = servers * service - arrivals
        wait[s] = delayed[s] / drain[s]
    return wait, delayed, drain


def fixed_point(
    network: TieredNetwork, damping: float = 0.3, *, tolerance: float = 1e-8, iterations: int = 200
) -> FixedPoint:
    """Return the damped fixed point of Eqs. (33)–(36) from zero waits, stopped on its residual.

    An overload on the way has no wait to step to, so that the iteration stops there with an infinite residual.
    """
    wait = np.zeros(network.tiers)
    for count in range(1, iterations + 1):
        caused, _, _ = queues(network, association(network, wait))
        residual = float(np.abs(caused - wait).max())
        if not math.isfinite(residual) or residual <= tolerance:
            return FixedPoint(wait, residual, count)
        wait = wait + damping * (caused - wait)
    return FixedPoint(wait, residual, iterations)


def coverage(network: TieredNetwork, wait: FloatArray, tau: float) -> float:
    """Return the TTFT coverage at given advertised waits, Eq. (39)."""
    _, delayed, drain = queues(network, association(network, wait))
    total = 0.0
    for q, probability in enumerate(network.type_probability):
        offset = network.prefill_time[:, q] + wait
        for s in range(network.tiers):
            spare = tau - network.prefill_time[s, q]
            if spare <= 0.0 or drain[s] == 0.0:
                continue

            def in_time(r: float, s: int = s, spare: float = spare) -> float:
                left = max(spare - network.delay_coefficient * r**network.delay_exponent, 0.0)
                return float(1.0 - delayed[s] * math.exp(-drain[s] * left))

            farthest = (spare / network.delay_coefficient) ** (1.0 / network.delay_exponent)
            total += probability * serving_integral(network, offset, s, in_time, farthest)
    return float(total)


def mean_ttft(network: TieredNetwork, wait: FloatArray) -> float:
    """Return the mean time to first token at given advertised waits [s], Eq. (42)."""
    served = association(network, wait)
    caused, _, _ = queues(network, served)
    total = float(network.type_probability @ (served * (network.prefill_time + caused[:, None])).sum(axis=0))
    for q, probability in enumerate(network.type_probability):
        offset = network.prefill_time[:, q] + wait
        for s in range(network.tiers):

            def radio(r: float) -> float:
                return network.delay_coefficient * float(r) ** network.delay_exponent

            total += probability * serving_integral(network, offset, s, radio)
    return float(total)
