"""Kernels copied into others must not outlive a change of their source."""

from __future__ import annotations

import os

from geoedge.compiled import drop_stale
from geoedge.serving.routing import route


def test_only_older_indexes_of_the_kernel_go(tmp_path):
    ages = {"loop.serve-20.py311.nbi": 50, "loop.serve-20.py311.1.nbc": 50, "loop.settle-9.py311.nbi": 50}
    ages |= {"loop.serve-30.py311.nbi": 150}
    for name, age in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (age, age))
    drop_stale(tmp_path, "loop.serve", 100.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(set(ages) - {"loop.serve-20.py311.nbi"})


def test_a_folder_that_is_not_there_is_no_matter(tmp_path):
    drop_stale(tmp_path / "nowhere", "loop.serve", 100.0)


def test_kernels_are_plain_functions_to_their_callers():
    assert route([[0.0, 0.0]], 0, [[1.0, 0.0], [0.5, 0.0]], [[0.0], [0.0]], 1.0, 3.0).tolist() == [1]
