"""Simulation: people move, requests arrive, queues fill, a controller moves caches. The home of Mesa.

What happens when people walk and drive, every request is routed at its own instant and caches are moved while
it all goes on? `EdgeCity` is a Mesa model: `EdgeCity.run` gives the whole window as `geoedge.Results`,
``step`` one step of it. `UserAgent`, `SiteAgent` and `ControllerAgent` are views on its columns; a
`Population` says where everybody is, `draw_requests` who asks when.

>>> import geoedge as ge
>>> window = {"simulation.duration_s": 900.0, "simulation.warm_up_s": 0.0, "demand.users": 300}
>>> scenario = ge.load_scenario("monaco").override({**window, "control.controller": "none"})
>>> results = ge.EdgeCity(scenario, rng=7).run()
>>> print(results.records.num_rows, f"requests, {results.ttft_coverage(0.8):.2f} of them in time")
1287 requests, 1.00 of them in time

Times are s from midnight, places metres on the map. One seed gives the same bytes at any number of workers,
and each part has a random stream of its own, so that variants meet the same people and requests. Queues are
exact and first come, first served. Habits and the mix of requests are the scenario's assumptions, not
measured; requests are Poisson given where people are, and a user's radio link is its distance alone.
"""

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
