"""The load-association fixed point of Eqs. (33, 34, 36): waits shape the choice, the choice shapes the waits.

Damped iteration needs a damping that nobody knows and that shrinks to nothing as load grows. Here the state is the
load v that each tier is believed to carry, with the wait h_c(v) that goes with it, and Newton's method makes the
load that these waits attract equal to it. A lightly loaded tier is stepped in its load, where the problem is
almost linear; a heavily loaded one in its wait, where it is too, and where an overload is nothing special. Should
that fail, the intensity is raised from a small one along the path of equilibria.

A stable load-aware point exists below `TieredNetwork.sufficient_intensity`, and none from `necessary_intensity` on.
Between them the exact end of the path is the load at which all tiers fill together: with waits far above everything
else only their differences steer, and these settle so that no tier is relatively fuller than another. That is what
`capacity` finds, an argument that stable points found right up to it bear out, not a proof.

Uniqueness is proved where the occupancy t_s of a request does not depend on its type at a given tier. The mean least
cost C(W) = Σ p E[min_s J_s] is concave in the waits, with the shares of the tiers as its gradient, so that a stable
point is where λ_req C − Σ λ_s ∫ a_s(W_s) dW_s / t_s is stationary, a_s = h_c⁻¹(W_s/t_s) being the load that a wait
speaks of. As a_s increases, that is strictly concave and has one such point. Where occupancies depend on the type
the loads have no potential, and nothing is proved. Tried: Newton's method from 12 random waits, 1e-4 to 100 s, on each
of 40 random networks of two and three tiers whose occupancies differ by type up to 100-fold, at .5 to .95 of
capacity. Of these 480 runs at least 360 arrive somewhere, and all of them at the one point, as a test repeats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._capacity import Filled, fill_alike
from geoedge.theory._fixed_point import FixedPointSolver, Load, queue_functions
from geoedge.theory._point import POLICIES, Equilibrium, Policy
from geoedge.theory.association import association_per_density, attracted_load
from geoedge.theory.checks import checked_network, checked_queue, checked_waits
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel
from geoedge.theory.queueing import ErlangC

__all__ = ["POLICIES", "Capacity", "Equilibrium", "Policy", "advertise", "capacity", "solve_equilibrium"]

FloatArray = NDArray[np.float64]

_MIXES = 100  # queues of a mix that are tried before the last one is taken, with the residual it has
_SAME_MIX = 1e-12  # change of a mixture that is rounding


class Capacity(NamedTuple):
    """How much a network can carry under load-aware routing; made by `capacity`."""

    intensity: float
    """Critical intensity, from which no load-aware point is stable [1/(s km²)]; see `exact`."""
    sufficient: float
    """Intensity below which a stable point certainly exists: every request where it is served slowest."""
    necessary: float
    """Intensity from which certainly none exists, Eq. (35): every request where it is served fastest."""
    utilization: FloatArray
    """How full each tier is at the critical intensity, shape (S,): one each, and zero for an empty tier."""
    wait_difference: FloatArray
    """Differences of the waits there [s], the least being zero, shape (S,)."""
    exact: bool
    """Whether tiers that fill alike were found; if not, `intensity` is the necessary bound."""


def solve_equilibrium(
    network: TieredNetwork,
    policy: Policy = "load_aware",
    *,
    queue: WaitModel | QueueOfMix | None = None,
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
        Wait model, or a rule that makes one of the mixture that each tier serves; `ErlangC` if omitted.
    start
        Advertised waits to start from [s], shape (S,), such as those of a neighbouring network.
    tolerance
        Relative residual of the loads at which to stop.
    max_iterations
        Newton steps on the path of intensities, the last resort, after which its best point is returned.

    Returns
    -------
    Equilibrium
        The solved point. Where none is stable it is flagged, its overloaded tiers are named, and their waits are
        infinite; it is never an error.

    Raises
    ------
    GeoEdgeError
        If the policy is unknown, an argument does not fit, or the tolerance is not above 0.

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
    network = checked_network("solve_equilibrium", network)
    guess = None if start is None else checked_waits("solve_equilibrium", "start", start, network.tiers)
    if not (tolerance > 0.0 and max_iterations >= 0):
        msg = (
            f"solve_equilibrium: `tolerance` is {tolerance} and `max_iterations` {max_iterations}, but must be above 0 "
            "and 0 or more; leave them out"
        )
        raise GeoEdgeError(msg)
    model = checked_queue("solve_equilibrium", queue, network.concurrency)
    if type(model) is not ErlangC and isinstance(model, QueueOfMix):
        return _solve_for_mix(network, policy, model, guess, tolerance, max_iterations)
    return _solve(network, policy, model, guess, tolerance, max_iterations)


def advertise(
    network: TieredNetwork, waits: ArrayLike, *, queue: WaitModel | QueueOfMix | None = None
) -> Equilibrium:
    """Return what load-aware routing makes of given waits, whether or not they are the waits that it causes.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    waits
        Waits that the tiers advertise [s], shape (S,).
    queue
        As in `solve_equilibrium`.

    Returns
    -------
    Equilibrium
        Its residuals say how far from an equilibrium it is.

    Raises
    ------
    GeoEdgeError
        If the waits or the queue do not fit.
    """
    advertised = checked_waits("advertise", "waits", waits, network.tiers)
    model = checked_queue("advertise", queue, network.concurrency)
    offset = network.prefill_time + advertised[:, None]
    if type(model) is not ErlangC and isinstance(model, QueueOfMix):
        point = _answer(network, "load_aware", ErlangC(), advertised, offset)
        mixed = model.for_mix(point.served_mix, network.prefill_time, network.occupancy_time)
        return _judged_by(point, mixed, 0)
    return _answer(network, "load_aware", model, advertised, offset)


def capacity(network: TieredNetwork) -> Capacity:
    """Return the critical intensity of a network under load-aware routing, with its bounds.

    It does not depend on the wait model: only on which waits grow without bounds as a tier fills up.

    Parameters
    ----------
    network
        Tiers, requests and their times; its own intensity plays no part.

    Examples
    --------
    >>> net = TieredNetwork([1.0], [2], [1.0], [[0.1]], [[0.5]], 1.0, 0.28, 2.0, [[0]], [1024], [0.1])
    >>> capacity(net).intensity  # two servers of half a second each
    4.0
    """
    filled = fill_alike(network)
    work = attracted_load(network, filled.wait).work
    return Capacity(
        filled.intensity,
        network.sufficient_intensity,
        network.necessary_intensity,
        np.where(network.tier_density > 0.0, filled.intensity * work / network.concurrency, 0.0),
        filled.wait,
        filled.exact,
    )


def _solve(
    network: TieredNetwork,
    policy: Policy,
    model: WaitModel,
    start: FloatArray | None,
    tolerance: float,
    max_iterations: int,
) -> Equilibrium:
    """Solve under one wait model."""
    if policy != "load_aware":
        offset = network.prefill_time if policy == "prefix_only" else np.zeros_like(network.prefill_time)
        return _answer(network, policy, model, np.zeros(network.tiers), offset)
    solver = FixedPointSolver(network, model, tolerance, max_iterations)
    waits, load, filled = solver.solve(start)
    offset = network.prefill_time + waits[:, None]
    return _answer(network, policy, model, waits, offset, load, filled, solver.iterations)


def _solve_for_mix(
    network: TieredNetwork,
    policy: Policy,
    rule: QueueOfMix,
    start: FloatArray | None,
    tolerance: float,
    max_iterations: int,
) -> Equilibrium:
    """Solve under the wait model of the mixtures that the point itself leads to, from those of all requests."""
    mix, steps = np.tile(network.type_probability, (network.tiers, 1)), 0
    for _ in range(_MIXES):
        model = rule.for_mix(mix, network.prefill_time, network.occupancy_time)
        point = _solve(network, policy, model, start, tolerance, max_iterations)
        former, mix, steps = mix, point.served_mix, steps + point.iterations
        if policy != "load_aware" or point.beyond_capacity or np.abs(mix - former).max() <= _SAME_MIX:
            break
        start = point.advertised_wait
    model = rule.for_mix(mix, network.prefill_time, network.occupancy_time)
    return _judged_by(point, model, steps)


def _judged_by(point: Equilibrium, model: WaitModel, iterations: int) -> Equilibrium:
    """Return a point with the waits that another model gives to its loads, and the residuals that this leaves."""
    filled = (
        None
        if point.critical_intensity is None
        else Filled(point.advertised_wait, point.critical_intensity, point.critical_exact)
    )
    load = Load(
        point.served_area,
        point.site_arrival_rate / point.service_rate,
        1.0 / point.service_rate,
        point.site_arrival_rate,
    )
    return _answer(
        point.network,
        point.policy,
        model,
        point.advertised_wait,
        point.cost_offset,
        load,
        filled,
        iterations,
    )


def _load(network: TieredNetwork, offset: FloatArray) -> Load:
    """Return the load of a choice by these offsets."""
    area = association_per_density(
        network.tier_density, offset, network.delay_coefficient, network.delay_exponent
    )
    per_type = area * network.type_probability
    requests, work = per_type.sum(axis=1), (per_type * network.occupancy_time).sum(axis=1)
    return Load.of(network, network.request_intensity, area, requests, work)


def _answer(
    network: TieredNetwork,
    policy: Policy,
    queue: WaitModel,
    advertised: FloatArray,
    offset: FloatArray,
    load: Load | None = None,
    filled: Filled | None = None,
    iterations: int = 0,
) -> Equilibrium:
    """Evaluate what a choice by these offsets leads to."""
    load = _load(network, offset) if load is None else load
    wait_and_slope, load_for_wait = queue_functions(queue)
    servers = network.concurrency.astype(np.float64)
    utilization = load.offered / servers
    lost = filled is not None and network.request_intensity >= filled.intensity
    if lost:  # all tiers are equally full up to rounding, which must not make one of them look stable
        utilization = np.where(network.tier_density > 0.0, np.maximum(utilization, 1.0), utilization)
    full = utilization >= 1.0
    normalised, _ = wait_and_slope(np.where(full, 0.0, load.offered), servers)
    wait = np.where(full, np.inf, normalised * load.service)
    residual, residual_utilization = 0.0, 0.0
    if lost:
        residual = residual_utilization = float("inf")
    elif policy == "load_aware":
        believed = load_for_wait(advertised / load.service, servers)
        residual = float(np.abs(wait - advertised).max())
        # equal waits that are too small for a number speak of no load
        residual_utilization = float(
            np.abs(np.where(wait == advertised, 0.0, believed / servers - utilization)).max()
        )
    return Equilibrium(
        network=network,
        policy=policy,
        queue=queue,
        advertised_wait=advertised,
        mean_wait=wait,
        cost_offset=offset,
        served_area=load.area,
        site_arrival_rate=load.rate,
        service_rate=1.0 / load.service,
        utilization=utilization,
        critical_intensity=None if filled is None else filled.intensity,
        critical_exact=filled is not None and filled.exact,
        residual_s=residual,
        residual_utilization=residual_utilization,
        iterations=iterations,
    )
