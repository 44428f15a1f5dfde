"""Who serves what on a map, what that makes of every site, and what caches save there."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.policies import POLICIES
from geoedge.theory.protocols import QueueOfMix, WaitModel
from geoedge.theory.queueing import ErlangC, erlang_c

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.field.problem import FieldProblem

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["ServedField"]


@dataclass(frozen=True, eq=False)
class _Entries:
    """One row per place, type and serving site."""

    owner: Ints
    place: Ints
    type: Ints
    site: Ints
    share: Floats
    radio: Floats


@dataclass(frozen=True, eq=False)
class ServedField:
    """Association on a map, with every site's own queue: the part of an answer that no target enters.

    Of a ring around the city, and of every parameter, `FieldAnswer` tells.
    """

    problem: FieldProblem
    policy: str
    scope: str
    advertised_wait: Floats
    residual: float
    iterations: int
    converged: bool = True
    solved: bool = True
    queue: WaitModel | QueueOfMix = field(default_factory=ErlangC)

    # ------------------------------------------------------------------ who serves what

    @cached_property
    def offset(self) -> Floats:
        """Cost of a site beyond the radio delay [s], shape (n, Q)."""
        return POLICIES[self.policy](self._prefill, self.advertised_wait)

    @cached_property
    def _prefill(self) -> Floats:
        """Residual prefill by site and type [s], shape (n, Q)."""
        return self.problem.prefill_time[self.problem.profile]

    @cached_property
    def entries(self) -> _Entries:
        """Every place, type and serving site: indices, share and radio delay [s], as columns."""
        from geoedge.field.cells import shares

        geometry, n_types = self.problem.geometry, self.problem.n_types
        owner, row, site, share, radio = shares(geometry.blocks, geometry.span, self.offset)
        return _Entries(owner, row // n_types, row % n_types, site, share, radio)

    @property
    def owner(self) -> Ints:
        """The cheapest site of every place and type, shape (n_points, Q)."""
        return self.entries.owner

    @cached_property
    def _rate(self) -> Floats:
        """Requests of every entry [1/s]."""
        entries = self.entries
        rate: Floats = entries.share * self.problem.rate[entries.place, entries.type]
        return rate

    @cached_property
    def _counted(self) -> Floats:
        """Requests of every entry that count in averages [1/s]."""
        counted = self.problem.counted
        return self._rate if counted is None else np.where(counted[self.entries.place], self._rate, 0.0)

    def _by_site(self, by_entry: Floats) -> Floats:
        """Return the sums of entries by site and type, shape (n, Q)."""
        shape = self.problem.n_sites, self.problem.n_types
        index = self.entries.site * shape[1] + self.entries.type
        return np.asarray(np.bincount(index, by_entry, shape[0] * shape[1]).reshape(shape), dtype=np.float64)

    @cached_property
    def site_rate(self) -> Floats:
        """Requests that every site serves, by type [1/s], shape (n, Q)."""
        return self._by_site(self._rate)

    @cached_property
    def _counted_site_rate(self) -> Floats:
        """Requests that count in averages, by site and type [1/s], shape (n, Q)."""
        return self.site_rate if self.problem.counted is None else self._by_site(self._counted)

    # ------------------------------------------------------------------ sites

    @property
    def _own(self) -> slice:
        """The city's own sites."""
        return slice(self.problem.own_sites)

    @property
    def site_arrival_rate(self) -> Floats:
        """Requests that every site serves, Eq. (15) [1/s], shape (n,)."""
        rate: Floats = self.site_rate.sum(axis=1)
        return rate

    @cached_property
    def served_mix(self) -> Floats:
        """Mixture ω of the types at every site, Eq. (16), shape (n, Q); the demand's own where nobody comes."""
        rate, total = self.site_rate, self.site_arrival_rate[:, None]
        demand = self.problem.rate.sum(axis=0)
        idle = demand / demand.sum() if demand.sum() > 0 else np.full(demand.size, 1.0 / demand.size)
        mix: Floats = np.where(total > 0, rate / np.where(total > 0, total, 1.0), idle)
        return mix

    @cached_property
    def service_rate(self) -> Floats:
        """μ of one server, Eq. (17) [1/s], shape (n,)."""
        occupancy = self.problem.occupancy_time[self.problem.profile]
        rate: Floats = 1.0 / (self.served_mix * occupancy).sum(axis=1)
        return rate

    @cached_property
    def utilization(self) -> Floats:
        """ρ of every site, Eq. (17), shape (n,); 1 or more is beyond capacity."""
        rho: Floats = self.site_arrival_rate / (self.problem.servers * self.service_rate)
        return rho

    @property
    def mean_utilization(self) -> float:
        """Busy servers over servers, all own sites together; beyond capacity all of a site's servers are busy."""
        servers = self.problem.servers[self._own]
        return float(np.minimum(self.utilization[self._own], 1.0) @ servers / servers.sum())

    @cached_property
    def site_queue(self) -> WaitModel:
        """Wait model of the sites, at what they serve."""
        if not isinstance(self.queue, QueueOfMix):
            return self.queue
        return self.queue.for_mix(
            self.served_mix, self._prefill, self.problem.occupancy_time[self.problem.profile]
        )

    @cached_property
    def _erlang(self) -> tuple[Floats, Floats]:
        """Probability of waiting, and rate cμ − λ at which the tail of the wait falls [1/s], each of shape (n,)."""
        servers = self.problem.servers
        load = self.site_arrival_rate / self.service_rate
        room = np.maximum(servers - load, 0.0)
        return erlang_c(load, servers), room * self.service_rate

    @cached_property
    def mean_wait(self) -> Floats:
        """W̄ that requests suffer at every site, Eq. (19) [s], shape (n,); ``inf`` beyond capacity."""
        if type(self.site_queue) is not ErlangC:
            return self.site_queue.mean_wait(self.site_arrival_rate, self.service_rate, self.problem.servers)
        waiting, fall = self._erlang
        return np.where(fall > 0, waiting / np.where(fall > 0, fall, 1.0), np.inf)

    @property
    def unstable_sites(self) -> Ints:
        """Own sites whose utilisation is 1 or more."""
        return np.flatnonzero(self.utilization[self._own] >= 1.0)

    @property
    def stable(self) -> bool:
        """Whether every own site is within capacity."""
        return self.unstable_sites.size == 0

    @property
    def unstable_share(self) -> float:
        """Share of requests that go to sites beyond capacity, of a ring as well; they are misses."""
        return self._mean(self._at_sites(self.utilization >= 1.0))

    @cached_property
    def prefill_load(self) -> Floats:
        """Prefill seconds per second of every site, shape (n,); above 1 one GPU cannot do it."""
        load: Floats = (self.site_rate * self._prefill).sum(axis=1)
        return load

    # ------------------------------------------------------------------ means over requests

    def _at_sites(self, values: NDArray[Any]) -> Floats:
        """Return a value of sites for every entry."""
        return np.asarray(values, dtype=np.float64)[self.entries.site]

    def _mean(self, by_entry: Floats) -> float:
        """Return the mean over requests that count; NaN if there are none."""
        total = self._counted.sum()
        return float((self._counted * by_entry).sum() / total) if total > 0 else float("nan")

    # ------------------------------------------------------------------ association

    @cached_property
    def association(self) -> Floats:
        """A_{s,q}, share of type-q requests that each profile serves, Eq. (25), shape (S, Q); NaN for absent types."""
        problem = self.problem
        served = np.zeros(problem.prefill_time.shape)
        np.add.at(served, problem.profile, self._counted_site_rate)
        total = served.sum(axis=0)
        association: Floats = np.where(total > 0, served / np.where(total > 0, total, 1.0), np.nan)
        return association

    @property
    def profile_share(self) -> Floats:
        """Share of all requests that each profile serves, shape (S,)."""
        served = np.bincount(
            self.problem.profile, self._counted_site_rate.sum(axis=1), minlength=len(self.problem.concurrency)
        )
        return served / served.sum() if served.sum() > 0 else np.full(len(served), np.nan)

    def offloading_ratio(self, by: str = "tokens") -> float:
        """Return the share of the prompt work that caches save, Eq. (45).

        Parameters
        ----------
        by
            ``"tokens"`` or ``"prefill_time"``.

        Raises
        ------
        GeoEdgeError
            If `by` is neither.
        """
        problem = self.problem
        if by == "tokens":
            saved, full = problem.hit_tokens, problem.prompt_tokens
        elif by == "prefill_time":
            saved, full = problem.full_prefill_time - problem.prefill_time, problem.full_prefill_time
        else:
            msg = f'`by` must be "tokens" or "prefill_time", not {by!r}'
            raise GeoEdgeError(msg)
        rate = self._counted_site_rate
        work = float(rate.sum(axis=0) @ full)
        return float((rate * saved[problem.profile]).sum()) / work if work > 0 else float("nan")

    @property
    def mean_serving_distance(self) -> float:
        """Mean distance between a request and its site, Eq. (32) [km]."""
        return self._mean(self.serving_distance)

    @cached_property
    def serving_distance(self) -> Floats:
        """Distance of every entry, along the streets where radio follows them [km]."""
        return self.problem.geometry.way_km(self.entries.place, self.entries.site)
