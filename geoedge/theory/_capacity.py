"""Where stability ends: the wait differences at which all tiers are equally full.

With waits far above everything else only their differences steer the choice, and these settle so that no tier is
relatively fuller than another. Newton's method finds them from zero. Where the radio delay is so small that tiers
fill in jumps, it is enlarged first and brought down again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geoedge.theory.association import attracted_load
from geoedge.theory.network import TieredNetwork

__all__ = ["Filled", "fill_alike"]

FloatArray = NDArray[np.float64]

_ACCEPTED = 1e-8  # difference of log utilisations that counts as none
_LARGEST_BLUR = 4.0**12  # factor on the radio delay to start from
_SHARPEST, _SLOWEST = 0.1, 0.97  # ratios of two radio delays between which the descent keeps
_STEPS, _HALVINGS = 60, 12
_NO_WORK = 1e-280  # stands in for the work of a tier that nobody chooses


class Filled(NamedTuple):
    """The state of a network whose tiers are all just full."""

    wait: FloatArray
    """Wait differences [s], the least being zero, shape (S,)."""
    intensity: float
    """The intensity at which they are full [1/(s km²)]; the necessary bound where the search failed."""
    exact: bool
    """Whether the tiers are equally full at these differences, so that the intensity is where they all end."""


def fill_alike(network: TieredNetwork, blur: float = 1.0) -> Filled:
    """Return the wait differences at which all tiers fill alike, and the intensity at which they are full.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    blur
        Factor on the radio delay.
    """
    zero, bound = np.zeros(network.tiers), network.necessary_intensity
    found = _equal_fill(network, zero, blur) or _descend(network, zero, blur)
    # a search that ends below a load that is known to be carried has found something else
    if found is None or found[1] < network.sufficient_intensity * (1.0 - 1e-9):
        return Filled(zero, bound, False)
    return Filled(found[0], min(found[1], bound), True)


def _descend(network: TieredNetwork, zero: FloatArray, goal: float) -> tuple[FloatArray, float] | None:
    """Return equal fill as the end of a path of ever smaller radio delays."""
    blur, ratio = goal * _LARGEST_BLUR, 0.25
    reached = _equal_fill(network, zero, blur)
    while reached is not None and blur > goal and ratio <= _SLOWEST:
        closer = _equal_fill(network, reached[0], max(goal, ratio * blur))
        if closer is None:
            ratio = ratio**0.5
        else:
            reached, blur, ratio = closer, max(goal, ratio * blur), max(_SHARPEST, ratio**1.3)
    return reached if blur == goal else None


def _equal_fill(network: TieredNetwork, start: FloatArray, blur: float) -> tuple[FloatArray, float] | None:
    """Solve for equal utilisations by Newton, with the radio delay multiplied by `blur`."""
    there = network.tier_density > 0.0
    wait = np.where(there, start - start[there].min(), 0.0)
    gap, fill, slope = _fill(network, wait, there, blur)
    for _ in range(_STEPS):
        worst = np.abs(gap).max()
        if not worst > 1e-12:
            break
        try:
            # a common wait changes nothing: what is added makes the matrix regular, not the solution another
            move = np.linalg.solve(slope - slope.mean(axis=0) - np.abs(slope).max(), -gap)
        except np.linalg.LinAlgError:  # tiers that nobody reaches at these waits
            return None
        for damping in 0.5 ** np.arange(_HALVINGS):
            trial = wait.copy()
            trial[there] += damping * move
            trial[there] -= trial[there].min()
            gap, fill, slope = _fill(network, trial, there, blur)
            if np.abs(gap).max() < worst:
                break
        else:
            break
        wait = trial
    return (wait, 1.0 / float(fill.max())) if np.abs(gap).max() <= _ACCEPTED else None


def _fill(
    network: TieredNetwork, wait: FloatArray, there: NDArray[np.bool_], blur: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how far log utilisations are from their mean, the utilisations at unit intensity, and slopes."""
    drawn = attracted_load(network, wait, slopes=True, blur=blur)
    work = np.maximum(drawn.work, _NO_WORK)[there]
    fill = work / network.concurrency[there]
    logs = np.log(fill)
    return logs - logs.mean(), fill, drawn.work_slope[np.ix_(there, there)] / work[:, None]
