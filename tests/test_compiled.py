"""Kernels copied into others must not outlive a change of their source."""

from __future__ import annotations

import importlib
import sys

import pytest

from geoedge.compiled import _sources
from geoedge.serving.routing import route


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Return a room of two modules whose kernel has the other module's function in it, as a new process reads it."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "room_part.py").write_text(PART.format(factor="2.0"))
    (tmp_path / "room_whole.py").write_text(WHOLE)

    def read():
        _sources.cache_clear()
        for name in ("room_part", "room_whole"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("room_whole").whole

    yield tmp_path, read
    _sources.cache_clear()


PART = "from geoedge.compiled import inlined\n\n@inlined\ndef part(x):\n    return {factor} * x\n"
WHOLE = (
    "from geoedge.compiled import kernel\nfrom room_part import part\n\n"
    "@kernel\ndef whole(x):\n    return part(x)\n"
)


def test_what_an_older_process_compiles_after_a_change_is_not_taken_for_new(room):
    folder, read = room
    older = read()
    (folder / "room_part.py").write_text(PART.format(factor="30.0"))
    assert older(1.0) == 2.0
    newer = read()
    assert newer(1.0) == 30.0
    assert read()(1.0) == 30.0


def test_a_kernel_of_the_same_sources_is_compiled_once(room):
    _, read = room
    assert read()(1.0) == 2.0
    again = read()
    assert again(1.0) == 2.0
    assert sum(again.stats.cache_hits.values()) == 1


def test_kernels_are_plain_functions_to_their_callers():
    assert route([[0.0, 0.0]], 0, [[1.0, 0.0], [0.5, 0.0]], [[0.0], [0.0]], 1.0, 3.0).tolist() == [1]
