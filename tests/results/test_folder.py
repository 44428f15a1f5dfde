"""A run folder is whole or absent, and what is no run folder is named."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoedge.errors import OutputError
from geoedge.results import PATH_COLUMNS, Results, check_writable
from tests.results.made import make_results


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


@pytest.mark.parametrize(
    "key", ["written", "label", "title", "start_s", "profile_names", "policy", "controller"]
)
def test_a_key_that_is_not_stated_is_named(tmp_path: Path, key: str) -> None:
    folder = make_results().save(tmp_path / "run")
    meta = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    del meta[key]
    (folder / "provenance.json").write_text(json.dumps(meta), encoding="utf-8")
    with pytest.raises(OutputError, match=rf"provenance.json does not state '{key}'"):
        Results.load(folder)


def test_tables_without_their_lengths_are_no_run(tmp_path: Path) -> None:
    folder = make_results().save(tmp_path / "run")
    meta = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    meta["tables"] = list(meta["tables"])
    (folder / "provenance.json").write_text(json.dumps(meta), encoding="utf-8")
    with pytest.raises(OutputError, match="is not a run folder: it is incomplete"):
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


PATHS = pd.DataFrame(
    {name: np.ones(2) if kind != "str" else ["walk"] * 2 for name, kind in PATH_COLUMNS.items()}
)


def test_paths_without_a_column_are_told_in_one_line(tmp_path: Path) -> None:
    folder = make_results().with_tables(paths=PATHS).save(tmp_path / "run")
    assert len(Results.load(folder).tables["paths"]) == 2
    PATHS.drop(columns="length_m").to_parquet(folder / "paths.parquet")
    with pytest.raises(OutputError, match=r"paths\.parquet has no column length_m") as caught:
        Results.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["time_s", "depart_s", "x_m", "length_m", "user"])
@pytest.mark.parametrize("value", [np.nan, np.inf, "soon"])
def test_paths_that_are_nowhere_or_never_are_told_in_one_line(
    tmp_path: Path, name: str, value: object
) -> None:
    folder = make_results().with_tables(paths=PATHS.assign(**{name: value})).save(tmp_path / "run")
    with pytest.raises(OutputError, match="is not a run folder: it is incomplete") as caught:
        Results.load(folder)
    assert "\n" not in str(caught.value)


def test_ones_own_notes_in_a_run_folder_are_not_deleted(tmp_path: Path) -> None:
    folder = make_results().save(tmp_path / "run")
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt"):
        make_results().save(folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_no_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="there is no such folder"):
        Results.load(tmp_path / "nowhere")


def test_home_is_where_a_folder_is_checked_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(OutputError, match="is not a run folder"):
        check_writable(Path("~/thesis"))
    assert make_results().save("~/run") == tmp_path / "run"
    assert Results.load("~/run").requests == 4


def test_the_home_of_nobody_is_a_name_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_writable(Path("~no-such-user/run"))
    make_results().save("~no-such-user/run")
    assert Results.load("~no-such-user/run").requests == 4


def test_a_link_leads_to_the_run_that_is_replaced(tmp_path: Path) -> None:
    make_results().save(tmp_path / "disk" / "run", {"map.html": "old"})
    (tmp_path / "run").symlink_to(tmp_path / "disk" / "run")
    (tmp_path / "next").symlink_to(tmp_path / "disk" / "next")
    for name in ("run", "next"):
        make_results().save(tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert Results.load(tmp_path / "disk" / name).requests == 4
    assert not (tmp_path / "run" / "map.html").exists()
    assert sorted(os.listdir(tmp_path)) == ["disk", "next", "run"]
    assert sorted(os.listdir(tmp_path / "disk")) == ["next", "run"]
