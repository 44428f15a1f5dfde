"""What theory and field are asked about a study: networks, problems on the map, the queue of a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import ScenarioError
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.demand import Demand
    from geoedge.field import FieldProblem, StreetWays
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.study.prepared import Study
    from geoedge.theory import QueueOfMix, TieredNetwork, WaitModel
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]

__all__ = [
    "edged_inputs",
    "field_inputs",
    "poisson_network",
    "refuse_shocks",
    "refuse_streets",
    "service_queue",
    "stated_network",
    "ways_to",
    "workload_network",
]


def ways_to(study: Study, layout: Layout) -> StreetWays | None:
    """Return the ways along the streets to a layout's sites, if radio follows them."""
    from geoedge.field import street_ways

    if study.scenario.radio.distance == "straight":
        return None
    streets = study.city.streets
    return street_ways(streets.get("walk") or streets["drive"], layout.xy_km)


def refuse_streets(scenario: Scenario, what: str) -> None:
    """Refuse a scenario whose radio follows the streets where only straight lines are known.

    Parameters
    ----------
    scenario
        The scenario.
    what
        What knows straight lines only.

    Raises
    ------
    ScenarioError
        If it does.
    """
    if scenario.radio.distance == "street":
        msg = f'radio.distance = "street": {what} measures straight lines; ask `geoedge.solve_field`, or use "straight"'
        raise ScenarioError(msg)


def refuse_shocks(scenario: Scenario, what: str) -> None:
    """Refuse a scenario in which things happen that the expected demand does not know of.

    Parameters
    ----------
    scenario
        The scenario.
    what
        What is about an ordinary day only.

    Raises
    ------
    ScenarioError
        If it has such events.
    """
    known = scenario.dynamics.expected
    for number, event in enumerate(scenario.dynamics.events):
        if event not in known:
            msg = (
                f"dynamics.events[{number}] = {event.kind}: {what} is explained for an ordinary day; leave out all but "
                "announced crowds and stated drifts, or compare runs with and without them"
            )
            raise ScenarioError(msg)


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
    return workload_network(
        study.workload,
        tier_density=counts / land,
        mix=demand.mix,
        intensity=demand.intensity(land),
        delay_coefficient=study.scenario.radio.delay_coefficient,
        delay_exponent=study.scenario.radio.delay_exponent,
    )


def workload_network(
    workload: Workload,
    *,
    tier_density: Floats,
    mix: Floats,
    intensity: float,
    delay_coefficient: float,
    delay_exponent: float,
) -> TieredNetwork:
    """Return the Poisson network that serves a workload.

    Parameters
    ----------
    workload
        Request types and profiles.
    tier_density
        Sites of each profile [1/km²], shape (S,).
    mix
        Share of each request type, shape (Q,).
    intensity
        Requests [1/(s km²)].
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay.
    """
    from geoedge.theory import TieredNetwork

    return TieredNetwork(
        tier_density=tier_density,
        concurrency=workload.concurrency,
        type_probability=mix,
        prefill_time=workload.prefill_time,
        occupancy_time=workload.occupancy_time,
        request_intensity=intensity,
        delay_coefficient=delay_coefficient,
        delay_exponent=delay_exponent,
        hit_tokens=workload.hit_tokens,
        prompt_tokens=workload.prompt_tokens,
        full_prefill_time=workload.full_prefill_time,
    )


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
    return workload_network(
        workload,
        tier_density=density * workload.placement_probability,
        mix=workload.type_probability,
        intensity=intensity,
        delay_coefficient=scenario.radio.delay_coefficient,
        delay_exponent=scenario.radio.delay_exponent,
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

    Notes
    -----
    The city alone takes part, whatever the scenario's edge.
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
        ways=study.ways,
    )


def edged_inputs(study: Study, demand: Demand, like: FieldProblem | None) -> FieldProblem:
    """Return what the field is asked for one demand under the scenario's treatment of the edge."""
    from geoedge.field import edged, field_problem

    scenario = study.scenario
    edge = scenario.field
    if edge.edge == "cut":
        return field_inputs(study, demand, like=like)
    part = edged(
        demand, study.layout, study.city.boundary, edge.edge, buffer_m=edge.edge_buffer_m, ring=study.ring
    )
    same = like is not None and np.array_equal(like.geometry.point_xy, part.xy / KM)
    return field_problem(
        part,
        part.layout,
        study.workload,
        delay_coefficient=scenario.radio.delay_coefficient,
        delay_exponent=scenario.radio.delay_exponent,
        geometry=like.geometry if like is not None and same else None,
        ways=like.geometry.ways if like is not None else ways_to(study, part.layout),
        counted=part.counted,
        own_sites=part.own_sites,
    )
