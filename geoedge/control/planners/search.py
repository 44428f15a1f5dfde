"""The search for an epoch's actions, one after the other: rounds of screening, solving and taking the best.

Every change of one site's profile is screened once, on coarse cells. Each round then takes the most promising
changes and exchanges between two sites, solves the field for them one by one until no other promises more,
and gives the best. Rounds follow each other on the new placement, with scores corrected by what the field said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.control.actions import NEVER_BYTES, Action, change_profile, migrate
from geoedge.control.planners.base import Prediction, Predictor, Situation
from geoedge.control.planners.limits import Limits

__all__ = ["LEAST_GAIN", "Search", "reason", "worth_of"]

_WORTH_A_LOOK = 0.5
"""Share of the least gain that a screened score must promise for the field to be solved."""
LEAST_GAIN = 1e-9
"""A smaller gain is rounding, whatever the scenario asks."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
    per_byte
        Whether actions are ranked by what they gain per byte moved, not by what they gain.

    Attributes
    ----------
    net
        What the actions taken gain together, less their tolls.
    short
        Whether the budget has kept out an action that promised enough.
    """

    def __init__(
        self,
        situation: Situation,
        predictor: Predictor,
        start: Prediction | None,
        *,
        per_byte: bool = False,
    ) -> None:
        self.per_byte, self.net, self.short = per_byte, 0.0, False
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
        self._net: dict[Action, float] = {}
        self._close(situation.fixed)

    def tighten(self, limits: Limits) -> None:
        """Keep to other limits of the mix and another least gain from now on."""
        self.limits, self.least = limits, limits.min_gain

    def best(self) -> Action | None:
        """Return the action of greatest worth, its gain or its gain per byte; None if none gains enough.

        Actions are looked at in order of worth by score; a worth that no remaining score promises to beat is taken.
        """
        self._solved, self._net = {}, {}
        found, worth = None, -np.inf
        for promise, action in self._ranked():
            if len(self._solved) == self.limits.looks or (found is not None and worth >= promise):
                break
            gain = self._net[action] = self._look(action)
            seen = float(self._worth(gain, action.bytes_moved))
            if gain >= self.least and seen >= worth:
                found, worth = action, seen
        return found

    def accept(self, action: Action) -> None:
        """Take an action that `best` has returned."""
        self.now = self._solved[action]
        self.net += self._net[action]
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

    def _worth(self, gain: ArrayLike, moved: ArrayLike) -> Floats:
        """Return what actions are ranked by."""
        return worth_of(gain, moved) if self.per_byte else np.asarray(gain, dtype=np.float64)

    def _singles(self) -> NDArray[np.bool_]:
        """Return which changes of one site the bounds on profiles allow, shape (n, S)."""
        count = np.bincount(self.profile, minlength=len(self.transfer_bytes))
        return np.asarray(self.limits.allowed(count)[self.profile])

    def _ranked(self) -> list[tuple[float, Action]]:
        """Return the changes of one site and the exchanges that keep to budget and limits, best worth first."""
        moved = self.transfer_bytes
        gets = moved[np.ix_(self.profile, self.profile)]
        single = np.where(self._singles(), self.single, -np.inf)
        ranked = [
            (worth, change_profile(i, int(self.profile[i]), s, moved))
            for worth, i, s in self._top(single, moved[self.profile])
        ]
        ranked += [
            (worth, migrate(i, j, self.profile, moved)) for worth, i, j in self._top(self.pair, gets + gets.T)
        ]
        return sorted(ranked, key=lambda found: -found[0])

    def _top(self, score: Floats, moved: Floats) -> list[tuple[float, int, int]]:
        """Return the greatest worths of scores that promise enough and fit, and their places, ties in order of place."""
        enough = (score >= _WORTH_A_LOOK * self.least) & (score > -np.inf)
        fits = moved <= self.budget
        self.short |= bool((enough & ~fits & (moved < NEVER_BYTES)).any())
        worth = np.where(enough & fits, self._worth(score, moved), -np.inf).reshape(-1)
        best = np.argsort(-worth, kind="stable")[: self.limits.looks]
        return [(float(worth[k]), *divmod(int(k), score.shape[1])) for k in best if worth[k] > -np.inf]


def worth_of(gain: ArrayLike, moved: ArrayLike) -> Floats:
    """Return gains per byte moved [1/B]; what moves less than a byte counts as one, and losses as they are.

    Parameters
    ----------
    gain
        Gains in coverage.
    moved
        Bytes that they take [B].
    """
    gain = np.asarray(gain, dtype=np.float64)
    return np.where(gain > 0.0, gain / np.maximum(np.asarray(moved), 1.0), gain)


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
