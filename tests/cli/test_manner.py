"""Every verb speaks JSON to machines and is quiet when asked."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import typer.main

from geoedge import cli
from geoedge.cli.manner import print_json
from tests.cli.calling import call


def verbs() -> Iterator[tuple[str, set[str]]]:
    """Yield every verb with the spellings of its options."""
    for name, command in typer.main.get_command(cli.app).commands.items():
        for inner, each in getattr(command, "commands", {"": command}).items():
            yield f"{name} {inner}".strip(), {spelling for part in each.params for spelling in part.opts}


def test_all_verbs_are_there_in_the_order_of_work() -> None:
    names = list(typer.main.get_command(cli.app).commands)
    assert names == [
        "run",
        "solve",
        "plan",
        "compare",
        "sweep",
        "map",
        "report",
        "app",
        "check",
        "sites",
        "city",
    ]


@pytest.mark.parametrize(("verb", "options"), list(verbs()))
def test_every_verb_can_be_quiet_and_speak_json(verb, options) -> None:
    assert {"--quiet", "-q"} <= options
    assert ("--json" in options) is (verb != "app")  # a page that is served answers nobody


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["solve", "paper"], "coverage"),
        (["check", "paper"], "valid"),
        (["city", "info", "monaco"], "buildings"),
    ],
)
def test_json_is_one_document_and_nothing_else(capsys, monkeypatch, words, key) -> None:
    code, out, err = call(capsys, monkeypatch, *words, "--json")
    assert (code, err) == (0, "")
    assert key in json.loads(out)


def test_numbers_without_a_value_are_null(capsys) -> None:
    print_json({"a": float("inf"), "b": [float("nan"), 1.5], "c": (1, "x")})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5], "c": [1, "x"]}


@pytest.mark.parametrize("verb", [verb for verb, _ in verbs()])
def test_help_fits_and_ends_well(capsys, monkeypatch, verb) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = call(capsys, monkeypatch, *verb.split(), "--help")
    assert code == 0
    assert max(map(len, out.splitlines())) <= 80
