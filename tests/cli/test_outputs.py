"""Files to write are refused before the work where they cannot be written, by every verb that writes."""

from __future__ import annotations

import os
import sys

import pytest

from geoedge.shipped import data_path
from tests.cli.calling import call, refused

MAP = str(data_path("osm", "monaco.osm.pbf"))
NOWHERE = "/proc/none/out"  # a file system that takes no files, whoever asks
WORK = {
    "run": (["run", "monaco", "-o", NOWHERE], "geoedge.compare", "run"),
    "plan": (
        ["plan", "monaco", "--places", "-o", f"{NOWHERE}.csv"],
        "geoedge.planning.places",
        "plan_places",
    ),
    "plan's picture": (
        ["plan", "monaco", "--places", "--figure", f"{NOWHERE}.png"],
        "geoedge.planning.places",
        "plan_places",
    ),
    "gap": (
        ["compare", "monaco", "--explain", "--figure", f"{NOWHERE}.svg"],
        "geoedge.compare",
        "explain_gap",
    ),
    "controllers": (
        ["compare", "monaco", "--controllers=none,greedy", "--figure", f"{NOWHERE}.pdf"],
        "geoedge.compare",
        "compare_controllers",
    ),
    "map": (["map", "runs/none", "-o", f"{NOWHERE}.html"], "geoedge.maps", "city_map"),
    "report": (["report", "runs/none", "-o", f"{NOWHERE}.html"], "geoedge.report.page", "report_page"),
    "sites": (["sites", MAP, "-o", f"{NOWHERE}.html"], "geoedge.sites", "survey_sites"),
    "sites' quarantine": (["sites", MAP, "--quarantine", NOWHERE], "geoedge.sites", "survey_sites"),
    "clip": (
        ["city", "clip", MAP, "--bbox=7.41,43.73,7.43,43.74", "-o", f"{NOWHERE}.osm.pbf"],
        "geoedge.city.clipping",
        "_Part",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that takes no files")
@pytest.mark.parametrize("name", list(WORK))
def test_an_output_that_cannot_be_is_refused_before_the_work(capsys, monkeypatch, name) -> None:
    words, module, work = WORK[name]

    def worked(*_: object, **__: object) -> None:
        pytest.fail("the work was done first")

    __import__(module)
    monkeypatch.setattr(sys.modules[module], work, worked)
    line = refused(capsys, monkeypatch, *words)
    assert "cannot be written there" in line
    assert NOWHERE in line


@pytest.mark.parametrize(
    ("words", "module", "work"),
    [
        (["run", "monaco", "-o", "{new}/run"], "geoedge.compare", "run"),
        (["compare", "monaco", "--explain", "--figure", "{new}/gap.png"], "geoedge.compare", "explain_gap"),
        (["plan", "monaco", "--places", "-o", "{new}/a.csv"], "geoedge.planning.places", "plan_places"),
    ],
)
def test_work_that_fails_leaves_no_folder(capsys, monkeypatch, tmp_path, words, module, work) -> None:
    from geoedge.errors import GeoEdgeError

    def fail(*_: object, **__: object) -> None:
        msg = "the work failed"
        raise GeoEdgeError(msg)

    __import__(module)
    monkeypatch.setattr(sys.modules[module], work, fail)
    words = [word.format(new=tmp_path / "new") for word in words]
    assert "the work failed" in refused(capsys, monkeypatch, *words)
    assert os.listdir(tmp_path) == []


def test_a_map_is_cut_into_a_new_folder_and_told(capsys, monkeypatch, tmp_path) -> None:
    path = tmp_path / "new" / "part.osm.pbf"
    words = ["city", "clip", MAP, "--bbox=7.415,43.73,7.425,43.735", "-o", str(path)]
    code, out, err = call(capsys, monkeypatch, *words)
    assert (code, err) == (0, "")
    assert out.startswith(f"{path}: ")
    assert path.stat().st_size > 1000
    code, out, _ = call(capsys, monkeypatch, *words, "--quiet")
    assert (code, out) == (0, "")
