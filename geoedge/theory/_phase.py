"""The M/PH/c queue by matrix-analytic methods: its mean wait at one load, and the tail of its wait.

While all c servers are busy, the state is how many of them are in which phase. Let S₀ hold the rates of its changes
without a departure and S₁ those with one, the next request starting at once. With n requests present, n ≥ c, the
stationary vectors are π_c R^{n−c}, where R solves λI + R (S₀ − λI) + R² S₁ = 0; below c they follow level by
level. The age of the last request to have started rises at unit rate and falls by interarrival times at
departures, so that its density is a matrix exponential of T = S₀ + R S₁ (Sengupta 1989; Asmussen and Møller 2001).
For Poisson arrivals this gives P(W > t) = π_c e^{Tt} (−T)⁻¹ S₁ 1. All that is multiplied is nonnegative.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.linalg import expm

from geoedge.compiled import kernel

__all__ = ["Levels", "WaitTail", "block_size", "levels_of", "mean_wait_at", "tail_at"]

FloatArray = NDArray[np.float64]

_REDUCTIONS = 60  # each doubles how far up the queue it has seen
_STEPS = 32  # points an octave of time
_OCTAVES = 80
_NOTHING = 1e-40  # share of those who wait that is as good as none
_SETTLED = 1e-11  # change of the decay rate over an octave after which the tail is one exponential


@dataclass(frozen=True, eq=False)
class Levels:
    """Rates of a service of unit mean at 0 to c busy servers.

    Attributes
    ----------
    inside
        Rates without departure or arrival, the diagonal included, by number of busy servers.
    down
        Rates of departures, from n to n − 1; the first is empty.
    up
        Probabilities by which an arrival leads from n to n + 1, for n < c.
    """

    inside: tuple[FloatArray, ...]
    down: tuple[FloatArray, ...]
    up: tuple[FloatArray, ...]

    @property
    def servers(self) -> int:
        """Number c of servers."""
        return len(self.up)

    @property
    def leaving(self) -> FloatArray:
        """S₁: departures with all servers busy, the next request starting at once."""
        return np.asarray(self.down[-1] @ self.up[-1])


def block_size(phases: int, servers: int) -> int:
    """Return in how many ways so many busy servers can be spread over the phases."""
    return comb(servers + phases - 1, phases - 1)


def levels_of(start: FloatArray, rates: FloatArray, servers: int) -> Levels:
    """Return the rates of c servers with phase-type service.

    Parameters
    ----------
    start
        Probability to start in each phase, shape (m,).
    rates
        Rates between phases, the diagonal being minus the rate of leaving each, shape (m, m).
    servers
        Number c of servers.
    """
    phases = start.size
    done = -rates.sum(axis=1)
    counts = [_counts(phases, n) for n in range(servers + 1)]
    places = [{row: i for i, row in enumerate(rows)} for rows in counts]
    inside, down, up = [], [], []
    for n, rows in enumerate(counts):
        within = np.zeros((len(rows), len(rows)))
        out = np.zeros((len(rows), len(counts[n - 1]) if n else 0))
        more = np.zeros((len(rows), len(counts[n + 1]) if n < servers else 0))
        for i, row in enumerate(rows):
            within[i, i] = sum(k * rates[p, p] for p, k in enumerate(row))
            for p in range(phases):
                if n < servers:
                    more[i, places[n + 1][_shifted(row, p, 1)]] = start[p]
                if not row[p]:
                    continue
                out[i, places[n - 1][_shifted(row, p, -1)]] = row[p] * done[p]
                for q in range(phases):
                    if q != p:
                        within[i, places[n][_shifted(_shifted(row, p, -1), q, 1)]] += row[p] * rates[p, q]
        inside.append(within)
        down.append(out)
        up.append(more)
    return Levels(tuple(inside), tuple(down), tuple(up[:-1]))


def _counts(phases: int, busy: int) -> list[tuple[int, ...]]:
    """Return all ways to spread busy servers over the phases."""
    spread = combinations_with_replacement(range(phases), busy)
    return [tuple(row.count(p) for p in range(phases)) for row in spread]


def _shifted(row: tuple[int, ...], phase: int, by: int) -> tuple[int, ...]:
    return (*row[:phase], row[phase] + by, *row[phase + 1 :])


@kernel
def _inverse(rates: FloatArray, leaving: FloatArray) -> FloatArray:
    """Return (diag(leaving + Σ rates) − rates)⁻¹ without a subtraction, so that all digits are kept.

    `rates` lead from state to state, `leaving` out of them all: entry (i, j) is the time spent in j on the way out
    from i. States are taken out one by one, and their rates passed on (Grassmann, Taksar and Heyman 1985). The
    diagonal of `rates` is not looked at.
    """
    n = leaving.size
    flow, out, known = rates.copy(), leaving.copy(), np.eye(n)
    total = np.zeros(n)
    for k in range(n - 1, -1, -1):
        total[k] = out[k] + flow[k, :k].sum()
        for i in range(k):
            share = flow[i, k] / total[k]
            if share > 0.0:
                out[i] += share * out[k]
                for j in range(k):
                    flow[i, j] += share * flow[k, j]
                for j in range(k, n):
                    known[i, j] += share * known[k, j]
    for k in range(n):
        for j in range(k):
            for column in range(n):
                known[k, column] += flow[k, j] * known[j, column]
        known[k] /= total[k]
    return known


def _repeating(levels: Levels, load: float) -> tuple[FloatArray, FloatArray]:
    """Return R and T of a load, by logarithmic reduction (Latouche and Ramaswami 1993)."""
    still, leaving = levels.inside[-1], levels.leaving
    departures = leaving.sum(axis=1)
    start = _inverse(still, load + departures)
    rise, fall = load * start, start @ leaving
    first, reach = fall, rise
    for _ in range(_REDUCTIONS):
        up, down = rise @ rise, fall @ fall
        both = _inverse(rise @ fall + fall @ rise, up.sum(axis=1) + down.sum(axis=1))
        rise, fall = both @ up, both @ down
        first = first + reach @ fall
        reach = reach @ rise
        if reach.sum(axis=1).max() < 1e-16:
            break
    ratio = load * _inverse(still + load * first, departures)
    return ratio, still + ratio @ leaving


def _all_busy(levels: Levels, load: float, ratio: FloatArray) -> FloatArray:
    """Return π_c, the probabilities of all servers busy and nobody waiting."""
    below, total = np.zeros((1, 0)), np.zeros(0)
    for n in range(levels.servers):
        rates = levels.inside[n] + (below @ (load * levels.up[n - 1]) if n else 0.0)
        total = 1.0 + (below @ total if n else np.zeros(1))
        # from here the process, watched at this level and above, leaves upwards alone
        below = levels.down[n + 1] @ _inverse(rates, np.full(len(rates), load))
    rates = levels.inside[-1] + below @ (load * levels.up[-1]) + ratio @ levels.leaving
    weight = np.linalg.solve(np.eye(len(ratio)) - ratio, np.ones(len(ratio))) + below @ total
    busy = np.append(1.0, rates[0, 1:] @ _inverse(rates[1:, 1:].copy(), rates[1:, 0].copy()))
    return np.asarray(busy / (busy @ weight))


def mean_wait_at(levels: Levels, load: float) -> float:
    """Return the mean wait in mean service times at a load [servers] below c."""
    ratio, drift = _repeating(levels, load)
    busy = _all_busy(levels, load, ratio)
    left = np.linalg.solve(drift, levels.leaving.sum(axis=1))
    return float(busy @ np.linalg.solve(drift, left))


@dataclass(frozen=True, eq=False)
class WaitTail:
    """P(W > t) at one load, t in mean service times: a spline of its logarithm, and an exponential beyond.

    Attributes
    ----------
    log_tail
        Spline of log P(W > t), from zero to `last`.
    last
        Where the exponential begins.
    decay
        Its rate.
    """

    log_tail: CubicHermiteSpline
    last: float
    decay: float

    def __call__(self, time: FloatArray) -> FloatArray:
        """Return P(W > t), for t ≥ 0."""
        inside = np.minimum(time, self.last)
        return np.asarray(np.exp(self.log_tail(inside) - self.decay * (time - inside)))


def tail_at(levels: Levels, load: float) -> WaitTail:
    """Return the tail of the wait at a load [servers] below c, accurate to about 1e-8 relative.

    Octaves of time have equal numbers of points, as modes of the wait are from one to many services long.
    """
    ratio, drift = _repeating(levels, load)
    row = _all_busy(levels, load, ratio)
    leave = levels.leaving.sum(axis=1)
    column = np.linalg.solve(-drift, leave)
    step = 0.25 / _STEPS / np.abs(np.diag(drift)).max()
    time, moved = 0.0, expm(drift * step)
    times, tails, falls, before = [], [], [], 0.0
    for octave in range(_OCTAVES):
        for _ in range(_STEPS):
            times.append(time)
            tails.append(float(row @ column))
            falls.append(float(row @ leave))
            row = row @ moved
            time += step
        decay = falls[-1] / tails[-1]
        if (octave and abs(decay - before) <= _SETTLED * decay) or tails[-1] < _NOTHING * tails[0]:
            break
        before = decay
        # the first octave has no other before it: its steps are used twice
        step, moved = (2.0 * step, moved @ moved) if octave else (step, moved)
    logs, slopes = np.log(tails), -np.array(falls) / np.array(tails)
    return WaitTail(CubicHermiteSpline(times, logs, slopes), times[-1], decay)
