"""Maps of a run: an interactive page that opens without network, and a picture of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.maps.compose import city_map
    from geoedge.maps.page import MapLayer, MapPage
    from geoedge.maps.sites import sites_map
    from geoedge.maps.snapshot import picture

__all__ = ["MapLayer", "MapPage", "city_map", "picture", "sites_map"]

_HOMES = {
    "MapLayer": "page",
    "MapPage": "page",
    "city_map": "compose",
    "picture": "snapshot",
    "sites_map": "sites",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"geoedge.maps.{_HOMES[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
