"""Orders in which sites are built, so that every beginning of one is a fair network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["steady_profiles"]


def steady_profiles(mix: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Return profiles in such an order that the first k sites hold each within one site of its share, for every k.

    Of the profiles that lag behind, the one that would otherwise be late first is next: Tijdeman's answer to
    the chairman assignment problem (Discrete Mathematics 32, 1980). Where the shares of k sites are whole numbers,
    the first k sites hold exactly these.

    Parameters
    ----------
    mix
        Share of each profile, shape (S,), adding up to one.
    count
        Number of sites.
    """
    held, found = np.zeros(len(mix)), np.empty(count, dtype=np.int64)
    there = int((mix > 0.0).sum())
    slack = 1.0 / (2.0 * there - 2.0) if there > 1 else 0.5
    for k in range(count):
        due = mix * (k + 1) - held
        ready = (mix > 0.0) & (due >= slack - 1e-9)
        if not ready.any():
            ready = mix > 0.0
        lateness = np.where(ready, (1.0 - slack - due) / np.where(ready, mix, 1.0), np.inf)
        found[k] = np.argmin(lateness)
        held[found[k]] += 1.0
    return found
