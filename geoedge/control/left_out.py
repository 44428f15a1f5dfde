"""The best action that a plan has left out, and why: what tells of a decision to do nothing, or no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.actions import NEVER_BYTES, Action, change_profile, migrate
from geoedge.control.planners.placing import LEAST
from geoedge.control.planners.search import LEAST_GAIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.control.noting import Notes
    from geoedge.control.planners.base import Plan, Situation

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

__all__ = ["WHY", "LeftOut", "left_out"]

WHY = {
    "absent": "the controller was down",
    "no demand": "nothing was asked in the epoch before, so nothing was forecast",
    "no candidate": "there was no change to look at",
    "nothing to gain": "it promised no gain",
    "least gain": "it promised less than the least gain",
    "toll": "its gain did not pay for its bytes, or for going back",
    "busy": "states were on their way to a site, or it was down",
    "hold": "a site had changed too lately",
    "floor": "too few sites would have held a profile",
    "cap": "too many sites would have held a profile, or deep ones",
    "budget": "its bytes were beyond what was left of the budget",
    "most actions": "the epoch had all the actions that it may have",
    "not looked at": "the planner solved the field for others only",
    "not chosen": "the planner chose by more than the gain of one action",
}
"""Why an action was left out, by the words of the table of decisions."""


@dataclass(frozen=True)
class LeftOut:
    """The best action of those that a plan has not taken, and why it was not taken."""

    why: str
    """Words of `WHY`, several where several rules forbade it, with commas between."""
    action: Action | None = None
    gain: float = np.nan
    """Coverage that it promised, as the planner predicts; before tolls."""
    toll: float = np.nan
    """Coverage that it had to gain for its bytes, and for going back."""
    solved: bool = False
    """Whether the gain is the field's; else it is the rough one of the screening."""
    unseen_gain: float = np.nan
    """Most that any action promised at the rough look which was allowed and which the field was not solved for."""

    def words(self, names: Sequence[str]) -> str:
        """Return which action it is, empty if there is none.

        Parameters
        ----------
        names
            Names of the profiles.
        """
        if self.action is None:
            return ""
        changes = (
            f"site {c.site} {names[c.from_profile]} -> {names[c.to_profile]}" for c in self.action.changes
        )
        return f"{self.action.kind} {'; '.join(changes)}"


def left_out(situation: Situation, plan: Plan, notes: Notes, *, at_once: bool = False) -> LeftOut:
    """Return the best action that a plan has left out, by the numbers that the planner itself has asked for.

    That is the one of greatest gain of those that the field was solved for; or one that a rule forbade, if that
    promised more at the rough look; or, if there is neither, the one that promised most there. Where none that was
    solved for pays, no rule forbade one, and the search had no looks left for one that would pay by the rough look, it
    is that one. Other changes of sites that the plan changes are not counted as left out.

    Parameters
    ----------
    situation
        What the planner knew.
    plan
        What it made of it.
    notes
        What it asked.
    at_once
        Whether its moves take no time and no budget, and sites change as often as they like.
    """
    gains = notes.gains()
    if gains is None:
        return LeftOut("not chosen" if plan.actions else "no candidate")
    return _Candidates(situation, plan, notes, gains, at_once=at_once).best()


class _Candidates:
    """All changes of one site and all exchanges of two after a plan: what each promises, and what forbids it."""

    def __init__(
        self, situation: Situation, plan: Plan, notes: Notes, gains: Floats, *, at_once: bool
    ) -> None:
        self.situation, self.plan, self.notes, self.limits = situation, plan, notes, situation.limits
        self.at_once, self.profile, self.moved = at_once, plan.profile, situation.transfer_bytes
        self.least = LEAST if at_once else max(self.limits.min_gain, LEAST_GAIN)
        self.toll = np.zeros_like(gains) if at_once else situation.toll
        self.left_bytes = (
            np.inf if at_once else self.limits.budget_bytes - sum(each.bytes_moved for each in plan.actions)
        )
        self.gain = self._pairs_too(self._changes(gains))
        self.solved = tuple(np.zeros(each.shape, dtype=np.bool_) for each in self.gain)
        self._solve()

    def best(self) -> LeftOut:
        """Return the best one."""
        forbidden, pays = (
            self._forbidden(),
            [g - t >= self.least for g, t in zip(self.gain, self._tolls(), strict=True)],
        )
        each = list(zip(forbidden, pays, self.solved, strict=True))
        ruled = self._top([f & p & ~s for f, p, s in each])
        unseen = self._top([~f & ~s for f, _, s in each])
        missed = self._top([~f & p & ~s for f, p, s in each]) if self._stopped else None
        solved = self._top([s & p for _, p, s in each] if missed else self.solved)
        found = max((one for one in (solved, ruled) if one), key=lambda one: one[0], default=None)
        found = found or missed or unseen or self._top([np.ones_like(each) for each in self.solved])
        if found is None:
            return LeftOut("no candidate")
        gain, action, known = found
        toll = float(sum(self.toll[change.site, change.to_profile] for change in action.changes))
        why = self._why(action, gain, toll, known)
        return LeftOut(why, action, gain, toll, known, unseen[0] if unseen else np.nan)

    @property
    def _stopped(self) -> bool:
        """Whether the search ended as it had solved the field for as many actions as it may, not as none was left."""
        return not self.notes.rough and sum(int(each.sum()) for each in self.solved) >= self.limits.looks

    def _changes(self, gains: Floats) -> Floats:
        """Return the gains of changes of one site that there are, −inf elsewhere, shape (n, S)."""
        single = np.where(self.moved[self.profile] < NEVER_BYTES, gains, -np.inf)
        single[np.arange(len(single)), self.profile] = -np.inf
        single[[site for action in self.plan.actions for site in action.sites]] = -np.inf
        return single

    def _pairs_too(self, single: Floats) -> tuple[Floats, Floats]:
        """Return values of changes of one site, shape (n, S), and their sums for exchanges, shape (n, n)."""
        both = single[:, self.profile] + single[:, self.profile].T
        return single, np.where(np.triu(np.ones(both.shape, dtype=np.bool_), 1), both, -np.inf)

    def _tolls(self) -> tuple[Floats, Floats]:
        gets = self.toll[:, self.profile]
        return self.toll, gets + gets.T

    def _solve(self) -> None:
        """Put the field's gains in place of the rough ones where it was solved."""
        single, pair = self.gain
        for key, coverage in self.notes.solved().items():
            profile = np.frombuffer(key, dtype=self.profile.dtype)
            sites = np.flatnonzero(profile != self.profile)
            if len(sites) == 1:
                at, table = (int(sites[0]), int(profile[sites[0]])), 0
            elif len(sites) == 2 and (profile[sites] == self.profile[sites[::-1]]).all():
                at, table = (int(sites[0]), int(sites[1])), 1
            else:
                continue
            if (single, pair)[table][at] > -np.inf:
                (single, pair)[table][at] = coverage - self.plan.after.coverage
                self.solved[table][at] = True

    def _forbidden(self) -> tuple[Flags, Flags]:
        """Return which changes of one site and which exchanges a rule forbids, shapes (n, S) and (n, n)."""
        still = self.situation.in_transit if self.at_once else self.situation.fixed
        fixed = np.isin(np.arange(len(self.profile)), sorted(still))
        full = not self.at_once and len(self.plan.actions) >= self.limits.rounds
        allowed = self.limits.allowed(np.bincount(self.profile, minlength=len(self.moved)))
        dear = self.moved > self.left_bytes
        gets = self.moved[np.ix_(self.profile, self.profile)]
        return (
            full | fixed[:, None] | (dear | ~allowed)[self.profile],
            full | fixed[:, None] | fixed | (gets + gets.T > self.left_bytes),
        )

    def _top(self, among: Sequence[Flags]) -> tuple[float, Action, bool] | None:
        """Return the greatest gain among some, whose it is, and whether it is the field's."""
        found: list[tuple[float, Action, bool]] = []
        for table, (gain, chosen) in enumerate(zip(self.gain, among, strict=True)):
            score = np.where(chosen, gain, -np.inf)
            i, j = divmod(int(score.argmax()), score.shape[1])
            if score[i, j] > -np.inf:
                action = (
                    migrate(i, j, self.profile, self.moved)
                    if table
                    else change_profile(i, int(self.profile[i]), j, self.moved)
                )
                found.append((float(score[i, j]), action, bool(self.solved[table][i, j])))
        return max(found, key=lambda one: one[0], default=None)

    def _why(self, action: Action, gain: float, toll: float, known: bool) -> str:
        if gain <= LEAST_GAIN:
            return "nothing to gain"
        if gain - toll < self.least:
            return "least gain" if gain < self.least else "toll"
        otherwise = "not chosen" if known or self.notes.rough else "not looked at"
        return ", ".join(self._rules(action)) or otherwise

    def _rules(self, action: Action) -> Iterator[str]:
        """Yield which rules forbid an action."""
        sites, in_transit = set(action.sites), self.situation.in_transit
        if sites & in_transit:
            yield "busy"
        if not self.at_once and sites & (self.situation.fixed - in_transit):
            yield "hold"
        both = (self.profile, action.apply(self.profile))
        before, after = (np.bincount(each, minlength=len(self.moved)) for each in both)
        if not self.limits.allow(after, before):
            yield "floor" if (after < np.minimum(self.limits.least_sites, before)).any() else "cap"
        if action.bytes_moved > self.left_bytes:
            yield "budget"
        if not self.at_once and len(self.plan.actions) >= self.limits.rounds:
            yield "most actions"
