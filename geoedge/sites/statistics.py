"""Summary functions of a layout of sites, corrected for the edge of the city: K, L, g, G, F and J.

Distances are in metres. Every function comes with what a Poisson layout would give; what a window hides is corrected
for as A. Baddeley, E. Rubak and R. Turner lay out in Spatial Point Patterns (CRC Press, 2015), chapters 7 and 8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import positions, spacings, study_window
from geoedge.sites._estimators import (
    STATISTICS,
    STOYAN,
    curve_values,
    distances,
    pair_correlation_values,
    poisson_values,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.sites._edges import Sites, StudyWindow, WindowLike

__all__ = [
    "Curve",
    "f_function",
    "g_function",
    "j_function",
    "k_function",
    "l_function",
    "pair_correlation",
]


@dataclass(frozen=True, eq=False)
class Curve:
    """A summary function of a layout.

    Parameters
    ----------
    statistic
        ``"K"`` [m²], ``"L"`` [m], ``"g"``, ``"G"``, ``"F"`` or ``"J"``.
    correction
        How the edge was corrected for.
    sites
        Number of sites.
    r_m
        Distances [m], shape (r,).
    value
        The function, shape (r,); NaN where the window shows nothing.
    poisson
        What a Poisson layout of this density has, shape (r,).
    """

    statistic: str
    correction: str
    sites: int
    r_m: NDArray[np.float64]
    value: NDArray[np.float64]
    poisson: NDArray[np.float64]


def k_function(
    sites: Sites,
    window: WindowLike = None,
    r_m: ArrayLike | None = None,
    *,
    correction: str = "translation",
) -> Curve:
    """Estimate Ripley's K: the mean number of further sites within r of a site, per density [m²].

    A Poisson layout has K = πr²; less is regular, more is clustered (or uneven in density). Translation counts a
    pair for all the places that the window does not show it from; border counts around those sites alone that are
    farther than r from the edge.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m]; may be left out for a layout on a torus.
    r_m
        Distances [m], shape (r,); a fitting range when left out.
    correction
        ``"translation"`` or ``"border"``; a torus has no edge and needs none.

    Raises
    ------
    CityError
        If there are fewer than two sites, some are outside, or a distance or the correction is impossible.
    """
    return _curve("K", sites, window, r_m, correction)


def l_function(
    sites: Sites,
    window: WindowLike = None,
    r_m: ArrayLike | None = None,
    *,
    correction: str = "translation",
) -> Curve:
    """Estimate L = √(K/π) [m], which is r for a Poisson layout and varies about equally at all distances.

    Parameters and errors are those of `k_function`.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m].
    r_m
        Distances [m], shape (r,).
    correction
        ``"translation"`` or ``"border"``.
    """
    return _curve("L", sites, window, r_m, correction)


def pair_correlation(
    sites: Sites, window: WindowLike = None, r_m: ArrayLike | None = None, *, bandwidth_m: float | None = None
) -> Curve:
    """Estimate the pair correlation g: how many times likelier than in a Poisson layout two sites are r apart.

    Pairs are weighed by translation, divided by their own distance (Y. Guan, Biometrics 63, 2007), smoothed by an
    Epanechnikov kernel, and divided by the part of the kernel on positive distances, so that g = 1 for a Poisson
    layout down to r = 0.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m].
    r_m
        Distances [m], shape (r,).
    bandwidth_m
        Half width of the kernel [m]; 0.15 spacings 1/√density (Stoyan) when left out.

    Raises
    ------
    CityError
        If two sites share a position, or as for `k_function`.
    """
    if bandwidth_m is not None and not 0.0 < bandwidth_m < np.inf:
        msg = f"`bandwidth_m` must be a positive number of metres, not {bandwidth_m}"
        raise CityError(msg)
    where, xy, r = _asked("g", sites, window, r_m, "translation")
    reach = r[-1] + (STOYAN * spacings(where, len(xy)) if bandwidth_m is None else bandwidth_m)
    if where.period_m is not None and reach > 0.5 * min(where.period_m):
        msg = f"`r_m` and a bandwidth reach {reach:g} m, but g is known up to half the torus, {0.5 * min(where.period_m):g} m"
        raise CityError(msg)
    value = pair_correlation_values(xy, where, r, bandwidth_m=bandwidth_m)
    return Curve("g", _named(where, "translation"), len(xy), r, value, np.ones(len(r)))


def g_function(
    sites: Sites,
    window: WindowLike = None,
    r_m: ArrayLike | None = None,
    *,
    correction: str = "kaplan_meier",
) -> Curve:
    """Estimate G: the probability that a site has another one within r.

    A Poisson layout has G = 1 − exp(−λπr²); less is regular. A site nearer to the edge than to its nearest
    neighbour is a censored observation, which Kaplan and Meier's estimator uses for what it shows.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m].
    r_m
        Distances [m], shape (r,).
    correction
        ``"kaplan_meier"`` or ``"border"``.

    Raises
    ------
    CityError
        As for `k_function`.
    """
    return _curve("G", sites, window, r_m, correction)


def f_function(
    sites: Sites,
    window: WindowLike = None,
    r_m: ArrayLike | None = None,
    *,
    correction: str = "kaplan_meier",
) -> Curve:
    """Estimate F: the probability that a place in the city has a site within r.

    A Poisson layout has F = 1 − exp(−λπr²); more is regular, less leaves holes.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2); one site will do.
    window
        Polygon [m], or width and height of a torus [m].
    r_m
        Distances [m], shape (r,).
    correction
        ``"kaplan_meier"`` or ``"border"``.

    Raises
    ------
    CityError
        As for `k_function`.
    """
    return _curve("F", sites, window, r_m, correction)


def j_function(
    sites: Sites,
    window: WindowLike = None,
    r_m: ArrayLike | None = None,
    *,
    correction: str = "kaplan_meier",
) -> Curve:
    """Estimate J = (1 − G)/(1 − F): 1 for a Poisson layout, more for a regular and less for a clustered one.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m].
    r_m
        Distances [m], shape (r,).
    correction
        ``"kaplan_meier"`` or ``"border"``.

    Raises
    ------
    CityError
        As for `k_function`.
    """
    return _curve("J", sites, window, r_m, correction)


def _curve(statistic: str, sites: Sites, window: WindowLike, r_m: ArrayLike | None, correction: str) -> Curve:
    where, xy, r = _asked(statistic, sites, window, r_m, correction)
    value = curve_values(statistic, xy, where, r, correction)
    expected = poisson_values(statistic, r, where, len(xy))
    return Curve(statistic, _named(where, correction), len(xy), r, value, expected)


def _named(window: StudyWindow, correction: str) -> str:
    return correction if window.period_m is None else "periodic"


def _asked(
    statistic: str, sites: Sites, window: WindowLike, r_m: ArrayLike | None, correction: str
) -> tuple[StudyWindow, NDArray[np.float64], NDArray[np.float64]]:
    """Return window, positions and distances, checked."""
    allowed = STATISTICS[statistic][1]
    if correction not in allowed:
        msg = (
            f"`correction` of {statistic} must be one of {', '.join(map(repr, allowed))}, not {correction!r}"
        )
        raise CityError(msg)
    where = study_window(window, sites)
    xy = positions(sites, where, at_least=1 if statistic == "F" else 2, use=statistic)
    if r_m is None:
        return where, xy, distances(where, len(xy), statistic)
    r = np.asarray(r_m, dtype=np.float64).reshape(-1)
    limit = np.inf if where.period_m is None else 0.5 * min(where.period_m)
    if not (
        r.size and np.isfinite(r).all() and r.min() >= 0.0 and r.max() <= limit and (np.diff(r) > 0.0).all()
    ):
        at_most = "" if where.period_m is None else f" up to half the torus, {limit:g}"
        msg = f"`r_m` must be increasing distances from 0{at_most} [m], not {r.tolist()[:5]}"
        raise CityError(msg)
    return where, xy, r
