"""The gap between Poisson theory and a simulated city, taken apart: which effect is worth how much.

Theory and simulation differ in many things at once. Here they are joined by a chain of worlds, each of which differs
from the one before in one effect; neighbours are asked on the same random layouts, or the same people and requests, so
that what they share cancels. The changes add up to the whole. Effects interact, and what one is worth depends on
which were there before: Shapley values average over all orders that make sense.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from geoedge.compare.gap.effects import (
    RUN_EFFECTS,
    absent_in_runs,
    after,
    chain_of,
)
from geoedge.compare.gap.field import Ground, field_readings, field_tasks
from geoedge.compare.gap.orders import (
    chain_weights,
    count_orders,
    marginals,
    possible_worlds,
    shapley_weights,
)
from geoedge.compare.gap.readings import Interval, Reading, combined
from geoedge.compare.gap.result import METRICS, Gap, Spread, Step
from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from shapely import MultiPolygon, Polygon

    from geoedge.city.city import City
    from geoedge.city.demand import Demand
    from geoedge.compare.gap.orders import World
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout, SmoothedSites
    from geoedge.study import Study
    from geoedge.theory import Policy, QueueOfMix, WaitModel
    from geoedge.workload import Workload

__all__ = ["METRICS", "Gap", "Spread", "Step", "explain_gap", "explain_layout"]

ORDERS = ("chain", "shapley")
LAYOUTS = 40
"""Random layouts of each world that has them, by default."""
CELLS_PER_SITE = 120
"""Cells of demand per site on land without a map."""
EDGE_M = 1.0
"""Sites this near to the land stand on it [m]."""

Progress = Callable[[str, float, int], None]


def explain_gap(
    scenario: Scenario,
    city: City | None = None,
    layout: Layout | None = None,
    *,
    study: Study | None = None,
    rng: int | None = None,
    metric: Literal["coverage", "wait_s"] = "coverage",
    orders: Literal["chain", "shapley"] = "chain",
    layouts: int = LAYOUTS,
    replications: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Gap:
    """Explain the gap between Poisson theory and the simulated city, effect by effect.

    The chain goes from the mean-field law, Eq. (39), to an infinite random network whose sites differ in load (on tori
    large enough), to as many random sites as the city has, first without an edge and then on its land, to the real
    places, profiles and demand (the field), to a simulation of moving users under the field's own prices and
    exponential service, and then to the scenario's service law, telemetry and controller. All worlds have the same
    requests and the same capacity; the luck in the number of sites is left out.

    Parameters
    ----------
    scenario
        A scenario with a city.
    city, layout
        City and sites, if they exist already.
    study
        The scenario's study, if it is prepared already; city and layout are then its own.
    rng
        Seed of random layouts and of the people and requests of simulations; the scenario's by default.
    metric
        ``"coverage"`` at the scenario's target, or ``"wait_s"``, the mean wait.
    orders
        ``"chain"`` for the one order above, or ``"shapley"`` for the means over all orders that make sense as well: 24
        worlds instead of 11, so that it takes two to three times as long.
    layouts
        Random layouts of each world that has them, at least 2.
    replications
        Simulations of each world; the scenario's by default.
    workers
        Processes; one a core by default. The gap does not depend on it.
    progress
        Told the stage, and how many of its steps are done; of simulations with parts of those that are underway.

    Raises
    ------
    GeoEdgeError
        If an argument is out of range, radio follows streets, the city has neighbours, things happen that no expectation
        knows of, or an answer is infinite.
    """
    from geoedge.planning.window import refuse_other_ground
    from geoedge.study import prepare, refuse_shocks

    refuse_other_ground(scenario, "a gap")
    refuse_shocks(scenario, "a gap")
    seed = scenario.seed if rng is None else rng
    count = scenario.simulation.replications if replications is None else replications
    _check("explain_gap", metric, orders, layouts, workers, seed, replications=count)
    tell = progress or (lambda *_: None)
    tell("city, sites, demand", 0, 1)
    made = study if study is not None else prepare(scenario, city=city, layout=layout)
    made = made.with_scenario(scenario)
    absent = absent_in_runs(scenario)
    ground = _ground_of(made, metric, seed)
    asked = _Asked(ground, absent | _absent_on_land(ground), orders, layouts, workers, tell)
    return asked.gap(scenario.title, made, count)


def explain_layout(
    layout: Layout,
    land: Polygon | MultiPolygon,
    workload: Workload,
    demand: Demand | ArrayLike,
    *,
    delay_coefficient: float,
    delay_exponent: float,
    ttft_target_s: float,
    policy: Policy = "load_aware",
    scope: Literal["site", "tier"] = "site",
    queue: WaitModel | QueueOfMix | None = None,
    density: SmoothedSites | None = None,
    cell_m: float | None = None,
    title: str = "layout",
    rng: int = 1,
    metric: Literal["coverage", "wait_s"] = "coverage",
    orders: Literal["chain", "shapley"] = "chain",
    layouts: int = LAYOUTS,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Gap:
    """Explain the gap between Poisson theory and real sites on land without a map, as far as the field goes.

    Parameters
    ----------
    layout
        The sites and what they hold, in a projected CRS.
    land
        Where sites and requests may be [m].
    workload
        Times, hits and concurrency by profile and type.
    demand
        Where requests come from, or requests of each type to spread evenly over the land [1/s], shape (Q,); the effect
        of demand in places is then absent. With a `density` they are spread as it has it.
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay, Eq. (10).
    ttft_target_s
        TTFT target τ₀ [s].
    policy, scope, queue
        How requests are routed, who advertises a wait, and the sites' queue, M/M/c if omitted.
    density
        The sites' own density, smoothed, as `geoedge.sites.smoothed_sites` makes it, for land of which nobody knows
        who asks where. Requests and random sites then become uneven in one step, and what sites are worth is told
        among layouts of one density; neither is asked with the other still even. A density that is made from sites
        fits these better than others, be they chance; the step ``"fit"`` gives random sites the same advantage, each
        its own smoothed density, and is absent if requests are given place by place.
    cell_m
        Cells of even demand [m]; 120 a site by default.
    title
        What is studied.
    rng, metric, orders, layouts, workers, progress
        As in `explain_gap`.

    Raises
    ------
    GeoEdgeError
        As `explain_gap`, or if the layout lies on a torus, a site stands outside the land, or nothing is asked.
    """
    from geoedge.theory import ErlangC

    _check("explain_layout", metric, orders, layouts, workers, rng)
    _check_ground(layout, land)
    side = float(np.sqrt(land.area / (CELLS_PER_SITE * len(layout)))) if cell_m is None else cell_m
    given, absent = _given_demand(demand, land, side, density)
    if not given.request_rate > 0.0:
        msg = "explain_layout: `demand` asks for nothing; give requests of each type [1/s], at least one above 0"
        raise GeoEdgeError(msg)
    ground = Ground(
        layout,
        land,
        (given,),
        np.ones(1),
        workload,
        delay_coefficient,
        delay_exponent,
        policy,
        scope,
        queue if queue is not None else ErlangC(),
        ttft_target_s,
        metric,
        side,
        rng,
        density,
    )
    absent |= dict.fromkeys(RUN_EFFECTS, "nothing is simulated without a map")
    tell = progress or (lambda *_: None)
    return _Asked(ground, absent | _absent_on_land(ground), orders, layouts, workers, tell).gap(title)


def _check_ground(layout: Layout, land: Polygon | MultiPolygon) -> None:
    """Say in one line why a layout does not fit its land."""
    import shapely

    if layout.period_m is not None:
        msg = "explain_layout: `layout` lies on a torus, which has no edge; give sites on a plane, with their land"
        raise GeoEdgeError(msg)
    outside = int((~shapely.contains_xy(land.buffer(EDGE_M), layout.xy)).sum())
    if outside:
        msg = (
            f"explain_layout: {outside} of {len(layout)} sites stand outside `land`; drop them, or give the land that "
            "they stand on, in the CRS of the layout"
        )
        raise GeoEdgeError(msg)


def _given_demand(
    demand: Demand | ArrayLike, land: Polygon | MultiPolygon, cell_m: float, density: SmoothedSites | None
) -> tuple[Demand, dict[str, str]]:
    from geoedge.city.demand import Demand, uniform_demand

    if isinstance(demand, Demand):
        return demand, {"fit": "requests are given place by place"}
    if density is not None:
        return density.demand(demand), {}
    return uniform_demand(land, demand, cell_m), {"demand": "demand is given as even"}


def _ground_of(study: Study, metric: Literal["coverage", "wait_s"], seed: int) -> Ground:
    from geoedge.study import service_queue

    scenario, measured = study.scenario, np.flatnonzero(study.expected_requests > 0)
    requests = study.expected_requests[measured]
    return Ground(
        study.layout,
        study.city.boundary,
        tuple(study.demand[epoch] for epoch in measured),
        requests / requests.sum(),
        study.workload,
        scenario.radio.delay_coefficient,
        scenario.radio.delay_exponent,
        scenario.routing.solved_as,
        scenario.routing.scope,
        service_queue(scenario),
        scenario.target.ttft_target_s,
        metric,
        scenario.demand.cell_m,
        seed,
    )


def _absent_on_land(ground: Ground) -> dict[str, str]:
    return {"placement": "all sites hold one profile"} if ground.profiles == 1 else {}


def _check(
    asked: str, metric: str, orders: str, layouts: int, workers: int | None, seed: int, replications: int = 1
) -> None:
    """Say in one line what cannot be asked."""
    for name, value, known in (("metric", metric, tuple(METRICS)), ("orders", orders, ORDERS)):
        if value not in known:
            msg = f"{asked}: `{name}` must be one of {', '.join(known)}, not {value!r}"
            raise GeoEdgeError(msg)
    bounds = (
        ("layouts", layouts, 2),
        ("replications", replications, 1),
        ("workers", workers, 1),
        ("rng", seed, 0),
    )
    for name, number, least in bounds:
        if number is not None and not (isinstance(number, int | np.integer) and number >= least):
            msg = f"{asked}: `{name}` must be an integer of at least {least}, not {number!r}"
            raise GeoEdgeError(msg)


@dataclass(frozen=True)
class _Asked:
    """A gap to be computed."""

    ground: Ground
    absent: Mapping[str, str]
    orders: str
    layouts: int
    workers: int | None
    tell: Progress

    @property
    def present(self) -> list[str]:
        return [effect for effect in self.chain if effect not in self.absent]

    @property
    def chain(self) -> list[str]:
        return chain_of(given_density=self.ground.density is not None)

    def worlds(self) -> list[World]:
        """Return the worlds to be asked."""
        if self.orders == "shapley":
            return possible_worlds(after(self.present))
        return [frozenset(self.present[:k]) for k in range(len(self.present) + 1)]

    def gap(self, title: str, study: Study | None = None, replications: int = 0) -> Gap:
        """Ask all worlds and put the gap together."""
        from geoedge.compare.gap.words import notes

        readings, needs = self._read(study, replications), after(self.present)
        nothing: World = frozenset()
        everything: World = frozenset(self.present)
        return Gap(
            self.ground.metric,
            title,
            self.ground.ttft_target_s,
            tuple(self._steps(readings, on_land_only=study is None)),
            combined(readings, {nothing: 1.0}),
            combined(readings, {everything: 1.0}),
            combined(readings, {everything: 1.0, nothing: -1.0}),
            _spreads(readings, needs) if self.orders == "shapley" else None,
            count_orders(needs),
            notes(self.ground, readings, self.layouts, study, replications),
            readings,
        )

    def _read(self, study: Study | None, replications: int) -> dict[World, Reading]:
        from joblib import cpu_count

        from geoedge.compare.gap.runs import run_readings

        workers = cpu_count() if self.workers is None else self.workers
        worlds = self.worlds()
        still = [world for world in worlds if "movement" not in world]
        moving = [world for world in worlds if "movement" in world]
        steps = len(field_tasks(self.ground, still, self.layouts))
        self.tell("random and real sites", 0, steps)
        found = field_readings(
            self.ground,
            still,
            self.layouts,
            workers,
            lambda done: self.tell("random and real sites", done, steps),
        )
        if study is None:
            return found
        steps = len(moving) * replications
        return found | run_readings(
            study,
            moving,
            self.absent,
            self.ground.metric,
            replications=replications,
            seed=self.ground.seed,
            workers=workers,
            told=lambda done: self.tell("simulations", done, steps),
        )

    def _steps(self, readings: Mapping[World, Reading], *, on_land_only: bool) -> Iterator[Step]:
        weights, level = chain_weights(self.present), readings[frozenset()].value
        for effect in self.chain:
            if on_land_only and effect in RUN_EFFECTS:
                continue
            if effect in self.absent:
                yield Step(effect, Interval(0.0, 0.0, 0.0), level, self.absent[effect])
                continue
            level = readings[max(weights[effect], key=len)].value
            yield Step(effect, combined(readings, weights[effect]), level, "")


def _spreads(readings: Mapping[World, Reading], needs: Mapping[str, frozenset[str]]) -> dict[str, Spread]:
    """Return what each effect changes over all orders."""
    found = {}
    for effect, weights in shapley_weights(needs).items():
        changes = [
            readings[then].value - readings[before].value for before, then, _ in marginals(needs, effect)
        ]
        found[effect] = Spread(combined(readings, weights), min(changes), max(changes))
    return found
