"""What the tier mean leaves out: the load of the site that serves you.

Eq. (39) takes the wait at a tier's mean load. But sites of a tier differ, because their cells do, and a large cell
serves more requests: the load that a request meets is size-biased. Three laws are offered.

``"mean_field"``
    Eq. (39) as it stands: every site carries its tier's mean load.

``"per_tier"``
    All sites of a tier advertise one wait, the tier's mean-field wait. Choices are those of Theorem 1, and each site
    is a queue at the rate of its own cell. A request of type q that tier s serves at distance r meets the load a with

        P(a ∈ da | s, q, r) ∝ E[share of the ring of radius r that lies in C_q ; a ∈ da],

    which a fixed sample of cells gives (`cells`); distance and load depend on each other through it. Then

        P_cov(τ) = Σ_q p_q Σ_s ∫ f_sel(r) ∫ F_W(τ − ξr^α − T_pf; a) P(da | s, q, r) dr.

    Requests at sites with a ≥ c are misses, and the stationary mean TTFT is infinite as soon as there are any.
    Strictly there are some at every load, as cells have no largest size; here, if one of the sampled cells is.

``"per_site"``
    Each site advertises its own equilibrium wait, and so loads even out. Call X a site's luck: its load over the
    tier's mean ā if all waits of a tier were equal. A lone site that raises its wait by w keeps the share φ(w) of
    its load (association of a tier without density). Its load and wait must agree,

        a = X ā φ(u (W − W_ref)),    W = W̄(a),    W_ref such that E[a] = ā.

    With u = 1 neighbours stand still; but they are lucky or not together, since a cell is large where sites are
    sparse, and follow each other's waits. To first order, for waves of wavenumber k over the plane, luck δX causes
    δa = δX/(1 + β u_k), with the feedback β = −φ' dW̄/d ln a and u_k → 0 for long waves, along which neighbours rise
    alike. The power of luck over u is taken as uniform on [0, κ]: then Var a = Var X/(1 + κβ), long waves govern
    heavy loads, and κ = 0.6 is measured. Two nodes of a Gauss rule on it stand for a regional and a local half of
    ln X; u is what gives the same variance, and X is drawn together as either half is damped more or less than that.
    In a network of several tiers only those rivals follow whose waits vary as much: with w_t the part of a site's
    competition that tier t is, u_k becomes 1 − (1 − u_k) Σ_t w_t min(1, σ(W_t)/σ(W_s)). Offsets u (W − W_ref) also
    make requests travel farther: each tier is split by them into classes that would serve equal shares of it under
    equal waits. This is a closure, not a theorem. It tells too little of how far requests travel together along long
    waves: near capacity, and at targets that leave only a short way, its coverage is too high by up to 0.1 in a
    network of one tier. Its errors stand in tests/validation/test_heterogeneity.py.

Prefix-only and nearest routing look at no wait, so that for them ``"per_site"`` is ``"per_tier"``.

A queue that depends on the mixture of types is that of the tier's mean mixture, and so is a site's mean occupancy.

Cost: for 3 tiers and 2 types about 0.15 s of one core per tier and 0.35 s per site, then 3 ms per target; 10 × 10 take
0.4 s and 1.5 s, 50 × 50 1 s and 10 s. From 13 tiers × types on fewer cells are drawn, down to 64 per tier, and from
20 on their variance is the sample's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._evening import even_out
from geoedge.theory._loads import TierLaw, tier_law
from geoedge.theory.association import association_per_density
from geoedge.theory.cells import cell_moments, sample_cells
from geoedge.theory.coverage import TheoryAnswer, solve
from geoedge.theory.equilibrium import Equilibrium, Policy
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel, select

__all__ = ["LAWS", "Law", "SiteLoadAnswer", "cell_moments", "solve_law"]

FloatArray = NDArray[np.float64]
Law = Literal["mean_field", "per_tier", "per_site"]
LAWS: tuple[Law, ...] = get_args(Law)

_CLASSES = 6  # classes of a tier by offset
_CLASS_LIMIT = 60  # classes in all, at which two per tier are left
_RADII, _TIMES = (
    72,
    32,
)  # points over distance and over remaining time at which a mixed wait distribution is held


@dataclass(frozen=True, eq=False)
class SiteLoadAnswer(TheoryAnswer):
    """What theory says when sites of a tier differ in load; made by `solve_law`.

    Attributes
    ----------
    equilibrium
        The point at the waits that tiers advertise, or under ``"per_site"`` at those that neighbours see.
    law
        ``"per_tier"`` or ``"per_site"``.
    tiers
        The law of each tier that has sites.
    """

    law: Law
    tiers: dict[int, TierLaw]

    @cached_property
    def _classes(self) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """Tier, density [1/km²] and cost offsets [s] of each class of sites that are alike."""
        tier = np.concatenate([np.full(law.apart.size, s) for s, law in self.tiers.items()])
        apart = np.concatenate([law.apart for law in self.tiers.values()])
        density = self.network.tier_density[tier] / np.bincount(tier)[tier]
        return tier, density, self.equilibrium.cost_offset[tier] + apart[:, None]

    @cached_property
    def association(self) -> FloatArray:
        """Probability A_{s,q} that tier s serves type q, shape (S, Q)."""
        tier, density, offset = self._classes
        network = self.network
        area = association_per_density(density, offset, network.delay_coefficient, network.delay_exponent)
        found = np.zeros((network.tiers, network.types))
        np.add.at(found, tier, density[:, None] * area)
        return found

    @property
    def mean_wait(self) -> FloatArray:
        """Mean wait of each tier's requests [s], shape (S,); infinite where some meet an overloaded site."""
        found = np.array(self.equilibrium.mean_wait)
        for s, law in self.tiers.items():
            found[s] = law.mean_wait
        return found

    @property
    def mean_utilization(self) -> float:
        """Busy servers over servers, all sites together; beyond capacity all of a site's servers are busy."""
        density, servers = self.network.tier_density, self.network.concurrency
        busy = sum(density[s] * law.busy for s, law in self.tiers.items())
        return float(busy / (density @ servers))

    @property
    def stable(self) -> bool:
        """Whether no sampled site is overloaded."""
        return self.unstable_share == 0.0

    @cached_property
    def unstable_share(self) -> float:
        """Share of requests that go to sites whose load reaches their capacity; they are misses."""
        lost = 0.0
        for nodes in self._rule():
            for s, law in self.tiers.items():
                full = (law.law * (law.load >= self.network.concurrency[s])).sum(axis=2)
                for q in np.unique(nodes.kind):
                    mine = (nodes.tier == s) & (nodes.kind == q)
                    lost += float(
                        nodes.probability[mine]
                        @ np.interp(self._radius(nodes.delay[mine]), law.ring, full[q])
                    )
        return lost

    @property
    def serving_distance(self) -> FloatArray:
        """Mean distance R̄_{s,q} given tier and type [km], Eq. (32), shape (S, Q)."""
        network, found = self.network, np.array(super().serving_distance)
        share, moment = np.zeros(found.shape), np.zeros(found.shape)
        for nodes in self._rule():
            np.add.at(share, (nodes.tier, nodes.kind), nodes.probability)
            np.add.at(moment, (nodes.tier, nodes.kind), nodes.probability * self._radius(nodes.delay))
        there = (share > 0.0) & (network.type_probability > 0.0)
        return np.divide(moment, share, out=found, where=there)

    @property
    def _served(self) -> float:
        return 1.0 - self.unstable_share

    def _covered(self, tau: float) -> FloatArray:
        """Return the share of all requests that are of each type and in time, shape (Q,)."""
        network, point = self.network, self.equilibrium
        limit, covered = tau - network.prefill_time, np.zeros(network.types)
        layer = 1.0 / (point.service_rate * np.sqrt(network.concurrency))
        tier = self._classes[0]
        for nodes in self._rule(limit, layer):
            for s in np.unique(tier):
                for q in np.unique(nodes.kind):
                    mine = (nodes.tier == s) & (nodes.kind == q)
                    if mine.any():
                        in_time = self._in_time(s, q, limit[s, q], self._radius(nodes.delay[mine]))
                        covered[q] += float((nodes.probability[mine] * in_time).sum())
        return covered

    def _in_time(self, s: int, q: int, limit: float, radius: FloatArray) -> FloatArray:
        """Return the probability that the wait is over in time at each distance, over the loads of the tier's law."""
        network, law = self.network, self.tiers[s]
        end = min(float(self._radius(np.array(limit))), float(law.ring[-1]))
        last = limit - network.delay_coefficient * end**network.delay_exponent
        times = np.append(np.geomspace(1e-5, 1.0, _TIMES) * (limit - last) + last, last)
        radii = np.sort(
            np.append(np.linspace(0.0, end, _RADII), self._radius(np.maximum(limit - times, 0.0)))
        )
        spare = np.maximum(limit - network.delay_coefficient * radii**network.delay_exponent, 0.0)
        service = self.equilibrium.service_rate[s]
        reached = select(self.equilibrium.queue, s).wait_cdf(
            spare[:, None], law.load * service, service, network.concurrency[s]
        )
        place = np.interp(radii, law.ring, np.arange(law.ring.size, dtype=np.float64))
        first = np.minimum(place.astype(np.int64), law.ring.size - 2)
        part = (place - first)[:, None]
        mixed = (1.0 - part) * law.law[q, first] + part * law.law[q, first + 1]
        return np.asarray(np.interp(radius, radii, (mixed * reached).sum(axis=1)))

    def _radius(self, delay: FloatArray) -> FloatArray:
        """Return distances [km] of radio delays [s]."""
        network = self.network
        return np.asarray((delay / network.delay_coefficient) ** (1.0 / network.delay_exponent))


def solve_law(
    network: TieredNetwork,
    law: Law = "mean_field",
    policy: Policy = "load_aware",
    *,
    queue: WaitModel | QueueOfMix | None = None,
) -> TheoryAnswer:
    """Solve a network under a policy and a law of what a site's load is.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    law
        ``"mean_field"``, ``"per_tier"`` or ``"per_site"``: who carries the tier's mean load, and who advertises.
    policy
        ``"load_aware"``, ``"prefix_only"`` or ``"nearest"``.
    queue
        Wait model, or a rule that makes one of the mixture that each tier serves; `ErlangC` if omitted.

    Returns
    -------
    TheoryAnswer
        A `SiteLoadAnswer` unless the law is ``"mean_field"``. The same network always has the same answer.

    Raises
    ------
    GeoEdgeError
        If the law or the policy is unknown.

    Examples
    --------
    >>> net = TieredNetwork([1.0], [8], [1.0], [[0.3]], [[1.8]], 2.2, 0.2, 2.0, [[512]], [2048], [0.4])
    >>> [round(float(solve_law(net, law).ttft_coverage(0.8)), 2) for law in LAWS]
    [0.98, 0.76, 0.94]
    """
    if law not in LAWS:
        msg = f"solve_law: `law` is {law!r}, but must be one of {', '.join(LAWS)}"
        raise GeoEdgeError(msg)
    answer = solve(network, policy, queue=queue)
    if law == "mean_field":
        return answer
    point = answer.equilibrium
    if law == "per_site" and policy == "load_aware" and not point.beyond_capacity:
        return _per_site(point)
    laws = {}
    for s in np.flatnonzero(network.tier_density > 0.0).tolist():
        cells = sample_cells(network, point.cost_offset, s, mean_area=point.served_area[s])
        load = np.asarray(cells.area @ _work(network, s))
        if law == "per_site" and point.beyond_capacity:
            load = np.full(load.size, point.utilization[s] * network.concurrency[s])
        laws[s] = tier_law(point, s, cells, load, np.ones(load.size), np.zeros(1))
    return SiteLoadAnswer(point, law, laws)


def _per_site(point: Equilibrium) -> SiteLoadAnswer:
    """Return the answer when each site advertises its own wait, from the mean-field point."""
    network = point.network
    there = np.flatnonzero(network.tier_density > 0.0)
    alone = replace(
        network,
        tier_density=network.tier_density[there],
        concurrency=network.concurrency[there],
        prefill_time=network.prefill_time[there],
        occupancy_time=network.occupancy_time[there],
        hit_tokens=network.hit_tokens[there],
    )
    seen, settled = even_out(alone, select(point.queue, there))
    classes = min(_CLASSES, max(_CLASS_LIMIT // there.size, 2))
    inner, laws = replace(seen, queue=select(point.queue, there)), {}
    for i, s in enumerate(there):
        each = settled[i]
        apart = _quantiles(each.apart, each.cells.weight * (each.cells.area @ _work(alone, i)), classes)
        laws[int(s)] = tier_law(inner, i, each.cells, each.load, each.gain, apart)
    return SiteLoadAnswer(_widened(point, seen, there), "per_site", laws)


def _quantiles(value: FloatArray, weight: FloatArray, classes: int) -> FloatArray:
    """Return the middles of classes of equal weight; those whom nobody would choose anyway have none."""
    order = np.argsort(value)
    passed = np.cumsum(np.maximum(weight[order], 0.0))
    level = (np.arange(classes) + 0.5) / classes * passed[-1]
    return np.asarray(value[order][np.minimum(np.searchsorted(passed, level), value.size - 1)])


def _widened(point: Equilibrium, seen: Equilibrium, there: NDArray[np.int64]) -> Equilibrium:
    """Return a point of all tiers that has what was found for those with sites."""

    def whole(everywhere: FloatArray, found: FloatArray) -> FloatArray:
        filled = np.array(everywhere)
        filled[there] = found
        return filled

    return replace(
        point,
        advertised_wait=whole(point.advertised_wait, seen.advertised_wait),
        mean_wait=whole(point.mean_wait, seen.mean_wait),
        cost_offset=whole(point.cost_offset, seen.cost_offset),
        served_area=whole(point.served_area, seen.served_area),
        site_arrival_rate=whole(point.site_arrival_rate, seen.site_arrival_rate),
        service_rate=whole(point.service_rate, seen.service_rate),
        utilization=whole(point.utilization, seen.utilization),
        residual_s=seen.residual_s,
        residual_utilization=seen.residual_utilization,
        iterations=seen.iterations,
    )


def _work(network: TieredNetwork, tier: int) -> FloatArray:
    """Return the load per served area of each type [servers/km²], shape (Q,)."""
    return np.asarray(network.request_intensity * network.type_probability * network.occupancy_time[tier])
