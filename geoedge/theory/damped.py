"""The damped iteration of Eq. (36), the paper's own way to the fixed point, kept to show when it works.

`solve_equilibrium` does not use it: the largest damping η that converges shrinks to nothing as load grows, nobody
knows it beforehand, and a wait that no load below capacity causes has no next step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._fixed_point import Load, queue_functions
from geoedge.theory.association import attracted_load
from geoedge.theory.checks import checked_queue, checked_waits, shown
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel

__all__ = ["DampedHistory", "damped_iteration"]

FloatArray = NDArray[np.float64]


class DampedHistory(NamedTuple):
    """The trajectory of a damped iteration."""

    waits: FloatArray
    """Advertised waits before each step and after the last [s], shape (n + 1, S)."""
    caused: FloatArray
    """Mean waits Q(A(W)) that these cause [s], infinite where they overload a tier, shape (n + 1, S)."""
    residual_s: FloatArray
    """Largest difference between the two [s], shape (n + 1,). The step itself is η times as long, and no residual."""

    def settled(self, tolerance: float = 1e-6) -> int | None:
        """Return the first step from which the residual stays within a tolerance, or None if it does not.

        Parameters
        ----------
        tolerance
            Residual to stay below [s].
        """
        off = np.flatnonzero(~(self.residual_s <= tolerance))
        first = 0 if off.size == 0 else int(off[-1]) + 1
        return first if first < self.residual_s.size else None


def damped_iteration(
    network: TieredNetwork,
    damping: float,
    iterations: int,
    *,
    start: ArrayLike | None = None,
    overload_wait: float | None = None,
    queue: WaitModel | None = None,
) -> DampedHistory:
    """Iterate W ← (1 − η) W + η Q(A(W)), Eq. (36), and return all of its waits.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    damping
        Weight η of the new waits, in (0, 1].
    iterations
        Steps to take.
    start
        Advertised waits to start from [s], shape (S,); zero, as in the paper, if omitted.
    overload_wait
        Wait that stands for the infinite one of an overloaded tier [s], a penalty that makes the iteration swing.
        Without it the history ends where a tier with sites is overloaded, with an infinite residual.
    queue
        Wait model; `ErlangC` if omitted.

    Returns
    -------
    DampedHistory
        Waits, what they cause and the residuals; shorter than asked where it ends at an overload.

    Raises
    ------
    GeoEdgeError
        If the damping lies outside (0, 1], the number of steps is negative, waits are not finite and >= 0, or the
        queue is no wait model of these tiers.

    Examples
    --------
    >>> net = TieredNetwork([1.0], [2], [1.0], [[0.1]], [[1.0]], 1.0, 0.28, 2.0, [[0]], [1024], [0.1])
    >>> damped_iteration(net, 0.5, 3).waits.ravel().round(4).tolist()  # towards 1/3, half of the rest at a time
    [0.0, 0.1667, 0.25, 0.2917]
    """
    _check_steps(damping, iterations)
    wait = checked_waits(
        "damped_iteration", "start", np.zeros(network.tiers) if start is None else start, network.tiers
    )
    stand_in = np.inf
    if overload_wait is not None:
        stand_in = float(checked_waits("damped_iteration", "overload_wait", [overload_wait], 1)[0])
    model = checked_queue("damped_iteration", queue, network.concurrency)
    if isinstance(model, QueueOfMix):
        msg = "damped_iteration: `queue` is a rule of the mixture, but must be a wait model; give what its `for_mix` returns"
        raise GeoEdgeError(msg)
    waits, caused = [wait], [_caused(network, wait, model)]
    for _ in range(iterations):
        new = np.where(np.isinf(caused[-1]), stand_in, caused[-1])
        if np.isinf(new).any():
            break
        wait = (1.0 - damping) * wait + damping * new
        waits.append(wait)
        caused.append(_caused(network, wait, model))
    residual = np.array([np.abs(c - w).max() for c, w in zip(caused, waits, strict=True)])
    return DampedHistory(np.array(waits), np.array(caused), residual)


def _caused(network: TieredNetwork, wait: FloatArray, model: WaitModel) -> FloatArray:
    """Return the mean waits Q(A(W)) that advertised waits cause, Eqs. (33, 34).

    An empty tier causes none, whatever a lone site of it would have to carry: nobody suffers it.
    """
    load = Load.of(network, network.request_intensity, *attracted_load(network, wait)[:3])
    servers = network.concurrency.astype(np.float64)
    full = load.offered >= servers
    normalised, _ = queue_functions(model)[0](np.where(full, 0.0, load.offered), servers)
    caused = np.where(full, np.inf, normalised * load.service)
    return np.where(network.tier_density > 0.0, caused, 0.0)


def _check_steps(damping: float, iterations: int) -> None:
    """Say in one line what is wrong with the number of steps or their size."""
    if not isinstance(damping, int | float | np.number) or not 0.0 < damping <= 1.0:
        msg = f"damped_iteration: `damping` is {shown(damping)}, but must be a number in (0, 1]"
        raise GeoEdgeError(msg)
    if not isinstance(iterations, int | np.integer) or iterations < 0:
        msg = (
            f"damped_iteration: `iterations` is {shown(iterations)}, but must be a whole number of at least 0"
        )
        raise GeoEdgeError(msg)
