"""Where curves reach a level: the density that covers a share, the time by which it is covered, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "CONFIDENCE",
    "VALUES",
    "Crossing",
    "band",
    "band_rank",
    "band_share",
    "crossings",
    "first_crossing",
    "nothing_said",
    "open_ends",
    "resampled",
    "single_crossings",
]

RESAMPLES = 999
"""Bootstrap samples of the layouts."""
CONFIDENCE = (0.025, 0.975)
SURE = 1e-6
"""A coverage so near 0 or 1 says nothing about a density."""
VALUES = (
    *("gain", "gain_low", "gain_high", "poisson_low", "poisson_high", "rank"),
    *("shift_s", "shift_low_s", "shift_high_s", "poisson_shift_low_s", "poisson_shift_high_s", "time_ratio"),
)
"""Columns of a gain, the interval of the reference mean, and the band of single Poisson layouts."""


class Crossing(NamedTuple):
    """Argument at which a mean curve reaches a level, its interval, and why any of them is unknown."""

    value: float
    low: float
    high: float
    note: str


def resampled(curves: Floats, rng: np.random.Generator) -> Floats:
    """Return the mean curve, then those of bootstrap samples of the layouts, shape (1 + RESAMPLES, M).

    Parameters
    ----------
    curves
        One curve a layout, shape (L, M).
    rng
        Random generator.
    """
    layouts = len(curves)
    drawn = rng.multinomial(layouts, np.full(layouts, 1.0 / layouts), RESAMPLES)
    return np.vstack((curves.mean(axis=0), drawn @ curves / layouts))


def first_crossing(arguments: Floats, curves: Floats, level: float) -> Floats:
    """Return the least argument at which each curve reaches a level, by straight lines between what is known.

    Parameters
    ----------
    arguments
        Rising, shape (M,).
    curves
        One a row, shape (B, M).
    level
        The level.

    Returns
    -------
    numpy.ndarray
        Shape (B,): −inf where the first value reaches the level already, inf where none does.
    """
    reached = curves >= level
    at = np.argmax(reached, axis=1)
    row, before = np.arange(len(curves)), np.maximum(at - 1, 0)
    rise = curves[row, at] - curves[row, before]
    part = (level - curves[row, before]) / np.where(rise > 0.0, rise, 1.0)
    crossing = arguments[before] + part * (arguments[at] - arguments[before])
    crossing[at == 0] = -np.inf
    return np.where(reached.any(axis=1), crossing, np.inf)


def crossings(arguments: Floats, curves: Floats, level: float, notes: tuple[str, str]) -> Crossing:
    """Return where the first curve reaches a level, and the interval in which the others do.

    Parameters
    ----------
    arguments
        Rising, shape (M,).
    curves
        The mean curve and those of bootstrap samples, as `resampled` gives them.
    level
        The level.
    notes
        What to say where the first argument is enough, and where none is.

    Returns
    -------
    Crossing
        A bound is NaN where it lies left of all arguments, and infinite where it lies right of them.
    """
    found = first_crossing(arguments, curves, level)
    low, high = np.quantile(found[1:], CONFIDENCE, method="nearest")
    left, right = (float("nan") if end == -np.inf else float(end) for end in (low, high))
    if np.isfinite(found[0]):
        return Crossing(float(found[0]), left, right, open_ends("the interval", low, high, notes))
    return Crossing(float("nan"), left, right, notes[0] if found[0] < 0.0 else notes[1])


def open_ends(what: str, low: float, high: float, notes: tuple[str, str]) -> str:
    """Return why ends of an interval are unknown, or nothing if both are known.

    Parameters
    ----------
    what
        What is open.
    low, high
        Its ends, infinite where they lie beyond what is known.
    notes
        What some curves do on the left and on the right of what is known.
    """
    said = [
        f"{what} is open {side}, as for some {note}"
        for end, side, note in ((low, "below", notes[0]), (high, "above", notes[1]))
        if not np.isfinite(end)
    ]
    return "; ".join(said)


def single_crossings(arguments: Floats, curves: Floats, levels: Floats) -> Floats:
    """Return where the mean curve of all other layouts reaches each layout's own level.

    Parameters
    ----------
    arguments
        Rising, shape (M,).
    curves
        One curve a layout, shape (L, M).
    levels
        Level of each layout, shape (L,).

    Returns
    -------
    numpy.ndarray
        As `first_crossing` gives it, shape (L,).
    """
    others = (curves.sum(axis=0) - curves) / (len(curves) - 1)
    return first_crossing(arguments, others - levels[:, None], 0.0)


def band_rank(layouts: int) -> int:
    """Return from which on, counted from either end, ranks of so many layouts are in the 95 % band."""
    return max(1, int(CONFIDENCE[0] * (layouts + 1) + 1e-9))


def band_share(layouts: int) -> float:
    """Return the chance that one more layout lies in the band of so many."""
    return (layouts + 1 - 2 * band_rank(layouts)) / (layouts + 1)


def band(values: Floats) -> tuple[float, float]:
    """Return order statistics between which one more value of the same kind lies, in 95 % of cases if there are 39.

    Of n < 39 values these are the least and the greatest, and one more lies between them in (n − 1)/(n + 1) of cases.
    """
    ordered, rank = np.sort(values), band_rank(len(values))
    return float(ordered[rank - 1]), float(ordered[-rank])


def nothing_said(level: float) -> str:
    """Return why a coverage names no density, or nothing if it does.

    Parameters
    ----------
    level
        Share of requests in time.
    """
    if SURE < level < 1.0 - SURE:
        return ""
    return f"the layout covers {'nobody' if level < 0.5 else 'everybody'}: any density would do"
