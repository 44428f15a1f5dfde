"""Compiled swaps of profiles between sites: simulated annealing of how alike neighbours are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.compiled import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["anneal"]


@kernel
def _closeness(
    i: int, j: int, s: int, xy: NDArray[np.float64], period: NDArray[np.float64], reach: NDArray[np.float64]
) -> float:
    dx, dy = abs(xy[i, 0] - xy[j, 0]), abs(xy[i, 1] - xy[j, 1])
    dx, dy = min(dx, period[0] - dx), min(dy, period[1] - dy)
    return float(np.exp(-(dx * dx + dy * dy) / (reach[s] * reach[s])))


@kernel
def anneal(
    profile: NDArray[np.int64],
    xy: NDArray[np.float64],
    period: NDArray[np.float64],
    reach: NDArray[np.float64],
    sign: float,
    warm: float,
    cold: float,
    swaps: int,
    rng: np.random.Generator,
) -> None:
    """Swap profiles in place so that sites of one profile keep apart, or together.

    The energy is the sum over pairs of one profile s of exp(−r²/ℓ_s²), times a sign.

    Parameters
    ----------
    profile
        Profile of each site, shape (n,).
    xy
        Sites [m], shape (n, 2).
    period
        Width and height of the torus, infinite on the plane [m], shape (2,).
    reach
        ℓ_s [m], shape (S,).
    sign
        1 to keep apart, −1 to keep together.
    warm, cold
        First and last temperature, in energies of a pair at one place.
    swaps
        Swaps to try.
    rng
        Random generator.
    """
    n, profiles = len(profile), len(reach)
    around = np.zeros((profiles, n))
    for i in range(n):
        for k in range(n):
            if k != i:
                around[profile[k], i] += _closeness(i, k, profile[k], xy, period, reach)
    for step in range(swaps):
        i, j = int(rng.random() * n), int(rng.random() * n)
        a, b = profile[i], profile[j]
        if a == b:
            continue
        after = around[a, j] - _closeness(i, j, a, xy, period, reach)
        after += around[b, i] - _closeness(i, j, b, xy, period, reach)
        change = sign * (after - around[a, i] - around[b, j])
        temperature = warm * (cold / warm) ** (step / swaps)
        if change <= 0.0 or rng.random() < np.exp(-change / temperature):
            profile[i], profile[j] = b, a
            for k in range(n):
                if k != i:
                    around[a, k] -= _closeness(i, k, a, xy, period, reach)
                    around[b, k] += _closeness(i, k, b, xy, period, reach)
                if k != j:
                    around[b, k] -= _closeness(j, k, b, xy, period, reach)
                    around[a, k] += _closeness(j, k, a, xy, period, reach)
