"""`geoedge check`."""

from __future__ import annotations

import json

import pytest

from geoedge.scenario import load_scenario
from tests.cli.calling import call, refused


def test_check_says_what_follows_for_memory(capsys, monkeypatch) -> None:
    code, out, _ = call(capsys, monkeypatch, "check", "monaco")
    assert code == 0
    assert "the scenario is valid" in out
    assert "concurrency" in out


def test_quiet_is_the_verdict_and_json_all_of_it(capsys, monkeypatch) -> None:
    code, out, err = call(capsys, monkeypatch, "check", "paper", "-q", "--set", "title=mine")
    assert (code, out, err) == (0, "mine: the scenario is valid\n", "")
    code, out, err = call(capsys, monkeypatch, "check", "paper", "--json", "--set", "title=mine")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["valid"]
    assert found["scenario"]["title"] == "mine"
    assert [row["concurrency"] for row in found["profiles"]] == [18, 14, 6]
    assert sum(row["placement_probability"] for row in found["profiles"]) == pytest.approx(1.0)
    assert sum(row["type_probability"] for row in found["requests"]) == pytest.approx(1.0)
    assert set(found["profiles"][0]["hit_tokens"]) == {row["type"] for row in found["requests"]}


@pytest.mark.parametrize(
    ("more", "after"),
    [
        ((), "plans lead back to the bound first"),
        (("--set", "control.controller=none"), "nobody moves anything"),
        (("--set", "control.start=best"), "the best start keeps the bound"),
    ],
)
def test_check_tells_of_bounds_that_the_scenario_breaks_itself(capsys, monkeypatch, more, after) -> None:
    asked = ("check", "monaco", "--set", "control.fallback_floor=0.3", *more)
    code, out, _ = call(capsys, monkeypatch, *asked)
    assert code == 0
    line = f"control.fallback_floor = 0.3: only 15.0% of the sites hold fallback in the scenario's own mix; {after}."
    assert line in out.splitlines()
    assert json.loads(call(capsys, monkeypatch, *asked, "--json")[1])["bounds_broken"] == [line]
    assert json.loads(call(capsys, monkeypatch, "check", "monaco", "--json")[1])["bounds_broken"] == []


def test_names_of_profiles_stay_text_in_what_check_tells(capsys, monkeypatch, tmp_path) -> None:
    hostile = {"workload.profiles[0].name": "a\x1b[31m\n\u202eb", "control.fallback_floor": 0.3}
    file = load_scenario("monaco").override(hostile).save(tmp_path / "hostile.toml")
    code, out, _ = call(capsys, monkeypatch, "check", str(file))
    assert code == 0
    assert "\x1b" not in out
    assert any(
        line.startswith("control.fallback_floor") and "hold a[31m b in the" in line
        for line in out.splitlines()
    )


@pytest.mark.slow
def test_a_run_is_audited_in_json_too(run_folder, capsys, monkeypatch) -> None:
    code, out, err = call(capsys, monkeypatch, "check", str(run_folder), "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["violations"] == []
    assert sum(found["requests"].values()) > 1000
    code, out, _ = call(capsys, monkeypatch, "check", str(run_folder), "--quiet")
    assert (code, out.count("\n")) == (0, 1)
    assert "all rules are kept" in out
    assert "whose scenario is settled" in refused(
        capsys, monkeypatch, "check", str(run_folder), "--set", "seed=2"
    )


def test_check_looks_up_the_places_of_events(capsys, monkeypatch, tmp_path) -> None:
    crowd = {"kind": "flash_crowd", "start_hour": 18.0, "duration_s": 600.0, "people": 50}
    typo = {"dynamics.events": [crowd | {"place": "Casino de Monte Carl"}]}
    file = load_scenario("monaco").override(typo).save(tmp_path / "typo.toml")
    line = refused(capsys, monkeypatch, "check", str(file))
    assert 'dynamics.events[0]: place = "Casino de Monte Carl"' in line
    assert 'did you mean "Casino de Monte Carlo"?' in line
    code, out, _ = call(capsys, monkeypatch, "check", str(file), "--set", "city.source=Atlantis")
    assert code == 0
    assert "looked up by the run" in out


def test_check_tells_of_events_that_will_not_happen(capsys, monkeypatch, tmp_path) -> None:
    crowd = {"kind": "flash_crowd", "duration_s": 600.0, "people": 50, "lon": 7.4206, "lat": 43.7311}
    times = {"simulation.start_hour": 17.0, "simulation.duration_s": 3600.0, "simulation.warm_up_s": 900.0}
    hours = (16.9, 17.5, 18.0, 23.0)  # one has begun before, one begins when all is over
    events = [crowd | {"start_hour": hour} for hour in hours]
    file = load_scenario("monaco").override(times | {"dynamics.events": events}).save(tmp_path / "late.toml")
    code, out, _ = call(capsys, monkeypatch, "check", str(file))
    assert code == 0
    told = [line.split()[0] for line in out.splitlines() if "will not happen" in line]
    assert told == ["dynamics.events[2]", "dynamics.events[3]"]
    code, out, _ = call(capsys, monkeypatch, "check", str(file), "--json")
    assert json.loads(out)["events_outside_window"] == [2, 3]
