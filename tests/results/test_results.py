"""Metrics follow from timestamps by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoedge.answers import answer_metrics
from geoedge.errors import GeoEdgeError
from geoedge.results import Results
from tests.results.made import CREATED, make_results


def test_metrics_by_hand_without_the_warm_up() -> None:
    results = make_results()
    assert results.requests == 4
    assert results.ttft_coverage(0.8) == 3 / 4  # only 0.03 + 1.0 + 0.4 is late
    assert results.mean_ttft == pytest.approx((0.11 + 0.72 + 1.43 + 0.12) / 4)
    assert results.parts() == pytest.approx({"radio": 0.02, "wait": 0.375, "prefill": 0.2})
    assert sum(results.parts().values()) == pytest.approx(results.mean_ttft)
    assert results.profile_share == pytest.approx([0.5, 0.5])
    assert results.offloading_ratio("tokens") == pytest.approx(600 / 1000)
    assert results.offloading_ratio("prefill_time") == pytest.approx(1 - 0.8 / 1.2)
    assert results.mean_serving_distance == pytest.approx(0.2)
    assert results.mean_utilization == pytest.approx((2 * 0.5 + 6 * 0.1) / 8)
    assert results.ttft_quantile(1.0) == pytest.approx(1.43)


def test_means_over_requests_are_unknown_where_none_was_taken() -> None:
    taken = make_results()
    nobody = taken.records.set_column(
        taken.records.column_names.index("site"), "site", pa.array(np.full(len(CREATED), -1, dtype=np.int32))
    )
    metrics = make_results(records=nobody).metrics()
    known = {"coverage", "p95_ttft_s", "utilization"}
    assert {name for name, value in metrics.items() if not np.isnan(value)} == known


def test_metrics_name_every_profile() -> None:
    results = make_results()
    metrics = results.metrics()
    assert metrics == answer_metrics(results, 0.8, ["fallback", "deep"])
    assert metrics["share:deep"] == 0.5


def test_status_at_the_horizon_counts_every_request() -> None:
    counts = make_results().status_counts()
    assert counts == {"served": 3, "in_service": 1, "waiting": 1, "in_flight": 0, "rejected": 0}
    assert sum(counts.values()) == len(CREATED)


def test_site_table_puts_the_worst_first() -> None:
    table = make_results().site_table()
    assert list(table["site"]) == [1, 0]
    assert list(table["requests"]) == [2, 2]
    assert list(table["missed"]) == [1, 0]
    assert table["share_of_all_misses"].sum() == 1.0
    assert list(table["mean_wait_s"]) == [0.75, 0.0]


def test_sites_know_their_street_and_older_runs_have_none(tmp_path: Path) -> None:
    old = make_results()
    assert Results.load(old.save(tmp_path / "old")).streets == ["", ""]
    assert list(old.site_table()["street"]) == ["", ""]
    named = make_results(sites=old.sites.assign(street=["<b>Rue</b>", ""]))
    again = Results.load(named.save(tmp_path / "new"))
    assert again.streets == ["<b>Rue</b>", ""]
    assert list(again.site_table()["street"]) == ["", "<b>Rue</b>"]  # most misses first


def test_a_sites_utilisation_is_busy_seconds_over_servers_seconds() -> None:
    # 2 servers of which the site loses half for an epoch: 0.9 of 5 s × 2 and 0.3 of 10 s × 2 are busy.
    base = make_results()
    after = base.epochs[base.epochs["epoch"] == 1]
    epochs = pd.concat(
        [
            base.epochs[base.epochs["epoch"] == 0],
            after.assign(end_s=20.0, server_s=[10.0, 0.0], utilization=[0.9, 0.0], prefill_s_per_s=0.2),
            after.assign(epoch=2, start_s=20.0, end_s=30.0, server_s=[20.0, 0.0], utilization=[0.3, 0.0]),
        ],
        ignore_index=True,
    )
    results = make_results(epochs=epochs)
    table = results.site_table().set_index("site")
    assert table["utilization"].sort_index().tolist() == pytest.approx([(9.0 + 6.0) / 30.0, 0.0])
    assert table["utilization"][0] == pytest.approx(results.mean_utilization)  # the other has no server
    assert table["prefill_s_per_s"][0] == pytest.approx(0.2)


def test_what_is_measured_begins_where_the_warm_up_ends() -> None:
    results = make_results()
    assert results.measured_from_s == 10.0
    assert results.measured_epochs["epoch"].unique().tolist() == [1]


def test_a_run_without_requests_says_so(tmp_path: Path) -> None:
    results = make_results().with_meta(warm_up_s=1e6)
    with pytest.raises(GeoEdgeError, match="no request after the warm-up"):
        results.metrics()
