"""Dots, bars and intervals stand where the table of answers has them; what is infinite is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geoedge import figures
from geoedge.compare import Comparison


def test_dots_and_intervals_are_those_of_the_table(run) -> None:
    coverage, mean, late = figures.three_answers(run).axes
    dots = [line.get_xdata()[0] for line in coverage.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([83.0, 53.0, 77.0, 74.0])
    spans = [line.get_xdata() for line in coverage.lines if len(line.get_xdata()) == 2]
    assert np.allclose(spans, [[30.0, 70.0], [73.0, 75.0]])
    assert [label.get_text() for label in coverage.get_yticklabels()][:1] == ["theory (PPP)"]
    assert coverage.get_xlabel() == "in time (within 0.8 s) [%]"
    ends = [bar.get_x() + bar.get_width() for bar in mean.containers[2]]
    assert ends == pytest.approx([0.5, 1.3, 0.72, 1.1])
    dots = [line.get_xdata()[0] for line in late.lines if line.get_marker() == "o"]
    assert dots == pytest.approx([2.2, 3.2, 4.6])
    assert [text.get_text() for text in late.texts] == ["→ ∞"]


def test_a_comparison_is_drawn_like_a_run(run) -> None:
    table = run.tables["answers"]
    made = figures.three_answers(Comparison(table))
    assert made.axes[0].get_xlabel() == "requests in time [%]"


def test_redirections_that_take_time_are_a_part_of_the_bar(run) -> None:
    table, rows = run.tables["answers"], ["simulation: equilibrium"]
    took = pd.DataFrame({"metric": "redirect_s", "column": rows, "value": 0.3})
    mean = figures.three_answers(run.with_tables(answers=pd.concat([table, took]))).axes[1]
    assert [bars.get_label() for bars in mean.containers] == ["radio", "wait", "prefill", "redirections"]
    assert [bar.get_width() for bar in mean.containers[3]] == pytest.approx([0.0, 0.0, 0.0, 0.3])


def test_nothing_finite_is_still_a_figure(run) -> None:
    table = run.tables["answers"].assign(value=np.inf, low=np.nan, high=np.nan)
    made = figures.three_answers(run.with_tables(answers=table))
    assert all(len(axes.texts) == 4 for axes in made.axes)


def test_shares_of_profiles_fill_each_row(run, other) -> None:
    axes = figures.profile_shares(run).axes[0]
    widths = np.array([[bar.get_width() for bar in bars] for bars in axes.containers])
    assert np.allclose(widths, 25.0)
    alone = figures.profile_shares(other).axes[0]
    widths = np.array([bars[0].get_width() for bars in alone.containers])
    assert np.allclose(widths, 100 * other.profile_share)
    assert [bars.get_label() for bars in alone.containers] == other.meta["profile_names"]
