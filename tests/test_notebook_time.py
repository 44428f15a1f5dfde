"""The two minutes of a notebook: by the clock, and by the processor, of the kernel and of all that it starts."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BUSY = "import time\nwhile time.process_time() < {0}: pass"
STARTS_ANOTHER = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY.format(0.5)!r}])"


@pytest.fixture
def plugin() -> ModuleType:
    spec = spec_from_file_location("notebooks_conftest", ROOT / "notebooks/conftest.py")
    assert spec is not None
    assert spec.loader is not None
    found = module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def run(plugin: ModuleType, script: str) -> Any:
    """Run a process where a notebook would run its kernel."""
    call = plugin.pytest_runtest_call(SimpleNamespace(name="a notebook"))
    next(call)
    subprocess.run([sys.executable, "-c", script], check=True)
    with pytest.raises(StopIteration) as end:
        call.send("what it gave")
    return end.value.value


@pytest.mark.parametrize("script", [BUSY.format(0.5), STARTS_ANOTHER])
def test_a_notebook_that_takes_too_long_fails(plugin: ModuleType, script: str, monkeypatch) -> None:
    monkeypatch.setattr(plugin, "LIMIT_S", 0.4)
    monkeypatch.setattr(plugin, "SLOWER", 1.0)
    with pytest.raises(
        pytest.fail.Exception, match=r"a notebook took \d s, \d s of processor time, and may take 0.4 s"
    ):
        run(plugin, script)


def test_a_notebook_that_waits_for_others_does_not(plugin: ModuleType, monkeypatch) -> None:
    monkeypatch.setattr(plugin, "LIMIT_S", 0.4)
    monkeypatch.setattr(plugin, "SLOWER", 1.0)
    assert run(plugin, "import time; time.sleep(0.6)") == "what it gave"


def test_it_is_two_minutes_and_every_notebook_runs_under_it(plugin: ModuleType) -> None:
    assert plugin.LIMIT_S == 120.0
    assert plugin.SLOWER <= 1.5
    makefile = (ROOT / "Makefile").read_text()
    (command,) = [line for line in makefile.splitlines() if "--nbmake " in line]
    assert command.endswith(" notebooks")
    assert "noconftest" not in command
