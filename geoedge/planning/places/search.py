"""Choosing places: one after the other, then by exchanges, within the limits of a mix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.planning.places.field import NONE, Evaluator, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.theory.placement import PlacementLimits

    Ints = NDArray[np.int64]

__all__ = ["Limits", "exchange", "grow", "useful_profiles"]

Option = tuple[int, int]
"""A place and a profile for it."""
Move = tuple[Option, ...]
"""What some places hold from now on."""
LOOKS, LOOKED, MOST_LOOKS = 12, 0.4, 120
"""Options that a lazy step of growth looks at: this share of them, but so many at least, and from so many on no
more than the best asks for."""
FEW = 100
"""Options up to which growth looks at every one."""
MOVES, PARTS = 80, 30
"""Moves that a pass of exchanges tries, and single changes that moves are made of, at most."""
PASSES = 8
LEAST_GAIN = 5e-5
"""A smaller gain may be none: scores of one choice that start from different waits differ by up to 2e-5."""
WHOLE = 1e-9


@dataclass(frozen=True)
class Limits:
    """What the mix of equipped places keeps to, in whole sites.

    Parameters
    ----------
    shares
        Memory, floors and caps of the shares; a floor is rounded down to whole sites and a cap up.
    """

    shares: PlacementLimits

    def hold(self, held: Ints) -> bool:
        """Return whether a choice keeps them."""
        profile = held[held != NONE]
        count = np.bincount(profile, minlength=self.shares.tiers)
        n, memory = len(profile), np.asarray(self.shares.persistent_bytes)
        enough = count >= np.floor(np.asarray(self.shares.least) * n + WHOLE)
        few = count <= np.ceil(np.asarray(self.shares.most) * n - WHOLE)
        room = count @ memory <= n * self.shares.memory_budget_bytes * (1.0 + WHOLE)
        return bool(enough.all() and few.all() and room)


def useful_profiles(evaluator: Evaluator, shares: PlacementLimits) -> list[int]:
    """Return the profiles worth trying: those that no other one replaces at no cost, and those with a floor.

    A profile replaces another if it serves as many requests at once, none of them slower, and needs no more memory
    where memory is limited. Where caps leave no mix of these, all profiles are tried.

    Parameters
    ----------
    evaluator
        Whose workload it is.
    shares
        Limits of the mix.
    """
    work, everything = evaluator.study.workload, range(shares.tiers)
    least, most = np.asarray(shares.least), np.asarray(shares.most)
    costs = [-work.concurrency[:, None], work.prefill_time, work.occupancy_time]
    if np.isfinite(shares.memory_budget_bytes):
        costs.append(np.asarray(shares.persistent_bytes, dtype=np.float64)[:, None])
    cost = np.hstack(costs)

    def replaced(s: int) -> bool:
        others = [t for t in everything if t != s and (cost[t] <= cost[s]).all()]
        return any((cost[t] < cost[s]).any() or t < s for t in others)

    tried = [s for s in everything if least[s] > 0.0 or not replaced(s)]
    return tried if most[tried].sum() >= 1.0 - WHOLE else list(everything)


def grow(
    evaluator: Evaluator,
    options: Sequence[Option],
    limits: Limits | None = None,
    *,
    lazy: bool | None = None,
) -> Iterator[tuple[Option, Ints, Value]]:
    """Equip one place after the other, each time with the option that gains most, and yield every step.

    Every step looks at every option; a lazy one at those that gained most when last looked at, a share of them and on
    until none promises more than the best seen. What the others promise is shifted by how much those looked at have
    changed in the middle: sites that cannot carry the demand yet gain by company, and gains then grow.

    Parameters
    ----------
    evaluator
        Scores choices.
    options
        Places and profiles to choose from.
    limits
        Limits of the mix that every step keeps to; none if omitted.
    lazy
        Whether to look at some options only; where there are more than `FEW`, if omitted.

    Yields
    ------
    option, held, value
        What is added, the choice then, shape (N,), and its value. It ends when no option is left that keeps the limits.
    """
    held = np.full(evaluator.places, NONE, dtype=np.int64)
    now = evaluator.value(held)
    promise = dict.fromkeys(options, np.inf)
    lazy = len(promise) > FEW if lazy is None else lazy
    while promise:
        best: tuple[float, Option, Ints, Value] | None = None
        allowed = [option for option in promise if limits is None or limits.hold(_with(held, option))]
        ranked = sorted(allowed, key=lambda option: -promise[option])  # ties in the order given
        enough, drift = min(max(LOOKS, int(LOOKED * len(ranked))), MOST_LOOKS), []
        for looked, option in enumerate(ranked):
            if lazy and best is not None and looked >= enough and best[0] >= promise[option]:
                break
            after = _with(held, option)
            value = evaluator.value(after, now)
            gain = value.score - now.score
            drift.append(gain - promise[option])
            promise[option] = gain
            if best is None or gain > best[0]:
                best = gain, option, after, value
        if best is None:
            return
        for option in ranked[len(drift) :]:
            promise[option] += float(np.median(drift))
        _, chosen, held, now = best
        promise = {option: gain for option, gain in promise.items() if option[0] != chosen[0]}
        yield chosen, held, now


def exchange(
    evaluator: Evaluator,
    held: Ints,
    options: Sequence[Option],
    limits: Limits | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> tuple[Ints, Value]:
    """Improve a choice by other profiles at its places and by exchanging places, until no move gains.

    A pass measures what every change alone does: another profile at a place, a place that goes, a place that comes.
    A move is one other profile, two of them, a place for another, or that and another profile at a third; those of
    the greatest sum of single effects are tried, and each that gains is kept. It ends with a pass in which none does.

    Parameters
    ----------
    evaluator
        Scores choices.
    held
        Profile at each place, shape (N,).
    options
        Places and profiles to choose from.
    limits
        Limits of the mix; a choice that keeps them never leaves them.
    progress
        Told how many moves have been kept.

    Returns
    -------
    held, value
        The choice, never worse than the one given, and its value.
    """
    now, kept = evaluator.value(held), 0
    for _ in range(PASSES):
        before = kept
        for move in _moves(evaluator, held, now, options):
            after = _with(held, *move)
            if not _sound(held, after, move) or (limits is not None and not limits.hold(after)):
                continue
            value = evaluator.value(after, now)
            if value.score > now.score + LEAST_GAIN:
                held, now, kept = after, value, kept + 1
                if progress is not None:
                    progress(kept)
        if kept == before:
            break
    return held, now


def _with(held: Ints, *changes: Option) -> Ints:
    """Return a choice after changes of what places hold."""
    after = held.copy()
    for place, profile in changes:
        after[place] = profile
    return after


def _sound(held: Ints, after: Ints, move: Move) -> bool:
    """Return whether a move listed earlier in the pass still is one: as many places, and a change."""
    same = int((held != NONE).sum()) == int((after != NONE).sum())
    return same and all(held[place] != profile for place, profile in move)


def _moves(evaluator: Evaluator, held: Ints, now: Value, options: Sequence[Option]) -> list[Move]:
    """Return the moves of greatest promise, by falling promise."""

    def measured(changes: Sequence[Option]) -> list[tuple[float, Move]]:
        return [(evaluator.value(_with(held, each), now).score - now.score, (each,)) for each in changes]

    flips = measured([each for each in options if held[each[0]] not in (NONE, each[1])])
    outside = [each for each in options if held[each[0]] == NONE]
    goes = measured([(int(place), NONE) for place in np.flatnonzero(held != NONE)]) if outside else []
    swaps = _sums(goes, measured(outside))
    pairs = _sums(flips, flips)
    return [move for _, move in _best([*flips, *pairs, *swaps, *_sums(swaps, flips)], MOVES)]


def _sums(
    first: Sequence[tuple[float, Move]], second: Sequence[tuple[float, Move]]
) -> list[tuple[float, Move]]:
    """Return the most promising moves of two parts that concern different places."""
    found = [
        (a + b, (*one, *other))
        for a, one in _best(first, PARTS)
        for b, other in _best(second, PARTS)
        if {place for place, _ in one}.isdisjoint(place for place, _ in other)
    ]
    return _best(found, MOVES)


def _best(moves: Sequence[tuple[float, Move]], most: int) -> list[tuple[float, Move]]:
    return sorted(moves, key=lambda each: -each[0])[:most]
