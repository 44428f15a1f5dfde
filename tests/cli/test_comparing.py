"""`geoedge compare` of a run that is over."""

from __future__ import annotations

import pytest

from tests.cli.calling import refused


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--replications", "2"], "--replications: nothing is simulated where a run is shown"),
        (["--workers", "2"], "--workers: nothing is simulated where a run is shown"),
        (["--seed", "2"], "--seed: nothing is simulated where a run is shown"),
        (["--layouts", "2"], "--layouts: needs --explain"),
        (["--orders", "shapley"], "--orders: needs --explain"),
        (["--controllers", "none,greedy", "--metric", "wait_s"], "--metric: needs --explain"),
        (["--controllers", "none,greedy", "--explain"], "leave one out"),
    ],
)
def test_options_of_another_question_are_refused(capsys, monkeypatch, words, told) -> None:
    assert told in refused(capsys, monkeypatch, "compare", "runs/none", *words)


def test_a_folder_that_states_too_little_is_named(capsys, monkeypatch, tmp_path) -> None:
    (tmp_path / "provenance.json").write_text('{"label": "x", "tables": {}}', encoding="utf-8")
    line = refused(capsys, monkeypatch, "compare", str(tmp_path))
    assert "it is incomplete (provenance.json does not state 'written')" in line
