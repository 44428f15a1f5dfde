"""Serving: which site a request goes to, how long it waits there, and the event loop over all sites."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geoedge.serving.advertising import Advert
    from geoedge.serving.events import ServingEngine
    from geoedge.serving.queue import fcfs_starts, simulate_waits
    from geoedge.serving.records import ENGINE_STATUS, Records, Requests, SiteSums
    from geoedge.serving.routing import POLICIES, route

__all__ = [
    "ENGINE_STATUS",
    "POLICIES",
    "Advert",
    "Records",
    "Requests",
    "ServingEngine",
    "SiteSums",
    "fcfs_starts",
    "route",
    "simulate_waits",
]

_HOME = {
    "ENGINE_STATUS": "records",
    "POLICIES": "routing",
    "Advert": "advertising",
    "Records": "records",
    "Requests": "records",
    "ServingEngine": "events",
    "SiteSums": "records",
    "fcfs_starts": "queue",
    "route": "routing",
    "simulate_waits": "queue",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that numba loads only where kernels run."""
    if name not in _HOME:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
