"""Who serves what on a Poisson network, how far away, and what caches save there, Eqs. (32, 42, 44, 45)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._point import Equilibrium, Policy
from geoedge.theory.association import cost_rule, mean_serving_distance
from geoedge.theory.network import TieredNetwork

__all__ = ["Nodes", "Served"]

FloatArray = NDArray[np.float64]

_PAIRS_AT_ONCE = 4000  # pairs of tiers, summed over types, whose nodes are held at a time


class Nodes(NamedTuple):
    """Nodes over type, serving tier and radio delay [s], and the probability of each."""

    kind: NDArray[np.int64]
    tier: NDArray[np.int64]
    delay: FloatArray
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class Served:
    """Who serves what, and what a request finds there: the part of an answer that no target enters.

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

    def _rule(self, limit: FloatArray | None = None, layer: FloatArray | None = None) -> Iterator[Nodes]:
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
            yield Nodes(kind, tier, rule.delay, weight)

    def _average(self, of_delay: Callable[[FloatArray], FloatArray]) -> float:
        """Return the mean over requests of a function of their radio delay."""
        # no scalar product: the linear algebra library would start threads for it
        return float(sum((nodes.probability * of_delay(nodes.delay)).sum() for nodes in self._rule()))


def _distance(network: TieredNetwork, delay: FloatArray) -> FloatArray:
    """Return the distance [km] of a radio delay [s], the inverse of Eq. (10)."""
    return np.asarray((delay / network.delay_coefficient) ** (1.0 / network.delay_exponent))
