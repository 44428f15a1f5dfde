"""The load-association equilibrium on a map: every site's own wait, region, rate and mixture.

A wait at a site means an offered load, by the inverse of its queue curve; the waits advertised also decide who
comes, and with what mixture. The equilibrium is where the work that comes equals the load that the wait means.
Its residual, in utilisation, is the miss between the two, and Newton's method finds its root from below: it
stays finite where the work that comes exceeds capacity, and every site is moved along its own queue curve, so
that neither nearly idle nor nearly saturated sites spoil the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.field.answer import FieldAnswer
    from geoedge.field.problem import FieldProblem
    from geoedge.field.queues import Curve
    from geoedge.theory.protocols import QueueOfMix, WaitModel

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["SCOPES", "evaluate", "solve_field"]

SCOPES = ("site", "tier")
"""Who advertises a wait of its own: every site, or every profile."""
NEGLIGIBLE_WAIT_S = 1e-9
"""Waits below this are equal, whatever the load they mean."""
DENSE = 256
"""Most waits for which Newton's linear system is solved without regard to its zeros."""
STEEP = 0.01
"""Below this slope of wait by load, in occupancies, a site is moved by its load, above it by its wait."""
NEAREST_CAPACITY = 0.7
"""Share of the way to capacity that one step may go."""
CROWDED = 0.1
"""Waits above this share of the mean occupancy at every site make a network crowded."""
FIRST_STRIDE, LEAST_STRIDE, LONGEST_STRIDE = 0.12, 0.01, 0.3
"""Most that a step may change differences of waits, in mean occupancies: at first, at least, at most."""
GROWTH = 2.0
"""How much longer than the last step the next may be."""
LOOSE = 1.0
"""A site whose own wait moves its load by less than this share of what its queue says has lost touch."""
OVERSHOOT = 0.2
"""How far a step may pass the point where it stops paying, relative to its gain at the start."""
SEARCHES = 12
"""Most tries of a step length."""
FULL, CLIMB = 0.9, (0.3, 0.6, 0.9)
"""Least work per server above which demand is first thinned to it, and levels to climb by when all else fails."""
PATIENCE = 150
"""Responses before a start is given up."""
ROUGH = 1e-2
"""Residual that is enough for thinned demand."""


@dataclass(frozen=True, eq=False)
class _State:
    """What waits bring about: G waits, their groups' mean rate, work and occupancy, and the load they mean."""

    wait: Floats
    rate: Floats
    work: Floats
    occupancy: Floats
    load: Floats
    servers: Ints
    rate_slope: Floats
    work_slope: Floats
    curve: Curve

    @property
    def miss(self) -> Floats:
        """Work that comes less the load that the wait means, per server, shape (G,)."""
        suffered = self.curve.wait(self.work, self.servers, self.occupancy)[0]
        settled = np.maximum(suffered, self.wait) < NEGLIGIBLE_WAIT_S
        return np.where(settled, 0.0, (self.work - self.load) / self.servers)

    @property
    def force(self) -> Floats:
        """The miss in requests per second, which drives the waits, shape (G,)."""
        force: Floats = self.miss * self.servers / self.occupancy
        return force

    @property
    def residual(self) -> float:
        """Largest miss."""
        return float(np.abs(self.miss).max())


class _Market:
    """The response of demand and queues to advertised waits."""

    def __init__(self, problem: FieldProblem, scope: str, queue: WaitModel | QueueOfMix) -> None:
        from geoedge.theory.protocols import QueueOfMix, select

        self.problem = problem
        self.rate = problem.rate
        self.span = problem.geometry.span
        self.prefill = problem.prefill_time[problem.profile]
        self.occupancy = problem.occupancy_time[problem.profile]
        if scope == "site":
            self.group = np.arange(problem.n_sites)
        else:
            self.group = np.unique(problem.profile, return_inverse=True)[1].reshape(-1)
        self.members = np.bincount(self.group)
        self.servers = np.zeros(len(self.members), dtype=np.int64)
        self.servers[self.group] = problem.servers
        total = problem.rate.sum(axis=0)
        mix = total / total.sum() if total.sum() > 0 else np.full(problem.n_types, 1.0 / problem.n_types)
        self.idle_mix, self.idle_occupancy = mix, self.mean(self.occupancy @ mix)
        first = np.unique(self.group, return_index=True)[1]
        self._times = self.prefill[first], self.occupancy[first]
        self._queue = queue if isinstance(queue, QueueOfMix) else select(queue, first)

    def mean(self, by_site: Floats) -> Floats:
        """Return the mean over every group's sites, shape (G,)."""
        return np.bincount(self.group, by_site) / self.members

    def respond(self, wait: Floats) -> _State:
        """Return what comes when these waits are advertised, and what load they mean."""
        from geoedge.field.cells import loads

        offset = self.prefill + wait[self.group, None]
        groups = len(self.members)
        site_rate, rate_slope, work_slope = loads(
            self.problem.geometry.blocks,
            self.rate,
            self.span,
            offset,
            self.occupancy,
            self.group,
            groups,
            True,
        )
        rate = self.mean(site_rate.sum(axis=1))
        work = self.mean((site_rate * self.occupancy).sum(axis=1))
        busy = rate > 0
        occupancy = np.where(busy, work / np.where(busy, rate, 1.0), self.idle_occupancy)
        curve = self.curve(site_rate)
        load = curve.load(wait, self.servers, occupancy, work)
        per = self.members[:, None]
        return _State(
            wait, rate, work, occupancy, load, self.servers, rate_slope / per, work_slope / per, curve
        )

    def curve(self, site_rate: Floats) -> Curve:
        """Return the groups' queue curves when sites serve types at these rates [1/s], shape (n, Q)."""
        from geoedge.field.queues import curve_of
        from geoedge.theory.protocols import QueueOfMix

        if not isinstance(self._queue, QueueOfMix):
            return curve_of(self._queue)
        rate = np.stack([np.bincount(self.group, column) for column in site_rate.T], axis=1)
        total = rate.sum(axis=1, keepdims=True)
        mix = np.where(total > 0, rate / np.where(total > 0, total, 1.0), self.idle_mix)
        return curve_of(self._queue.for_mix(mix, *self._times))


@dataclass(frozen=True, eq=False)
class _Step:
    """Newton's step from a state: changes of wait, load and mean occupancy as first-order terms have them.

    `by_load` marks sites to move along their load, `loose` those that have lost touch with their neighbours.
    """

    wait: Floats
    load: Floats
    occupancy: Floats
    by_load: NDArray[np.bool_]
    loose: NDArray[np.bool_]


def _linear(matrix: Floats, target: Floats) -> Floats:
    """Solve a linear system; large ones, which are sparse because sites compete with neighbours only, as such."""
    from geoedge.field.queues import eliminate

    if len(target) <= DENSE:
        return eliminate(matrix, target)
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    return np.asarray(splu(csc_array(matrix)).solve(target), dtype=np.float64)


def _newton(state: _State) -> _Step:
    """Linearise wait = curve(work, occupancy) about a state, with work and occupancy as demand answers waits.

    Rows are scaled so that they stay finite at either end of the queue curve.
    """
    _, by_load, by_occupancy = state.curve.wait(state.load, state.servers, state.occupancy)
    busy = (state.rate > 0)[:, None]
    occupancy_slope = state.work_slope - state.occupancy[:, None] * state.rate_slope
    occupancy_slope = np.where(busy, occupancy_slope / np.where(busy, state.rate[:, None], 1.0), 0.0)
    scale = 1.0 / (by_load + state.occupancy)
    matrix = -(by_load * scale)[:, None] * state.work_slope
    matrix -= (by_occupancy * scale)[:, None] * occupancy_slope
    matrix[np.diag_indices_from(matrix)] += scale
    wait = _linear(matrix, by_load * scale * (state.work - state.load))
    return _Step(
        wait,
        state.work + (state.work_slope * wait).sum(axis=1) - state.load,
        (occupancy_slope * wait).sum(axis=1),
        by_load < STEEP * state.occupancy,
        by_load * np.abs(np.diag(state.work_slope)) < LOOSE,
    )


def _moved(state: _State, step: _Step, length: float) -> Floats:
    """Return the waits after part of a step, nearly idle sites along their load and the others along their wait."""
    room = np.maximum(state.servers - state.load, 0.0)
    load = np.clip(state.load + length * step.load, 0.1 * state.load, state.load + NEAREST_CAPACITY * room)
    occupancy = np.clip(state.occupancy + length * step.occupancy, 0.5 * state.occupancy, 2 * state.occupancy)
    by_load = state.curve.wait(load, state.servers, occupancy)[0]
    by_wait = np.maximum(state.wait + length * step.wait, 0.2 * state.wait)
    return np.where(step.by_load, by_load, by_wait)


def _limited(step: _Step, stride: float) -> tuple[_Step, float, float]:
    """Return a step whose loose sites stay with the others, the length it may have, and how far it sets waits apart.

    A site that has lost touch with its neighbours knows no more than that its wait is wrong; its step must not
    shorten everybody's.
    """
    middle = float(np.median(step.wait))
    apart = step.wait - middle
    spread = float(np.abs(apart[~step.loose]).max(initial=0.0))
    limit = max(stride, spread)
    wait = np.where(step.loose, middle + np.clip(apart, -limit, limit), step.wait)
    return replace(step, wait=wait), min(1.0, stride / max(spread, NEGLIGIBLE_WAIT_S)), spread


def _advance(market: _Market, state: _State, stride: float) -> tuple[_State, int, float]:
    """Take one step of a length that pays; return the new state, the responses it took, and the next stride [s].

    The waits are prices: with service that does not depend on type, the miss in requests per second is the
    gradient of a concave function of them. So a step is short enough when the miss along it has not turned
    round; where the gradient is no guide, the miss itself must shrink.
    """
    step, length, spread = _limited(_newton(state), stride)
    norm, tries = float(np.linalg.norm(state.miss)), 1
    while True:
        after = market.respond(_moved(state, step, length))
        if (after.wait > CROWDED * after.occupancy).all():
            after = _raised(market, after)
        change = (after.wait - state.wait) / length
        before, ahead = float(state.force @ change), float(after.force @ change)
        shrunk = float(np.linalg.norm(after.miss)) / norm
        if before > 0:
            pays = ahead >= -OVERSHOOT * before or shrunk < 0.5
        else:
            pays = shrunk < 0.98 or tries > SEARCHES // 3
        if pays or tries == SEARCHES:
            break
        length *= min(max(before / (before - ahead), 0.1), 0.5) if before > 0 else 0.4
        tries += 1
    unit, reach = float(state.occupancy.mean()), GROWTH * length * spread
    longest = max(stride, reach) if tries == 1 else max(reach, LEAST_STRIDE * unit)
    return after, tries, min(longest, LONGEST_STRIDE * unit)


def _raised(market: _Market, state: _State) -> _State:
    """Shift all waits alike until the loads they mean add up to the work that comes.

    Choices depend on differences of waits only, so demand does not notice; a crowded network finds the
    level of its waits at once instead of by many doublings.
    """

    def load(shift: float) -> Floats:
        return state.curve.load(state.wait + shift, state.servers, state.occupancy, state.work)

    def surplus(shift: float) -> float:
        return float(market.members @ load(shift)) - float(market.members @ state.work)

    low, high = -float(state.wait.min()) * (1.0 - CROWDED), 1.0
    while surplus(high) < 0.0:
        high *= 4.0
    if surplus(low) > 0.0:
        return state
    if not state.curve.cheap:
        from scipy.optimize import brentq

        high = float(brentq(surplus, low, high, xtol=1e-9, rtol=1e-9))
        return replace(state, wait=state.wait + high, load=load(high))
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if surplus(middle) < 0.0 else (low, middle)
        if high - low <= 1e-12 * (1.0 + abs(high)):
            break
    return replace(state, wait=state.wait + high, load=load(high))


def _checked(problem: FieldProblem, policy: str, waits: ArrayLike | None) -> Floats:
    """Return waits of all sites [s], shape (n,), after refusing unknown policies and impossible waits."""
    from geoedge.field.queues import BACKLOG_S
    from geoedge.serving.routing import POLICIES

    if policy not in POLICIES:
        msg = f"`policy` must be one of {', '.join(sorted(POLICIES))}, not {policy!r}"
        raise GeoEdgeError(msg)
    if waits is None:
        return np.zeros(problem.n_sites)
    wait = np.asarray(waits, dtype=np.float64)
    if wait.shape != (problem.n_sites,) or not (wait >= 0).all():
        msg = f"`waits` must be nonnegative seconds of shape ({problem.n_sites},), one per site"
        raise GeoEdgeError(msg)
    return np.minimum(wait, BACKLOG_S)


def evaluate(
    problem: FieldProblem,
    waits: ArrayLike | None = None,
    *,
    policy: str = "load_aware",
    queue: WaitModel | QueueOfMix | None = None,
) -> FieldAnswer:
    """Return what happens when these waits are advertised, each site scored at its own rate; nothing is solved.

    Parameters
    ----------
    problem
        Demand, sites, workload.
    waits
        Advertised wait of every site [s], shape (n,); by default none. Only ``"load_aware"`` heeds them.
    policy
        ``"load_aware"``, ``"prefix_only"`` or ``"nearest"``.
    queue
        As in `solve_field`.

    Raises
    ------
    GeoEdgeError
        If the policy is unknown, the queue does not fit, or the waits are not nonnegative numbers, one per site.
    """
    from geoedge.field.answer import FieldAnswer

    wait = _checked(problem, policy, waits)
    return FieldAnswer(
        problem,
        policy,
        "site",
        wait,
        residual=0.0,
        iterations=1,
        converged=True,
        solved=False,
        queue=_known("evaluate", queue, problem),
    )


def solve_field(
    problem: FieldProblem,
    *,
    policy: str = "load_aware",
    scope: str = "site",
    waits: ArrayLike | None = None,
    queue: WaitModel | QueueOfMix | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 500,
) -> FieldAnswer:
    """Solve for the waits that bring about themselves, Eqs. (33, 34), on a map.

    Under load-aware routing with waits per site, every site's advertised wait is the mean wait of its queue
    at the rate and mixture of its own region; with waits per tier, of a queue at the mean rate of the
    profile's sites. Prefix-only and nearest routing heed no wait, so there is nothing to solve. In every case
    each site is scored at its own rate.

    Where demand exceeds capacity no stable equilibrium exists. The waits are then those that a long backlog would
    show, the answer names the sites beyond capacity, and requests there are misses.

    Parameters
    ----------
    problem
        Demand, sites, workload.
    policy
        ``"load_aware"``, ``"prefix_only"`` or ``"nearest"``.
    scope
        ``"site"`` or ``"tier"``: who advertises a wait of its own.
    waits
        Where to start, a wait for every site [s], shape (n,), for example those of an earlier answer;
        by default no wait at all, from below.
    queue
        Wait model of the sites, or a rule that makes one of what they serve, as `geoedge.theory.queue_for` does;
        M/M/c if omitted. A parameter of its own for each site has shape (n,).
    tolerance
        Residual to reach, in utilisation.
    max_iterations
        Most responses of demand to compute.

    Returns
    -------
    FieldAnswer
        Its ``converged`` and ``residual`` say how well it is solved.

    Raises
    ------
    GeoEdgeError
        If the policy or scope is unknown, the queue does not fit, or the waits are not nonnegative numbers, one per
        site.
    """
    from geoedge.field.answer import FieldAnswer

    start = _checked(problem, policy, waits)
    if scope not in SCOPES:
        msg = f"`scope` must be one of {', '.join(SCOPES)}, not {scope!r}"
        raise GeoEdgeError(msg)
    model = _known("solve_field", queue, problem)
    if policy != "load_aware":
        return FieldAnswer(
            problem, policy, scope, np.zeros(problem.n_sites), residual=0.0, iterations=1, queue=model
        )
    market = _Market(problem, scope, model)
    state, iterations = _equilibrium(market, market.mean(start), waits is not None, tolerance, max_iterations)
    return FieldAnswer(
        problem,
        policy,
        scope,
        state.wait[market.group],
        residual=state.residual,
        iterations=iterations,
        converged=state.residual <= tolerance,
        queue=model,
    )


def _known(
    function: str, queue: WaitModel | QueueOfMix | None, problem: FieldProblem
) -> WaitModel | QueueOfMix:
    """Return the queue that was given, or M/M/c; or say in one line why it is none."""
    from geoedge.theory.checks import checked_queue

    return checked_queue(function, queue, problem.servers)


def _equilibrium(
    market: _Market, wait: Floats, warm: bool, tolerance: float, most: int
) -> tuple[_State, int]:
    """Solve from given waits or, near capacity, by way of thinned demand; if that fails, climb in steps from below."""
    share, used = market.problem.least_work_share, 0
    if share > FULL and not warm:
        state, used = _solve(market, wait, FULL / share, ROUGH, min(PATIENCE, most))
        wait = state.wait
    best, tries = _solve(market, wait, 1.0, tolerance, min(PATIENCE, most - used))
    used += tries
    if best.residual <= tolerance or used >= most:
        return best, used
    wait = np.zeros_like(wait)
    for level in CLIMB:
        if level < share:
            state, tries = _solve(market, wait, level / share, ROUGH, PATIENCE)
            wait, used = state.wait, used + tries
    state, tries = _solve(market, wait, 1.0, tolerance, max(most - used, 1))
    return (state if state.residual < best.residual else best), used + tries


def _solve(market: _Market, wait: Floats, thinned: float, tolerance: float, most: int) -> tuple[_State, int]:
    """Step from given waits, at a part of the demand, until the residual is reached; return the best state seen."""
    market.rate = market.problem.rate * thinned if thinned < 1.0 else market.problem.rate
    state, used = market.respond(wait), 1
    best, stride = state, FIRST_STRIDE * float(state.occupancy.mean())
    while best.residual > tolerance and used < most:
        state, tries, stride = _advance(market, state, stride)
        used += tries
        if state.residual < best.residual:
            best = state
    return best, used
