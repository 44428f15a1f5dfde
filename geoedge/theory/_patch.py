"""One fixed patch of a Poisson network, and the equilibrium of its sites when each advertises its own wait.

The patch is a torus with as many sites of each tier as the network has on average, always at the same places but for
its size. Waits follow the long waves of capacity over the plane most of all, and these are few: their luck would
decide. So sites are moved along smooth displacements until each of the longest waves of capacity has the power that
Poisson sites have on average. Waves longer than the torus have no room on it: its longest ones stand for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.linalg import splu

from geoedge.theory._patch_kernels import COARSE, PLACES, Rivals, answer_waits, list_rivals, scatter
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import WaitModel, select

__all__ = ["Patch", "Settled", "make_patch", "settle"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SITES, _FEW_SITES = 1024, 256  # of the patch, and of the one that tells how far load spreads
_DEMAND = 48  # places of demand per site, all types together
_LEAST_DEMAND = 4  # places of demand per site and type
_MODES = 6  # longest waves whose power is set, by their number along the torus of 1024 sites
_LONGEST = 2  # squared number of the waves that stand for those without room
_MOVES = 6  # Newton steps to the power that is asked for
_TURNS = (0.7548776662466927, 0.5698402909980532)  # lattices of types lie apart (plastic number)
_TOLERANCE = 2e-3  # miss of a site [utilisation]
_RESPONSES, _TRIES = 60, 6
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
    """

    network: TieredNetwork
    model: WaitModel
    side: float
    xy: FloatArray
    tier: IntArray

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
        per_site = max(_DEMAND / self.network.types, _LEAST_DEMAND)
        return COARSE * max(1, round(float(np.sqrt(self.tier.size * per_site)) / COARSE))

    @cached_property
    def place_rate(self) -> FloatArray:
        """Requests of each place by type [1/s], shape (Q,), so that servers are as busy as in the network."""
        network = self.network
        cells = float(self.servers.sum() / (network.tier_density @ network.concurrency)) / self.across**2
        return np.asarray(network.request_intensity * network.type_probability * cells)

    @property
    def margin(self) -> float:
        """How far waits may move apart before rivals are listed anew [s]: half a usual radio delay."""
        network = self.network
        usual = (np.pi * network.site_density) ** (-0.5 * network.delay_exponent)
        return float(0.5 * network.delay_coefficient * usual)

    def rivals(self, wait: FloatArray, kind: int) -> Rivals:
        """Return who may serve each place of a type about these waits [s], shape (n,)."""
        network = self.network
        shift = np.array([(kind * turn) % 1.0 for turn in _TURNS])
        offset = network.prefill_time[self.tier, kind] + wait
        found = list_rivals(
            self.xy,
            offset,
            self.side,
            self.across,
            shift,
            network.delay_coefficient,
            network.delay_exponent,
            2.0 * self.margin + 1e-3,
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
    def residual(self) -> float:
        """Largest miss."""
        return float(np.abs(self.miss).max())


def make_patch(network: TieredNetwork, model: WaitModel, wait: FloatArray) -> tuple[Patch, FloatArray]:
    """Return the patch of a network, and waits of its sites to start from [s], shape (n,).

    Parameters
    ----------
    network, model
        The network, whose tiers all have sites, and the wait model of its tiers.
    wait
        Waits of its tiers at the tier mean [s], shape (S,).
    """
    few = _patch(network, model, _FEW_SITES)
    few = _typical(few, np.inf)
    settled = settle(few, wait[few.tier])
    patch = _typical(_patch(network, model, _SITES), _screening(few, settled))
    count = np.bincount(few.tier)
    return patch, (np.bincount(few.tier, settled.wait) / count)[patch.tier]


def _patch(network: TieredNetwork, model: WaitModel, sites: int) -> Patch:
    count = np.maximum(np.rint(sites * network.tier_density / network.site_density), 1).astype(np.int64)
    side = float(np.sqrt(count.sum() / network.site_density))
    return Patch(network, model, side, scatter(count, side), np.repeat(np.arange(count.size), count))


def _screening(patch: Patch, settled: Settled) -> float:
    """Return the wavenumber κ [1/km] beyond which load spreads faster than queues take it up.

    Waits W over a region answer its lack of capacity g by κ²W − ∇²W = g/D, where D is how fast differences of waits
    carry load, and κ²D how much load an area takes up for each second of wait.
    """
    slope = settled.work_slope.tocoo()
    apart = patch.xy[slope.row] - patch.xy[slope.col]
    apart -= patch.side * np.rint(apart / patch.side)
    spread = 0.25 * float(slope.data @ (apart**2).sum(axis=1))
    taken = float((1.0 / np.maximum(settled.by_load, 1e-9)).sum())
    return float(np.sqrt(taken / spread)) if spread > 0.0 else np.inf


def _typical(patch: Patch, screening: float) -> Patch:
    """Return the patch with the power of its longest waves of capacity set to what it is on average."""
    modes = max(round(_MODES * float(np.sqrt(patch.tier.size / _SITES))), 2)
    axis, unit = np.arange(-modes, modes + 1), 2.0 * np.pi / patch.side
    number = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    square = (number**2).sum(axis=1)
    number = number[(square <= modes**2) & (square > 0)]
    square = (number**2).sum(axis=1)
    half = (number[:, 0] > 0) | ((number[:, 0] == 0) & (number[:, 1] > 0))
    boost = np.where(square <= _LONGEST, _boost(square, screening / unit), 1.0)
    wave, power = unit * number[half].astype(np.float64), (patch.servers**2).sum() * boost[half]
    xy, servers = patch.xy, patch.servers
    for _ in range(_MOVES):
        turn = np.exp(1j * (xy @ wave.T))
        found = servers @ turn.conj()
        lack = (np.sqrt(power) * found / np.abs(found) - found) / servers.sum()
        # a displacement u makes the density grow by −∇·u
        xy = np.mod(xy - 2.0 * ((turn * lack).imag / (wave**2).sum(axis=1)) @ wave, patch.side)
    return Patch(patch.network, patch.model, patch.side, xy, patch.tier)


def _boost(square: IntArray, screening: float) -> float:
    """Return by how much the power of the longest waves grows to stand for all waves longer than the torus.

    The waits' power is that of capacity over (k² + κ²)². Its integral over the plane of wavenumbers up to the last
    wave whose power is set exceeds the sum over those that the torus has. All wavenumbers are in units of the first.
    """
    if not screening < _FAR:
        return 1.0
    own, end = screening**2, (square.size + 1) / np.pi
    power = 1.0 / (square + own) ** 2
    missing = np.pi * (1.0 / own - 1.0 / (end + own)) - power.sum()
    return 1.0 + max(float(missing), 0.0) / float(power[square <= _LONGEST].sum())


_FAR = 3.0  # screening, in units of the first wavenumber, from which waves longer than the torus have no part


def settle(patch: Patch, wait: FloatArray) -> Settled:
    """Return the equilibrium of the patch by Newton's method from given waits [s], shape (n,), the best point seen.

    As in `equilibrium`, a lightly loaded site is stepped in its load, a heavily loaded one in its wait.
    """
    state = _respond(patch, wait, None)
    best, used = state, 1
    while best.residual > _TOLERANCE and used < _RESPONSES:
        step, length, norm = _newton(state), 1.0, float(np.linalg.norm(state.miss))
        for _ in range(_TRIES):
            after = _respond(patch, _moved(patch, state, step, length), state)
            used += 1
            if float(np.linalg.norm(after.miss)) < (1.0 - 0.2 * length) * norm:
                break
            length *= 0.4
        state = after
        if state.residual < best.residual:
            best = state
    return best


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
    by_load = patch.wait_at(load, state.occupancy)
    by_wait = np.maximum(state.wait + length * step, 0.2 * state.wait)
    return np.where(state.by_load < _STEEP * state.occupancy, by_load, by_wait)
