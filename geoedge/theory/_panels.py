"""Panels over the cost level between one offset and the next: nodes, and how far Λ rises over them.

Each panel starts at a kink of Λ. Its first nodes follow x = h u^{Pα/2} with P the least whole number that makes the
power of u at least four, so that x^{2/α} is the polynomial u^P; they reach to some distances of the offset below.
From there Gauss-Legendre panels in log x follow, where all singular points of the integrand lie π or more off the
line. Measured against panels halved up to 960 times towards every kink: 2e-12 at worst, 1e-14 mostly, for exponents
from 1 to 16, offsets that differ by 10 to 1e-20, and tiers of density 1e-9.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel
from geoedge.theory._powers import exponential, power

__all__ = [
    "CUT",
    "DEAD_LEVEL",
    "MOST_NODES",
    "NARROWEST",
    "Tables",
    "cut_off",
    "fill_nodes",
    "fill_rates",
    "rise_above",
    "sort_ranks",
    "tables",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Tables = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]

_ROOT_NODES, _SHORT_NODES, _LOG_NODES = 24, 8, 16  # multiples of what vector instructions take at once
_ROOT_POWER = 8.0  # least power of u that x**2 becomes
_ROOT_REACH = 8.0  # distances of the offset below that the first nodes may span
_SHORT_WIDTH, _LOG_WIDTH = 1.3, 5.0  # widths in log x that the short and the full panel integrate to 1e-11
_STEEP_RISE = 8.0  # rise of Λ from which the upper end of a panel has a panel of its own,
_STEEP_WIDTH = 2.0  # as wide as this in log x
CUT = 40.0  # mass beyond exp(-40) of a panel's start is left out
_FLOOR_MASS = 1e-7  # share of a panel that may lie inside its first nodes with near-ties unresolved
DEAD_LEVEL = 700.0  # exp(-700): tiers that start beyond it serve nobody
NARROWEST = 1e-150  # panels up to this cost hold no mass, and powers of their nodes would underflow
_NO_MASS = 1e-16  # share of a panel that may be left out at its lower end
MOST_NODES = 1024  # what the two panels of α = 16 need at most, and more than any other


@lru_cache(maxsize=64)
def tables(delay_exponent: float) -> Tables:
    """Return nodes and weights on [0, 1] of the root panel x = u^{Pα/2}, of a short and of a full log panel."""
    node, weight = _gauss(_ROOT_NODES)
    raised = 0.5 * np.ceil(_ROOT_POWER / delay_exponent) * delay_exponent
    return (
        node**raised,
        weight * raised * node ** (raised - 1.0),
        *_gauss(_SHORT_NODES),
        *_gauss(_LOG_NODES),
    )


def _gauss(count: int) -> tuple[FloatArray, FloatArray]:
    """Return the Gauss-Legendre rule on [0, 1]."""
    node, weight = np.polynomial.legendre.leggauss(count)
    return 0.5 * (node + 1.0), 0.5 * weight


@kernel
def _log_panels(
    low: float, high: float, widest: float, rule: Tables, x: FloatArray, weight: FloatArray, count: int
) -> int:
    """Append nodes over [low, high] in log x; return the new count."""
    width = np.log(high / low)
    pieces = int(np.ceil(width / widest))
    width /= pieces
    node, share = (rule[2], rule[3]) if width <= _SHORT_WIDTH * widest / _LOG_WIDTH else (rule[4], rule[5])
    for piece in range(pieces):
        for j in range(node.size):
            x[count + j] = low * exponential(width * (piece + node[j]))
            weight[count + j] = x[count + j] * width * share[j]
        count += node.size
    return count


@kernel
def fill_nodes(
    start: float,
    end: float,
    near: float,
    rise: float,
    mass: float,
    rule: Tables,
    x: FloatArray,
    weight: FloatArray,
) -> int:
    """Fill nodes over x in [start, end] above a kink whose next singular point lies at −near; return their count."""
    narrow = 1.0 / max(mass, 1.0)
    knee = end * np.exp(-_STEEP_WIDTH * narrow) if rise > _STEEP_RISE else end
    knee = end if start >= knee else knee
    count = 0
    if start == 0.0:
        start = min(knee, max(_ROOT_REACH * near, knee * _FLOOR_MASS ** (1.0 / mass)))
        count = rule[0].size
        for j in range(count):
            x[j] = start * rule[0][j]
            weight[j] = start * rule[1][j]
    start = max(start, end * _NO_MASS ** (1.0 / mass))
    if start < knee:
        count = _log_panels(start, knee, _LOG_WIDTH * narrow, rule, x, weight, count)
    if knee < end:
        count = _log_panels(knee, end, _LOG_WIDTH * narrow, rule, x, weight, count)
    return count


@kernel
def rise_above(
    x: float, gap: FloatArray, strength: FloatArray, level: float, active: int, mass: float
) -> float:
    """Return Λ at x above a kink, less its value `level` at the kink."""
    total = -level
    for t in range(active):
        total += strength[t] * power(x + gap[t], mass)
    return total


@kernel
def cut_off(
    start: float,
    end: float,
    gap: FloatArray,
    strength: FloatArray,
    level: float,
    active: int,
    mass: float,
) -> tuple[float, float]:
    """Return where to end a panel, so that what lies beyond is below e^{−40} of it, and the rise of Λ over it."""
    before = rise_above(start, gap, strength, level, active, mass) if start > 0.0 else 0.0
    if start == 0.0 and mass <= 1.0:  # (x + g)^m − g^m is at most x^m
        bound = strength[:active].sum() * end**mass
        if bound <= _STEEP_RISE:
            return end, bound
    if end < np.inf:
        rise = rise_above(end, gap, strength, level, active, mass) - before
        if rise <= 1.5 * CUT:
            return end, rise
    reach = end
    for t in range(active):
        if strength[t] > 0.0:
            alone = (CUT / strength[t] + (start + gap[t]) ** mass) ** (1.0 / mass) - gap[t]
            reach = min(reach, max(alone, start * (1.0 + 1e-12)))
    rise = rise_above(reach, gap, strength, level, active, mass) - before
    for _ in range(8):
        if rise <= 1.5 * CUT:
            break
        # Λ is no steeper than linear in x for mass <= 1, and then this never cuts too much
        reach = start + (reach - start) * (CUT / rise) ** (1.0 / max(mass, 1.0))
        rise = rise_above(reach, gap, strength, level, active, mass) - before
    return reach, rise


@kernel
def sort_ranks(ranks: IntArray, offset: FloatArray) -> None:
    """Sort ranks by offset, by insertion: they come sorted by the offsets of the type before."""
    for i in range(1, ranks.size):
        mine, j = ranks[i], i
        while j > 0 and offset[ranks[j - 1]] > offset[mine]:
            ranks[j] = ranks[j - 1]
            j -= 1
        ranks[j] = mine


@kernel
def fill_rates(
    x: FloatArray,
    count: int,
    gap: FloatArray,
    strength: FloatArray,
    active: int,
    mass: float,
    row: FloatArray,
    fall: FloatArray,
    rate: FloatArray,
) -> None:
    """Fill Λ of each node, shape (n,), and (x + gap)^{2/α−1} of each node and active tier, shape (n, S)."""
    for j in range(count):
        fall[j] = 0.0
    for t in range(active):
        far, strong = gap[t], strength[t]
        for j in range(count):
            row[j] = power(x[j] + far, mass)
        for j in range(count):
            fall[j] += strong * row[j]
        for j in range(count):
            rate[j, t] = np.divide(row[j], x[j] + far)
