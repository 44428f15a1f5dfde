"""EdgeCity: moving users, exact queues and a controller as one Mesa model.

A step is a minute of simulated time and costs no accuracy: inside it requests are events in continuous time.
At the start of an epoch the controller measures, sets prices and moves caches; states that arrive within an
epoch take effect at their very instant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mesa
import numpy as np

from geoedge.control.memory import site_memory
from geoedge.control.outage import OpenSites
from geoedge.control.placement import Placement
from geoedge.errors import GeoEdgeError
from geoedge.scenario import require_scenario
from geoedge.serving.draining import drained_s
from geoedge.serving.events import ServingEngine
from geoedge.simulation.agents import ControllerAgent, SiteAgent, UserAgent
from geoedge.simulation.beliefs import Beliefs
from geoedge.simulation.effects import Disturbances
from geoedge.simulation.gauges import REPORTERS, Gauges
from geoedge.simulation.mobility import Population, draw_requests
from geoedge.simulation.outcome import results_of
from geoedge.simulation.paths import Paths
from geoedge.simulation.routing import routing_of
from geoedge.simulation.sessions import Sessions
from geoedge.simulation.steering import Steering, field_predictor, make_operator, seen, started
from geoedge.simulation.tables import Drawn, Held, Tally
from geoedge.streams import stream
from geoedge.study import prepare, refuse_streets, request_rates
from geoedge.theory.services import make_law

if TYPE_CHECKING:
    from collections.abc import Mapping

    from geoedge.city.city import City
    from geoedge.city.demand import Demand
    from geoedge.control.measure import Seen
    from geoedge.control.planners.base import Predictor
    from geoedge.results import Results
    from geoedge.scenario import Scenario
    from geoedge.serving.advertising import Advert
    from geoedge.sites import Layout
    from geoedge.study import Study

__all__ = ["REPORTERS", "STEP_S", "EdgeCity"]

STEP_S = 60.0
"""Simulated time of a step [s]."""


class EdgeCity(Gauges, mesa.Model):  # type: ignore[misc]  # Mesa is untyped
    """A city of moving users who ask edge sites.

    Parameters
    ----------
    scenario
        A scenario with a city.
    city, layout
        City and sites, if they exist already.
    rng
        Seed of this run's people and requests; the scenario's by default. Sites and destinations follow the
        scenario's own seed, and nothing that people do depends on routing or controller.
    study
        The scenario's study, if it is prepared already; city and layout are then its own.
    changes
        Values by dotted key to replace in the scenario, for example ``{"routing.policy": "nearest"}``.
    population
        Users to take instead of drawn ones, for example still ones; they set the demand of the first prices. The
        model moves a copy, so that other models can start from the same users.
    label
        Name of the run in tables.
    agent_reporters
        Reporters by agent type for `DataCollector`, collected every step; every value costs a call.

    Attributes
    ----------
    users, sites
        `UserAgent` and `SiteAgent` sets.
    controller
        The `ControllerAgent`.
    datacollector
        `REPORTERS` by step, and what `agent_reporters` asks for.

    Raises
    ------
    GeoEdgeError
        If the seed is no nonnegative integer, or the scenario cannot be studied.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        city: City | None = None,
        layout: Layout | None = None,
        rng: int | None = None,
        study: Study | None = None,
        changes: Mapping[str, Any] | None = None,
        population: Population | None = None,
        label: str = "simulation",
        agent_reporters: Mapping[type[mesa.Agent], Mapping[str, Any]] | None = None,
    ) -> None:
        require_scenario(scenario, "EdgeCity")
        super().__init__(rng=_checked_seed(scenario.seed if rng is None else rng))
        self.seed = int(scenario.seed if rng is None else rng)
        self.scenario = scenario.override(changes) if changes else scenario
        refuse_streets(self.scenario, "a simulation")
        prepared = study or prepare(self.scenario, city=city, layout=layout)
        self.study = started(prepared.with_scenario(self.scenario))
        self.label = label
        self.epoch, self.clock_s = 0, self.study.epochs[0][0]
        self.rates = request_rates(self.scenario, self.study.workload, self.seed)
        self.population = self._draw_population() if population is None else population.copy()
        self.population.advance(self.clock_s)
        self.paths = Paths(len(self.population))
        self.dynamics = Disturbances(self.study, self.rates, self.seed, len(self.population))
        self.sessions = Sessions.of(self.study, self.population, self.rates, self.seed)
        self.steering = Steering(self.study, self._expected_demand(population is not None), self._foreseen)
        self.placement = self._make_placement()
        self.operator = make_operator(self.study, self._predictor, self.placement, self.seed)
        people, sites = len(self.population), len(self.study.layout)
        self.users = UserAgent.create_agents(self, people, np.arange(people))
        self.sites = SiteAgent.create_agents(self, sites, np.arange(sites))
        self.controller = ControllerAgent(self)
        self.controller.step()
        self.engine = self._make_engine()
        self.placement.drained_s = self._drained_s
        self._told = self.placement.profile, self.placement.servers, self.placement.profile
        self.beliefs = Beliefs(
            self.scenario.catalogue, self.study.workload, self.placement.profile, self.clock_s
        )
        self.epoch_rows: list[dict[str, Any]] = []
        self.drawn: list[Drawn] = []
        self.last = Tally(sites)
        self._decided, self._recent = 0, (float("nan"), float("nan"))
        self._open_epoch()
        self.datacollector = mesa.DataCollector(
            model_reporters={name: name for name in REPORTERS}, agenttype_reporters=agent_reporters
        )

    # -- how it is made ------------------------------------------------------------------------------

    def _draw_population(self) -> Population:
        users = self.scenario.demand.users or 0
        return Population.draw(self.study.mobility, users, stream(self.seed, "people"))

    def _expected_demand(self, given: bool) -> Demand:
        """Return what the first prices are set by: the expected demand, or that of users who were given."""
        return self.population.demand(self.rates, self.clock_s) if given else self.study.demand[0]

    def _make_placement(self) -> Placement:
        scenario, control = self.scenario, self.scenario.control
        return Placement(
            self.study.layout.profile,
            control.backhaul_bytes_per_s,
            memory=site_memory(scenario.workload, scenario.hardware, self.study.workload),
            most_transfers=control.most_transfers,
        )

    def _drained_s(self, site: int, servers: int) -> float:
        return drained_s(self.engine.stations, site, servers, self.clock_s)

    def _predictor(self, demand: Demand) -> Predictor:
        down, workload = sorted(self.placement.down), self.study.workload
        if not down or len(down) == len(self.study.layout):
            return field_predictor(self.study, demand)
        is_open = ~np.isin(np.arange(len(self.study.layout)), down)
        share = workload.type_probability * workload.serves
        idle = (share * workload.occupancy_time).sum(axis=1) / np.maximum(share.sum(axis=1), 1e-300)
        return OpenSites(field_predictor(self.study.with_sites(is_open), demand), is_open, idle)

    def _make_engine(self) -> ServingEngine:
        scenario, workload, profile = self.scenario, self.study.workload, self.placement.profile
        return ServingEngine(
            self.study.layout.xy_km,
            profile,
            self.placement.servers,
            workload.prefill_time[profile],
            workload.decode_time,
            delay_coefficient=scenario.radio.delay_coefficient,
            delay_exponent=scenario.radio.delay_exponent,
            period_km=self.study.layout.period_km,
            **routing_of(scenario, workload, self.seed),
            law=make_law(scenario.service.law, scenario.service.scv),
            mean_occupancy=self.operator.prediction.occupancy,
            radio_shifts_arrival=scenario.service.radio_shifts_arrival,
            start_s=self.clock_s,
            sessions=None if self.sessions is None else self.sessions.rules(profile),
        )

    # -- time ----------------------------------------------------------------------------------------

    def step(self) -> None:
        """Let a minute pass, or what is left of the epoch; at its end the controller acts for the next.

        Raises
        ------
        GeoEdgeError
            If the run is over.
        """
        if not self.running:
            msg = f"EdgeCity: the run ended at {self.clock_s:g} s; make a new model to run again"
            raise GeoEdgeError(msg)
        _, epoch_end = self.study.epochs[self.epoch]
        until = min(self.clock_s + STEP_S, epoch_end)
        self.last = Tally(len(self.sites))
        self._serve(until)
        self._decide()
        self.datacollector.collect(self)
        if until == epoch_end:
            self._close_epoch()

    def run(self) -> Results:
        """Run to the horizon, let the queues drain, and return the results."""
        while self.running:
            self.step()
        return results_of(self)

    def _serve(self, until_s: float) -> None:
        """Serve the requests up to a time, changing sites at the very instants at which states arrive."""
        while True:
            due = min(self.placement.next_event_s(), self.dynamics.next_s(), self.beliefs.next_s())
            cut = min(until_s, max(due, self.clock_s))
            requests = self.drawn[-1].between(self.clock_s, cut, self.scenario.routing.routers)
            sums = self.engine.run(requests, cut, self._advert())
            self.last.add(sums)
            self.tally.add(sums)
            self.held.add(
                cut - self.clock_s,
                self.placement.profile,
                self.operator.catalogue.prices,
                self.operator.catalogue.utilization,
            )
            self.clock_s = cut
            self.beliefs.reports.hear(cut)
            if self.placement.next_event_s() <= cut:
                self.operator.arrive(cut)
                self.dynamics.repair(self)
                self.reconfigure()
            elif self.dynamics.next_s() <= cut:
                self.dynamics.apply(self)
                self.reconfigure()
            elif cut == until_s:
                return

    def _advert(self) -> Advert:
        """Return what routers hear now."""
        advert = self.dynamics.advert(self.operator.catalogue.advert())
        return self.beliefs.told(advert, self._told[0])

    def reconfigure(self) -> None:
        """Let the event loop know what sites hold and may run now, and what is expected of all after new prices."""
        workload, occupancy = self.study.workload, self.operator.prediction.occupancy
        profile, servers = self.placement.profile, self.placement.servers
        usable = self.dynamics.usable(profile)
        self.dynamics.note(self.clock_s, profile, usable)
        can, ran, held = self._told
        for site in np.flatnonzero((usable != can) | (servers != ran) | (profile != held)).tolist():
            now: dict[str, Any] = {}
            if usable[site] != can[site] or profile[site] != held[site]:
                now = {
                    "profile": int(profile[site]),
                    "prefill_row": workload.prefill_time[usable[site]],
                    "hit_row": workload.hit_tokens[usable[site]],
                    "mean_occupancy": float(occupancy[site]),
                }
            self.engine.reconfigure(site, concurrency=int(servers[site]), **now)
        self._told = usable, servers, profile
        self.beliefs.reports.note(self.clock_s, usable)
        self.engine.set_mixture_mean(occupancy)

    def _open_epoch(self) -> None:
        """Let people live through the epoch and note what they will ask, whoever serves them."""
        self.population.advance(self.study.epochs[self.epoch][1])
        self.paths.note(self.population)
        self.drawn.append(self._draw(self.population, self.epoch, self.sessions))
        self.tally = Tally(len(self.sites))
        self.held = Held(len(self.sites), len(self.study.workload.concurrency))

    def _draw(self, population: Population, epoch: int, sessions: Sessions | None) -> Drawn:
        """Return what people ask in an epoch that they have just lived through."""
        start, end = self.study.epochs[epoch]
        asked = draw_requests(population, self.rates, start, end, stream(self.seed, "requests", epoch))
        marks = stream(self.seed, "service", epoch).standard_exponential(len(asked.created_s))
        drawn = Drawn(asked, marks)
        if sessions is not None:
            drawn = sessions.asked(drawn, population, epoch, end)
        return self.dynamics.asked(drawn, start, end)

    def _foreseen(self, epoch: int) -> Seen:
        """Return what will really be asked in an epoch to come, for yardsticks that know it."""
        future, sessions = self.population.copy(), self.sessions and self.sessions.copy()
        for k in range(self.epoch, epoch + 1):
            future.advance(self.study.epochs[k][1])
            if k == epoch or sessions is not None:
                drawn = self._draw(future, k, sessions)
        return seen(drawn.asked, *self.study.epochs[epoch])

    def _close_epoch(self) -> None:
        """Note the epoch, measure its demand, and hand over to the controller, or end the run."""
        start, end = self.study.epochs[self.epoch]
        self.epoch_rows.append(self._epoch_row(start, end))
        self.steering.observe(seen(self.drawn[-1].asked, start, end))
        if self.epoch + 1 == len(self.study.epochs):
            self.operator.look_back(self.steering.measured)
            self.running = False
            mesa.Agent._ids.pop(self, None)
            return
        self.epoch += 1
        if self.operator.absent:
            self.operator.look_back(self.steering.measured)
            self.operator.stay_away(self.clock_s, self.epoch)
        else:
            self.controller.step()
        self.reconfigure()
        self._open_epoch()

    def _epoch_row(self, start_s: float, end_s: float) -> dict[str, Any]:
        """Return the columns of an epoch that `epoch_frame` describes."""
        profile = self.held.profile
        return {
            "start_s": start_s,
            "end_s": end_s,
            "site": np.arange(len(profile)),
            "profile": profile,
            "profile_at_end": self.placement.profile,
            "concurrency": self.study.workload.concurrency[profile],
            "server_s": self.tally.server_s,
            "utilization": self.tally.utilization,
            "offered_load": self.tally.offered_load,
            "prefill_s_per_s": self.tally.prefill_s / (end_s - start_s),
            "advertised_wait_s": self.held.wait_s,
            "predicted_utilization": self.held.utilization,
            "rejected": self.tally.rejected,
        }


def _checked_seed(seed: int) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        msg = f"EdgeCity: `rng` = {seed!r}: must be a nonnegative integer, the seed of the run"
        raise GeoEdgeError(msg)
    return int(seed)
