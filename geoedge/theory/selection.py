"""The regions of the plane that sites serve, as in Figure 3: owners of points, boundaries, areas.

With s at the origin and t at distance D on an axis, the points where both cost alike satisfy r_t^α − r_s^α = k
with k = (β_s − β_t)/ξ. The left side falls strictly along the axis for α > 1, so that exactly one point of the axis
is on the boundary, whatever k: between the sites while |k| < D^α, and behind the dearer site beyond that, which
then loses even the place where it stands but keeps what lies far enough behind it. From that apex on, every
distance from the dearer site occurs twice, mirrored: the boundary is drawn by this parameter, exactly and without a
search. At α = 1 it is a branch of a hyperbola and ends with |k| = D, at α = 2 a straight line.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq

from geoedge.theory._plane import check_plane, check_radio, coordinates, finite_gap, increasing, refuse

__all__ = [
    "PairBoundary",
    "SelectionRegions",
    "boundary_curve",
    "rival_area",
    "selection_owner",
    "selection_regions",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairBoundary:
    """Where two sites share a boundary in a plane of several.

    Attributes
    ----------
    first, second
        Indices of the sites.
    curve
        Points [km], shape (n, 2), rows of NaN where a third site is better or the window ends.
    """

    first: int
    second: int
    curve: FloatArray


@dataclass(frozen=True, eq=False)
class SelectionRegions:
    """Who serves each point of a window, as Figure 3 shows it; made by `selection_regions`.

    Attributes
    ----------
    x, y
        Coordinates of the grid [km], shapes (nx,) and (ny,).
    owner
        Index of the serving site, shape (ny, nx).
    boundaries
        Boundaries between the regions, one for each pair of neighbours.
    """

    x: FloatArray
    y: FloatArray
    owner: IntArray
    boundaries: tuple[PairBoundary, ...]

    def share(self, site: int) -> float:
        """Return the share of grid points that a site serves.

        Parameters
        ----------
        site
            Index of the site.
        """
        return float((self.owner == site).mean())


def selection_owner(
    point: ArrayLike, site: ArrayLike, offset: ArrayLike, delay_coefficient: float, delay_exponent: float
) -> IntArray:
    """Return which site serves each point, the least of ξ r^α + β, Eq. (21).

    Parameters
    ----------
    point
        Points [km], shape (..., 2).
    site
        Sites [km], shape (n, 2).
    offset
        Cost offsets β of the sites [s], shape (n,); infinite for sites that are not to be chosen.
    delay_coefficient, delay_exponent
        As in `boundary_distance`.

    Returns
    -------
    IntArray
        Index of the site, of the shape of `point` without its last axis; the first of several that cost alike.

    Raises
    ------
    GeoEdgeError
        If shapes do not fit, a coordinate is not finite, or no site may be chosen.
    """
    check_radio(delay_coefficient, delay_exponent)
    place, where = coordinates("point", point), coordinates("site", site)
    beta = np.asarray(offset, dtype=np.float64)
    if where.ndim != 2 or beta.shape != where.shape[:1]:
        refuse("offset", f"of shape {beta.shape}", f"of shape (n,), one for each of the sites {where.shape}")
    if np.isnan(beta).any() or not (beta < np.inf).any():
        refuse("offset", beta.tolist(), "seconds, at least one finite; infinite means not to be chosen")
    return np.asarray(_costs(place, where, beta, delay_coefficient, delay_exponent).argmin(axis=-1))


def boundary_curve(
    site: ArrayLike,
    rival: ArrayLike,
    offset: float,
    rival_offset: float,
    delay_coefficient: float,
    delay_exponent: float,
    *,
    reach: float,
    points: int = 401,
) -> FloatArray:
    """Return the curve on which two sites cost alike, from one end over its apex to the other.

    Parameters
    ----------
    site, rival
        Positions of s and t [km], shape (2,), not the same.
    offset, rival_offset
        Cost offsets β_s and β_t [s], finite.
    delay_coefficient
        As in `boundary_distance`.
    delay_exponent
        Exponent α, at least 1: below it regions are ovals around a site.
    reach
        How far from the dearer site, which is the nearer one all along, the curve is followed [km].
    points
        Points of the curve, odd; they lie closer near the apex.

    Returns
    -------
    FloatArray
        Points [km], shape (points, 2); shape (0, 2) where the boundary does not come so near, or at α = 1 does
        not exist as one site is better everywhere.

    Raises
    ------
    GeoEdgeError
        If an argument is out of its range.
    """
    check_plane(delay_coefficient, delay_exponent, reach, "reach")
    if points < 3 or points % 2 == 0:
        refuse("points", points, "an odd number from 3 on")
    gap = float(finite_gap(offset, rival_offset, delay_coefficient))
    dear, cheap = coordinates("site", site), coordinates("rival", rival)
    if gap < 0.0:
        dear, cheap, gap = cheap, dear, -gap
    separation = _separation(dear, cheap)
    apex = _apex(gap, separation, delay_exponent, reach)
    if apex is None or abs(apex) >= reach:
        return np.empty((0, 2))
    step = np.linspace(-1.0, 1.0, points)
    near = abs(apex) + (reach - abs(apex)) * step**2
    far = (near**delay_exponent + gap) ** (1.0 / delay_exponent)
    along = 0.5 * separation - 0.5 * (far - near) * (far + near) / separation
    along[points // 2] = apex
    across = np.sign(step) * np.sqrt(np.maximum((near - along) * (near + along), 0.0))
    axis = (cheap - dear) / separation
    return np.asarray(dear + np.outer(along, axis) + np.outer(across, [-axis[1], axis[0]]))


def rival_area(
    radius: float,
    separation: float,
    offset: float,
    rival_offset: float,
    delay_coefficient: float,
    delay_exponent: float,
) -> float:
    """Return how much of the disc around s the site t serves [km²].

    On the circle of radius r around s, t serves the arc with cos θ > (r² + D² − r_t(r)²)/(2 r D), where r_t(r) is
    the `boundary_distance`; the area is the integral of the arcs.

    Parameters
    ----------
    radius
        Radius of the disc [km].
    separation
        Distance D between the sites [km].
    offset, rival_offset
        Cost offsets β_s and β_t [s], finite.
    delay_coefficient, delay_exponent
        As in `boundary_curve`.

    Returns
    -------
    float
        Area [km²], accurate to 1e-9 of the disc.

    Raises
    ------
    GeoEdgeError
        If an argument is out of its range.
    """
    check_plane(delay_coefficient, delay_exponent, radius, "radius")
    if not 0.0 < separation < np.inf:
        refuse(
            "separation", separation, "a positive number of km; sites at one place compare by offset alone"
        )
    gap = float(finite_gap(offset, rival_offset, delay_coefficient))

    def arc(r: float) -> float:
        if r <= 0.0:
            return 0.0
        far = max(r**delay_exponent + gap, 0.0) ** (1.0 / delay_exponent)
        cosine = (r * r + separation * separation - far * far) / (2.0 * r * separation)
        return 2.0 * r * float(np.arccos(min(max(cosine, -1.0), 1.0)))

    apex = _apex(gap, separation, delay_exponent, radius)
    # the arc opens or closes with the root of the distance to the apex, which r = apex ± u² makes smooth
    start = 0.0 if apex is None else min(abs(apex), radius)
    accuracy = 1e-10 * radius * radius

    def piece(sign: float, width: float) -> float:
        area, _ = quad(
            lambda u: 2.0 * u * arc(start + sign * u * u), 0.0, width**0.5, epsabs=accuracy, epsrel=1e-10
        )
        return float(area)

    return (piece(-1.0, start) if start > 0.0 else 0.0) + piece(1.0, radius - start)


def selection_regions(
    site: ArrayLike,
    offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    *,
    x: ArrayLike,
    y: ArrayLike,
    points: int = 801,
) -> SelectionRegions:
    """Return the regions that sites serve in a window, and the exact boundaries between them.

    Parameters
    ----------
    site
        Sites [km], shape (n, 2), no two at one place.
    offset
        Cost offsets β [s], shape (n,), finite.
    delay_coefficient, delay_exponent
        As in `boundary_curve`.
    x, y
        Increasing coordinates of the grid [km], shapes (nx,) and (ny,).
    points
        Points of each boundary before those are dropped where it is none.

    Raises
    ------
    GeoEdgeError
        As `selection_owner` and `boundary_curve`.
    """
    where, beta = coordinates("site", site), np.asarray(offset, dtype=np.float64)
    columns, rows = (increasing(name, value) for name, value in (("x", x), ("y", y)))
    grid = np.stack(np.meshgrid(columns, rows), axis=-1)
    owner = selection_owner(grid, where, beta, delay_coefficient, delay_exponent)
    corners = np.array([[columns[0], rows[0]], [columns[-1], rows[-1]]])
    boundaries = []
    for s, t in combinations(range(len(where)), 2):
        dear = where[s] if beta[s] >= beta[t] else where[t]
        reach = float(np.hypot(*np.abs(corners - dear).max(axis=0)))
        ends = (where[s], where[t], float(beta[s]), float(beta[t]))
        curve = boundary_curve(*ends, delay_coefficient, delay_exponent, reach=reach, points=points)
        costs = _costs(curve, where, beta, delay_coefficient, delay_exponent)
        third = np.delete(costs, [s, t], axis=1).min(axis=1, initial=np.inf)
        inside = ((curve >= corners[0]) & (curve <= corners[1])).all(axis=1)
        real = np.flatnonzero(inside & (third >= costs[:, s]))
        if real.size:
            shown = np.full_like(curve, np.nan)
            shown[real] = curve[real]
            boundaries.append(PairBoundary(s, t, shown))
    return SelectionRegions(columns, rows, owner, tuple(boundaries))


def _apex(gap: float, separation: float, exponent: float, reach: float) -> float | None:
    """Return where the boundary crosses the axis, s at 0 and t at the separation, if within reach of s."""

    def excess(along: float) -> float:
        return float(abs(along - separation) ** exponent - abs(along) ** exponent) - gap

    # the difference falls along the axis, and is flat at α = 1 outside the sites
    if excess(-reach) <= 0.0 or excess(reach) >= 0.0:
        return None
    return float(brentq(excess, -reach, reach, xtol=1e-15 * reach, rtol=8.9e-16))


def _costs(
    point: FloatArray, site: FloatArray, offset: FloatArray, coefficient: float, exponent: float
) -> FloatArray:
    """Return the cost of every site [s] at points (..., 2), shape (..., n)."""
    way = point[..., None, :] - site
    return np.asarray(coefficient * np.hypot(way[..., 0], way[..., 1]) ** exponent + offset)


def _separation(site: FloatArray, rival: FloatArray) -> float:
    """Return the distance between two sites [km], which must not stand at one place."""
    if site.shape != (2,) or rival.shape != (2,) or not (site != rival).any():
        refuse(
            "rival", rival.tolist(), f"one place other than `site` {site.tolist()}; merge sites at one place"
        )
    return float(np.hypot(*(rival - site)))
