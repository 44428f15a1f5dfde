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
    Each site advertises its own equilibrium wait, and so loads even out, at the price of longer ways. The equilibrium
    is solved, site by site, on one fixed patch of the network: a torus of 1024 sites, which are those of every
    network, as far as their numbers by tier are the same (`_patch`). What a request meets there is weighted by what
    theory knows exactly of the same places under the tier mean's waits (`_own_waits`).

    So few sites do because their luck is taken out (`_typical`). Regions that lack servers raise their waits W
    together, by κ²W − ∇²W = g/D to first order, with g what they lack, D how fast differences of waits carry load and
    κ²D the load that an area takes up for each second of wait. That is largest for the longest waves, of which a patch
    has but few: with Poisson sites they alone made coverage differ by 0.02 between patches at 0.9 of capacity. Sites
    are moved, smoothly, until each long wave of capacity has the power that it has on average; then it is 0.003 to
    0.008. Waves longer than the torus would go missing, and where radio is cheap beside waits most are longer. They
    raise or lower the waits of a whole patch without setting them apart, as more or less demand does: the patch is
    solved at two levels of demand, as far apart as makes up for the power of waits that is missing. One tier of four
    servers at 0.6 of capacity has the coverages .532 and .897; tori of 16384 sites gave .529 and .897, those of 1024
    .525 and .897 on average. That case was one of the blind ones of tests/validation/test_heterogeneity.py, and told
    the levels from another way to make up for long waves; the networks called fresh there were drawn after that. A
    patch that is not solved is refused.

Prefix-only and nearest routing look at no wait, so that for them ``"per_site"`` is ``"per_tier"``.

A queue that depends on the mixture of types is that of the tier's mean mixture, and so is a site's mean occupancy.

Cost: per tier about 0.15 s of one core for 3 tiers and 2 types and 1 s for 50 × 50; per site 0.6 s at light load and
1 to 6 s from half of capacity on, most where radio delays are smallest beside waits. A target then takes 1 to 4 ms. Per tier, from 14 tiers × types on fewer cells are
drawn, down to 64 per tier, and above 20 their variance is the sample's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._loads import TierLaw, served_law, tier_law
from geoedge.theory._own_waits import Bins, gather, served
from geoedge.theory._patch import Patch, Settled
from geoedge.theory._served import Nodes
from geoedge.theory._typical import make_patch, settled_levels
from geoedge.theory.cells import sample_cells
from geoedge.theory.coverage import TheoryAnswer, solve
from geoedge.theory.equilibrium import Equilibrium, Policy
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel, select

__all__ = ["LOAD_LAWS", "LoadLaw", "SiteLoadAnswer", "solve_law"]

FloatArray = NDArray[np.float64]
LoadLaw = Literal["mean_field", "per_tier", "per_site"]
"""Name of a law of the load that a request meets."""
LOAD_LAWS: tuple[LoadLaw, ...] = get_args(LoadLaw)
"""Their names."""

# points over distance and over remaining time at which a mixed wait distribution is held
_RADII, _TIMES = 72, 32
_MISPLACED = 0.01  # share of the work of the patch that may be elsewhere than waits say


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

    law: LoadLaw
    tiers: dict[int, TierLaw]

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
        for nodes in self._rule(limit, layer):
            for s in self.tiers:
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
    law: LoadLaw = "mean_field",
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
        If the law or the policy is unknown, or no equilibrium of the patch is found for ``"per_site"``.

    Examples
    --------
    >>> net = TieredNetwork([1.0], [8], [1.0], [[0.3]], [[1.8]], 2.2, 0.2, 2.0, [[512]], [2048], [0.4])
    >>> [round(float(solve_law(net, law).ttft_coverage(0.8)), 2) for law in LOAD_LAWS]
    [0.98, 0.76, 0.94]
    """
    if law not in LOAD_LAWS:
        msg = f"solve_law: `law` is {law!r}, but must be one of {', '.join(LOAD_LAWS)}"
        raise GeoEdgeError(msg)
    answer = solve(network, policy, queue=queue)
    if law == "mean_field":
        return answer
    point = answer.equilibrium
    if law == "per_site" and policy == "load_aware" and not point.beyond_capacity:
        return _own_waits(point)
    laws = {}
    for s in np.flatnonzero(network.tier_density > 0.0).tolist():
        cells = sample_cells(network, point.cost_offset, s, mean_area=point.served_area[s])
        load = np.asarray(cells.area @ _work(network, s))
        if law == "per_site" and point.beyond_capacity:
            load = np.full(load.size, point.utilization[s] * network.concurrency[s])
        laws[s] = tier_law(point, s, cells, load)
    return SiteLoadAnswer(point, law, laws)


@dataclass(frozen=True, eq=False)
class _OwnWaits(SiteLoadAnswer):
    """Answer of a patch whose sites each advertise their own wait."""

    bins: Bins

    @cached_property
    def association(self) -> FloatArray:
        """Probability A_{s,q} that tier s serves type q, shape (S, Q)."""
        network = self.network
        found = np.zeros((network.tiers, network.types))
        np.add.at(found, (self.bins.tier, self.bins.kind), self.bins.share)
        asked = network.type_probability
        return np.divide(found, asked, out=np.array(self.equilibrium.association), where=asked > 0.0)

    def _rule(self, limit: FloatArray | None = None, layer: FloatArray | None = None) -> Iterator[Nodes]:
        """Yield the middles of the patch's bins, as far as they lie below the limit."""
        bins = self.bins
        everything = np.full((self.network.tiers, self.network.types), np.inf)
        delay, share = bins.below(everything if limit is None else limit)
        kept = share > 0.0
        yield Nodes(bins.kind[kept], bins.tier[kept], delay[kept], share[kept])


def _own_waits(point: Equilibrium) -> SiteLoadAnswer:
    """Return the answer when each site advertises its own wait, from the mean-field point."""
    network = point.network
    there = np.flatnonzero(network.tier_density > 0.0)
    alone = _of_tiers(point, there)
    patch = make_patch(alone.network, alone.queue)
    levels = settled_levels(patch, alone.advertised_wait[patch.tier])
    misplaced = max(_misplaced(patch, each) for each in levels)
    if misplaced > _MISPLACED:
        msg = (
            f"solve_law: 'per_site' found no equilibrium of the patch at request intensity {network.request_intensity:.4g} "
            f"/(s km²): {misplaced:.1%} of the work is not where waits say, allowed is {_MISPLACED:.0%}; "
            "ask `geoedge.field.torus_ensemble`, or the law 'per_tier'"
        )
        raise GeoEdgeError(msg)
    found = served(levels, patch, alone)
    bins = gather(found, there.size, network.types)
    attracted = np.zeros(there.size)
    np.add.at(attracted, found.tier, found.share * alone.network.occupancy_time[found.tier, found.kind])
    busy = network.request_intensity * attracted / alone.network.tier_density
    work = np.concatenate([each.work for each in levels])
    laws = {int(s): served_law(alone, i, found, work, float(busy[i])) for i, s in enumerate(there)}
    solved = replace(point, residual_utilization=max(each.residual for each in levels))
    return _OwnWaits(solved, "per_site", laws, bins._replace(tier=there[bins.tier]))


def _misplaced(patch: Patch, settled: Settled) -> float:
    """Return the share of the work that is elsewhere than waits say."""
    return float(np.abs(settled.miss * patch.servers).sum() / max(settled.work.sum(), 1e-300))


def _of_tiers(point: Equilibrium, there: NDArray[np.int64]) -> Equilibrium:
    """Return the point of some tiers alone."""
    network = point.network
    alone = replace(
        network,
        tier_density=network.tier_density[there],
        concurrency=network.concurrency[there],
        prefill_time=network.prefill_time[there],
        occupancy_time=network.occupancy_time[there],
        hit_tokens=network.hit_tokens[there],
    )
    return replace(
        point,
        network=alone,
        queue=select(point.queue, there),
        advertised_wait=point.advertised_wait[there],
        mean_wait=point.mean_wait[there],
        cost_offset=point.cost_offset[there],
        served_area=point.served_area[there],
        site_arrival_rate=point.site_arrival_rate[there],
        service_rate=point.service_rate[there],
        utilization=point.utilization[there],
    )


def _work(network: TieredNetwork, tier: int) -> FloatArray:
    """Return the load per served area of each type [servers/km²], shape (Q,)."""
    return np.asarray(network.request_intensity * network.type_probability * network.occupancy_time[tier])
