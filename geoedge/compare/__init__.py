"""Side by side: the main job, the three answers in one table, controllers, and the curve over telemetry age.

How far is theory from the city, and which effect makes the difference? `run` is the main job; `compare` lays
any answers side by side; `explain_gap` takes the way from theory to simulation apart, an effect a step;
`deployment_gain` says how many random sites a layout is worth; `compare_controllers` what each controller
earns; `findings` puts a run into sentences.

>>> from geoedge import load_scenario, solve
>>> from geoedge.compare import compare, interval
>>> scenario = load_scenario("paper")
>>> answers = [solve(scenario, policy=policy) for policy in ("load_aware", "nearest")]
>>> profiles = [profile.name for profile in scenario.workload.profiles]
>>> labels = ["by cost", "nearest"]
>>> table = compare(*answers, labels=labels, ttft_target_s=0.8, profile_names=profiles).wide
>>> print(table.loc["coverage"].round(2).to_dict())
{'by cost': 0.69, 'nearest': 0.52}
>>> [round(bound, 3) for bound in interval([0.74, 0.75, 0.76])]
[0.75, 0.725, 0.775]

Coverage is a share, differences of it are points; times are s. Simulated numbers are means of paired
replications with 95 % intervals by Student's t, Poisson layouts the median and 95 % range. Effects are told
apart by switching them off one by one: an order is an assumption, which ``orders="shapley"`` averages out.
"""

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
