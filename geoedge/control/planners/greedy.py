"""The greedy plan: one action after the other, each the best predicted gain at its turn.

Every change of one site's profile is screened once, on coarse cells. Each round then takes the most promising
changes and exchanges between two sites, solves the field for them one by one until no other promises more,
and accepts the best. Rounds follow each other on the new placement, with scores corrected by what the field
said, until nothing gains enough or fits any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import Action, change_profile, migrate
from geoedge.control.planners.base import Limits, Plan, Prediction, Predictor, Situation

__all__ = ["LEAST_GAIN", "Search", "greedy", "plan_of", "plan_with", "reason"]

_WORTH_A_LOOK = 0.5
"""Share of the least gain that a screened score must promise for the field to be solved."""
LEAST_GAIN = 1e-9
"""A smaller gain is rounding, whatever the scenario asks."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def greedy(situation: Situation) -> Plan:
    """Choose an epoch's actions by what they gain under the demand of the epoch that starts.

    A site is changed at most once in an epoch. A placement that breaks a limit already is not made worse.

    Parameters
    ----------
    situation
        What is known.
    """
    return plan_with(situation, situation.predictor_of(situation.forecast[0]), situation.last)


def plan_with(situation: Situation, predictor: Predictor, start: Prediction | None) -> Plan:
    """Choose an epoch's actions by what a predictor expects of them.

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


class Search:
    """The state of a plan in the making; scores are gains net of tolls, screened at first, solved where looked at.

    Parameters
    ----------
    situation
        What is known.
    predictor
        The field under one demand, or anything that answers like it.
    start
        An equilibrium to start from.
    """

    def __init__(self, situation: Situation, predictor: Predictor, start: Prediction | None) -> None:
        self.predictor, self.limits = predictor, situation.limits
        self.budget = self.limits.budget_bytes
        self.profile = np.array(situation.profile, dtype=np.int64)
        self.transfer_bytes, self.toll = situation.transfer_bytes, situation.toll
        self.now = predictor.solve(self.profile, start)
        self.least = max(self.limits.min_gain, LEAST_GAIN)
        self.single = np.array(predictor.screen(self.profile, self.now)) - self.toll
        self.single[np.arange(len(self.profile)), self.profile] = -np.inf
        gets = self.single[:, self.profile]
        self.pair = np.where(np.triu(np.ones(gets.shape, dtype=bool), 1), gets + gets.T, -np.inf)
        self._solved: dict[Action, Prediction] = {}
        self._close(situation.fixed)

    def tighten(self, limits: Limits) -> None:
        """Keep to other limits of the mix and another least gain from now on."""
        self.limits, self.least = limits, limits.min_gain

    def best(self) -> Action | None:
        """Return the action of greatest gain; None if none gains enough.

        Actions are looked at in order of score; a gain that no remaining score promises to beat is taken.
        """
        self._solved = {}
        found, gain = None, self.least
        for score, action in self._ranked():
            if len(self._solved) == self.limits.looks or (found is not None and gain >= score):
                break
            seen = self._look(action)
            if seen >= gain:
                found, gain = action, seen
        return found

    def accept(self, action: Action) -> None:
        """Take an action that `best` has returned."""
        self.now = self._solved[action]
        self.profile = action.apply(self.profile)
        self.budget -= action.bytes_moved
        self._close(action.sites)

    def _close(self, sites: Iterable[int]) -> None:
        for site in sites:
            self.single[site] = -np.inf
            self.pair[site] = self.pair[:, site] = -np.inf

    def _look(self, action: Action) -> float:
        """Solve the field with an action done, and keep what it gains, net of its toll, as its score."""
        after = self._solved[action] = self.predictor.solve(action.apply(self.profile), self.now)
        toll = sum(float(self.toll[change.site, change.to_profile]) for change in action.changes)
        gain = after.coverage - self.now.coverage - toll
        first, *others = action.changes
        if others:
            i, j = sorted((first.site, others[0].site))
            self.pair[i, j] = gain
        else:
            self.single[first.site, first.to_profile] = gain
        return gain

    def _ranked(self) -> list[tuple[float, Action]]:
        """Return the changes of one site and the exchanges that keep to budget and limits, best score first."""
        moved, least = self.transfer_bytes, _WORTH_A_LOOK * self.least
        count = np.bincount(self.profile, minlength=len(moved))
        allowed = (count > self.limits.least_sites)[:, None] & (count < self.limits.most_sites)
        single = np.where((allowed & (moved <= self.budget))[self.profile], self.single, -np.inf)
        gets = moved[np.ix_(self.profile, self.profile)]
        pair = np.where(gets + gets.T <= self.budget, self.pair, -np.inf)
        ranked = [
            (score, change_profile(i, int(self.profile[i]), s, moved))
            for score, i, s in _top(single, self.limits.looks, least)
        ]
        ranked += [
            (score, migrate(i, j, self.profile, moved))
            for score, i, j in _top(pair, self.limits.looks, least)
        ]
        return sorted(ranked, key=lambda found: -found[0])


def _top(score: Floats, width: int, least: float) -> list[tuple[float, int, int]]:
    """Return the greatest finite scores not below a least one and their places, ties in order of place."""
    flat = score.reshape(-1)
    best = np.argsort(-flat, kind="stable")[:width]
    return [
        (float(flat[k]), *divmod(int(k), score.shape[1]))
        for k in best
        if flat[k] >= least and flat[k] > -np.inf
    ]


def reason(action: Action, before: Prediction, after: Prediction, names: Sequence[str]) -> str:
    """Return why an action was chosen, in words and numbers.

    Parameters
    ----------
    action
        The action.
    before, after
        What is predicted without it and with it.
    names
        Names of the profiles.
    """
    parts = [f"expected coverage {before.coverage:.4f} -> {after.coverage:.4f}"]
    for change in action.changes:
        i = change.site
        parts.append(
            f"site {i} {names[change.from_profile]} -> {names[change.to_profile]}: "
            f"serves {before.arrival_rate[i]:.2f} -> {after.arrival_rate[i]:.2f} requests/s, "
            f"prefill {before.prefill[i]:.2f} -> {after.prefill[i]:.2f} s, "
            f"utilisation {before.utilization[i]:.2f} -> {after.utilization[i]:.2f}, "
            f"wait {before.wait[i]:.2f} -> {after.wait[i]:.2f} s"
        )
    return "; ".join(parts)
