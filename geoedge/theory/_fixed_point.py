"""Newton's method and path following behind `equilibrium`.

The state is the load v [servers] that each tier is believed to carry and the mean occupancy T [s] of what it
serves; W = h_c(v) T is then its wait. The residuals are v − a(W) and T − T(W), where a and T are the load and the
mix that these waits attract. In W the linear system reads (I − h'T J_a − h J_T) dW = −h'T r_v − h r_T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from geoedge.theory.association import shares_and_slopes
from geoedge.theory.network import TieredNetwork
from geoedge.theory.queueing import WaitModel

__all__ = ["FixedPointSolver", "Load", "shares"]

FloatArray = NDArray[np.float64]

_HEAVY = 1.0  # dh/dρ from which a tier is stepped in its wait
_ACCEPTED = 1e-8  # residual that counts as solved where rounding stops Newton above the tolerance
_COARSE_STEP, _FINE_STEP = 2e-3, 1e-7  # smallest steps of the path in log intensity, first and last try
_NEAR_CAPACITY = 0.9  # share of the critical intensity from which Newton starts at the end of the path
_SLOWEST_BLUR = 0.98  # ratio of two enlarged radio delays from which on the descent is given up
_SMALLEST_DAMPING = 1.0 / 256.0


@dataclass(frozen=True)
class Load:
    """What one site of each tier carries: offered load [servers], mean occupancy [s], arrival rate [1/s]."""

    offered: FloatArray
    service: FloatArray
    rate: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, network: TieredNetwork, intensity: float, area: FloatArray) -> Load:
        """Return the load, Eqs. (15)–(17), of served areas A/λ [km²] of shape (S, Q)."""
        per_type = area * network.type_probability
        weight = per_type.sum(axis=1)
        work = (per_type * network.occupancy_time).sum(axis=1)
        idle = network.occupancy_time @ network.type_probability
        service = np.divide(work, weight, out=idle, where=weight > 0.0)
        return cls(intensity * work, service, intensity * weight, weight)


@dataclass(frozen=True)
class _State:
    """A point of the iteration with everything that was computed there."""

    intensity: float
    believed: FloatArray
    service: FloatArray
    wait: FloatArray
    slope: FloatArray
    load: Load
    overlap: FloatArray
    load_gap: FloatArray
    service_gap: FloatArray
    merit: float
    error: float


class _Step(NamedTuple):
    """A change of the state."""

    believed: FloatArray
    service: FloatArray
    wait: FloatArray


def shares(network: TieredNetwork, offset: FloatArray, *, slopes: bool) -> tuple[FloatArray, FloatArray]:
    """Return served areas (S, Q) and their overlaps (Q, S, S) for cost offsets (S, Q)."""
    return shares_and_slopes(
        network.tier_density, offset, network.delay_coefficient, network.delay_exponent, slopes=slopes
    )


class FixedPointSolver:
    """Solve the load-aware fixed point of one network."""

    def __init__(
        self, network: TieredNetwork, queue: WaitModel, tolerance: float, max_iterations: int
    ) -> None:
        """Keep what does not change along the way."""
        self.network = network
        self.queue = queue
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.iterations = 0
        self._servers = network.concurrency.astype(np.float64)
        self._shortest = network.occupancy_time.min(axis=1)
        self._longest = network.occupancy_time.max(axis=1)

    def solve(self, start: FloatArray | None) -> tuple[FloatArray, float | None]:
        """Return the advertised waits and, where it had to be found, the critical intensity.

        Tried in turn: Newton from a guess; the end of stability, to know whether there is anything to find; Newton
        from next to it; the path from a small intensity, started afresh with large steps when it stalls. Where all
        fail, the best point is returned, and its residual says so.
        """
        wanted, bound = self.network.request_intensity, self.network.necessary_intensity
        if wanted < bound:
            state = self._newton(self._cold(wanted) if start is None else self._warm(wanted, start), 25)
            if state is not None:
                return state.wait, None
        filled = self._capacity()
        if filled is not None and wanted >= min(filled[1], bound):
            return filled[0], min(filled[1], bound)
        best = self._from_capacity(wanted, filled) or self._follow(
            self._path_start(wanted), wanted, _COARSE_STEP
        )
        best = self._follow(best, wanted, _FINE_STEP)
        critical = bound if wanted >= bound else None
        return best.wait, critical if filled is None else min(filled[1], bound)

    def _from_capacity(self, wanted: float, filled: tuple[FloatArray, float] | None) -> _State | None:
        """Return the solved state that Newton finds from next to capacity, if `wanted` is near it."""
        if filled is None or wanted < _NEAR_CAPACITY * filled[1]:
            return None
        return self._newton(self._near_capacity(wanted, filled[0]), 40)

    def _evaluate(self, intensity: float, believed: FloatArray, service: FloatArray) -> _State:
        """Return the state of these believed loads and occupancies."""
        normalised, slope = self.queue.normalised_wait_and_slope(believed, self._servers)
        wait = normalised * service
        area, overlap = shares(self.network, self.network.prefill_time + wait[:, None], slopes=True)
        load = Load.of(self.network, intensity, area)
        load_gap, service_gap = believed - load.offered, service - load.service
        in_service = np.abs(service_gap) / load.service
        scaled = np.concatenate([load_gap / self._servers, in_service])
        error = max(float((np.abs(load_gap) / np.maximum(believed, 1e-300)).max()), float(in_service.max()))
        merit = float(np.sqrt(scaled @ scaled))
        return _State(
            intensity, believed, service, wait, slope, load, overlap, load_gap, service_gap, merit, error
        )

    def _cold(self, intensity: float) -> _State:
        """Return the state of the loads that no waits at all would attract, capped below capacity."""
        area, _ = shares(self.network, self.network.prefill_time, slopes=False)
        load = Load.of(self.network, intensity, area)
        return self._evaluate(intensity, np.minimum(load.offered, 0.9 * self._servers), load.service)

    def _warm(self, intensity: float, wait: FloatArray) -> _State:
        """Return the state at given waits."""
        area, _ = shares(self.network, self.network.prefill_time + wait[:, None], slopes=False)
        load = Load.of(self.network, intensity, area)
        return self._evaluate(intensity, self._believed(wait, load.service), load.service)

    def _believed(self, wait: FloatArray, service: FloatArray) -> FloatArray:
        """Return the load that these waits speak of, below capacity by at least a rounding."""
        believed = self.queue.offered_load_for_wait(wait / service, self._servers)
        return np.minimum(believed, self._servers * (1.0 - 1e-15))

    def _newton(self, state: _State, limit: int) -> _State | None:
        """Return the solved state, or nothing if Newton's method does not get there within its limit."""
        for _ in range(limit):
            if state.error <= self.tolerance:
                return state
            self.iterations += 1
            following = self._step(state)
            if following is None:
                break
            state = following
        return state if state.error <= max(self.tolerance, _ACCEPTED) else None

    def _step(self, state: _State) -> _State | None:
        """Return the state after one damped Newton step, or nothing if no step lowers the residual."""
        step, damping = self._direction(state, 0.0), 1.0
        while damping >= _SMALLEST_DAMPING:
            trial = self._moved(state, step, damping, state.intensity)
            if trial.merit < (1.0 - 1e-3 * damping) * state.merit or trial.error <= self.tolerance:
                return trial
            damping /= 2.0
        return None

    def _direction(self, state: _State, growth: float) -> _Step:
        """Return the Newton step, or where the path leads when intensity grows by this share."""
        load = state.load
        normalised = state.wait / state.service
        work, arrivals = self._slopes(state.overlap)
        load_by_wait = state.intensity * work
        weight = load.weight[:, None]
        mix = work - load.service[:, None] * arrivals
        service_by_wait = np.divide(mix, weight, out=np.zeros_like(mix), where=weight > 0.0)
        gain = state.slope * state.service
        goal = growth * load.offered - state.load_gap
        system = np.eye(gain.size) - gain[:, None] * load_by_wait - normalised[:, None] * service_by_wait
        right = gain * goal - normalised * state.service_gap
        scale = 1.0 / (1.0 + gain)
        wait = np.asarray(np.linalg.solve(system * scale[:, None], right * scale), dtype=np.float64)
        return _Step(goal + load_by_wait @ wait, service_by_wait @ wait - state.service_gap, wait)

    def _moved(self, state: _State, step: _Step, damping: float, intensity: float) -> _State:
        """Return the state after a step, kept inside 0 < v < c."""
        service = state.service + damping * step.service
        service = np.minimum(np.maximum(service, self._shortest), self._longest)
        low, high = 0.02 * state.believed, self._servers - 0.1 * (self._servers - state.believed)
        believed = np.minimum(np.maximum(state.believed + damping * step.believed, low), high)
        heavy = state.slope * self._servers > _HEAVY
        if heavy.any():
            wait = np.maximum(state.wait + damping * step.wait, 0.1 * state.wait)
            believed = np.where(heavy, self._believed(wait, service), believed)
        return self._evaluate(intensity, believed, service)

    def _path_start(self, wanted: float) -> _State:
        """Return a solved state of a small intensity."""
        intensity = 0.2 * min(wanted, self.network.sufficient_intensity)
        solved = self._newton(self._cold(intensity), 25)
        while solved is None:
            intensity /= 4.0
            solved = self._newton(self._cold(intensity), 25)
        return solved

    def _follow(self, solved: _State, wanted: float, smallest_step: float) -> _State:
        """Raise the intensity along the path of equilibria; return its last state, at `wanted` if that is reached."""
        step = 0.3
        while solved.intensity < wanted and step > smallest_step and self.iterations < self.max_iterations:
            target = min(solved.intensity * np.exp(step), wanted)
            ahead = self._direction(solved, float(np.log(target / solved.intensity)))
            reached = self._newton(self._moved(solved, ahead, 1.0, target), 8)
            step = step * 1.7 if reached is not None else step / 3.0
            solved = solved if reached is None else reached
        return solved

    def _near_capacity(self, wanted: float, differences: FloatArray) -> _State:
        """Return a state next to capacity: these differences and the common wait that carries all load."""
        load = self._warm(wanted, differences).load

        def surplus(common: float) -> float:
            carried = self._believed(differences + common, load.service)
            return float(self.network.tier_density @ (carried - load.offered))

        common, high = 0.0, 1.0
        if surplus(common) < 0.0:
            while surplus(high) < 0.0 and high < 1e12:
                high *= 4.0
            common = float(brentq(surplus, common, high)) if surplus(high) > 0.0 else high
        return self._warm(wanted, differences + common)

    def _capacity(self) -> tuple[FloatArray, float] | None:
        """Return wait differences at which all tiers are equally full, and the intensity at which they are full.

        Where the radio delay is so small that tiers fill in jumps, it is enlarged first and brought down again.
        """
        zero = np.zeros(self.network.tiers)
        filled = self._equal_fill(zero, 1.0)
        if filled is None:
            blur, ratio, reached = 1024.0, 0.25, self._equal_fill(zero, 1024.0)
            while reached is not None and blur > 1.0 and ratio < _SLOWEST_BLUR:
                closer = self._equal_fill(reached[0], max(1.0, ratio * blur))
                if closer is None:
                    ratio = ratio**0.5
                else:
                    reached, blur, ratio = closer, max(1.0, ratio * blur), ratio**1.3
            filled = reached if blur == 1.0 else None
        # a search that ends below a load that is known to be carried has found something else
        return filled if filled and filled[1] > self.network.sufficient_intensity * (1.0 - 1e-9) else None

    def _equal_fill(self, start: FloatArray, blur: float) -> tuple[FloatArray, float] | None:
        """Solve for equal utilisations by Newton, with the radio delay multiplied by `blur`."""
        there = self.network.tier_density > 0.0
        wait = np.where(there, start - start[there].min(), 0.0)
        gap, fill, slope = self._fill(wait, there, blur)
        for _ in range(60):
            worst = np.abs(gap).max()
            if not worst > 1e-12:
                break
            try:
                # a common wait changes nothing: what is added makes the matrix regular, not the solution another
                move = np.linalg.solve(slope - slope.mean(axis=0) - np.abs(slope).max(), -gap)
            except np.linalg.LinAlgError:  # tiers that nobody reaches at these waits
                return None
            for damping in 0.5 ** np.arange(12):
                trial = wait.copy()
                trial[there] += damping * move
                trial[there] -= trial[there].min()
                gap, fill, slope = self._fill(trial, there, blur)
                if np.abs(gap).max() < worst:
                    break
            else:
                break
            wait = trial
        return (wait, 1.0 / float(fill.max())) if np.abs(gap).max() <= _ACCEPTED else None

    def _fill(
        self, wait: FloatArray, there: NDArray[np.bool_], blur: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return how far log utilisations are from their mean, the utilisations at unit intensity, and slopes."""
        network = self.network
        area, overlap = shares_and_slopes(
            network.tier_density,
            network.prefill_time + wait[:, None],
            blur * network.delay_coefficient,
            network.delay_exponent,
        )
        load = Load.of(network, 1.0, area)
        work = np.maximum(load.offered, 1e-280)[there]
        slope = self._slopes(overlap)[0][np.ix_(there, there)] / work[:, None]
        fill = work / self._servers[there]
        logs = np.log(fill)
        return logs - logs.mean(), fill, slope

    def _slopes(self, overlap: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives by the waits of load and arrivals per site at unit intensity, shape (S, S)."""
        by_wait = overlap * self.network.tier_density
        tiers = np.arange(self.network.tiers)
        by_wait[:, tiers, tiers] = 0.0
        by_wait[:, tiers, tiers] = -by_wait.sum(axis=2)
        by_wait *= self.network.type_probability[:, None, None]
        return np.einsum("sq,qst->st", self.network.occupancy_time, by_wait), by_wait.sum(axis=0)
