"""Scenarios and settings given in words: one line for each that cannot be used, and nothing left behind."""

from __future__ import annotations

import os

import pytest

from geoedge.shipped import data_path
from tests.cli.calling import changed, paper, refused


def test_an_unknown_key_names_the_nearest_known_one(capsys, monkeypatch, tmp_path) -> None:
    line = refused(capsys, monkeypatch, "check", changed(tmp_path, "ttft_target_s", "ttft_target"))
    assert "mine.toml" in line
    assert "ttft_target_s" in line


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("users = 10000", "users = 0", "demand.users = 0"),
        ("merge_distance_m = 50.0", "density_per_km2 = -3.0", "sites.density_per_km2 = -3"),
        ("memory_fraction = 0.9", "memory_fraction = 0.7", "leaves no memory for requests"),
        ("type_probability = 0.35", "type_probability = 0.36", "type_probability"),
        ('source = "hosts"', 'source = "nowhere.csv"', "nowhere.csv"),
        ('source = "monaco"', 'source = "nowhere.osm.pbf"', "nowhere.osm.pbf"),
    ],
)
def test_a_bad_value_is_one_line_and_no_folder(capsys, monkeypatch, tmp_path, old, new, names) -> None:
    path = changed(tmp_path, old, new)
    line = refused(capsys, monkeypatch, "run", path, "-q", "-o", str(tmp_path / "run"))
    assert names in line
    assert os.listdir(tmp_path) == ["mine.toml"]


def test_a_missing_scenario_is_named_with_the_shipped_ones(capsys, monkeypatch) -> None:
    line = refused(capsys, monkeypatch, "check", "monako")
    assert "monaco" in line


def test_a_map_without_streets_is_refused(capsys, monkeypatch, tmp_path) -> None:
    empty = tmp_path / "empty.osm"
    empty.write_text('<?xml version="1.0"?><osm version="0.6"><node id="1" lat="50" lon="9"/></osm>')
    path = changed(tmp_path, 'source = "monaco"', 'source = "empty.osm"')
    line = refused(capsys, monkeypatch, "run", path, "-q", "-o", str(tmp_path / "run"))
    assert "street" in line
    assert not (tmp_path / "run").exists()


def test_sites_outside_the_city_are_refused(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "far.csv").write_text("lon,lat\n2.35,48.85\n")
    path = changed(tmp_path, 'source = "hosts"', 'source = "far.csv"')
    line = refused(capsys, monkeypatch, "run", path, "-q", "-o", str(tmp_path / "run"))
    assert "far.csv" in line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("word", ["policy=nearest", "routing.policy", "=3"])
def test_settings_are_key_and_value(capsys, monkeypatch, word) -> None:
    assert refused(capsys, monkeypatch, "check", "monaco", "--set", word)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("type_probability = 0.4", "type_probability = 0.5", "type_probability"),
        ("placement_probability = 0.45", "placement_probability = 0.5", "placement_probability"),
        ("placement_probability = 0.45", "placement_probability = -0.45", "placement_probability"),
        ("delay_coefficient = 0.28", "delay_coefficient = nan", "radio.delay_coefficient"),
        ("delay_coefficient = 0.28", "delay_coefficient = -1.0", "radio.delay_coefficient"),
        (
            "request_intensity_per_km2_s = 3.0",
            "request_intensity_per_km2_s = inf",
            "request_intensity_per_km2_s",
        ),
        ("prompt_tokens = 1024", "prompt_tokens = 1000", "the prompt is shorter than its prefix"),
        ("density_per_km2 = 1.2", "density_per_km2 = 0.0", "density_per_km2"),
        ("prefill_linear_s = 1.6e-4", "prefill_linear_s = -1.6e-4", "prefill_linear_s"),
        ("persistent_bytes = 6442450944", "persistent_bytes = 9663676416", "leaves no memory for requests"),
    ],
)
@pytest.mark.parametrize("verb", ["solve", "plan"])
def test_a_bad_number_is_one_line(capsys, monkeypatch, tmp_path, verb, old, new, names) -> None:
    assert names in refused(capsys, monkeypatch, verb, paper(tmp_path, (old, new)))


def test_a_scenario_without_any_profile_is_one_line(capsys, monkeypatch, tmp_path) -> None:
    text = data_path("scenarios", "paper.toml").read_text(encoding="utf-8")
    start, end = text.index("[[workload.profiles]]"), text.index("[[workload.requests]]")
    path = tmp_path / "mine.toml"
    path.write_text("workload.profiles = []\n" + text[:start] + text[end:], encoding="utf-8")
    assert "workload.profiles" in refused(capsys, monkeypatch, "solve", str(path))


@pytest.mark.parametrize(
    "key", ["dynamics.events.0.kind", "dynamics.events[0].kind", "dynamics.events.noon.kind"]
)
def test_an_entry_of_an_empty_list_is_said_to_be_none(capsys, monkeypatch, key) -> None:
    line = refused(capsys, monkeypatch, "check", "monaco", "--set", f"{key}=crowd")
    assert "there are none; write dynamics.events in the TOML file" in line
    assert "-1" not in line


def test_a_mistyped_choice_names_the_nearest(capsys, monkeypatch) -> None:
    line = refused(capsys, monkeypatch, "compare", "monaco", "--controllers", "none,gredy")
    assert "did you mean 'greedy'" in line
    line = refused(
        capsys, monkeypatch, "compare", "monaco", "--controllers", "none,greedy", "--baseline", "non"
    )
    assert "did you mean 'none'" in line
    assert "did you mean" not in refused(capsys, monkeypatch, "check", "monaco", "--set", "routing.policy=7")
