"""The figures that results draw of themselves are in the same style, over one column and two."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from geoedge import figures
from geoedge.compare.controllers.compared import ControllerComparison
from geoedge.compare.gain.crossings import VALUES
from geoedge.compare.gain.deployment import DeploymentGain
from geoedge.compare.gap.readings import Interval
from geoedge.compare.gap.result import Gap, Spread, Step
from geoedge.planning.places.figure import places_figure
from geoedge.style import WIDTH_IN, PaperFigure
from geoedge.sweep import Replication

HOSTILE = "$\\frac{$ شركة a title that is rather long " * 3
PLAN = SimpleNamespace(
    yardsticks=SimpleNamespace(
        counts=np.array([5, 20, 44]),
        random=np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.72, 0.72, 0.72]]),
        theory=np.array([0.2, 0.6, 0.78]),
    ),
    greedy=np.linspace(0.1, 0.76, 30),
    order=[SimpleNamespace(coverage=k / 40, served_in_time=k / 35) for k in range(1, 29)],
    asked_sites=None,
    reliability=0.75,
    ttft_target=0.8,
    held=np.zeros(44),
)


def made_gap(*, spreads: bool) -> Gap:
    changes = {"load": -0.08, "count": 0.01, "window": -0.02}
    steps, at = [], 0.85
    for effect, change in changes.items():
        at += change
        steps.append(Step(effect, Interval(change, change - 0.01, change + 0.01), at, ""))
    means = {
        step.effect: Spread(step.change, step.change.value - 0.05, step.change.value + 0.05) for step in steps
    }
    ends = Interval(0.85, np.nan, np.nan), Interval(at, at - 0.01, at + 0.01)
    total = Interval(at - 0.85, at - 0.86, at - 0.84)
    return Gap("coverage", HOSTILE, 0.8, tuple(steps), *ends, total, means if spreads else None, 6, (), {})


def made_contest(runs: int = 3) -> ControllerComparison:
    lines = {
        name: [_replication(place, run, gain) for run in range(runs)]
        for place, (name, gain) in enumerate({"none": 0.0, "greedy": 0.03, "oracle": 0.05}.items())
    }
    return ControllerComparison(HOSTILE, 0.8, (19_800.0, 36_000.0), "none", lines)


def _replication(variant: int, run: int, gain: float) -> Replication:
    epoch, rng = np.arange(10), np.random.default_rng(run)
    start = 18_000.0 + 1_800.0 * epoch
    epochs = pd.DataFrame(
        {"epoch": epoch, "start_s": start, "end_s": start + 1_800.0, "requests": 100, "missed": 10}
    )
    epochs = epochs.assign(coverage=0.8 + gain + rng.normal(0, 0.01, 10), utilization=0.5, mean_wait_s=0.2)
    actions = pd.DataFrame(
        {"epoch": epoch, "action": "replicate", "site": 1, "from_profile": 0, "to_profile": 1}
    )
    actions = actions.assign(bytes_moved=1e9, time_s=start, partner_site=-1)
    return Replication(
        variant, run, run, {"coverage": 0.8 + gain}, epochs, actions if gain else actions.head(0), []
    )


def made_gain() -> DeploymentGain:
    rows = []
    for load in (0.3, 0.75):
        for target in (0.4, 0.8, 1.2):
            for reference in ("layouts", "theory"):
                row = {"load": load, "present": load == 0.3, "ttft_target_s": target, "reference": reference}
                row |= dict.fromkeys(VALUES, np.nan) | {"gain": load + target, "shift_s": 0.1 * target}
                if reference == "layouts":
                    row |= {"gain_low": load + target - 0.1, "gain_high": load + target + 0.1}
                    row |= {"poisson_low": 0.8, "poisson_high": 1.2}
                rows.append(row | {"note": ""})
    return DeploymentGain(pd.DataFrame(rows), 3.0, (40, "fixed"), "layout")


DRAWN = {
    "gap": lambda columns: made_gap(spreads=False).figure(columns=columns),
    "gap over orders": lambda columns: figures.gap_waterfall(made_gap(spreads=True), columns=columns),
    "contest": lambda columns: made_contest().figure(columns=columns),
    "contest of one run": lambda columns: made_contest(1).figure(columns=columns),
    "gain": lambda columns: made_gain().figure(columns=columns),
    "places": lambda columns: places_figure(PLAN, columns=columns),
}


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("name", DRAWN)
def test_words_stay_inside(name, columns) -> None:
    figure = DRAWN[name](columns)
    assert isinstance(figure, PaperFigure)
    assert figure.get_figwidth() == WIDTH_IN[columns]
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = figure.get_tightbbox(canvas.get_renderer())
    assert min(drawn.x0, drawn.y0) >= -0.01
    assert drawn.x1 <= figure.get_figwidth() + 0.01
    assert drawn.y1 <= figure.get_figheight() + 0.01


def test_the_waterfall_over_one_column_has_the_means_below() -> None:
    chain, means = figures.gap_waterfall(made_gap(spreads=True), columns=1).axes
    assert chain.get_position().y0 > means.get_position().y1
    names = [label.get_text() for label in means.get_yticklabels()]
    assert names == [label.get_text() for label in chain.get_yticklabels()][1:-1]
    marks = [line.get_xdata()[0] for line in means.lines if line.get_marker() == "D"]
    assert marks == pytest.approx([-8.0, 1.0, -2.0])


def test_the_contest_is_drawn_from_its_table() -> None:
    found = made_contest()
    coverage, gain, moved = found.figure().axes
    for patch in coverage.patches:
        if hasattr(patch, "get_data"):
            part = found.epochs[found.epochs["controller"] == patch.get_label()]
            assert np.allclose(patch.get_data().values, 100 * part["coverage"])
    part = found.epochs[found.epochs["controller"] == "greedy"]
    assert np.allclose(gain.lines[0].get_ydata(), 100 * part["change"])
    assert moved.lines[0].get_ydata()[-1] == pytest.approx(10.0)
    assert gain.get_ylabel() == "gain over none [points]"


def test_the_gain_is_drawn_from_its_table() -> None:
    found = made_gain()
    gain, _ = found.figure().axes
    rows = found.table[(found.table["load"] == 0.75) & (found.table["reference"] == "theory")]
    line = next(line for line in gain.lines if line.get_label() == "load 0.75, against Poisson theory")
    assert np.allclose(line.get_xdata(), rows["ttft_target_s"])
    assert np.allclose(line.get_ydata(), rows["gain"])


def test_the_plan_is_drawn_in_its_order_of_building() -> None:
    axes = places_figure(PLAN).axes[0]
    line = next(line for line in axes.lines if line.get_label() == "this plan")
    assert np.allclose(line.get_ydata(), [100 * row.coverage for row in PLAN.order])
    assert [text.get_text() for text in axes.texts] == ["asked"]
