"""How soon the first token comes on a Poisson network, and what caches save, Eqs. (37)–(45)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.answers import first_reached
from geoedge.errors import GeoEdgeError
from geoedge.theory.association import cost_rule, mean_serving_distance
from geoedge.theory.checks import checked_targets, shown
from geoedge.theory.equilibrium import Equilibrium, Policy, advertise, solve_equilibrium
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel, select
from geoedge.theory.queueing import ErlangC

__all__ = ["TheoryAnswer", "evaluate", "solve"]

FloatArray = NDArray[np.float64]

_PAIRS_AT_ONCE = 4000  # pairs of tiers, summed over types, whose nodes are held at a time
_FOREVER = 1e12  # a target [s] that is as good as none
_NEVER_WAITS = 1e-15  # a smaller probability to wait is no boundary layer worth nodes of its own


class _Nodes(NamedTuple):
    """Nodes over type, serving tier and radio delay [s], and the probability of each."""

    kind: NDArray[np.int64]
    tier: NDArray[np.int64]
    delay: FloatArray
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class TheoryAnswer:
    """What theory says of a network under one policy; made by `solve`.

    Requests that overloaded tiers serve are misses: they count in every share, and their wait is infinite.

    Attributes
    ----------
    equilibrium
        Waits and association that everything here follows from.
    """

    equilibrium: Equilibrium

    @property
    def network(self) -> TieredNetwork:
        """The network that was solved."""
        return self.equilibrium.network

    @property
    def policy(self) -> Policy:
        """The routing policy."""
        return self.equilibrium.policy

    @property
    def association(self) -> FloatArray:
        """Probability A_{s,q} that tier s serves type q, Eq. (25), shape (S, Q)."""
        return self.equilibrium.association

    @property
    def profile_share(self) -> FloatArray:
        """Share of all requests that each profile serves, Σ_q p_q A_{s,q}, shape (S,)."""
        return np.asarray(self.association @ self.network.type_probability)

    @property
    def utilization(self) -> FloatArray:
        """Utilisation ρ_s of each tier, Eq. (17), shape (S,)."""
        return self.equilibrium.utilization

    @property
    def mean_utilization(self) -> float:
        """Busy servers over servers, all sites together; beyond capacity all of a site's servers are busy."""
        servers = self.network.tier_density * self.network.concurrency
        return float(servers @ np.minimum(self.utilization, 1.0) / servers.sum())

    @property
    def mean_wait(self) -> FloatArray:
        """Mean wait W̄_s of each tier [s], Eq. (19), shape (S,); infinite where it is overloaded."""
        return self.equilibrium.mean_wait

    @property
    def stable(self) -> bool:
        """Whether every tier that has sites can carry its load."""
        return self.equilibrium.stable

    @property
    def prefill_seconds_per_site(self) -> FloatArray:
        """Prefill that a site does per second, Σ_q λ_{s,q} T_pf [s/s], shape (S,)."""
        network = self.network
        rate = network.request_intensity * self.equilibrium.served_area * network.type_probability
        return np.asarray((rate * network.prefill_time).sum(axis=1))

    @property
    def prefill_overcommitted(self) -> NDArray[np.bool_]:
        """Tiers whose sites would need more than one GPU to prefill, however many servers they have, shape (S,)."""
        return (self.prefill_seconds_per_site > 1.0) & self._present

    @property
    def mean_hit_tokens(self) -> float:
        """Cached prefix tokens of a request where it is served d̄ = Σ p A d, Eq. (44) [token]."""
        weight = self.association * self.network.type_probability
        return float((weight * self.network.hit_tokens).sum())

    @property
    def mean_ttft(self) -> float:
        """Mean time to first token [s], Eq. (42)."""
        return float(sum(self.parts().values()))

    @property
    def p95_ttft(self) -> float:
        """Time within which 95 % of requests have their first token [s]."""
        return self.ttft_quantile(0.95)

    @property
    def serving_distance(self) -> FloatArray:
        """Mean distance R̄_{s,q} given tier and type [km], Eq. (32), shape (S, Q)."""
        network, offset = self.network, self.equilibrium.cost_offset
        return mean_serving_distance(
            network.tier_density, offset, network.delay_coefficient, network.delay_exponent
        )

    @property
    def mean_serving_distance(self) -> float:
        """Mean distance between a request and its site R̄ = Σ p A R̄_{s,q} [km]."""
        network = self.network
        return self._average(lambda delay: _distance(network, delay))

    def parts(self) -> dict[str, float]:
        """Return the mean radio delay, wait and residual prefill of a request [s]; they add up to the mean TTFT."""
        weight = self.association * self.network.type_probability
        wait = np.where(self._present, self.mean_wait, 0.0)
        with np.errstate(invalid="ignore"):
            waited = np.where(self.profile_share > 0.0, self.profile_share * wait, 0.0)
        return {
            "radio": self._average(lambda delay: delay),
            "wait": float(waited.sum()),
            "prefill": float((weight * self.network.prefill_time).sum()),
        }

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

    def offloading_ratio(self, by: str = "tokens") -> float:
        """Return the share of prompt work that caches save, Eqs. (44, 45).

        Parameters
        ----------
        by
            ``"tokens"`` counts prompt tokens, ``"prefill_time"`` the seconds of their prefill.

        Raises
        ------
        GeoEdgeError
            If `by` is neither.
        """
        network = self.network
        if by == "tokens":
            saved, full = network.hit_tokens.astype(np.float64), network.prompt_tokens.astype(np.float64)
        elif by == "prefill_time":
            saved, full = network.full_prefill_time - network.prefill_time, network.full_prefill_time
        else:
            msg = f'offloading_ratio: `by` must be "tokens" or "prefill_time", not {by!r}'
            raise GeoEdgeError(msg)
        work = float(network.type_probability @ full)
        spared = float((self.association * network.type_probability * saved).sum())
        return spared / work if work > 0.0 else 0.0

    @property
    def _present(self) -> NDArray[np.bool_]:
        """Tiers that have sites, shape (S,)."""
        return self.network.tier_density > 0.0

    @cached_property
    def _classes(self) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """Tier, density [1/km²] and cost offsets [s] of each class of sites that are alike."""
        there = np.flatnonzero(self._present)
        return there, self.network.tier_density[there], self.equilibrium.cost_offset[there]

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

    def _rule(self, limit: FloatArray | None = None, layer: FloatArray | None = None) -> Iterator[_Nodes]:
        """Yield the nodes over tiers with sites, a few types at a time, with their probabilities."""
        network, (there, density, offset) = self.network, self._classes
        at_once = max(1, _PAIRS_AT_ONCE // there.size**2)
        for first in range(0, network.types, at_once):
            part = slice(first, first + at_once)
            rule = cost_rule(
                density,
                offset[:, part],
                network.delay_coefficient,
                network.delay_exponent,
                delay_limit=None if limit is None else limit[there, part],
                layer=None if layer is None else layer[there],
            )
            kind, tier = rule.kind + first, there[rule.tier]
            weight = network.type_probability[kind] * density[rule.tier] * rule.weight
            yield _Nodes(kind, tier, rule.delay, weight)

    def _average(self, of_delay: Callable[[FloatArray], FloatArray]) -> float:
        """Return the mean over requests of a function of their radio delay."""
        # no scalar product: the linear algebra library would start threads for it
        return float(sum((nodes.probability * of_delay(nodes.delay)).sum() for nodes in self._rule()))

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

    def _kept(self, nodes: _Nodes, wait: FloatArray) -> FloatArray:
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


def _distance(network: TieredNetwork, delay: FloatArray) -> FloatArray:
    """Return the distance [km] of a radio delay [s], the inverse of Eq. (10)."""
    return np.asarray((delay / network.delay_coefficient) ** (1.0 / network.delay_exponent))
