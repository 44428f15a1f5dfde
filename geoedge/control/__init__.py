"""Control: what sites advertise, what moving caches costs, and which moves are worth it.

An `Operator` sets prices and moves caches at the start of every epoch; one of the `PLANNERS` chooses the
moves within `Limits`, on one of the `FORECASTS` of demand and with what a `FieldPredictor` says a placement
would bring. A `Placement` says which profile every site holds and what is under way; a `Catalogue` what
routers believe of it.

>>> import numpy as np
>>> from geoedge.control import Action, Change, Placement
>>> placement = Placement(np.array([0, 1]), backhaul_bytes_per_s=1e9)
>>> change = Change(site=0, from_profile=0, to_profile=1, bytes_moved=2e9)
>>> placement.start([Action("replicate", (change,))], now_s=0.0)
>>> [done.site for done in placement.advance(1.0)], [done.site for done in placement.advance(2.0)]
([], [0])
>>> placement.profile.tolist()
[1, 1]

Times are s from midnight, memory and transfers in bytes; an epoch's moves share the scenario's budget of
bytes. The controller sees what it has measured and forecast, never what will come (the ``oracle`` is a
yardstick that does). It moves whole profiles between sites that exist; it builds none and splits no cache.
Constraints are those of Eq. (49); `replay` and ``geoedge check`` repeat what a log says was done.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geoedge.control.actions import Action, Change, transfer_bytes
    from geoedge.control.catalogue import Catalogue
    from geoedge.control.forecast import FORECASTS
    from geoedge.control.log import LogEntry, oscillations, replay
    from geoedge.control.operate import Operator, Routing
    from geoedge.control.placement import Placement
    from geoedge.control.planners import (
        PLANNERS,
        Limits,
        Plan,
        Planner,
        Prediction,
        Situation,
        make_limits,
    )
    from geoedge.control.predict import FieldPredictor

__all__ = [
    "FORECASTS",
    "PLANNERS",
    "Action",
    "Catalogue",
    "Change",
    "FieldPredictor",
    "Limits",
    "LogEntry",
    "Operator",
    "Placement",
    "Plan",
    "Planner",
    "Prediction",
    "Routing",
    "Situation",
    "make_limits",
    "oscillations",
    "replay",
    "transfer_bytes",
]

_HOMES = {
    "FORECASTS": "forecast",
    "PLANNERS": "planners",
    "Action": "actions",
    "Catalogue": "catalogue",
    "Change": "actions",
    "FieldPredictor": "predict",
    "LogEntry": "log",
    "Limits": "planners",
    "Operator": "operate",
    "Placement": "placement",
    "Plan": "planners",
    "Planner": "planners",
    "Prediction": "planners",
    "Routing": "operate",
    "Situation": "planners",
    "make_limits": "planners",
    "oscillations": "log",
    "replay": "log",
    "transfer_bytes": "actions",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that numba loads only where kernels run."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
