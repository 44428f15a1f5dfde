"""Random numbers by name inside kernels: the same key gives the same number, whatever was drawn before.

Routers draw by the number of the request, reports by router, report and site, so that policies share their luck
and a run cut into stretches draws what the whole run draws. The mixing is that of SplitMix64 (G. Steele, D. Lea and
C. Flood, OOPSLA 2014).
"""

from __future__ import annotations

import numpy as np

from geoedge.compiled import inlined, kernel

__all__ = ["mixed", "normal", "uniform"]

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S27, S30, S31, S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
UNIT = 2.0**-53


@inlined
def mixed(state: np.uint64, key: int) -> np.uint64:
    """Return a state and a key stirred into a new state."""
    z = (state ^ np.uint64(key)) + STEP
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@kernel
def uniform(state: np.uint64, key: int) -> float:
    """Return a number from 0 to below 1."""
    return float(mixed(state, key) >> S11) * UNIT


@kernel
def normal(state: np.uint64, key: int) -> float:
    """Return a standard normal number (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log(1.0 - uniform(state, 2 * key)))
    return float(radius * np.cos(2.0 * np.pi * uniform(state, 2 * key + 1)))
