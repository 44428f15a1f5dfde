"""What requests meet on a patch: who serves them, from how far, at what load, in exact proportion where it is known.

If the patch's sites advertised the tier mean's waits, theory would know who serves a request and from how far. So
places of demand are weighted, by the tier that would serve them then and how far away it would be, as the network
weighs these cases (post-stratification). Everything that an answer tells is a mean with these weights, and over the
levels of demand at which the patch is solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geoedge.theory._patch import Patch, Settled
from geoedge.theory._patch_kernels import winners
from geoedge.theory.association import cost_rule
from geoedge.theory.equilibrium import Equilibrium

__all__ = ["Bins", "Served", "gather", "served"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_STRATA, _ALL_STRATA = 48, 1200  # classes of places by delay, and by tier and type too, at most
_MOST_WEIGHT = 2.0  # factor by which a place may count for more or less than others
# bins of the delay: by tier and type at most, in all, at least
_BINS, _ALL_BINS, _FEWEST_BINS = 160, 4096, 12


class Served(NamedTuple):
    """Parts of requests that sites serve, in any order."""

    kind: IntArray
    tier: IntArray
    site: IntArray
    delay: FloatArray
    """Radio delay [s]."""
    share: FloatArray
    """Share of all requests."""


class Bins(NamedTuple):
    """Radio delays by type and tier in bins over which they are taken as uniform."""

    kind: IntArray
    tier: IntArray
    low: FloatArray
    high: FloatArray
    share: FloatArray

    def below(self, limit: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the middles [s] and the shares of what lies below a limit by tier and type [s], shape (S, Q)."""
        end = np.clip(limit[self.tier, self.kind], self.low, self.high)
        width = self.high - self.low
        part = np.divide(end - self.low, width, out=(end >= self.high).astype(np.float64), where=width > 0.0)
        # a bin of one delay counts as soon as the limit has reached it
        part = np.where((width <= 0.0) & (limit[self.tier, self.kind] < self.low), 0.0, part)
        return 0.5 * (self.low + end), self.share * part


def served(levels: Sequence[Settled], patch: Patch, point: Equilibrium) -> Served:
    """Return who serves what at equally likely levels of demand, weighted by what is known at the tiers' point.

    Parameters
    ----------
    levels
        Equilibria of the patch; the sites of the second are numbered after those of the first, and so on.
    patch
        The patch, at any level.
    point
        Equilibrium of the same tiers at their mean.
    """
    network, parts = patch.network, []
    before = point.advertised_wait[patch.tier]
    for q in range(network.types):
        own = network.prefill_time[patch.tier, q]
        would, far = winners(patch.rivals(before, q), own + before)
        weight = network.type_probability[q] / len(levels) * _weights(point, q, patch.tier[would], far)
        for k, settled in enumerate(levels):
            site, delay = winners(patch.rivals(settled.wait, q), own + settled.wait)
            number = k * patch.tier.size + site
            parts.append((np.full(site.size, q), patch.tier[site], number, delay, weight))
    return Served(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _weights(point: Equilibrium, kind: int, tier: IntArray, delay: FloatArray) -> FloatArray:
    """Return weights of the places of a type, adding up to one, by the tier and delay they have at the tiers' point."""
    strata = min(max(_ALL_STRATA // (point.network.tiers * point.network.types), 1), _STRATA)
    edge = np.unique(np.quantile(delay, np.linspace(0.0, 1.0, strata + 1)[1:-1]))
    below = np.array([_below(point, kind, limit) for limit in (*edge, np.inf)])
    mass = np.diff(below, axis=0, prepend=0.0)
    stratum = np.searchsorted(edge, delay)
    found = np.zeros(mass.shape)
    np.add.at(found, (stratum, tier), 1.0 / tier.size)
    ratio = np.divide(mass, found, out=np.ones_like(mass), where=found > 0.0)
    weight = np.clip(ratio, 1.0 / _MOST_WEIGHT, _MOST_WEIGHT)[stratum, tier]
    return np.asarray(weight / weight.sum())


def _below(point: Equilibrium, kind: int, limit: float) -> FloatArray:
    """Return the share of a type's requests that each tier serves within a radio delay [s], shape (S,)."""
    network = point.network
    rule = cost_rule(
        network.tier_density,
        point.cost_offset[:, [kind]],
        network.delay_coefficient,
        network.delay_exponent,
        delay_limit=np.full((network.tiers, 1), limit),
    )
    return network.tier_density * np.bincount(rule.tier, rule.weight, network.tiers)


def gather(found: Served, tiers: int, types: int) -> Bins:
    """Return the delays of requests by type and tier in bins of equal shares."""
    most = min(max(_ALL_BINS // (tiers * types), _FEWEST_BINS), _BINS)
    group = found.kind * tiers + found.tier
    order = np.lexsort((found.delay, group))
    group, delay, share = group[order], found.delay[order], found.share[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    rows = []
    for start, stop in zip(first, np.append(first[1:], group.size), strict=True):
        far, mass = delay[start:stop], share[start:stop]
        total = float(mass.sum())
        if total <= 0.0:
            continue
        bins = min(most, stop - start)
        edge = np.interp(np.linspace(0.0, total, bins + 1), np.cumsum(mass) - 0.5 * mass, far)
        rows.append((np.full(bins, group[start]), edge[:-1], edge[1:], np.full(bins, total / bins)))
    key, low, high, part = (np.concatenate(column) for column in zip(*rows, strict=True))
    return Bins(key // tiers, key % tiers, low, high, part)
