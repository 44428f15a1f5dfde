"""Serving: which site a request goes to, how long it waits there, and the event loop over all sites.

`route` is the one choice of the cheapest site that field and simulation share, Eq. (22). `fcfs_starts` is one
exact queue and `simulate_waits` its waits under Poisson arrivals. A `ServingEngine` carries the queues of all
sites from one stretch of time to the next; an `Advert` says what sites tell of their waits, `POLICIES` which
rules routers know.

>>> from geoedge.serving import fcfs_starts, route
>>> route([[0.5, 0.0], [0.9, 0.0]], 0, [[0.0, 0.0], [1.0, 0.0]], [[0.0], [0.2]], 0.28, 2.5).tolist()
[0, 1]
>>> fcfs_starts([0.0, 0.1, 0.2], [1.0, 1.0, 1.0], concurrency=2).tolist()
[0.0, 0.1, 1.0]

Places are in km, times in s, offsets of cost in s. A site serves c requests in parallel, first come, first
served, each for a prefill and a decode; there is no batching, no chunked prefill and no preemption. Kernels
are compiled when first called and kept on disk. Rules of real routers are modelled on their documents, named
in `geoedge.policies`.
"""

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
