"""Results: metrics follow from timestamps by hand, and a run folder is whole or absent."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoedge.answers import answer_metrics
from geoedge.errors import GeoEdgeError, OutputError
from geoedge.results import RECORD_COLUMNS, Results, batch_interval, check_writable

# Five requests; the first falls into the warm-up. TTFT = radio + wait + prefill.
CREATED = np.array([5.0, 20.0, 30.0, 40.0, 50.0])
RADIO = np.array([0.01, 0.01, 0.02, 0.03, 0.02])
WAIT = np.array([9.0, 0.0, 0.5, 1.0, 0.0])
PREFILL = np.array([0.1, 0.1, 0.2, 0.4, 0.1])


def make_results(**changes: object) -> Results:
    n = len(CREATED)
    started = CREATED + RADIO + WAIT
    values = {
        "created_s": CREATED,
        "user": np.arange(n),
        "request_type": np.array([0, 0, 1, 1, 0]),
        "activity": np.zeros(n),
        "x_m": np.arange(n),
        "y_m": np.arange(n),
        "epoch": np.zeros(n),
        "site": np.array([0, 0, 1, 1, 0]),
        "profile": np.array([0, 0, 1, 1, 0]),
        "hit_tokens": np.array([0, 0, 300, 300, 0]),
        "distance_km": np.array([9.0, 0.1, 0.2, 0.3, 0.2]),
        "radio_s": RADIO,
        "arrived_s": CREATED + RADIO,
        "started_s": started,
        "wait_s": WAIT,
        "prefill_s": PREFILL,
        "ttft_s": RADIO + WAIT + PREFILL,
        "first_token_s": started + PREFILL,
        "finished_s": started + PREFILL + 1.0,
        "redirects": np.zeros(n),
        "status": np.array([0, 0, 0, 1, 2]),
    }
    records = pa.table({name: pa.array(values[name].astype(kind)) for name, kind in RECORD_COLUMNS.items()})
    epochs = pd.DataFrame(
        {
            "epoch": [0, 0, 1, 1],
            "start_s": [0.0, 0.0, 10.0, 10.0],
            "end_s": [10.0, 10.0, 60.0, 60.0],
            "site": [0, 1, 0, 1],
            "concurrency": [2, 6, 2, 6],
            "server_s": [20.0, 60.0, 100.0, 300.0],
            "utilization": [0.9, 0.9, 0.5, 0.1],
            "prefill_s_per_s": [0.9, 0.9, 0.2, 0.4],
            "rejected": [0, 0, 0, 0],
        }
    )
    sites = pd.DataFrame(
        {
            "site": [0, 1],
            "name": ["<script>", "b"],
            "kind": ["x", "y"],
            "lon": [7.4, 7.5],
            "lat": [43.7, 43.8],
            "x_m": [0.0, 1.0],
            "y_m": [0.0, 1.0],
            "profile": [0, 1],
        }
    )
    meta = {
        "title": "five requests",
        "seed": 1,
        "start_s": 0.0,
        "warm_up_s": 10.0,
        "horizon_s": 60.0,
        "ttft_target_s": 0.8,
        "profile_names": ["fallback", "deep"],
        "prompt_tokens": [100, 400],
        "full_prefill_s": [0.1, 0.5],
    }
    series = pd.DataFrame({"time_s": [60.0], "coverage": [0.75]})
    actions = pd.DataFrame({"epoch": [0], "site": [1], "predicted_gain": [0.01]})
    fields = {"records": records, "sites": sites, "epochs": epochs, "series": series, "actions": actions}
    return Results(label="run", meta=meta, scenario_toml='title = "x"\n', **(fields | changes))  # type: ignore[arg-type]


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


def test_a_saved_run_reads_back_equal(tmp_path: Path) -> None:
    results = make_results().with_tables(answers=pd.DataFrame({"metric": ["coverage"], "value": [0.75]}))
    folder = results.save(tmp_path / "runs" / "one", {"map.html": "<p>map</p>\n"})
    again = Results.load(folder)
    assert again.records.equals(results.records)
    sums = again.meta.pop("checksums")
    assert sums == {"scenario": sha256(results.scenario_toml.encode()).hexdigest()}
    assert again.meta == results.meta
    assert again.metrics() == results.metrics()
    assert again.scenario_toml == results.scenario_toml
    pd.testing.assert_frame_equal(again.sites, results.sites)
    pd.testing.assert_frame_equal(again.tables["answers"], results.tables["answers"])
    assert (folder / "map.html").read_text() == "<p>map</p>\n"
    assert json.loads((folder / "provenance.json").read_text())["seed"] == 1
    assert os.listdir(tmp_path / "runs") == ["one"]


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (make_results().save(tmp_path / name) for name in ("a", "b"))
    for path in sorted(set(first.iterdir()) - {first / "provenance.json"}):
        assert path.read_bytes() == (second / path.name).read_bytes(), path.name
    facts = [(folder / "provenance.json").read_text().splitlines() for folder in (first, second)]
    assert [a for a, b in zip(*facts, strict=True) if a != b and '"written"' not in a] == []


def test_a_new_run_replaces_an_old_one_as_a_whole(tmp_path: Path) -> None:
    results = make_results()
    results.save(tmp_path / "run", {"map.html": "old"})
    results.save(tmp_path / "run")
    assert not (tmp_path / "run" / "map.html").exists()
    assert os.listdir(tmp_path) == ["run"]


def test_what_is_no_run_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(OutputError, match="is not a run folder"):
        make_results().save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years of work"


def test_a_folder_below_a_file_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        check_writable(tmp_path / "file" / "run")


def test_nothing_is_left_when_writing_fails(tmp_path: Path) -> None:
    broken = make_results(series=pd.DataFrame({"x": [object()]}))
    with pytest.raises(pa.ArrowInvalid):
        broken.save(tmp_path / "run")
    assert os.listdir(tmp_path) == []


def test_no_empty_folder_is_left_when_writing_fails(tmp_path: Path) -> None:
    broken = make_results(series=pd.DataFrame({"x": [object()]}))
    with pytest.raises(pa.ArrowInvalid):
        broken.save(tmp_path / "new" / "deep" / "run")
    assert os.listdir(tmp_path) == []


def test_a_key_that_is_not_stated_is_named(tmp_path: Path) -> None:
    folder = make_results().save(tmp_path / "run")
    meta = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    del meta["written"]
    (folder / "provenance.json").write_text(json.dumps(meta), encoding="utf-8")
    with pytest.raises(OutputError, match=r"provenance.json does not state 'written'"):
        Results.load(folder)


@pytest.mark.parametrize(
    "missing", ["requests.parquet", "sites.parquet", "provenance.json", "epochs.parquet"]
)
def test_an_incomplete_folder_is_named(tmp_path: Path, missing: str) -> None:
    folder = make_results().save(tmp_path / "run")
    (folder / missing).unlink()
    with pytest.raises(OutputError, match="is not a run folder: it is incomplete"):
        Results.load(folder)


def test_a_table_of_another_length_is_named(tmp_path: Path) -> None:
    folder = make_results().with_tables(answers=pd.DataFrame({"metric": ["coverage"]})).save(tmp_path / "run")
    (folder / "answers.parquet").write_bytes((folder / "epochs.parquet").read_bytes())
    with pytest.raises(OutputError, match=r"answers\.parquet has another number of rows"):
        Results.load(folder)
    (folder / "provenance.json").write_text("[]")
    with pytest.raises(OutputError, match="is not a run folder"):
        Results.load(folder)


def test_ones_own_notes_in_a_run_folder_are_not_deleted(tmp_path: Path) -> None:
    folder = make_results().save(tmp_path / "run")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        make_results().save(folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_run_without_requests_says_so(tmp_path: Path) -> None:
    results = make_results().with_meta(warm_up_s=1e6)
    with pytest.raises(GeoEdgeError, match="no request after the warm-up"):
        results.metrics()


def test_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no such folder"):
        Results.load(tmp_path / "nowhere")


def test_batch_interval_covers_the_truth_of_independent_requests() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(100):
        created = np.sort(rng.uniform(10.0, 60.0, 4000))
        ttft = rng.exponential(1.0, 4000)
        records = pa.table({"created_s": created, "ttft_s": ttft})
        _, low, high = batch_interval(make_results(records=records), np.mean)
        covered += low <= 1.0 <= high
    assert 88 <= covered <= 100  # 95 of 100; fewer than 88 has probability below 1e-3


def test_too_few_batches_are_refused() -> None:
    with pytest.raises(GeoEdgeError, match="at least 10"):
        batch_interval(make_results(), np.mean, batches=3)
