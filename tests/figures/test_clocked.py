"""What is drawn over the clock adds up to the tables of the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge import figures


def stairs(axes, place=0):
    return axes.patches[place].get_data()


def test_coverage_of_an_epoch_is_that_of_its_requests(run) -> None:
    axes = figures.coverage_over_time(run).axes[0]
    steps = next(patch.get_data() for patch in axes.patches if hasattr(patch, "get_data"))
    records = run.records.to_pandas()
    share = (records["ttft_s"] <= 0.8).groupby(records["epoch"]).mean()
    assert np.allclose(steps.values, 100 * share)
    assert np.allclose(steps.edges, 17.0 + 0.25 * np.arange(5))
    minutes = axes.lines[0]
    assert np.allclose(minutes.get_ydata(), 100 * run.series["coverage"], equal_nan=True)
    assert minutes.get_xdata()[0] == pytest.approx(17.0 + 0.5 / 60)
    assert minutes.get_label() == "each 60 s"
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "17:00",
        "17:15",
        "17:30",
        "17:45",
        "18:00",
    ]
    assert axes.get_ylabel() == "requests within 0.8 s [%]"


def test_an_epoch_that_nobody_asked_in_is_a_hole(run) -> None:
    epochs = run.epochs.copy()
    epochs.loc[epochs["epoch"] == 2, ["requests", "missed"]] = 0
    axes = figures.coverage_over_time(replace(run, epochs=epochs)).axes[0]
    steps = next(patch.get_data() for patch in axes.patches if hasattr(patch, "get_data"))
    assert np.isnan(steps.values).tolist() == [False, False, True, False]


def test_lines_of_few_runs_carry_their_names_over_two_columns(run, other) -> None:
    wide, narrow = (figures.coverage_over_time(run, other, columns=columns) for columns in (2, 1))
    assert not wide.legends
    told = [text.get_text() for text in wide.axes[0].texts]
    assert f"nearest\ncaches stay\n{other.requests:,} requests" in told
    assert len(narrow.legends[0].get_texts()) == 2


def test_moves_add_up_to_the_ledger(run) -> None:
    top, moved, gain = figures.moves_over_time(run).axes
    size = sum(bar.get_height() for bars in moved.containers for bar in bars)
    assert size == pytest.approx(run.actions["bytes_moved"].sum() / 1e9)
    assert [bars.get_label() for bars in moved.containers] == ["migrate 1×", "replicate 2×"]
    promised, kept, others = ([bar.get_height() for bar in bars] for bars in gain.containers)
    assert promised == pytest.approx([0.0, 1.2, 0.0, 0.0])  # of the moves that are judged, as in hindsight
    assert kept == pytest.approx([0.0, 0.9, 0.0, 0.0])
    assert others == pytest.approx([0.0, 0.0, 0.0, 0.4])  # not known is not nothing
    assert gain.containers[2].get_label() == "not judged"
    lines = {
        patch.get_label(): patch.get_data().values for patch in top.patches if hasattr(patch, "get_data")
    }
    paired = run.tables["control_epochs"]
    assert np.allclose(lines["caches stay"], 100 * paired["still"])
    assert np.allclose(lines["with controller"], 100 * (paired["still"] + paired["change"]))
    band = next(patch.get_data() for patch in top.patches if hasattr(patch, "get_data"))
    assert np.allclose(band.values - band.baseline, 1.0)


def test_a_move_that_nobody_judges_stands_on_those_that_are_judged(run) -> None:
    actions = run.actions.assign(realised_gain=[0.008, np.nan, 0.003])
    promised, kept, others = figures.moves_over_time(replace(run, actions=actions)).axes[2].containers
    assert [bar.get_height() for bar in promised] == pytest.approx([0.0, 1.0, 0.0, 0.4])
    assert [bar.get_height() for bar in kept] == pytest.approx([0.0, 0.8, 0.0, 0.3])
    assert [bar.get_height() for bar in others] == pytest.approx([0.0, 0.2, 0.0, 0.0])
    assert [bar.get_y() for bar in others] == pytest.approx([0.0, 1.0, 0.0, 0.4])


def test_what_sites_repair_is_neither_promised_nor_unjudged(run) -> None:
    kinds = ["replicate", "restore", "replicate"]
    actions = run.actions.assign(action=kinds, realised_gain=[0.008, np.nan, 0.003])
    gain = figures.moves_over_time(replace(run, actions=actions)).axes[2]
    assert [bars.get_label() for bars in gain.containers] == ["promised", "in hindsight"]
    assert gain.containers[0][1].get_height() == pytest.approx(1.0)


def test_bars_of_an_epoch_stand_in_it(run) -> None:
    _, moved, _ = figures.moves_over_time(run).axes
    starts = [bar.get_x() for bar in moved.containers[0]]
    assert np.allclose(starts, 17.0 + 0.25 * np.arange(4))


def test_a_run_without_moves_says_so(run) -> None:
    still = replace(run, actions=run.actions.head(0), tables={})
    top, moved, _ = figures.moves_over_time(still).axes
    assert "no moves" in [text.get_text() for text in moved.texts]
    records = run.records.to_pandas()
    share = (records["ttft_s"] <= 0.8).groupby(records["epoch"]).mean()
    assert np.allclose(stairs(top).values, 100 * share)


def test_where_nothing_is_judged_no_legend_says_hindsight_has_bars(run) -> None:
    unjudged = replace(run, actions=run.actions.assign(realised_gain=np.nan))
    gain = figures.moves_over_time(unjudged).axes[2]
    (promised,) = gain.containers
    assert promised.get_label() == "promised, not judged in hindsight"
    assert [bar.get_height() for bar in promised] == pytest.approx([0.0, 1.2, 0.0, 0.4])
    assert [text.get_text() for text in gain.get_legend().get_texts()] == [promised.get_label()]
