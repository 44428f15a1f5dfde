"""The program: exit codes, version, and what it costs to start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

import geoedge
from geoedge.cli import program
from tests.cli.calling import alone, call, refused


def test_wrong_usage_is_exit_code_two(capsys, monkeypatch) -> None:
    assert call(capsys, monkeypatch, "run")[0] == 2
    assert call(capsys, monkeypatch, "fly")[0] == 2


def test_help_and_the_package_load_nothing_heavy() -> None:
    code = (
        "import sys, geoedge, geoedge.cli; "
        "heavy = {'osmnx', 'mesa', 'folium', 'numba', 'geopandas', 'pandas', 'scipy', 'pyarrow'} & set(sys.modules); "
        "sys.exit(str(sorted(heavy)) if heavy else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("words", [["solve"], ["solve", "--json"], ["plan", "-q"]])
def test_theory_alone_loads_no_map_library(words) -> None:
    heavy = {"osmnx", "mesa", "folium", "geopandas", "pandas", "pyarrow", "shapely", "networkx", "rasterio"}
    done = alone([words[0], "paper", *words[1:]], f"sys.exit(str(sorted({heavy!r} & set(sys.modules))))")
    assert done.stderr == "[]\n"


def test_an_error_amid_progress_is_one_line_too(capsys, monkeypatch) -> None:
    assert "has no [city]" in refused(capsys, monkeypatch, "compare", "paper", "--explain")


@pytest.mark.parametrize(("code", "told"), [(0, 0), (1, 130)])
def test_an_interrupt_that_ends_well_is_no_failure(monkeypatch, code, told) -> None:
    def work() -> None:
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5.0)
        raise SystemExit(code)

    monkeypatch.setattr(program, "app", work)
    with pytest.raises(SystemExit) as stop:
        program.main()
    assert stop.value.code == told


def test_the_version_is_the_package_s(capsys, monkeypatch) -> None:
    code, out, err = call(capsys, monkeypatch, "--version")
    assert (code, out, err) == (0, f"geoedge {geoedge.__version__}\n", "")
