"""The README: its snippet prints what it says, its links and rooms exist, its commands are known."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import typer.main

from geoedge.cli import app
from geoedge.compare.controllers import ControllerComparison, compare_controllers
from geoedge.scenario import load_scenario

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_snippet_prints_what_the_readme_says() -> None:
    code, printed = re.search(r"```python\n(.*?)```\n```text\n(.*?)```", TEXT, re.DOTALL).groups()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue() == printed


@pytest.mark.slow
def test_all_snippets_run_one_after_the_other(tmp_path, monkeypatch) -> None:
    snippets = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(snippets) > 1
    monkeypatch.chdir(tmp_path)
    known: dict[str, object] = {}
    for code in snippets:
        exec(compile(code, "README.md", "exec"), known)
    assert (tmp_path / "gap.png").stat().st_size > 10_000


def test_the_recipe_of_the_day_table_names_controllers_and_settings_that_are_there(
    monkeypatch, capsys
) -> None:
    """What takes half an hour is not run: the comparison is asked for by its real signature, and then not made."""
    (code,) = re.findall(r"```py\n(.*?)```", TEXT, re.DOTALL)
    asked = []

    def compare(scenario, **options):
        options = inspect.signature(compare_controllers).bind(scenario, **options).arguments
        variants = {name: scenario.override(changes) for name, changes in options["controllers"].items()}
        asked.append((scenario, variants, options["replications"]))
        return contest

    contest = ControllerComparison("", 0.8, (0.0, 1.0), "static", {"static": [None]})
    for name in ("table", "hours"):
        monkeypatch.setitem(contest.__dict__, name, pd.DataFrame())
    monkeypatch.setattr(ControllerComparison, "__repr__", lambda _: "table")
    monkeypatch.setattr(ControllerComparison, "sentences", lambda _: ["a sentence"])
    monkeypatch.setattr("geoedge.compare_controllers", compare)
    exec(compile(code, "README.md", "exec"), {})
    assert "a sentence" in capsys.readouterr().out
    assert [scenario.city.source for scenario, *_ in asked] == ["monaco", "neubrandenburg"]
    heads = re.search(r"\| 06:00–24:00, six paired days \| (.*) \|", TEXT).group(1).split(" | ")
    for scenario, variants, replications in asked:
        assert replications == 6
        assert list(variants) == heads
        assert all(each.control.controller == name for name, each in variants.items())
        window = scenario.simulation
        since = window.start_hour * 3600 + window.warm_up_s
        assert (since, window.start_hour * 3600 + window.duration_s) == (6 * 3600, 24 * 3600)
        best = {name for name, each in variants.items() if each.control.start == "best"}
        assert best == set(heads) - {"none", "static", "oracle"}, "the last two start so whatever is said"


def test_every_linked_file_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", TEXT) if "://" not in link]
    assert links
    missing = [link for link in links if not (ROOT / link).exists()]
    assert missing == []


def test_every_command_and_option_is_known() -> None:
    commands = re.findall(r"^\$ geoedge ([^#\n]+)", TEXT, re.MULTILINE)
    assert len(commands) > 10
    for words in commands:
        verb, second, *_ = [*words.split(), ""]
        command = typer.main.get_command(app).commands[verb]
        command = getattr(command, "commands", {}).get(second, command)
        assert not hasattr(command, "commands"), f"{verb} {second}"
        options = {option for each in command.params for option in each.opts}
        assert set(re.findall(r"(?<!\S)--?[a-z]\S*", words)) <= options, words


def test_every_setting_is_known() -> None:
    snippets = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)]
    assert len(snippets) > 2
    for sections in snippets:
        sections.pop("city", None)  # which names files of the reader
        keys = {f"{name}.{key}": value for name, keys in sections.items() for key, value in keys.items()}
        load_scenario("monaco").override(keys)


def test_every_room_is_in_the_picture() -> None:
    package = ROOT / "geoedge"
    rooms = {p.stem for p in package.iterdir() if (p.suffix == ".py" or p.is_dir()) and p.stem[0] not in "_."}
    named = set(re.findall(r"\b[a-z_]+\b", TEXT[TEXT.index("## The rooms") :]))
    assert rooms - named - {"py"} == set()
