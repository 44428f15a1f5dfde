"""The window a layout is drawn in: land of any shape, or a torus; and uniform places in and around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geoedge.errors import CityError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from shapely import MultiPolygon, Polygon

    Floats: TypeAlias = NDArray[np.float64]
    Land: TypeAlias = Polygon | MultiPolygon | tuple[float, float]

__all__ = ["DrawingWindow", "close_pairs", "drawing_window", "uniform_points", "whole_number", "wrapped"]

MAX_ROUNDS = 10_000
"""Rounds of rejection sampling before a polygon is given up as too thin."""

MAX_TRIALS = 1_000_000
"""Places tried in a round of rejection sampling."""

SPARSE = 4.0
"""A frame this many times as large as the land near it is not worth filling; its buffer is."""


@dataclass(frozen=True, eq=False)
class DrawingWindow:
    """Land, or a torus.

    Parameters
    ----------
    polygon
        Land [m]; ``None`` on a torus.
    period_m
        Width and height of the torus [m]; ``None`` for land.
    """

    polygon: Any
    period_m: tuple[float, float] | None = None

    @property
    def area_m2(self) -> float:
        """Area [m²]."""
        if self.period_m is not None:
            return self.period_m[0] * self.period_m[1]
        return float(self.polygon.area)

    @property
    def corner(self) -> Floats:
        """Left and bottom end [m], shape (2,)."""
        return np.array((0.0, 0.0) if self.period_m is not None else self.polygon.bounds[:2])

    @property
    def sides(self) -> Floats:
        """Width and height of the bounding box [m], shape (2,)."""
        if self.period_m is not None:
            return np.array(self.period_m)
        left, bottom, right, top = self.polygon.bounds
        return np.array((right - left, top - bottom))

    def kept(self, xy: Floats) -> NDArray[np.bool_]:
        """Return which places are in the window, shape (n,); all of them on a torus.

        Parameters
        ----------
        xy
            Places [m], shape (n, 2).
        """
        if self.period_m is not None:
            return np.ones(len(xy), dtype=np.bool_)
        import shapely

        shapely.prepare(self.polygon)
        inside: NDArray[np.bool_] = shapely.contains_xy(self.polygon, xy[:, 0], xy[:, 1])
        return inside

    def cut(self, xy: Floats) -> Floats:
        """Return the places in the window [m]; on a torus all of them, wrapped.

        Parameters
        ----------
        xy
            Places [m], shape (n, 2).
        """
        return xy[self.kept(xy)] if self.period_m is None else wrapped(xy, self.period_m)

    def poisson_around(self, density: float, reach_m: float, rng: np.random.Generator) -> Floats:
        """Draw a Poisson process in everything within reach of the window and beyond [m], shape (n, 2).

        Parameters
        ----------
        density
            Its density [1/m²].
        reach_m
            How far from the window places still matter [m]; a torus has no outside.
        rng
            Random generator.
        """
        if self.period_m is not None:
            return rng.random((rng.poisson(density * self.area_m2), 2)) * self.sides
        frame = self.sides + 2.0 * reach_m
        near_most = self.area_m2 + self.polygon.length * reach_m + np.pi * reach_m**2
        if frame.prod() < SPARSE * near_most:
            many = rng.poisson(density * frame.prod())
            return np.asarray(self.corner - reach_m + rng.random((many, 2)) * frame)
        near = self.polygon.buffer(1.01 * reach_m)  # the buffer's arcs are polygons inside of the true ones
        return uniform_points(near, rng.poisson(density * near.area), rng)

    def frame(self, margin_m: float) -> tuple[Floats, Floats]:
        """Return corner and sides of a torus to draw on [m]: the window's own, or one around the land.

        Opposite ends of the land are then at least the margin apart, and a process on the torus, cut to the land,
        is stationary there.

        Parameters
        ----------
        margin_m
            What is added to each side of the land's bounding box [m].
        """
        if self.period_m is not None:
            return self.corner, self.sides
        return self.corner, self.sides + margin_m


def drawing_window(window: Land | DrawingWindow) -> DrawingWindow:
    """Return a polygon, or width and height of a torus, as a window.

    Parameters
    ----------
    window
        Polygon [m], or width and height of a torus [m].

    Raises
    ------
    CityError
        If it has no area.
    """
    if isinstance(window, DrawingWindow):
        return window
    if not isinstance(window, tuple):
        if window.is_empty or not window.area > 0:
            msg = "`window` must be a polygon of positive area [m²], but it is empty"
            raise CityError(msg)
        return DrawingWindow(window)
    width, height = (float(side) for side in window)
    if not (np.isfinite([width, height]).all() and width > 0 and height > 0):
        msg = f"`window` must be a polygon, or positive width and height of a torus [m], not {window}"
        raise CityError(msg)
    return DrawingWindow(None, (width, height))


def uniform_points(window: Land | DrawingWindow, count: int, rng: np.random.Generator) -> Floats:
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
    where = drawing_window(window)
    if where.period_m is not None:
        return np.asarray(rng.random((count, 2)) * where.sides)
    share = where.area_m2 / where.sides.prod()
    found = np.empty((0, 2))
    for _ in range(MAX_ROUNDS):
        if len(found) >= count:
            return found[:count]
        trials = int(np.ceil((count - len(found)) / share * 1.1)) + 8
        places = rng.random((min(trials, MAX_TRIALS), 2)) * where.sides + where.corner
        found = np.vstack((found, where.cut(places)))
    msg = f"`window` covers {share:.1e} of its bounding box, too thin to draw {count} sites in it"
    raise CityError(msg)


def wrapped(xy: Floats, period_m: tuple[float, float]) -> Floats:
    """Return places on a torus with coordinates from 0 to below the period [m], shape (n, 2).

    Parameters
    ----------
    xy
        Places [m], shape (n, 2).
    period_m
        Width and height of the torus [m].
    """
    inside = np.mod(xy, period_m)
    # the remainder of a tiny negative number is rounded to the period itself
    return np.where(inside >= period_m, 0.0, inside)


def close_pairs(
    xy: Floats, reach_m: float, period_m: tuple[float, float] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both members of every pair of places at most this far apart, each of shape (pairs,).

    Parameters
    ----------
    xy
        Places [m], shape (n, 2).
    reach_m
        Distance [m].
    period_m
        Width and height of the torus [m]; ``None`` on the plane.
    """
    from scipy.spatial import cKDTree

    if len(xy) < 2:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    boxsize: Any = period_m
    pairs = cKDTree(xy, boxsize=boxsize).query_pairs(reach_m, output_type="ndarray")
    return pairs[:, 0], pairs[:, 1]


def whole_number(mean: float, rng: np.random.Generator) -> int:
    """Return one of the two whole numbers next to a mean, at random so that it is the mean.

    Parameters
    ----------
    mean
        Nonnegative number.
    rng
        Random generator.
    """
    return int(np.floor(mean) + (rng.random() < mean % 1.0))
