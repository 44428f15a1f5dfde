"""Which site serves a request by a policy in closed form: the one argmin over sites.

Serving a request of type q at place x from site i costs ``delay_coefficient * d(x, i)**delay_exponent
+ offset[i, q]`` seconds (paper, Eq. (22)); `geoedge.policies` forms the offset. The choice is exact:
long site lists are pruned by lower bounds, and what the bounds cannot settle is settled by a full scan.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.errors import GeoEdgeError
from geoedge.policies import POLICIES
from geoedge.serving.candidates import (
    CandidateLists,
    Ground,
    cell_of,
    delay_power,
    squared_distance,
)
from geoedge.serving.keeper import ListKeeper
from geoedge.serving.stations import Stations, wait_at

__all__ = ["POLICIES", "cheapest", "checked_offset", "make_ground", "route", "wrap"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@inlined
def cheapest(
    x: float,
    y: float,
    q: int,
    now: float,
    ground: Ground,
    offset: Floats,
    wait: Floats | Stations,
    lists: CandidateLists,
) -> tuple[int, float, bool]:
    """Return the site of least cost, its squared distance [km²], and whether all sites were scanned.

    Ties go to the lowest index. `offset` must be what `lists` were built from; the advertised wait, never
    negative, comes on top, so that the lists' lower bounds hold whatever is advertised.
    """
    best, winner, best_d2, tail = np.inf, -1, 0.0, -np.inf
    cell = cell_of(x, y, q, lists)
    if cell >= 0:
        tail = lists.tail[cell]
        for j in range(lists.start[cell], lists.start[cell + 1]):
            if lists.bound[j] > best:
                return winner, best_d2, False
            i = lists.site[j]
            d2 = squared_distance(x, y, i, ground)
            cost = ground.coefficient * delay_power(d2, ground.exponent) + offset[i, q]
            if cost <= best:
                cost += wait_at(wait, i, now)
                if cost < best or (cost == best and i < winner):
                    best, winner, best_d2 = cost, i, d2
    if best < tail:
        return winner, best_d2, False
    best = np.inf
    for i in range(offset.shape[0]):
        if offset[i, q] < best:
            d2 = squared_distance(x, y, i, ground)
            cost = ground.coefficient * delay_power(d2, ground.exponent) + offset[i, q]
            if cost < best:
                cost += wait_at(wait, i, now)
                if cost < best:
                    best, winner, best_d2 = cost, i, d2
    return winner, best_d2, True


@kernel
def _route(
    x: Floats, y: Floats, types: Ints, ground: Ground, offset: Floats, wait: Floats, lists: CandidateLists
) -> Ints:
    chosen = np.empty(x.size, dtype=np.int64)
    for k in range(x.size):
        chosen[k], _, _ = cheapest(x[k], y[k], types[k], 0.0, ground, offset, wait, lists)
    return chosen


def wrap(position: npt.ArrayLike, period: float) -> Floats:
    """Return coordinates [km], shape (m,), moved into the window ``[0, period)`` of a torus; as they are in a plane."""
    place = np.ascontiguousarray(position, dtype=np.float64)
    if not np.isfinite(place).all():
        msg = "places must be finite coordinates in km, but some are not"
        raise GeoEdgeError(msg)
    if not np.isfinite(period) or not place.size or (place.min() >= 0 and place.max() < period):
        return place
    place = place - period * np.floor(place / period)
    return np.where(place >= period, 0.0, place)


def checked_offset(offset: npt.ArrayLike, n_sites: int) -> Floats:
    """Return offsets [s], shape (n, Q), after refusing NaN, -inf and types that no site serves."""
    table = np.ascontiguousarray(offset, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != n_sites or n_sites == 0:
        msg = f"`offset` must have one row for each of {n_sites} sites (at least 1), not shape {table.shape}"
        raise GeoEdgeError(msg)
    if np.isnan(table).any() or (table == -np.inf).any():
        msg = "`offset` must hold times in s (inf closes a site), not NaN or -inf"
        raise GeoEdgeError(msg)
    closed = np.flatnonzero(np.isinf(table).all(axis=0))
    if closed.size:
        msg = f"`offset` is infinite at every site for request type {closed[0]}; leave at least one site open"
        raise GeoEdgeError(msg)
    return table


def make_ground(
    site_xy_km: npt.ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    period_km: tuple[float, float] | None = None,
) -> Ground:
    """Return sites and radio delay as the kernels take them, after checking them.

    Raises
    ------
    GeoEdgeError
        If a coordinate is not finite, the coefficient is negative, or exponent or period are not positive.
    """
    if not (0 <= delay_coefficient < np.inf and 0 < delay_exponent < np.inf):
        msg = f"`delay_coefficient` must be >= 0 and `delay_exponent` > 0, not {delay_coefficient}, {delay_exponent}"
        raise GeoEdgeError(msg)
    if period_km is not None and not all(0 < side < np.inf for side in period_km):
        msg = f"`period_km` must be two positive lengths in km or None, not {period_km}"
        raise GeoEdgeError(msg)
    width, height = (np.inf, np.inf) if period_km is None else period_km
    site_xy = _pairs(site_xy_km)
    site_xy = np.column_stack((wrap(site_xy[:, 0], width), wrap(site_xy[:, 1], height)))
    return Ground(site_xy, float(delay_coefficient), float(delay_exponent), float(width), float(height))


def _pairs(xy: npt.ArrayLike) -> Floats:
    return np.asarray(xy, dtype=np.float64).reshape(-1, 2)


def route(
    points_xy_km: npt.ArrayLike,
    types: npt.ArrayLike,
    site_xy_km: npt.ArrayLike,
    offset: npt.ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    period_km: tuple[float, float] | None = None,
) -> Ints:
    """Choose the site of least cost for every point, Eq. (22).

    Exact in every case; equal costs go to the site of lowest index.

    Parameters
    ----------
    points_xy_km
        Where the requests are [km], shape (m, 2).
    types
        Request type of each point, shape (m,), or one type for all.
    site_xy_km
        Where the sites are [km], shape (n, 2).
    offset
        What a site costs beyond the radio delay [s], shape (n, Q); ``inf`` closes a site to a type.
    delay_coefficient
        ξ of the radio delay [s/km^α].
    delay_exponent
        α of the radio delay, positive.
    period_km
        Sizes of the torus window [km]; ``None`` for the plane.

    Returns
    -------
    numpy.ndarray
        Index of the chosen site, shape (m,), int64.

    Raises
    ------
    GeoEdgeError
        If shapes disagree, a number is not what it must be, or a type is closed at every site.

    Examples
    --------
    >>> route([[0.0, 0.0], [0.9, 0.0]], 0, [[0.0, 0.0], [1.0, 0.0]], [[0.5], [0.0]], 1.0, 2.0).tolist()
    [0, 1]
    """
    ground = make_ground(site_xy_km, delay_coefficient, delay_exponent, period_km)
    points = _pairs(points_xy_km)
    x, y = wrap(points[:, 0], ground.period_x), wrap(points[:, 1], ground.period_y)
    n_sites = len(ground.site_xy)
    table = checked_offset(offset, n_sites)
    kinds = np.ascontiguousarray(np.broadcast_to(np.asarray(types, dtype=np.int64), x.size))
    if kinds.size and not (kinds.min() >= 0 and kinds.max() < table.shape[1]):
        msg = f"`types` must lie in 0..{table.shape[1] - 1}, the columns of `offset`"
        raise GeoEdgeError(msg)
    lists = ListKeeper().lists_for(x, y, ground, table, rising=False)
    return _route(x, y, kinds, ground, table, np.zeros(n_sites), lists)
