"""The M/M/c queue of `queueing` compiled, for the few tiers of a fixed point, where calls cost more than numbers.

B is a Poisson probability over a Poisson distribution function. The latter is one less the tail, whose terms fall
by a/(c + j) each: some 9 √c of them at most where a ≤ c, and the tail is below a half, so that no digit is lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel

__all__ = ["load_for_wait", "wait_and_slope"]

FloatArray = NDArray[np.float64]

_EXACT_SERVERS = 16  # log c! by its factors below, by Stirling's series from here on
_NO_TERM = 1e-17
_STEPS = 60
_SMALL_STEP = 1e-9  # Newton's step in log odds after which what is left is rounding


@kernel
def _log_weight(servers: float) -> float:
    """Return c log c − c − log c!, the part of log B that depends on c alone."""
    if servers < _EXACT_SERVERS:
        total = float(servers * np.log(servers) - servers)
        for k in range(2, int(servers) + 1):
            total -= float(np.log(float(k)))
        return total
    inverse = 1.0 / (servers * servers)
    series = 1 / 1260 - inverse * (1 / 1680 - inverse / 1188)
    series = (1 / 12 - inverse * (1 / 360 - inverse * series)) / servers
    return float(-series - 0.5 * np.log(2.0 * np.pi * servers))


@kernel
def _log_wait(load: float, slack: float, servers: float, weight: float) -> tuple[float, float]:
    """Return log h_c(a) and d log h / d log a for 0 < a < c, given c − a to its last digit."""
    log_utilization = np.log(load / servers) if load < 0.5 * servers else np.log1p(-slack / servers)
    probability = np.exp(weight + slack + servers * log_utilization)
    tail, term, k = 0.0, 1.0, servers
    while term > _NO_TERM * tail:
        k += 1.0
        term *= load / k
        tail += term
    share = 1.0 - probability * tail
    log_blocked = weight + slack + servers * log_utilization - np.log(share)
    blocked = probability / share
    mixed = slack + load * blocked
    elasticity = slack + load * ((1.0 - blocked) / mixed + 1.0 / slack)
    return log_blocked + np.log(servers / (mixed * slack)), elasticity


@kernel
def wait_and_slope(load: FloatArray, servers: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return h_c(a) and its derivative for 0 ≤ a < c, shape (S,); both infinite from a = c on."""
    wait, slope = np.zeros(load.size), np.zeros(load.size)
    for s in range(load.size):
        c = servers[s]
        if load[s] >= c:
            wait[s] = slope[s] = np.inf
        elif load[s] < 1e-300:
            slope[s] = 1.0 if c == 1.0 else 0.0
        else:
            log_wait, elasticity = _log_wait(load[s], c - load[s], c, _log_weight(c))
            wait[s], slope[s] = np.exp(log_wait), np.exp(log_wait - np.log(load[s])) * elasticity
    return wait, slope


@kernel
def load_for_wait(wait: FloatArray, servers: FloatArray) -> FloatArray:
    """Return the load whose normalised wait is the given one, in [0, c], shape (S,).

    Newton's method on log h against log a/(c − a), as `queueing.offered_load_for_wait` describes it.
    """
    load = np.zeros(wait.size)
    for s in range(wait.size):
        c = servers[s]
        if not wait[s] > 0.0:
            continue
        if wait[s] == np.inf:
            load[s] = c
            continue
        target, weight = np.log(wait[s]), _log_weight(c)
        odds = max(c * wait[s] - 1.0, 1.0 / c)
        for _ in range(_STEPS):
            slack = c / (1.0 + odds)
            log_wait, elasticity = _log_wait(odds * slack, slack, c, weight)
            step = (target - log_wait) * (1.0 + odds) / elasticity
            odds *= np.exp(min(max(step, -700.0), 20.0))
            if abs(step) <= _SMALL_STEP + 1e-15 * odds:
                break
        load[s] = c * (odds / (1.0 + odds))
    return load
