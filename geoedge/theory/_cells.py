"""The compiled work of `cells`: typical cells in a random environment, and integrals over pairs of places.

The tagged site stands at the origin. It serves a place y for a type as long as no site of a tier t lies in the disc
B(y, h) with h the tier's reach at the distance of y. Seen from the origin, a site at distance D thus takes an arc of
the ring of radius r away: the angles within arccos((r² + D² − h²)/(2rD)) of its own. A ring's places are 64 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel

__all__ = ["STRIDE", "draw_cells", "mixed", "pair_integrals", "uniform"]

FloatArray = NDArray[np.float64]

_PLACES = 64  # places of a ring, one bit each
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
STRIDE = np.uint64(0x9E3779B97F4A7C15)
_TWIST = 0.3819660112501051 * _PLACES  # turns rings against each other, so that their places never line up


@kernel
def mixed(key: np.uint64) -> np.uint64:
    """Return the key with its bits mixed, the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def uniform(key: np.uint64) -> float:
    """Return a number in (0, 1), always the same for a key."""
    return (np.float64(mixed(key) >> np.uint64(11)) + 0.5) * 2.0**-53


@kernel
def _bits(word: np.uint64) -> int:
    """Return how many bits are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def _arc(middle: float, half: float) -> np.uint64:
    """Return the places within `half` of `middle`, both in places."""
    first = np.ceil(middle - half)
    count = np.int64(np.floor(middle + half) - first) + 1
    if count <= 0:
        return np.uint64(0)
    if count >= _PLACES:
        return _ALL
    run = (np.uint64(1) << np.uint64(count)) - np.uint64(1)
    shift = np.uint64(np.int64(first) % _PLACES)
    around = run >> (np.uint64(_PLACES) - shift) if shift > np.uint64(0) else np.uint64(0)
    return (run << shift) | around


@kernel
def _take(
    distance: float, angle: float, ring: FloatArray, reach: FloatArray, lost: NDArray[np.uint64]
) -> None:
    """Mark what a site takes away from the cell; the reach of its tier has shape (Q, J), as `lost` has."""
    for q in range(reach.shape[0]):
        for j in range(ring.size):
            h, r = reach[q, j], ring[j]
            if h <= 0.0 or distance >= r + h or r >= distance + h or lost[q, j] == _ALL:
                continue
            if h >= distance + r:
                lost[q, j] = _ALL
                continue
            cosine = (r * r + distance * distance - h * h) / (2.0 * r * distance)
            half = np.arccos(min(max(cosine, -1.0), 1.0)) * (_PLACES / (2.0 * np.pi))
            lost[q, j] |= _arc(angle * _PLACES + _TWIST * j, half)


@kernel
def _farthest(ring: FloatArray, reach: FloatArray, lost: NDArray[np.uint64]) -> float:
    """Return the distance from which sites take nothing away that is still there."""
    farthest = 0.0
    for q in range(reach.shape[0]):
        for j in range(ring.size):
            if reach[q, j] > 0.0 and lost[q, j] != _ALL:
                farthest = max(farthest, ring[j] + reach[q, j])
    return farthest


@kernel
def draw_cells(count: int, ring: FloatArray, reach: FloatArray, density: FloatArray) -> FloatArray:
    """Return the share of each ring that the tagged site serves, by environment and type, shape (count, Q, J).

    Sites of a tier come in order of distance, πλD² growing by unit exponentials, until they are too far to matter.

    Parameters
    ----------
    count
        Number of environments; their sites are the same in every call.
    ring
        Radii [km], shape (J,).
    reach
        Reach of each tier [km], shape (T, Q, J).
    density
        Density of each tier [1/km²], shape (T,).
    """
    tiers, types, rings = reach.shape
    share = np.empty((count, types, rings))
    lost = np.empty((types, rings), np.uint64)
    for i in range(count):
        lost[:] = np.uint64(0)
        for t in range(tiers):
            if density[t] <= 0.0:
                continue
            key = mixed(STRIDE * np.uint64(i * tiers + t + 1))
            passed, limit, taken, look = 0.0, np.inf, 0, 0
            while True:
                if taken == look:  # now and then, as where all is lost already far sites need not be drawn
                    limit, look = np.pi * density[t] * _farthest(ring, reach[t], lost) ** 2, 2 * look + 1
                passed -= np.log(uniform(key))
                if passed >= limit:
                    break
                _take(np.sqrt(passed / (np.pi * density[t])), uniform(key + STRIDE), ring, reach[t], lost)
                key += STRIDE + STRIDE
                taken += 1
        for q in range(types):
            for j in range(rings):
                share[i, q, j] = 1.0 - _bits(lost[q, j]) / _PLACES
    return share


@kernel
def _lens(distance: float, one: float, other: float) -> float:
    """Return the area that two discs have in common."""
    if distance >= one + other or one <= 0.0 or other <= 0.0:
        return 0.0
    small, large = min(one, other), max(one, other)
    if distance <= large - small:
        return float(np.pi * small * small)
    gap = (distance * distance + small * small - large * large) / (2.0 * distance)
    rest = distance - gap
    height = np.sqrt(max(small * small - gap * gap, 0.0))
    corners = small * small * np.arctan2(height, gap) + large * large * np.arctan2(height, rest)
    return float(corners - distance * height)


@kernel
def pair_integrals(
    ring: FloatArray,
    width: FloatArray,
    reach: FloatArray,
    density: FloatArray,
    angle: FloatArray,
    turn: FloatArray,
) -> FloatArray:
    """Return E|C_q||C_q'| of the tagged site's cells [km⁴], shape (Q, Q).

    Parameters
    ----------
    ring, width
        Radii and their weights [km], shape (J,).
    reach
        Reach of each tier [km], shape (T, Q, J).
    density
        Density of each tier [1/km²], shape (T,).
    angle, turn
        Angles between the two places in (0, π) and their weights, shape (K,).
    """
    tiers, types, rings = reach.shape
    moment = np.zeros((types, types))
    for j in range(rings):
        for k in range(rings):
            weight = 4.0 * np.pi * ring[j] * width[j] * ring[k] * width[k]
            for a in range(angle.size):
                apart = np.sqrt(ring[j] ** 2 + ring[k] ** 2 - 2.0 * ring[j] * ring[k] * np.cos(angle[a]))
                for q in range(types):
                    for p in range(q + 1):
                        expected = 0.0
                        for t in range(tiers):
                            one, other = reach[t, q, j], reach[t, p, k]
                            union = np.pi * (one * one + other * other) - _lens(apart, one, other)
                            expected += density[t] * union
                        moment[q, p] += weight * turn[a] * np.exp(-expected)
    for q in range(types):
        for p in range(q):
            moment[p, q] = moment[q, p]
    return moment
