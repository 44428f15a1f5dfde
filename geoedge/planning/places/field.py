"""What a choice of places is worth, by the field: also where few sites cannot carry the demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from geoedge.sites.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.demand import Demand
    from geoedge.field import FieldProblem
    from geoedge.study import Study
    from geoedge.theory import QueueOfMix, WaitModel
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["NONE", "Evaluator", "Value", "equipped", "useful_load"]

NONE = -1
"""What a place holds that is not equipped."""
LEVELS = np.linspace(0.02, 0.98, 97)
"""Loads among which the useful one is looked for."""


@dataclass(frozen=True, eq=False)
class Value:
    """What a choice of places is worth.

    Parameters
    ----------
    score
        Share of all requests in time if the network turns away what it cannot carry.
    coverage
        Share of all requests in time if it turns nobody away; NaN if that was not asked.
    admitted
        Share of the requests that the score admits.
    wait
        Waits at the places under the admitted demand of each part [s], shape (E, N); NaN where there is no site.
    """

    score: float
    coverage: float
    admitted: float
    wait: Floats


def equipped(layout: Layout, held: Ints) -> Layout:
    """Return the layout of the places that hold a profile.

    Parameters
    ----------
    layout
        All places.
    held
        Profile at each place, `NONE` where it is not equipped, shape (N,).
    """
    at = np.flatnonzero(held != NONE)
    return replace(
        layout,
        xy=layout.xy[at],
        profile=held[at],
        name=tuple(layout.name[i] for i in at),
        kind=tuple(layout.kind[i] for i in at),
        report={**layout.report, "profiles_placed": True},
    )


def useful_load(workload: Workload, mix: Floats, tau: float, queue: WaitModel | QueueOfMix) -> float:
    """Return the load at which one site alone has most requests in time, per server.

    A busier site serves more requests, but fewer of them in time; the best load is where the product is greatest. It
    is that of a site of median concurrency whose requests are all prefilled as fast as any profile can.

    Parameters
    ----------
    workload
        Request types and profiles.
    mix
        Share of each type, shape (Q,).
    tau
        Target of the time to first token [s].
    queue
        Wait model; a rule that depends on the mixture is replaced by M/M/c.
    """
    from geoedge.theory import ErlangC, QueueOfMix

    model = ErlangC() if isinstance(queue, QueueOfMix) else queue
    servers = int(np.median(workload.concurrency))
    rate = 1.0 / float(workload.occupancy_time.min(axis=0) @ mix)
    slack = max(0.0, tau - float(workload.prefill_time.min(axis=0) @ mix))
    shape = np.ones(len(LEVELS))
    kept = model.wait_cdf(
        slack * shape, LEVELS * servers * rate, rate * shape, servers * shape.astype(np.int64)
    )
    return float(LEVELS[np.argmax(LEVELS * kept)])


class Evaluator:
    """Scores choices of places by the field under given demands.

    A choice whose servers are asked for more than `level` of their time is scored by the requests in time when the
    network turns away, anywhere and of any type alike, what is beyond it; the refused count as missed. So a network
    that cannot carry the demand yet is worth what it does serve in time, and not nothing. Up to halfway from the
    level to capacity all requests are admitted on trial too, and the better counts; below the level all are
    admitted, and the score is the coverage. An evaluator that tells coverages too admits all on trial at any load.

    Parameters
    ----------
    study
        The study; its layout holds all candidate places.
    demand
        Demand of each part of the time, length E.
    weight
        Share of requests in each part, shape (E,).
    tau
        Target of the time to first token [s].
    level
        Load per server up to which requests are admitted.
    tells_coverage
        Whether the coverage is wanted also where it cannot be the score; it is NaN there otherwise.
    tolerance
        Residual of each equilibrium, in utilisation.
    """

    def __init__(
        self,
        study: Study,
        demand: Sequence[Demand],
        weight: Floats,
        tau: float,
        level: float,
        *,
        tells_coverage: bool = False,
        tolerance: float = 1e-3,
    ) -> None:
        from geoedge.study import service_queue

        self.study, self.demand, self.weight, self.tau = study, tuple(demand), weight, tau
        self.level, self.tells_coverage, self.tolerance = level, tells_coverage, tolerance
        self.solved = 0
        self._queue = service_queue(study.scenario)
        self._known: dict[bytes, Value] = {}

    @property
    def places(self) -> int:
        """Number of candidate places N."""
        return len(self.study.layout)

    def value(self, held: Ints, start: Value | None = None) -> Value:
        """Return what a choice of places is worth.

        Parameters
        ----------
        held
            Profile at each place, `NONE` where it is not equipped, shape (N,).
        start
            Value of a choice like it, whose waits are a start.
        """
        key = held.tobytes()
        if key not in self._known:
            self._known[key] = self._value(held, start)
        return self._known[key]

    def _value(self, held: Ints, start: Value | None) -> Value:
        from geoedge.study import field_inputs

        wait = np.full((len(self.demand), self.places), np.nan)
        at = np.flatnonzero(held != NONE)
        if not at.size:
            return Value(0.0, 0.0, 0.0, wait)
        study, totals = self.study.with_layout(equipped(self.study.layout, held)), np.zeros(3)
        like: FieldProblem | None = None
        for part, weight in enumerate(self.weight):
            like = problem = field_inputs(study, self.demand[part], like=like)
            before = None if start is None else _first_waits(start.wait[part, at])
            *found, wait[part, at] = self._part(problem, before)
            totals += weight * np.array(found)
        score, coverage, admitted = map(float, totals)
        return Value(score, coverage, admitted, wait)

    def _part(self, problem: FieldProblem, waits: Floats | None) -> tuple[float, float, float, Floats]:
        """Return score, coverage and admitted share under one demand, and the waits [s]."""
        share = problem.least_work_share
        admitted = min(1.0, self.level / share) if share > 0.0 else 1.0
        covered, wait = self._solve(problem, admitted, waits)
        score, coverage = admitted * covered, covered if admitted == 1.0 else np.nan
        if admitted < 1.0 and (self.tells_coverage or share < 0.5 * (1.0 + self.level)):
            coverage, crowded = self._solve(problem, 1.0, wait)
            if coverage > score:
                score, admitted, wait = coverage, 1.0, crowded
        return score, coverage, admitted, wait

    def _solve(self, problem: FieldProblem, admitted: float, waits: Floats | None) -> tuple[float, Floats]:
        from geoedge.field import solve_field

        routing = self.study.scenario.routing
        self.solved += 1
        answer = solve_field(
            problem if admitted == 1.0 else problem.with_rate(problem.rate * admitted),
            policy=routing.solved_as,
            scope=routing.scope,
            waits=waits,
            queue=self._queue,
            tolerance=self.tolerance,
        )
        return answer.ttft_coverage(self.tau), answer.advertised_wait


def _first_waits(wait: Floats) -> Floats | None:
    """Return waits to start from: a new site's is the middle of the others."""
    known = np.isfinite(wait)
    return np.where(known, wait, np.median(wait[known])) if known.any() else None
