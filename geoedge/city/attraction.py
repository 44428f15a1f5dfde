"""What draws people where: dwelling floor for homes, workplaces and leisure places for trips."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.city import BUILDING_KINDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import BuildingTable, City
    from geoedge.city.streets import StreetGraph

__all__ = [
    "HOME_FLOOR",
    "LEISURE_WEIGHT",
    "NO_LEISURE",
    "OFFICE_M2",
    "WORK_FLOOR",
    "destination_candidates",
    "home_floor",
]

HOME_FLOOR = {"unspecified": 0.8, "residential": 1.0, "hotel": 0.5}
"""Share of a building's floor area that is lived in, by kind [–]; others none."""
WORK_FLOOR = {
    "unspecified": 0.2,
    "office": 1.0,
    "retail": 1.0,
    "industrial": 0.5,
    "public": 1.0,
    "hotel": 0.3,
}
"""Share of a building's floor area that draws workers, by kind [–]; others none."""
OFFICE_M2 = 200.0
"""Floor area of an office that is mapped as a place [m²]."""
LEISURE_WEIGHT = {
    "shop=supermarket": 5.0,
    "shop=mall": 10.0,
    "shop=department_store": 10.0,
    "amenity=marketplace": 5.0,
    "amenity=cinema": 5.0,
    "amenity=theatre": 5.0,
    "amenity=casino": 5.0,
}
"""Visits to a shop or amenity relative to an ordinary one [–]."""
NO_LEISURE = (
    "amenity=car_rental",
    "amenity=courthouse",
    "amenity=embassy",
    "amenity=ferry_terminal",
    "amenity=fire_station",
    "amenity=monastery",
    "amenity=police",
    "amenity=prison",
    "amenity=taxi",
)
"""Amenities that people do not visit for leisure."""


def home_floor(buildings: BuildingTable) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the buildings with dwellings and their dwelling floor area [m²].

    Parameters
    ----------
    buildings
        Buildings of the city.
    """
    floor = _floor(buildings, HOME_FLOOR)
    homes = np.flatnonzero(floor > 0.0)
    return homes, floor[homes]


def destination_candidates(
    city: City, graph: StreetGraph
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Return position [m] and weight of each door that draws workers, and of each that draws visitors.

    What shares a door is one candidate, placed at its heaviest member.

    Parameters
    ----------
    city
        Buildings and places.
    graph
        Streets whose nodes are the doors.
    """
    floor = _floor(city.buildings, WORK_FLOOR)
    offices = city.places.is_kind("office=")
    work_xy = np.concatenate([city.buildings.xy[floor > 0.0], city.places.xy[offices]])
    work = np.concatenate([floor[floor > 0.0], np.full(int(offices.sum()), OFFICE_M2)])
    visited = city.places.is_kind("shop=", "amenity=") & ~city.places.is_kind(*NO_LEISURE)
    pull = np.array([LEISURE_WEIGHT.get(kind, 1.0) for kind in city.places.kind[visited].tolist()])
    pairs = [_by_door(graph, work_xy, work), _by_door(graph, city.places.xy[visited], pull)]
    return [place for place, _ in pairs], [weight for _, weight in pairs]


def _floor(buildings: BuildingTable, share: dict[str, float]) -> NDArray[np.float64]:
    by_kind = np.array([share.get(kind, 0.0) for kind in BUILDING_KINDS])
    return np.asarray(buildings.floor_m2 * by_kind[buildings.kind], dtype=np.float64)


def _by_door(
    graph: StreetGraph, xy: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return one candidate for each door: the place of its heaviest member and the sum of weights."""
    if not len(weight):
        return np.zeros((0, 2)), np.zeros(0)
    door = graph.nearest_node(xy)
    order = np.lexsort((-weight, door))
    _, first = np.unique(door[order], return_index=True)
    return xy[order[first]], np.add.reduceat(weight[order], first)
