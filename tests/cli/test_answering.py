"""`geoedge run` and `geoedge solve`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from geoedge.report.theory import print_prediction
from geoedge.results import Results
from geoedge.scenario import load_scenario
from tests.cli.calling import FAST, call, refused
from tests.conftest import SMALL


def test_an_output_that_cannot_be_written_is_refused_before_the_work(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    line = refused(capsys, monkeypatch, "run", "monaco", "-q", "-o", str(tmp_path / "file" / "run"))
    assert "cannot be written" in line
    line = refused(capsys, monkeypatch, "run", "monaco", "-q", "-o", str(tmp_path / "file"))
    assert "is not a run folder" in line
    assert (tmp_path / "file").read_text() == "mine"


def test_theory_alone_in_json(capsys, monkeypatch) -> None:
    code, out, _ = call(capsys, monkeypatch, "solve", "paper", "--json")
    assert code == 0
    assert json.loads(out)["coverage"] == pytest.approx(0.6899125, abs=1e-6)


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
    _, err = process.communicate(timeout=120)
    assert (process.returncode, err.decode().splitlines()[-1:]) == (130, ["geoedge: interrupted"])
    assert (
        b"Traceback" not in err or b"ignored" in err
    )  # in a callback of LLVM it is printed, and comes again
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
def test_an_interrupt_waits_until_a_kernel_is_compiled(tmp_path) -> None:
    # what LLVM has half done crashes when it is taken apart
    program = """
import os, signal, time
from numba.core.compiler_lock import global_compiler_lock
from geoedge.cli import program

def verb():
    with global_compiler_lock:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
        print("compiled", flush=True)
    time.sleep(30.0)

program.app = verb
program.script()
"""
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (
        130,
        "compiled\n",
        "geoedge: interrupted\n",
    )


@pytest.mark.slow
def test_an_interrupt_that_a_callback_swallows_is_repeated(tmp_path) -> None:
    program = """
import os, signal, time
from geoedge.cli import program

class Callback:
    def __del__(self):  # errors in here are printed and ignored
        os.kill(os.getpid(), signal.SIGINT)

def verb():
    Callback()
    time.sleep(30.0)

program.AGAIN_S = 0.5
program.app = verb
program.script()
"""
    begun = time.monotonic()
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr.splitlines()[-1]) == (130, "geoedge: interrupted")
    assert "ignored" in process.stderr
    assert time.monotonic() - begun < 25.0
