"""The command called as a user calls it, and scenarios with one thing changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from geoedge import cli
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


def paper(folder: Path, *changes: tuple[str, str]) -> str:
    """Return the path of the paper's scenario with some pieces of text replaced."""
    text = data_path("scenarios", "paper.toml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


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
