"""Events looked up on their map: places that exist, land for a crowd to stand on, sites that are there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError, ScenarioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.scenario import EventConfig, Scenario
    from geoedge.sites import Layout

    Floats = NDArray[np.float64]

__all__ = ["events_exist", "look_up_events", "needs_map", "sites_around"]


def needs_map(scenario: Scenario) -> bool:
    """Return whether an event names a place or sites, which the map alone can confirm.

    Parameters
    ----------
    scenario
        The scenario.
    """
    return any(
        given is not None
        for event in scenario.dynamics.events
        for given in (event.place, event.lon, event.sites, event.count)
    )


def events_exist(scenario: Scenario) -> bool:
    """Look up the places and sites that events name, on a map that is at hand; return whether that could be done.

    The first load of a map takes seconds. A map that would have to be downloaded is left for the run.

    Parameters
    ----------
    scenario
        The scenario.

    Raises
    ------
    GeoEdgeError
        If a place or a site does not exist, or the map cannot be read.
    """
    from geoedge.city import shipped_cities
    from geoedge.study.prepared import prepare

    if scenario.city is None or not needs_map(scenario):
        return True
    source = scenario.city.source.strip()
    if source.casefold() not in shipped_cities() and not Path(source).expanduser().is_file():
        return False
    prepare(scenario)
    return True


def look_up_events(scenario: Scenario, city: City, layout: Layout | None = None) -> None:
    """Refuse events at places, or of sites, that do not exist.

    Parameters
    ----------
    scenario
        The scenario.
    city
        Its city.
    layout
        Its sites; without them only places are looked up.

    Raises
    ------
    CityError
        If the city knows no such place, or has no land around it.
    ScenarioError
        If a site does not exist, or none is near the place.
    """
    for number, event in enumerate(scenario.dynamics.events):
        where = f"dynamics.events[{number}]"
        place = _place(where, scenario, city, event)
        if layout is not None:
            _check_sites(where, event, layout)
            if event.kind == "site_failure" and place is not None:
                sites_around(where, event, layout, place)


def sites_around(where: str, event: EventConfig, layout: Layout, place: Floats) -> tuple[int, ...]:
    """Return the sites within the radius of an event.

    Parameters
    ----------
    where
        Key of the event; opens the error.
    event
        The event.
    layout
        The sites.
    place
        Where it happens [m], shape (2,).

    Raises
    ------
    ScenarioError
        If there is none.
    """
    from geoedge.city.crowds import RADIUS_M

    radius = event.radius_m or RADIUS_M
    distance = np.hypot(*(layout.xy - place).T)
    if distance.min() > radius:
        msg = (
            f"{where}.radius_m = {radius:g}: no site so near the place; the nearest is {distance.min():.0f} m away, choose "
            "a wider radius"
        )
        raise ScenarioError(msg)
    return tuple(np.flatnonzero(distance <= radius).tolist())


def _place(where: str, scenario: Scenario, city: City, event: EventConfig) -> Floats | None:
    """Return where an event happens [m], if it says so, after a look whether a crowd could stand there."""
    from geoedge.city.crowds import make_crowd, place_of

    try:
        place = place_of(city, event)
        if event.kind == "flash_crowd" and place is not None:
            types = tuple(request.name for request in scenario.workload.requests)
            make_crowd(event, place, event.start_s, 0.0, types).land(city)
    except CityError as error:
        msg = f"{where}: {error}"
        raise CityError(msg) from None
    return place


def _check_sites(where: str, event: EventConfig, layout: Layout) -> None:
    n = len(layout)
    if event.sites is not None and max(event.sites) >= n:
        msg = f"{where}.sites = {max(event.sites)}: sites are numbered 0 to {n - 1}; name one of them"
        raise ScenarioError(msg)
    if event.count is not None and event.count > n:
        msg = f"{where}.count = {event.count}: there are {n} sites; at most so many can fail"
        raise ScenarioError(msg)
