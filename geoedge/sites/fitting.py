"""Which point process describes a layout best, and how surely: the choice, and errors by bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import positions, study_window
from geoedge.sites._estimators import distances
from geoedge.sites._models import MODELS
from geoedge.sites._windows import drawing_window
from geoedge.sites.contrast import ProcessFit, contrast_fit
from geoedge.sites.envelopes import curve_envelope
from geoedge.sites.hypotheses import draw_layouts
from geoedge.sites.processes import PROCESSES
from geoedge.streams import generator
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.sites._edges import Sites, StudyWindow, WindowLike
    from geoedge.sites.layout import Layout

    SimulateFit: TypeAlias = Callable[[ProcessFit, StudyWindow, np.random.Generator], Layout | ArrayLike]

__all__ = ["Fits", "draw_fit", "fit_process", "fit_to_curve"]

MOST_REPELLED = 1000
"""Sites of a determinantal process, before thinning and on the window's bounding box, up to which a bootstrap draws
it: one draw of so many takes some seconds, and the time grows with their cube."""

COVERED = (2.5, 97.5)
"""Percentiles of the bootstrap that bound the interval of a parameter."""


@dataclass(frozen=True)
class Fits:
    """The process that describes a layout best, among the others that were tried.

    Parameters
    ----------
    best
        Poisson if the layout cannot be told from it; else the process of the smallest misfit, with its errors.
    candidates
        All processes, by increasing misfit.
    poisson_p_value
        Global rank test of L against uniform sites.
    """

    best: ProcessFit
    candidates: tuple[ProcessFit, ...]
    poisson_p_value: float


def fit_process(
    sites: Sites,
    window: WindowLike = None,
    *,
    processes: Sequence[str] = tuple(MODELS),
    statistic: str = "L",
    r_m: ArrayLike | None = None,
    level: float = 0.05,
    simulations: int = 199,
    bootstrap: int = 99,
    simulate: SimulateFit | None = None,
    rng: np.random.Generator | int = 0,
) -> Fits:
    """Fit point processes to a layout and choose the one that describes it best.

    Each process's closed form is fitted to the layout's edge-corrected function by least squares over the
    distances (minimum contrast), at the layout's own density. The fit is repeated on layouts drawn from the best
    one, which gives the errors of its parameters and tells whether the layout looks like them.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m]; may be left out for a layout on a torus.
    processes
        Which processes to try; ``"poisson"`` always is.
    statistic
        ``"L"`` or ``"g"``.
    r_m
        Distances to fit over [m], shape (r,).
    level
        A layout with a larger p-value against uniform sites is called Poisson.
    simulations
        Uniform layouts for that test.
    bootstrap
        Layouts drawn from the best process for its errors; 0 for none.
    simulate
        Draws a layout of a fitted process: ``simulate(fit, window, rng)``; `draw_fit` when left out.
    rng
        Random generator, or a seed for one.

    Raises
    ------
    CityError
        If a process or statistic is unknown, or the sites are too few or outside.
    """
    unknown = sorted(set(processes) - set(MODELS))
    if unknown or statistic not in ("L", "g"):
        msg = f"`processes` must be of {', '.join(MODELS)} and `statistic` 'L' or 'g', not {unknown or statistic}"
        raise CityError(msg)
    where = study_window(window, sites)
    xy = positions(sites, where, at_least=2, use="A fit")
    r = distances(where, len(xy)) if r_m is None else np.asarray(r_m, dtype=np.float64)
    rng = generator(rng)
    drawn = draw_layouts(xy, where, simulations, rng)
    p = curve_envelope(xy, drawn, where, "L", r, level=level).p_value
    others = [name for name in processes if name != "poisson"]
    return fit_to_curve(
        xy,
        where,
        r,
        p,
        processes=processes,
        among=others if p <= level and others else ("poisson",),
        statistic=statistic,
        bootstrap=bootstrap,
        simulate=simulate,
        rng=rng,
    )


def fit_to_curve(
    xy: NDArray[np.float64],
    window: StudyWindow,
    r_m: NDArray[np.float64],
    poisson_p_value: float,
    *,
    processes: Sequence[str],
    among: Sequence[str],
    statistic: str,
    bootstrap: int,
    simulate: SimulateFit | None,
    rng: np.random.Generator,
) -> Fits:
    """Fit and choose, when it is known from tests what the layout may be.

    Parameters
    ----------
    xy
        Positions [m], shape (n, 2).
    window
        Where they are.
    r_m
        Distances [m], shape (r,).
    poisson_p_value
        Result of the test against uniform sites.
    processes
        Which processes to try besides Poisson.
    among
        Which of them may be called the best.
    statistic, bootstrap, simulate, rng
        As for `fit_process`.
    """
    tried = dict.fromkeys(("poisson", *processes))
    fits = [contrast_fit(name, xy, window, r_m, statistic) for name in tried]
    best = min((fit for fit in fits if fit.process in among), key=lambda fit: fit.misfit)
    if bootstrap and best.parameters:
        best = _with_errors(best, xy, window, r_m, statistic, bootstrap, simulate or draw_fit, rng)
    candidates = (best if fit.process == best.process else fit for fit in fits)
    return Fits(best, tuple(sorted(candidates, key=lambda fit: fit.misfit)), poisson_p_value)


def _with_errors(
    fit: ProcessFit,
    xy: NDArray[np.float64],
    window: StudyWindow,
    r_m: NDArray[np.float64],
    statistic: str,
    bootstrap: int,
    draw: SimulateFit,
    rng: np.random.Generator,
) -> ProcessFit:
    """Return the fit with errors from, and a test against, layouts drawn from it."""
    if draw is draw_fit and _repelled(fit, window) > MOST_REPELLED:
        words = f"a {MODELS[fit.process].words} of this many sites takes too long to draw; give `simulate`"
        return replace(fit, undrawn=words)
    try:
        drawn = draw_layouts(xy, window, bootstrap, rng, simulate=lambda stream: draw(fit, window, stream))
    except CityError as problem:
        return replace(fit, undrawn=str(problem))
    drawn = [one for one in drawn if len(one) > 1]
    again = [contrast_fit(fit.process, one, window, r_m, statistic).parameters for one in drawn]
    errors, intervals = {}, {}
    for name in fit.parameters:
        values = np.array([one[name] for one in again])
        low, below, above, high = np.percentile(values, (COVERED[0], 15.87, 84.13, COVERED[1]))
        # half the central 68 %: a cluster fit that runs away now and then would own the standard deviation
        errors[name], intervals[name] = float(above - below) / 2.0, (float(low), float(high))
    p = curve_envelope(xy, drawn, window, "L", r_m, level=max(0.05, 1.0 / (len(drawn) + 1.0))).p_value
    return replace(fit, standard_errors=errors, intervals=intervals, p_value=p, bootstraps=len(drawn))


def _repelled(fit: ProcessFit, window: StudyWindow) -> float:
    """Return how many sites a determinantal process has to be drawn with; 0 for other processes."""
    if fit.process not in ("ginibre", "gauss"):
        return 0.0
    left, bottom, right, top = window.bounds
    drawn = fit.density_per_km2 / M2_PER_KM2 * (right - left) * (top - bottom)
    return drawn / fit.parameters.get("beta", 1.0)


def draw_fit(fit: ProcessFit, window: StudyWindow, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a layout of a fitted process [m], shape (m, 2).

    Parameters
    ----------
    fit
        The process.
    window
        Where.
    rng
        Random generator.

    Raises
    ------
    CityError
        If it cannot be drawn, such as a determinantal process of too many sites.
    """
    process, density = PROCESSES[fit.process], fit.density_per_km2 / M2_PER_KM2
    defaults = {name: one.value(name, density) for name, one in process.parameters.items()}
    land = window.polygon if window.period_m is None else window.period_m
    return process.draw(drawing_window(land), density, rng, **{**defaults, **fit.parameters})
