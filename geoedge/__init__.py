"""City-scale what-if studies of LLM inference at the wireless edge.

What share of LLM requests in a city gets its first token in time, and what would change that? Theory (Poisson
closed forms), field (the same rule on the real map) and simulation (moving users, exact queues, a controller)
answer the same questions, so that any two can be laid side by side.

Start with `load_scenario`, `run` (all three answers), `compare`, `explain_gap`, `city_map` and `plan`. Names
are imported when they are first used.

>>> import geoedge as ge
>>> answer = ge.solve(ge.load_scenario("paper"))
>>> print(f"{answer.ttft_coverage(0.8):.2f} of the requests within 0.8 s")
0.69 of the requests within 0.8 s

Theory and field count in kilometres, seconds and tokens, maps in metres of one projected CRS; columns of
tables carry their unit (``ttft_s``, ``distance_km``). Radio is a delay ξ r^α, without fading, interference or
shared bandwidth; a site is c parallel servers, without continuous batching. The model is that of *Spatial
Prefix Caching for Wireless Edge LLM Inference* (arXiv 2608.01126); equations are numbered as there.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge import figures
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
    from geoedge.report.page import ReportPage, report_page
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
    "ReportPage": "report.page",
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
    "report_page": "report.page",
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
    "ReportPage",
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
    "figures",
    "layout_gain",
    "load_city",
    "load_scenario",
    "make_layout",
    "plan",
    "plan_places",
    "prediction",
    "prepare",
    "report_page",
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
    if name == "figures":
        return import_module("geoedge.figures")
    if name in _HOMES:
        return getattr(import_module(f"geoedge.{_HOMES[name]}"), name)
    msg = f"module 'geoedge' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
