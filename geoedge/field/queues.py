"""The queue curves of the field: what a load costs in wait, and the way back; and small linear systems.

M/M/c has compiled kernels, as it is asked for hundreds of times on the way to an equilibrium; any other queue, and
a class derived from `ErlangC`, goes the vectorised way of its `WaitModel`. Both are continued beyond capacity alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from geoedge.compiled import kernel
from geoedge.theory.protocols import WaitModel
from geoedge.theory.queueing import ErlangC

__all__ = [
    "BACKLOG_S",
    "NEARLY_FULL",
    "Curve",
    "curve_of",
    "eliminate",
    "queue_curve",
    "queue_inverse",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NEARLY_FULL = 0.999
"""Utilisation beyond which a queue is described by its backlog."""
BACKLOG_S = 1e4
"""How long a backlog has grown [s]: at utilisation ρ it makes everybody wait (ρ − 1) times that."""
INVERSE_STEPS = 100
"""Most steps of the inversion of a queue curve; bisection alone would need about 60."""


@kernel
def _curve(load: float, servers: int) -> tuple[float, float]:
    """Return h(a) = C(c, a)/(c − a) and its logarithmic derivative, for 0 < a < c."""
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = load * blocking / (k + load * blocking)
    rest = servers - load
    below = rest + load * blocking
    growth = servers / load - 1.0 + blocking
    slope = growth + 1.0 / rest + (1.0 - blocking - load * blocking * growth) / below
    return servers * blocking / (rest * below), slope


@kernel
def queue_curve(load: Floats, servers: Ints, occupancy: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the mean wait of a queue, Eq. (19), continued beyond capacity, and its derivatives.

    Up to `NEARLY_FULL` of capacity the wait is that of the M/M/c queue, h(a) times the mean occupancy. Beyond, it
    goes on as a straight line: the wait that a backlog has grown to after `BACKLOG_S`. So an overloaded network
    has an answer too, in which the sites that can relieve each other are overloaded alike.

    Parameters
    ----------
    load
        Offered load a = λ/μ, shape (n,).
    servers
        Concurrency c, shape (n,).
    occupancy
        Mean time that a request holds a server [s], shape (n,).

    Returns
    -------
    wait, by_load, by_occupancy
        Wait [s], and its derivatives by the load [s] and by the occupancy, each of shape (n,).
    """
    wait, by_load, by_occupancy = np.zeros(load.size), np.zeros(load.size), np.zeros(load.size)
    for i in range(load.size):
        if not load[i] > 0.0:
            by_load[i] = occupancy[i] if servers[i] == 1 else 0.0
            continue
        full = NEARLY_FULL * servers[i]
        value, relative = _curve(min(load[i], full), servers[i])
        wait[i], by_occupancy[i] = value * occupancy[i], value
        by_load[i] = wait[i] * relative
        if load[i] > full:
            by_load[i] = BACKLOG_S / servers[i]
            wait[i] += by_load[i] * (load[i] - full)
    return wait, by_load, by_occupancy


@kernel
def queue_inverse(wait: Floats, servers: Ints, occupancy: Floats, guess: Floats) -> Floats:
    """Return the offered load at which `queue_curve` gives a wait, shape (n,).

    Newton on the logarithm of the wait, kept inside a bracket.

    Parameters
    ----------
    wait
        Mean wait [s], finite and nonnegative, shape (n,).
    servers
        Concurrency c, shape (n,).
    occupancy
        Mean time that a request holds a server [s], shape (n,).
    guess
        Where to start, shape (n,).
    """
    load = np.zeros(wait.size)
    for i in range(wait.size):
        if not wait[i] > 0.0:
            continue
        low, high = 0.0, NEARLY_FULL * servers[i]
        most = _curve(high, servers[i])[0] * occupancy[i]
        if wait[i] >= most:
            load[i] = high + (wait[i] - most) * servers[i] / BACKLOG_S
            continue
        a = guess[i] if low < guess[i] < high else 0.5 * high
        target = np.log(wait[i] / occupancy[i])
        for _ in range(INVERSE_STEPS):
            value, relative = _curve(a, servers[i])
            miss = np.log(value) - target if value > 0.0 else -np.inf
            low, high = (low, a) if miss > 0.0 else (a, high)
            after = a - miss / relative
            if not low < after < high:
                after = 0.5 * (low + high)
            settled = abs(after - a) <= 1e-14 * servers[i]
            a = after
            if settled:
                break
        load[i] = a
    return load


class Curve(Protocol):
    """What a load costs in wait, and the way back, as `queue_curve` and `queue_inverse` say."""

    def wait(self, load: Floats, servers: Ints, occupancy: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the wait [s], and its derivatives by the load [s] and by the occupancy, each of shape (n,)."""

    def load(self, wait: Floats, servers: Ints, occupancy: Floats, guess: Floats) -> Floats:
        """Return the offered load at which the wait is this one, shape (n,)."""


class _ErlangCurve:
    """The compiled curve of M/M/c."""

    wait = staticmethod(queue_curve)
    load = staticmethod(queue_inverse)


@dataclass(frozen=True)
class _ModelCurve:
    """The curve of any wait model."""

    queue: WaitModel

    def wait(self, load: Floats, servers: Ints, occupancy: Floats) -> tuple[Floats, Floats, Floats]:
        full = NEARLY_FULL * servers
        value, slope = self.queue.normalised_wait_and_slope(np.minimum(load, full), servers)
        beyond = np.maximum(load - full, 0.0) * BACKLOG_S / servers
        by_load = np.where(load > full, BACKLOG_S / servers, slope * occupancy)
        return value * occupancy + beyond, by_load, np.asarray(value, dtype=np.float64)

    def load(self, wait: Floats, servers: Ints, occupancy: Floats, guess: Floats) -> Floats:
        full = NEARLY_FULL * servers
        most = self.queue.normalised_wait_and_slope(full, servers)[0] * occupancy
        inside = self.queue.offered_load_for_wait(np.minimum(wait, most) / occupancy, servers)
        return np.where(wait >= most, full + (wait - most) * servers / BACKLOG_S, inside)


def curve_of(queue: WaitModel) -> Curve:
    """Return the curve of a wait model.

    Parameters
    ----------
    queue
        Wait model of the sites, or groups, that the curve will be asked for.
    """
    return _ErlangCurve() if type(queue) is ErlangC else _ModelCurve(queue)


@kernel
def eliminate(matrix: Floats, target: Floats) -> Floats:
    """Solve a linear system by Gaussian elimination with row pivots, overwriting both arguments; return the solution.

    For some hundreds of unknowns that is as fast as a threaded library, whose threads get in each other's way
    here and whose last digits depend on their number.

    Parameters
    ----------
    matrix
        Shape (n, n).
    target
        Shape (n,).
    """
    n = target.size
    for k in range(n):
        pivot = k + np.argmax(np.abs(matrix[k:, k]))
        if pivot != k:
            for j in range(k, n):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
            target[k], target[pivot] = target[pivot], target[k]
        for i in range(k + 1, n):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    matrix[i, j] -= factor * matrix[k, j]
                target[i] -= factor * target[k]
    for k in range(n - 1, -1, -1):
        total = target[k]
        for j in range(k + 1, n):
            total -= matrix[k, j] * target[j]
        target[k] = total / matrix[k, k]
    return target
