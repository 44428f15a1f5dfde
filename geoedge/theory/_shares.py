"""The compiled shares of `association`, and what waits attract, summed over types, with their derivatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel
from geoedge.theory._panels import (
    DEAD_LEVEL,
    MOST_NODES,
    NARROWEST,
    Tables,
    cut_off,
    fill_nodes,
    fill_rates,
    sort_ranks,
)
from geoedge.theory._powers import exponential, power

__all__ = ["all_shares", "attracted"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def _type_shares(
    offset: FloatArray,
    ranks: IntArray,
    density: FloatArray,
    scale: float,
    mass: float,
    rule: Tables,
    slopes: bool,
    share: FloatArray,
    overlap: FloatArray,
    node_room: FloatArray,
    tier_room: FloatArray,
    rate: FloatArray,
) -> None:
    """Fill A/λ of one type and, if asked for, the lower triangle of the overlaps, both in the order of `ranks`."""
    tiers = offset.size
    x, weight, row, fall = node_room[0], node_room[1], node_room[2], node_room[3]
    gap, strength = tier_room[0], tier_room[1]
    for t in range(tiers):
        strength[t] = scale * density[ranks[t]]
        share[t] = 0.0
        overlap[t, : t + 1] = 0.0
    active = 0
    while active < tiers:
        first = active
        kink = offset[ranks[first]]
        while active < tiers and offset[ranks[active]] == kink:
            active += 1
        end = offset[ranks[active]] - kink if active < tiers else np.inf
        near = kink - offset[ranks[first - 1]] if first > 0 else np.inf
        level, total = 0.0, 0.0
        for t in range(active):
            gap[t] = kink - offset[ranks[t]]
            level += strength[t] * power(gap[t], mass) if gap[t] > 0.0 else 0.0
            total += strength[t]
        if level > DEAD_LEVEL:
            break
        if mass == 1.0:
            _linear_panel(end, level, total, scale, active, share, overlap)
            continue
        single = first == 0 and total > 0.0
        if single:  # all who serve so far have one offset: closed form
            gone = -np.expm1(-total * end**mass) * scale / total
            for t in range(active):
                share[t] += gone
        if (single and not (slopes and active > 1)) or end < NARROWEST:
            continue
        end, rise = cut_off(0.0, end, gap, strength, level, active, mass)
        count = fill_nodes(0.0, end, near, rise, mass, rule, x, weight)
        fill_rates(x, count, gap, strength, active, mass, row, fall, rate)
        for j in range(count):
            fall[j] = weight[j] * exponential(-fall[j]) * (scale * mass)
        for j in range(count):
            if not single:
                for t in range(active):
                    share[t] += fall[j] * rate[j, t]
            if slopes:
                _add_overlap(fall[j] * (scale * mass), rate[j], active, overlap)


@kernel
def _add_overlap(survival: float, rate: FloatArray, active: int, overlap: FloatArray) -> None:
    """Add one node to the overlaps of all active pairs."""
    for t in range(active):
        part, row = survival * rate[t], overlap[t]
        for u in range(t):
            row[u] += part * rate[u]


@kernel
def _linear_panel(
    end: float,
    level: float,
    total: float,
    scale: float,
    active: int,
    share: FloatArray,
    overlap: FloatArray,
) -> None:
    """Add a panel of α = 2, where Λ is linear and everything has a closed form."""
    area = np.exp(-level) * (-np.expm1(-total * end) / total if total > 0.0 else end)
    for t in range(active):
        share[t] += scale * area
        for u in range(t):
            overlap[t, u] += scale * scale * area


@kernel
def all_shares(
    offset: FloatArray, density: FloatArray, scale: float, mass: float, rule: Tables
) -> FloatArray:
    """Return A/λ for every tier and type, shape (S, Q)."""
    tiers, types = offset.shape
    area, share, overlap = np.zeros((tiers, types)), np.empty(tiers), np.empty((tiers, tiers))
    node_room, tier_room, rate = (
        np.empty((4, MOST_NODES)),
        np.empty((2, tiers)),
        np.empty((MOST_NODES, tiers)),
    )
    ranks, beta = np.arange(tiers), np.empty(tiers)
    for q in range(types):
        beta[:] = offset[:, q]
        sort_ranks(ranks, beta)
        _type_shares(
            beta, ranks, density, scale, mass, rule, False, share, overlap, node_room, tier_room, rate
        )
        for t in range(tiers):
            area[ranks[t], q] = share[t]
    return area


@kernel
def attracted(
    wait: FloatArray,
    prefill: FloatArray,
    occupancy: FloatArray,
    probability: FloatArray,
    density: FloatArray,
    scale: float,
    mass: float,
    rule: Tables,
    slopes: bool,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return what waits attract to one site of each tier, per unit of request intensity.

    That is the served areas A/λ, shape (S, Q); requests Σ p A/λ and work Σ p t A/λ, shape (S,); and the derivatives
    of work and requests by the waits, shape (S, S), zero unless asked for.
    """
    tiers, types = prefill.shape
    area, share, overlap = np.zeros((tiers, types)), np.empty(tiers), np.empty((tiers, tiers))
    node_room, tier_room, rate = (
        np.empty((4, MOST_NODES)),
        np.empty((2, tiers)),
        np.empty((MOST_NODES, tiers)),
    )
    ranks, beta = np.arange(tiers), np.empty(tiers)
    requests, work = np.zeros(tiers), np.zeros(tiers)
    work_slope, request_slope = np.zeros((tiers, tiers)), np.zeros((tiers, tiers))
    for q in range(types):
        beta[:] = prefill[:, q] + wait
        sort_ranks(ranks, beta)
        _type_shares(
            beta, ranks, density, scale, mass, rule, slopes, share, overlap, node_room, tier_room, rate
        )
        for t in range(tiers):
            s = ranks[t]
            area[s, q] = share[t]
            requests[s] += probability[q] * share[t]
            work[s] += probability[q] * occupancy[s, q] * share[t]
        if slopes:
            _add_slopes(overlap, ranks, occupancy[:, q], probability[q], density, work_slope, request_slope)
    return area, requests, work, work_slope, request_slope


@kernel
def _add_slopes(
    overlap: FloatArray,
    ranks: IntArray,
    occupancy: FloatArray,
    probability: float,
    density: FloatArray,
    work_slope: FloatArray,
    request_slope: FloatArray,
) -> None:
    """Add one type to the derivatives: a tier gains what another tier's wait drives away, and loses by its own."""
    for t in range(ranks.size):
        for u in range(t):
            one, other = ranks[t], ranks[u]
            shared = probability * overlap[t, u]
            for mine, its in ((one, other), (other, one)):
                gain = shared * density[its]
                request_slope[mine, its] += gain
                request_slope[mine, mine] -= gain
                work_slope[mine, its] += occupancy[mine] * gain
                work_slope[mine, mine] -= occupancy[mine] * gain
