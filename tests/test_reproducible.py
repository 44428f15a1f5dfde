"""The main job is a function of scenario and seed: the same bytes again, whoever computes them, and only then.

Policies and controllers are compared on common random numbers: what people do never depends on who serves them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from geoedge.compare import run
from geoedge.maps import city_map
from geoedge.results import Results
from geoedge.scenario import Scenario, load_scenario
from geoedge.shipped import data_path
from geoedge.simulation import EdgeCity
from geoedge.study import Study
from tests.conftest import SMALL

pytestmark = pytest.mark.slow

LAYOUTS = 2
ARRIVALS = ("created_s", "user", "request_type", "activity", "x_m", "y_m", "epoch")
"""Columns of the records that people decide, whoever serves them."""
PROVENANCE = "provenance.json"


def saved(scenario: Scenario, folder: Path, workers: int) -> Path:
    results = run(scenario, layouts=LAYOUTS, workers=workers)
    return results.save(folder, {"map.html": city_map(results).to_html()})


@pytest.fixture(scope="module")
def first(small_scenario: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(small_scenario, tmp_path_factory.mktemp("runs") / "first", workers=1)


def assert_same_bytes(one: Path, other: Path) -> None:
    """Assert that two run folders differ in the wall-clock lines of their provenance alone."""
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in other.iterdir())
    tables = {f"{name}.parquet" for name in ("requests", "answers", "ensemble", "paths")}
    assert tables | {"map.html", PROVENANCE} <= set(names)
    differing = [n for n in names if (one / n).read_bytes() != (other / n).read_bytes()]
    assert set(differing) <= {PROVENANCE}
    facts = [(folder / PROVENANCE).read_text(encoding="utf-8").splitlines() for folder in (one, other)]
    assert [a for a, b in zip(*facts, strict=True) if a != b and '"written"' not in a] == []


def test_another_number_of_workers_gives_the_same_bytes(first, small_scenario, tmp_path) -> None:
    assert_same_bytes(first, saved(small_scenario, tmp_path / "run", workers=2))


def test_another_process_gives_the_same_bytes(first, tmp_path) -> None:
    """The command gives what the library gives, in another directory, time zone and language, with other hash
    seeds, and with linear algebra on one thread."""
    settings = [f"--set={key}={value}" for key, value in SMALL.items()]
    command = "from geoedge.cli import main; main()"
    words = ["run", "monaco", *settings, "--quiet", f"--layouts={LAYOUTS}", "--workers=1", "-o", "again"]
    world = {"PYTHONHASHSEED": "4711", "TZ": "Asia/Tokyo", "LC_ALL": "C", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-c", command, *words],
        cwd=tmp_path,
        env=os.environ | world,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert_same_bytes(first, tmp_path / "again")


def test_another_seed_gives_another_day_on_the_same_map(first, small_scenario, tmp_path) -> None:
    """So equal bytes are no accident of a run that ignores its seed."""
    other = saved(small_scenario.override({"seed": 9}), tmp_path / "run", workers=2)
    records = [pq.read_table(folder / "requests.parquet") for folder in (first, other)]
    for name in ("created_s", "user", "x_m", "ttft_s"):
        assert not records[0].column(name).equals(records[1].column(name)), name
    assert (first / "map.html").read_bytes() != (other / "map.html").read_bytes()
    sites = [Results.load(folder).sites for folder in (first, other)]
    assert sites[0].drop(columns="profile").equals(sites[1].drop(columns="profile"))


def test_provenance_tells_how_to_repeat_the_run(first, small_scenario) -> None:
    facts = json.loads((first / PROVENANCE).read_text(encoding="utf-8"))
    assert facts["seed"] == small_scenario.seed
    for package in ("geoedge", "mesa", "numba", "numpy", "scipy"):
        assert facts["versions"][package] == version(package)
    sums = facts["checksums"]
    assert sums["scenario"] == sha256((first / "scenario.toml").read_bytes()).hexdigest()
    assert sums["city"] == sha256(data_path("osm", "monaco.osm.pbf").read_bytes()).hexdigest()
    assert sums["enrichment"] == sha256(data_path("osm", "monaco-2023.osm.pbf").read_bytes()).hexdigest()
    assert load_scenario(first / "scenario.toml") == small_scenario


def _served(study: Study, changes: dict[str, object]) -> Results:
    return EdgeCity(study.scenario, study=study, changes=changes, rng=3).run()


@pytest.fixture(scope="module")
def steered(small_study: Study) -> Results:
    """Load-aware routing with the controller at work, as the scenario has it."""
    results = _served(small_study, {})
    assert results.meta["controller"] == "greedy"
    assert len(results.actions)
    return results


@pytest.mark.parametrize(
    "changes",
    [
        {"control.controller": "none"},
        {"routing.policy": "nearest"},
        {"routing.policy": "prefix_only", "control.controller": "none"},
        {"routing.advertise": "state", "control.controller": "none"},
        {"service.law": "exponential_mixture"},
    ],
    ids=lambda changes: ", ".join(str(value) for value in changes.values()),
)
def test_who_serves_does_not_change_who_asks(small_study, steered, changes) -> None:
    other = _served(small_study, changes)
    for name in ARRIVALS:
        assert other.records.column(name).equals(steered.records.column(name)), name
    assert not other.records.column("ttft_s").equals(steered.records.column("ttft_s"))
