"""Deployment gain: how many Poisson sites a layout is worth, and how much sooner its first tokens come.

Guo and Haenggi, "Asymptotic deployment gain" (https://arxiv.org/abs/1404.6556), compare a layout of base stations
with a Poisson one by the horizontal gap of two curves: the ratio of the SIR thresholds at which both succeed with the
same probability p; its limit for p → 1 is the asymptotic deployment gain. ASAPPP, approximate SIR analysis based on
the Poisson point process (Ganti and Haenggi, https://arxiv.org/abs/1505.02310), uses that one number to shift the
Poisson curve, on a scale of decibels, onto that of any layout. Here the curve is P(TTFT ≤ τ). Its horizontal gap at the layout's own coverage is a time: the Poisson curve reaches it Δτ later, the
shift in seconds; the ratio of both times is what a shift in decibels is to SIR. There is no limit to take: the curve
near 1 belongs to the longest prefill, not to the layout. And a horizontal gap has a second axis here, as more sites
help: the density at which a Poisson network covers as much in the same time, over the layout's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geoedge.compare.gain.crossings import VALUES
from geoedge.compare.gain.curves import Count, Ground, coverage_curves
from geoedge.compare.gain.ensemble import Ensemble, unsolved
from geoedge.compare.gain.land import even_demand, land_of, refuse_outside
from geoedge.compare.gain.theory import TheoryReference
from geoedge.errors import GeoEdgeError
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.city.demand import Demand
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout, SmoothedSites, StudyWindow
    from geoedge.study import PolicyName, Study
    from geoedge.style import PaperFigure
    from geoedge.theory import QueueOfMix, WaitModel
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]
    Land: TypeAlias = Polygon | MultiPolygon | tuple[float, float]

__all__ = ["DeploymentGain", "deployment_gain", "layout_gain"]

TARGETS = (0.5, 0.75, 1.0, 1.5, 2.0)
"""Targets over the scenario's."""
LOADS = (0.3, 0.75)
"""Shares of capacity asked besides the present demand."""
COLUMNS = [
    *("load", "present", "ttft_target_s", "coverage", "reference", "reference_coverage"),
    *("equivalent_per_km2", *VALUES, "note"),
]


@dataclass(frozen=True, eq=False)
class DeploymentGain:
    """How many Poisson sites a layout is worth; made by `deployment_gain`.

    Attributes
    ----------
    table
        One row for each load, target and reference. ``load`` is the least work of all requests over all servers of
        the layout; ``present`` marks the demand as it is; ``coverage`` is the layout's, by the field;
        ``reference`` is ``"layouts"`` (the field on Poisson layouts of this window, under this demand) or
        ``"theory"`` (the closed form for an infinite Poisson network, all sites of a tier alike; it knows one density,
        and is left out where Poisson layouts follow an uneven one), and
        ``reference_coverage`` what it covers at the layout's density. ``equivalent_per_km2`` is the least density
        at which the reference covers as much as the layout; ``gain`` is that density over the layout's, above 1
        where the layout is better. ``shift_s`` is how much later the reference, at the layout's density, covers as
        much, and ``time_ratio`` its time over the target. ``gain_low`` and ``gain_high``, and those of the shift, bound
        the 95 % interval of the *reference mean*: how well the mean of so many Poisson layouts is known. It narrows
        with their number and is no test of the layout, as most single Poisson layouts lie outside it too.
        ``poisson_low`` and ``poisson_high`` (``poisson_shift_…``) bound the gains of single Poisson layouts of as many
        sites, each against the mean of the others: one more would lie between them in 95 % of cases (with fewer than
        39 layouts, which are then all inside, in (n − 1)/(n + 1)); ``rank`` is how many of them cover less than the
        layout. Whether a layout differs from Poisson is read from these two, at the band's edge from the rank, as a
        layout at the end of the band is set against a mean without it.
        The mean gain of Poisson layouts tends to lie a little above 1, as density is convex in coverage: 1.02 ± 0.01 of
        60 layouts at load 0.4 and 0.8 s.
        Theory has no luck and none of these. What is NaN or infinite has its reason in ``note``.
    site_density
        The layout's own [1/km²].
    layouts
        Poisson layouts, and whether their number of sites is ``"fixed"`` or ``"Poisson"``.
    label
        What the layout is.
    """

    table: pd.DataFrame
    site_density: float
    layouts: tuple[int, Count]
    label: str

    def spread(self) -> pd.DataFrame:
        """Return how constant gain and shift are: least, median and greatest, by reference.

        Over the targets at each load, over the loads at each target, and over all of them.
        """
        import pandas as pd

        rows = []
        for reference, part in self.table.groupby("reference", sort=False):
            groups = [("targets", f"load {load:.2f}", each) for load, each in part.groupby("load")]
            groups += [("loads", f"{tau:g} s", each) for tau, each in part.groupby("ttft_target_s")]
            for over, at, each in [*groups, ("both", "", part)]:
                row: dict[str, Any] = {"reference": reference, "over": over, "at": at}
                row["known"], row["of"] = int(each["gain"].notna().sum()), len(each)
                for name in ("gain", "shift_s"):
                    row |= {
                        f"{name}_{word}": each[name].quantile(level)
                        for word, level in (("least", 0.0), ("median", 0.5), ("most", 1.0))
                    }
                rows.append(row)
        return pd.DataFrame(rows)

    def figure(self, *, columns: int = 2) -> PaperFigure:
        """Return a picture of gain and shift over the targets, a line for each load.

        Parameters
        ----------
        columns
            Columns of a paper, 1 or 2.
        """
        from geoedge.compare.gain.figure import gain_figure

        return gain_figure(self, columns=columns)

    def sentences(self) -> list[str]:
        """Return what the numbers say, in plain words."""
        from geoedge.compare.gain.figure import gain_sentences

        return gain_sentences(self)

    def _repr_html_(self) -> str:
        return str(self.table.to_html(index=False, float_format=lambda value: f"{value:.3f}"))


def deployment_gain(
    study: Study | Scenario,
    *,
    targets: Sequence[float] | None = None,
    loads: Sequence[float] = LOADS,
    layouts: int = 30,
    count: Count = "fixed",
    parts: int = 2,
    rng: np.random.Generator | int | None = None,
    workers: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> DeploymentGain:
    """Return how many Poisson sites the sites of a study are worth, and how much sooner its first tokens come.

    Parameters
    ----------
    study
        A prepared study, or a scenario with a city.
    targets
        Targets of the time to first token [s]; 0.5 to 2 times the scenario's by default.
    loads
        Shares of capacity at which it is asked besides the present demand: the least work of all requests over all
        servers. Demand keeps its places and types.
    layouts
        Poisson layouts. The same layouts, thinned or filled up, serve all densities.
    count
        Whether a Poisson layout has a ``"fixed"`` number of sites, so that only where they stand is luck, or a
        ``"Poisson"`` one.
    parts
        The measured window is taken in so many parts, each at its mean demand.
    rng
        Seed, or a generator to draw one from; the scenario's seed by default.
    workers
        Processes; one a core by default. The numbers do not depend on it.
    progress
        Told the stage, and how much of it is done.

    Raises
    ------
    GeoEdgeError
        If a number is out of range, sites stand outside the city, or the scenario has no city, radio along streets,
        or more than the city in its field.
    """
    from geoedge.planning.window import refuse_other_ground
    from geoedge.study import Study, prepare, service_queue
    from geoedge.study.window import window_parts

    refuse_other_ground(study.scenario if isinstance(study, Study) else study, "a deployment gain")
    if not isinstance(study, Study):
        study = prepare(study)
    scenario, where = study.scenario, "deployment_gain"
    demand, weight = window_parts(study, parts)
    ground = Ground(
        layout=study.layout,
        window=study.city.boundary,
        area_km2=study.city.area_km2,
        demand=demand,
        weight=weight,
        workload=study.workload,
        delay_coefficient=scenario.radio.delay_coefficient,
        delay_exponent=scenario.radio.delay_exponent,
        policy=scenario.routing.solved_as,
        scope=scenario.routing.scope,
        queue=service_queue(scenario),
        study=study,
    )
    taus = [f * scenario.target.ttft_target_s for f in TARGETS] if targets is None else targets
    refuse_outside(where, ground.layout, study.city.boundary)
    seed = _seed(where, scenario.seed if rng is None else rng)
    ensemble = Ensemble(ground, layouts, count, seed, workers, progress, where)
    return _gain(ensemble, taus, loads, present=True)


def layout_gain(
    layout: Layout,
    window: StudyWindow | Land,
    workload: Workload,
    demand: Demand | None = None,
    *,
    targets: Sequence[float],
    delay_coefficient: float,
    delay_exponent: float,
    loads: Sequence[float] = (0.3, 0.55, 0.75),
    density: SmoothedSites | None = None,
    policy: PolicyName = "load_aware",
    scope: str = "site",
    queue: WaitModel | QueueOfMix | None = None,
    layouts: int = 30,
    count: Count = "fixed",
    rng: np.random.Generator | int = 0,
    workers: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> DeploymentGain:
    """Return how many Poisson sites a layout is worth on any land, without streets.

    Parameters
    ----------
    layout
        Sites with their profiles.
    window
        Land that the sites stand on [m], in the layout's CRS, or a study window; of a layout on a torus, its period [m].
    workload
        Request types and profiles.
    demand
        Where requests come from and how many; None for evenly over the land, or as `density` has it, as many as
        `loads` say.
    targets
        Targets of the time to first token [s].
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay, Eq. (10).
    loads
        Shares of capacity at which it is asked, besides the demand as given if one is.
    density
        The layout's own density, smoothed, as `geoedge.sites.smoothed_sites` makes it. Poisson layouts, and requests
        where `demand` is omitted, then follow it instead of being even over the land, and the gain is what the
        arrangement of the sites is worth, not that they stand where there is something to do. A density that is made
        from sites fits these better than others, be they chance; where `demand` is omitted, each Poisson layout is
        therefore asked by its own smoothed density, as this layout is by its.
    policy, scope, queue
        Routing policy, who advertises a wait, and the wait model, M/M/c if omitted; as in `geoedge.field.solve_field`.
    layouts, count, rng, workers, progress
        As in `deployment_gain`.

    Raises
    ------
    GeoEdgeError
        If a number is out of range, sites stand outside the window, or hold profiles that the workload does not know.
    """
    from geoedge.theory import ErlangC

    if layout.profile.max() >= len(workload.profile_names):
        msg = (
            f"layout_gain: `layout` holds profile {layout.profile.max()}, `workload` knows 0 to "
            f"{len(workload.profile_names) - 1}; place its profiles"
        )
        raise GeoEdgeError(msg)
    land = land_of(layout, window)
    area = land[0] * land[1] if isinstance(land, tuple) else float(land.area)
    ground = Ground(
        layout=layout,
        window=land,
        area_km2=area / M2_PER_KM2,
        demand=(even_demand(layout, land, workload, density) if demand is None else demand,),
        weight=np.ones(1),
        workload=workload,
        delay_coefficient=delay_coefficient,
        delay_exponent=delay_exponent,
        policy=policy,
        scope=scope,
        queue=ErlangC() if queue is None else queue,
        density=density,
        fitted=density is not None and demand is None,
    )
    ensemble = Ensemble(ground, layouts, count, _seed("layout_gain", rng), workers, progress, "layout_gain")
    return _gain(ensemble, targets, loads, present=demand is not None)


def _gain(
    ensemble: Ensemble, targets: Sequence[float], loads: Sequence[float], *, present: bool
) -> DeploymentGain:
    import pandas as pd

    ground = ensemble.ground
    taus = np.unique(_positive(ensemble.where, "targets", targets, np.inf))
    asked = ground.load
    extra = [
        load
        for load in np.unique(_positive(ensemble.where, "loads", loads, 1.0))
        if not present or load != asked
    ]
    chosen = np.array([asked] * present + extra)
    if not len(chosen) or not len(taus):
        msg = f"{ensemble.where}: `targets` and `loads` must name at least one each"
        raise GeoEdgeError(msg)
    factors = chosen / asked
    ensemble.tell("this layout", 0, 1)
    covered, residual = coverage_curves(ground, ground.layout, factors, taus)
    ensemble.solve(factors, taus, covered)
    density = ground.layout.density(ground.area_km2)
    rows = []
    for i, load in enumerate(chosen):
        ensemble.tell("theory", i, len(chosen))
        known = TheoryReference(ground, float(factors[i])) if ground.density is None else None
        said = unsolved(float(residual[i]))
        for j, tau in enumerate(taus):
            row = {
                "load": load,
                "present": present and i == 0,
                "ttft_target_s": tau,
                "coverage": covered[i, j],
            }
            found = [ensemble.row(i, j)]
            found += [known.row(float(tau), covered[i, j])] if known is not None else []
            for each in found:
                own = f"this layout: {said}" if said else ""
                each["note"] = "; ".join(filter(None, (each["note"], own)))
                rows.append(row | each | {"equivalent_per_km2": each["gain"] * density})
    table = pd.DataFrame(rows)[COLUMNS].sort_values(
        ["load", "ttft_target_s"], kind="stable", ignore_index=True
    )
    return DeploymentGain(table, density, (ensemble.layouts, ensemble.count), ground.layout.label)


def _seed(where: str, rng: np.random.Generator | int) -> int:
    """Return a seed for streams."""
    if isinstance(rng, int | np.integer) and rng >= 0:
        return int(rng)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**62))
    msg = f"{where}: `rng` must be a seed >= 0 or a numpy Generator, not {str(rng)[:80]!r}"
    raise GeoEdgeError(msg)


def _positive(where: str, name: str, values: Sequence[float], most: float) -> Floats:
    found = np.asarray(values, dtype=np.float64).reshape(-1)
    if not ((found > 0.0) & (found < most)).all():
        allowed = "positive seconds" if most == np.inf else f"above 0 and below {most:g}"
        msg = f"{where}: `{name}` must be {allowed}, not {found.tolist()}"
        raise GeoEdgeError(msg)
    return found
