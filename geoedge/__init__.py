"""City-scale what-if studies of LLM inference at the wireless edge.

Theory (Poisson closed forms), field (the same rule on the real map) and simulation (moving users,
exact queues, a controller) answer the same questions, so that any two can be laid side by side.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.city import City, load_city
    from geoedge.compare import (
        Comparison,
        ControllerComparison,
        DeploymentGain,
        Gap,
        compare,
        compare_controllers,
        deployment_gain,
        explain_gap,
        explain_layout,
        layout_gain,
        run,
        staleness_curve,
    )
    from geoedge.errors import GeoEdgeError
    from geoedge.maps import city_map
    from geoedge.planning import DeploymentPlan, PlacesPlan, plan, plan_places, prediction
    from geoedge.results import Results
    from geoedge.scenario import Scenario, load_scenario
    from geoedge.simulation import EdgeCity
    from geoedge.sites import Layout, make_layout
    from geoedge.study import Study, field_answers, prepare, solve, solve_field, theory_answers
    from geoedge.sweep import sweep

__version__ = "0.1.0"

_HOMES = {
    "City": "city",
    "Comparison": "compare",
    "ControllerComparison": "compare",
    "DeploymentGain": "compare",
    "DeploymentPlan": "planning",
    "EdgeCity": "simulation",
    "Gap": "compare",
    "GeoEdgeError": "errors",
    "Layout": "sites",
    "PlacesPlan": "planning",
    "Results": "results",
    "Scenario": "scenario",
    "Study": "study",
    "city_map": "maps",
    "compare": "compare",
    "compare_controllers": "compare",
    "deployment_gain": "compare",
    "explain_gap": "compare",
    "explain_layout": "compare",
    "field_answers": "study",
    "layout_gain": "compare",
    "load_city": "city",
    "load_scenario": "scenario",
    "make_layout": "sites",
    "plan": "planning",
    "plan_places": "planning",
    "prediction": "planning",
    "prepare": "study",
    "run": "compare",
    "solve": "study",
    "solve_field": "study",
    "staleness_curve": "compare",
    "sweep": "sweep",
    "theory_answers": "study",
}

__all__ = [
    "City",
    "Comparison",
    "ControllerComparison",
    "DeploymentGain",
    "DeploymentPlan",
    "EdgeCity",
    "Gap",
    "GeoEdgeError",
    "Layout",
    "PlacesPlan",
    "Results",
    "Scenario",
    "Study",
    "city_map",
    "compare",
    "compare_controllers",
    "deployment_gain",
    "explain_gap",
    "explain_layout",
    "field_answers",
    "layout_gain",
    "load_city",
    "load_scenario",
    "make_layout",
    "plan",
    "plan_places",
    "prediction",
    "prepare",
    "run",
    "solve",
    "solve_field",
    "staleness_curve",
    "sweep",
    "theory_answers",
]


class _Package(ModuleType):
    """Keep `ge.compare` and `ge.sweep` the functions when the modules of the same name are imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (isinstance(value, ModuleType) and _HOMES.get(name) == name):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"geoedge.{_HOMES[name]}"), name)
    msg = f"module 'geoedge' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
