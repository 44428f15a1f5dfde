"""Back within bounds: what a plan does first where too few sites hold the fallback, or too many hold deep profiles.

A layout may break floor and caps from the start, and failures and repairs may lead out of them. Changes of one site
that bring the mix nearer are then taken first, one after the other, each the one that loses least coverage net of its
tolls, whatever that loses: as many as budget and number of actions let, the rest in the epochs that follow. Sites
that states are on their way to, or that were changed too lately, wait for their turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import Action
from geoedge.control.planners.base import Plan, Predictor, Situation
from geoedge.control.planners.search import Search, reason

__all__ = ["mended", "next_epoch"]

Planning = Callable[[Situation], Plan]


def next_epoch(situation: Situation) -> Predictor:
    """Return the predictor for the demand of the epoch that starts.

    Parameters
    ----------
    situation
        What is known.
    """
    return situation.predictor_of(situation.forecast[0])


def mended(predicting: Callable[[Situation], Predictor]) -> Callable[[Planning], Planning]:
    """Return what makes a planner lead a placement back within its bounds first, and go on from there.

    Parameters
    ----------
    predicting
        Returns the planner's own predictor.
    """

    def around(plan: Planning) -> Planning:
        @wraps(plan)
        def planned(situation: Situation) -> Plan:
            if not situation.limits.outside(situation.count):
                return plan(situation)
            first = _way_back(situation, predicting(situation))
            rest = plan(_from_there(situation, first))
            return replace(rest, actions=(*first.actions, *rest.actions), before=first.before)

        return planned

    return around


class _Back(Search):
    """The search for changes of one site that bring the mix nearer to its bounds, however little they gain."""

    def __init__(self, situation: Situation, predictor: Predictor) -> None:
        super().__init__(situation, predictor, situation.last)
        self.least = -np.inf
        self.pair[:] = -np.inf

    def _singles(self) -> NDArray[np.bool_]:
        count = np.bincount(self.profile, minlength=len(self.transfer_bytes))
        return np.asarray(self.limits.nearer(count)[self.profile])


def _way_back(situation: Situation, predictor: Predictor) -> Plan:
    """Return the changes that lead back within the bounds, as far as an epoch goes."""
    search = _Back(situation, predictor)
    before, actions = search.now, list[Action]()
    while len(actions) < situation.limits.rounds and (action := search.best()) is not None:
        now = search.now
        search.accept(action)
        words = f"back within floor and caps; {reason(action, now, search.now, situation.names)}"
        actions.append(action.explained(search.now.coverage - now.coverage, words))
    return Plan(tuple(actions), before, search.now, search.profile)


def _from_there(situation: Situation, first: Plan) -> Situation:
    """Return the situation once some actions are chosen: what they leave of budget and number, and their sites busy."""
    limits = situation.limits
    spent = sum(action.bytes_moved for action in first.actions)
    left = replace(
        limits,
        budget_bytes=limits.budget_bytes - spent,
        later_budget_bytes=limits.budgets(2)[1],
        rounds=limits.rounds - len(first.actions),
    )
    touched = frozenset(site for action in first.actions for site in action.sites)
    return replace(
        situation,
        profile=first.profile,
        in_transit=situation.in_transit | touched,
        limits=left,
        last=first.after,
    )
