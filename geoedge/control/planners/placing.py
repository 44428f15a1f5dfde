"""The search for a placement without a budget: changes of one and of two sites, until none gains."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import Action, change_profile, migrate
from geoedge.control.planners.base import Plan, Prediction, Predictor, Situation
from geoedge.control.planners.greedy import plan_of
from geoedge.control.planners.limits import Limits

__all__ = ["improve", "plan_towards"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Move = tuple[tuple[int, int], ...]
"""Sites and the profiles they get."""

PASSES = 5
"""Screenings, at most."""
VAIN = 12
"""Moves in a row that do not gain, after which no more of a screening's are tried."""
PARTS = 60
"""Changes of one site of which moves of two are put together."""
LEAST = 2e-4
"""Gain in coverage below which a move is left: coarse answers are no finer."""


def improve(predictor: Predictor, profile: Ints, limits: Limits, fixed: frozenset[int] = frozenset()) -> Ints:
    """Return a placement that no change of one site and no likely change of two improves, shape (n,).

    A placement that breaks the bounds on profiles is first led back within them, as far as sites may be changed, by
    one change after the other: of the `looks` that the screening likes best, the one that loses least, whatever that is.

    Every change of one site is then screened. Moves of one or two sites are tried in order of what their parts
    promise, and kept if they gain, each site once, until some in a row do not; and until a screening leads to none.

    Parameters
    ----------
    predictor
        What counts; best a coarse one, which is asked some hundreds of times.
    profile
        The placement to start from, shape (n,).
    limits
        Shares of profiles; neither budget nor least gain.
    fixed
        Sites that stay as they are.
    """
    profile = _within(predictor, profile.copy(), limits, fixed)
    now = predictor.solve(profile)
    for _ in range(PASSES):
        score = np.array(predictor.screen(profile, now))
        score[np.arange(len(profile)), profile] = -np.inf
        score[sorted(fixed)] = -np.inf
        found, after = _passed(predictor, profile, now, score, limits)
        if found is profile:
            break
        profile, now = found, after
    return profile


def _within(predictor: Predictor, profile: Ints, limits: Limits, fixed: frozenset[int]) -> Ints:
    """Return the placement led back within its bounds, each time by the change of one site that loses least."""
    size = len(limits.least_sites)
    while limits.outside(count := np.bincount(profile, minlength=size)):
        now = predictor.solve(profile)
        score = np.where(limits.nearer(count)[profile], predictor.screen(profile, now), -np.inf)
        score[sorted(fixed)] = -np.inf
        best = [int(k) for k in np.argsort(-score, axis=None, kind="stable")[: limits.looks]]
        tried = [_changed(profile, divmod(k, size)) for k in best if score.flat[k] > -np.inf]
        if not tried:
            break
        profile = max(tried, key=lambda each: predictor.solve(each, now).coverage)
    return profile


def _changed(profile: Ints, *changes: tuple[int, int]) -> Ints:
    """Return a placement with other profiles at some sites."""
    after = profile.copy()
    for site, to in changes:
        after[site] = to
    return after


def _passed(
    predictor: Predictor, profile: Ints, now: Prediction, score: Floats, limits: Limits
) -> tuple[Ints, Prediction]:
    """Return placement and prediction after one pass of moves."""
    touched: set[int] = set()
    vain = 0
    for move in _moves(profile, score):
        if vain == VAIN:
            break
        changed = _changed(profile, *move)
        counts = (np.bincount(each, minlength=score.shape[1]) for each in (changed, profile))
        if touched.intersection(site for site, _ in move) or not limits.allow(*counts):
            continue
        after = predictor.solve(changed, now)
        vain += 1
        if after.coverage > now.coverage + LEAST:
            profile, now, vain = changed, after, 0
            touched.update(site for site, _ in move)
    return profile, now


def _moves(profile: Ints, score: Floats) -> Iterator[Move]:
    """Yield moves of one site, of two promising ones and exchanges, by falling sum of scores while that is a gain."""
    order = np.argsort(-score, axis=None, kind="stable")
    single = [
        (float(score.flat[k]), ((int(k) // score.shape[1], int(k) % score.shape[1]),))
        for k in order
        if score.flat[k] > -np.inf
    ]
    double = [
        (a + b, one + other)
        for (a, one), (b, other) in combinations(single[:PARTS], 2)
        if one[0][0] != other[0][0]
    ]
    gets = score[:, profile]
    swap = [
        (float(gets[i, j] + gets[j, i]), ((int(i), int(profile[j])), (int(j), int(profile[i]))))
        for i, j in zip(*np.nonzero(np.triu(gets + gets.T > LEAST, 1)), strict=True)
    ]
    every: list[tuple[float, Move]] = [*single, *double, *swap]
    for promise, move in sorted(every, key=lambda each: -each[0]):
        if promise < 0.5 * LEAST:
            return
        yield move


def plan_towards(situation: Situation, predictor: Predictor, target: Ints, start: Prediction | None) -> Plan:
    """Return the plan that makes the placement another one, exchanges first, whatever it costs.

    Parameters
    ----------
    situation
        What is known.
    predictor
        Tells what each action does.
    target
        The placement to be, shape (n,).
    start
        An equilibrium to start from.
    """
    return plan_of(_steps(situation.profile, target, situation), situation, predictor, start)


def _steps(profile: Ints, target: Ints, situation: Situation) -> list[Action]:
    """Return exchanges and changes of one site that lead from one placement to another."""
    left, single, steps = [int(i) for i in np.flatnonzero(profile != target)], [], list[Action]()
    while left:
        i = left.pop(0)
        partner = next((j for j in left if target[j] == profile[i] and target[i] == profile[j]), None)
        if partner is None:
            single.append(i)
            continue
        left.remove(partner)
        steps.append(migrate(i, partner, profile, situation.transfer_bytes))
    return steps + _in_order(single, profile, target, situation)


def _in_order(sites: list[int], profile: Ints, target: Ints, situation: Situation) -> list[Action]:
    """Return changes of single sites so that no limit is broken on the way, as far as an order allows it."""
    steps, size = list[Action](), len(situation.transfer_bytes)
    count = np.bincount(profile, minlength=size)
    while sites:
        kept = [i for i in sites if situation.limits.allow(_moved(count, profile[i], target[i]), count)]
        i = kept[0] if kept else sites[0]
        sites.remove(i)
        count = _moved(count, profile[i], target[i])
        steps.append(change_profile(i, int(profile[i]), int(target[i]), situation.transfer_bytes))
    return steps


def _moved(count: Ints, from_profile: int, to_profile: int) -> Ints:
    """Return how many sites hold each profile after one goes from one to another."""
    after = count.copy()
    after[from_profile] -= 1
    after[to_profile] += 1
    return after
