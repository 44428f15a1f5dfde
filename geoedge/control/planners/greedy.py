"""The greedy plan: one action after the other, each the best predicted gain at its turn, until nothing gains enough.

Where the budget keeps out what would be wanted, a second plan takes what gains most per byte, and the better of the
two is kept: the guard of the greedy knapsack. Were gains monotone and submodular, the better one would be worth at
least (1 − 1/e)/2 of the best plan under the budget (Khuller, Moss and Naor 1999; Leskovec et al. 2007). Coverage on
a map is not: sites relieve each other, so that two changes may gain more together than each by itself, and the number
of actions is limited besides. So there is no such bound here. What is sure is that the plan promises no less than the
one by gain alone, and that nothing changes where the budget does not bind.
"""

from __future__ import annotations

from collections.abc import Iterable

from geoedge.control.actions import Action
from geoedge.control.planners.base import Plan, Prediction, Predictor, Situation
from geoedge.control.planners.mending import mended, next_epoch
from geoedge.control.planners.search import Search, reason

__all__ = ["greedy", "plan_of", "plan_with"]


@mended(next_epoch)
def greedy(situation: Situation) -> Plan:
    """Choose an epoch's actions by what they gain under the demand of the epoch that starts.

    Parameters
    ----------
    situation
        What is known.
    """
    return plan_with(situation, next_epoch(situation), situation.last)


def plan_with(situation: Situation, predictor: Predictor, start: Prediction | None) -> Plan:
    """Choose an epoch's actions by what a predictor expects of them: by gain, or per byte where that brings more.

    A site is changed at most once in an epoch.

    Parameters
    ----------
    situation
        What is known.
    predictor
        The field under one demand, or anything that answers like it.
    start
        An equilibrium to start from.
    """
    search = Search(situation, predictor, start)
    plan = _filled(search, situation)
    if not search.short:
        return plan
    frugal = Search(situation, predictor, plan.before, per_byte=True)
    other = _filled(frugal, situation)
    return other if frugal.net > search.net else plan


def _filled(search: Search, situation: Situation) -> Plan:
    """Take one action after the other until none is left that gains enough and fits."""
    actions: list[Action] = []
    before = now = search.now
    while len(actions) < situation.limits.rounds and (action := search.best()) is not None:
        search.accept(action)
        gain = search.now.coverage - now.coverage
        actions.append(action.explained(gain, reason(action, now, search.now, situation.names)))
        now = search.now
    return Plan(tuple(actions), before, now, search.profile)


def plan_of(
    steps: Iterable[Action],
    situation: Situation,
    predictor: Predictor,
    start: Prediction | None,
    why: str = "",
) -> Plan:
    """Return the plan of doing given actions one after the other, each with what it gains at its turn.

    Parameters
    ----------
    steps
        The actions.
    situation
        What is known.
    predictor
        Tells what each action does.
    start
        An equilibrium to start from.
    why
        What opens every reason.
    """
    profile = situation.profile
    before = now = predictor.solve(profile, start)
    actions = []
    for action in steps:
        profile = action.apply(profile)
        after = predictor.solve(profile, now)
        words = why + reason(action, now, after, situation.names)
        actions.append(action.explained(after.coverage - now.coverage, words))
        now = after
    return Plan(tuple(actions), before, now, profile)
