"""A city from an OpenStreetMap file or a place name: land, streets, buildings and places as arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.city.city import ATTRIBUTION, BUILDING_KINDS, LEVEL_SOURCES, BuildingTable, City, PlaceTable
    from geoedge.city.clipping import clip
    from geoedge.city.load import load_city, shipped_cities
    from geoedge.city.streets import StreetGraph

__all__ = [
    "ATTRIBUTION",
    "BUILDING_KINDS",
    "LEVEL_SOURCES",
    "BuildingTable",
    "City",
    "PlaceTable",
    "StreetGraph",
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
