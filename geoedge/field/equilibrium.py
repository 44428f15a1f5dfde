"""The load-association equilibrium on a map: every site's own wait, region, rate and mixture.

A wait at a site means an offered load, by the inverse of its queue curve; the waits advertised also decide who
comes, and with what mixture. The equilibrium is where the work that comes equals the load that the wait means; its
residual, in utilisation, is the miss between the two.

Where a place asks for more than a site can bear, no choice of one site each is an equilibrium. Requests of a place
are therefore split between sites whose costs lie within the place's tie span of each other, as `geoedge.field.cells`
says; so an equilibrium always exists, and at it nobody is sent to a site that costs more than his tie span above the
cheapest. Narrow spans make demand answer waits abruptly. Newton's method therefore goes from wide spans, under which
loads change gently, to the places' own, and takes the wide ones on a few places only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.field._market import Market, State
from geoedge.field._newton import FIRST_STRIDE, advance
from geoedge.policies import CLOSED_FORMS, POLICIES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.field.answer import FieldAnswer
    from geoedge.field.problem import FieldProblem
    from geoedge.theory.protocols import QueueOfMix, WaitModel

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["SCOPES", "evaluate", "solve_field"]

SCOPES = ("site", "tier")
"""Who advertises a wait of its own: every site, or every profile."""
FIRST_SPAN, SPAN_RATIO = 0.1, 3.0
"""Widest tie span, in mean occupancies, and how many times narrower each next one is."""
LEAST_RATIO = 1.2
"""Least of such ratios."""
COARSE_SPAN_S = 0.01
"""Tie spans down to this are gone through on few places."""
PATIENCE = 150
"""Most responses before a tie span, or a start that was given, is left."""
ROUGH = 1e-2
"""Residual that is enough before the last tie span."""


def _checked(problem: FieldProblem, policy: str, waits: ArrayLike | None) -> Floats:
    """Return waits of all sites [s], shape (n,), after refusing unknown policies and impossible waits."""
    from geoedge.field.queues import BACKLOG_S

    if policy not in CLOSED_FORMS:
        stands = f"; for {policy} it is {POLICIES[policy].solved_as}" if policy in POLICIES else ""
        msg = f"`policy` must be one of {', '.join(sorted(CLOSED_FORMS))}, not {policy!r}{stands}"
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
    max_iterations: int = 1500,
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
    market = Market(problem, scope, model)
    state, iterations = _equilibrium(
        market, None if waits is None else market.mean(start), tolerance, max_iterations
    )
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


def _equilibrium(market: Market, start: Floats | None, tolerance: float, most: int) -> tuple[State, int]:
    """Solve from given waits or, without them or if that fails, from wide tie spans to the places' own."""
    used = 0
    if start is not None:
        state, used = _solve(market, start, tolerance, min(PATIENCE, most))
        if state.residual <= tolerance or used >= most:
            return state, used
    wait, coarse, span, ratio = market.level(), market.coarsened(), 0.0, SPAN_RATIO
    narrower = FIRST_SPAN * float(market.idle_occupancy.mean())
    while narrower > market.least_span and used < most:
        on = (coarse if narrower > COARSE_SPAN_S else market).widened(narrower)
        state, tries = _solve(on, wait, ROUGH, min(PATIENCE, most - used))
        used += tries
        if state.residual > ROUGH and span > 0.0 and ratio > LEAST_RATIO:
            ratio = float(np.sqrt(ratio))  # too far at a time: go on from the span that was solved
        else:
            wait, span = state.wait, narrower
        narrower = span / ratio
    state, tries = _solve(market, wait, tolerance, max(most - used, 1))
    return state, used + tries


def _solve(market: Market, wait: Floats, tolerance: float, most: int) -> tuple[State, int]:
    """Step from given waits until the residual is reached; return the best state seen and the responses it took."""
    state, used = market.respond(wait), 1
    best, stride = state, FIRST_STRIDE * float(state.occupancy.mean())
    while best.residual > tolerance and used < most:
        state, tries, stride = advance(market, state, stride)
        used += tries
        if state.residual < best.residual:
            best = state
    return best, used
