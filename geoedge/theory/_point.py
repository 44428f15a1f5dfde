"""A point of waits and association, solved or given: what it says of every tier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.policies import CLOSED_FORMS, ClosedForm
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import WaitModel

__all__ = ["POLICIES", "Equilibrium", "Policy"]

FloatArray = NDArray[np.float64]
Policy = ClosedForm
"""Name of a routing policy that theory solves."""
POLICIES: tuple[Policy, ...] = CLOSED_FORMS
"""Their names."""


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Who serves what, and how long they wait, in a `TieredNetwork` under one policy.

    Attributes
    ----------
    network, policy, queue
        What was solved.
    advertised_wait
        Waits that enter the choice [s], shape (S,); zero unless the policy is load-aware. Without a stable point
        they are the differences that fill all tiers alike, the least being zero.
    mean_wait
        Mean waits W̄_s that requests suffer [s], shape (S,); infinite at overloaded tiers.
    cost_offset
        β_{s,q} of the choice [s], shape (S, Q).
    served_area
        A/λ [km²], shape (S, Q).
    site_arrival_rate
        Requests per site λ^q_s, Eq. (15) [1/s], shape (S,); for an empty tier those of a lone site.
    service_rate
        Service rate μ_s of one server, Eq. (16) [1/s], shape (S,).
    utilization
        ρ_s, Eq. (17), shape (S,).
    critical_intensity
        Where the solver had to find it, the intensity from which no load-aware point is stable [1/(s km²)].
    critical_exact
        Whether that is where all tiers fill together; if not, it is the necessary bound.
    residual_s
        Largest difference between an advertised wait and the wait that it causes [s]; infinite without a stable
        point, zero for policies that look at no wait.
    residual_utilization
        The same as a difference of utilisations.
    iterations
        Newton steps taken, on all paths together.
    """

    network: TieredNetwork
    policy: Policy
    queue: WaitModel
    advertised_wait: FloatArray
    mean_wait: FloatArray
    cost_offset: FloatArray
    served_area: FloatArray
    site_arrival_rate: FloatArray
    service_rate: FloatArray
    utilization: FloatArray
    critical_intensity: float | None
    critical_exact: bool
    residual_s: float
    residual_utilization: float
    iterations: int

    @property
    def association(self) -> FloatArray:
        """Probability A_{s,q} that tier s serves a request of type q, shape (S, Q)."""
        return self.network.tier_density[:, None] * self.served_area

    @property
    def served_mix(self) -> FloatArray:
        """Mixture ω_{s,q} of the types at each tier, Eq. (16), shape (S, Q); all requests' where nobody is served."""
        part = self.served_area * self.network.type_probability
        total = part.sum(axis=1, keepdims=True)
        everyone = np.tile(self.network.type_probability, (self.network.tiers, 1))
        return np.asarray(np.divide(part, total, out=everyone, where=total > 0.0))

    @property
    def overloaded(self) -> NDArray[np.bool_]:
        """Tiers to blame: those with sites whose utilisation reaches one, shape (S,)."""
        return (self.utilization >= 1.0) & (self.network.tier_density > 0.0)

    @property
    def beyond_capacity(self) -> bool:
        """Whether the policy is load-aware and no stable point exists, so that every tier fills up."""
        return (
            self.critical_intensity is not None and self.network.request_intensity >= self.critical_intensity
        )

    def verdict(self, names: Sequence[str] | None = None) -> str:
        """Return one sentence on whether the network carries its load and, if not, which tiers are to blame.

        Parameters
        ----------
        names
            What to call the tiers, length S; "tier 0" and so on if omitted.
        """
        called = [f"tier {s}" for s in range(self.network.tiers)] if names is None else names
        asked = f"request intensity {self.network.request_intensity:.4g} /(s km²)"
        if self.beyond_capacity:
            why = "at which all tiers are full together" if self.critical_exact else "which nothing can carry"
            return f"no stable point: {asked} is not below {self.critical_intensity:.4g} /(s km²), {why}"
        if not self.converged:
            miss = f"{self.residual_utilization:.1e} in utilisation"
            return f"no point found: the best differs from what it causes by {miss}, at {asked}"
        if self.stable:
            fullest = int(np.argmax(np.where(self.network.tier_density > 0.0, self.utilization, -1.0)))
            return f"stable: the fullest tier is {called[fullest]}, with utilisation {self.utilization[fullest]:.3f}"
        full = np.flatnonzero(self.overloaded)
        blamed = ", ".join(f"{called[s]} (utilisation {self.utilization[s]:.3f})" for s in full.tolist())
        return f"no stable point under {self.policy}: overloaded at {asked}: {blamed}"

    @property
    def converged(self) -> bool:
        """Whether the fixed point was found, or found not to exist."""
        return self.residual_utilization <= 1e-6 or self.beyond_capacity

    @property
    def stable(self) -> bool:
        """Whether every tier that has sites can carry its load."""
        return not bool(self.overloaded.any())
