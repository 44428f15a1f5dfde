"""A point process fitted to a layout by minimum contrast: its L or g as close to the layout's as its parameters allow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from geoedge.sites._edges import spacings
from geoedge.sites._estimators import STOYAN, curve_values
from geoedge.sites._models import MODELS
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.sites._edges import StudyWindow
    from geoedge.sites._models import ProcessModel

__all__ = ["ProcessFit", "contrast_fit"]

GRID = 12
"""Starting values tried for each parameter, evenly over the logarithm of its range."""


@dataclass(frozen=True)
class ProcessFit:
    """A point process fitted to a layout.

    Parameters
    ----------
    process
        Key of the process: ``"poisson"``, ``"ginibre"``, ``"gauss"``, ``"hard_core"``, ``"lattice"``, ``"thomas"`` or
        ``"matern_cluster"``.
    density_per_km2
        λ_b, sites per area [1/km²].
    parameters
        Fitted parameters by name; lengths end in ``_m``, densities in ``_per_km2``.
    misfit
        Root mean square of the layout's function minus the process's; of L in spacings 1/√λ_b, of g plain.
    at_bound
        Parameters that ran to the end of their range: the process then describes its limit, often Poisson.
    standard_errors, intervals
        Spread and 95 % interval of each parameter over layouts drawn from the fit; empty without a bootstrap.
    p_value
        Global rank test of the layout among those drawn layouts; NaN without a bootstrap. The parameters being
        fitted, it errs on the side of the process.
    bootstraps
        How many layouts were drawn from the fit.
    undrawn
        Why none could be drawn, although a bootstrap was asked for.
    """

    process: str
    density_per_km2: float
    parameters: dict[str, float]
    misfit: float
    at_bound: tuple[str, ...] = ()
    standard_errors: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    p_value: float = float("nan")
    bootstraps: int = 0
    undrawn: str = ""

    def k_function(self, r_m: ArrayLike) -> NDArray[np.float64]:
        """Return the process's K [m²] at distances [m], shape (r,).

        Parameters
        ----------
        r_m
            Distances [m], shape (r,), increasing.
        """
        density, r, parameter = self._in_spacings(r_m)
        return MODELS[self.process].k(r, *parameter) / density

    def pair_correlation(self, r_m: ArrayLike) -> NDArray[np.float64]:
        """Return the process's pair correlation [–] at distances [m], shape (r,).

        Parameters
        ----------
        r_m
            Distances [m], shape (r,), increasing.
        """
        _, r, parameter = self._in_spacings(r_m)
        return MODELS[self.process].g(r, *parameter)

    def _in_spacings(self, r_m: ArrayLike) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        density = self.density_per_km2 / M2_PER_KM2
        unit = MODELS[self.process].units(density)
        r = np.asarray(r_m, dtype=np.float64).reshape(-1) * np.sqrt(density)
        return density, r, np.array(list(self.parameters.values())) / unit

    def __str__(self) -> str:
        told = [self._told(name) for name in self.parameters]
        return MODELS[self.process].words + (f" with {' and '.join(told)}" if told else "")

    def _told(self, name: str) -> str:
        words, _, unit = name.partition("_")
        error = f" ± {_figures(self.standard_errors[name], 2)}" if name in self.standard_errors else ""
        limit = " (end of its range)" if name in self.at_bound else ""
        unit = {"m": " m", "per_km2": " per km²"}.get(unit, "")
        return f"{words} {_figures(self.parameters[name], 3)}{error}{unit}{limit}"


def _figures(value: float, figures: int) -> str:
    """Return a number with this many significant figures and no exponent."""
    return np.format_float_positional(value, figures, fractional=False, trim="-")


def contrast_fit(
    name: str, xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], statistic: str
) -> ProcessFit:
    """Fit one process by minimum contrast, at the layout's own density.

    The best of a grid is improved by least squares in the logarithms of the parameters.

    Parameters
    ----------
    name
        Key of the process.
    xy
        Positions [m], shape (n, 2).
    window
        Where they are.
    r_m
        Distances to fit over [m], shape (r,).
    statistic
        ``"L"`` or ``"g"``.
    """
    from scipy.optimize import least_squares

    model, density = MODELS[name], len(xy) / window.area_m2
    r, seen = _in_spacings(xy, window, r_m, statistic)

    def away(log_parameter: NDArray[np.float64]) -> NDArray[np.float64]:
        return _expected(model, r, np.exp(log_parameter), statistic) - seen

    log_parameter = np.empty(0)
    low, high = np.log(np.array(model.bounds).reshape(-1, 2)).T
    if model.parameters:
        axes = [np.linspace(a, b, GRID) for a, b in zip(low, high, strict=True)]
        starts = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, len(low))
        start = starts[np.argmin([np.sum(away(one) ** 2) for one in starts])]
        inner = np.clip(start, low + 1e-6, high - 1e-6)
        log_parameter = least_squares(away, inner, bounds=(low, high), x_scale=0.1, xtol=1e-10).x
    ended = np.minimum(log_parameter - low, high - log_parameter) < 1e-3 * (high - low)
    values = np.exp(log_parameter) * model.units(density)
    return ProcessFit(
        process=name,
        density_per_km2=density * M2_PER_KM2,
        parameters=dict(zip(model.parameters, values.tolist(), strict=True)),
        misfit=float(np.sqrt(np.mean(away(log_parameter) ** 2))),
        at_bound=tuple(key for key, end in zip(model.parameters, ended, strict=True) if end),
    )


def _in_spacings(
    xy: NDArray[np.float64], window: StudyWindow, r_m: NDArray[np.float64], statistic: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return distances and the layout's L, both in spacings, or its g; without what is known beforehand or biased."""
    unit = spacings(window, len(xy))
    value = curve_values(statistic, xy, window, r_m)
    kept = r_m > 0.0 if statistic == "L" else r_m >= STOYAN * unit
    return r_m[kept] / unit, value[kept] / (unit if statistic == "L" else 1.0)


def _expected(
    model: ProcessModel, r: NDArray[np.float64], parameter: NDArray[np.float64], statistic: str
) -> NDArray[np.float64]:
    if statistic == "g":
        return model.g(r, *parameter)
    return np.asarray(np.sqrt(np.maximum(model.k(r, *parameter), 0.0) / np.pi))
