"""Operating a fleet: at the start of every epoch prices are set, caches are moved, and what was promised is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.city.demand import Demand
from geoedge.control.actions import Action, Change, Placement
from geoedge.control.catalogue import Advertise, Catalogue, Scope
from geoedge.control.replan import Limits, Prediction, Predictor, plan_epoch

__all__ = ["LogEntry", "Operator", "Routing"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Routing:
    """What is advertised, by whom and how often."""

    advertise: Advertise = "equilibrium"
    scope: Scope = "site"
    telemetry_period_s: float = 1.0
    telemetry_delay_s: float = 0.0


@dataclass(frozen=True, eq=False)
class LogEntry:
    """One action as it was taken."""

    epoch: int
    time_s: float
    action: Action
    transfer_s: float


@dataclass(frozen=True, eq=False)
class Review:
    """What the field says of an epoch's actions in hindsight, under the demand that really came.

    Both coverages are the field's, at the prices that were, or would have been, advertised: those for the demand
    before. So the field's own error is in both, and their difference is what the actions did.
    """

    without: float
    """Coverage had none of the epoch's actions been done."""
    with_actions: float
    """Coverage with what they had brought by the end of the epoch."""

    @property
    def gain(self) -> float:
        """Coverage gained by the actions."""
        return self.with_actions - self.without


class Operator:
    """Sets prices and moves caches, epoch by epoch, on what it has measured.

    Parameters
    ----------
    predictor_of
        Makes a predictor for a demand.
    placement
        Where the caches are; changed by the actions.
    routing
        What is advertised.
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S).
    limits
        What plans must keep to; None for a controller that moves nothing.
    profile_names
        Names for the reasons.

    Attributes
    ----------
    log
        Actions taken, in order.
    reviews
        Of every epoch with actions, once it is over, where prices are advertised.
    catalogue
        What is advertised now.
    prediction
        What is expected of the placement as it is.
    """

    catalogue: Catalogue
    prediction: Prediction

    def __init__(
        self,
        predictor_of: Callable[[Demand], Predictor],
        placement: Placement,
        routing: Routing,
        *,
        transfer_bytes: Floats,
        limits: Limits | None = None,
        profile_names: Sequence[str] = (),
    ) -> None:
        self.placement, self.routing, self.limits = placement, routing, limits
        self.log: list[LogEntry] = []
        self.reviews: dict[int, Review] = {}
        self._predictor_of, self._transfer_bytes = predictor_of, transfer_bytes
        self._names = tuple(profile_names)
        self._predictor: Predictor | None = None
        self._last: Prediction | None = None
        self._epoch = 0

    def act(self, time_s: float, epoch: int, demand: Demand | None) -> None:
        """Start an epoch: look back, plan and begin the moves, set prices.

        Nothing is moved in epoch 0, as nothing has been measured before it.

        Parameters
        ----------
        time_s
            Now [s since midnight].
        epoch
            The epoch that starts.
        demand
            Demand of the epoch just past, or what is expected of the first; None if nothing was asked, upon
            which all stays as it is.
        """
        predictor = None if demand is None else self._predictor_of(demand)
        self._review(predictor)
        self._epoch = epoch
        if predictor is not None:
            self._predictor = predictor
            if self.limits is not None and epoch > 0:
                self._move(time_s, predictor, self.limits)
        self._price(time_s)

    def arrive(self, time_s: float) -> Sequence[Change]:
        """Let states that have arrived take effect, set prices anew, and return the changes."""
        changes = self.placement.arrive(time_s)
        if changes:
            self._price(time_s)
        return changes

    def look_back(self, demand: Demand | None) -> None:
        """Review the actions of the last epoch under the demand that it turned out to have."""
        self._review(None if demand is None else self._predictor_of(demand))

    def _review(self, predictor: Predictor | None) -> None:
        """Note what the field says of the epoch's actions; it cannot say it of waits that sites report themselves."""
        changes = [
            change for entry in self.log if entry.epoch == self._epoch for change in entry.action.changes
        ]
        planner = self._predictor
        if predictor is None or planner is None or not changes or self.routing.advertise != "equilibrium":
            return
        done = self.prediction
        profile = done.profile.copy()
        for change in changes:
            profile[change.site] = change.from_profile
        undone = planner.solve(profile, done)
        self.reviews[self._epoch] = Review(
            predictor.judge(undone.profile, undone.wait), predictor.judge(done.profile, done.wait)
        )

    def _move(self, time_s: float, predictor: Predictor, limits: Limits) -> None:
        plan = plan_epoch(
            predictor,
            self.placement.profile,
            self._transfer_bytes,
            limits,
            busy=self.placement.in_transit,
            profile_names=self._names,
            start=self._last,
        )
        self._last = plan.before
        for action in plan.actions:
            seconds = action.transfer_s(self.placement.backhaul_bytes_per_s)
            self.log.append(LogEntry(self._epoch, time_s, action, seconds))
        self.placement.start(plan.actions, time_s)

    def _price(self, time_s: float) -> None:
        """Ask for the equilibrium of what is held now, and advertise it."""
        if self._predictor is not None:
            self.prediction = self._last = self._predictor.solve(self.placement.profile, self._last)
        routing = self.routing
        self.catalogue = Catalogue(
            routing.advertise,
            routing.scope,
            self.placement.profile,
            self.prediction.wait,
            self._epoch,
            time_s,
            routing.telemetry_period_s,
            routing.telemetry_delay_s,
        )
