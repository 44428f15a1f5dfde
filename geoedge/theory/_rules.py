"""The compiled quadrature rules of `association`: nodes over the radio delay of the serving site."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel
from geoedge.theory._panels import (
    CUT,
    DEAD_LEVEL,
    MOST_NODES,
    NARROWEST,
    Tables,
    cut_off,
    fill_nodes,
    fill_rates,
    rise_above,
    sort_ranks,
)
from geoedge.theory._powers import exponential, power

__all__ = ["emit_rule"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_LAYERS = (5.0, 12.0, 24.0, 40.0)  # joints below an end, in widths of what saturates there


@kernel
def emit_rule(
    offset: FloatArray,
    density: FloatArray,
    scale: float,
    mass: float,
    limit: FloatArray,
    layer: FloatArray,
    rule: Tables,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return (type, tier, delay, weight) of every node that counts; a tier counts up to its limit, shape (S, Q)."""
    tiers, types = offset.shape
    room = (
        np.empty((4, MOST_NODES)),
        np.empty((3, tiers)),
        np.empty((MOST_NODES, tiers)),
        np.empty(tiers, np.bool_),
    )
    joint, ranks, beta, ends = np.empty(6 * tiers), np.arange(tiers), np.empty(tiers), np.empty(tiers)
    size, used = 2048, 0
    kind, tier, delay, weight = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(size),
    )
    for q in range(types):
        beta[:] = offset[:, q]
        ends[:] = beta + limit[:, q]
        sort_ranks(ranks, beta)
        joints, active = _joints(beta, ends, layer, joint), 0
        for j in range(joints):
            while active < tiers and beta[ranks[active]] <= joint[j]:
                active += 1
            close = joint[j + 1] if j + 1 < joints else np.inf
            count = _panel(joint[j], close, beta, ranks, ends, density, active, scale, mass, rule, room)
            while used + count * active > size:
                size *= 2
                kind, tier = _grown(kind, size), _grown(tier, size)
                delay, weight = _grown(delay, size), _grown(weight, size)
            for t in range(active if count > 0 else 0):
                if room[3][t]:
                    for i in range(count):
                        kind[used + i], tier[used + i] = q, ranks[t]
                        delay[used + i] = room[0][0, i] + room[1][0, t]
                        weight[used + i] = room[0][1, i] * room[2][i, t]
                    used += count
    return kind[:used], tier[:used], delay[:used], weight[:used]


@kernel
def _panel(
    low: float,
    close: float,
    offset: FloatArray,
    ranks: IntArray,
    ends: FloatArray,
    density: FloatArray,
    active: int,
    scale: float,
    mass: float,
    rule: Tables,
    room: tuple[FloatArray, FloatArray, FloatArray, BoolArray],
) -> int:
    """Fill the nodes between two joints, their weights, the rates of the active tiers, and which of these count.

    Return the number of nodes, none where no tier counts: its limit is reached, or what it may still serve is
    less than e^{−40} of what it serves.
    """
    x, weight, row, fall = room[0][0], room[0][1], room[0][2], room[0][3]
    gap, strength, birth = room[1][0], room[1][1], room[1][2]
    counts = room[3]
    kink = offset[ranks[active - 1]]
    near, level, wanted = np.inf, 0.0, False
    start, end = low - kink, close - kink
    for t in range(active):
        gap[t], strength[t] = kink - offset[ranks[t]], scale * density[ranks[t]]
        near = gap[t] if gap[t] > 0.0 else near
        level += strength[t] * power(gap[t], mass) if gap[t] > 0.0 else 0.0
    now = level + (rise_above(start, gap, strength, level, active, mass) if start > 0.0 else 0.0)
    for t in range(active):
        birth[t] = birth[t] if gap[t] > 0.0 else level
        counts[t] = close <= ends[ranks[t]] and now - birth[t] <= CUT and now <= DEAD_LEVEL
        wanted = wanted or counts[t]
    if not wanted or end <= start:
        return 0
    end, rise = cut_off(start, end, gap, strength, level, active, mass)
    if end <= start or end < NARROWEST:
        return 0
    count = fill_nodes(start, end, near, rise, mass, rule, x, weight)
    fill_rates(x, count, gap, strength, active, mass, row, fall, room[2])
    for j in range(count):
        weight[j] *= scale * mass * exponential(-fall[j])
    return count


@kernel
def _distinct(level: FloatArray, count: int) -> int:
    """Sort the first numbers and drop repetitions; return how many are left."""
    level[:count].sort()
    kept = min(count, 1)
    for j in range(1, count):
        if level[j] > level[kept - 1]:
            level[kept] = level[j]
            kept += 1
    return kept


@kernel
def _joints(offset: FloatArray, ends: FloatArray, layer: FloatArray, joint: FloatArray) -> int:
    """Fill the cost levels between which everything is smooth, in order; return their count.

    They are the offsets, the ends of what counts, and steps towards an end where a function that saturates over
    `layer` changes fast within a panel.
    """
    count, least = 0, offset.min()
    for t in range(offset.size):
        for level in (offset[t], ends[t]):
            if least <= level < np.inf:
                joint[count] = level
                count += 1
    base = _distinct(joint, count)
    count = base
    for t in range(offset.size):
        if layer[t] == np.inf or ends[t] == np.inf:
            continue
        for multiple in _LAYERS:
            level = ends[t] - multiple * layer[t]
            j = np.searchsorted(joint[:base], level)
            if 0 < j < base and joint[j] - joint[j - 1] > _LAYERS[0] * layer[t]:
                joint[count] = level
                count += 1
    return _distinct(joint, count)


@kernel
def _grown(values: Any, size: int) -> Any:
    """Return a longer copy of an array."""
    longer = np.empty(size, values.dtype)
    longer[: values.size] = values
    return longer
