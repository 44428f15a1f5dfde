"""The load-association fixed point of Eqs. (33, 34, 36): waits shape the choice, the choice shapes the waits.

Damped iteration needs a damping that nobody knows and that shrinks to nothing as load grows. Here the state is the
load v that each tier is believed to carry, with the wait h_c(v) that goes with it, and Newton's method makes the
load that these waits attract equal to it. A lightly loaded tier is stepped in its load, where the problem is
almost linear; a heavily loaded one in its wait, where it is too, and where an overload is nothing special. Should
that fail, the intensity is raised from a small one along the path of equilibria.

A stable load-aware point exists below `TieredNetwork.sufficient_intensity`, and none from `necessary_intensity` on.
Between them the exact end of the path is the load at which all tiers fill together: with waits far above everything
else only their differences steer, and these settle so that no tier is relatively fuller than another. That is
`Equilibrium.critical_intensity`, an argument that stable points found right up to it bear out, not a proof. The stable point is known to be unique where service times do not depend on the
type, as it then minimises a convex potential; for others no second point has been seen, but none is excluded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._fixed_point import FixedPointSolver, Load, shares
from geoedge.theory.network import TieredNetwork
from geoedge.theory.queueing import ErlangC, WaitModel

__all__ = ["POLICIES", "Equilibrium", "Policy", "solve_equilibrium"]

FloatArray = NDArray[np.float64]
Policy = Literal["load_aware", "prefix_only", "nearest"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Who serves what, and how long they wait, in a `TieredNetwork` under one policy.

    Attributes
    ----------
    network, policy, queue
        What was solved.
    advertised_wait
        Waits that enter the choice [s], shape (S,); zero unless the policy is load-aware. Without a stable point
        they are the differences that fill all tiers alike, the least being zero.
    mean_wait
        Mean waits W̄_s that requests suffer [s], shape (S,); infinite at overloaded tiers.
    cost_offset
        β_{s,q} of the choice [s], shape (S, Q).
    served_area
        A/λ [km²], shape (S, Q).
    site_arrival_rate
        Requests per site λ^q_s, Eq. (15) [1/s], shape (S,); for an empty tier those of a lone site.
    service_rate
        Service rate μ_s of one server, Eq. (16) [1/s], shape (S,).
    utilization
        ρ_s, Eq. (17), shape (S,).
    critical_intensity
        Where the solver had to find it, the intensity from which no load-aware point is stable [1/(s km²)].
    residual_s
        Largest difference between an advertised wait and the wait that it causes [s]; infinite without a stable
        point, zero for policies that look at no wait.
    residual_utilization
        The same as a difference of utilisations.
    iterations
        Newton steps taken.
    """

    network: TieredNetwork
    policy: Policy
    queue: WaitModel
    advertised_wait: FloatArray
    mean_wait: FloatArray
    cost_offset: FloatArray
    served_area: FloatArray
    site_arrival_rate: FloatArray
    service_rate: FloatArray
    utilization: FloatArray
    critical_intensity: float | None
    residual_s: float
    residual_utilization: float
    iterations: int

    @property
    def association(self) -> FloatArray:
        """Probability A_{s,q} that tier s serves a request of type q, shape (S, Q)."""
        return self.network.tier_density[:, None] * self.served_area

    @property
    def overloaded(self) -> NDArray[np.bool_]:
        """Tiers to blame: those with sites whose utilisation reaches one, shape (S,)."""
        return (self.utilization >= 1.0) & (self.network.tier_density > 0.0)

    @property
    def beyond_capacity(self) -> bool:
        """Whether the policy is load-aware and no stable point exists, so that every tier fills up."""
        return (
            self.critical_intensity is not None and self.network.request_intensity >= self.critical_intensity
        )

    @property
    def converged(self) -> bool:
        """Whether the fixed point was found, or found not to exist."""
        return self.residual_utilization <= 1e-6 or self.beyond_capacity

    @property
    def stable(self) -> bool:
        """Whether every tier that has sites can carry its load."""
        return not bool(self.overloaded.any())


def solve_equilibrium(
    network: TieredNetwork,
    policy: Policy = "load_aware",
    *,
    queue: WaitModel | None = None,
    start: ArrayLike | None = None,
    tolerance: float = 1e-11,
    max_iterations: int = 2000,
) -> Equilibrium:
    """Solve the fixed point of waits and association, Eq. (34).

    Parameters
    ----------
    network
        Tiers, requests and their times.
    policy
        ``"load_aware"`` (Eq. 21), ``"prefix_only"`` (waits taken as zero in the choice alone) or ``"nearest"``
        (the nearest site of any profile).
    queue
        Wait model; `ErlangC` if omitted.
    start
        Advertised waits to start from [s], shape (S,), such as those of a neighbouring network.
    tolerance
        Relative residual of the loads at which to stop.
    max_iterations
        Newton steps, over the whole path, after which the end of the path is taken for the end of stability.

    Returns
    -------
    Equilibrium
        The solved point. Where none is stable it is flagged, its overloaded tiers are named, and their waits are
        infinite; it is never an error.

    Raises
    ------
    GeoEdgeError
        If the policy is unknown, or `start` does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> net = TieredNetwork([1.0], [2], [1.0], [[0.1]], [[1.0]], 1.0, 0.28, 2.0, [[0]], [1024], [0.1])
    >>> solve_equilibrium(net).mean_wait.round(9).tolist()  # M/M/2 at half load: 1/3 service time
    [0.333333333]
    """
    if policy not in POLICIES:
        msg = f"solve_equilibrium: `policy` is {policy!r}, but must be one of {', '.join(POLICIES)}"
        raise GeoEdgeError(msg)
    model = ErlangC() if queue is None else queue
    if policy != "load_aware":
        offset = network.prefill_time if policy == "prefix_only" else np.zeros_like(network.prefill_time)
        return _answer(network, policy, model, np.zeros(network.tiers), offset)
    solver = FixedPointSolver(network, model, tolerance, max_iterations)
    waits, critical = solver.solve(None if start is None else _checked_start(start, network.tiers))
    answer = _answer(network, policy, model, waits, network.prefill_time + waits[:, None], critical)
    return replace(answer, iterations=solver.iterations)


def _checked_start(start: ArrayLike, tiers: int) -> FloatArray:
    """Return starting waits as an array, or say in one line what is wrong with them."""
    waits = np.asarray(start, dtype=np.float64)
    if waits.shape != (tiers,) or not (np.isfinite(waits) & (waits >= 0.0)).all():
        msg = f"solve_equilibrium: `start` must be {tiers} finite waits >= 0 s, not {waits.tolist()}"
        raise GeoEdgeError(msg)
    return waits


def _answer(
    network: TieredNetwork,
    policy: Policy,
    queue: WaitModel,
    advertised: FloatArray,
    offset: FloatArray,
    critical: float | None = None,
) -> Equilibrium:
    """Evaluate what a choice by these offsets leads to."""
    area, _ = shares(network, offset, slopes=False)
    load = Load.of(network, network.request_intensity, area)
    utilization = load.offered / network.concurrency
    lost = critical is not None and network.request_intensity >= critical
    if lost:  # all tiers are equally full up to rounding, which must not make one of them look stable
        utilization = np.where(network.tier_density > 0.0, np.maximum(utilization, 1.0), utilization)
    full = utilization >= 1.0
    inside = np.where(full, 0.0, load.offered)
    normalised, _ = queue.normalised_wait_and_slope(inside, network.concurrency)
    wait = np.where(full, np.inf, normalised * load.service)
    residual, residual_utilization = 0.0, 0.0
    if lost:
        residual = residual_utilization = float("inf")
    elif policy == "load_aware":
        believed = queue.offered_load_for_wait(advertised / load.service, network.concurrency)
        residual = float(np.abs(wait - advertised).max())
        residual_utilization = float(np.abs(believed / network.concurrency - utilization).max())
    return Equilibrium(
        network=network,
        policy=policy,
        queue=queue,
        advertised_wait=advertised,
        mean_wait=wait,
        cost_offset=offset,
        served_area=area,
        site_arrival_rate=load.rate,
        service_rate=1.0 / load.service,
        utilization=utilization,
        critical_intensity=critical,
        residual_s=residual,
        residual_utilization=residual_utilization,
        iterations=0,
    )
