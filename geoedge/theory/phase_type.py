"""Phase-type service, and the M/PH/c queue that goes with it, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.special import gammainc, gammaincc, gammainccinv, gammaincinv, gammaln

from geoedge.errors import GeoEdgeError
from geoedge.theory._phase import Levels, WaitTail, block_size, levels_of, mean_wait_at, tail_at
from geoedge.theory._scale_free import RatioCurves, ScaleFreeQueue, load_by_load
from geoedge.theory.queueing import log_wait_and_elasticity
from geoedge.theory.queues import balanced_rates

__all__ = ["PhaseType", "PhaseTypeQueue", "unit_quantile"]

FloatArray = NDArray[np.float64]

_LEAST_SCV, _LARGEST_SCV = 0.02, 25.0
_LARGEST_BLOCK = 150  # states of all busy servers; a load costs the cube of it
_CLOSEST = 1e-5  # 1 − ρ below which the tail is that at 1e-5 on a longer clock, heavy traffic having set in
_MARKS = (1e-30, 200.0)  # between which a unit-exponential draw lies, for all that a double can hold
_KNOTS = 8193
_STEPS = 100
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class PhaseType:
    """A service that goes through phases of exponential length, scaled to unit mean.

    Parameters
    ----------
    start
        Probability to start in each phase, length m.
    rates
        Rates between phases, the diagonal being minus the rate of leaving each, m rows of m; any unit.

    Raises
    ------
    GeoEdgeError
        If the probabilities do not add up to one, the rates are no such matrix, or the service may never end.
    """

    start: tuple[float, ...]
    rates: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        """Scale to unit mean, or say what is wrong."""
        start, rates = np.array(self.start, dtype=np.float64), np.array(self.rates, dtype=np.float64)
        if start.ndim != 1 or rates.shape != (start.size, start.size):
            msg = f"PhaseType: `rates` must have shape {2 * start.shape}, not {rates.shape}"
            raise GeoEdgeError(msg)
        if not ((start >= 0.0).all() and abs(float(start.sum()) - 1.0) <= 1e-9):
            msg = f"PhaseType: `start` must be probabilities that add up to 1, not {start.tolist()}"
            raise GeoEdgeError(msg)
        moved = rates - np.diag(np.diag(rates))
        done = -rates.sum(axis=1)
        if not ((moved >= 0.0).all() and (done >= -1e-12 * np.abs(np.diag(rates))).all()):
            msg = f"PhaseType: `rates` must be >= 0 off the diagonal with rows that add up to <= 0, not {rates.tolist()}"
            raise GeoEdgeError(msg)
        mean = float(-(start @ np.linalg.pinv(rates)).sum())
        if np.linalg.matrix_rank(rates) < start.size or not 0.0 < mean < np.inf:
            msg = "PhaseType: the service never ends in some phase; give every phase a way out"
            raise GeoEdgeError(msg)
        object.__setattr__(self, "start", tuple((start / start.sum()).tolist()))
        object.__setattr__(self, "rates", tuple(map(tuple, (rates * mean).tolist())))

    @classmethod
    def of_scv(cls, scv: float) -> PhaseType:
        """Return the usual law of a squared coefficient of variation, of unit mean.

        Above 1 it is a mixture of two exponentials with balanced means; below, of k − 1 and k phases in series, of
        equal rates, k being the least number that reaches it (Tijms 1986), so two phases from 1/2 on.

        Parameters
        ----------
        scv
            Squared coefficient of variation, in [0.02, 25].

        Raises
        ------
        GeoEdgeError
            If it is out of range.
        """
        _require_scv(scv)
        if scv > 1.0:
            share, fast, slow = balanced_rates(scv)
            return cls((share, 1.0 - share), ((-fast, 0.0), (0.0, -slow)))
        stages, skip, rate = _erlang_mixture(scv)
        start = np.zeros(stages)
        start[: min(stages, 2)] = (1.0 - skip, skip)[: min(stages, 2)]
        rates = rate * (np.eye(stages, k=1) - np.eye(stages))
        return cls(tuple(start.tolist()), tuple(map(tuple, rates.tolist())))

    @property
    def scv(self) -> float:
        """Squared coefficient of variation."""
        start, rates = np.array(self.start), np.array(self.rates)
        once = np.linalg.solve(rates, np.ones(start.size))
        return float(2.0 * start @ np.linalg.solve(rates, once)) - 1.0


def _require_scv(scv: float) -> None:
    if not _LEAST_SCV <= scv <= _LARGEST_SCV:
        msg = (
            f"PhaseType: `scv` must lie in [{_LEAST_SCV:g}, {_LARGEST_SCV:g}], not {scv}; "
            "below it, take a deterministic service"
        )
        raise GeoEdgeError(msg)


def _erlang_mixture(scv: float) -> tuple[int, float, float]:
    """Return the stages k, the probability of one stage less, and the rate, of unit mean, for scv ≤ 1."""
    stages = int(np.ceil(1.0 / scv - 1e-12))
    root = max(stages * (1.0 + scv) - stages * stages * scv, 0.0) ** 0.5
    skip = max((stages * scv - root) / (1.0 + scv), 0.0) if stages > 1 else 0.0
    return stages, skip, stages - skip


def unit_quantile(scv: float, mark: ArrayLike) -> FloatArray:
    """Turn unit-exponential draws into draws of `PhaseType.of_scv`, of unit mean, by its quantiles.

    Larger marks give longer services under every law, so that laws are compared on common random numbers.

    Parameters
    ----------
    scv
        Squared coefficient of variation, in [0.02, 25].
    mark
        Unit-exponential draws, any shape.

    Raises
    ------
    GeoEdgeError
        If the scv is out of range.
    """
    _require_scv(scv)
    marks = np.asarray(mark, dtype=np.float64)
    logs = np.log(np.clip(marks, *_MARKS))
    return np.where(marks > 0.0, np.exp(_log_quantile(scv)(logs)), 0.0)[()]


@lru_cache(maxsize=64)
def _log_quantile(scv: float) -> CubicHermiteSpline:
    """Return a spline of the log of the unit service by the log of its mark, good to about 1e-10."""
    low, high = np.log(_MARKS)
    target = np.linspace(float(low), float(high), _KNOTS)
    theta = target.copy()
    if scv < 1.0:
        mark, shape = np.exp(target), 1.0 / scv
        with np.errstate(over="ignore"):
            early, late = gammaincinv(shape, -np.expm1(-mark)), gammainccinv(shape, np.exp(-mark))
        theta = np.log(scv * np.where(mark < 0.7, early, late))
    for _ in range(_STEPS):  # Newton on the log of the hazard against log time, an almost straight line
        time = np.exp(theta)
        hazard, rate = _hazard(scv, time)
        slope = rate * time / hazard
        step = (target - np.log(hazard)) / slope
        theta = theta + step
        if (np.abs(step) <= 1e-9).all():
            break
    return CubicHermiteSpline(target, theta, 1.0 / slope)


def _hazard(scv: float, time: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return −log P(S > t) of `PhaseType.of_scv` and its derivative."""
    if scv > 1.0:
        share, fast, slow = balanced_rates(scv)
        early, late = share * np.exp(-(fast - slow) * time), 1.0 - share
        lost = share * -np.expm1(-(fast - slow) * time)
        return slow * time - np.log1p(-lost), (fast * early + slow * late) / (early + late)
    stages, skip, rate = _erlang_mixture(scv)
    if stages == 1:
        return time, np.ones_like(time)
    clock = rate * time
    last = np.exp((stages - 1) * np.log(clock) - clock - gammaln(stages))
    before = last * (stages - 1) / clock
    long = gammaincc(stages, clock)
    survived = long - skip * last
    ended = gammainc(stages, clock) + skip * last
    hazard = np.where(ended < 0.5, -np.log1p(-np.minimum(ended, 0.5)), -np.log(np.maximum(survived, _TINY)))
    return hazard, rate * ((1.0 - skip) * last + skip * before) / survived


@dataclass(frozen=True)
class PhaseTypeQueue(ScaleFreeQueue):
    """The M/PH/c queue, exactly, by matrix-analytic methods (`geoedge.theory._phase`).

    The ratio of its mean wait to that of M/M/c is fitted by Chebyshev polynomials of the utilisation, once for each
    concurrency, to about 1e-11; a distribution is computed for each load that is asked for, to about 1e-8, and kept.

    Parameters
    ----------
    service
        Law of the service; its mean does not matter.

    Raises
    ------
    GeoEdgeError
        When a concurrency is asked for whose busy servers have more than 150 states: 149 servers with two phases,
        15 with three, 8 with four.
    """

    service: PhaseType

    @classmethod
    def of_scv(cls, scv: float) -> PhaseTypeQueue:
        """Return the queue whose service is `PhaseType.of_scv`.

        Parameters
        ----------
        scv
            Squared coefficient of variation, in [0.02, 25].
        """
        return cls(PhaseType.of_scv(scv))

    def _curve(
        self, load: FloatArray, servers: FloatArray, slack: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        log_wait, elasticity = log_wait_and_elasticity(load, servers, slack)
        utilization = load / servers
        ratio, slope = _curves(self.service)(utilization, servers)
        return log_wait + ratio, elasticity + utilization * slope

    def _tail(self, time: FloatArray, load: FloatArray, servers: FloatArray) -> FloatArray:
        return load_by_load(self._one_tail, time, load, servers)

    def _one_tail(self, time: FloatArray, load: float, servers: int) -> FloatArray:
        slack = servers - load
        closest = _CLOSEST * servers
        if slack < closest:
            return _tail(self.service, servers - closest, servers)(time * (slack / closest))
        return _tail(self.service, load, servers)(time)


@lru_cache(maxsize=64)
def _curves(service: PhaseType) -> RatioCurves:
    """Return the curves of a service, shared by all queues that have it."""

    def log_ratio(utilization: float, servers: int) -> float:
        load = np.array(utilization * servers)
        wait = mean_wait_at(_levels(service, servers), float(load))
        log_wait, _ = log_wait_and_elasticity(load, np.array(float(servers)), servers - load)
        return float(np.log(wait) - log_wait)

    return RatioCurves(log_ratio, lambda _: (0.0, 1.0), 1e-11)


@lru_cache(maxsize=64)
def _levels(service: PhaseType, servers: int) -> Levels:
    """Return the rates of so many servers, if they are not too many."""
    states = block_size(len(service.start), servers)
    if states > _LARGEST_BLOCK:
        msg = (
            f"PhaseTypeQueue: {servers} servers of {len(service.start)} phases have {states} states, at most "
            f"{_LARGEST_BLOCK} are computed; use TwoMomentQueue({service.scv:.3g}) there"
        )
        raise GeoEdgeError(msg)
    return levels_of(np.array(service.start), np.array(service.rates), servers)


@lru_cache(maxsize=4096)
def _tail(service: PhaseType, load: float, servers: int) -> WaitTail:
    return tail_at(_levels(service, servers), load)
