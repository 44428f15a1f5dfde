"""Paired differences, and the share that one has of another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from geoedge.compare.columns import interval

__all__ = ["paired", "share"]

Floats = NDArray[np.float64]
NOWHERE = (float("nan"),) * 3


def paired(values: Floats, base: Floats) -> tuple[float, float, float]:
    """Return the mean of paired differences and its 95 % interval.

    Parameters
    ----------
    values, base
        What two contestants had in the same runs, shape (R,).
    """
    return interval(values - base)


def share(part: Floats, whole: Floats) -> tuple[float, float, float]:
    """Return the ratio of two paired means and its 95 % interval after Fieller.

    With mean differences x and y over R runs, the interval holds every θ for which x − θ y is not told apart from
    zero: (x − θ y)² ≤ t² (s_xx − 2 θ s_xy + θ² s_yy) / R. Unlike an interval by the delta method it is exact for
    normal differences, however far y is from zero; where y itself is not told apart from zero, no share is.

    Parameters
    ----------
    part, whole
        Differences of a run, shape (R,).

    Returns
    -------
    tuple of float
        Ratio, low, high; NaN where the whole is not told apart from zero, NaN bounds for a single run.
    """
    from scipy.stats import t as student

    count, x, y = len(whole), float(part.mean()), float(whole.mean())
    if count < 2:
        return (x / y, *NOWHERE[1:]) if y > 0.0 else NOWHERE
    spread: NDArray[Any] = np.cov(part, whole) * (float(student.ppf(0.975, count - 1)) ** 2 / count)
    a, b, c = y * y - spread[1, 1], x * y - spread[0, 1], x * x - spread[0, 0]
    if a <= 0.0 or y <= 0.0:
        return NOWHERE
    half = float(np.sqrt(max(b * b - a * c, 0.0)))
    return x / y, (b - half) / a, (b + half) / a
