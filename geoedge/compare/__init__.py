"""Side by side: the main job, the three answers in one table, controllers, and the curve over telemetry age."""

from __future__ import annotations

from geoedge.compare.columns import Comparison, compare, interval
from geoedge.compare.controllers import ControllerComparison, compare_controllers
from geoedge.compare.findings import findings
from geoedge.compare.gain import DeploymentGain, deployment_gain, layout_gain
from geoedge.compare.gap import Gap, explain_gap, explain_layout
from geoedge.compare.job import own_column, run, variants
from geoedge.compare.layouts import layout_table, poisson_twin
from geoedge.compare.tables import cell_table, control_epochs, control_table, policy_table, staleness_curve

__all__ = [
    "Comparison",
    "ControllerComparison",
    "DeploymentGain",
    "Gap",
    "cell_table",
    "compare",
    "compare_controllers",
    "control_epochs",
    "control_table",
    "deployment_gain",
    "explain_gap",
    "explain_layout",
    "findings",
    "interval",
    "layout_gain",
    "layout_table",
    "own_column",
    "poisson_twin",
    "policy_table",
    "run",
    "staleness_curve",
    "variants",
]
