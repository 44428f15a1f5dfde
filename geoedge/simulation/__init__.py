"""Simulation: people move, requests arrive, queues fill, a controller moves caches. The home of Mesa."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geoedge.simulation.agents import ControllerAgent, SiteAgent, UserAgent
    from geoedge.simulation.mobility import Population, draw_requests
    from geoedge.simulation.model import EdgeCity

__all__ = ["ControllerAgent", "EdgeCity", "Population", "SiteAgent", "UserAgent", "draw_requests"]

_HOMES = {
    "ControllerAgent": "agents",
    "EdgeCity": "model",
    "Population": "mobility",
    "SiteAgent": "agents",
    "UserAgent": "agents",
    "draw_requests": "mobility",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; Mesa takes its time."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
