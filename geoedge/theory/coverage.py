"""How soon the first token comes on a Poisson network, and what caches save, Eqs. (37)–(45)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.answers import first_reached
from geoedge.errors import GeoEdgeError
from geoedge.theory._served import Nodes, Served
from geoedge.theory.checks import checked_targets, shown
from geoedge.theory.equilibrium import Policy, advertise, solve_equilibrium
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel, select
from geoedge.theory.queueing import ErlangC

__all__ = ["TheoryAnswer", "evaluate", "solve"]

FloatArray = NDArray[np.float64]

_FOREVER = 1e12  # a target [s] that is as good as none
_NEVER_WAITS = 1e-15  # a smaller probability to wait is no boundary layer worth nodes of its own


@dataclass(frozen=True, eq=False)
class TheoryAnswer(Served):
    """What theory says of a network under one policy; made by `solve`.

    Requests that overloaded tiers serve are misses: they count in every share, and their wait is infinite.

    Attributes
    ----------
    equilibrium
        Waits and association that everything here follows from.
    """

    @property
    def p95_ttft(self) -> float:
        """Time within which 95 % of requests have their first token [s]."""
        return self.ttft_quantile(0.95)

    def ttft_coverage(self, tau: ArrayLike) -> FloatArray:
        """Return the share of requests with a first token within `tau`, Eq. (39).

        Parameters
        ----------
        tau
            Targets τ₀ of the time to first token [s], any shape.

        Raises
        ------
        GeoEdgeError
            If a target is NaN or no number.
        """
        return self._at_targets("ttft_coverage", tau, self._coverage)

    def queue_free_coverage(self, tau: ArrayLike) -> FloatArray:
        """Return the coverage if nobody waited where they are served now: an upper bound of `ttft_coverage`.

        Parameters
        ----------
        tau
            Targets τ₀ of the time to first token [s], any shape.

        Raises
        ------
        GeoEdgeError
            If a target is NaN or no number.
        """
        return self._at_targets("queue_free_coverage", tau, self._queue_free)

    def planned_wait_bound(self, tau: ArrayLike, kept: float = 0.95) -> FloatArray:
        """Return a lower bound of `ttft_coverage` that a plan may rest on: everybody waits as long as few do.

        With w_s the least wait that a share `kept` of the requests of tier s keeps, P(TTFT ≤ τ) is at least
        P(radio + w_s + T_pf ≤ τ, W_s ≤ w_s): the share whose wait is kept at a target that is shorter by w_s, added
        over tiers. A tier where more than `kept` do not wait at all counts with all of these.

        Parameters
        ----------
        tau
            Targets τ₀ of the time to first token [s], any shape.
        kept
            Share 1 − ε of a tier's requests that wait no longer than planned, in (0, 1).

        Raises
        ------
        GeoEdgeError
            If `kept` lies outside (0, 1), a target is NaN or no number, or loads differ within tiers in a way for which
            no bound is known.
        """
        self._require_bounds("planned_wait_bound")
        if not isinstance(kept, float | np.floating) or not 0.0 < kept < 1.0:
            msg = f"planned_wait_bound: `kept` must lie in (0, 1), not {shown(kept)}"
            raise GeoEdgeError(msg)
        planned = self._planned_waits(kept)
        return self._at_targets("planned_wait_bound", tau, lambda target: self._keeping(target, planned))

    def no_wait_bound(self, tau: ArrayLike) -> FloatArray:
        """Return a lower bound of `ttft_coverage`: the share of requests in time that are served at once.

        Without load it is all of the coverage; what it lacks is owed to requests that wait and may still be in time.

        Parameters
        ----------
        tau
            Targets τ₀ of the time to first token [s], any shape.

        Raises
        ------
        GeoEdgeError
            If a target is NaN or no number, or loads differ within tiers in a way for which no bound is known.
        """
        self._require_bounds("no_wait_bound")
        nobody = np.zeros(self.network.tiers)
        return self._at_targets("no_wait_bound", tau, lambda target: self._keeping(target, nobody))

    def ttft_quantile(self, probability: float) -> float:
        """Return the least time within which this share of requests has its first token [s], Eq. (43).

        Parameters
        ----------
        probability
            Share ζ of requests, in [0, 1].

        Returns
        -------
        float
            Time [s]; infinite where overloaded tiers serve too many, and for all requests.

        Raises
        ------
        GeoEdgeError
            If the probability lies outside [0, 1].
        """
        if not isinstance(probability, int | float | np.number) or not 0.0 <= probability <= 1.0:
            msg = f"ttft_quantile: `probability` must lie in [0, 1], not {shown(probability)}"
            raise GeoEdgeError(msg)
        if probability == 0.0:
            return 0.0
        if probability >= min(1.0, self._served + 1e-12 * self.stable):
            return float("inf")
        return first_reached(self._coverage, probability, float(self.network.full_prefill_time.max()) + 1e-3)

    @property
    def _served(self) -> float:
        """Share of requests whose queue is stable."""
        return float(self.profile_share @ ~self.equilibrium.overloaded)

    @cached_property
    def _tails(self) -> tuple[FloatArray, FloatArray]:
        """Probability to wait, and the rate at which the wait of those who do falls off [1/s], each of shape (S,).

        The latter is one over their mean wait: exact for Erlang's queue, and zero where it is of no account.
        """
        point = self.equilibrium
        at_once = point.queue.wait_cdf(
            0.0, point.site_arrival_rate, point.service_rate, self.network.concurrency
        )
        delayed = 1.0 - np.asarray(at_once)
        counts = (delayed > _NEVER_WAITS) & ~point.overloaded
        return delayed, np.divide(delayed, point.mean_wait, out=np.zeros_like(delayed), where=counts)

    @cached_property
    def _layer(self) -> FloatArray:
        """Mean wait of those who wait [s], shape (S,): how fast a tier's wait distribution rises."""
        _, drain = self._tails
        return np.divide(1.0, drain, out=np.full_like(drain, np.inf), where=drain > 0.0)

    def _at_targets(self, function: str, tau: ArrayLike, coverage: Callable[[float], float]) -> FloatArray:
        """Return a coverage at each of the targets that a function was asked for."""
        targets = checked_targets(function, tau)
        return np.array([coverage(float(t)) for t in targets.ravel()]).reshape(targets.shape)[()]

    def _require_bounds(self, function: str) -> None:
        """Refuse bounds of an answer of another law of load that does not say who waits how long."""
        mine, plain = type(self), TheoryAnswer
        if mine is not plain and (mine._kept is plain._kept or mine._planned_waits is plain._planned_waits):
            msg = (
                f"{function}: of {mine.__name__} no lower bound is known, but the answer must be that of `solve`, "
                "where all sites of a tier carry one load"
            )
            raise GeoEdgeError(msg)

    def _planned_waits(self, kept: float) -> FloatArray:
        """Return the least wait of each tier that this share of its requests keeps [s], shape (S,).

        Infinite at overloaded tiers. An answer whose sites differ in load overrides it, and `_kept`.
        """
        point = self.equilibrium
        waits = point.queue.wait_quantile(
            kept, point.site_arrival_rate, point.service_rate, self.network.concurrency
        )
        return np.where(point.overloaded, np.inf, waits)

    def _kept(self, nodes: Nodes, wait: FloatArray) -> FloatArray:
        """Return the probability that a request at each node waits at most as long as given for its tier.

        Parameters
        ----------
        nodes
            Nodes over type, serving tier and radio delay, n of them.
        wait
            A wait of each tier [s], shape (S,).
        """
        point = self.equilibrium
        kept = point.queue.wait_cdf(
            wait, point.site_arrival_rate, point.service_rate, self.network.concurrency
        )
        return np.where(point.overloaded, 0.0, kept)[nodes.tier]

    def _keeping(self, tau: float, wait: FloatArray) -> float:
        """Return the share of requests that wait at most so long at their tier, and would be in time if they did."""
        limit, ends = None, np.isfinite(wait)
        if tau != np.inf:
            limit = np.where(ends[:, None], tau - wait[:, None] - self.network.prefill_time, 0.0)
        found = 0.0
        for nodes in self._rule(limit):
            # whoever plans for a wait without end is never in time
            kept = np.where(ends[nodes.tier], self._kept(nodes, wait), 0.0)
            found += float((nodes.probability * kept).sum())
        return min(found, 1.0)

    def _coverage(self, tau: float) -> float:
        """Return Eq. (39) at one target."""
        if tau == np.inf:
            return self._served
        return min(float(self._covered(tau).sum()), 1.0)

    def coverage_by_type(self, tau: float) -> FloatArray:
        """Return the TTFT coverage of each request type, NaN for a type that nobody asks for, shape (Q,).

        Parameters
        ----------
        tau
            Target τ₀ of the time to first token [s].

        Raises
        ------
        GeoEdgeError
            If it is not one number, or NaN.
        """
        target = checked_targets("coverage_by_type", tau)
        if target.ndim:
            msg = f"coverage_by_type: `tau` is {shown(tau)}, but must be one target in seconds"
            raise GeoEdgeError(msg)
        asked = self.network.type_probability
        found = np.full(self.network.types, np.nan)
        np.divide(self._covered(min(float(target), _FOREVER)), asked, out=found, where=asked > 0)
        return np.asarray(np.minimum(found, 1.0))

    def _covered(self, tau: float) -> FloatArray:
        """Return the share of all requests that are of each type and in time, shape (Q,)."""
        point, network = self.equilibrium, self.network
        limit = np.where(point.overloaded[:, None], 0.0, tau - network.prefill_time)
        covered = np.zeros(network.types)
        for nodes in self._rule(limit, self._layer):
            spare = limit[nodes.tier, nodes.kind] - nodes.delay
            in_time = self._waits_at_most(nodes.tier, spare)
            covered += np.bincount(nodes.kind, nodes.probability * in_time, network.types)
        return covered

    def _waits_at_most(self, tier: NDArray[np.int64], time: FloatArray) -> FloatArray:
        """Return F_W of each of these tiers at its time, Eq. (20)."""
        point = self.equilibrium
        if type(point.queue) is ErlangC:
            delayed, drain = self._tails
            return np.asarray(1.0 - delayed[tier] * np.exp(-drain[tier] * np.maximum(time, 0.0)))
        in_time = np.zeros(len(tier))
        for s in np.unique(tier):
            mine = tier == s
            in_time[mine] = select(point.queue, s).wait_cdf(
                time[mine], point.site_arrival_rate[s], point.service_rate[s], self.network.concurrency[s]
            )
        return in_time

    def _queue_free(self, tau: float) -> float:
        """Return the coverage at one target if F_W were one."""
        if tau == np.inf:
            return 1.0
        spare = tau - self.network.prefill_time
        return min(float(sum(nodes.probability.sum() for nodes in self._rule(spare))), 1.0)


def solve(
    network: TieredNetwork, policy: Policy = "load_aware", *, queue: WaitModel | QueueOfMix | None = None
) -> TheoryAnswer:
    """Solve a network under a policy.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    policy
        ``"load_aware"``, ``"prefix_only"`` or ``"nearest"``.
    queue
        Wait model, or a rule that makes one of the mixture that each tier serves; `ErlangC` if omitted.

    Raises
    ------
    GeoEdgeError
        If the policy is unknown, or the queue does not fit.

    Examples
    --------
    >>> net = TieredNetwork([1.0], [2], [1.0], [[0.1]], [[1.0]], 0.01, 0.5, 2.0, [[0]], [1024], [0.1])
    >>> round(solve(net).parts()["radio"], 6)  # one tier: ξ/(πλ) at α = 2
    0.159155
    """
    return TheoryAnswer(solve_equilibrium(network, policy, queue=queue))


def evaluate(
    network: TieredNetwork, waits: ArrayLike, *, queue: WaitModel | QueueOfMix | None = None
) -> TheoryAnswer:
    """Return what load-aware routing makes of waits that the tiers advertise; nothing is solved.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    waits
        Advertised waits [s], shape (S,), such as the iterates of `damped_iteration`.
    queue
        As in `solve`.

    Raises
    ------
    GeoEdgeError
        If the waits or the queue do not fit.
    """
    return TheoryAnswer(advertise(network, waits, queue=queue))
