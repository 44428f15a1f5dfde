"""The law of a site's load as an answer holds it: some loads, and their probabilities by type and distance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geoedge.theory._own_waits import Served
from geoedge.theory.cells import CellSample
from geoedge.theory.equilibrium import Equilibrium
from geoedge.theory.protocols import select

__all__ = ["TierLaw", "served_law", "tier_law"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_LOADS = 32  # loads at which the law of a tier is held
_PATCH_RINGS = 16  # distances at which the law of a patch is held
_NEXT_TO_FULL = 1.0 - np.array([0.1, 0.03, 0.01, 1e-3, 1e-6, 0.0])  # utilisations, as waits change fast there


class TierLaw(NamedTuple):
    """The loads of one tier's sites, and of the site that serves a request."""

    ring: FloatArray
    """Distances [km], shape (J,)."""
    load: FloatArray
    """Offered loads [servers], rising, shape (B,)."""
    law: FloatArray
    """Probability of each load given type and distance, shape (Q, J, B)."""
    mean_wait: float
    """Mean wait of the tier's requests [s]; infinite if a sampled site is overloaded."""
    busy: float
    """Mean number of busy servers of a site."""


def tier_law(point: Equilibrium, tier: int, cells: CellSample, load: FloatArray) -> TierLaw:
    """Gather the loads of sampled sites at a few nodes, given the type and distance of a request."""
    network = point.network
    servers, weight = float(network.concurrency[tier]), cells.weight
    node = _nodes(load, weight * load, servers)
    law = np.zeros((network.types, cells.ring.size, node.size))
    if node.size > 1:
        first = np.clip(np.searchsorted(node, load, side="right") - 1, 0, node.size - 2)
        part = np.clip((load - node[first]) / (node[first + 1] - node[first]), 0.0, 1.0)
        served = weight[:, None, None] * cells.share
        np.add.at(law.transpose(2, 0, 1), first, (1.0 - part)[:, None, None] * served)
        np.add.at(law.transpose(2, 0, 1), first + 1, part[:, None, None] * served)
    else:
        law[:] = 1.0
    rate = weight * (cells.area @ network.type_probability)
    return TierLaw(
        cells.ring,
        node,
        _filled(law),
        _mean_wait(point, tier, load, rate),
        float(cells.weight @ np.minimum(load, servers)),
    )


def _nodes(load: FloatArray, weight: FloatArray, servers: float) -> FloatArray:
    """Return loads between which sites' loads are shared out: quantiles by work, and either side of capacity."""
    order = np.argsort(load)
    passed = np.cumsum(np.maximum(weight[order], 0.0))
    if passed[-1] > 0.0:
        level = np.linspace(0.0, 1.0, _LOADS) * passed[-1]
        inner = load[order][np.minimum(np.searchsorted(passed, level), load.size - 1)]
    else:
        inner = load[:1]
    ends = np.array([load.min(), load.max()])
    near = servers * _NEXT_TO_FULL if ends[1] >= servers else ends
    return np.unique(np.concatenate([inner, ends, near]))


def _filled(law: FloatArray) -> FloatArray:
    """Return probabilities over the last axis; a distance at which no sampled cell serves takes those next to it."""
    total = law.sum(axis=2, keepdims=True)
    found = np.divide(law, total, out=np.zeros_like(law), where=total > 0.0)
    for q in range(law.shape[0]):
        good = np.flatnonzero(total[q, :, 0] > 0.0)
        if good.size == 0:
            found[q] = np.eye(law.shape[2])[0]
        else:
            nearest = good[np.abs(np.arange(law.shape[1])[:, None] - good).argmin(axis=1)]
            found[q] = found[q, nearest]
    return np.asarray(found)


def _mean_wait(point: Equilibrium, tier: int, load: FloatArray, rate: FloatArray) -> float:
    """Return the mean wait over requests [s]."""
    servers, total = float(point.network.concurrency[tier]), float(rate.sum())
    if total <= 0.0:
        return 0.0
    if (load >= servers).any():
        return float("inf")
    queue = select(point.queue, tier)
    wait, _ = queue.normalised_wait_and_slope(load, np.full(load.size, servers))
    return float(rate @ wait / total / point.service_rate[tier])


def served_law(point: Equilibrium, tier: int, found: Served, load: FloatArray, busy: float) -> TierLaw:
    """Gather the loads that a tier's requests meet on a patch.

    Parameters
    ----------
    point
        Equilibrium at the tier mean.
    tier
        Index of the tier.
    found
        What the patch's sites serve.
    load
        Offered load of each site [servers], shape (n,).
    busy
        Mean number of busy servers of a site of the tier.
    """
    network = point.network
    mine = found.tier == tier
    kind, share, met = found.kind[mine], found.share[mine], load[found.site[mine]]
    radius = (found.delay[mine] / network.delay_coefficient) ** (1.0 / network.delay_exponent)
    if not mine.any():
        even = np.ones((network.types, 2, 1))
        return TierLaw(np.array([0.0, 1.0]), np.zeros(1), even, 0.0, busy)
    node = _nodes(met, share, float(network.concurrency[tier]))
    ring = np.unique(np.quantile(radius, (np.arange(_PATCH_RINGS) + 0.5) / _PATCH_RINGS))
    ring = np.append(ring, ring[-1:] + 1.0) if ring.size == 1 else ring
    law = np.zeros((network.types, ring.size, node.size))
    for near, here in _split(ring, radius):
        for level, part in _split(node, met):
            np.add.at(law, (kind, near, level), share * here * part)
    return TierLaw(ring, node, _filled(law), _mean_wait(point, tier, met, share), busy)


def _split(node: FloatArray, value: FloatArray) -> list[tuple[IntArray, FloatArray]]:
    """Return the nodes either side of each value, with the part of it that each has."""
    place = np.interp(value, node, np.arange(node.size, dtype=np.float64))
    first = np.minimum(place.astype(np.int64), max(node.size - 2, 0))
    return [(first, 1.0 - (place - first)), (np.minimum(first + 1, node.size - 1), place - first)]
