"""Controllers side by side on the same people and requests: what each earns over another, and what it moves for it."""

from geoedge.compare.controllers.compared import ORACLE, ControllerComparison
from geoedge.compare.controllers.contest import BASELINE, CONTROLLERS, compare_controllers

__all__ = ["BASELINE", "CONTROLLERS", "ORACLE", "ControllerComparison", "compare_controllers"]
