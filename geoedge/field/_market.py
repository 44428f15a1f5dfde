"""How demand and queues answer advertised waits: what comes to each site, and the load that its wait means."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.field.problem import FieldProblem
    from geoedge.field.queues import Curve
    from geoedge.theory.protocols import QueueOfMix, WaitModel

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Market", "Slopes", "State"]

COARSE_PLACES = 4
"""Places for each site on which wide tie spans are gone through."""
LEVEL_STEPS = 20
"""Bisections of the common wait to start from."""
NEGLIGIBLE_WAIT_S = 1e-9
"""Waits below this are equal, whatever the load they mean."""


@dataclass(frozen=True, eq=False)
class Slopes:
    """How G groups' rates and work change with their waits, as the entries of two sparse matrices.

    Parameters
    ----------
    row, column
        Group that changes, and group whose wait changes, shape (pairs,).
    rate, work
        Derivatives of the mean rate [1/s²] and of the mean work [1/s], shape (pairs,).
    """

    row: Ints
    column: Ints
    rate: Floats
    work: Floats

    def times(self, entries: Floats, vector: Floats) -> Floats:
        """Return the product of a matrix of these entries with a vector, shape (G,)."""
        product: Floats = np.bincount(self.row, entries * vector[self.column], len(vector)).astype(np.float64)
        return product

    def diagonal(self, entries: Floats, size: int) -> Floats:
        """Return the diagonal of a matrix of these entries, shape (G,)."""
        on = self.row == self.column
        diagonal: Floats = np.bincount(self.row[on], entries[on], size).astype(np.float64)
        return diagonal


@dataclass(frozen=True, eq=False)
class State:
    """What waits bring about: G waits, their groups' mean rate, work and occupancy, and the load they mean."""

    wait: Floats
    rate: Floats
    work: Floats
    occupancy: Floats
    load: Floats
    servers: Ints
    slopes: Slopes
    curve: Curve

    @property
    def miss(self) -> Floats:
        """Work that comes less the load that the wait means, per server, shape (G,)."""
        suffered = self.curve.wait(self.work, self.servers, self.occupancy)[0]
        settled = np.maximum(suffered, self.wait) < NEGLIGIBLE_WAIT_S
        return np.where(settled, 0.0, (self.work - self.load) / self.servers)

    @property
    def force(self) -> Floats:
        """The miss in requests per second, which drives the waits, shape (G,)."""
        force: Floats = self.miss * self.servers / self.occupancy
        return force

    @property
    def residual(self) -> float:
        """Largest miss."""
        return float(np.abs(self.miss).max())


class Market:
    """The response of demand and queues to advertised waits.

    Parameters
    ----------
    problem
        Demand, sites, workload.
    scope
        Who advertises a wait, ``"site"`` or ``"tier"``.
    queue
        Wait model of the sites, or a rule that makes one of what they serve.
    """

    def __init__(self, problem: FieldProblem, scope: str, queue: WaitModel | QueueOfMix) -> None:
        from geoedge.theory.protocols import QueueOfMix, select

        self.problem = problem
        self._scope, self._queue_given = scope, queue
        self.rate = problem.rate
        self.span = problem.geometry.span
        self.prefill = problem.prefill_time[problem.profile]
        self.occupancy = problem.occupancy_time[problem.profile]
        if scope == "site":
            self.group = np.arange(problem.n_sites)
        else:
            self.group = np.unique(problem.profile, return_inverse=True)[1].reshape(-1)
        self.members = np.bincount(self.group)
        self.servers = np.zeros(len(self.members), dtype=np.int64)
        self.servers[self.group] = problem.servers
        total = problem.rate.sum(axis=0)
        mix = total / total.sum() if total.sum() > 0 else np.full(problem.n_types, 1.0 / problem.n_types)
        self.idle_mix, self.idle_occupancy = mix, self.mean(self.occupancy @ mix)
        first = np.unique(self.group, return_index=True)[1]
        self._times = self.prefill[first], self.occupancy[first]
        self._queue = queue if isinstance(queue, QueueOfMix) else select(queue, first)

    @property
    def least_span(self) -> float:
        """Least tie span of a place [s]."""
        return float(self.span.min())

    def widened(self, span: float) -> Market:
        """Return the same market with tie spans of at least this [s]."""
        if span <= self.least_span:
            return self
        wide = copy(self)
        wide.span = np.maximum(self.span, span)
        return wide

    def level(self) -> Floats:
        """Return one wait for all groups at which the loads that it means add up to the work of all requests, shape (G,)."""
        total = self.rate.sum(axis=0)
        work = float(total @ self.occupancy.mean(axis=0))
        curve, guess = self.curve(np.tile(total, (self.problem.n_sites, 1))), np.zeros(len(self.servers))

        def surplus(wait: float) -> float:
            every = np.full(len(self.servers), wait)
            return float(self.members @ curve.load(every, self.servers, self.idle_occupancy, guess)) - work

        if work == 0.0:
            return np.zeros(len(self.servers))
        low, high = 0.0, 1.0
        while surplus(high) < 0.0:
            high *= 4.0
        for _ in range(LEVEL_STEPS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if surplus(middle) < 0.0 else (low, middle)
        return np.full(len(self.servers), high)

    def coarsened(self) -> Market:
        """Return the market on few places, each group of neighbours at the one where most is asked."""
        from geoedge.field.problem import merged

        few = COARSE_PLACES * self.problem.n_sites
        if len(self.rate) <= 2 * few:
            return self
        return Market(merged(self.problem, few), self._scope, self._queue_given)

    def mean(self, by_site: Floats) -> Floats:
        """Return the mean over every group's sites, shape (G,)."""
        return np.bincount(self.group, by_site) / self.members

    def respond(self, wait: Floats) -> State:
        """Return what comes when these waits are advertised [s], shape (G,), and what load they mean."""
        from geoedge.field.cells import loads

        groups = len(self.members)
        site_rate, pair, rate_slope, work_slope = loads(
            self.problem.geometry.blocks,
            self.rate,
            self.span,
            self.prefill + wait[self.group, None],
            self.occupancy,
            self.group,
            groups,
            True,
        )
        row, column = np.divmod(pair, groups)
        slopes = Slopes(row, column, rate_slope / self.members[row], work_slope / self.members[row])
        rate = self.mean(site_rate.sum(axis=1))
        work = self.mean((site_rate * self.occupancy).sum(axis=1))
        busy = rate > 0
        occupancy = np.where(busy, work / np.where(busy, rate, 1.0), self.idle_occupancy)
        curve = self.curve(site_rate)
        load = curve.load(wait, self.servers, occupancy, work)
        return State(wait, rate, work, occupancy, load, self.servers, slopes, curve)

    def curve(self, site_rate: Floats) -> Curve:
        """Return the groups' queue curves when sites serve types at these rates [1/s], shape (n, Q)."""
        from geoedge.field.queues import curve_of
        from geoedge.theory.protocols import QueueOfMix

        if not isinstance(self._queue, QueueOfMix):
            return curve_of(self._queue)
        rate = np.stack([np.bincount(self.group, column) for column in site_rate.T], axis=1)
        total = rate.sum(axis=1, keepdims=True)
        mix = np.where(total > 0, rate / np.where(total > 0, total, 1.0), self.idle_mix)
        return curve_of(self._queue.for_mix(mix, *self._times))
