"""The command line: exit codes, one line for each bad input, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from geoedge import cli
from geoedge.results import Results
from geoedge.scenario import load_scenario
from geoedge.shipped import data_path
from tests.conftest import SMALL

FAST = [f"--set={key}={value}" for key, value in SMALL.items()]


def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str, str]:
    """Run the command in this process and return its exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", ["geoedge", *words])
    try:
        cli.main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err


def refused(capsys, monkeypatch, *words: str) -> str:
    """Return the one line that refuses this command."""
    code, out, err = call(capsys, monkeypatch, *words)
    assert code == 1
    assert out == ""
    assert err.startswith("geoedge: ")
    assert err.count("\n") == 1
    return err


def changed(folder: Path, old: str, new: str) -> str:
    """Return the path of Monaco's scenario with one piece of text replaced."""
    text = data_path("scenarios", "monaco.toml").read_text(encoding="utf-8")
    assert old in text
    path = folder / "mine.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return str(path)


def test_an_unknown_key_names_the_nearest_known_one(capsys, monkeypatch, tmp_path) -> None:
    line = refused(capsys, monkeypatch, "check", changed(tmp_path, "ttft_target_s", "ttft_target"))
    assert "mine.toml" in line
    assert "ttft_target_s" in line


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("users = 10000", "users = 0", "demand.users = 0"),
        ("merge_distance_m = 50.0", "density_per_km2 = -3.0", "sites.density_per_km2 = -3"),
        ("memory_fraction = 0.9", "memory_fraction = 0.7", "leaves no memory for requests"),
        ("type_probability = 0.35", "type_probability = 0.36", "type_probability"),
        ('source = "hosts"', 'source = "nowhere.csv"', "nowhere.csv"),
        ('source = "monaco"', 'source = "nowhere.osm.pbf"', "nowhere.osm.pbf"),
    ],
)
def test_a_bad_value_is_one_line_and_no_folder(capsys, monkeypatch, tmp_path, old, new, names) -> None:
    path = changed(tmp_path, old, new)
    line = refused(capsys, monkeypatch, "run", path, "-q", "-o", str(tmp_path / "run"))
    assert names in line
    assert os.listdir(tmp_path) == ["mine.toml"]


def test_a_missing_scenario_is_named_with_the_shipped_ones(capsys, monkeypatch) -> None:
    line = refused(capsys, monkeypatch, "check", "monako")
    assert "monaco" in line


def test_a_map_without_streets_is_refused(capsys, monkeypatch, tmp_path) -> None:
    empty = tmp_path / "empty.osm"
    empty.write_text('<?xml version="1.0"?><osm version="0.6"><node id="1" lat="50" lon="9"/></osm>')
    path = changed(tmp_path, 'source = "monaco"', 'source = "empty.osm"')
    line = refused(capsys, monkeypatch, "run", path, "-q", "-o", str(tmp_path / "run"))
    assert "street" in line
    assert not (tmp_path / "run").exists()


def test_sites_outside_the_city_are_refused(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "far.csv").write_text("lon,lat\n2.35,48.85\n")
    path = changed(tmp_path, 'source = "hosts"', 'source = "far.csv"')
    line = refused(capsys, monkeypatch, "run", path, "-q", "-o", str(tmp_path / "run"))
    assert "far.csv" in line
    assert not (tmp_path / "run").exists()


def test_an_output_that_cannot_be_written_is_refused_before_the_work(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    line = refused(capsys, monkeypatch, "run", "monaco", "-q", "-o", str(tmp_path / "file" / "run"))
    assert "cannot be written" in line
    line = refused(capsys, monkeypatch, "run", "monaco", "-q", "-o", str(tmp_path / "file"))
    assert "is not a run folder" in line
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("word", ["policy=nearest", "routing.policy", "=3"])
def test_settings_are_key_and_value(capsys, monkeypatch, word) -> None:
    assert refused(capsys, monkeypatch, "check", "monaco", "--set", word)


@pytest.mark.parametrize("box", ["1,2,3", "a,b,c,d", "7.5,43.7,7.4,43.8"])
def test_a_bad_box_is_refused(capsys, monkeypatch, tmp_path, box) -> None:
    source = str(data_path("osm", "monaco.osm.pbf"))
    refused(capsys, monkeypatch, "city", "clip", source, "--bbox", box, "-o", str(tmp_path / "o.osm.pbf"))
    assert os.listdir(tmp_path) == []


def test_wrong_usage_is_exit_code_two(capsys, monkeypatch) -> None:
    assert call(capsys, monkeypatch, "run")[0] == 2
    assert call(capsys, monkeypatch, "fly")[0] == 2


def test_theory_alone_in_json(capsys, monkeypatch) -> None:
    code, out, _ = call(capsys, monkeypatch, "solve", "paper", "--json")
    assert code == 0
    assert json.loads(out)["coverage"] == pytest.approx(0.6899125, abs=1e-6)


def test_check_says_what_follows_for_memory(capsys, monkeypatch) -> None:
    code, out, _ = call(capsys, monkeypatch, "check", "monaco")
    assert code == 0
    assert "the scenario is valid" in out
    assert "concurrency" in out


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "small"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys, "argv", ["geoedge", "run", "monaco", *FAST, "-q", "--layouts=2", "-o", str(folder)]
        )
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert stop.value.code == 0
    return folder


@pytest.mark.slow
def test_the_main_job_writes_a_whole_folder(run_folder) -> None:
    names = {path.name for path in run_folder.iterdir()}
    assert {
        "scenario.toml",
        "provenance.json",
        "requests.parquet",
        "sites.parquet",
        "answers.parquet",
    } <= names
    assert (run_folder / "map.html").stat().st_size < 5e6
    assert load_scenario(run_folder / "scenario.toml").demand.users == SMALL["demand.users"]
    columns = set(Results.load(run_folder).tables["answers"]["column"])
    assert columns == {
        "theory (PPP)",
        "PPP ensemble",
        "same count",
        "field (map)",
        "simulation: equilibrium",
        "simulation: state",
        "with controller",
    }


@pytest.mark.slow
def test_compare_and_map_of_a_run(run_folder, capsys, monkeypatch, tmp_path) -> None:
    code, out, _ = call(capsys, monkeypatch, "compare", str(run_folder))
    assert code == 0
    assert "TTFT coverage" in out
    assert "Hottest sites" in out
    code, out, _ = call(capsys, monkeypatch, "compare", str(run_folder), "--json")
    assert {row["metric"] for row in json.loads(out)["answers"]} >= {"coverage", "p95_ttft_s"}
    code, _, _ = call(capsys, monkeypatch, "map", str(run_folder), "-o", str(tmp_path / "page.html"))
    assert code == 0
    assert (tmp_path / "page.html").read_bytes() == (run_folder / "map.html").read_bytes()


@pytest.mark.slow
def test_an_unstable_network_is_a_finding_not_a_crash(capsys, monkeypatch, tmp_path) -> None:
    words = [*FAST, "--set=demand.request_rate_per_user_s=0.08", "--set=simulation.replications=1"]
    code, out, err = call(
        capsys, monkeypatch, "run", "monaco", *words, "-q", "--layouts=0", "-o", str(tmp_path / "run")
    )
    assert (code, err) == (0, "")
    assert "UNSTABLE" in out


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [2.0, 6.0, 12.0])
def test_an_interrupted_run_leaves_no_folder(tmp_path, after_s) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from geoedge.cli import script; script()",
            "run",
            "monaco",
            "-o",
            str(tmp_path / "run"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    time.sleep(after_s)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.decode().splitlines()[-1] == "geoedge: interrupted"
    assert b"Traceback" not in err
    assert os.listdir(tmp_path) == []


def test_help_and_the_package_load_nothing_heavy() -> None:
    code = (
        "import sys, geoedge, geoedge.cli; "
        "heavy = {'osmnx', 'mesa', 'folium', 'numba', 'geopandas', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules); "
        "sys.exit(str(sorted(heavy)) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_theory_alone_loads_no_map_library() -> None:
    code = (
        "import sys; sys.argv = ['geoedge', 'solve', 'paper', '--json']; from geoedge.cli import main; main(); "
        "heavy = {'osmnx', 'mesa', 'folium', 'geopandas'} & set(sys.modules); "
        "sys.exit(str(sorted(heavy)) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
