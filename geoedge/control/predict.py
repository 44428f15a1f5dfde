"""The field as predictor: what a placement would do under one measured demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.alone import Alone, coarsened
from geoedge.control.planners.base import Prediction
from geoedge.field.equilibrium import evaluate, solve_field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.field.answer import FieldAnswer
    from geoedge.field.problem import FieldProblem
    from geoedge.theory.protocols import QueueOfMix, WaitModel

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["FieldPredictor"]

TOLERANCE = 1e-4
"""Residual of a solution, in utilisation."""
COARSE_TOLERANCE = 3e-3
"""Residual of a solution on coarse cells, in utilisation."""
SCREEN_TOLERANCE = 0.03
"""Residual that is good enough on coarse cells, in utilisation."""


class FieldPredictor:
    """Solves the field for placements under one demand.

    Parameters
    ----------
    problem
        Demand, sites and workload; what sites hold is given with every question.
    policy
        Routing policy.
    scope
        Who advertises a wait, ``"site"`` or ``"tier"``.
    tau
        TTFT target [s].
    queue
        Wait model of the sites, as in `geoedge.field.solve_field`.
    most_screened
        Changes of one site that a screening looks at; of a larger fleet, those of the sites with the most
        misses and of those with the least to do.
    tolerance
        Residual of a solution, in utilisation.
    """

    def __init__(
        self,
        problem: FieldProblem,
        policy: str,
        scope: str,
        tau: float,
        *,
        queue: WaitModel | QueueOfMix | None = None,
        most_screened: int = 256,
        tolerance: float = TOLERANCE,
    ) -> None:
        self.problem, self.policy, self.scope, self.tau = problem, policy, scope, tau
        self.queue, self.tolerance = queue, tolerance
        self.most_screened = most_screened
        self._coarse = coarsened(problem)
        self._alone: tuple[Prediction, Alone] | None = None
        self._known: dict[bytes, Prediction] = {}
        self._rough: FieldPredictor | None = None

    def coarse(self) -> FieldPredictor:
        """Return a predictor on coarse cells, several times as fast; always the same one."""
        if self._rough is None:
            self._rough = FieldPredictor(
                self._coarse,
                self.policy,
                self.scope,
                self.tau,
                queue=self.queue,
                most_screened=self.most_screened,
                tolerance=COARSE_TOLERANCE,
            )
        return self._rough

    def solve(self, profile: Ints, start: Prediction | None = None) -> Prediction:
        """Return the equilibrium of a placement.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        start
            Equilibrium of a placement or demand like it, to start from.
        """
        key = profile.tobytes()
        if key not in self._known:
            self._known[key] = _prediction(
                self._solve(self.problem, profile, start, self.tolerance), self.tau
            )
        return self._known[key]

    def judge(self, profile: Ints, wait: Floats) -> float:
        """Return the coverage if sites advertise waits that are no equilibrium, each site scored at its own load.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        wait
            What each advertises [s], shape (n,).
        """
        problem = self.problem.with_profile(profile)
        return evaluate(problem, wait, policy=self.policy, queue=self.queue).ttft_coverage(self.tau)

    def screen(self, profile: Ints, base: Prediction) -> Floats:
        """Return the gain in coverage, on coarse cells, of giving site i profile s alone, shape (n, S).

        Parameters
        ----------
        profile
            The placement, shape (n,).
        base
            Its equilibrium.
        """
        n, gains = len(profile), np.full((len(profile), len(self.problem.concurrency)), -np.inf)
        here = _prediction(self._solve(self._coarse, profile, base, SCREEN_TOLERANCE), self.tau)
        for i in self._screened(base, n):
            for s in np.flatnonzero(np.arange(gains.shape[1]) != profile[i]):
                changed = np.where(np.arange(n) == i, s, profile)
                after = self._solve(self._coarse, changed, here, SCREEN_TOLERANCE)
                gains[i, s] = after.ttft_coverage(self.tau) - here.coverage
        return gains

    def _screened(self, base: Prediction, n: int) -> Ints:
        room = max(2, self.most_screened // max(1, len(self.problem.concurrency) - 1))
        if n <= room:
            return np.arange(n)
        by_misses = np.argsort(-base.missed_rate, kind="stable")[: room // 2]
        rest = np.setdiff1d(np.arange(n), by_misses)
        idle = rest[np.argsort(base.utilization[rest], kind="stable")[: room - room // 2]]
        return np.sort(np.concatenate((by_misses, idle)))

    def _solve(
        self, problem: FieldProblem, profile: Ints, start: Prediction | None, tolerance: float
    ) -> FieldAnswer:
        return solve_field(
            problem.with_profile(profile),
            policy=self.policy,
            scope=self.scope,
            waits=self._first_waits(profile, start),
            queue=self.queue,
            tolerance=tolerance,
        )

    def _first_waits(self, profile: Ints, start: Prediction | None) -> Floats | None:
        """Return the waits to start from: where a site has changed, what it would settle at alone."""
        if start is None or self.policy != "load_aware":
            return None
        wait = start.wait.copy()
        for i in np.flatnonzero(profile != start.profile):
            if self._alone is None or self._alone[0] is not start:
                self._alone = start, Alone(self._coarse, start.profile, start.wait)
            wait[i] = self._alone[1].wait(int(i), int(profile[i]))
        return wait


def _prediction(answer: FieldAnswer, tau: float) -> Prediction:
    problem, rate = answer.problem, answer.site_rate
    served = rate.sum(axis=1)
    prefill = np.zeros(len(served))
    np.divide(
        (rate * problem.prefill_time[problem.profile]).sum(axis=1), served, out=prefill, where=served > 0
    )
    return Prediction(
        coverage=answer.ttft_coverage(tau),
        profile=problem.profile,
        wait=answer.advertised_wait if answer.policy == "load_aware" else answer.mean_wait,
        utilization=answer.utilization,
        arrival_rate=served,
        missed_rate=served * (1.0 - np.nan_to_num(answer.site_coverage(tau), nan=1.0)),
        prefill=prefill,
        occupancy=1.0 / answer.service_rate,
    )
