"""What planners are told, what they must keep to, and what they answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from geoedge.city.demand import Demand
from geoedge.control.actions import RETURN_EPOCHS, Action
from geoedge.control.planners.limits import Limits
from geoedge.errors import GeoEdgeError
from geoedge.units import GB

__all__ = [
    "NEVER",
    "Limits",
    "Plan",
    "Prediction",
    "Predictor",
    "Situation",
    "no_plan",
]

NEVER = 1_000_000
"""Epochs since something that has never happened."""

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
        """Return the equilibrium of a placement.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        start
            Equilibrium of a placement like it.
        """

    def screen(self, profile: Ints, base: Prediction) -> Floats:
        """Return the rough gain in coverage of giving site i profile s alone, shape (n, S).

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        base
            Its equilibrium.
        """

    def judge(self, profile: Ints, wait: Floats) -> float:
        """Return the coverage of a placement under advertised waits that are no equilibrium.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        wait
            Advertised waits [s], shape (n,).
        """

    def coarse(self) -> Predictor:
        """Return a predictor that answers roughly and fast."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Actions in the order of their choice, with what is predicted before and after them."""

    actions: tuple[Action, ...]
    before: Prediction
    after: Prediction
    profile: Ints
    """Placement once all states have arrived, shape (n,)."""


@dataclass(frozen=True, eq=False)
class Situation:
    """What a planner knows at the start of an epoch.

    Parameters
    ----------
    epoch
        The epoch that starts.
    time_s
        When it starts [s since midnight].
    profile
        What each site holds, or will hold once all that is on its way has arrived, shape (n,).
    in_transit
        Sites that states are on their way to, and those that are down; they must stay as they are.
    forecast
        Demand of the coming epochs, first of the one that starts.
    predictor_of
        Makes a predictor for a demand; the same one when it is asked again.
    limits
        Budget, shares of profiles, least gain, reluctance.
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S), indexed ``[s, t]``.
    rng
        Random stream of this plan.
    profile_names
        Names for the reasons; numbers if empty.
    last
        An equilibrium to start from.
    held_since
        Epochs since each site's last change, shape (n,); none has changed if omitted.
    left_since
        Epochs since a plan last let each site leave each profile, shape (n, S), `NEVER` if none has; none if omitted.
    mix_of
        Share of sites for each profile that theory recommends under a demand, shape (S,); for planners that ask it.
    """

    epoch: int
    time_s: float
    profile: Ints
    in_transit: frozenset[int]
    forecast: tuple[Demand, ...]
    predictor_of: Callable[[Demand], Predictor]
    limits: Limits
    transfer_bytes: Floats
    rng: np.random.Generator
    profile_names: Sequence[str] = ()
    last: Prediction | None = None
    held_since: Ints | None = None
    left_since: Ints | None = None
    mix_of: Callable[[Demand], Floats] | None = None

    def __post_init__(self) -> None:
        if not self.forecast:
            msg = "control: a plan needs a forecast; give the demand of at least one epoch"
            raise GeoEdgeError(msg)
        if len(self.limits.least_sites) != len(self.transfer_bytes):
            msg = (
                f"control: limits are for {len(self.limits.least_sites)} profiles, "
                f"`transfer_bytes` for {len(self.transfer_bytes)}"
            )
            raise GeoEdgeError(msg)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the profiles."""
        return tuple(self.profile_names) or tuple(str(s) for s in range(len(self.transfer_bytes)))

    @property
    def count(self) -> Ints:
        """Sites of each profile, shape (S,)."""
        return np.bincount(self.profile, minlength=len(self.transfer_bytes))

    @property
    def fixed(self) -> frozenset[int]:
        """Sites that must stay as they are: states are on their way, or they have changed too lately."""
        if self.held_since is None:
            return self.in_transit
        young = np.flatnonzero(self.held_since < self.limits.least_hold_epochs)
        return self.in_transit | frozenset(young.tolist())

    @property
    def toll(self) -> Floats:
        """What each change of one site must gain beyond the least gain, shape (n, S): price of bytes, and hysteresis.

        Hysteresis is on every profile that a site has left so lately that going back counts as an oscillation, so
        that a way round by a third profile is not free.
        """
        toll = self.limits.migration_price / GB * self.transfer_bytes[self.profile]
        if self.left_since is not None:
            toll += self.limits.hysteresis * (self.left_since <= RETURN_EPOCHS)
        return np.asarray(toll, dtype=np.float64)


def no_plan(situation: Situation) -> Plan:
    """Return the plan of doing nothing."""
    now = situation.predictor_of(situation.forecast[0]).solve(situation.profile, situation.last)
    return Plan((), now, now, situation.profile)
