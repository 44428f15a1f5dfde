"""Point processes: layouts drawn at random."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites.layout import Layout, place_profiles
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from shapely import MultiPolygon, Polygon

__all__ = ["poisson_layout", "uniform_points"]

MAX_ROUNDS = 10_000
"""Rounds of rejection sampling before a polygon is given up as too thin."""


def _window(window: Polygon | MultiPolygon | tuple[float, float]) -> tuple[Any, tuple[float, float] | None]:
    """Return the polygon to fill, and the period if the window is a torus."""
    if not isinstance(window, tuple):
        if window.is_empty or not window.area > 0:
            msg = "`window` must be a polygon of positive area [m²], but it is empty"
            raise CityError(msg)
        return window, None
    width, height = (float(side) for side in window)
    if not (np.isfinite([width, height]).all() and width > 0 and height > 0):
        msg = f"`window` must be a polygon, or positive width and height of a torus [m], not {window}"
        raise CityError(msg)
    return None, (width, height)


def uniform_points(
    window: Polygon | MultiPolygon | tuple[float, float], count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw independent places, uniform over a window.

    Parameters
    ----------
    window
        Polygon [m], or width and height of a torus [m].
    count
        How many places.
    rng
        Random generator.

    Returns
    -------
    numpy.ndarray
        Places [m], shape (count, 2).

    Raises
    ------
    CityError
        If the window is empty or too thin to hit.
    """
    polygon, period = _window(window)
    if period is not None:
        torus: NDArray[np.float64] = rng.random((count, 2)) * np.asarray(period)
        return torus
    import shapely

    shapely.prepare(polygon)
    left, bottom, right, top = polygon.bounds
    share = polygon.area / ((right - left) * (top - bottom))
    found = np.empty((0, 2))
    for _ in range(MAX_ROUNDS):
        if len(found) >= count:
            return found[:count]
        trials = int(np.ceil((count - len(found)) / share * 1.1)) + 8
        trials = min(trials, 1_000_000)
        places = rng.random((trials, 2)) * (right - left, top - bottom) + (left, bottom)
        found = np.vstack((found, places[shapely.contains_xy(polygon, places[:, 0], places[:, 1])]))
    msg = f"`window` covers {share:.1e} of its bounding box, too thin to draw {count} sites in it"
    raise CityError(msg)


def poisson_layout(
    window: Polygon | MultiPolygon | tuple[float, float],
    density_per_km2: float | None,
    rng: np.random.Generator | int,
    *,
    count: int | None = None,
    placement_probability: ArrayLike | None = None,
    crs: str | None = None,
) -> Layout:
    """Draw a homogeneous Poisson layout, Eq. (2), or a binomial one of fixed count.

    A Poisson number of sites draws each site's profile on its own, Eq. (8); a fixed count has fixed counts of
    profiles too.

    Parameters
    ----------
    window
        Polygon to fill [m], or width and height of a torus [m].
    density_per_km2
        λ_b [1/km²]; the number of sites is Poisson with mean density times area. Not used with `count`.
    rng
        Random generator, or a seed for one.
    count
        Fixed number of sites instead.
    placement_probability
        π_s, shape (S,). When left out, profiles are not placed: all are 0 and
        ``report["profiles_placed"]`` is False.
    crs
        The projected CRS of the polygon.

    Raises
    ------
    CityError
        If the window is empty, the density or count is not positive, or the draw has no site.
    """
    polygon, period = _window(window)
    rng = np.random.default_rng(rng)
    area_km2 = (period[0] * period[1] if period is not None else polygon.area) / M2_PER_KM2
    fixed = count is not None
    if count is None:
        if density_per_km2 is None or not (np.isfinite(density_per_km2) and density_per_km2 > 0):
            msg = f"`density_per_km2` must be a positive number of sites per km², not {density_per_km2}"
            raise CityError(msg)
        count = int(rng.poisson(density_per_km2 * area_km2))
    if count < 1:
        msg = f"`density_per_km2` = {density_per_km2} drew {count} sites on {area_km2:.2f} km²; raise it"
        raise CityError(msg)
    placed = placement_probability is not None
    return Layout(
        xy=uniform_points(window, count, rng),
        profile=place_profiles(
            count,
            (1.0,) if placement_probability is None else placement_probability,
            rng,
            independent=not fixed,
        ),
        name=tuple(f"site {i}" for i in range(count)),
        kind=("random",) * count,
        label="Poisson, fixed count" if fixed else "Poisson",
        crs=crs,
        period_m=period,
        report={"sites": count, "area_km2": area_km2, "fixed_count": fixed, "profiles_placed": placed},
    )
