"""The compiled integrals of `association`: panels over the cost level between one offset and the next.

Each panel starts at a kink of Λ. Its first nodes follow x = h u^{2α}, which makes x^{2/α} a polynomial, up to the
distance of the offset below; from there Gauss-Legendre panels in log x follow, where all singular points of the
integrand lie π or more off the line. Measured against panels graded to 160 levels: 1e-11 at worst, 1e-15 mostly,
for exponents from 1 to 6 and offsets that differ by 1 to 1e-14.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel

__all__ = ["all_shares", "emit_rule", "tables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Tables = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]

_ROOT_NODES, _SHORT_NODES, _LOG_NODES = 22, 10, 16
_ROOT_POWER = 4.0  # x**(2/alpha) becomes u**4
_SHORT_WIDTH, _LOG_WIDTH = 1.3, 5.0  # widths in log x that the short and the full panel integrate to 1e-11
_STEEP_RISE, _STEEP_WIDTH = (
    8.0,
    2.0,
)  # where exp(-rise) falls far, the last factor exp(2) has a panel of its own
_CUT = 40.0  # mass beyond exp(-40) of a panel's start is left out
_FLOOR_MASS = 1e-7  # share of a panel that may lie inside its first nodes with near-ties unresolved
_DEAD_LEVEL = 700.0  # exp(-700): tiers that start beyond it serve nobody
_NARROWEST = 1e-150  # panels up to this cost hold no mass, and powers of their nodes would underflow
_BUFFER = 2048


@lru_cache(maxsize=64)
def tables(delay_exponent: float) -> Tables:
    """Return nodes and weights on [0, 1] of the root panel x = u^{2α}, of a short and of a full log panel."""
    node, weight = _gauss(_ROOT_NODES)
    power = 0.5 * _ROOT_POWER * delay_exponent
    return (
        node**power,
        weight * power * node ** (power - 1.0),
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
            x[count] = low * np.exp(width * (piece + node[j]))
            weight[count] = x[count] * width * share[j]
            count += 1
    return count


@kernel
def _nodes(
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
        start = min(knee, max(near, knee * _FLOOR_MASS ** (1.0 / mass)))
        for j in range(rule[0].size):
            x[j] = start * rule[0][j]
            weight[j] = start * rule[1][j]
        count = rule[0].size
    if start < knee:
        count = _log_panels(start, knee, _LOG_WIDTH * narrow, rule, x, weight, count)
    if knee < end:
        count = _log_panels(knee, end, _LOG_WIDTH * narrow, rule, x, weight, count)
    return count


@kernel
def _rise(x: float, gap: FloatArray, strength: FloatArray, level: float, active: int, mass: float) -> float:
    """Return Λ at x above a kink, less its value `level` at the kink."""
    total = -level
    for t in range(active):
        total += strength[t] * (x + gap[t]) ** mass
    return total


@kernel
def _cut_off(
    start: float,
    end: float,
    gap: FloatArray,
    strength: FloatArray,
    level: float,
    active: int,
    mass: float,
) -> tuple[float, float]:
    """Return where to end a panel, so that what lies beyond is below e^{−40} of it, and the rise of Λ over it."""
    before = _rise(start, gap, strength, level, active, mass) if start > 0.0 else 0.0
    if end < np.inf:
        rise = _rise(end, gap, strength, level, active, mass) - before
        if rise <= 1.5 * _CUT:
            return end, rise
    reach = end
    for t in range(active):
        if strength[t] > 0.0:
            alone = (_CUT / strength[t] + (start + gap[t]) ** mass) ** (1.0 / mass) - gap[t]
            reach = min(reach, max(alone, start * (1.0 + 1e-12)))
    rise = _rise(reach, gap, strength, level, active, mass) - before
    for _ in range(8):
        if rise <= 1.5 * _CUT:
            break
        # Λ is no steeper than linear in x for mass <= 1, and then this never cuts too much
        reach = start + (reach - start) * (_CUT / rise) ** (1.0 / max(mass, 1.0))
        rise = _rise(reach, gap, strength, level, active, mass) - before
    return reach, rise


@kernel
def all_shares(
    offset: FloatArray,
    order: IntArray,
    density: FloatArray,
    scale: float,
    mass: float,
    rule: Tables,
    share: FloatArray,
    overlap: FloatArray,
    slopes: bool,
) -> None:
    """Fill A/λ for every tier and type and, if asked for, the overlaps; `order` sorts the offsets of each type."""
    tiers, types = offset.shape
    x, weight = np.empty(_BUFFER), np.empty(_BUFFER)
    gap, strength, rate = np.empty(tiers), np.empty(tiers), np.empty(tiers)
    for q in range(types):
        ranks = order[:, q]
        for t in range(tiers):
            strength[t] = scale * density[ranks[t]]
        active = 0
        while active < tiers:
            first = active
            kink = offset[ranks[first], q]
            while active < tiers and offset[ranks[active], q] == kink:
                active += 1
            end = offset[ranks[active], q] - kink if active < tiers else np.inf
            near = kink - offset[ranks[first - 1], q] if first > 0 else np.inf
            level, total = 0.0, 0.0
            for t in range(active):
                gap[t] = kink - offset[ranks[t], q]
                level += strength[t] * gap[t] ** mass
                total += strength[t]
            if level > _DEAD_LEVEL:
                break
            if mass == 1.0:
                _linear_panel(end, level, total, scale, ranks, active, q, share, overlap)
                continue
            single = first == 0 and total > 0.0
            if single:  # all who serve so far have one offset: closed form
                gone = -np.expm1(-total * end**mass) * scale / total
                for t in range(active):
                    share[ranks[t], q] += gone
            if (single and not (slopes and active > 1)) or end < _NARROWEST:
                continue
            end, rise = _cut_off(0.0, end, gap, strength, level, active, mass)
            count = _nodes(0.0, end, near, rise, mass, rule, x, weight)
            for j in range(count):
                survival = 0.0
                for t in range(active):
                    far = x[j] + gap[t]
                    powered = far**mass
                    survival -= strength[t] * powered
                    rate[t] = scale * mass * powered / far
                survival = weight[j] * np.exp(survival)
                if not single:
                    for t in range(active):
                        share[ranks[t], q] += survival * rate[t]
                if slopes:
                    _add_overlap(survival, rate, ranks, active, q, overlap)


@kernel
def _add_overlap(
    survival: float, rate: FloatArray, ranks: IntArray, active: int, q: int, overlap: FloatArray
) -> None:
    """Add one node to the overlaps of all active pairs, in the triangle of the order."""
    for t in range(active):
        part = survival * rate[t]
        for u in range(t):
            overlap[q, ranks[t], ranks[u]] += part * rate[u]


@kernel
def _linear_panel(
    end: float,
    level: float,
    total: float,
    scale: float,
    ranks: IntArray,
    active: int,
    q: int,
    share: FloatArray,
    overlap: FloatArray,
) -> None:
    """Add a panel of α = 2, where Λ is linear and everything has a closed form."""
    area = np.exp(-level) * (-np.expm1(-total * end) / total if total > 0.0 else end)
    for t in range(active):
        share[ranks[t], q] += scale * area
        for u in range(t):
            overlap[q, ranks[t], ranks[u]] += scale * scale * area


@kernel
def emit_rule(
    offset: FloatArray,
    order: IntArray,
    density: FloatArray,
    scale: float,
    mass: float,
    joints: FloatArray,
    limits: FloatArray,
    rule: Tables,
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return (tier, delay, weight) of every node between neighbouring joints that counts for a tier.

    The joints are sorted cost levels, among them all offsets; a tier counts up to its offset plus its limit.
    """
    tiers = offset.size
    x, wide = np.empty(_BUFFER), np.empty(_BUFFER)
    gap, strength, birth = np.empty(tiers), scale * density[order], np.empty(tiers)
    size, used, active = 4096, 0, 0
    tier, delay, weight = np.empty(size, np.int64), np.empty(size), np.empty(size)
    for j in range(joints.size):
        known = active
        while active < tiers and offset[order[active]] <= joints[j]:
            active += 1
        kink = offset[order[active - 1]]
        near, level = np.inf, 0.0
        for t in range(active):
            gap[t] = kink - offset[order[t]]
            near = gap[t] if gap[t] > 0.0 else near
            level += strength[t] * gap[t] ** mass
        birth[known:active] = level
        close = joints[j + 1] if j + 1 < joints.size else np.inf
        start, end = joints[j] - kink, close - kink
        now = level + (_rise(start, gap, strength, level, active, mass) if start > 0.0 else 0.0)
        if now > _DEAD_LEVEL:
            break
        wanted = False
        for t in range(active):
            wanted = wanted or close <= offset[order[t]] + limits[order[t]]
        end, rise = _cut_off(start, end, gap, strength, level, active, mass)
        if not wanted or end <= start or end < _NARROWEST:
            continue
        count = _nodes(start, end, near, rise, mass, rule, x, wide)
        for i in range(count):
            wide[i] *= scale * mass * np.exp(-level - _rise(x[i], gap, strength, level, active, mass))
        while used + count * active > size:
            size *= 2
            tier, delay, weight = _grown(tier, size), _grown(delay, size), _grown(weight, size)
        for t in range(active):
            if now - birth[t] > _CUT or close > offset[order[t]] + limits[order[t]]:
                continue
            for i in range(count):
                tier[used] = order[t]
                delay[used] = x[i] + gap[t]
                weight[used] = wide[i] * delay[used] ** (mass - 1.0)
                used += 1
    return tier[:used], delay[:used], weight[:used]


@kernel
def _grown(values: Any, size: int) -> Any:
    """Return a longer copy of an array."""
    longer = np.empty(size, values.dtype)
    longer[: values.size] = values
    return longer
