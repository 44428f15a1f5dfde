"""Control: what sites advertise, what moving caches costs, and which moves are worth it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from geoedge.control.actions import Action, Change, Placement, transfer_bytes
    from geoedge.control.catalogue import Catalogue
    from geoedge.control.operate import Operator, Routing
    from geoedge.control.predict import FieldPredictor
    from geoedge.control.replan import Limits, Plan, Prediction, make_limits, plan_epoch

__all__ = [
    "Action",
    "Catalogue",
    "Change",
    "FieldPredictor",
    "Limits",
    "Operator",
    "Placement",
    "Plan",
    "Prediction",
    "Routing",
    "make_limits",
    "plan_epoch",
    "transfer_bytes",
]

_HOMES = {
    "Action": "actions",
    "Catalogue": "catalogue",
    "Change": "actions",
    "FieldPredictor": "predict",
    "Limits": "replan",
    "Operator": "operate",
    "Placement": "actions",
    "Plan": "replan",
    "Prediction": "replan",
    "Routing": "operate",
    "make_limits": "replan",
    "plan_epoch": "replan",
    "transfer_bytes": "actions",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that numba loads only where kernels run."""
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
