"""Answers side by side: intervals by hand, one column a list of replications."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoedge.compare import compare, control_epochs, control_table, interval, variants
from geoedge.compare.columns import median_range
from geoedge.errors import GeoEdgeError
from geoedge.scenario import load_scenario
from geoedge.study import field_answers, theory_answers
from geoedge.sweep import Replication
from tests.results.made import make_results


def test_the_interval_of_three_numbers_is_students() -> None:
    mean, low, high = interval([1.0, 2.0, 3.0])
    assert (mean, high - mean) == (
        2.0,
        pytest.approx(4.302652729911275 / np.sqrt(3.0)),
    )  # t of 2 degrees, 97.5 %
    assert mean - low == pytest.approx(high - mean)


@pytest.mark.parametrize(
    ("values", "middle"),
    [([0.4, 0.8], 0.6), ([3.0, 1.0, 2.0], 2.0), ([1.0, 2.0, 4.0, np.inf], 3.0), ([1.0, np.inf], np.inf)],
)
def test_the_median_of_layouts_is_a_median_even_if_some_are_infinite(values, middle) -> None:
    found, low, high = median_range(values)
    assert found == pytest.approx(middle)
    assert (low, high) == (min(values), max(values))


def test_layouts_that_have_no_number_do_not_count() -> None:
    assert median_range([np.nan, 1.0, 3.0]) == (2.0, 1.0, 3.0)
    assert np.isnan(median_range([np.nan])).all()


def test_what_is_beyond_all_bounds_has_no_interval() -> None:
    mean, low, high = interval([np.inf, 1.0, 2.0])
    assert mean == np.inf
    assert np.isnan([low, high]).all()
    assert np.isnan(interval([np.inf, -np.inf])).all()


def test_one_run_has_no_interval() -> None:
    assert np.isnan(interval([1.0])[1:]).all()


def test_theory_and_field_side_by_side(small_study) -> None:
    theory, field = theory_answers(small_study), field_answers(small_study)
    names = small_study.workload.profile_names
    table = compare(theory, field, ttft_target_s=0.8, profile_names=names)
    assert list(table.wide.columns) == ["theory (PPP)", "field (map)"]
    assert table.wide.loc["coverage", "field (map)"] == field.ttft_coverage(0.8)
    assert table.wide.loc[[f"share:{name}" for name in names]].sum().to_numpy() == pytest.approx(1.0)
    assert "TTFT coverage [–]" in repr(table)
    with pytest.raises(GeoEdgeError, match="must be given"):
        compare(theory, field)


def test_rejections_have_a_row_where_there_are_some() -> None:
    taken = make_results()
    site = pa.array(np.array([0, 0, -1, 1, 0], dtype=np.int32))  # the first one is of the warm-up
    place = taken.records.column_names.index("site")
    rejecting = make_results(records=taken.records.set_column(place, "site", site))
    assert "rejected_share" not in compare(taken).wide.index
    wide = compare(taken, rejecting, labels=["all", "most"]).wide
    assert list(wide.loc["rejected_share"]) == [0.0, 0.25]
    rows = compare([taken, rejecting]).table.set_index("metric")
    assert rows.loc["rejected_share", "value"] == 0.125
    assert rows.loc["rejected_share", "label"] == "rejected"


def test_every_variant_differs_and_the_last_is_the_scenario_itself() -> None:
    scenario = load_scenario("monaco")
    assert list(variants(scenario)) == ["simulation: equilibrium", "simulation: state", "with controller"]
    assert variants(scenario)["with controller"] == {}
    still = scenario.override({"control.controller": "none", "routing.advertise": "measured"})
    assert list(variants(still)) == ["simulation: equilibrium", "simulation: state", "simulation: measured"]
    near = scenario.override({"routing.policy": "nearest"})
    assert list(variants(near)) == ["simulation", "with controller"]


def replication(coverage: list[float], moved: list[tuple[int, float, float]]) -> Replication:
    epochs = pd.DataFrame({"epoch": [0, 1], "start_s": [0.0, 900.0], "coverage": coverage})
    actions = pd.DataFrame(moved, columns=["epoch", "bytes_moved", "predicted_gain"]).assign(
        action="replicate", horizon_gain=lambda made: made["predicted_gain"] / 2
    )
    repair = {"epoch": 1, "bytes_moved": 5e9, "predicted_gain": np.nan, "action": "restore"}
    actions.loc[len(actions)] = repair  # no plan's move
    return Replication(0, 0, 1, {"coverage": float(np.mean(coverage))}, epochs, actions, [])


def test_gains_are_paired_and_summed_over_moves() -> None:
    still = [replication([0.5, 0.4], []), replication([0.6, 0.5], [])]
    steered = [
        replication([0.5, 0.5], [(0, 1e9, 0.02), (1, 1e9, 0.01)]),
        replication([0.6, 0.6], [(0, 3e9, 0.04)]),
    ]
    table = control_epochs(still, steered)
    assert list(table["moves"]) == [1.0, 0.5]
    assert list(table["bytes_moved"]) == [2e9, 0.5e9]
    assert list(table["predicted_gain"]) == pytest.approx([0.03, 0.035])
    assert list(table["horizon_gain"]) == pytest.approx([0.015, 0.0175])
    assert list(table["change"]) == pytest.approx([0.0, 0.1])
    assert table["high"].to_numpy() == pytest.approx(table["change"].to_numpy())  # both pairs agree
    assert control_table(still, steered)["change"][0] == pytest.approx(0.05)
