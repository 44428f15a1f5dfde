"""Curves are those of the records: every point is asked of the run again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from geoedge import figures
from geoedge.errors import GeoEdgeError
from geoedge.theory import transient_wait_tail, wait_cdf


def test_every_point_of_the_ttft_curve_is_the_runs_own_coverage(run, other) -> None:
    axes = figures.ttft_distribution(run, other, names=["a", "b"]).axes[0]
    curves = [line for line in axes.lines if len(line.get_xdata()) > 2]
    for line, asked in zip(curves, (run, other), strict=True):
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert len(x) > 200
        assert np.allclose(y, [100 * asked.ttft_coverage(t) for t in x], rtol=0, atol=1e-12)
        taken = (asked.column("site") >= 0).mean()
        assert y[-1] == pytest.approx(100 * taken)  # the rejected never get a first token
        assert y[0] == pytest.approx(100 / asked.requests)
    assert curves[0].get_color() != curves[1].get_color()
    assert curves[0].get_linestyle() != curves[1].get_linestyle()


def test_theory_and_field_stand_at_the_target(run) -> None:
    axes = figures.ttft_distribution(run).axes[0]
    marks = {
        line.get_label(): line.get_xydata()[0].tolist() for line in axes.lines if line.get_marker() != "None"
    }
    assert marks == {"theory (PPP) 83.0 %": [0.8, 83.0], "field (map) 77.0 %": [0.8, 77.0]}
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words[0] == f"simulation {100 * run.ttft_coverage(0.8):.1f} %"
    assert axes.get_legend().get_title().get_text() == f"{run.requests:,} requests, in time:"


def test_a_run_whose_answers_are_infinite_still_stands(run) -> None:
    table = run.tables["answers"].assign(value=np.inf)
    axes = figures.ttft_distribution(run.with_tables(answers=table)).axes[0]
    assert axes.get_xlim()[1] < 100.0


def test_the_curve_of_waits_counts_those_that_wait_longer(run) -> None:
    axes = figures.wait_distribution(run).axes[0]
    x, y = (np.asarray(each) for each in axes.lines[0].get_data())
    waits = run.column("wait_s")[run.column("site") >= 0]
    assert len(x) > 100
    assert np.allclose(y, [100 * (waits > t + 1e-9).mean() for t in x])
    assert y[0] == pytest.approx(100 * (waits > 1e-9).mean())
    assert axes.get_yscale() == "log"


def test_erlangs_curve_is_that_of_each_site_weighted_by_its_requests(run) -> None:
    axes = figures.wait_distribution(run).axes[0]
    x, y = (np.asarray(each) for each in axes.lines[2].get_data())
    assert axes.lines[2].get_label().startswith("Erlang C")
    rows = run.records.to_pandas()
    rows = rows[(rows["site"] >= 0) & (rows["created_s"] >= run.meta["start_s"] + run.meta["warm_up_s"])]
    servers_s = run.epochs.set_index(["epoch", "site"])["server_s"]
    longer = np.zeros(len(x))
    for place, part in rows.groupby(["epoch", "site"]):
        service = (part["finished_s"] - part["started_s"]).mean()
        longer += len(part) * (1.0 - wait_cdf(x, len(part) / (servers_s[place] / 3), 1.0 / service, 3))
    assert np.allclose(y, 100 * longer / len(rows))


def test_the_curve_in_its_time_starts_empty_before_the_warm_up_and_hands_queues_on(run) -> None:
    axes = figures.wait_distribution(run).axes[0]
    x, y = (np.asarray(each) for each in axes.lines[1].get_data())
    assert axes.lines[1].get_label().startswith("M/M/c in the time it has")
    rows = run.records.to_pandas()
    rows = rows[rows["site"] >= 0].assign(service=rows["finished_s"] - rows["started_s"])
    found = rows.groupby(["site", "epoch"])["service"].agg(["mean", "size"]).unstack()
    open_s = run.epochs.set_index(["site", "epoch"])["server_s"].unstack() / 3
    longer, counted = np.zeros(len(x)), 0
    for place, site in found.iterrows():
        asked, length = site["size"].to_numpy(), open_s.loc[place].to_numpy()
        tail = transient_wait_tail(x, asked / length, 1.0 / site["mean"].to_numpy(), [3] * len(asked), length)
        longer += asked[1:] @ tail[1:]  # the first epoch is the warm-up
        counted += asked[1:].sum()
    assert np.allclose(y, 100 * longer / counted)


def test_requests_that_meet_queues_without_rest_are_said(run) -> None:
    assert not [text for text in figures.wait_distribution(run).axes[0].texts if "rest" in text.get_text()]
    service = run.records.column("finished_s").to_numpy() - run.records.column("started_s").to_numpy()
    epoch, site = (run.records.column(name).to_numpy() for name in ("epoch", "site"))
    long = np.where((epoch == 2) & (site == 1), 30.0, 1.0) * service
    place = run.records.column_names.index("finished_s")
    changed = run.records.set_column(
        place, "finished_s", pa.array(run.records.column("started_s").to_numpy() + long)
    )
    (text,) = figures.wait_distribution(replace(run, records=changed)).axes[0].texts
    taken = (epoch > 0) & (site >= 0)
    share = f"{100 * (taken & (epoch == 2) & (site == 1)).sum() / taken.sum():.1f} %"
    assert text.get_text().startswith(f"{share} of requests at sites and epochs")
    assert text.get_text().endswith(f"{share} beyond capacity")


def test_no_wait_at_all_is_refused(run) -> None:
    place = run.records.column_names.index("wait_s")
    idle = replace(run, records=run.records.set_column(place, "wait_s", [np.zeros(run.records.num_rows)]))
    with pytest.raises(GeoEdgeError, match="wait_distribution: no request of run 'simulation' waited"):
        figures.wait_distribution(idle)


def test_load_is_busy_over_all_server_seconds_from_idlest_to_busiest(run) -> None:
    axes = figures.load_distribution(run).axes[0]
    steps = axes.patches[0].get_data()
    after = run.epochs[run.epochs["epoch"] > 0].assign(
        busy=lambda rows: rows["utilization"] * rows["server_s"]
    )
    sums = after.groupby("site")[["busy", "server_s"]].sum()
    load = np.sort((sums["busy"] / sums["server_s"]).to_numpy())
    assert np.allclose(steps.values, 100 * load)
    assert np.allclose(steps.edges, np.linspace(0, 100, len(load) + 1))
    total = (after["busy"].sum()) / after["server_s"].sum()
    assert total == pytest.approx(run.mean_utilization)
    marked = sum(len(line.get_xdata()) for line in axes.lines if line.get_marker() not in ("None", None))
    assert marked == len(load)


def test_load_is_that_of_the_table_of_sites(run) -> None:
    steps = figures.load_distribution(run).axes[0].patches[0].get_data()
    assert np.array_equal(steps.values, 100 * np.sort(run.site_table()["utilization"]))


def test_runs_are_told_apart_by_what_differs(run, other) -> None:
    words = [text.get_text() for text in figures.load_distribution(run, other).legends[0].get_texts()]
    assert words == ["load-aware, controller greedy, 6 sites", "nearest, caches stay, 6 sites"]
    named = [replace(run, label="a"), replace(run, label="b")]
    words = [text.get_text() for text in figures.load_distribution(*named).legends[0].get_texts()]
    assert words == ["a, 6 sites", "b, 6 sites"]
    words = [text.get_text() for text in figures.load_distribution(run, run).legends[0].get_texts()]
    assert words == ["run 1, 6 sites", "run 2, 6 sites"]


def test_a_site_keeps_the_mark_of_the_profile_it_held_longest(run) -> None:
    epochs = run.epochs.copy()
    epochs.loc[(epochs["site"] == 0) & (epochs["epoch"] == 1), "profile"] = 3
    assert isinstance(epochs, pd.DataFrame)
    axes = figures.load_distribution(replace(run, epochs=epochs)).axes[0]
    held = {
        line.get_label(): len(line.get_xdata())
        for line in axes.lines
        if line.get_marker() not in ("None", None)
    }
    names = run.meta["profile_names"]
    assert held == {names[0]: 2, names[1]: 2, names[2]: 1, names[3]: 1}


@pytest.mark.parametrize("columns", [1, 2])
def test_long_names_of_profiles_lie_under_the_loads(run, columns) -> None:
    names = [f"{letter} very long name of a profile" for letter in "ABCD"]
    figure = figures.load_distribution(run.with_meta(profile_names=names), columns=columns)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    (legend,) = figure.legends
    axes = figure.axes[0]
    assert axes.get_legend() is None
    assert len(legend.get_texts()) == 5
    box, drawn = (each.get_window_extent(canvas.get_renderer()) for each in (legend, axes))
    assert not box.overlaps(drawn)
    assert box.x0 >= -0.5
    assert box.x1 <= figure.bbox.x1 + 0.5
