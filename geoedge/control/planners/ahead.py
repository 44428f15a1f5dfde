"""Planners that look further than the epoch that starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import NEVER_BYTES, Action, change_profile, migrate
from geoedge.control.planners.base import Plan, Prediction, Situation
from geoedge.control.planners.greedy import plan_of, plan_with
from geoedge.control.planners.mean import mean_over
from geoedge.control.planners.mending import mended
from geoedge.control.planners.search import LEAST_GAIN, worth_of
from geoedge.units import GB

__all__ = ["look_ahead", "multi_period"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@mended(mean_over)
def look_ahead(situation: Situation) -> Plan:
    """Choose actions one after the other by what they gain over all epochs of the forecast, weighted by requests.

    Parameters
    ----------
    situation
        What is known.
    """
    return plan_with(situation, mean_over(situation), situation.last)


@mended(mean_over)
def multi_period(situation: Situation) -> Plan:
    """Choose a sequence of placements over the forecast, and do its first step, Eq. (58).

    The sequence maximises the sum of the epochs' coverages, each weighted by its requests, less the price of
    migration. It is built of paths: what one site holds in each epoch, or two sites that exchange. Each site's best
    path is found by dynamic programming on screened gains; the most promising paths are solved in every epoch, and
    the best is kept, until none gains enough. The budget holds in every epoch; where it keeps out what would be
    wanted, a second sequence takes what gains most per byte, and the better of the two is kept, as `greedy` does.

    Parameters
    ----------
    situation
        What is known.
    """
    sequence = _filled(situation)
    if sequence.short:
        frugal = _filled(situation, per_byte=True)
        sequence = frugal if frugal.net > sequence.net else sequence
    why = f"first of {len(situation.forecast)} epochs: "
    return plan_of(sequence.first, situation, mean_over(situation), situation.last, why)


def _filled(situation: Situation, *, per_byte: bool = False) -> _Sequence:
    """Return the sequence of placements once no path is left that gains enough and fits."""
    sequence = _Sequence(situation, per_byte=per_byte)
    while sequence.paths < situation.limits.rounds and sequence.extend():
        pass
    return sequence


@dataclass(frozen=True, eq=False)
class _Path:
    """What some sites hold in each epoch, profiles of shape (sites, H), and what that promises."""

    sites: tuple[int, ...]
    profiles: Ints
    value: float

    def on(self, placements: Ints) -> Ints:
        """Return the placements with it, shape (H, n)."""
        changed = placements.copy()
        changed[:, list(self.sites)] = self.profiles.T
        return changed


class _Sequence:
    """Placements over the coming epochs in the making."""

    def __init__(self, situation: Situation, *, per_byte: bool = False) -> None:
        self.situation, self.limits = situation, situation.limits
        self.per_byte, self.net, self.short = per_byte, 0.0, False
        self.start, self.moved = situation.profile, situation.transfer_bytes
        rates = np.array([demand.request_rate for demand in situation.forecast])
        self.weight = len(rates) * rates / rates.sum()
        self.predictors = [situation.predictor_of(demand).coarse() for demand in situation.forecast]
        self.placements = np.tile(self.start, (len(rates), 1))
        self.now = [one.solve(self.start) for one in self.predictors]
        self.gain = self._screened()
        self.budget = self.limits.budgets(len(rates))
        self.open = np.ones(len(self.start), dtype=bool)
        self.open[sorted(situation.fixed)] = False
        self.price = self.limits.migration_price / GB * self.moved
        self.undo = situation.toll - self.price[self.start]
        self.paths, self.first = 0, list[Action]()

    def extend(self) -> bool:
        """Add the path that gains most of those that promise most; return whether there is one."""
        least = max(self.limits.min_gain, LEAST_GAIN)
        found: tuple[float, float, _Path, list[Prediction]] | None = None
        for path in self._promising(0.5 * least)[: self.limits.looks]:
            if found is not None and found[0] >= self._rank(path, path.value):
                break
            after = self._solved(path)
            gain = self._worth(after) - self._worth(self.now) - self._price(path)
            rank = self._rank(path, gain)
            if gain >= least and (found is None or rank >= found[0]):
                found = rank, gain, path, after
            elif found is None:
                self.open[list(path.sites)] &= len(path.sites) > 1
        if found is None:
            return False
        self.net += found[1]
        self._accept(*found[2:])
        return True

    def _rank(self, path: _Path, gain: float) -> float:
        """Return what paths are ranked by: what they gain, or that per byte."""
        return float(worth_of(gain, self._bytes(path).sum())) if self.per_byte else gain

    def _screened(self) -> Floats:
        """Return the weighted gain of each profile at each site in each epoch, shape (H, n, S)."""
        rows, known = np.arange(len(self.start)), dict[int, Floats]()
        for one, base in zip(self.predictors, self.now, strict=True):
            if id(one) not in known:
                gain = known[id(one)] = np.array(one.screen(self.start, base))
                gain[rows, self.start] = 0.0
        return np.array([w * known[id(one)] for w, one in zip(self.weight, self.predictors, strict=True)])

    def _worth(self, predictions: list[Prediction]) -> float:
        return float(self.weight @ [each.coverage for each in predictions])

    def _solved(self, path: _Path) -> list[Prediction]:
        placements = path.on(self.placements)
        return [
            one.solve(profile, now)
            for one, profile, now in zip(self.predictors, placements, self.now, strict=True)
        ]

    def _price(self, path: _Path) -> float:
        """Return what a path must gain to pay for its bytes and for what it undoes."""
        total = 0.0
        for site, profiles in zip(path.sites, path.profiles, strict=True):
            held = np.concatenate(([self.start[site]], profiles))
            total += float(self.price[held[:-1], held[1:]].sum())
            total += float(self.undo[site, profiles[0]]) if profiles[0] != self.start[site] else 0.0
        return total

    def _bytes(self, path: _Path) -> Floats:
        """Return what a path moves in each epoch [B], shape (H,)."""
        held = np.column_stack((self.start[list(path.sites)], path.profiles))
        return np.asarray(self.moved[held[:, :-1], held[:, 1:]].sum(axis=0))

    def _accept(self, path: _Path, after: list[Prediction]) -> None:
        self.placements, self.now = path.on(self.placements), after
        self.budget = self.budget - self._bytes(path)
        self.open[list(path.sites)] = False
        self.paths += 1
        if (path.profiles[:, 0] == self.start[list(path.sites)]).all():
            return
        i, *others = path.sites
        self.first.append(
            migrate(i, others[0], self.start, self.moved)
            if others
            else change_profile(i, int(self.start[i]), int(path.profiles[0, 0]), self.moved)
        )

    def _promising(self, least: float) -> list[_Path]:
        """Return the best path of every open site, and the exchanges, that promise enough, by falling rank."""
        allowed = self._allowed()
        paths = [
            path for i in np.flatnonzero(self.open) if (path := self._best_path(int(i), allowed)) is not None
        ]
        alone = {path.sites[0]: path.value for path in paths}
        # an exchange takes two sites at once: not where each by itself promises as much
        exchanges = [
            path
            for path in self._exchanges()
            if path.value > sum(alone.get(site, 0.0) for site in path.sites) + LEAST_GAIN
        ]
        enough = [path for path in (*paths, *exchanges) if path.value >= least]
        return sorted(enough, key=lambda path: -self._rank(path, path.value))

    def _allowed(self) -> NDArray[np.bool_]:
        """Return whether one more site may go from profile s to t in each epoch, shape (H, S, S)."""
        size = len(self.moved)
        count = np.array([np.bincount(row, minlength=size) for row in self.placements])
        return np.array([self.limits.allowed(row) for row in count]) | np.eye(size, dtype=bool)

    def _best_path(self, site: int, allowed: NDArray[np.bool_]) -> _Path | None:
        """Return the path of greatest value at one site; None if it is to stay as it is."""
        gain = np.where(allowed[:, self.start[site]], self.gain[:, site], -np.inf)
        path = self._path_within(site, gain, self.budget)
        if (self.moved[self.moved < NEVER_BYTES].max() > self.budget).any() and not self.short:
            open_path = self._path_within(site, gain, np.full(len(self.budget), 0.5 * NEVER_BYTES))
            wanted = 0.0 if open_path is None else open_path.value
            self.short = wanted > max(0.0 if path is None else path.value, 0.5 * self.limits.min_gain)
        return path

    def _path_within(self, site: int, gain: Floats, budget: Floats) -> _Path | None:
        """Return the path of greatest value at one site under a budget by epoch, by dynamic programming."""
        horizon, size, first = len(self.weight), len(self.moved), int(self.start[site])
        value, came = np.full(size, -np.inf), np.zeros((horizon, size), dtype=np.int64)
        value[first] = 0.0
        for epoch in range(horizon):
            step = value[:, None] - self.price - (self.undo[site] if epoch == 0 else 0.0)
            step = np.where(self.moved <= budget[epoch], step, -np.inf)
            came[epoch] = step.argmax(axis=0)
            value = step.max(axis=0) + gain[epoch]
        profiles = np.zeros(horizon, dtype=np.int64)
        at = int(value.argmax())
        for epoch in range(horizon - 1, -1, -1):
            profiles[epoch] = at
            at = int(came[epoch, at])
        if not value.max() > 0.0 or (profiles == first).all():
            return None
        return _Path((site,), profiles[None, :], float(value.max()))

    def _exchanges(self) -> list[_Path]:
        """Return the exchanges of two open sites that promise most, each from the epoch on that suits it best."""
        gets = self.gain[:, :, self.start]
        both = np.where(self.open[:, None] & self.open, gets + np.swapaxes(gets, 1, 2), -np.inf)
        moved = self.moved[np.ix_(self.start, self.start)]
        from_on = np.cumsum(both[::-1], axis=0)[::-1] - self.limits.migration_price / GB * (moved + moved.T)
        toll = self.undo[:, self.start]
        from_on[0] -= toll + toll.T
        dear = self.budget[:, None, None] < moved + moved.T
        self.short |= bool(
            (np.where(dear & (moved + moved.T < NEVER_BYTES), from_on, 0.0) > self.limits.min_gain).any()
        )
        from_on[dear] = -np.inf
        begin, best = from_on.argmax(axis=0), np.triu(from_on.max(axis=0), 1)
        found = []
        for k in np.argsort(-best, axis=None, kind="stable")[: self.limits.looks]:
            i, j = divmod(int(k), len(self.start))
            if not 0.0 < best[i, j] < np.inf:
                break
            later = np.arange(len(self.weight)) >= begin[i, j]
            profiles = np.where(later, self.start[[j, i]][:, None], self.start[[i, j]][:, None])
            found.append(_Path((i, j), profiles, float(best[i, j])))
        return found
