"""Worlds without a simulation: theory, an infinite random network, random and real sites on the land.

All are asked the same requests. Theory and the infinite network have the density of the real sites of each profile, all
others their very number, so that capacity is the same and the luck in the number of sites is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from geoedge.compare.gap.readings import Reading
from geoedge.field import FieldAnswer
from geoedge.streams import stream
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.city.demand import Demand
    from geoedge.compare.gap.orders import World
    from geoedge.field import FieldProblem, Geometry
    from geoedge.sites import Layout, SmoothedSites
    from geoedge.theory import Policy, QueueOfMix, TheoryAnswer, TieredNetwork, WaitModel
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]

__all__ = ["EXACT", "Ground", "field_readings", "field_tasks"]

EXACT = ""
TOLERANCE = 1e-3
"""Residual of each layout's equilibria, in utilisation."""
LAYOUTS_A_TASK = 5
"""Layouts that a process is handed at a time."""
PARTS = 12
"""Most parts of the window that the infinite network is asked for."""
LEAST_LAYOUTS = 8
"""Fewest layouts on the torus for each of them."""

Metric = Literal["coverage", "wait_s"]


class _SharedLoads(FieldAnswer):
    """A field whose sites of one profile all carry that profile's mean load, as theory has it, Eq. (15)."""

    @cached_property
    def site_rate(self) -> Floats:
        """Requests that every site serves, by type [1/s], shape (n, Q): the mean of its profile."""
        own, profile = super().site_rate, self.problem.profile
        sums = np.zeros((len(self.problem.concurrency), own.shape[1]))
        np.add.at(sums, profile, own)
        mean: Floats = sums[profile] / np.bincount(profile)[profile, None]
        return mean


@dataclass(frozen=True, eq=False)
class Ground:
    """What worlds are made from.

    Parameters
    ----------
    layout
        The real sites and what they hold.
    land
        Where sites and requests may be [m].
    demand
        Real demand of each part of the window.
    requests
        Share of the window's requests that falls in each part, shape (E,).
    workload
        Times, hits and concurrency by profile and type.
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay, Eq. (10).
    policy, scope, queue
        How requests are routed, who advertises a wait, and the queue that theory and field assume.
    ttft_target_s
        TTFT target τ₀ [s].
    metric
        ``"coverage"`` or ``"wait_s"``.
    cell_m
        Cells of even demand [m].
    seed
        Seed of the random sites.
    density
        Density that demand follows, and random sites with it once the world is uneven; None where sites are even.
    """

    layout: Layout
    land: Polygon | MultiPolygon
    demand: tuple[Demand, ...]
    requests: Floats
    workload: Workload
    delay_coefficient: float
    delay_exponent: float
    policy: Policy
    scope: str
    queue: WaitModel | QueueOfMix
    ttft_target_s: float
    metric: Metric
    cell_m: float
    seed: int
    density: SmoothedSites | None = None

    @cached_property
    def even(self) -> tuple[Demand, ...]:
        """The same requests, spread evenly over the land."""
        from geoedge.city.demand import uniform_demand

        return tuple(uniform_demand(self.land, one.total, self.cell_m) for one in self.demand)

    @cached_property
    def side_m(self) -> float:
        """Side of a square torus as large as the land [m]."""
        return float(np.sqrt(self.land.area))

    @cached_property
    def endless(self) -> tuple[Demand, ...]:
        """The same requests, spread evenly over such a torus."""
        from geoedge.city.demand import uniform_torus_demand
        from geoedge.units import KM

        side = self.side_m / KM
        cell = side / max(round(self.side_m / self.cell_m), 2)
        return tuple(
            uniform_torus_demand((side, side), one.intensity(self.area_km2), one.mix, cell)
            for one in self.demand
        )

    def fitted(self, layout: Layout) -> tuple[Demand, ...]:
        """Return the same requests by the layout's own density, smoothed as the real sites' is."""
        if self.density is None:
            return self.demand
        own = self.density.of(layout)
        return tuple(own.demand(one.total) for one in self.demand)

    @property
    def area_km2(self) -> float:
        """The land [km²]."""
        return float(self.land.area) / M2_PER_KM2

    @property
    def profiles(self) -> int:
        """Number of profiles that some site holds."""
        return len(np.unique(self.layout.profile))

    def network(self, part: int) -> TieredNetwork:
        """Return the Poisson network of the density and mix of the sites, asked for the requests of a part."""
        from geoedge.study import workload_network

        counts = np.bincount(self.layout.profile, minlength=len(self.workload.concurrency))
        return workload_network(
            self.workload,
            tier_density=counts / self.area_km2,
            mix=self.demand[part].mix,
            intensity=self.demand[part].intensity(self.area_km2),
            delay_coefficient=self.delay_coefficient,
            delay_exponent=self.delay_exponent,
        )

    def twin(self, index: int, *, endless: bool = False, uneven: bool = False) -> Layout:
        """Return random sites, as many as the real ones of each profile, on the torus, or on the land, even or not."""
        from geoedge.sites import poisson_layout

        rng = stream(self.seed, "gap", "layout", index)
        profile = rng.permutation(self.layout.profile)
        if uneven and self.density is not None:
            return replace(self.layout, xy=self.density.draw(len(self.layout), rng), profile=profile)
        window: Any = (self.side_m, self.side_m) if endless else self.land
        sites = poisson_layout(window, None, rng, count=len(self.layout), crs=self.layout.crs)
        return sites.with_profile(profile)

    def asked(self, answer: Any) -> float:
        """Return what is asked of an answer of theory or field."""
        if self.metric == "coverage":
            return float(answer.ttft_coverage(self.ttft_target_s))
        return float(answer.parts()["wait"])

    def mean(self, answers: Sequence[Any]) -> float:
        """Return what is asked of the answers of all parts of the window, averaged by requests."""
        return float(self.requests @ [self.asked(answer) for answer in answers])


def field_readings(
    ground: Ground,
    worlds: Sequence[World],
    layouts: int,
    workers: int,
    told: Callable[[int], None],
) -> dict[World, Reading]:
    """Return what worlds answer.

    Parameters
    ----------
    ground
        What they are made from.
    worlds
        Sets of the effects of `geoedge.compare.gap.effects.FIELD_EFFECTS`.
    layouts
        Random layouts of each world that has them.
    workers
        Processes; the answer does not depend on it.
    told
        Called after each task with the number of tasks done.
    """
    from geoedge.processes import in_processes

    tasks = field_tasks(ground, worlds, layouts)
    _ = ground.even, ground.endless  # made once, not in every process
    parts: dict[World, list[Reading]] = {world: [] for world in worlds}
    read = in_processes(_read, [(ground, *task) for task in tasks], min(workers, len(tasks)))
    for done, ((world, *_rest), reading) in enumerate(zip(tasks, read, strict=True), start=1):
        parts[world].append(reading)
        told(done)
    return {world: _joined(ground, world, found) for world, found in parts.items()}


def field_tasks(ground: Ground, worlds: Sequence[World], layouts: int) -> list[tuple[World, int, int]]:
    """Return the tasks: a world, and the first and one past the last of its layouts, or of its parts of the window."""
    tasks = []
    for world in worlds:
        if world == {"load"}:
            tasks += [(world, part, layouts) for part in range(len(_parts(ground)))]
        elif _lucky(ground, world):
            starts = range(0, layouts, LAYOUTS_A_TASK)
            tasks += [(world, first, min(first + LAYOUTS_A_TASK, layouts)) for first in starts]
        else:
            tasks.append((world, 0, 1))
    return tasks


def _lucky(ground: Ground, world: World) -> bool:
    """Return whether a world depends on random layouts."""
    if "count" not in world:
        return False
    return not _real(world) or ("placement" not in world and ground.profiles > 1)


def _real(world: World) -> bool:
    """Return whether the real sites stand in a world."""
    return not world.isdisjoint(("layout", "arrangement"))


def _joined(ground: Ground, world: World, parts: Sequence[Reading]) -> Reading:
    """Return a world's reading from those of its tasks, in order."""
    if world == {"load"}:
        return _infinite(ground, parts)
    flags: dict[str, int] = {}
    for part in parts:
        for name, count in part.flags:
            flags[name] = flags.get(name, 0) + count
    return Reading(
        parts[0].source, np.concatenate([part.values for part in parts]), flags=tuple(flags.items())
    )


def _read(ground: Ground, world: World, first: int, last: int) -> Reading:
    """Do one task."""
    if not world:
        return _theory(ground)
    if world == {"load"}:
        return _torus(ground, first, last)
    if not _lucky(ground, world):
        return _with_sites(ground, world, [ground.layout], EXACT)
    kind = {"endless": "window" not in world, "uneven": "unevenness" in world}
    twins = [ground.twin(index, **kind) for index in range(first, last)]
    if _real(world):
        twins = [ground.layout.with_profile(twin.profile) for twin in twins]
    return _with_sites(ground, world, twins, "layouts")


# ---------------------------------------------------------------------- without a map


def _theory(ground: Ground) -> Reading:
    answers = [_solved(ground, part) for part in range(len(ground.demand))]
    unstable = int(not all(each.stable for each in answers))
    return Reading(EXACT, np.array([ground.mean(answers)]), flags=_flags(unstable=unstable))


def _solved(ground: Ground, part: int) -> TheoryAnswer:
    from geoedge.theory import solve

    return solve(ground.network(part), policy=ground.policy, queue=ground.queue)


def _parts(ground: Ground) -> list[NDArray[np.int64]]:
    """Return the epochs of each part that the infinite network is asked for: neighbours, few enough."""
    epochs = np.arange(len(ground.demand))
    return np.array_split(epochs, min(PARTS, len(epochs)))


def _torus(ground: Ground, part: int, layouts: int) -> Reading:
    """Return what theory's mean misses in the middle of a part of the window: random networks less theory."""
    from geoedge.field import torus_ensemble
    from geoedge.field.ensemble import regressed

    epochs = _parts(ground)[part]
    middle = int(epochs[len(epochs) // 2])
    found = torus_ensemble(
        ground.network(middle),
        policy=ground.policy,
        scope=ground.scope,
        targets=[ground.ttft_target_s],
        rng=stream(ground.seed, "gap", "torus", part),
        layouts=max(LEAST_LAYOUTS, -(-layouts // len(_parts(ground)))),
        queue=ground.queue,
    )
    controls = np.column_stack((found.queue_free, found.controls))
    waits = found.layout_wait_share.sum(axis=1)
    answers = found.layout_coverage[:, 0] if ground.metric == "coverage" else waits
    if not np.isfinite(answers).all():
        return Reading("torus", np.array([np.inf]), 0.0)
    value, error, freedom = regressed(answers, controls)
    missed = value - ground.asked(found.theory)
    return Reading("torus", np.array([missed]), error, freedom)


def _infinite(ground: Ground, parts: Sequence[Reading]) -> Reading:
    """Return theory's answer for the window plus what its mean misses in each part."""
    share = np.array([ground.requests[epochs].sum() for epochs in _parts(ground)])
    missed = float(share @ np.concatenate([part.values for part in parts]))
    errors = share * np.array([part.error for part in parts], dtype=np.float64)
    variance = float((errors**2).sum())
    free = np.array([part.freedom for part in parts])
    freedom = variance**2 / float((errors**4 / free).sum()) if variance > 0 else np.inf
    return Reading("torus", _theory(ground).values + missed, float(np.sqrt(variance)), freedom)


# ---------------------------------------------------------------------- with sites


def _with_sites(ground: Ground, world: World, layouts: Sequence[Layout], source: str) -> Reading:
    """Return what these layouts answer under the demand of a world."""
    even = ground.even if "window" in world else ground.endless
    demand = even if world.isdisjoint(("demand", "unevenness")) else ground.demand
    values, unstable, unsolved = [], 0, 0
    geometry: Geometry | None = None
    own_density = "fit" in world and not _real(world)
    for layout in layouts:
        known = geometry if _real(world) else None
        demand = ground.fitted(layout) if own_density else demand
        answers = list(_answers(ground, layout, demand, known, own_loads="load" in world))
        geometry = answers[-1].problem.geometry
        values.append(ground.mean(answers))
        unstable += not all(each.stable for each in answers)
        unsolved += not all(each.converged for each in answers)
    return Reading(source, np.array(values), flags=_flags(unstable=unstable, unsolved=unsolved))


def _flags(**counts: int) -> tuple[tuple[str, int], ...]:
    return tuple((name, count) for name, count in counts.items() if count)


def _answers(
    ground: Ground,
    layout: Layout,
    demand: Sequence[Demand],
    geometry: Geometry | None,
    *,
    own_loads: bool,
) -> Iterator[FieldAnswer]:
    """Yield the field of each part of the window, each started from the last."""
    from geoedge.field import solve_field

    answer: FieldAnswer | None = None
    for one in demand:
        problem = _problem(ground, layout, one, answer.problem.geometry if answer else geometry)
        answer = solve_field(
            problem,
            policy=ground.policy,
            # theory gives the sites of a profile one load and one wait
            scope=ground.scope if own_loads else "tier",
            waits=answer.advertised_wait if answer else None,
            queue=ground.queue,
            tolerance=TOLERANCE,
        )
        yield answer if own_loads else _shared(answer)


def _shared(answer: FieldAnswer) -> FieldAnswer:
    return _SharedLoads(**{each.name: getattr(answer, each.name) for each in fields(answer)})


def _problem(ground: Ground, layout: Layout, demand: Demand, geometry: Geometry | None) -> FieldProblem:
    from geoedge.field import field_problem
    from geoedge.units import KM

    same = geometry is not None and np.array_equal(geometry.point_xy, demand.xy / KM)
    return field_problem(
        demand,
        layout,
        ground.workload,
        delay_coefficient=ground.delay_coefficient,
        delay_exponent=ground.delay_exponent,
        geometry=geometry if same else None,
    )
