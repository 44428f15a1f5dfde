"""What people ask for as the day goes on: type probabilities that drift while the number of requests stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.trips import HOUR_S
from geoedge.errors import ScenarioError
from geoedge.streams import stream

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.scenario import EventConfig, TypeWeight

    Floats = NDArray[np.float64]

__all__ = ["Popularity", "drifting", "type_shares"]

WALK_STEP_S = 60.0
"""Time between two steps of a random walk [s]; between them shares are linear."""


@dataclass(frozen=True, eq=False)
class Popularity:
    """Type probabilities over time, linear between instants, still before the first and after the last.

    Parameters
    ----------
    time_s
        Increasing instants [s since midnight], shape (K,).
    share
        Probability of each type at each instant, rows that sum to 1, shape (K, Q).

    Raises
    ------
    ScenarioError
        If instants do not increase or shares are no probabilities.
    """

    time_s: Floats
    share: Floats

    def __post_init__(self) -> None:
        if not len(self.time_s) or self.share.ndim != 2 or len(self.share) != len(self.time_s):
            msg = (
                f"`share` of shape {self.share.shape} must have a row for each of {len(self.time_s)} instants"
            )
            raise ScenarioError(msg)
        if (np.diff(self.time_s) <= 0.0).any() or not np.isfinite(self.time_s).all():
            msg = "`time_s` must increase; give every instant once"
            raise ScenarioError(msg)
        if (self.share < 0.0).any() or not np.allclose(self.share.sum(axis=1), 1.0):
            msg = "`share` must hold probabilities, rows that sum to 1; divide each row by its sum"
            raise ScenarioError(msg)

    def at(self, time_s: ArrayLike) -> Floats:
        """Return the probability of each type at instants, shape (Q, n).

        Parameters
        ----------
        time_s
            Instants [s since midnight], shape (n,).
        """
        when = np.atleast_1d(np.asarray(time_s, dtype=np.float64))
        return np.stack([np.interp(when, self.time_s, column) for column in self.share.T])


def type_shares(types: Sequence[TypeWeight], type_names: Sequence[str]) -> Floats:
    """Return the weights of named types as shares of all types, none for the others, shape (Q,).

    Parameters
    ----------
    types
        Types with weights, as the scenario has checked them.
    type_names
        Names of all types, length Q.
    """
    weight = np.zeros(len(type_names))
    for one in types:
        weight[type_names.index(one.name)] = one.weight
    return np.asarray(weight / weight.sum(), dtype=np.float64)


def drifting(
    events: Sequence[EventConfig],
    type_names: Sequence[str],
    type_probability: ArrayLike,
    seed: int | None = None,
) -> Popularity | None:
    """Return the type probabilities over the day of a scenario's drifts; nothing if it has none.

    A drift leads from the shares that hold when it begins, in a straight line, to those that it names; a random
    one lets the logarithm of every type's weight walk on its own. What holds at its end holds from then on.

    Parameters
    ----------
    events
        Events of the scenario; other kinds do not count.
    type_names
        Names of all types, length Q.
    type_probability
        p_q before the first drift, shape (Q,).
    seed
        Seed of the run whose random walks are meant; without one, random drifts are not known and left out.
    """
    share = np.asarray(type_probability, dtype=np.float64)
    times, shares = [-np.inf], [share]
    drifts = [(k, event) for k, event in enumerate(events) if event.kind == "popularity_drift"]
    for number, event in sorted(drifts, key=lambda item: item[1].start_s):
        if event.types is not None:
            when, path = np.array([event.start_s, event.end_s]), [share, type_shares(event.types, type_names)]
        elif seed is not None:
            when, path = _walk(event, share, stream(seed, "dynamics", number, "walk"))
        else:
            continue
        if when[0] == times[-1]:
            when, path = when[1:], path[1:]
        times += when.tolist()
        shares += path
        share = shares[-1]
    return Popularity(np.array(times[1:]), np.array(shares[1:])) if len(times) > 1 else None


def _walk(event: EventConfig, share: Floats, rng: np.random.Generator) -> tuple[Floats, list[Floats]]:
    """Return instants and shares of a random walk of the logarithms of the weights."""
    steps = max(1, int(np.ceil((event.end_s - event.start_s) / WALK_STEP_S)))
    when = np.linspace(event.start_s, event.end_s, steps + 1)
    spread = (event.sd_per_hour or 0.0) * np.sqrt(np.diff(when) / HOUR_S)
    paths = np.cumsum(rng.standard_normal((steps, len(share))) * spread[:, None], axis=0)
    weight = share * np.exp(np.concatenate((np.zeros((1, len(share))), paths)))
    return when, list(weight / weight.sum(axis=1, keepdims=True))


def hours_of_knots(popularity: Popularity) -> list[tuple[int, range]]:
    """Return for every instant of a popularity the hours in which its shares count, the last to the day's end."""
    hour = np.floor(popularity.time_s / HOUR_S).astype(np.int64).tolist()
    spans = [range(a, b + 1) for a, b in pairwise([*hour, 27])]
    return list(enumerate(spans))
