"""Maps of a run: an interactive page that opens without network, and a picture of it.

Who serves me, how long would I wait, where is the network hot, what moved? `city_map` draws a run as a
`MapPage` with a layer for each question; `sites_map` the sites of a file; `picture` one epoch as PNG. A
`MapLayer` of one's own joins a page by its ``add_to``.

>>> from geoedge.maps import MapPage
>>> page = MapPage("An empty map", bounds=(7.39, 43.71, 7.46, 43.76))
>>> page.note("Nothing is drawn yet.")
>>> "Nothing is drawn yet." in page.to_html()
True

Numbers on a page carry their units, and legends are made from the scale that gives the colours. A page asks
nothing from outside unless ``tiles`` are asked for, and stays below ``limit_bytes`` by simplifying; it then
says so. Names from files stay text. It draws what a run kept: places as cells of the demand raster, trips as
a sample.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.maps.compose import city_map
    from geoedge.maps.page import MapLayer, MapPage
    from geoedge.maps.places import places_map
    from geoedge.maps.sites import sites_map
    from geoedge.maps.snapshot import picture

__all__ = ["MapLayer", "MapPage", "city_map", "picture", "places_map", "sites_map"]

_HOMES = {
    "MapLayer": "page",
    "MapPage": "page",
    "city_map": "compose",
    "picture": "snapshot",
    "places_map": "places",
    "sites_map": "sites",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"geoedge.maps.{_HOMES[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
