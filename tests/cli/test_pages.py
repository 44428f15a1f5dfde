"""`geoedge map`, `report` and `app`."""

from __future__ import annotations

import json
from importlib import import_module

import pytest

from geoedge.scenario import load_scenario
from tests.cli.calling import call, refused


@pytest.mark.slow
def test_compare_map_and_report_of_a_run(run_folder, capsys, monkeypatch, tmp_path) -> None:
    code, out, _ = call(capsys, monkeypatch, "compare", str(run_folder))
    assert code == 0
    assert "TTFT coverage" in out
    assert "Hottest sites" in out
    assert "mean of 2 paired runs ± 95 % interval" in " ".join(out.split())
    assert str(run_folder) in out
    quiet = call(capsys, monkeypatch, "compare", str(run_folder), "--quiet")[1]
    assert "TTFT coverage" in quiet
    assert str(run_folder) not in quiet
    code, out, _ = call(capsys, monkeypatch, "compare", str(run_folder), "--json")
    assert {row["metric"] for row in json.loads(out)["answers"]} >= {"coverage", "p95_ttft_s"}
    page = tmp_path / "new" / "page.html"
    code, out, _ = call(capsys, monkeypatch, "map", str(run_folder), "-o", str(page), "--json")
    assert (code, json.loads(out)) == (0, {"page": str(page), "bytes": page.stat().st_size})
    assert page.read_bytes() == (run_folder / "map.html").read_bytes()
    code, out, _ = call(capsys, monkeypatch, "report", str(run_folder), "-o", str(page))
    assert (code, out) == (0, f"{page}\n")
    assert page.read_text(encoding="utf-8").lstrip().startswith("<!DOCTYPE html>")


@pytest.fixture
def reported(monkeypatch):
    """Let a report be made at once, and return which runs it tells."""
    told = []

    class Page:
        def save(self, path):
            path.write_text("page", encoding="utf-8")

    monkeypatch.setattr(
        import_module("geoedge.report.page"),
        "report_page",
        lambda *runs, gap: told.extend([*runs, gap]) or Page(),
    )
    return told


def test_a_report_tells_all_runs_in_order(capsys, monkeypatch, tmp_path, reported) -> None:
    page = tmp_path / "page.html"
    code, out, err = call(capsys, monkeypatch, "report", "runs/b", "runs/a", "-o", str(page))
    assert (code, out, err) == (0, f"{page}\n", "")
    assert list(map(str, reported)) == ["runs/b", "runs/a", "None"]
    assert call(capsys, monkeypatch, "report", "runs/a", "-o", str(page), "-q")[:2] == (0, "")
    found = json.loads(call(capsys, monkeypatch, "report", "runs/a", "-o", str(page), "--json")[1])
    assert found == {"page": str(page), "bytes": 4}


def test_a_report_explains_one_run_if_asked(capsys, monkeypatch, tmp_path, reported) -> None:
    asked = []
    monkeypatch.setattr(
        import_module("geoedge.compare"),
        "explain_gap",
        lambda scenario, **_: asked.append(scenario.title) or "gap",
    )
    monkeypatch.setattr(import_module("geoedge.results").Results, "load", lambda folder: folder)
    run = tmp_path / "run"
    run.mkdir()
    (run / "scenario.toml").write_text(load_scenario("paper").override({"title": "mine"}).to_toml())
    words = ["-o", str(tmp_path / "page.html"), "--explain", "-q"]
    assert call(capsys, monkeypatch, "report", str(run), *words)[0] == 0
    assert (asked, reported) == (["mine"], [run, "gap"])
    assert "is of one run, not of 2" in refused(capsys, monkeypatch, "report", str(run), str(run), *words)


def test_a_folder_that_is_no_run_is_refused_before_it_is_explained(capsys, monkeypatch, tmp_path) -> None:
    asked = []
    monkeypatch.setattr(import_module("geoedge.compare"), "explain_gap", lambda *_, **__: asked.append(1))
    for run, why in ((tmp_path / "none", "there is no such folder"), (tmp_path, "it is incomplete")):
        words = ["report", str(run), "-o", str(tmp_path / "page.html"), "--explain"]
        line = refused(capsys, monkeypatch, *words)
        assert f"`run` {str(run)!r} is not a run folder: {why}" in line
    assert asked == []


@pytest.mark.parametrize("verb", ["map", "report"])
def test_a_page_of_no_run_is_one_line_and_no_file(capsys, monkeypatch, tmp_path, verb) -> None:
    line = refused(capsys, monkeypatch, verb, str(tmp_path / "none"), "-o", str(tmp_path / "page.html"))
    assert "there is no such folder" in line
    assert list(tmp_path.iterdir()) == []
    line = refused(capsys, monkeypatch, verb, str(tmp_path), "-o", str(tmp_path / "page.pdf"))
    assert "name a file that ends in .html" in line


def test_tiles_are_credited_and_loaded_if_asked(capsys, monkeypatch, tmp_path) -> None:
    asked = {}

    class Page:
        def save(self, path):
            path.write_text("page", encoding="utf-8")

    monkeypatch.setattr(import_module("geoedge.results").Results, "load", lambda folder: folder)
    monkeypatch.setattr(
        import_module("geoedge.maps"), "city_map", lambda run, **given: asked.update(given) or Page()
    )
    words = ["map", "runs/a", "-o", str(tmp_path / "page.html"), "-q"]
    assert call(capsys, monkeypatch, *words)[0] == 0
    assert asked == {"tiles": None, "tiles_credit": None}
    assert call(capsys, monkeypatch, *words, "--tiles", "https://x/{z}", "--tiles-credit", "X")[0] == 0
    assert asked == {"tiles": "https://x/{z}", "tiles_credit": "X"}
    assert "needs --tiles" in refused(capsys, monkeypatch, *words, "--tiles-credit", "X")


def test_the_app_is_served_as_asked(capsys, monkeypatch) -> None:
    asked = {}

    def serve(scenario, **given):
        asked.update(given, users=scenario.demand.users)

    monkeypatch.setattr(import_module("geoedge.app"), "serve", serve)
    words = ["app", "monaco", "--port", "0", "--no-browser", "--set", "demand.users=50"]
    code, out, err = call(capsys, monkeypatch, *words)
    assert (code, out, err) == (0, "", "")
    assert asked == {"users": 50, "port": 0, "open_browser": False, "say": None}
    call(capsys, monkeypatch, "app", "-q")
    assert asked["open_browser"]
    assert asked["port"] == import_module("geoedge.app").DEFAULT_PORT
    assert asked["say"]("silent") is None
