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
from geoedge.report.theory import print_prediction
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


def paper(folder: Path, *changes: tuple[str, str]) -> str:
    """Return the path of the paper's scenario with some pieces of text replaced."""
    text = data_path("scenarios", "paper.toml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_theory_tells_tiers_and_capacity(capsys, monkeypatch) -> None:
    found = json.loads(call(capsys, monkeypatch, "solve", "paper", "--json")[1])
    tiers, room = found["tiers"], found["capacity"]
    assert [row["profile"] for row in tiers] == ["fallback", "shallow", "deep"]
    assert sum(row["share"] for row in tiers) == pytest.approx(1.0)
    assert room["sufficient_intensity"] < room["critical_intensity"] <= room["necessary_intensity"]
    assert room["margin"] == pytest.approx(room["critical_intensity"] / 3.0 - 1.0)
    assert room["residual_utilization"] < 1e-9
    assert room["converged"]
    laws = found["laws"]
    assert laws["mean_field"][1] == pytest.approx(found["coverage"])
    assert all(low <= high for low, high in zip(laws["mean_field"], laws["queue_free"], strict=True))
    code, out, _ = call(capsys, monkeypatch, "solve", "paper")
    assert code == 0
    for words in (
        "mean wait s",
        "stable: the fullest tier is deep",
        "full from",
        "Newton steps",
        "nobody waits",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("policy", "blamed"), [("load_aware", ["fallback", "shallow", "deep"]), ("prefix_only", ["deep"])]
)
def test_beyond_capacity_the_tiers_are_named(capsys, monkeypatch, policy, blamed) -> None:
    load = 20.0 if policy == "load_aware" else 4.0
    words = ["solve", "paper", "--policy", policy, "--set", f"demand.request_intensity_per_km2_s={load}"]
    room = json.loads(call(capsys, monkeypatch, *words, "--json")[1])["capacity"]
    assert not room["stable"]
    assert room["overloaded"] == blamed
    assert room["critical_intensity"] < load
    code, out, _ = call(capsys, monkeypatch, *words)
    assert code == 0
    assert "UNSTABLE, no stable point" in out
    assert out.count("OVERLOADED") == len(blamed)
    if policy == "load_aware":
        assert "at which all tiers are full together" in " ".join(out.split())
    else:
        assert "deep (utilisation 1.1" in " ".join(out.split())


def test_a_point_that_was_not_found_is_said_to_be_none(capsys, monkeypatch) -> None:
    found = json.loads(call(capsys, monkeypatch, "solve", "paper", "--json")[1])
    missed = found["capacity"] | {"converged": False, "verdict": "no point found"}
    print_prediction(found | {"capacity": missed}, "mine", 0.8)
    assert "NOT CONVERGED, no point found." in capsys.readouterr().out


PLAN = ["plan", "paper", "-q", "--fallback-floor", "0.1", "--deep-cap", "0.25", "--loads", "0.5,1.5"]


def test_a_plan_in_json(capsys, monkeypatch) -> None:
    code, out, err = call(capsys, monkeypatch, *PLAN, "--reliability", "0.8", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    best = found["best"]
    assert best["placement_probability"]["deep"] == pytest.approx(0.25, abs=1e-6)
    assert best["coverage"] > found["present"]["coverage"] == pytest.approx(0.6899125, abs=1e-6)
    assert best["memory_bytes"] <= found["present"]["memory_bytes"] * (1 + 1e-9)
    assert "cap of deep (0.25)" in best["binding"]
    assert found["density"]["needed_with_present_mix_per_km2"] == pytest.approx(1.72634818, abs=1e-7)
    assert found["density"]["needed_with_best_mix_per_km2"] < 1.7263
    assert found["robust"]["load_factor"] == [0.5, 1.5]
    assert min(found["robust"]["regret"]) > -1e-6
    strength = [abs(row["elasticity"]) for row in found["sensitivities"]]
    assert strength == sorted(strength, reverse=True)
    assert {"site_density", "sites of deep", "prefill_linear_s", "decode_time_s"} <= {
        row["parameter"] for row in found["sensitivities"]
    }


def test_a_plan_in_words(capsys, monkeypatch) -> None:
    code, out, _ = call(capsys, monkeypatch, *PLAN, "--method", "grid", "--target", "1.0")
    assert code == 0
    for words in (
        "TTFT target 1 s",
        "beyond the limits",
        "floor of fallback (0.1)",
        "needed with the best mix",
        "× 1.5",
        "elasticity",
    ):
        assert words in out


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--method", "annealing"], "slsqp, grid, cobyqa, spsa"),
        (["--law", "exact"], "mean_field, per_tier, per_site"),
        (["--criterion", "median"], "mean, worst, regret"),
        (["--loads", "1,two"], "--loads"),
        (["--loads", "1,-2"], "plan.load_factors"),
        (["--target", "nan"], "target.ttft_target_s"),
        (["--reliability", "1.0"], "target.reliability"),
        (["--memory-budget", "-5"], "plan.memory_budget_bytes"),
        (["--deep-cap", "1.5"], "control.deep_cap"),
        (
            [
                "--memory-budget",
                "1000",
                "--set",
                "control.fallback_floor=0.0",
                "--set",
                "workload.profiles.shallow.prefixes=[]",
            ],
            "stores no prefixes",
        ),
    ],
)
def test_a_plan_that_cannot_be_made_is_one_line(capsys, monkeypatch, words, names) -> None:
    assert names in refused(capsys, monkeypatch, "plan", "paper", "-q", *words)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("type_probability = 0.4", "type_probability = 0.5", "type_probability"),
        ("placement_probability = 0.45", "placement_probability = 0.5", "placement_probability"),
        ("placement_probability = 0.45", "placement_probability = -0.45", "placement_probability"),
        ("delay_coefficient = 0.28", "delay_coefficient = nan", "radio.delay_coefficient"),
        ("delay_coefficient = 0.28", "delay_coefficient = -1.0", "radio.delay_coefficient"),
        (
            "request_intensity_per_km2_s = 3.0",
            "request_intensity_per_km2_s = inf",
            "request_intensity_per_km2_s",
        ),
        ("prompt_tokens = 1024", "prompt_tokens = 1000", "the prompt is shorter than its prefix"),
        ("density_per_km2 = 1.2", "density_per_km2 = 0.0", "density_per_km2"),
        ("prefill_linear_s = 1.6e-4", "prefill_linear_s = -1.6e-4", "prefill_linear_s"),
        ("persistent_bytes = 6442450944", "persistent_bytes = 9663676416", "leaves no memory for requests"),
    ],
)
@pytest.mark.parametrize("verb", ["solve", "plan"])
def test_a_bad_number_is_one_line(capsys, monkeypatch, tmp_path, verb, old, new, names) -> None:
    assert names in refused(capsys, monkeypatch, verb, paper(tmp_path, (old, new)))


def test_a_scenario_without_any_profile_is_one_line(capsys, monkeypatch, tmp_path) -> None:
    text = data_path("scenarios", "paper.toml").read_text(encoding="utf-8")
    start, end = text.index("[[workload.profiles]]"), text.index("[[workload.requests]]")
    path = tmp_path / "mine.toml"
    path.write_text("workload.profiles = []\n" + text[:start] + text[end:], encoding="utf-8")
    assert "workload.profiles" in refused(capsys, monkeypatch, "solve", str(path))


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


def alone(words: list[str], then: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, and a line of Python after it."""
    code = f"""
import sys
from geoedge.cli import main
sys.argv = ["geoedge", *{words!r}]
try:
    main()
except SystemExit as stop:
    assert not stop.code
{then}
"""
    return subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)


@pytest.mark.parametrize("words", [["solve"], ["solve", "--json"], ["plan", "-q"]])
def test_theory_alone_loads_no_map_library(words) -> None:
    heavy = {"osmnx", "mesa", "folium", "geopandas", "pandas", "pyarrow", "shapely", "networkx", "rasterio"}
    done = alone([words[0], "paper", *words[1:]], f"sys.exit(str(sorted({heavy!r} & set(sys.modules))))")
    assert done.stderr == "[]\n"


def test_an_error_amid_progress_is_one_line_too(capsys, monkeypatch) -> None:
    assert "has no [city]" in refused(capsys, monkeypatch, "compare", "paper", "--explain")
