"""Layouts that keep a distance: Matérn's two thinnings of a Poisson process, and holes cut into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._windows import close_pairs
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from geoedge.sites._windows import DrawingWindow, Floats

__all__ = ["hole_points", "matern_one_points", "matern_two_points", "radius_on_torus"]

MOST_HOLES = 6.0
"""Mean number of holes over a place above which next to nothing would be left of a proposal."""


def matern_two_points(
    window: DrawingWindow, density: float, rng: np.random.Generator, *, radius_m: float
) -> Floats:
    """Draw Matérn's second hard-core process: a proposed site stays if none within R of it came before.

    Exact on any window: sites are proposed also within R outside of it. Proposals have the density
    λ_p = −ln(1 − λπR²)/(πR²), of which λ = (1 − exp(−λ_p πR²))/(πR²) stay.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    radius_m
        R, which no two sites are nearer than [m].

    Raises
    ------
    CityError
        If no such process is as dense: λπR² must be below 1.
    """
    disc = np.pi * radius_m**2
    _room(density, disc, 1.0, "Matérn II", "λπR² < 1")
    radius_on_torus(window, radius_m)
    xy = window.poisson_around(-np.log1p(-density * disc) / disc, radius_m, rng)
    age = rng.random(len(xy))
    one, two = close_pairs(xy, radius_m, window.period_m)
    kept = np.ones(len(xy), dtype=np.bool_)
    kept[np.where(age[one] > age[two], one, two)] = False
    return window.cut(xy[kept])


def matern_one_points(
    window: DrawingWindow, density: float, rng: np.random.Generator, *, radius_m: float
) -> Floats:
    """Draw Matérn's first hard-core process: proposed sites within R of each other are all deleted.

    Exact on any window: sites are proposed also within R outside of it. Of the density λ_p proposed
    λ = λ_p exp(−λ_p πR²) stays, at most 1/(eπR²); the smaller root is taken.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    radius_m
        R, which no two sites are nearer than [m].

    Raises
    ------
    CityError
        If no such process is as dense: λπR² must be at most 1/e.
    """
    from scipy.special import lambertw

    disc = np.pi * radius_m**2
    _room(density, disc, np.exp(-1.0), "Matérn I", "λπR² ≤ 1/e")
    radius_on_torus(window, radius_m)
    xy = window.poisson_around(-float(lambertw(-density * disc).real) / disc, radius_m, rng)
    one, two = close_pairs(xy, radius_m, window.period_m)
    kept = np.ones(len(xy), dtype=np.bool_)
    kept[one] = kept[two] = False
    return window.cut(xy[kept])


def hole_points(
    window: DrawingWindow, density: float, rng: np.random.Generator, *, radius_m: float, holes_per_km2: float
) -> Floats:
    """Draw a Poisson hole process: Poisson sites, none within D of the points of another Poisson process.

    Exact on any window. With holes of density λ_h the proposed density is λ exp(λ_h πD²).

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    radius_m
        D, radius of a hole [m].
    holes_per_km2
        λ_h, holes per area [1/km²].

    Raises
    ------
    CityError
        If the holes cover nearly everything.
    """
    holes = holes_per_km2 / M2_PER_KM2
    over = holes * np.pi * radius_m**2
    if over > MOST_HOLES:
        msg = (
            f"`holes_per_km2` = {holes_per_km2:g} and `radius_m` = {radius_m:g} cover a place {over:.3g} times on "
            f"average; at most {MOST_HOLES:g}, or hardly a place is left; take fewer or smaller holes"
        )
        raise CityError(msg)
    radius_on_torus(window, radius_m)
    from scipy.spatial import cKDTree

    xy = window.cut(window.poisson_around(density * np.exp(over), 0.0, rng))
    centres = window.poisson_around(holes, radius_m, rng)
    if not (len(xy) and len(centres)):
        return xy
    boxsize: Any = window.period_m
    tree = cKDTree(centres, boxsize=boxsize)
    return xy[tree.query(xy)[0] > radius_m]


def radius_on_torus(window: DrawingWindow, radius_m: float) -> None:
    """Refuse a radius at which a disc meets itself around a torus.

    Parameters
    ----------
    window
        Where.
    radius_m
        Radius [m].

    Raises
    ------
    CityError
        If it is more than half the shorter side.
    """
    if window.period_m is not None and radius_m > 0.5 * min(window.period_m):
        msg = (
            f"`radius_m` = {radius_m:g}: at most half the shorter side of the torus, {0.5 * min(window.period_m):g} m, "
            "or a disc meets itself; take a wider torus"
        )
        raise CityError(msg)


def _room(density: float, disc: float, most: float, name: str, rule: str) -> None:
    filled = density * disc
    if filled > most or (most == 1.0 and filled == most):
        widest = np.sqrt(most / (np.pi * density))
        msg = (
            f"`density_per_km2` = {density * M2_PER_KM2:g}: {name} with `radius_m` = {np.sqrt(disc / np.pi):g} reaches "
            f"{most / disc * M2_PER_KM2:.4g} per km² ({rule}); lower the density, or take a radius below {widest:.4g} m"
        )
        raise CityError(msg)
