"""Newton's method and path following behind `equilibrium`.

The state is the load v [servers] that each tier is believed to carry and the mean occupancy T [s] of what it
serves; W = h_c(v) T is then its wait. The residuals are v − a(W) and T − T(W), where a and T are the load and the
mix that these waits attract. In W the linear system reads (I − h'T J_a − h J_T) dW = −h'T r_v − h r_T.

Two paths lead to a point that Newton's method does not reach by itself: up from a small intensity, and down from an
enlarged radio delay, which blurs the jumps that a small one makes. A point near which everything scales with the
radio delay is as far from the point of half that delay as its basin is wide, however small the delay: the second
path takes as many steps for each factor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from geoedge.compiled import kernel
from geoedge.theory import _erlang
from geoedge.theory._capacity import Filled, fill_alike
from geoedge.theory.association import Attraction, attracted_load
from geoedge.theory.network import TieredNetwork
from geoedge.theory.queueing import ErlangC, WaitModel

__all__ = ["FixedPointSolver", "Load", "queue_functions"]

FloatArray = NDArray[np.float64]
WaitAndSlope = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
LoadForWait = Callable[[FloatArray, FloatArray], FloatArray]

_HEAVY = 1.0  # dh/dρ from which a tier is stepped in its wait
_ACCEPTED = 1e-8  # residual that counts as solved where rounding stops Newton above the tolerance
_ROUNDINGS, _BLURRED = (
    8.0,
    1e-4,
)  # roundings of the waits that a residual may have, and what is no solution at all
_COARSE_STEP, _FINE_STEP = 2e-3, 1e-7  # smallest steps of the path in log intensity, first and last try
_NEAR_CAPACITY = 0.9  # share of the critical intensity from which Newton starts at the end of the path
_LEFT = (1e-2, 1e-3, 1e-4)  # shares of the critical intensity to leave where a path down starts
_BLURS = tuple(4.0**k for k in range(1, 13))  # factors on the radio delay to start from
_SHARPEST, _SLOWEST = 0.1, 0.97  # ratios of two radio delays between which the path of blurs keeps
_LAST_STEP = 1e-6  # residual from which the next one, its square, needs no slopes any more
_SMALLEST_DAMPING = 1.0 / 256.0
_COLD_FILL = 0.9  # utilisation that a start without waits is capped at


def queue_functions(queue: WaitModel) -> tuple[WaitAndSlope, LoadForWait]:
    """Return h and its slope, and the inverse of h: compiled for Erlang's queue, the model's own for another."""
    if type(queue) is ErlangC:
        return _erlang.wait_and_slope, _erlang.load_for_wait
    return queue.normalised_wait_and_slope, queue.offered_load_for_wait


class Load(NamedTuple):
    """What one site of each tier carries: served areas A/λ (S, Q), load [servers], occupancy [s], rate [1/s]."""

    area: FloatArray
    offered: FloatArray
    service: FloatArray
    rate: FloatArray

    @classmethod
    def of(
        cls,
        network: TieredNetwork,
        intensity: float,
        area: FloatArray,
        requests: FloatArray,
        work: FloatArray,
    ) -> Load:
        """Return the load, Eqs. (15)–(17), of what one site attracts per unit of intensity.

        A tier that serves nobody is given the mix of all requests.
        """
        idle = network.occupancy_time @ network.type_probability
        service = np.divide(work, requests, out=idle, where=requests > 0.0)
        return cls(area, intensity * work, service, intensity * requests)


class _State(NamedTuple):
    """A point of the iteration with everything that was computed there."""

    intensity: float
    believed: FloatArray
    service: FloatArray
    wait: FloatArray
    slope: FloatArray
    drawn: Attraction
    sloped: bool
    load: Load
    merit: float
    error: float


@kernel
def _judged(
    believed: FloatArray, service: FloatArray, offered: FloatArray, mean: FloatArray, servers: FloatArray
) -> tuple[float, float]:
    """Return the merit that steps must lower, and the largest relative residual."""
    merit, error = 0.0, 0.0
    for s in range(believed.size):
        load_gap, service_gap = believed[s] - offered[s], (service[s] - mean[s]) / mean[s]
        merit += (load_gap / servers[s]) ** 2 + service_gap**2
        error = max(error, abs(load_gap) / max(believed[s], 1e-300), abs(service_gap))
    return np.sqrt(merit), error


@kernel
def _newton_direction(
    intensity: float,
    growth: float,
    believed: FloatArray,
    service: FloatArray,
    wait: FloatArray,
    slope: FloatArray,
    requests: FloatArray,
    work: FloatArray,
    mean: FloatArray,
    work_slope: FloatArray,
    request_slope: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the steps of loads, occupancies and waits; with growth, along the path of intensities."""
    tiers = wait.size
    system, right = np.empty((tiers, tiers)), np.empty(tiers)
    mix = np.zeros((tiers, tiers))
    goal = np.empty(tiers)
    for s in range(tiers):
        gain, ratio = slope[s] * service[s], wait[s] / service[s]
        goal[s] = intensity * work[s] * (1.0 + growth) - believed[s]
        scale = 1.0 / (1.0 + gain)
        for t in range(tiers):
            if requests[s] > 0.0:
                mix[s, t] = (work_slope[s, t] - mean[s] * request_slope[s, t]) / requests[s]
            unit = 1.0 if s == t else 0.0
            system[s, t] = scale * (unit - gain * intensity * work_slope[s, t] - ratio * mix[s, t])
        right[s] = scale * (gain * goal[s] - ratio * (service[s] - mean[s]))
    step = np.linalg.solve(system, right)
    return goal + intensity * (work_slope @ step), mix @ step - service + mean, step  # type: ignore[return-value]


class FixedPointSolver:
    """Solve the load-aware fixed point of one network."""

    def __init__(
        self, network: TieredNetwork, queue: WaitModel, tolerance: float, max_iterations: int
    ) -> None:
        """Keep what does not change along the way."""
        self.network = network
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.iterations = 0
        self._wait_and_slope, self._load_for_wait = queue_functions(queue)
        self._servers = network.concurrency.astype(np.float64)
        self._shortest = network.occupancy_time.min(axis=1)
        self._longest = network.occupancy_time.max(axis=1)
        self._blur = 1.0

    def solve(self, start: FloatArray | None) -> tuple[FloatArray, Load | None, Filled | None]:
        """Return the advertised waits, the load they attract and, where it had to be found, the capacity.

        Tried in turn: Newton from a guess; the end of stability, to know whether there is anything to find; Newton
        from next to it; the path from an enlarged radio delay; the path from a small intensity. Where all fail, the
        best point is returned, and its residual says so.
        """
        wanted = self.network.request_intensity
        if wanted < self.network.necessary_intensity:
            state = self._newton(self._cold(wanted) if start is None else self._warm(wanted, start), 25)
            if state is None and start is not None:
                state = self._newton(self._cold(wanted), 25)
            if state is not None:
                return state.wait, state.load, None
        filled = fill_alike(self.network)
        if wanted >= filled.intensity:
            return filled.wait, None, filled
        found = self._from_capacity(wanted, filled) or self._sharpened(filled)
        if found is None:
            found = self._follow(self._path_start(wanted), wanted, _COARSE_STEP)
            found = self._follow(found, wanted, _FINE_STEP)
        return found.wait, found.load if found.intensity == wanted else None, filled

    def _from_capacity(self, wanted: float, filled: Filled) -> _State | None:
        """Return the solved state that Newton finds from next to capacity, or the path down from there leads to."""
        if not filled.exact or wanted < _NEAR_CAPACITY * filled.intensity:
            return None
        state = self._newton(self._near_capacity(wanted, filled.wait), 40)
        for left in _LEFT:
            if state is not None or wanted >= (1.0 - left) * filled.intensity:
                break
            start = self._newton(self._near_capacity((1.0 - left) * filled.intensity, filled.wait), 40)
            if start is not None:
                start = self._follow(start, wanted, _COARSE_STEP)
                state = start if start.intensity == wanted else None
        return state

    def _evaluate(
        self,
        intensity: float,
        believed: FloatArray,
        service: FloatArray,
        wait: FloatArray | None = None,
        *,
        slopes: bool = True,
    ) -> _State:
        """Return the state of these believed loads and occupancies.

        Where their waits are known, they are used as they are: next to capacity a load has too few digits for them.
        """
        normalised, slope = self._wait_and_slope(believed, self._servers)
        wait = normalised * service if wait is None else np.where(wait >= 0.0, wait, normalised * service)
        drawn = attracted_load(self.network, wait, slopes=slopes, blur=self._blur)
        load = Load.of(self.network, intensity, *drawn[:3])
        merit, error = _judged(believed, service, load.offered, load.service, self._servers)
        return _State(intensity, believed, service, wait, slope, drawn, slopes, load, merit, error)

    def _cold(self, intensity: float) -> _State:
        """Return the state of the loads that no waits at all would attract, capped below capacity."""
        drawn = attracted_load(self.network, np.zeros(self.network.tiers), blur=self._blur)
        load = Load.of(self.network, intensity, *drawn[:3])
        return self._evaluate(intensity, np.minimum(load.offered, _COLD_FILL * self._servers), load.service)

    def _warm(self, intensity: float, wait: FloatArray) -> _State:
        """Return the state at given waits, with the occupancies that they lead to."""
        drawn = attracted_load(self.network, wait, slopes=True, blur=self._blur)
        load = Load.of(self.network, intensity, *drawn[:3])
        believed = self._believed(wait, load.service)
        slope = self._wait_and_slope(believed, self._servers)[1]
        merit, error = _judged(believed, load.service, load.offered, load.service, self._servers)
        return _State(intensity, believed, load.service, wait, slope, drawn, True, load, merit, error)

    def _believed(self, wait: FloatArray, service: FloatArray) -> FloatArray:
        """Return the load that these waits speak of, below capacity by at least a rounding."""
        believed = self._load_for_wait(wait / service, self._servers)
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
        return state if state.error <= max(self.tolerance, _ACCEPTED, self._rounding(state)) else None

    def _rounding(self, state: _State) -> float:
        """Return the relative residual that rounding the waits alone makes: much, where waits are far above ξ."""
        rounded = _ROUNDINGS * np.finfo(np.float64).eps * (state.wait.max() + state.load.service.max())
        drawn = attracted_load(self.network, state.wait, slopes=True, blur=self._blur)
        moved = state.intensity * np.abs(drawn.work_slope).sum(axis=1) * rounded
        return min(float((moved / np.maximum(state.believed, 1e-300)).max()), _BLURRED)

    def _step(self, state: _State) -> _State | None:
        """Return the state after one damped Newton step, or nothing if no step lowers the residual."""
        step, damping = self._direction(state, 0.0), 1.0
        while step is not None and damping >= _SMALLEST_DAMPING:
            trial = self._moved(state, step, damping, state.intensity)
            if trial.merit < (1.0 - 1e-3 * damping) * state.merit or trial.error <= self.tolerance:
                return trial
            damping /= 2.0
        return None

    def _direction(self, state: _State, growth: float) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return the Newton step, or where the path leads when intensity grows by this share."""
        drawn = state.drawn
        if not state.sloped:
            drawn = attracted_load(self.network, state.wait, slopes=True, blur=self._blur)
        try:
            return _newton_direction(
                state.intensity,
                growth,
                state.believed,
                state.service,
                state.wait,
                state.slope,
                drawn.requests,
                drawn.work,
                state.load.service,
                drawn.work_slope,
                drawn.request_slope,
            )
        except np.linalg.LinAlgError:  # at jumps so sharp that slopes overflow
            return None

    def _moved(
        self, state: _State, step: tuple[FloatArray, FloatArray, FloatArray], damping: float, intensity: float
    ) -> _State:
        """Return the state after a step, kept inside 0 < v < c."""
        service = state.service + damping * step[1]
        service = np.minimum(np.maximum(service, self._shortest), self._longest)
        low, high = 0.02 * state.believed, self._servers - 0.1 * (self._servers - state.believed)
        believed = np.minimum(np.maximum(state.believed + damping * step[0], low), high)
        slopes = not (state.error < _LAST_STEP and intensity == state.intensity)
        heavy = state.slope * self._servers > _HEAVY
        if not heavy.any():
            return self._evaluate(intensity, believed, service, slopes=slopes)
        wait = np.maximum(state.wait + damping * step[2], 0.1 * state.wait)
        believed = np.where(heavy, self._believed(wait, service), believed)
        return self._evaluate(intensity, believed, service, np.where(heavy, wait, -1.0), slopes=slopes)

    def _sharpened(self, filled: Filled) -> _State | None:
        """Return the state that the path of ever smaller radio delays ends at, if it gets to the delay itself.

        The share of the critical intensity is kept, as a larger delay may leave less to carry.
        """
        share = self.network.request_intensity / filled.intensity
        state = None
        for blur in _BLURS:
            self._blur = blur
            state = self._newton(self._cold(share * fill_alike(self.network, blur).intensity), 25)
            if state is not None:
                break
        ratio = 0.5
        while state is not None and self._blur > 1.0 and ratio <= _SLOWEST:
            known, self._blur = self._blur, max(1.0, ratio * self._blur)
            reachable = filled if self._blur == 1.0 else fill_alike(self.network, self._blur)
            closer = self._newton(self._warm(share * reachable.intensity, state.wait), 12)
            if closer is None:
                self._blur, ratio = known, ratio**0.5
            else:
                state, ratio = closer, max(_SHARPEST, ratio**1.3)
        arrived, self._blur = self._blur == 1.0, 1.0
        return state if arrived else None

    def _path_start(self, wanted: float) -> _State:
        """Return a solved state of a small intensity."""
        intensity = 0.2 * min(wanted, self.network.sufficient_intensity)
        solved = self._newton(self._cold(intensity), 25)
        while solved is None:
            intensity /= 4.0
            solved = self._newton(self._cold(intensity), 25)
        return solved

    def _follow(self, solved: _State, wanted: float, smallest_step: float) -> _State:
        """Move the intensity along the path of equilibria; return its last state, at `wanted` if that is reached."""
        step, way = 0.3, 1.0 if wanted > solved.intensity else -1.0
        while solved.intensity != wanted and step > smallest_step and self.iterations < self.max_iterations:
            left = abs(float(np.log(wanted / solved.intensity)))
            target = wanted if step >= left else float(solved.intensity * np.exp(way * step))
            ahead = self._direction(solved, float(np.log(target / solved.intensity)))
            reached = None if ahead is None else self._newton(self._moved(solved, ahead, 1.0, target), 8)
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
