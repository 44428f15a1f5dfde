"""What a controller is measured by: nothing, random moves, one placement for the whole day, and one that knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import Action, change_profile
from geoedge.control.planners.base import Plan, Situation, no_plan
from geoedge.control.planners.mean import mean_over
from geoedge.control.planners.mending import mended, next_epoch
from geoedge.control.planners.placing import improve, plan_towards
from geoedge.control.planners.search import reason

__all__ = ["best_placement", "random_moves"]

Ints = NDArray[np.int64]

TRIES = 200
"""Draws after which a random plan ends though the budget would allow more."""


@mended(next_epoch)
def random_moves(situation: Situation) -> Plan:
    """Change random sites to random profiles, as many as the limits let any planner change.

    What ends it is as a rule the number of actions, not the budget.

    Parameters
    ----------
    situation
        What is known; its random stream decides.
    """
    limits, moved = situation.limits, situation.transfer_bytes
    predictor = next_epoch(situation)
    before = now = predictor.solve(situation.profile, situation.last)
    profile, budget, closed = situation.profile, limits.budget_bytes, set(situation.fixed)
    actions: list[Action] = []
    for _ in range(TRIES):
        site = int(situation.rng.integers(len(profile)))
        to = int(situation.rng.integers(len(moved)))
        if len(actions) == limits.rounds:
            break
        if site in closed or to == profile[site] or moved[profile[site], to] > budget:
            continue
        action = change_profile(site, int(profile[site]), to, moved)
        changed = action.apply(profile)
        counts = (np.bincount(each, minlength=len(moved)) for each in (changed, profile))
        if not limits.allow(*counts):
            continue
        after = predictor.solve(changed, now)
        gain = after.coverage - now.coverage
        actions.append(action.explained(gain, f"at random; {reason(action, now, after, situation.names)}"))
        profile, now, budget = changed, after, budget - action.bytes_moved
        closed.add(site)
    return Plan(tuple(actions), before, now, profile)


def best_placement(situation: Situation) -> Plan:
    """Give every site what is best for the forecast as a whole, within the bounds on profiles, whatever that moves.

    Parameters
    ----------
    situation
        What is known.
    """
    predictor = mean_over(situation)
    target = improve(predictor.coarse(), situation.profile, situation.limits, situation.in_transit)
    plan = plan_towards(situation, predictor, target, situation.last)
    broken = situation.limits.outside(situation.count)
    return plan if broken or plan.after.coverage > plan.before.coverage else no_plan(situation)
