"""A patch of a Poisson network, and the equilibrium of its sites when each advertises its own wait.

The waits are prices: where service does not depend on type, the requests that a site lacks for its wait to be right are
the gradient of a concave function of all waits. Newton's method climbs it, with steps that end before they lead down.
Where radio delays are small beside the differences of waits, though, a small step moves whole cells from site to site,
and what Newton knows at one place tells little about the next. Such a patch is softened first: each place is shared by
all sites that cost little more than the cheapest one. Then that little is made less and less.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from geoedge.theory._patch_kernels import COARSE, PLACES, Rivals, answer_waits, list_rivals
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import WaitModel, select

__all__ = ["Patch", "Settled", "settle"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_DEMAND, _SOFT_DEMAND = 48, 12  # places of demand per site, all types together, and of a softened patch
_LEAST_DEMAND = 4  # places of demand per site and type
_TURNS = (0.7548776662466927, 0.5698402909980532)  # lattices of types lie apart (plastic number)
_LEAST_SPAN, _USUAL_SPAN = 0.05, 0.5  # of a tie, in usual radio delays
_TOLERANCE, _ROUGH = 2e-3, 0.05  # miss of a site [utilisation], and on softened patches
_LEAST_SOFT, _SOFTEST = 4.0, 256.0  # spans of ties of softened patches, in usual radio delays
_FALL, _LEAST_FALL = 4.0, 1.1  # from one softened patch to the next
_PATIENCE = 24  # responses before a patch is softened
_TRIES = 8  # lengths of a step
_BACK = 0.3  # how steeply a step may lead down at its end, for how steeply it led up
_STEEP = 0.01  # slope of wait by load [occupancies] above which a site moves by its wait
_FULLEST = 1.0 - 1e-12
_NEGLIGIBLE = 1e-6  # waits that are equal, whatever load they mean [s]


@dataclass(frozen=True, eq=False)
class Patch:
    """Sites on a torus and the demand around them.

    Attributes
    ----------
    network, model
        The network, whose tiers all have sites, and the wait model of its tiers.
    side
        Side of the torus [km].
    xy, tier
        Places [km], shape (n, 2), and tiers of the sites, shape (n,).
    demand
        Requests, as a share of those of the network.
    softness
        Least excess of the cost over the cheapest site's at which a place gives nothing, in usual radio delays.
    """

    network: TieredNetwork
    model: WaitModel
    side: float
    xy: FloatArray
    tier: IntArray
    demand: float = 1.0
    softness: float = 0.0

    @cached_property
    def queue(self) -> WaitModel:
        """Wait model of all sites."""
        return select(self.model, self.tier)

    @cached_property
    def servers(self) -> FloatArray:
        """Servers of all sites, shape (n,)."""
        return self.network.concurrency[self.tier].astype(np.float64)

    @property
    def across(self) -> int:
        """Places of demand of one type along the side."""
        places = _SOFT_DEMAND if self.softness else _DEMAND
        per_site = max(places / self.network.types, _LEAST_DEMAND)
        return COARSE * max(1, round(float(np.sqrt(self.tier.size * per_site)) / COARSE))

    @cached_property
    def place_rate(self) -> FloatArray:
        """Requests of each place by type [1/s], shape (Q,), so that servers are as busy as in the network."""
        network = self.network
        cells = float(self.servers.sum() / (network.tier_density @ network.concurrency)) / self.across**2
        return np.asarray(self.demand * network.request_intensity * network.type_probability * cells)

    @property
    def usual_delay(self) -> float:
        """Radio delay over a usual distance [s]."""
        network = self.network
        usual = (np.pi * network.site_density) ** (-0.5 * network.delay_exponent)
        return float(network.delay_coefficient * usual)

    @property
    def margin(self) -> float:
        """How far waits may move apart before rivals are listed anew [s]."""
        return max(0.5, 0.25 * self.softness) * self.usual_delay

    def rivals(self, wait: FloatArray, kind: int) -> Rivals:
        """Return who may serve each place of a type about these waits [s], shape (n,)."""
        network = self.network
        shift = np.array([(kind * turn) % 1.0 for turn in _TURNS])
        offset = network.prefill_time[self.tier, kind] + wait
        usual = self.usual_delay
        found = list_rivals(
            self.xy,
            offset,
            self.side,
            self.across,
            shift,
            network.delay_coefficient,
            network.delay_exponent,
            2.0 * self.margin + max(self.softness, _USUAL_SPAN) * usual,
            max(self.softness, _LEAST_SPAN) * usual,
        )
        return Rivals(*found)

    def wait_at(self, load: FloatArray, occupancy: FloatArray) -> FloatArray:
        """Return the mean wait of each site at a load [s], shape (n,)."""
        full = load >= self.servers * _FULLEST
        normalised, _ = self.queue.normalised_wait_and_slope(np.where(full, 0.0, load), self.servers)
        return np.where(full, np.inf, normalised * occupancy)


class Settled(NamedTuple):
    """What waits bring about: who comes to each site, and the load that its wait speaks of."""

    wait: FloatArray
    rate: FloatArray
    work: FloatArray
    occupancy: FloatArray
    load: FloatArray
    by_load: FloatArray
    """Slope of the wait by the load [s]."""
    rate_slope: csr_array
    work_slope: csr_array
    miss: FloatArray
    """Work that comes less the load that the wait means, per server."""
    rivals: list[Rivals]
    listed: FloatArray
    """Waits for which rivals were listed [s]."""

    @property
    def lack(self) -> FloatArray:
        """Requests that come less those that the wait means [1/s], shape (n,)."""
        return (self.work - self.load) / self.occupancy

    @property
    def distance(self) -> float:
        """How far it is from the equilibrium: the root of all squared misses together."""
        return float(np.linalg.norm(self.miss))

    @property
    def residual(self) -> float:
        """Largest miss."""
        return float(np.abs(self.miss).max())


def settle(patch: Patch, wait: FloatArray) -> Settled:
    """Return the equilibrium of the patch from given waits [s], shape (n,), or the best point seen.

    Where the patch does not yield soon, it is softened until it does, and solved anew from there.
    """
    found = _climb(patch, wait, _TOLERANCE, _PATIENCE)
    softness = 0.0
    while found.residual > _TOLERANCE and softness < _SOFTEST:
        softness = max(_LEAST_SOFT, _FALL * softness)
        soft = _climb(replace(patch, softness=softness), wait, _ROUGH, _PATIENCE)
        if soft.residual <= _ROUGH:
            return _hardened(patch, soft, softness)
    return found


def _hardened(patch: Patch, soft: Settled, softness: float) -> Settled:
    """Return the equilibrium of the patch from that of the softened one, by way of less and less softened ones."""
    fall = _FALL
    while True:
        less = softness / fall if softness > _LEAST_SOFT else 0.0
        goal, most = (_ROUGH, _PATIENCE) if less else (_TOLERANCE, 2 * _PATIENCE)
        found = _climb(replace(patch, softness=less), soft.wait, goal, most)
        if found.residual <= goal:
            soft, softness = found, less
        else:
            fall = float(np.sqrt(fall))
        if less == 0.0 or fall < _LEAST_FALL:
            return found


def _climb(patch: Patch, wait: FloatArray, tolerance: float, most: int) -> Settled:
    """Return the best of the points that Newton's method comes by, with so many responses of demand.

    Half as many will do where they do not bring the miss down.
    """
    state, used = _respond(patch, wait, None), 1
    best, first = state, state.distance
    while best.residual > tolerance and used < (most if best.distance < first / 2.0 else most // 2):
        state, tries = _advance(patch, state)
        used += tries
        if state.residual < best.residual:
            best = state
    return best


def _advance(patch: Patch, state: Settled) -> tuple[Settled, int]:
    """Return the point after one step of a length that pays, and how many lengths were tried."""
    step, length, tries = _newton(state), 1.0, 1
    while True:
        after = _respond(patch, _moved(patch, state, step, length), state)
        change = after.wait - state.wait
        rise, ahead = float(state.lack @ change), float(after.lack @ change)
        shrunk = after.distance / state.distance
        if shrunk < 0.5 or (ahead >= -_BACK * rise if rise > 0.0 else shrunk < 0.98) or tries == _TRIES:
            return after, tries
        length *= min(max(rise / (rise - ahead), 0.1), 0.5) if rise > 0.0 else 0.4
        tries += 1


def _respond(patch: Patch, wait: FloatArray, before: Settled | None) -> Settled:
    """Return what comes when these waits are advertised, and what load they mean."""
    network, sites = patch.network, patch.tier.size
    if before is None or np.ptp(wait - before.listed) > patch.margin:
        rivals, listed = [patch.rivals(wait, q) for q in range(network.types)], wait
    else:
        rivals, listed = before.rivals, before.listed
    rate, work, parts = np.zeros(sites), np.zeros(sites), []
    for q, each in enumerate(rivals):
        places = np.full((each.start.size - 1, PLACES), patch.place_rate[q])
        time = network.occupancy_time[patch.tier, q]
        served, row, column, value = answer_waits(each, network.prefill_time[patch.tier, q] + wait, places)
        rate, work = rate + served, work + time * served
        parts.append((row, column, value, value * time[row]))
    row, column, by_rate, by_work = (np.concatenate(part) for part in zip(*parts, strict=True))
    rate_slope, work_slope = (
        coo_array((value, (row, column)), shape=(sites, sites)).tocsr() for value in (by_rate, by_work)
    )
    idle = network.occupancy_time[patch.tier] @ network.type_probability
    occupancy = np.divide(work, rate, out=idle, where=rate > 0.0)
    load = patch.queue.offered_load_for_wait(wait / occupancy, patch.servers)
    load = np.minimum(load, patch.servers * _FULLEST)
    _, slope = patch.queue.normalised_wait_and_slope(load, patch.servers)
    same = np.maximum(patch.wait_at(work, occupancy), wait) < _NEGLIGIBLE
    miss = np.where(same, 0.0, (work - load) / patch.servers)
    return Settled(
        wait, rate, work, occupancy, load, slope * occupancy, rate_slope, work_slope, miss, rivals, listed
    )


def _newton(state: Settled) -> FloatArray:
    """Return the step of the waits [s] to where wait and work agree to first order."""
    scale = 1.0 / (state.by_load + state.occupancy)
    busy = np.divide(1.0, state.rate, out=np.zeros_like(state.rate), where=state.rate > 0.0)
    by_occupancy = state.wait / state.occupancy * scale * busy
    longer = state.work_slope - diags_array(state.occupancy) @ state.rate_slope
    matrix = (
        diags_array(scale)
        - diags_array(state.by_load * scale) @ state.work_slope
        - diags_array(by_occupancy) @ longer
    )
    return np.asarray(splu(matrix.tocsc()).solve(state.by_load * scale * (state.work - state.load)))


def _moved(patch: Patch, state: Settled, step: FloatArray, length: float) -> FloatArray:
    """Return the waits after part of a step."""
    more = state.work + state.work_slope @ step - state.load
    room = patch.servers - state.load
    load = np.clip(state.load + length * more, 0.1 * state.load, state.load + 0.7 * room)
    busy = np.divide(1.0, state.rate, out=np.zeros_like(state.rate), where=state.rate > 0.0)
    longer = busy * (state.work_slope @ step - state.occupancy * (state.rate_slope @ step))
    occupancy = np.clip(state.occupancy + length * longer, 0.5 * state.occupancy, 2.0 * state.occupancy)
    by_load = patch.wait_at(load, occupancy)
    by_wait = np.maximum(state.wait + length * step, 0.2 * state.wait)
    return np.where(state.by_load < _STEEP * state.occupancy, by_load, by_wait)
