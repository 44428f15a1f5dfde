"""Compiled choice of the sites of a determinantal projection among places tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.compiled import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["accepted"]


@kernel
def accepted(gram: NDArray[np.complex128], threshold: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Return which places of a pool stay, in order: those whose unused density is above their threshold.

    Each place that stays uses up its share of the density of later ones, by Cholesky's rule.

    Parameters
    ----------
    gram
        Inner products of the functions' values at the places, shape (m, m).
    threshold
        Uniform numbers times the even density, shape (m,).
    most
        How many may stay.
    """
    pool = len(gram)
    factor = np.zeros((pool, min(most, pool)), dtype=np.complex128)
    unused = np.empty(pool)
    for i in range(pool):
        unused[i] = gram[i, i].real
    stay = np.empty(min(most, pool), dtype=np.int64)
    n = 0
    for here in range(pool):
        if n == most:
            break
        if threshold[here] >= unused[here]:
            continue
        root = np.sqrt(unused[here])
        for later in range(here, pool):
            value = gram[later, here]
            for k in range(n):
                value -= factor[later, k] * np.conj(factor[here, k])
            value /= root
            factor[later, n] = value
            unused[later] -= value.real**2 + value.imag**2
        stay[n] = here
        n += 1
    return stay[:n]
