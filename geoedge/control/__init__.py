"""Control: what sites advertise, what moving caches costs, and which moves are worth it."""

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
