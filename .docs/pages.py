"""Write the pages that Sphinx reads: the README, one guide per room, the modules behind it, notebooks, keys, commands."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args, get_origin

import nbformat
import public
import typer.main
from public import Name
from typer.cli import get_docs_for_click

from geoedge.cli import app
from geoedge.scenario import FieldDoc, Scenario, field_docs

ROOT = Path(__file__).parent.parent


def write_pages(folder: Path) -> None:
    """Write all pages into a folder that is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "maps", folder / "maps")
    pages = {
        "index.md": _front_page(),
        "data/README.md": (ROOT / "data/README.md").read_text(encoding="utf-8"),
        "commands.md": _commands(),
        "keys.rst": _keys(),
        **{f"notebooks/{path.stem}.md": _notebook(path) for path in _notebooks()},
    }
    for room in ordered_rooms():
        pages |= _room(room)
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")


def ordered_rooms() -> list[str]:
    """Return the outermost rooms, lowest layer first and what is below scenarios last; `geoedge` itself leads."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    layered = [room.strip() for layer in reversed(layers) for room in layer.split("|")]
    start = layered.index("geoedge.scenario")
    order = {room: place for place, room in enumerate([*layered[start:], *layered[:start]])}
    outermost = [room for room in public.rooms() if room.count(".") == 1]
    return ["geoedge", *sorted(outermost, key=lambda room: order.get(room, len(order)))]


def _front_page() -> str:
    text = _to_pages((ROOT / "README.md").read_text(encoding="utf-8"))
    rooms = ordered_rooms()
    return "\n".join(
        [
            text,
            _toctree("Guides and reference", [f"rooms/{room}" for room in rooms]),
            _toctree("Notebooks", [f"notebooks/{path.stem}" for path in _notebooks()]),
            _toctree("And", ["commands", "keys", "data/README"]),
        ]
    )


def _to_pages(text: str) -> str:
    """Let links to notebooks lead to their pages."""
    return re.sub(r"(\]\([^)]*)\.ipynb\)", r"\1.md)", text)


def _toctree(caption: str, pages: Iterable[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


def _notebooks() -> list[Path]:
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def _notebook(path: Path) -> str:
    """Return a notebook as Markdown; they are stored without output, so that there is none to show."""
    cells = nbformat.read(path, as_version=4).cells
    parts = [f"```python\n{c.source}\n```" if c.cell_type == "code" else c.source for c in cells]
    return _to_pages("\n\n".join(parts)) + "\n"


def _commands() -> str:
    command = typer.main.get_command(app)
    with typer.Context(command, info_name="geoedge") as context:
        return get_docs_for_click(obj=command, ctx=context, name="geoedge", title="Commands")


def _keys() -> str:
    """Return every key of a scenario, a section a table."""
    sections: dict[str, list[tuple[str, FieldDoc]]] = {}
    for doc in field_docs(Scenario):
        section, _, key = doc.key.rpartition(".")
        sections.setdefault(section, []).append((f"``{key}``", doc))
    parts = [_heading("Keys of a scenario", "=")]
    for section, rows in sections.items():
        parts += [_heading(section or "At the top", "-"), key_table(rows)]
    return "\n".join(parts)


def key_table(rows: Iterable[tuple[str, FieldDoc]]) -> str:
    """Return a table of keys with meaning, unit, range and default."""
    head = ["key", "meaning", "unit", "allowed", "default"]
    body = [[key, _plain(doc.text), doc.unit, _plain(doc.allowed), _plain(doc.default)] for key, doc in rows]
    return _table([head, *body], header=True)


def _plain(text: str) -> str:
    """Return text whose signs mean nothing to Sphinx."""
    return re.sub(r"([\\`*_|])", r"\\\1", text)


def _heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def _table(rows: Iterable[Iterable[str]], *, header: bool = False) -> str:
    lines = [".. list-table::", "   :widths: auto", *(["   :header-rows: 1"] if header else []), ""]
    for row in rows:
        for index, cell in enumerate(row):
            lines.append(f"   {'-' if index else '* -'} {cell}".replace("   -", "     -", 1))
    return "\n".join([*lines, ""])


def _room(room: str) -> Mapping[str, str]:
    """Return the page of a room and, where it is a package, those of the modules behind it."""
    if room == "geoedge":
        names = sorted(
            {name for export, name in public.exports().items() if export.count(".") == 1}, key=_order
        )
        return {"rooms/geoedge.rst": _opening(room) + _summary(names)}
    names = [name for name in public.names() if f"{name.room}.".startswith(f"{room}.")]
    behind = sorted({name.module for name in names if name.module != room and "._" not in name.module})
    here = [name for name in names if name.module not in behind]
    pages = {
        f"rooms/{module}.rst": _opening(module, title=module.removeprefix(f"{room}."))
        + _contents(_as_written(names, module))
        + "\n".join(_entry(name) for name in _as_written(names, module))
        for module in behind
    }
    toctree = "\n   ".join([".. toctree::", ":hidden:", "", *behind, ""]) if behind else ""
    entries = "\n".join(_entry(name) for name in here)
    pages[f"rooms/{room}.rst"] = "\n".join(
        [_opening(room), _summary(sorted(names, key=_order)), entries, toctree]
    )
    return pages


def _order(name: Name) -> str:
    return name.name.lower()


def _as_written(names: Iterable[Name], module: str) -> list[Name]:
    """Return names of a module in the order in which it defines them."""
    lines = {target: node.lineno for node in public.source(module).body for target in _targets(node)}
    return sorted((name for name in names if name.module == module), key=lambda name: lines[name.written])


def _targets(node: ast.stmt) -> set[str]:
    """Return the names that a statement defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Assign(targets=targets):
            return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        case ast.AnnAssign(target=ast.Name(id=name)):
            return {name}
    return set()


def _opening(module: str, title: str = "") -> str:
    index = (
        "   :no-index:\n" if module in public.exports() else ""
    )  # `sweep` is a module and a function in one
    return _heading(title or module, "=") + f"\n.. automodule:: {module}\n{index}\n"


def _contents(names: Iterable[Name]) -> str:
    """Return links to what a page tells, where it tells several things."""
    links = [f":py:obj:`~{name.qualified}`" for name in names]
    return " · ".join(links) + "\n\n" if len(links) > 2 else ""


def _summary(names: Iterable[Name]) -> str:
    rows = [[f":py:obj:`~{name.qualified}`", first_line(name)] for name in names]
    return _heading("Names", "-") + "\n" + _table(rows)


def first_line(name: Name) -> str:
    text = constant_docstring(name) if kind(name) == "data" else inspect.getdoc(name.value) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def kind(name: Name) -> str:
    """Return `class`, `exception`, `function` or `data`."""
    value = name.value
    if isinstance(value, type):
        return "exception" if issubclass(value, Exception) else "class"
    return "function" if inspect.isroutine(value) else "data"


def constant_docstring(name: Name) -> str:
    """Return the text below the assignment of a constant."""
    body = public.source(name.module).body
    for node, after in pairwise(body):
        if (
            name.written in _targets(node)
            and isinstance(after, ast.Expr)
            and isinstance(after.value, ast.Constant)
        ):
            return inspect.cleandoc(str(after.value.value))
    return ""


def _entry(name: Name) -> str:
    """Return the directive that documents a name."""
    if kind(name) == "function":
        return f".. autofunction:: {name.qualified}\n"
    if isinstance(name.value, type):
        foreign = [base.__name__ for base in name.value.__mro__ if not base.__module__.startswith("geoedge")]
        members = f"   :members:\n   :inherited-members: {','.join(foreign)}\n"
        return f".. auto{kind(name)}:: {name.qualified}\n{members}"
    text = "\n".join([constant_docstring(name), "", *_members(name.value)])
    head = f".. py:currentmodule:: {name.room}\n\n.. py:data:: {name.name}\n\n"
    return head + "\n".join(f"   {line}".rstrip() for line in text.splitlines()) + "\n"


def _members(value: object) -> list[str]:
    """Return what a table or tuple of names holds."""
    value = get_args(value) if get_origin(value) is Literal else value
    if isinstance(value, Mapping | tuple | frozenset) and all(isinstance(item, str) for item in value):
        return [", ".join(f"``{item}``" for item in value)]
    return []
