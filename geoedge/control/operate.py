"""Operating a fleet: at the start of every epoch prices are set, caches are moved, and what was promised is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from geoedge.city.demand import Demand
from geoedge.control.actions import REPAIRS, Action, Change, admitted, at_no_cost
from geoedge.control.catalogue import Advertise, Catalogue, Scope
from geoedge.control.left_out import LeftOut, left_out
from geoedge.control.log import Decision, LogEntry, Review
from geoedge.control.noting import Notes
from geoedge.control.placement import Placement
from geoedge.control.planners import PLANNERS, Planner, Situation
from geoedge.control.planners.base import NEVER, Limits, Plan, Prediction, Predictor

__all__ = ["Operator", "Routing"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
States = Literal["fetch", "compute", "sooner"]


@dataclass(frozen=True)
class Routing:
    """What is advertised, by whom and how often."""

    advertise: Advertise = "equilibrium"
    scope: Scope = "site"
    telemetry_period_s: float = 1.0
    telemetry_delay_s: float = 0.0


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
    planner
        Who decides which caches move.
    profile_names
        Names for the reasons.
    rng_of
        Random stream of an epoch's plan, for planners that draw.
    mix_of
        Theory's mix for a demand, shape (S,), for planners that ask it.
    states
        Whether sites fetch states, compute them on one of their servers where two are free of states, or do what is
        done sooner.
    name
        Name of the planner in the books.

    Attributes
    ----------
    log
        Actions taken, in order.
    decisions
        What every plan was made on and promised, what it left out and why; and why there was none.
    reviews
        Of every epoch with actions, once it is over, where prices are advertised.
    catalogue
        What is advertised now.
    prediction
        What is expected of the placement as it is.
    absent
        Whether the controller is down: what is advertised then stays as it is.
    """

    catalogue: Catalogue
    prediction: Prediction
    absent: bool = False

    def __init__(
        self,
        predictor_of: Callable[[Demand], Predictor],
        placement: Placement,
        routing: Routing,
        *,
        transfer_bytes: Floats,
        limits: Limits | None = None,
        planner: Planner = PLANNERS["greedy"],
        profile_names: Sequence[str] = (),
        rng_of: Callable[[int], np.random.Generator] = np.random.default_rng,
        mix_of: Callable[[Demand], Floats] | None = None,
        states: States = "fetch",
        name: str = "",
    ) -> None:
        self.placement, self.routing, self.limits = placement, routing, limits
        self.log: list[LogEntry] = []
        self.decisions: list[Decision] = []
        self.reviews: dict[int, Review] = {}
        self.planner, self._rng_of, self._mix_of, self._name = planner, rng_of, mix_of, name
        self.states = states
        self._predictor_of, self._transfer_bytes = predictor_of, transfer_bytes
        self._names = tuple(profile_names)
        self._made: dict[int, tuple[Demand, Predictor]] = {}
        self._left = np.full((len(placement.profile), len(transfer_bytes)), -NEVER, dtype=np.int64)
        self._predictor: Predictor | None = None
        self._demand: Demand | None = None
        self._last: Prediction | None = None
        self._epoch, self._since_s = 0, -np.inf

    def act(
        self,
        time_s: float,
        epoch: int,
        demand: Demand | None,
        ahead: tuple[Demand, ...] | None = None,
        known: tuple[Demand, ...] | None = None,
    ) -> None:
        """Start an epoch: look back, plan and begin the moves, set prices.

        Nothing is moved in epoch 0, as nothing has been measured before it; only a planner whose moves take no time
        begins there.

        Parameters
        ----------
        time_s
            Now [s since midnight].
        epoch
            The epoch that starts.
        demand
            Demand of the epoch just past, or what is expected of the first; None if nothing was asked.
        ahead
            Forecast for prices and plans, first of the epoch that starts; by default that it will be as the last one
            was. If it is empty, all stays as it is.
        known
            Forecast for plans, if it is another one.
        """
        forecast = (() if demand is None else (demand,)) if ahead is None else ahead
        self._made = {}
        self._review(None if demand is None else self._predicting(demand))
        self._epoch, self._since_s = epoch, time_s
        if forecast:
            self._predictor, self._demand = self._predicting(forecast[0]), forecast[0]
        plans = forecast if known is None else known
        if self.limits is not None and (epoch > 0 or self.planner.at_once):
            if forecast and plans:
                self._move(time_s, plans, self.limits)
            else:
                self.stay_away(time_s, epoch, "no demand")
        self._price()

    def arrive(self, time_s: float) -> Sequence[Change]:
        """Let states that have arrived take effect, set prices anew, and return the changes.

        Parameters
        ----------
        time_s
            The present [s].
        """
        changes = self.placement.advance(time_s)
        if changes:
            self._price()
        return changes

    def order(self, time_s: float, epoch: int, action: Action) -> Action:
        """Begin what a site does by itself, outside of any plan; note it, and return it with its states' source.

        Parameters
        ----------
        time_s
            The present [s].
        epoch
            Epoch that it belongs to.
        action
            What the site does.
        """
        action = self._sourced(action)
        self.log.append(LogEntry(epoch, time_s, action, self.placement.transfer_s(action)))
        self.placement.start((action,), time_s)
        return action

    def reassess(self) -> None:
        """Predict anew what the same demand leads to, as sites have failed or come back, and set prices."""
        if self._demand is not None and not self.absent:
            self._made = {}
            self._predictor, self._last = self._predicting(self._demand), None
        self._price()

    def look_back(self, demand: Demand | None) -> None:
        """Review the actions of the last epoch under the demand that it turned out to have.

        Parameters
        ----------
        demand
            The demand of the last epoch; None where it is not known.
        """
        self._review(None if demand is None else self._predictor_of(demand))

    def _review(self, predictor: Predictor | None) -> None:
        """Note what the field says of the epoch's actions; it cannot say it of waits that sites report themselves."""
        lost, planner = self._lost_sites(), self._predictor
        changes = self._standing_changes(lost)
        if predictor is None or planner is None or not changes or self.routing.advertise != "equilibrium":
            return
        if self._epoch in self.reviews:  # the controller has been away since
            return
        priced, held = self.prediction, self.placement.profile
        undone = planner.solve(_undone(priced.profile, changes), priced)
        self.reviews[self._epoch] = Review(
            predictor.judge(_undone(held, changes), undone.wait), predictor.judge(held, priced.wait), lost
        )

    def _actions(self, *, repairs: bool) -> list[Action]:
        """Return the epoch's actions: repairs, or what was planned."""
        mine = (entry.action for entry in self.log if entry.epoch == self._epoch)
        return [action for action in mine if (action.kind in REPAIRS) == repairs]

    def _lost_sites(self) -> frozenset[int]:
        """Return the sites that have lost states since the epoch began."""
        failed = (e.site for e in self.placement.journal if e.event == "fail" and e.time_s >= self._since_s)
        repaired = (site for action in self._actions(repairs=True) for site in action.sites)
        return frozenset((*failed, *repaired))

    def _standing_changes(self, lost: frozenset[int]) -> list[Change]:
        """Return the changes of the epoch's plan at sites that have lost nothing since."""
        plans = self._actions(repairs=False)
        return [change for action in plans for change in action.changes if change.site not in lost]

    def _predicting(self, demand: Demand) -> Predictor:
        """Return the predictor for a demand; the same one until sites fail or come back, or another epoch starts."""
        if id(demand) not in self._made:
            self._made[id(demand)] = demand, self._predictor_of(demand)
        return self._made[id(demand)][1]

    def _move(self, time_s: float, forecast: tuple[Demand, ...], limits: Limits) -> None:
        notes = Notes(forecast, [self._predicting(demand) for demand in forecast])
        situation = self._situation(time_s, forecast, limits, notes)
        plan = self.planner.plan(situation)
        left = left_out(situation, plan, notes, at_once=self.planner.at_once)
        plan = replace(plan, actions=tuple(self._booked(situation, plan, notes)))
        self._last = plan.before
        for action in plan.actions:
            seconds = 0.0 if self.planner.at_once else self.placement.transfer_s(action)
            self.log.append(LogEntry(self._epoch, time_s, action, seconds))
            for change in action.changes:
                self._left[change.site, change.from_profile] = self._epoch
        self.decisions.append(self._decision(situation, plan, notes, left))
        self._begin(plan, time_s)

    def _booked(self, situation: Situation, plan: Plan, notes: Notes) -> Iterator[Action]:
        """Yield a plan's actions with where their states come from, and with their gain in the epoch that starts."""
        source, profile = at_no_cost if self.planner.at_once else self._sourced, situation.profile
        for action in plan.actions:
            gain, reason = action.predicted_gain, action.reason
            if notes.varies:
                after = action.apply(profile)
                gain = notes.coverage_now(after) - notes.coverage_now(profile)
                profile, reason = after, f"means over the {notes.epochs} epochs ahead; {reason}"
            told = action.explained(gain, reason)
            yield source(replace(told, horizon_gain=action.predicted_gain, horizon_epochs=notes.epochs))

    def _decision(self, situation: Situation, plan: Plan, notes: Notes, left: LeftOut) -> Decision:
        before, after = plan.before.coverage, plan.after.coverage
        both = (situation.profile, plan.profile)
        now = [notes.coverage_now(each) for each in both] if notes.varies else [before, after]
        return Decision(
            epoch=self._epoch,
            time_s=situation.time_s,
            request_rate=situation.forecast[0].request_rate,
            coverage_before=now[0],
            coverage_after=now[1],
            budget_bytes=self._budget_bytes,
            actions=len(plan.actions),
            bytes_moved=sum(action.bytes_moved for action in plan.actions),
            busy_sites=len(self.placement.busy),
            planner=self._name,
            horizon_epochs=notes.epochs,
            horizon_coverage_before=before,
            horizon_coverage_after=after,
            looked_at=notes.looked_at,
            left_out=left.words(situation.names),
            left_out_gain=left.gain,
            left_out_toll=left.toll,
            left_out_bytes=np.nan if left.action is None else left.action.bytes_moved,
            left_out_solved=left.solved,
            unseen_gain=left.unseen_gain,
            why=left.why,
        )

    @property
    def _budget_bytes(self) -> float:
        return np.inf if self.planner.at_once or self.limits is None else self.limits.budget_bytes

    def stay_away(self, time_s: float, epoch: int, why: str = "absent") -> None:
        """Note that an epoch starts for which nothing is planned; nothing for a controller that never plans.

        Parameters
        ----------
        time_s
            Now [s since midnight].
        epoch
            The epoch that starts.
        why
            Why, in words of `geoedge.control.left_out.WHY`.
        """
        if self.limits is None:
            return
        busy, unknown = len(self.placement.busy), np.nan
        self.decisions.append(
            Decision(
                epoch,
                time_s,
                unknown,
                unknown,
                unknown,
                self._budget_bytes,
                0,
                0.0,
                busy,
                self._name,
                0,
                why=why,
            )
        )

    def _sourced(self, action: Action) -> Action:
        """Return an action with its states from where they are to come."""
        memory = self.placement.memory
        if self.states == "fetch" or memory is None or self.planner.at_once:
            return action
        own = admitted(action, memory.computed_s)
        spare = all(memory.servers[each.from_profile, each.to_profile] > 1 for each in action.changes)
        sooner = self.placement.transfer_s(own) < self.placement.transfer_s(action)
        return own if spare and (sooner or self.states == "compute") else action

    def _situation(
        self, time_s: float, forecast: tuple[Demand, ...], limits: Limits, notes: Notes
    ) -> Situation:
        """Return what the planner is told."""
        return Situation(
            self._epoch,
            time_s,
            self.placement.goal,
            self.placement.busy,
            forecast,
            notes.predictor_of,
            limits,
            self._transfer_bytes,
            self._rng_of(self._epoch),
            self._names,
            self._last,
            self._epoch - self._left.max(axis=1),
            self._epoch - self._left,
            self._mix_of,
        )

    def _begin(self, plan: Plan, time_s: float) -> None:
        if self.planner.at_once:
            self.placement.become(plan.profile, time_s)
        else:
            self.placement.start(plan.actions, time_s)

    def _price(self) -> None:
        """Ask for the equilibrium of what is held now, and advertise it."""
        if self.absent:
            return
        if self._predictor is not None:
            self.prediction = self._last = self._predictor.solve(self.placement.profile, self._last)
        routing = self.routing
        self.catalogue = Catalogue(
            routing.advertise,
            routing.scope,
            self.prediction.wait,
            self.prediction.utilization,
            routing.telemetry_period_s,
            routing.telemetry_delay_s,
        )


def _undone(profile: Ints, changes: Sequence[Change]) -> Ints:
    """Return a placement without some changes, shape (n,)."""
    before = profile.copy()
    for change in changes:
        before[change.site] = change.from_profile
    return before
