"""How far a layout is from Poisson, gathered: density, spacing, tests, the best process, and a verdict in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import positions, study_window
from geoedge.sites._estimators import distances
from geoedge.sites._models import MODELS
from geoedge.sites.envelopes import Envelope, curve_envelope
from geoedge.sites.fitting import Fits, fit_to_curve
from geoedge.sites.hypotheses import draw_layouts, uneven_poisson
from geoedge.sites.spacing import ClarkEvans, clark_evans_test
from geoedge.streams import generator

if TYPE_CHECKING:
    from geoedge.sites._edges import Sites, WindowLike
    from geoedge.sites.fitting import SimulateFit

__all__ = ["LayoutStatistics", "layout_statistics", "verdict"]


SMOOTHING = 1.0
"""How many standard deviations too regular a Poisson layout reads against its own smoothed density."""


@dataclass(frozen=True)
class LayoutStatistics:
    """What tells a layout from a Poisson one.

    Parameters
    ----------
    sites
        Number of sites n.
    coincident
        Sites that share their position with an earlier one.
    area_km2
        Area of the window [km²].
    density_per_km2
        λ_b [1/km²].
    clark_evans
        Clark-Evans index against uniform sites.
    envelope
        L against the same uniform sites, over all distances.
    uneven
        Clark-Evans index against Poisson layouts of the same uneven density; ``None`` unless clustered.
    fits
        The process that describes the layout best, and the others.
    level
        Chance with which a Poisson layout is called something else; each of the two tests has half of it.
    """

    sites: int
    coincident: int
    area_km2: float
    density_per_km2: float
    clark_evans: ClarkEvans
    envelope: Envelope
    uneven: ClarkEvans | None
    fits: Fits
    level: float

    @property
    def kind(self) -> str:
        """``"regular"``, ``"clustered"``, ``"mixed"`` (regular at some distances, clustered at others) or ``"poisson"``."""
        return _kind(self.clark_evans, self.envelope, self.level)

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return verdict(self)

    def as_row(self) -> dict[str, float | str]:
        """Return the numbers as one row of a table, each column with its unit, to lay layouts one under the other."""
        best = self.fits.best
        return {
            "sites": self.sites,
            "coincident": self.coincident,
            "area_km2": self.area_km2,
            "density_per_km2": self.density_per_km2,
            "clark_evans": self.clark_evans.ratio,
            "clark_evans_z": self.clark_evans.z,
            "clark_evans_p": self.clark_evans.p_value,
            "l_deviation_m": self.envelope.largest_deviation,
            "l_p": self.envelope.p_value,
            "kind": self.kind,
            "process": best.process,
            "process_parameters": ", ".join(f"{key}={value:.4g}" for key, value in best.parameters.items()),
            "process_p": best.p_value,
            "verdict": self.verdict,
        }


def layout_statistics(
    sites: Sites,
    window: WindowLike = None,
    *,
    simulations: int = 199,
    bootstrap: int = 99,
    level: float = 0.05,
    simulate: SimulateFit | None = None,
    rng: np.random.Generator | int = 0,
) -> LayoutStatistics:
    """Return how far a layout is from Poisson.

    One set of uniform layouts serves the Clark-Evans index, which looks at nearest neighbours, and L, which looks at
    all distances up to four spacings (or what the window shows). Objects that were merged within a distance keep at
    least that distance, and read as regular for that reason alone where it is a fair part of the spacing.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m]; may be left out for a layout on a torus.
    simulations
        Uniform layouts to compare with.
    bootstrap
        Layouts drawn from the fitted process for its errors; 0 for none.
    level
        Chance with which a Poisson layout is called something else.
    simulate
        Draws a layout of a fitted process: ``simulate(fit, window, rng)``.
    rng
        Random generator, or a seed for one.

    Raises
    ------
    CityError
        If there are fewer than two sites, some are outside, or the simulations are too few for the level.
    """
    if not 2.0 / (simulations + 1.0) <= level < 1.0:
        msg = f"`simulations` = {simulations}: two tests at `level` = {level:g} need at least {int(np.ceil(2 / level)) - 1}"
        raise CityError(msg)
    where = study_window(window, sites)
    xy = positions(sites, where, at_least=2, use="A layout's statistics")
    rng = generator(rng)
    drawn = draw_layouts(xy, where, simulations, rng)
    r = distances(where, len(xy))
    index = clark_evans_test(xy, drawn, where)
    envelope = curve_envelope(xy, drawn, where, "L", r, level=level / 2.0)
    kind = _kind(index, envelope, level)
    fits = fit_to_curve(
        xy,
        where,
        r,
        envelope.p_value,
        processes=tuple(MODELS),
        among=[name for name, model in MODELS.items() if kind in (model.kind, "mixed")],
        statistic="L",
        bootstrap=bootstrap,
        simulate=simulate,
        rng=rng,
    )
    uneven = None
    if kind in ("clustered", "mixed"):
        same = draw_layouts(xy, where, simulations, rng, simulate=uneven_poisson(xy, where))
        uneven = clark_evans_test(xy, same, where)
    return LayoutStatistics(
        sites=len(xy),
        coincident=len(xy) - len(np.unique(xy, axis=0)),
        area_km2=where.area_km2,
        density_per_km2=len(xy) / where.area_km2,
        clark_evans=index,
        envelope=envelope,
        uneven=uneven,
        fits=fits,
        level=level,
    )


def verdict(statistics: LayoutStatistics) -> str:
    """Return in one or two sentences whether a layout is regular, clustered or neither, with the numbers.

    Parameters
    ----------
    statistics
        What `layout_statistics` returned.
    """
    envelope, kind = statistics.envelope, statistics.kind
    who = f"{statistics.sites} sites ({statistics.density_per_km2:.3g} per km²)"
    if statistics.coincident:
        who += f", {statistics.coincident} of them on top of others"
    numbers = (
        f"{_index(statistics.clark_evans)}L {envelope.largest_deviation:+.0f} m at most "
        f"(global p = {envelope.p_value:.2g})"
    )
    if kind == "poisson":
        return f"Cannot be told from Poisson: {who}; {numbers}.{_power(statistics)}"
    told = {
        "regular": f"Regular: {who} keep apart",
        "clustered": f"Clustered: {who} stand together",
        "mixed": f"Regular at some distances and clustered at others: {who}",
    }[kind]
    uneven = _uneven(statistics.uneven, statistics.level)
    return f"{told}{_spans(envelope)}; {numbers}. {_process(statistics.fits)}{uneven}"


def _index(index: ClarkEvans) -> str:
    if not np.isfinite(index.z):
        return ""
    return (
        f"Clark-Evans {index.ratio:.2f} where Poisson layouts have {index.expected:.2f} "
        f"(z = {index.z:+.1f}, p = {index.p_value:.2g}), "
    )


def _uneven(index: ClarkEvans | None, level: float) -> str:
    """Say whether clusters are more than an uneven density."""
    from scipy.stats import norm

    if index is None or not np.isfinite(index.z):
        return ""
    numbers = f"(Clark-Evans z = {index.z:+.1f}, p = {index.p_value:.2g})"
    if index.p_value <= level and index.z < 0.0:
        return f" Neighbours are closer than in Poisson layouts of as uneven a density too {numbers}."
    if index.z - SMOOTHING > norm.isf(level / 2.0):
        return f" Neighbours are farther apart than in Poisson layouts of as uneven a density {numbers}: uneven from place to place, regular in each."
    return f" Neighbours are no closer than in Poisson layouts of as uneven a density {numbers}: that may be all."


def _kind(index: ClarkEvans, envelope: Envelope, level: float) -> str:
    """Return the verdict in one word, from the tests that are below their half of the level."""
    below = above = False
    if envelope.p_value <= level / 2.0:
        below, above = envelope.below_m is not None, envelope.above_m is not None
    if index.p_value <= level / 2.0:  # never of an unknown p-value
        below, above = below or index.z > 0.0, above or index.z < 0.0
    if below and above:
        return "mixed"
    return "regular" if below else "clustered" if above else "poisson"


def _spans(envelope: Envelope) -> str:
    spans = [
        f"{more} than in Poisson layouts from {span[0]:.0f} to {span[1]:.0f} m"
        for more, span in (("fewer pairs", envelope.below_m), ("more pairs", envelope.above_m))
        if span is not None
    ]
    return f", {' and '.join(spans)}" if spans else ""


def _process(fits: Fits) -> str:
    best = fits.best
    test = "" if np.isnan(best.p_value) else f" (p = {best.p_value:.2g} under it)"
    return f"Best described by a {best}{test}."


def _power(statistics: LayoutStatistics) -> str:
    """Say which Clark-Evans indices this many sites would have hidden."""
    from scipy.stats import norm

    index = statistics.clark_evans
    if not np.isfinite(index.spread):
        return " So few sites tell nothing."
    reach = index.spread * norm.isf(statistics.level / 4.0)
    low, high = max(index.expected - reach, 0.0), index.expected + reach
    return f" With {statistics.sites} sites any index from {low:.2f} to {high:.2f} would pass for Poisson."
