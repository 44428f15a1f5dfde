"""How far routing evens the loads of sites out when each advertises its own equilibrium wait.

See `heterogeneity` for the derivation. The state is one factor per tier: the wait that the others see in a tier, over
the wait that its mean load would cause. Given these, the tiers' equilibrium is solved as ever; every sampled cell
then finds the load and the wait that agree with each other; and the factors are moved until the loads of each tier
add up to what the tier attracts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import ndtri

from geoedge.theory.association import association_per_density, attracted_load
from geoedge.theory.cells import CellSample, sample_cells, sample_size
from geoedge.theory.equilibrium import Equilibrium, solve_equilibrium
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import WaitModel, select

__all__ = ["Evened", "even_out"]

FloatArray = NDArray[np.float64]

_SOFTNESS = (
    0.6  # κ: measured on fields of one to three tiers at 0.05 to 0.7 of capacity, where 0.4 to 0.8 fit
)
_WAVES = (0.21132486540518713, 0.7886751345948129)  # Gauss-Legendre nodes for a uniform law on [0, κ]
_ROUNDS = ((1024, 5), (1024, 4), (None, 4))  # cells drawn, and moves of the factors with them
_FULLEST = 1.0 - 1e-7
_FINEST, _STEPS = (
    0.1,
    10,
)  # shifts of offsets: the smallest, in radio delays to the nearest site; how many either way
_GOLDEN = 0.6180339887498949
_FARTHEST = 4.0  # longest wait that neighbours may see, in waits at the mean load or mean occupancies
_STEEPEST = 1e12  # largest factor: beyond, a wait is too small to matter


@dataclass(frozen=True, eq=False)
class _Crowded:
    """A wait model whose mean waits are multiplied, a factor for each tier."""

    model: WaitModel
    factor: FloatArray

    def select(self, index: ArrayLike) -> _Crowded:
        """Return the model of some tiers."""
        return _Crowded(select(self.model, index), self.factor[np.asarray(index)])

    def mean_wait(
        self, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the mean wait [s]."""
        return self.factor * self.model.mean_wait(arrival_rate, service_rate, concurrency)

    def wait_cdf(
        self, time: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the probability to wait at most `time` [s]."""
        return self.model.wait_cdf(np.asarray(time) / self.factor, arrival_rate, service_rate, concurrency)

    def wait_quantile(
        self, probability: ArrayLike, arrival_rate: ArrayLike, service_rate: ArrayLike, concurrency: ArrayLike
    ) -> FloatArray:
        """Return the least wait [s] that is kept with this probability."""
        return self.factor * self.model.wait_quantile(probability, arrival_rate, service_rate, concurrency)

    def normalised_wait_and_slope(
        self, offered_load: ArrayLike, concurrency: ArrayLike
    ) -> tuple[FloatArray, FloatArray]:
        """Return the mean wait in mean service times and its derivative by the load."""
        wait, slope = self.model.normalised_wait_and_slope(offered_load, concurrency)
        return self.factor * wait, self.factor * slope

    def offered_load_for_wait(self, wait: ArrayLike, concurrency: ArrayLike) -> FloatArray:
        """Return the load [servers] at which the normalised wait has this value."""
        return self.model.offered_load_for_wait(np.asarray(wait) / self.factor, concurrency)


class Evened(NamedTuple):
    """The cells of one tier after its sites have settled on their waits."""

    cells: CellSample
    load: FloatArray
    """Offered load of each site [servers], shape (N,)."""
    gain: FloatArray
    """Load over the one under equal waits, shape (N,)."""
    apart: FloatArray
    """How far a site's wait sets its offset apart from its neighbours' [s], shape (N,)."""


@dataclass
class _Mood:
    """How a tier answers at present: `exposed` is the part of a site's wait that its neighbours do not follow."""

    exposed: float = 0.4
    regional: float = 1.0
    local: float = 1.0


class _Demand(NamedTuple):
    """Load of a lone site, as the logarithm of its ratio to the load at no shift, over shifts of its offset [s]."""

    shift: FloatArray
    log_ratio: FloatArray

    @property
    def slope(self) -> float:
        """Relative loss of load per second of wait [1/s]."""
        below, above = _STEPS - 1, _STEPS + 1
        ratio = np.exp(self.log_ratio)
        return float(max((ratio[below] - ratio[above]) / (self.shift[above] - self.shift[below]), 0.0))


def even_out(network: TieredNetwork, model: WaitModel) -> tuple[Equilibrium, list[Evened]]:
    """Return the tiers' equilibrium under the waits that neighbours see, and the settled cells of each tier.

    Parameters
    ----------
    network
        A network within capacity whose tiers all have sites.
    model
        Wait model of the tiers.
    """
    tiers = range(network.tiers)
    factor, moods = np.ones(network.tiers), [_Mood() for _ in tiers]
    point, settled = solve_equilibrium(network, queue=model), []
    for cells, moves in _ROUNDS:
        count = None if cells is None else min(cells, sample_size(network))
        samples = [sample_cells(network, point.cost_offset, s, count, point.served_area[s]) for s in tiers]
        demands = [_demand(network, point, s) for s in tiers]
        for _ in range(moves):
            found = [_settle(network, point, model, s, samples[s], demands[s], moods[s]) for s in tiers]
            settled = [each[0] for each in found]
            moods = _moods(network, point, demands, [each[2:] for each in found])
            factor = np.sqrt(factor * np.array([each[1] for each in found]))
            point = solve_equilibrium(network, queue=_Crowded(model, factor), start=point.advertised_wait)
    return point, settled


def _demand(network: TieredNetwork, point: Equilibrium, tier: int) -> _Demand:
    """Return the demand that a lone site of a tier meets among all others."""
    wait, service = float(point.advertised_wait[tier]), 1.0 / float(point.service_rate[tier])
    coefficient, exponent = network.delay_coefficient, network.delay_exponent
    radio = coefficient * (np.pi * network.site_density) ** (-0.5 * exponent)
    step = _FINEST * radio
    below = -np.geomspace(step, max(wait, 2.0 * step), _STEPS)[::-1]
    above = np.geomspace(step, 10.0 * (wait + radio) + 2.0 * service, _STEPS)
    shift = np.concatenate([below, [0.0], above])
    offset = np.vstack([point.cost_offset, point.cost_offset[tier] + shift[:, None]])
    density = np.append(network.tier_density, np.zeros(shift.size))
    area = association_per_density(density, offset, coefficient, exponent)
    load = area[network.tiers :] @ (network.type_probability * network.occupancy_time[tier])
    return _Demand(shift, np.log(np.maximum(load / max(load[_STEPS], 1e-300), 1e-300)))


def _settle(
    network: TieredNetwork,
    point: Equilibrium,
    model: WaitModel,
    tier: int,
    cells: CellSample,
    demand: _Demand,
    mood: _Mood,
) -> tuple[Evened, float, float, float]:
    """Return the settled cells of a tier, its factor, and the spread of its waits [s] and of its relative loads."""
    servers, service = float(network.concurrency[tier]), 1.0 / point.service_rate[tier]
    mean = min(float(point.utilization[tier]), _FULLEST) * servers
    work = network.request_intensity * network.type_probability * network.occupancy_time[tier]
    before = cells.area @ work
    typical = float(cells.weight @ before)
    if not (typical > 0.0 and mean > 0.0):
        return Evened(cells, before, np.ones(before.size), np.zeros(before.size)), 1.0, 0.0, 0.0
    level, wait = _wait_table(select(model, tier), servers, service)
    luck = np.log(mean) + _smoothed(before / typical, cells.weight, mood)

    def load(reference: float) -> FloatArray:
        # where radio costs little, demand turns within a small part of a step of the table
        turn = np.maximum(reference + demand.shift / mood.exposed, 0.0)
        every = np.append(wait, turn)
        loads = np.append(level, np.interp(turn, wait, level))
        order = np.argsort(loads, kind="stable")
        kept = np.interp(mood.exposed * (every[order] - reference), demand.shift, demand.log_ratio)
        needed = np.maximum.accumulate(np.log(loads[order]) - kept)
        return np.where(before > 0.0, np.exp(np.interp(luck, needed, np.log(loads[order]))), 0.0)

    usual = float(np.interp(mean, level, wait))
    reference = _rising_root(lambda x: float(cells.weight @ load(x)) - mean, _FARTHEST * max(usual, service))
    after = load(reference)
    own = np.interp(after, level, wait)
    gain = np.divide(after, before, out=np.ones(before.size), where=before > 0.0)
    factor = min(max(reference / usual, 1.0 / _STEEPEST), _STEEPEST) if usual > 0.0 else 1.0
    spread = [_deviation(x, cells.weight) for x in (own, after / mean)]
    return (
        Evened(cells, after, gain, mood.exposed * (own - reference)),
        factor,
        float(spread[0]),
        float(spread[1]),
    )


def _wait_table(model: WaitModel, servers: float, service: float) -> tuple[FloatArray, FloatArray]:
    """Return loads [servers] from next to nothing to next to capacity, and their mean waits [s]."""
    light, heavy = np.geomspace(1e-7, 0.2, 70), 1.0 - np.geomspace(0.03, 1e-7, 70)
    level = servers * np.concatenate([light[:-1], np.linspace(0.2, 0.97, 90)[:-1], heavy])
    normalised, _ = model.normalised_wait_and_slope(level, np.full(level.size, servers))
    return level, np.asarray(normalised) * service


def _rising_root(function: Callable[[float], float], end: float) -> float:
    """Return the root of a rising function in [0, end], or the end that is nearest to it."""
    if function(0.0) >= 0.0:
        return 0.0
    if function(end) <= 0.0:
        return end
    return float(brentq(function, 0.0, end, xtol=1e-12 * end, rtol=1e-10))


def _deviation(value: FloatArray, weight: FloatArray) -> float:
    """Return the standard deviation under weights of which a few may be negative."""
    square = float(weight @ (value - float(weight @ value)) ** 2)
    return float(np.sqrt(max(square, 0.0)))


def _smoothed(luck: FloatArray, weight: FloatArray, mood: _Mood) -> FloatArray:
    """Return the logarithm of the luck that routing has to even out: half of it regional, half local."""
    spread = np.sqrt(np.log1p(_deviation(luck, weight) ** 2))
    normal = ndtri((np.arange(1, luck.size + 1) * _GOLDEN) % 1.0)
    half, other = 0.5 * (mood.regional + mood.local), 0.5 * (mood.regional - mood.local)
    smoothed = np.maximum(luck, 0.0) ** half * np.exp(other * spread * normal)
    return np.asarray(np.log(np.maximum(smoothed / (weight @ smoothed), 1e-300)))


def _moods(
    network: TieredNetwork,
    point: Equilibrium,
    demands: list[_Demand],
    spreads: list[tuple[float, float]],
) -> list[_Mood]:
    """Return how each tier answers, given the spreads of waits and relative loads that were found."""
    attracted = attracted_load(network, point.advertised_wait, slopes=True)
    waits = np.array([wait for wait, _ in spreads])
    moods = []
    for s, (demand, (wait, load)) in enumerate(zip(demands, spreads, strict=True)):
        lost = demand.slope * attracted.work[s]
        rivals = attracted.work_slope[s] / lost if lost > 0.0 else np.zeros(network.tiers)
        rivals[s] = 0.0
        rivals[s] = max(1.0 - rivals.sum(), 0.0)
        followed = float(rivals @ np.minimum(waits / wait, 1.0)) if wait > 0.0 else 1.0
        feedback = demand.slope * wait / load if load > 0.0 else 0.0
        moods.append(_mood(feedback, min(followed, 1.0)))
    return moods


def _mood(feedback: float, followed: float) -> _Mood:
    """Return the answer of a tier by its feedback β and the share of its rivals that follow its waits."""
    exposed = [1.0 - (1.0 - _SOFTNESS * wave) * followed for wave in _WAVES]
    damped = [1.0 / (1.0 + feedback * u) for u in exposed]
    if feedback < 1e-6:
        return _Mood(0.5 * sum(exposed))
    together = 1.0 / np.sqrt(0.5 * (damped[0] ** 2 + damped[1] ** 2))
    return _Mood(float(together - 1.0) / feedback, float(together * damped[0]), float(together * damped[1]))
