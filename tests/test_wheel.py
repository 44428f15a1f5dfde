"""The wheel alone: it carries code, types and data, and works from any directory without the repository."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("hatchling") is None,
        reason="hatchling is not installed; `make test` installs it with the test extra",
    ),
]

ROOT = Path(__file__).parents[1]
SHIPPED = ("paper", "monaco", "neubrandenburg")
CITIES = ("monaco", "neubrandenburg")


def pip(*words: str, cwd: Path) -> None:
    quiet = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
    subprocess.run([sys.executable, "-m", "pip", *words, *quiet], cwd=cwd, check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", str(ROOT), "--no-build-isolation", "-w", str(folder), cwd=folder)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the wheel, and nothing else, is installed."""
    folder = tmp_path_factory.mktemp("installed")
    pip("install", str(wheel), "--target", str(folder), cwd=folder)
    return folder


def call(installed: Path, cwd: Path, *words: str) -> str:
    """Run a command on the installed wheel, from a directory of its own and with an empty cache."""
    world = os.environ | {
        "PYTHONPATH": str(installed),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GEOEDGE_CACHE": str(cwd / "cache"),
    }
    done = subprocess.run(words, cwd=cwd, env=world, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    code = [
        path for path in (ROOT / "geoedge").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    data = [path for path in (ROOT / "data").rglob("*") if path.is_file()]
    assert len(code) > 50
    assert len(data) >= 8
    expected = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in code}
    expected |= {
        f"geoedge/_data/{path.relative_to(ROOT / 'data').as_posix()}": path.read_bytes() for path in data
    }
    assert "geoedge/py.typed" in expected
    assert {name for name in expected if content.get(name) != expected[name]} == set()
    others = {name for name in content if name not in expected}
    (info,) = {name.partition("/")[0] for name in others}
    assert info.endswith(".dist-info")
    assert content[f"{info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert "License-Expression: Apache-2.0" in content[f"{info}/METADATA"].decode()
    assert wheel.stat().st_size < 5e6


def test_the_installed_wheel_finds_its_data_from_anywhere(installed: Path, tmp_path: Path) -> None:
    code = """
import json, pathlib, sys
repository, scenarios, cities = pathlib.Path(sys.argv[1]), sys.argv[2].split(), sys.argv[3].split()
sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry).resolve() != repository]
import geoedge
from geoedge.shipped import data_path
found = {
    "code": geoedge.__file__,
    "data": [str(data_path("osm", f"{city}.osm.pbf")) for city in cities],
    "scenarios": [geoedge.load_scenario(name).title for name in scenarios],
    "streets": geoedge.load_city(cities[0]).streets["walk"].edge_length.size,
}
files = [str(getattr(module, "__file__", None)) for module in sys.modules.values()]
found["foreign"] = [file for file in files if file.startswith(f"{repository}/geoedge")]
print(json.dumps(found))
"""
    words = (sys.executable, "-c", code, str(ROOT.resolve()), " ".join(SHIPPED), " ".join(CITIES))
    found = json.loads(call(installed, tmp_path, *words))
    assert found["foreign"] == []
    for path in (found["code"], *found["data"]):
        assert Path(path).is_relative_to(installed)
    assert len(set(found["scenarios"])) == len(SHIPPED)
    assert found["streets"] > 1000
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_the_installed_command_answers(installed: Path, tmp_path: Path) -> None:
    out = call(installed, tmp_path, str(installed / "bin" / "geoedge"), "solve", "paper", "--json")
    assert json.loads(out)["coverage"] == pytest.approx(0.6899125, abs=1e-6)
    assert "the scenario is valid" in call(
        installed, tmp_path, str(installed / "bin" / "geoedge"), "check", "neubrandenburg"
    )
