"""What the controller of a run is told, and what it starts with: forecasts, limits, the placement of the first hour."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.actions import NEVER_BYTES
from geoedge.control.catalogue import worthwhile
from geoedge.control.forecast import make_forecaster
from geoedge.control.measure import Seen, Sources
from geoedge.control.operate import Operator, Routing
from geoedge.control.planners import PLANNERS, starts_best
from geoedge.control.planners.limits import limits_of
from geoedge.control.planners.mean import MeanPredictor
from geoedge.control.planners.placing import improve
from geoedge.control.predict import FieldPredictor
from geoedge.policies import solved_as
from geoedge.simulation.sessions import with_later_turns
from geoedge.streams import stream
from geoedge.study import field_inputs, poisson_network, service_queue
from geoedge.study.window import window_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from geoedge.city.demand import Demand
    from geoedge.control.placement import Placement
    from geoedge.control.planners import Limits, Predictor
    from geoedge.simulation.mobility import Asked
    from geoedge.study import Study

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Steering", "control_limits", "field_predictor", "make_operator", "seen", "started"]

PARTS = 8
"""Parts of the window that the best placement for all of it is sought by."""
REMEMBERED = 16
"""Best placements that are kept for the next run on the same study."""
_best: dict[str, Ints] = {}


def seen(asked: Asked, start_s: float, end_s: float) -> Seen:
    """Return the requests of an epoch as routers see them.

    Parameters
    ----------
    asked
        What users asked.
    start_s, end_s
        The epoch [s since midnight].
    """
    xy = np.column_stack((asked.x_m, asked.y_m))
    return Seen(start_s, end_s, asked.created_s, asked.user, asked.request_type, xy)


class Steering:
    """What was measured in the epoch that is over, and what is forecast of the coming ones.

    Parameters
    ----------
    study
        The study.
    first
        What is expected of the first epoch, before anything is measured.
    ask
        Tells what will really be asked in an epoch.

    Attributes
    ----------
    measured
        Demand of the epoch that is over; None if nothing was asked.
    """

    measured: Demand | None

    def __init__(self, study: Study, first: Demand, ask: Callable[[int], Seen]) -> None:
        control = study.scenario.control
        types, cell = len(study.workload.type_names), study.scenario.demand.cell_m
        self.sources = Sources(types, cell, study.demand, ask)
        self.planner = PLANNERS[control.controller]
        self.forecaster = make_forecaster(control.forecast, self.sources)
        self._future = make_forecaster("known", self.sources) if self.planner.knows_future else None
        self._horizon = control.horizon_epochs if self.planner.looks_ahead else 1
        self.measured = self._first = first

    def observe(self, seen: Seen) -> None:
        """Take in the epoch that is over."""
        self.measured = self.sources.measured(seen)
        self.forecaster.observe(seen)

    def ahead(self, epoch: int) -> tuple[Demand, ...]:
        """Return the forecast that prices follow, and plans unless they know better; nothing if there is none."""
        return (self._first,) if epoch == 0 else self.forecaster.ahead(epoch, self._horizon)

    def known(self, epoch: int) -> tuple[Demand, ...]:
        """Return what plans know of the coming epochs: the same, or for a yardstick what will really be asked."""
        return self.ahead(epoch) if self._future is None else self._future.ahead(epoch, self._horizon)


def field_predictor(study: Study, demand: Demand) -> FieldPredictor:
    """Return what predicts a placement by the field under one demand.

    Parameters
    ----------
    study
        The study.
    demand
        A demand on its map.
    """
    scenario = study.scenario
    return FieldPredictor(
        with_later_turns(field_inputs(study, demand), study),
        solved_as(scenario.routing.policy),
        scenario.routing.scope,
        scenario.target.ttft_target_s,
        queue=service_queue(scenario),
    )


def control_limits(study: Study) -> Limits:
    """Return what plans must keep to.

    Parameters
    ----------
    study
        The study.
    """
    return limits_of(study.scenario.control, study.workload.hit_tokens, len(study.layout))


def make_operator(
    study: Study, predictor_of: Callable[[Demand], Predictor], placement: Placement, seed: int
) -> Operator:
    """Return the operator of a run.

    Parameters
    ----------
    study
        The study.
    predictor_of
        Makes a predictor for a demand.
    placement
        Where the caches are.
    seed
        Seed of the run.
    """
    routing, control = study.scenario.routing, study.scenario.control
    planner = PLANNERS[control.controller]
    return Operator(
        predictor_of,
        placement,
        Routing(routing.advertise, routing.scope, routing.telemetry_period_s, routing.telemetry_delay_s),
        transfer_bytes=_prospects(study, placement),
        limits=control_limits(study) if planner.moves else None,
        planner=planner,
        profile_names=study.workload.profile_names,
        rng_of=lambda epoch: stream(seed, "controller", epoch),
        mix_of=lambda demand: _theory_mix(study, demand),
        states=control.states,
        name=control.controller,
    )


def _prospects(study: Study, placement: Placement) -> Floats:
    """Return the bytes of each change that is worth a look [B], shape (S, S); beyond any budget for the dominated.

    A profile with a cap makes no other superfluous; one with a floor is never superfluous.
    """
    workload, limits = study.workload, control_limits(study)
    hits = np.where(workload.serves, workload.hit_tokens, -1)
    moved = placement.moved_bytes
    worth = worthwhile(
        hits, workload.concurrency, workload.persistent_bytes, moved, limits.unlimited(len(study.layout))
    )
    return np.where(worth | (limits.least_sites > 0), moved, NEVER_BYTES)


def _theory_mix(study: Study, demand: Demand) -> Floats:
    """Return the mix that theory recommends for a demand, within the controller's limits."""
    from geoedge import theory

    limits, n = control_limits(study), len(study.layout)
    most = limits.most_sites
    if (
        limits.deep is not None and limits.most_deep is not None
    ):  # theory bounds each; whole sites keep to all
        most = np.where(limits.deep, np.minimum(most, limits.most_deep), most)
    shares = theory.PlacementLimits(
        study.workload.persistent_bytes.astype(np.float64),
        lower=limits.least_sites / n,
        upper=most / n,
    )
    scenario = study.scenario
    best = theory.optimal_placement(
        poisson_network(study, demand),
        scenario.target.ttft_target_s,
        shares,
        policy=solved_as(scenario.routing.policy),
        queue=service_queue(scenario),
    )
    return np.asarray(best.placement_probability)


def started(study: Study) -> Study:
    """Return the study with the sites holding, from the start, what is best for the window's expected demand.

    It is sought once for a study; other runs of the same process find it again.

    Parameters
    ----------
    study
        The study.
    """
    control = study.scenario.control
    if not starts_best(control):
        return study
    (demands, weight), limits = window_parts(study, PARTS), control_limits(study)
    key = _digest(study, demands, weight, limits)
    if key not in _best:
        if len(_best) >= REMEMBERED:
            _best.pop(next(iter(_best)))
        predictor = MeanPredictor([field_predictor(study, demand).coarse() for demand in demands], weight)
        _best[key] = improve(predictor, study.layout.profile, limits)
    return study.with_layout(study.layout.with_profile(_best[key]))


def _digest(study: Study, demands: tuple[Demand, ...], weight: Floats, limits: Limits) -> str:
    """Return what tells apart studies whose best placements may differ: all that predictors and search are made of."""
    scenario, layout = study.scenario, study.layout
    routing, target = scenario.routing, scenario.target.ttft_target_s
    words = [solved_as(routing.policy), routing.scope, repr(target), repr(layout.period_m)]
    sections = (scenario.workload, scenario.hardware, scenario.radio, scenario.service, scenario.sessions)
    words += ["none" if section is None else section.model_dump_json() for section in sections]
    words += [repr(one.cell_m) for one in demands]
    parts = [layout.xy, layout.profile, limits.least_sites, limits.most_sites, weight]
    parts += [np.array(-1 if limits.most_deep is None else limits.most_deep)]
    parts += [array for one in demands for array in (one.xy, one.rate)]
    found = hashlib.sha256("\n".join(words).encode())
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()
