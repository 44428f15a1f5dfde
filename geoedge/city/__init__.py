"""A city from an OpenStreetMap file or a place name: land, streets, buildings and places as arrays.

Where is land, where do people live and work, which ways lead from one to the other? `load_city` reads a
shipped city (`shipped_cities`), a file (.osm, .osm.pbf) or a place name into a `City`; `clip` cuts a small
file out of a big one. `geoedge.city.demand` makes requests per place and hour of it, `geoedge.city.streets`
ways, and `City.street_names` tells at which street a place lies.

>>> from geoedge.city import load_city
>>> print(load_city("monaco"))
City(monaco: 13.07 km², 10794 buildings, 629 places, streets drive, walk, EPSG:32632)

Coordinates are metres in one projected CRS, areas of tables are m², speeds km/h as on signs. Nothing is
repaired in silence: what was dropped or imputed, such as storeys that the map lacks, is counted in
``City.report`` and told by ``geoedge city info``. Only a place name needs a network, once; the city is then
kept in a cache. There are no transit timetables and no turn restrictions. Maps are © OpenStreetMap
contributors, ODbL 1.0 (`ATTRIBUTION`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.city.city import ATTRIBUTION, BUILDING_KINDS, LEVEL_SOURCES, BuildingTable, City, PlaceTable
    from geoedge.city.clipping import clip
    from geoedge.city.load import load_city, shipped_cities
    from geoedge.city.names import StreetNames
    from geoedge.city.streets import StreetGraph

__all__ = [
    "ATTRIBUTION",
    "BUILDING_KINDS",
    "LEVEL_SOURCES",
    "BuildingTable",
    "City",
    "PlaceTable",
    "StreetGraph",
    "StreetNames",
    "clip",
    "load_city",
    "shipped_cities",
]

_HOME = {
    "ATTRIBUTION": "city",
    "BUILDING_KINDS": "city",
    "LEVEL_SOURCES": "city",
    "BuildingTable": "city",
    "City": "city",
    "PlaceTable": "city",
    "StreetGraph": "streets",
    "StreetNames": "names",
    "clip": "clipping",
    "load_city": "load",
    "shipped_cities": "load",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
