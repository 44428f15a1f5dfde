"""Is a layout Poisson? Its summary function against those of drawn layouts, by one test over all distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import positions, study_window
from geoedge.sites._estimators import STATISTICS, curve_values, distances
from geoedge.sites.hypotheses import draw_layouts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.sites._edges import Sites, StudyWindow, WindowLike
    from geoedge.sites.hypotheses import Simulate

__all__ = [
    "METHODS",
    "Envelope",
    "curve_envelope",
    "envelope_test",
    "global_test",
]

METHODS = ("rank", "mad", "dclf")
"""Extreme rank lengths; the maximum absolute deviation; the squared deviation summed over distances."""


@dataclass(frozen=True, eq=False)
class Envelope:
    """A layout's summary function among those of drawn layouts.

    Parameters
    ----------
    statistic
        Key of `STATISTICS`.
    method
        The test, one of `METHODS`.
    level
        Chance with which a layout of the hypothesis leaves the envelope somewhere [–].
    simulations
        How many layouts were drawn.
    p_value
        Probability of a curve at least as extreme under the hypothesis, over all distances at once.
    r_m
        Distances at which all curves are known [m], shape (r,).
    observed
        The layout's function, shape (r,).
    mean
        Mean of the drawn ones, shape (r,).
    lower, upper
        Global envelope, shape (r,); NaN for ``"dclf"``, which has none.
    """

    statistic: str
    method: str
    level: float
    simulations: int
    p_value: float
    r_m: NDArray[np.float64]
    observed: NDArray[np.float64]
    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]

    @property
    def largest_deviation(self) -> float:
        """The observed minus the mean curve where they differ most, in the unit of the statistic."""
        difference = self.observed - self.mean
        return float(difference[np.argmax(np.abs(difference))])

    @property
    def below_m(self) -> tuple[float, float] | None:
        """First and last distance at which the layout is below the envelope [m]; ``None`` if nowhere."""
        return self._span(self.observed < self.lower)

    @property
    def above_m(self) -> tuple[float, float] | None:
        """First and last distance at which the layout is above the envelope [m]; ``None`` if nowhere."""
        return self._span(self.observed > self.upper)

    def _span(self, outside: NDArray[np.bool_]) -> tuple[float, float] | None:
        at = self.r_m[outside]
        return (float(at[0]), float(at[-1])) if at.size else None


def envelope_test(
    sites: Sites,
    window: WindowLike = None,
    statistic: str = "L",
    r_m: ArrayLike | None = None,
    *,
    simulate: Simulate | None = None,
    simulations: int = 199,
    method: str = "rank",
    level: float = 0.05,
    count: str = "fixed",
    correction: str | None = None,
    rng: np.random.Generator | int = 0,
) -> Envelope:
    """Test a layout against complete spatial randomness, or another hypothesis, over all distances at once.

    An envelope drawn distance by distance is left somewhere by most Poisson layouts; this one is left by a share
    `level` of them. ``"rank"`` orders the curves by extreme rank length (M. Myllymäki, T. Mrkvička, P. Grabarnik,
    H. Seijo and U. Hahn, J. R. Stat. Soc. B 79, 2017), ``"mad"`` and ``"dclf"`` by their deviation from the mean of
    the others (P. J. Diggle; N. A. C. Cressie; N. H. Loosmore and E. D. Ford). All are exact when the hypothesis has
    no unknown parameter, and conservative when its parameters were fitted to the layout.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m]; may be left out for a layout on a torus.
    statistic
        ``"K"``, ``"L"``, ``"g"``, ``"G"``, ``"F"`` or ``"J"``.
    r_m
        Distances [m], shape (r,); a fitting range when left out.
    simulate
        Draws a layout of the hypothesis from a random generator; uniform sites when left out.
    simulations
        How many layouts to draw.
    method
        One of `METHODS`.
    level
        Significance level of the envelope.
    count
        Uniform sites as many as there are (``"fixed"``), or Poisson many (``"poisson"``). Not used with `simulate`.
    correction
        Edge correction; the statistic's first when left out.
    rng
        Random generator, or a seed for one.

    Raises
    ------
    CityError
        If the sites or distances are unfit, the curves share no distance, or the simulations are too few for the
        level.
    """
    if statistic not in STATISTICS:
        msg = f"`statistic` must be one of {', '.join(map(repr, STATISTICS))}, not {statistic!r}"
        raise CityError(msg)
    where = study_window(window, sites)
    xy = positions(sites, where, at_least=2, use="An envelope")
    r = distances(where, len(xy), statistic) if r_m is None else np.asarray(r_m, dtype=np.float64)
    drawn = draw_layouts(xy, where, simulations, rng, simulate=simulate, count=count)
    return curve_envelope(xy, drawn, where, statistic, r, method=method, level=level, correction=correction)


def curve_envelope(
    xy: NDArray[np.float64],
    drawn: list[NDArray[np.float64]],
    window: StudyWindow,
    statistic: str,
    r_m: NDArray[np.float64],
    *,
    method: str = "rank",
    level: float = 0.05,
    correction: str | None = None,
) -> Envelope:
    """Compare a layout's function with those of layouts that have been drawn.

    Parameters
    ----------
    xy
        Positions of the layout [m], shape (n, 2).
    drawn
        Positions of the drawn layouts [m].
    window
        Where all of them are.
    statistic
        Key of `STATISTICS`.
    r_m
        Distances [m], shape (r,).
    method
        One of `METHODS`.
    level
        Significance level of the envelope.
    correction
        Edge correction; the statistic's first when left out.

    Raises
    ------
    CityError
        If no distance is known to all curves, or as for `global_test`.
    """
    enough = [one for one in drawn if len(one) > 1]
    curves = np.array([curve_values(statistic, one, window, r_m, correction) for one in (xy, *enough)])
    known = np.isfinite(curves).all(axis=0)
    if not known.any():
        msg = f"{statistic} of {len(xy)} sites is known at no distance up to {r_m[-1]:g} m; give a shorter `r_m`"
        raise CityError(msg)
    curves = curves[:, known]
    p, lower, upper = global_test(curves[0], curves[1:], method=method, level=level)
    mean = curves[1:].mean(axis=0)
    return Envelope(statistic, method, level, len(enough), p, r_m[known], curves[0], mean, lower, upper)


def global_test(
    observed: NDArray[np.float64], drawn: NDArray[np.float64], *, method: str = "rank", level: float = 0.05
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the p-value of a curve among drawn curves, and the envelope that the share `level` leaves.

    Parameters
    ----------
    observed
        Curve, shape (r,).
    drawn
        Curves of the hypothesis, shape (m, r).
    method
        One of `METHODS`.
    level
        Significance level of the envelope.

    Raises
    ------
    CityError
        If the method is unknown, or the curves are too few for the level.
    """
    if method not in METHODS:
        msg = f"`method` must be one of {', '.join(map(repr, METHODS))}, not {method!r}"
        raise CityError(msg)
    if not 1.0 / (len(drawn) + 1.0) <= level < 1.0:
        msg = f"`level` = {level:g} must be below 1, and at least {1 / (len(drawn) + 1):.3g} with {len(drawn)} simulations; draw more"
        raise CityError(msg)
    curves = np.vstack((observed, drawn))
    extreme = _rank_lengths(curves) if method == "rank" else _deviation(curves, method)
    as_extreme = np.sort(extreme)
    p = (len(curves) - np.searchsorted(as_extreme, extreme)) / len(curves)
    if method == "rank":
        kept = curves[p > level]
        return float(p[0]), kept.min(axis=0), kept.max(axis=0)
    if method == "dclf":
        unknown = np.full(len(observed), np.nan)
        return float(p[0]), unknown, unknown.copy()
    half = extreme[p > level].max() * (
        1.0 + 1e-9
    )  # the curve that defines it is inside, whatever the rounding
    others = (curves.sum(axis=0) - observed) / len(drawn)
    return float(p[0]), others - half, others + half


def _deviation(curves: NDArray[np.float64], method: str) -> NDArray[np.float64]:
    """Return how far every curve is from the mean of all others, shape (m,)."""
    away = (curves - curves.mean(axis=0)) * (len(curves) / (len(curves) - 1.0))
    if method == "mad":
        return np.asarray(np.abs(away).max(axis=1))
    return np.asarray((away**2).sum(axis=1))


def _rank_lengths(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by extremeness how many curves are less extreme than each, shape (m,).

    A curve's ranks, counted from the nearer end at every distance, are sorted; the curve whose sorted ranks come
    first is the most extreme one. Equal values share their mean rank.
    """
    from scipy.stats import rankdata

    up = rankdata(curves, axis=0)
    ranks = np.sort(np.minimum(up, len(curves) + 1.0 - up), axis=1)
    _, place = np.unique(ranks, axis=0, return_inverse=True)
    return -place.reshape(-1).astype(np.float64)
