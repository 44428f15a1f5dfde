"""A scenario on its city: sites, workload, moving users and expected demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import ScenarioError
from geoedge.streams import stream
from geoedge.study.events import look_up_events
from geoedge.study.inputs import ways_to

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.city.demand import Demand, RequestRates
    from geoedge.city.presence import Presence
    from geoedge.city.trips import MobilityModel
    from geoedge.field import StreetWays
    from geoedge.scenario import MobilityConfig, Scenario
    from geoedge.sites import Layout
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]

__all__ = ["PREPARED_FROM", "Study", "measured_seconds", "prepare", "request_rates", "window_epochs"]

HOUR_S = 3600.0
INDEPENDENT = ("poisson", "binomial", "demand", "streets", "rooftops")
"""Processes whose sites know nothing of each other, so that those beyond the edge may be drawn on their own."""
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
    "field",
)
"""What a study is made from; a scenario that differs in it needs another one."""


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
    ring
        Sites around the city that the field's answer knows of, if the scenario's edge is a buffer.
    """

    scenario: Scenario
    city: City
    layout: Layout
    workload: Workload
    mobility: MobilityModel
    demand: tuple[Demand, ...]
    activity_share: Floats
    ring: Layout | None = None

    @cached_property
    def ways(self) -> StreetWays | None:
        """Ways along the streets to the city's sites, if radio follows them."""
        return ways_to(self, self.layout)

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
        """Return the same study on other sites.

        Parameters
        ----------
        layout
            The other sites, with their profiles.
        """
        return replace(self, layout=layout)

    def with_sites(self, chosen: NDArray[np.bool_]) -> Study:
        """Return the same study with some of its sites alone.

        Parameters
        ----------
        chosen
            Which sites are left, shape (n,).
        """
        return self.with_layout(_some(self.layout, chosen, area_km2=self.city.area_km2))

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
        if scenario.dynamics.expected != self.scenario.dynamics.expected:
            msg = "[dynamics] announces other crowds or drifts than the prepared study; call `prepare` on the new scenario"
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


def request_rates(scenario: Scenario, workload: Workload, seed: int | None = None) -> RequestRates:
    """Return the rate of each request type of one user, by activity and hour.

    Parameters
    ----------
    scenario
        A scenario whose users have a rate.
    workload
        Its workload.
    seed
        Seed of a run: its random drifts of popularity are then in; else only those that are stated, as theory and
        field know them.

    Raises
    ------
    ScenarioError
        If the scenario states no rate of a user.
    """
    from geoedge.city.demand import RequestRates
    from geoedge.city.popularity import drifting

    rate = scenario.demand.request_rate_per_user_s
    if rate is None:
        msg = "demand.request_rate_per_user_s is missing: a study on a city needs the users and the rate of each"
        raise ScenarioError(msg)
    popularity = drifting(scenario.dynamics.events, workload.type_names, workload.type_probability, seed)
    return RequestRates(
        rate * workload.type_probability, workload.place_weight, workload.hour_weight, popularity
    )


def prepare(scenario: Scenario, *, city: City | None = None, layout: Layout | None = None) -> Study:
    """Return a scenario's study: the city with its sites, workload, mobility and expected demand.

    Parameters
    ----------
    scenario
        A scenario with a city.
    city
        The city, if it is loaded already.
    layout
        The sites, if they are not to be made from the scenario; those of a ring around the city still are, and a
        process whose sites keep a distance keeps none across the edge then.

    Raises
    ------
    ScenarioError
        If the scenario has no city, or no users, or an event is about sites that do not exist.
    CityError
        If the map or the sites cannot be used, or an event is at a place that the city does not know.
    """
    from geoedge.city import load_city
    from geoedge.city.demand import demand_of
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
    look_up_events(scenario, city, layout)
    presence = _presence(city, scenario.mobility, scenario.seed, window_epochs(scenario))
    users = scenario.demand.users or 0
    demand = demand_of(presence, rates, users=users, cell_m=scenario.demand.cell_m)
    demand = _with_announced(scenario, city, workload, demand, rates)
    whole = _whole_demand(scenario, demand)
    across = _drawn_across_edge(scenario, city, workload)
    if layout is None:
        layout = (
            make_layout(
                city,
                scenario.sites,
                workload.placement_probability,
                stream(scenario.seed, "layout"),
                profile_names=workload.profile_names,
                demand=whole,
                saving_s=workload.prefill_saving,
            )
            if across is None
            else _inside(across, scenario, city)
        )
        look_up_events(scenario, city, layout)
    layout = _placed(layout, scenario, workload, whole, "placement")
    ring = _ring(scenario, city, workload, whole, across) if scenario.field.edge == "buffer" else None
    shares = presence.activity_shares
    return Study(scenario, city, layout, workload, presence.mobility, tuple(demand), shares, ring)


@lru_cache(maxsize=1)  # most of a study's time; load, mix and sites change nothing about it
def _presence(
    city: City, moves: MobilityConfig, seed: int, epochs: tuple[tuple[float, float], ...]
) -> Presence:
    """Return where users are expected to be; the last answer is kept."""
    from geoedge.city.presence import expected_presence
    from geoedge.city.trips import make_mobility

    mobility = make_mobility(
        city,
        walk_share=moves.walk_share,
        departures_per_hour=moves.departures_per_hour,
        work_share=moves.work_share,
        leisure_share=moves.leisure_share,
        dwell_hours=moves.dwell_hours.model_dump(),
        destinations=moves.destinations,
        rng=stream(seed, "destinations"),
    )
    return expected_presence(mobility, epochs)


def _with_announced(
    scenario: Scenario, city: City, workload: Workload, demand: list[Demand], rates: RequestRates
) -> list[Demand]:
    """Return the expected demand with the crowds that are announced."""
    from geoedge.city.crowds import make_crowd, place_of, with_crowds

    base = scenario.demand.request_rate_per_user_s or 0.0
    crowds = [
        make_crowd(event, place, event.start_s, base, workload.type_names)
        for event in scenario.dynamics.expected
        if event.announced and (place := place_of(city, event)) is not None
    ]
    if not crowds:
        return demand
    return with_crowds(demand, window_epochs(scenario), crowds, city, rates, scenario.demand.cell_m)


def _check_map(layout: Layout, city: City) -> None:
    if layout.crs != city.crs or layout.period_m is not None:
        msg = f"`layout` stands in {layout.crs or 'no CRS'}, the city in {city.crs}; make the layout on this city"
        raise ScenarioError(msg)


def _drawn_across_edge(scenario: Scenario, city: City, workload: Workload) -> Layout | None:
    """Return one draw of the city's sites and of those beyond its edge, where these depend on each other.

    With a buffer it covers the ring too; joined sides are drawn with their period, though on the city's coordinates.
    """
    from geoedge.field.edges import rectangle
    from geoedge.sites.processes import PROCESSES, draw_layout

    sites, edge = scenario.sites, scenario.field.edge
    if edge == "cut" or sites.source not in PROCESSES or sites.source in INDEPENDENT:
        return None
    corner, window = (
        rectangle(city.boundary)
        if edge == "torus"
        else (np.zeros(2), city.boundary.buffer(scenario.field.edge_buffer_m))
    )
    drawn = draw_layout(
        sites.source,
        window,
        sites.density_per_km2,
        stream(scenario.seed, "layout"),
        placement_probability=workload.placement_probability if sites.placement is None else None,
        crs=city.crs,
        **(sites.process.given() if sites.process is not None else {}),
    )
    return replace(drawn, xy=drawn.xy + corner, period_m=None)


def _inside(drawn: Layout, scenario: Scenario, city: City) -> Layout:
    """Return the city's own sites of a draw that goes beyond its edge."""
    import shapely

    if scenario.field.edge == "torus":
        return drawn
    inside = shapely.contains_xy(city.boundary, *drawn.xy.T)
    if not inside.any():
        msg = f"sites.density_per_km2 = {scenario.sites.density_per_km2} drew 0 sites in the city; raise it"
        raise ScenarioError(msg)
    return _some(drawn, inside, area_km2=city.area_km2)


def _ring(
    scenario: Scenario, city: City, workload: Workload, demand: Demand, across: Layout | None
) -> Layout:
    """Return the sites that the scenario's source has in the ring around the city, with profiles."""
    import shapely

    from geoedge.sites import make_layout

    width = scenario.field.edge_buffer_m
    around = replace(city, boundary=city.boundary.buffer(width))
    if across is None:
        across = make_layout(
            around,
            scenario.sites,
            workload.placement_probability,
            stream(scenario.seed, "ring"),
            profile_names=workload.profile_names,
            demand=demand,
            saving_s=workload.prefill_saving,
        )
    outside = ~shapely.contains_xy(city.boundary, *across.xy.T)
    if not outside.any():
        msg = (
            f'field.edge = "buffer": sites.source = {scenario.sites.source!r} has no site within {width:g} m outside the '
            'city, so that its people could only crowd into it; use a wider edge_buffer_m, or "cut"'
        )
        raise ScenarioError(msg)
    ring = _some(across, outside, area_km2=around.area_km2 - city.area_km2)
    return _placed(ring, scenario, workload, demand, "ring")


def _some(layout: Layout, chosen: NDArray[np.bool_], area_km2: float) -> Layout:
    """Return some of a layout's sites, those of a part of its land."""
    kept = np.flatnonzero(chosen)
    return replace(
        layout,
        xy=layout.xy[kept],
        profile=layout.profile[kept],
        name=tuple(layout.name[k] for k in kept),
        kind=tuple(layout.kind[k] for k in kept),
        report={**layout.report, "sites": len(kept), "area_km2": area_km2},
    )


def _whole_demand(scenario: Scenario, demand: Sequence[Demand]) -> Demand:
    """Return the mean demand of the measured part of the window."""
    from geoedge.city.demand import Demand

    measured = measured_seconds(scenario)
    share = measured / measured.sum()
    parts = [(one.xy, one.rate * part) for one, part in zip(demand, share, strict=True) if part > 0]
    xy, rate = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return Demand(xy, rate, scenario.demand.cell_m)


def _placed(layout: Layout, scenario: Scenario, workload: Workload, demand: Demand, luck: str) -> Layout:
    """Return the layout with a profile at every site, placed by the scenario if nobody has."""
    from geoedge.sites import place

    if not layout.report.get("profiles_placed", True):
        layout = place(
            scenario.sites.placement or "fixed",
            layout,
            workload.placement_probability,
            stream(scenario.seed, luck),
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
