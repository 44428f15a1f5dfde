"""The README: its snippet prints what it says, its links and rooms exist, its commands are known."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from pathlib import Path

import pytest
import typer.main

from geoedge.cli import app
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
