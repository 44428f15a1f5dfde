"""What one Poisson layout tells: the field's answers, and what theory knows of such layouts exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.field.torus import torus_problem
from geoedge.processes import in_processes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.field.answer import FieldAnswer
    from geoedge.field.problem import FieldProblem
    from geoedge.theory import TheoryAnswer, WaitModel
    from geoedge.theory.protocols import QueueOfMix

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["LayoutReader", "Reading", "read_layouts"]

LAYOUTS_A_TASK = 12
"""Layouts that a process is handed at a time."""


class Reading(NamedTuple):
    """One layout's part of the arrays of an `EnsembleAnswer`, under the same names."""

    layout_coverage: Floats
    layout_unstable_share: float
    layout_share: Floats
    layout_wait_share: Floats
    layout_advertised: Floats
    queue_free: Floats
    controls: Floats
    residual: float


@dataclass(frozen=True, eq=False)
class LayoutReader:
    """Draws layouts and reads them.

    Parameters
    ----------
    theory
        Theory's answer for the network and policy.
    own_waits
        Whether every site advertises a wait of its own, which must be solved for.
    targets
        Targets τ of the time to first token [s], shape (T,).
    side_km
        Side of the torus [km].
    places
        About how many places demand is gathered at.
    queue
        Wait model of every tier's sites; M/M/c if omitted.
    """

    theory: TheoryAnswer
    own_waits: bool
    targets: Floats
    side_km: float
    places: int
    queue: WaitModel | QueueOfMix | None = None

    @cached_property
    def means(self) -> tuple[Floats, Floats]:
        """Exact means of the coverage without queues, shape (T,), and of the other controls, shape (K,)."""
        count = self.theory.network.tier_density * self.side_km**2
        radio = [self.theory.parts()["radio"]]
        return (
            np.asarray(self.theory.queue_free_coverage(self.targets)),
            np.concatenate((count, self.theory.profile_share, radio)),
        )

    @cached_property
    def kept(self) -> Ints:
        """Controls that are not constant or implied by the others, the most telling first."""
        there = np.flatnonzero(self.theory.network.tier_density > 0)
        tiers = self.theory.network.tiers
        return np.concatenate((there, tiers + there[1:], [2 * tiers]))

    def solve(self, problem: FieldProblem) -> FieldAnswer:
        """Return the field on a layout: solved for, or under the waits of an infinite network."""
        from geoedge.field.equilibrium import evaluate, solve_field
        from geoedge.theory.protocols import QueueOfMix, select

        point, queue = self.theory.equilibrium, self.queue
        waits = point.advertised_wait[problem.profile]
        if queue is not None and not isinstance(queue, QueueOfMix):
            queue = select(queue, problem.profile)
        if self.own_waits:
            return solve_field(problem, waits=waits, queue=queue)
        return evaluate(problem, waits, policy=point.policy, queue=queue)

    def read(self, rng: np.random.Generator) -> Reading:
        """Draw a layout and take everything from it that is averaged."""
        tiers = self.theory.network.tiers
        problem = torus_problem(
            self.theory.network, self.side_km, rng, places=self.places, extended=self.own_waits
        )
        answer = self.solve(problem)
        if not answer.converged:
            msg = (
                f"torus_ensemble: no equilibrium found on a layout of {problem.n_sites} sites, residual "
                f"{answer.residual:.1e} in utilisation; take larger tori by `sites`, or less demand"
            )
            raise GeoEdgeError(msg)
        rate = answer.site_arrival_rate
        suffered = rate * np.where(rate > 0, answer.mean_wait, 0.0)
        count = np.bincount(problem.profile, minlength=tiers)
        advertised = np.bincount(problem.profile, answer.advertised_wait, tiers)
        return Reading(
            np.array([answer.ttft_coverage(float(tau)) for tau in self.targets]),
            answer.unstable_share,
            answer.profile_share,
            np.bincount(problem.profile, suffered, tiers) / rate.sum(),
            np.where(count > 0, advertised / np.maximum(count, 1), np.nan),
            *self._controls(problem, count),
            answer.residual,
        )

    def _controls(self, problem: FieldProblem, count: Ints) -> tuple[Floats, Floats]:
        """Return what theory knows exactly, on this layout less its mean: requests go where theory's waits send them."""
        from geoedge.field.cells import shares

        geometry, profile = problem.geometry, problem.profile
        offset = np.ascontiguousarray(self.theory.equilibrium.cost_offset[profile])
        nobody_shares = np.zeros(len(geometry.point_xy))
        _, row, site, share, radio = shares(geometry.blocks, nobody_shares, offset)
        kind = row % problem.n_types
        weight = share * problem.rate[row // problem.n_types, kind]
        weight /= weight.sum()
        before = radio + problem.prefill_time[profile[site], kind]
        served = np.bincount(profile[site], weight, self.theory.network.tiers)
        means = self.means
        free = np.array([weight[before <= tau].sum() for tau in self.targets])
        values = np.concatenate((count, served, [(weight * radio).sum()]))
        return free - means[0], (values - means[1])[self.kept]


def read_layouts(reader: LayoutReader, streams: Sequence[np.random.Generator], workers: int) -> list[Reading]:
    """Read one layout from every stream, in order, here or in other processes."""
    if workers == 1:
        return _read_here(reader, streams)
    parts = [streams[k : k + LAYOUTS_A_TASK] for k in range(0, len(streams), LAYOUTS_A_TASK)]
    done = in_processes(_read_here, [(reader, part) for part in parts], workers)
    return [reading for part in done for reading in part]


def _read_here(reader: LayoutReader, streams: Sequence[np.random.Generator]) -> list[Reading]:
    return [reader.read(stream) for stream in streams]
