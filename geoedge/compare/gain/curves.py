"""Coverage of a layout, and of Poisson layouts of many densities on the same ground, by the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from geoedge.planning.orders import steady_profiles
from geoedge.sites.layout import Layout
from geoedge.streams import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.city.demand import Demand
    from geoedge.field import FieldProblem
    from geoedge.sites import SmoothedSites
    from geoedge.study import PolicyName, Study
    from geoedge.theory import QueueOfMix, TieredNetwork, WaitModel
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = [
    "TOLERANCE",
    "Count",
    "Curves",
    "Ground",
    "coverage_curves",
    "drawn_curves",
    "drawn_ground",
    "nested_layout",
]

Count = Literal["fixed", "Poisson"]
MOST = 8
"""Poisson layouts of up to so many times the layout's density are drawn."""
TOLERANCE = 1e-3
"""Residual of every equilibrium, in utilisation."""


@dataclass(frozen=True, eq=False)
class Ground:
    """What every layout is asked: land, demand, workload and how requests are routed.

    Parameters
    ----------
    layout
        The layout in question.
    window
        Land to draw Poisson layouts on [m], or the period of a torus [m].
    area_km2
        Its area [km²].
    demand
        Demand of each part of the time, length E.
    weight
        Share of requests in each part, shape (E,).
    workload
        Request types and profiles.
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay, Eq. (10).
    policy, scope
        Routing policy, and who advertises a wait.
    queue
        Wait model of the sites.
    study
        The study all of this is of, if it is of one.
    density
        Density that Poisson layouts follow; even over the window if omitted.
    fitted
        Whether the demand is that density's, which is made from the layout; Poisson layouts are then asked by densities
        that are made from them.
    """

    layout: Layout
    window: Polygon | MultiPolygon | tuple[float, float]
    area_km2: float
    demand: tuple[Demand, ...]
    weight: Floats
    workload: Workload
    delay_coefficient: float
    delay_exponent: float
    policy: PolicyName
    scope: str
    queue: WaitModel | QueueOfMix
    study: Study | None = None
    density: SmoothedSites | None = None
    fitted: bool = False

    @property
    def mix(self) -> Floats:
        """Share of the layout's sites that hold each profile, shape (S,)."""
        count = np.bincount(self.layout.profile, minlength=len(self.workload.profile_names))
        return np.asarray(count / count.sum(), dtype=np.float64)

    @property
    def load(self) -> float:
        """Least work of the requests over all servers of the layout, the mean over requests; 1 is beyond capacity."""
        shares = [self.problem(self.layout, k).least_work_share for k in range(len(self.demand))]
        return float(self.weight @ shares)

    def problem(self, layout: Layout, part: int, like: FieldProblem | None = None) -> FieldProblem:
        """Return what the field is asked of a layout in a part of the time; `like` saves geometry where it fits."""
        from geoedge.field import field_problem
        from geoedge.study import field_inputs

        demand = self.demand[part]
        if self.study is not None:
            return field_inputs(self.study.with_layout(layout), demand, like=like)
        same = like is not None and np.array_equal(self.demand[0].xy, demand.xy)
        return field_problem(
            demand,
            layout,
            self.workload,
            delay_coefficient=self.delay_coefficient,
            delay_exponent=self.delay_exponent,
            geometry=like.geometry if like is not None and same else None,
        )

    def networks(self, factor: float) -> list[TieredNetwork]:
        """Return the Poisson network of the layout's density and mix at each part's demand times a factor."""
        from geoedge.study import workload_network

        return [
            workload_network(
                self.workload,
                tier_density=self.mix * self.layout.density(self.area_km2),
                mix=demand.mix,
                intensity=factor * demand.intensity(self.area_km2),
                delay_coefficient=self.delay_coefficient,
                delay_exponent=self.delay_exponent,
            )
            for demand in self.demand
        ]


def nested_layout(ground: Ground, count: Count, seed: int, index: int, mean: int) -> Layout | None:
    """Return a Poisson layout of this mean number of sites, part of those of more sites under the same index.

    Parameters
    ----------
    ground
        Window, profiles and CRS.
    count
        ``"fixed"`` for exactly that many sites with the layout's mix of profiles in whole sites, ``"Poisson"`` for a
        Poisson number of sites with a profile of its own luck each.
    seed, index
        What the layout depends on.
    mean
        Number of sites, on average; at most `MOST` times the layout's.

    Returns
    -------
    Layout or None
        None if no site was drawn.
    """
    from scipy.stats import poisson

    luck, marks, places = _drawn(ground, count, seed, index)
    drawn = mean if count == "fixed" else int(poisson.ppf(luck, mean))
    xy = places[:drawn]
    if not drawn:
        return None
    if count == "fixed":
        profile = steady_profiles(ground.mix, drawn)
    else:
        profile = np.searchsorted(np.cumsum(ground.mix)[:-1], marks[:drawn], side="right")
    return Layout(
        xy,
        profile,
        ("",) * drawn,
        ("random",) * drawn,
        "Poisson",
        ground.layout.crs,
        ground.layout.period_m,
        {"profiles_placed": True},
    )


def _drawn(ground: Ground, count: Count, seed: int, index: int) -> tuple[float, Floats, Floats]:
    """Return the luck of a Poisson layout: in its number, in its profiles, and places for as many sites as it may have."""
    from geoedge.sites.processes import uniform_points

    rng = stream(seed, "deployment gain", count, index)
    luck, most = rng.random(), MOST * len(ground.layout)
    most += 10 * round(most**0.5) + 50  # more than a Poisson number ever is
    marks = rng.random(most)
    if ground.density is None:
        return luck, marks, uniform_points(ground.window, most, rng)
    return luck, marks, ground.density.draw(most, rng)


def drawn_ground(ground: Ground, count: Count, seed: int, index: int) -> Ground:
    """Return the ground that a Poisson layout is asked on.

    A density that is made from sites fits them better than others. Where the layout has this advantage, Poisson layouts
    get it as well: requests by the smoothed density of as many sites, the first ones drawn, however many are asked.

    Parameters
    ----------
    ground, count, seed, index
        As in `nested_layout`.
    """
    if not ground.fitted or ground.density is None:
        return ground
    own = ground.density.of(_drawn(ground, count, seed, index)[2][: len(ground.layout)])
    return replace(ground, demand=tuple(own.demand(one.total) for one in ground.demand))


class Curves(NamedTuple):
    """Share of requests in time by demand and target, shape (factors, T), and how well it is solved, shape (factors,).

    The residual is the largest miss of an equilibrium, in utilisation.
    """

    coverage: Floats
    residual: Floats


def coverage_curves(
    ground: Ground, layout: Layout, factors: Sequence[float] | Floats, taus: Floats
) -> Curves:
    """Return the share of requests in time under each of several demands, by the field.

    Parameters
    ----------
    ground
        Demand and workload.
    layout
        Sites.
    factors
        Demands, over that of the ground.
    taus
        Targets of the time to first token [s], shape (T,).
    """
    from geoedge.field import solve_field

    covered, residual = np.zeros((len(factors), len(taus))), np.zeros(len(factors))
    first = ground.problem(layout, 0)
    waits: dict[int, Floats | None] = {}
    for part, weight in enumerate(ground.weight):
        problem = first if part == 0 else ground.problem(layout, part, like=first)
        before: Floats | None = None
        for row in map(int, np.argsort(factors, kind="stable")):
            answer = solve_field(
                problem.with_rate(problem.rate * factors[row]),
                policy=ground.policy,
                scope=ground.scope,
                waits=waits.get(row, before),  # those of another part, or of a lighter demand
                queue=ground.queue,
                tolerance=TOLERANCE,
            )
            before = waits[row] = answer.advertised_wait if answer.stable else None
            covered[row] += weight * np.array([answer.ttft_coverage(float(tau)) for tau in taus])
            residual[row] = max(residual[row], answer.residual)
    return Curves(covered, residual)


def drawn_curves(
    ground: Ground,
    count: Count,
    seed: int,
    indices: Sequence[int],
    jobs: Mapping[int, Sequence[float]],
    taus: Mapping[int, Floats],
) -> list[dict[int, Curves]]:
    """Return the coverage of Poisson layouts of every mean number of sites asked for, layout by layout.

    Parameters
    ----------
    ground, count, seed
        As in `nested_layout`.
    indices
        Which layouts.
    jobs
        Demands to ask for, over that of the ground, by mean number of sites.
    taus
        Targets [s], by mean number of sites.
    """

    def curves(asked: Ground, index: int, mean: int) -> Curves:
        layout = nested_layout(ground, count, seed, index, mean)
        if layout is None:
            return Curves(np.zeros((len(jobs[mean]), len(taus[mean]))), np.zeros(len(jobs[mean])))
        return coverage_curves(asked, layout, jobs[mean], taus[mean])

    grounds = {index: drawn_ground(ground, count, seed, index) for index in indices}
    return [{mean: curves(grounds[index], index, mean) for mean in jobs} for index in indices]
