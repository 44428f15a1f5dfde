"""Strauss layouts: pairs of sites within R of each other are rarer by a factor γ each."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._windows import whole_number
from geoedge.sites.hard_core import radius_on_torus
from geoedge.sites.lattices import lattice_points
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.sites._windows import DrawingWindow, Floats

__all__ = ["strauss_activity", "strauss_points"]

BURN_IN = 300
"""Steps per site before a layout is taken."""

MOST_FILLED = 2.0
"""λπR²(1 − γ) at most: above it, discs begin to freeze and moves no longer mix."""

MARGIN = 6.0
"""Radii between opposite ends of the land around the torus."""

CALIBRATION_SITES = 900
"""Sites of the layouts from which an activity is read."""

CALIBRATION_LAYOUTS = 100
"""Layouts from which an activity is read."""

CALIBRATION_PLACES = 10_000
"""Places in each of them at which a further site is weighed."""

CALIBRATION_STEPS = 10
"""Steps per site between two of them."""


def strauss_points(
    window: DrawingWindow,
    density: float,
    rng: np.random.Generator,
    *,
    radius_m: float,
    gamma: float,
    fixed_count: bool,
) -> Floats:
    """Draw a Strauss process by Metropolis–Hastings moves, births and deaths among them.

    Its density with respect to a Poisson process is γ to the number of pairs within R. On land the torus that it is
    drawn on is 6 R wider than the land, which keeps the land's edge free of bias. The chain begins at a diluted
    lattice and makes 300 steps per site: moves, and then, with births and deaths, as many again. The activity that
    gives the density asked for has no closed form and is calibrated (`strauss_activity`), to about 0.5 % of the
    density. With `fixed_count` the number of sites on the torus is λ times its area, and no calibration is needed.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    radius_m
        R, distance below which two sites interact [m].
    gamma
        γ from 0 (no pair within R) to 1 (Poisson) [–].
    fixed_count
        Whether the number of sites on the torus is fixed.

    Raises
    ------
    CityError
        If the sites are packed so densely that they begin to freeze.
    """
    filled = density * np.pi * radius_m**2
    if filled * (1.0 - gamma) > MOST_FILLED:
        msg = (
            f"`radius_m` = {radius_m:g} and `gamma` = {gamma:g}: λπR²(1 − γ) = {filled * (1.0 - gamma):.3g} at "
            f"{density * M2_PER_KM2:g} sites per km², at most {MOST_FILLED:g}, or the sites begin to freeze; take a "
            "smaller radius or a larger gamma"
        )
        raise CityError(msg)
    radius_on_torus(window, radius_m)
    corner, side = window.frame(MARGIN * radius_m)
    count = whole_number(density * side.prod(), rng)
    xy, shape = _start(count, side, radius_m, rng)
    from geoedge.sites._gibbs import move_sites

    steps = BURN_IN * max(count, 1)
    count = move_sites(xy, count, side, shape, radius_m, gamma, 0.0, steps, rng)
    if not fixed_count:
        activity = density * side.prod() * strauss_activity(filled, gamma)
        count = move_sites(xy, count, side, shape, radius_m, gamma, activity, steps, rng)
    return window.cut(corner + xy[:count])


def _start(
    count: int, side: Floats, radius_m: float, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Return sites that keep their distance, with room for more, and the cells of the torus."""
    from geoedge.sites._windows import DrawingWindow

    shape = np.maximum(np.floor(side / radius_m), 1.0).astype(np.int64)
    shape = np.minimum(shape, max(int(np.sqrt(count)), 1))
    xy = np.zeros((2 * count + 100, 2))
    torus = DrawingWindow(None, (float(side[0]), float(side[1])))
    if count > 0:
        # a lattice with one row to spare, of which as many places as there are sites are taken
        spare = (np.sqrt(count) + 2.0) ** 2 / side.prod()
        place = lattice_points(torus, spare, rng, shape="hexagonal", noise="gaussian", shift_m=0.0)
        xy[:count] = place[rng.permutation(len(place))[:count]]
    return xy, shape


@lru_cache(maxsize=64)
def strauss_activity(filled: float, gamma: float) -> float:
    """Return the activity of a Strauss process over its density.

    By Georgii's, Nguyen's and Zessin's equation the density is the activity times the mean of γ to the number of
    sites within R of a place; that mean is read from layouts of a fixed number of sites, from a stream of its own.

    Parameters
    ----------
    filled
        λπR², mean number of sites in a disc of radius R [–].
    gamma
        γ [–].
    """
    if gamma == 1.0:
        return 1.0
    from geoedge.sites._gibbs import insertion_weight, move_sites

    rng = np.random.default_rng(0)
    side = np.full(2, np.sqrt(float(CALIBRATION_SITES)))
    radius = float(np.sqrt(filled / np.pi))
    xy, shape = _start(CALIBRATION_SITES, side, radius, rng)
    steps, weight = BURN_IN * CALIBRATION_SITES, []
    for _ in range(CALIBRATION_LAYOUTS):
        move_sites(xy, CALIBRATION_SITES, side, shape, radius, gamma, 0.0, steps, rng)
        weight.append(
            insertion_weight(xy, CALIBRATION_SITES, side, shape, radius, gamma, CALIBRATION_PLACES, rng)
        )
        steps = CALIBRATION_STEPS * CALIBRATION_SITES
    return 1.0 / float(np.mean(weight))
