"""From a scenario to the inputs of theory, field and simulation: the one place where they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np

from geoedge.answers import Answer, WindowedAnswer
from geoedge.errors import ScenarioError
from geoedge.streams import stream
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.city import City
    from geoedge.city.demand import Demand, RequestRates
    from geoedge.city.trips import MobilityModel
    from geoedge.field import FieldAnswer, FieldProblem
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.theory import QueueOfMix, TheoryAnswer, TieredNetwork, WaitModel
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]

__all__ = [
    "PREPARED_FROM",
    "Study",
    "field_answers",
    "field_inputs",
    "poisson_network",
    "prepare",
    "request_rates",
    "service_queue",
    "solve",
    "solve_field",
    "stated_network",
    "theory_answers",
]

HOUR_S = 3600.0
PREPARED_FROM = (
    "seed",
    "city",
    "sites",
    "workload",
    "hardware",
    "demand",
    "mobility",
    "simulation",
    "radio",
)
"""What a study is made from; a scenario that differs in it needs another one."""
A = TypeVar("A", bound=Answer)
PolicyName = Literal["load_aware", "prefix_only", "nearest"]


@dataclass(frozen=True, eq=False)
class Study:
    """A scenario on its city: sites, workload, moving users, and what they ask in each epoch.

    Parameters
    ----------
    scenario
        The scenario.
    city
        Its city.
    layout
        Its sites and what each holds at the start.
    workload
        Request types and profiles as arrays.
    mobility
        How users move.
    demand
        Expected demand of each epoch, length E.
    activity_share
        Expected share of users at home, at work, at leisure and on the way, shape (E, 4).
    """

    scenario: Scenario
    city: City
    layout: Layout
    workload: Workload
    mobility: MobilityModel
    demand: tuple[Demand, ...]
    activity_share: Floats

    @property
    def epochs(self) -> tuple[tuple[float, float], ...]:
        """Start and end of each epoch, seconds since midnight."""
        return window_epochs(self.scenario)

    @property
    def measured_s(self) -> Floats:
        """Measured time of each epoch, none in the warm-up [s], shape (E,)."""
        return measured_seconds(self.scenario)

    @cached_property
    def expected_requests(self) -> Floats:
        """Requests expected in the measured part of each epoch, shape (E,): the weights of a window."""
        return np.array([demand.request_rate for demand in self.demand]) * self.measured_s

    def with_layout(self, layout: Layout) -> Study:
        """Return the same study on other sites."""
        return replace(self, layout=layout)

    def with_scenario(self, scenario: Scenario) -> Study:
        """Return the same study under a scenario that differs in routing, control or service alone.

        Parameters
        ----------
        scenario
            The other scenario.

        Raises
        ------
        ScenarioError
            If it differs in what city, sites, workload, mobility or demand were made from.
        """
        for section in PREPARED_FROM:
            if getattr(scenario, section) != getattr(self.scenario, section):
                msg = f"[{section}] differs from the prepared study; call `prepare` on the new scenario"
                raise ScenarioError(msg)
        return replace(self, scenario=scenario)


def window_epochs(scenario: Scenario) -> tuple[tuple[float, float], ...]:
    """Return start and end of each epoch of the window, seconds since midnight."""
    simulation = scenario.simulation
    count = round(simulation.duration_s / simulation.epoch_s)
    edges = simulation.start_hour * HOUR_S + simulation.epoch_s * np.arange(count + 1)
    return tuple((float(a), float(b)) for a, b in pairwise(edges))


def measured_seconds(scenario: Scenario) -> Floats:
    """Return the measured time of each epoch, none in the warm-up [s], shape (E,)."""
    cut = scenario.simulation.start_hour * HOUR_S + scenario.simulation.warm_up_s
    return np.array([max(0.0, end - max(start, cut)) for start, end in window_epochs(scenario)])


def request_rates(scenario: Scenario, workload: Workload) -> RequestRates:
    """Return the rate of each request type of one user, by activity and hour."""
    from geoedge.city.demand import RequestRates

    rate = scenario.demand.request_rate_per_user_s
    if rate is None:
        msg = "demand.request_rate_per_user_s is missing: a study on a city needs the users and the rate of each"
        raise ScenarioError(msg)
    return RequestRates(rate * workload.type_probability, workload.place_weight, workload.hour_weight)


def service_queue(scenario: Scenario) -> WaitModel | QueueOfMix:
    """Return the queue that theory and field assume at the sites.

    Parameters
    ----------
    scenario
        A scenario; its section ``[service]`` counts.
    """
    from geoedge.theory import ErlangC, queue_for

    service = scenario.service
    return ErlangC() if service.queue == "erlang_c" else queue_for(service.law, service.scv)


def prepare(scenario: Scenario, *, city: City | None = None, layout: Layout | None = None) -> Study:
    """Return a scenario's study: the city with its sites, workload, mobility and expected demand.

    Parameters
    ----------
    scenario
        A scenario with a city.
    city
        The city, if it is loaded already.
    layout
        The sites, if they are not to be made from the scenario.

    Raises
    ------
    ScenarioError
        If the scenario has no city, or no users.
    CityError
        If the map or the sites cannot be used.
    """
    from geoedge.city import load_city
    from geoedge.city.demand import demand_of
    from geoedge.city.presence import expected_presence
    from geoedge.city.trips import make_mobility
    from geoedge.sites import make_layout
    from geoedge.workload import build_workload

    if scenario.city is None:
        msg = "the scenario has no [city]; add one, or ask theory alone: `geoedge solve`"
        raise ScenarioError(msg)
    workload = build_workload(scenario.workload, scenario.hardware)
    rates = request_rates(scenario, workload)
    if city is None:
        city = load_city(scenario.city)
    if layout is not None:
        _check_map(layout, city)
    moves = scenario.mobility
    mobility = make_mobility(
        city,
        walk_share=moves.walk_share,
        departures_per_hour=moves.departures_per_hour,
        work_share=moves.work_share,
        leisure_share=moves.leisure_share,
        dwell_hours=moves.dwell_hours.model_dump(),
        destinations=moves.destinations,
        rng=stream(scenario.seed, "destinations"),
    )
    presence = expected_presence(mobility, window_epochs(scenario))
    users = scenario.demand.users or 0
    demand = demand_of(presence, rates, users=users, cell_m=scenario.demand.cell_m)
    whole = _whole_demand(scenario, demand)
    if layout is None:
        layout = make_layout(
            city,
            scenario.sites,
            workload.placement_probability,
            stream(scenario.seed, "layout"),
            profile_names=workload.profile_names,
            demand=whole,
            saving_s=workload.prefill_saving,
        )
    layout = _placed(layout, scenario, workload, whole)
    return Study(scenario, city, layout, workload, mobility, tuple(demand), presence.activity_shares)


def _check_map(layout: Layout, city: City) -> None:
    if layout.crs != city.crs or layout.period_m is not None:
        msg = f"`layout` stands in {layout.crs or 'no CRS'}, the city in {city.crs}; make the layout on this city"
        raise ScenarioError(msg)


def _whole_demand(scenario: Scenario, demand: Sequence[Demand]) -> Demand:
    """Return the mean demand of the measured part of the window."""
    from geoedge.city.demand import Demand

    measured = measured_seconds(scenario)
    share = measured / measured.sum()
    parts = [(one.xy, one.rate * part) for one, part in zip(demand, share, strict=True) if part > 0]
    xy, rate = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Demand(xy, rate, scenario.demand.cell_m)


def _placed(layout: Layout, scenario: Scenario, workload: Workload, demand: Demand) -> Layout:
    """Return the layout with a profile at every site, placed by the scenario if nobody has."""
    from geoedge.sites import place

    if not layout.report.get("profiles_placed", True):
        layout = place(
            scenario.sites.placement or "fixed",
            layout,
            workload.placement_probability,
            stream(scenario.seed, "placement"),
            demand=demand,
            saving_s=workload.prefill_saving,
        )
    if layout.profile.max() >= len(workload.profile_names):
        msg = (
            f"`layout` holds profile {layout.profile.max()}, the scenario knows 0 to {len(workload.profile_names) - 1} "
            f"({', '.join(workload.profile_names)}); place profiles of this scenario"
        )
        raise ScenarioError(msg)
    return layout


def poisson_network(study: Study, demand: Demand, *, area_km2: float | None = None) -> TieredNetwork:
    """Return the Poisson network of the study's site density and mix, asked this demand on the city's land.

    Parameters
    ----------
    study
        The study.
    demand
        A demand on its map.
    area_km2
        Land to spread sites and demand over [km²]; the city's by default.
    """
    land = study.city.area_km2 if area_km2 is None else area_km2
    counts = np.bincount(study.layout.profile, minlength=len(study.workload.profile_names))
    return _network(
        study.scenario,
        study.workload,
        tier_density=counts / land,
        mix=demand.mix,
        intensity=demand.intensity(land),
    )


def _network(
    scenario: Scenario, workload: Workload, *, tier_density: Floats, mix: Floats, intensity: float
) -> TieredNetwork:
    from geoedge.theory import TieredNetwork

    return TieredNetwork(
        tier_density=tier_density,
        concurrency=workload.concurrency,
        type_probability=mix,
        prefill_time=workload.prefill_time,
        occupancy_time=workload.occupancy_time,
        request_intensity=intensity,
        delay_coefficient=scenario.radio.delay_coefficient,
        delay_exponent=scenario.radio.delay_exponent,
        hit_tokens=workload.hit_tokens,
        prompt_tokens=workload.prompt_tokens,
        full_prefill_time=workload.full_prefill_time,
    )


def field_inputs(
    study: Study, demand: Demand, profile: ArrayLike | None = None, *, like: FieldProblem | None = None
) -> FieldProblem:
    """Return what the field is asked for one demand.

    Parameters
    ----------
    study
        The study.
    demand
        A demand on its map.
    profile
        Profile of each site, shape (n,); the layout's own by default.
    like
        A problem on the same sites; where its places are the same too, its geometry is used again.
    """
    from geoedge.field import field_problem

    layout = study.layout if profile is None else study.layout.with_profile(profile)
    same = like is not None and np.array_equal(like.geometry.point_xy, demand.xy / KM)
    return field_problem(
        demand,
        layout,
        study.workload,
        delay_coefficient=study.scenario.radio.delay_coefficient,
        delay_exponent=study.scenario.radio.delay_exponent,
        geometry=like.geometry if like is not None and same else None,
    )


def _windowed(study: Study, answers: Sequence[A], epochs: Sequence[int]) -> WindowedAnswer[A]:
    mixes = np.array([study.demand[epoch].mix for epoch in epochs])
    return WindowedAnswer(
        answers,
        study.expected_requests[list(epochs)],
        mixes @ study.workload.prompt_tokens,
        mixes @ study.workload.full_prefill_time,
        study.measured_s[list(epochs)],
    )


def theory_answers(
    study: Study, *, policy: PolicyName | None = None, area_km2: float | None = None
) -> WindowedAnswer[TheoryAnswer]:
    """Return what Poisson theory says of the study's window.

    Parameters
    ----------
    study
        The study.
    policy
        Routing policy; the scenario's by default.
    area_km2
        Land to spread sites and demand over [km²]; the city's by default.
    """
    from geoedge.theory import solve as solve_network

    chosen = policy or study.scenario.routing.policy
    networks = [poisson_network(study, demand, area_km2=area_km2) for demand in study.demand]
    queue = service_queue(study.scenario)
    answers = [solve_network(network, policy=chosen, queue=queue) for network in networks]
    return _windowed(study, answers, range(len(answers)))


def field_answers(
    study: Study, *, policy: PolicyName | None = None, warm_up: bool = True, tolerance: float = 1e-4
) -> WindowedAnswer[FieldAnswer]:
    """Return the field's answer for the study's window.

    Parameters
    ----------
    study
        The study.
    policy
        Routing policy; the scenario's by default.
    warm_up
        Whether to solve the epochs of the warm-up too, which count for nothing.
    tolerance
        Residual to reach, in utilisation.
    """
    from geoedge.field import solve_field as solve_problem

    routing = study.scenario.routing
    epochs = [k for k, weight in enumerate(study.expected_requests) if warm_up or weight > 0]
    answers: list[FieldAnswer] = []
    for epoch in epochs:
        last = answers[-1] if answers else None
        answers.append(
            solve_problem(
                field_inputs(study, study.demand[epoch], like=last.problem if last else None),
                policy=policy or routing.policy,
                scope=routing.scope,
                waits=last.advertised_wait if last else None,
                queue=service_queue(study.scenario),
                tolerance=tolerance,
            )
        )
    return _windowed(study, answers, epochs)


def solve(
    scenario: Scenario,
    city: City | None = None,
    layout: Layout | None = None,
    *,
    policy: PolicyName | None = None,
) -> TheoryAnswer | WindowedAnswer[TheoryAnswer]:
    """Return what Poisson theory says.

    Parameters
    ----------
    scenario
        A scenario. One that states its densities needs no city.
    city, layout
        City and sites, if they exist already.
    policy
        Routing policy; the scenario's by default.

    Raises
    ------
    ScenarioError
        If the scenario has neither a city nor densities.
    """
    if scenario.city is not None:
        return theory_answers(prepare(scenario, city=city, layout=layout), policy=policy)
    from geoedge.theory import solve as solve_network
    from geoedge.workload import build_workload

    network = stated_network(scenario, build_workload(scenario.workload, scenario.hardware))
    return solve_network(network, policy=policy or scenario.routing.policy, queue=service_queue(scenario))


def stated_network(scenario: Scenario, workload: Workload) -> TieredNetwork:
    """Return the Poisson network of a scenario that states its densities and has no city.

    Parameters
    ----------
    scenario
        A scenario without a city.
    workload
        Its workload.

    Raises
    ------
    ScenarioError
        If a density is missing.
    """
    density, intensity = scenario.sites.density_per_km2, scenario.demand.request_intensity_per_km2_s
    if density is None or intensity is None:
        msg = (
            "without a [city], sites.density_per_km2 and demand.request_intensity_per_km2_s must be given; "
            "add them, or a [city]"
        )
        raise ScenarioError(msg)
    return _network(
        scenario,
        workload,
        tier_density=density * workload.placement_probability,
        mix=workload.type_probability,
        intensity=intensity,
    )


def solve_field(
    scenario: Scenario,
    city: City | None = None,
    layout: Layout | None = None,
    *,
    policy: PolicyName | None = None,
) -> WindowedAnswer[FieldAnswer]:
    """Return the field's answer: the same rule on this map.

    Parameters
    ----------
    scenario
        A scenario with a city.
    city, layout
        City and sites, if they exist already.
    policy
        Routing policy; the scenario's by default.
    """
    return field_answers(prepare(scenario, city=city, layout=layout), policy=policy)
