"""Estimators behind the summary functions: positions that are known to be good in, arrays out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import spacings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.sites._edges import StudyWindow

    class Estimator(Protocol):
        """Positions in a window, distances and the name of a correction in; the values out."""

        def __call__(
            self, xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], correction: str
        ) -> NDArray[np.float64]:
            """Return the values at the distances."""


__all__ = [
    "STATISTICS",
    "curve_values",
    "distances",
    "kaplan_meier",
    "nearest_site_m",
    "pair_correlation_values",
    "poisson_values",
]

DISTANCES = 100
"""How many distances a curve has when none are given."""

SPACINGS = {"K": 4.0, "L": 4.0, "g": 4.0, "G": 1.5, "F": 2.0, "J": 1.0}
"""How many spacings 1/√density a curve reaches, when the window is wide enough: beyond, little is left to learn."""

STOYAN = 0.15
"""Half width of the kernel of g in spacings (D. Stoyan and H. Stoyan, Fractals, Random Shapes and Point Fields)."""


def distances(window: StudyWindow, count: int, statistic: str = "L") -> NDArray[np.float64]:
    """Return distances that suit a statistic and a window [m], from 0, equally spaced, shape (r,).

    Parameters
    ----------
    window
        Where the sites are.
    count
        How many sites there are.
    statistic
        Key of `STATISTICS`.
    """
    reach = min(window.largest_r_m, SPACINGS[statistic] * spacings(window, count))
    return np.linspace(0.0, reach, DISTANCES)


def poisson_values(statistic: str, r_m: NDArray[np.float64], window: StudyWindow, count: int) -> Any:
    """Return what a Poisson layout of this many sites has, shape (r,).

    Parameters
    ----------
    statistic
        Key of `STATISTICS`.
    r_m
        Distances [m], shape (r,).
    window
        Where the sites are.
    count
        How many sites there are.
    """
    if statistic == "K":
        return np.pi * r_m**2
    if statistic == "L":
        return r_m.copy()
    if statistic in "GF":
        return -np.expm1(-np.pi * r_m**2 * count / window.area_m2)
    return np.ones(len(r_m))


def nearest_site_m(xy: NDArray[np.float64], window: StudyWindow) -> NDArray[np.float64]:
    """Return every site's distance to the nearest other site [m], shape (n,).

    Parameters
    ----------
    xy
        Positions [m], shape (n, 2).
    window
        Where they are, for a torus.
    """
    from scipy.spatial import cKDTree

    boxsize: Any = window.period_m
    return np.asarray(cKDTree(xy, boxsize=boxsize).query(xy, k=2)[0])[:, 1]


def curve_values(
    statistic: str,
    xy: NDArray[np.float64],
    window: StudyWindow,
    r_m: NDArray[np.float64],
    correction: str | None = None,
) -> NDArray[np.float64]:
    """Return a summary function of positions that are known to be good, shape (r,).

    Parameters
    ----------
    statistic
        Key of `STATISTICS`.
    xy
        Positions [m], shape (n, 2).
    window
        Where they are.
    r_m
        Distances [m], shape (r,).
    correction
        One of the statistic's corrections; its first when left out.
    """
    estimate, corrections = STATISTICS[statistic]
    return estimate(xy, window, r_m, correction or corrections[0])


def _close_pairs(
    xy: NDArray[np.float64], window: StudyWindow, reach_m: float
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Return the pairs within reach, shape (k, 2), their displacement [m], shape (k, 2), and distance [m], (k,)."""
    from scipy.spatial import cKDTree

    boxsize: Any = window.period_m
    pair = cKDTree(xy, boxsize=boxsize).query_pairs(reach_m, output_type="ndarray")
    apart = xy[pair[:, 1]] - xy[pair[:, 0]]
    if window.period_m is not None:
        apart -= np.round(apart / window.period_m) * window.period_m
    return pair, apart, np.hypot(apart[:, 0], apart[:, 1])


def _k(
    xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], correction: str
) -> NDArray[np.float64]:
    pair, apart, distance = _close_pairs(xy, window, float(r_m[-1]))
    first = np.searchsorted(r_m, distance)
    n, last = len(xy), len(r_m)
    if correction == "translation" or window.period_m is not None:
        weight = 2.0 * window.area_m2 / window.overlap(apart)
        counted = np.bincount(first, weight, minlength=last + 1)[:last]
        return np.asarray(np.cumsum(counted) * (window.area_m2 / (n * (n - 1.0))), dtype=np.float64)
    border = window.border_distance(xy)
    # Up to here the end of the pair is far enough from the edge.
    until = np.searchsorted(r_m, border[pair.ravel()], side="right")
    begin = np.repeat(first, 2)
    shown = until > begin
    change = np.bincount(begin[shown], minlength=last + 1) - np.bincount(until[shown], minlength=last + 1)
    return _ratio(np.cumsum(change)[:last], _count_above(border, r_m) * n / window.area_m2)


def _l(
    xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], correction: str
) -> NDArray[np.float64]:
    return np.sqrt(_k(xy, window, r_m, correction) / np.pi)


def pair_correlation_values(
    xy: NDArray[np.float64],
    window: StudyWindow,
    r_m: NDArray[np.float64],
    correction: str = "translation",
    *,
    bandwidth_m: float | None = None,
) -> NDArray[np.float64]:
    """Return g by prefix sums: the kernel is a quadratic of the distance, so each r needs two look-ups."""
    n = len(xy)
    half = STOYAN * spacings(window, n) if bandwidth_m is None else bandwidth_m
    _, apart, distance = _close_pairs(xy, window, float(r_m[-1]) + half)
    if (distance == 0.0).any():
        msg = "g needs sites at different positions, but some coincide; merge them, for example by `merge_nearby`"
        raise CityError(msg)
    order = np.argsort(distance)
    u, r = distance[order] / half, r_m / half
    weight = 2.0 * window.area_m2**2 / (window.overlap(apart[order]) * distance[order])
    sums = np.concatenate(
        (np.zeros((3, 1)), np.cumsum(weight * np.stack((np.ones(len(u)), u, u**2)), axis=1)), 1
    )
    low, high = np.searchsorted(u, r - 1.0), np.searchsorted(u, r + 1.0, side="right")
    zeroth, first, second = sums[:, high] - sums[:, low]
    kernel = 0.75 / half * ((1.0 - r**2) * zeroth + 2.0 * r * first - second)
    inside = np.minimum(r, 1.0)
    kept = 0.5 + 0.75 * (inside - inside**3 / 3.0)
    return np.asarray(np.maximum(kernel, 0.0) / (2.0 * np.pi * n * (n - 1.0) * kept))


def _g(
    xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], correction: str
) -> NDArray[np.float64]:
    return _reached(nearest_site_m(xy, window), window.border_distance(xy), r_m, correction)


def _f(
    xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], correction: str
) -> NDArray[np.float64]:
    from scipy.spatial import cKDTree

    boxsize: Any = window.period_m
    empty = cKDTree(xy, boxsize=boxsize).query(window.test_points)[0]
    return _reached(np.asarray(empty), window.test_border_m, r_m, correction)


def _j(
    xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], correction: str
) -> NDArray[np.float64]:
    alone, empty = 1.0 - _g(xy, window, r_m, correction), 1.0 - _f(xy, window, r_m, correction)
    return _ratio(alone, empty)


def _reached(
    distance: NDArray[np.float64], border: NDArray[np.float64], r_m: NDArray[np.float64], correction: str
) -> NDArray[np.float64]:
    """Return the distribution of distances of which those beyond the edge are not seen."""
    if correction == "border":
        first, until = np.searchsorted(r_m, distance), np.searchsorted(r_m, border, side="right")
        shown, size = until > first, len(r_m) + 1
        change = np.bincount(first[shown], minlength=size) - np.bincount(until[shown], minlength=size)
        return _ratio(np.cumsum(change)[:-1], _count_above(border, r_m))
    at, reached = kaplan_meier(distance, border)
    value = np.concatenate(([0.0], reached))[np.searchsorted(at, r_m, side="right")]
    seen = np.minimum(distance, border).max()
    complete = len(reached) > 0 and reached[-1] == 1.0
    return np.where((r_m <= seen) | complete, value, np.nan)


def kaplan_meier(
    distance: NDArray[np.float64], border: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the distances that are seen [m], and the estimated probability to be reached by then.

    Parameters
    ----------
    distance
        Distances [m], shape (n,).
    border
        How far each would have been seen [m], shape (n,).
    """
    at, deaths = np.unique(distance[distance <= border], return_counts=True)
    seen = np.sort(np.minimum(distance, border))
    at_risk = len(seen) - np.searchsorted(seen, at)
    return at, np.asarray(1.0 - np.cumprod(1.0 - deaths / at_risk), dtype=np.float64)


def _count_above(border: NDArray[np.float64], r_m: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many are at least r from the edge, shape (r,)."""
    return np.asarray(len(border) - np.searchsorted(np.sort(border), r_m), dtype=np.float64)


def _ratio(above: NDArray[Any], below: NDArray[np.float64]) -> NDArray[np.float64]:
    share = np.full(len(below), np.nan)
    return np.asarray(np.divide(above, below, out=share, where=below > 0.0))


STATISTICS: dict[str, tuple[Estimator, tuple[str, ...]]] = {
    "K": (_k, ("translation", "border")),
    "L": (_l, ("translation", "border")),
    "g": (pair_correlation_values, ("translation",)),
    "G": (_g, ("kaplan_meier", "border")),
    "F": (_f, ("kaplan_meier", "border")),
    "J": (_j, ("kaplan_meier", "border")),
}
"""The summary functions by name, each with the corrections it knows."""
