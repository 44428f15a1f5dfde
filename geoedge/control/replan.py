"""Replanning: which caches to move where, chosen by predicted gain within a budget.

Every change of one site's profile is screened once, on coarse cells. Each round then takes the most promising
changes and exchanges between two sites, solves the field for them one by one until no other promises more,
and accepts the best. Rounds follow each other on the new placement, with scores corrected by what the field
said, until nothing gains enough or fits any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import Action, change_profile, migrate
from geoedge.errors import GeoEdgeError

__all__ = ["Limits", "Plan", "Prediction", "Predictor", "deep_profiles", "make_limits", "plan_epoch"]

_WORTH_A_LOOK = 0.5
"""Share of the least gain that a screened score must promise for the field to be solved."""
_LEAST_GAIN = 1e-9
"""A smaller gain is rounding, whatever the scenario asks."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a predictor expects of a placement, all arrays of shape (n,)."""

    coverage: float
    """Share of requests in time."""
    profile: Ints
    """The placement."""
    wait: Floats
    """Wait that each site advertises, its price [s]."""
    utilization: Floats
    arrival_rate: Floats
    """Requests that each site serves [1/s]."""
    missed_rate: Floats
    """Requests among them that are not in time [1/s]."""
    prefill: Floats
    """Mean prefill time of what each site serves [s]; 0 where it serves nothing."""
    occupancy: Floats
    """Mean time that a request holds a server [s], as above."""


class Predictor(Protocol):
    """Tells what a placement would do under one fixed demand."""

    def solve(self, profile: Ints, start: Prediction | None = None) -> Prediction:
        """Return the equilibrium of a placement, shape (n,), starting from that of a placement like it."""

    def screen(self, profile: Ints, base: Prediction) -> Floats:
        """Return the rough gain in coverage of giving site i profile s alone, shape (n, S)."""

    def judge(self, profile: Ints, wait: Floats) -> float:
        """Return the coverage of a placement, shape (n,), under advertised waits that are no equilibrium."""


@dataclass(frozen=True, eq=False)
class Limits:
    """What a plan must keep to.

    Parameters
    ----------
    budget_bytes
        Bytes moved in an epoch, at most [B].
    least_sites, most_sites
        Sites that hold each profile, at least and at most, shape (S,).
    min_gain
        Predicted gain in coverage below which nothing is done.
    looks
        Candidates for which a round solves the field, at most.
    rounds
        Actions in an epoch, at most.
    """

    budget_bytes: float
    least_sites: Ints
    most_sites: Ints
    min_gain: float
    looks: int = 4
    rounds: int = 8


@dataclass(frozen=True, eq=False)
class Plan:
    """Actions in the order of their choice, with what is predicted before and after them."""

    actions: tuple[Action, ...]
    before: Prediction
    after: Prediction
    profile: Ints
    """Placement once all states have arrived, shape (n,)."""


def make_limits(
    n_sites: int,
    hit_tokens: Ints,
    *,
    budget_bytes: float,
    fallback_floor: float,
    deep_cap: float,
    min_gain: float,
) -> Limits:
    """Return limits in whole sites from shares, the constraints of Eq. (49).

    The fallback is the first profile; `deep_profiles` says which are deep.

    Parameters
    ----------
    n_sites
        Number of sites n.
    hit_tokens
        Hits d [token], shape (S, Q).
    budget_bytes
        Bytes moved in an epoch, at most [B].
    fallback_floor
        Share of sites that hold the fallback, at least.
    deep_cap
        Share of sites that hold any one deep profile, at most.
    min_gain
        Predicted gain in coverage below which nothing is done.
    """
    least = np.zeros(len(hit_tokens), dtype=np.int64)
    most = np.full(len(hit_tokens), n_sites, dtype=np.int64)
    least[0] = np.ceil(fallback_floor * n_sites - 1e-9)
    most[deep_profiles(hit_tokens)] = np.floor(deep_cap * n_sites + 1e-9)
    return Limits(budget_bytes, least, most, min_gain)


def deep_profiles(hit_tokens: Ints) -> NDArray[np.bool_]:
    """Return which profiles are deep, shape (S,): those whose longest hit exceeds that of another one that stores.

    Parameters
    ----------
    hit_tokens
        Hits d [token], shape (S, Q).
    """
    longest = hit_tokens.max(axis=1)
    stores = longest[1:][longest[1:] > 0]
    return np.asarray(longest > (stores.min() if stores.size else np.inf))


def plan_epoch(
    predictor: Predictor,
    profile: Ints,
    transfer_bytes: Floats,
    limits: Limits,
    *,
    busy: frozenset[int] = frozenset(),
    profile_names: Sequence[str] = (),
    start: Prediction | None = None,
) -> Plan:
    """Choose an epoch's actions, one after the other, each the best predicted gain at its turn.

    A site is changed at most once in an epoch. A placement that breaks a limit already is not made worse.

    Parameters
    ----------
    predictor
        The field under the demand of the last epoch, or anything that answers like it.
    profile
        The placement, shape (n,).
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S), indexed ``[s, t]``.
    limits
        Budget, shares of profiles, least gain.
    busy
        Sites that must stay as they are, because states are on their way to them.
    profile_names
        Names for the reasons; numbers if empty.
    start
        An equilibrium to start from.

    Raises
    ------
    GeoEdgeError
        If the limits are not for as many profiles as `transfer_bytes`.
    """
    if len(limits.least_sites) != len(transfer_bytes):
        msg = f"control: limits are for {len(limits.least_sites)} profiles, `transfer_bytes` for {len(transfer_bytes)}"
        raise GeoEdgeError(msg)
    names = tuple(profile_names) or tuple(str(s) for s in range(len(transfer_bytes)))
    search = _Search(predictor, np.array(profile, dtype=np.int64), transfer_bytes, limits, busy, start)
    actions: list[Action] = []
    before = now = search.now
    while len(actions) < limits.rounds and (action := search.best()) is not None:
        search.accept(action)
        gain = search.now.coverage - now.coverage
        actions.append(action.explained(gain, _reason(action, now, search.now, names)))
        now = search.now
    return Plan(tuple(actions), before, now, search.profile)


class _Search:
    """The state of a plan in the making; scores are gains, screened at first, solved where they were looked at."""

    def __init__(
        self,
        predictor: Predictor,
        profile: Ints,
        transfer_bytes: Floats,
        limits: Limits,
        busy: frozenset[int],
        start: Prediction | None,
    ) -> None:
        self.predictor, self.limits, self.budget = predictor, limits, limits.budget_bytes
        self.profile, self.transfer_bytes = profile, transfer_bytes
        self.now = predictor.solve(profile, start)
        self.least = max(limits.min_gain, _LEAST_GAIN)
        self.single = np.array(predictor.screen(profile, self.now))
        self.single[np.arange(len(profile)), profile] = -np.inf
        gets = self.single[:, profile]
        self.pair = np.where(np.triu(np.ones(gets.shape, dtype=bool), 1), gets + gets.T, -np.inf)
        self._solved: dict[Action, Prediction] = {}
        self._close(busy)

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
        """Solve the field with an action done, and keep what it gains as its score."""
        after = self._solved[action] = self.predictor.solve(action.apply(self.profile), self.now)
        gain = after.coverage - self.now.coverage
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
        for score, i, j in _top(pair, self.limits.looks, least):
            taker, giver = (i, j) if gets[i, j] >= gets[j, i] else (j, i)
            ranked.append((score, migrate(taker, giver, self.profile, moved)))
        return sorted(ranked, key=lambda found: -found[0])


def _top(score: Floats, width: int, least: float) -> list[tuple[float, int, int]]:
    """Return the greatest scores not below a least one and their places, ties in order of place."""
    flat = score.reshape(-1)
    best = np.argsort(-flat, kind="stable")[:width]
    return [(float(flat[k]), *divmod(int(k), score.shape[1])) for k in best if flat[k] >= least]


def _reason(action: Action, before: Prediction, after: Prediction, names: Sequence[str]) -> str:
    """Return why an action was chosen, in words and numbers."""
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
