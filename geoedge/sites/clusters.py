"""Clustered layouts: sites scattered around parents that are a Poisson process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.sites.hard_core import radius_on_torus
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from geoedge.sites._windows import DrawingWindow, Floats

__all__ = ["matern_cluster_points", "thomas_points"]

REACH = 6.0
"""Spreads beyond the edge of the land at which parents still count; farther ones lose 2e-8 of their sites."""


def thomas_points(
    window: DrawingWindow,
    density: float,
    rng: np.random.Generator,
    *,
    parents_per_km2: float,
    spread_m: float,
) -> Floats:
    """Draw a Thomas process: a Poisson number of sites around each parent, at normal distances.

    Each parent has λ/λ_p sites on average. On land parents stand also outside, up to six spreads away; that is
    exact but for 2e-8 of the sites of parents farther away. On a torus sites wrap around and it is exact.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    parents_per_km2
        λ_p, parents per area [1/km²].
    spread_m
        σ, standard deviation in x and in y of a site from its parent [m].
    """
    parent = _parents(window, density, rng, parents_per_km2, REACH * spread_m)
    return window.cut(parent + rng.normal(0.0, spread_m, parent.shape))


def matern_cluster_points(
    window: DrawingWindow,
    density: float,
    rng: np.random.Generator,
    *,
    parents_per_km2: float,
    radius_m: float,
) -> Floats:
    """Draw a Matérn cluster process: a Poisson number of sites, uniform in a disc around each parent.

    Each parent has λ/λ_p sites on average. Exact on any window: parents stand also within R outside of it.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    parents_per_km2
        λ_p, parents per area [1/km²].
    radius_m
        R, radius of a disc [m].

    Raises
    ------
    CityError
        If a disc meets itself around the torus.
    """
    radius_on_torus(window, radius_m)
    parent = _parents(window, density, rng, parents_per_km2, radius_m)
    angle, away = 2.0 * np.pi * rng.random(len(parent)), radius_m * np.sqrt(rng.random(len(parent)))
    return window.cut(parent + away[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1))


def _parents(
    window: DrawingWindow, density: float, rng: np.random.Generator, parents_per_km2: float, reach_m: float
) -> Floats:
    """Return the parent of each site [m], shape (n, 2)."""
    parents = parents_per_km2 / M2_PER_KM2
    parent = window.poisson_around(parents, reach_m, rng)
    return np.repeat(parent, rng.poisson(density / parents, len(parent)), axis=0)
