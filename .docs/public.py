"""Which names of geoedge are public, and where each is at home.

A name is public if a room exports it: a package, or a module directly below `geoedge`, by its `__all__`. Several rooms
may export the same thing (`geoedge.run` is `geoedge.compare.run`); its home is the outermost room around the module
that defines it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import geoedge

COMMANDS = ("geoedge.cli", "geoedge.__main__")
"""What is used from a terminal and has no names to import."""


@dataclass(frozen=True)
class Name:
    """A public name at its home."""

    room: str
    """Room that exports it."""
    module: str
    """Module that defines it."""
    name: str
    """What the room calls it."""
    written: str
    """What the module that defines it calls it."""

    @property
    def qualified(self) -> str:
        """The name as one imports it."""
        return f"{self.room}.{self.name}"

    @property
    def value(self) -> object:
        """What it stands for."""
        return getattr(importlib.import_module(self.room), self.name)


def modules() -> dict[str, bool]:
    """Return all modules but private ones and commands, in alphabetical order, and whether each is a package."""
    found = {
        info.name: info.ispkg for info in pkgutil.walk_packages(geoedge.__path__, "geoedge.", onerror=_fail)
    }
    return {
        name: found[name] for name in sorted(found) if not _private(name) and not name.startswith(COMMANDS)
    }


def _fail(name: str) -> None:
    importlib.import_module(name)


def _private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def rooms() -> list[str]:
    """Return the names of all rooms, `geoedge` itself first."""
    return ["geoedge", *(name for name, package in modules().items() if package or name.count(".") == 1)]


def exported(room: str) -> tuple[str, ...]:
    """Return what a room exports."""
    return tuple(getattr(importlib.import_module(room), "__all__", ()))


@cache
def exports() -> dict[str, Name]:
    """Return what each exported name leads to, by the name as one imports it."""
    found: dict[tuple[str, str], list[str]] = {}
    for room in rooms():
        for name in exported(room):
            if isinstance(getattr(importlib.import_module(room), name), ModuleType):
                continue
            found.setdefault(definition(room, name), []).append(f"{room}.{name}")
    return {same: _name(alike, *defined) for defined, alike in found.items() for same in alike}


def _name(alike: list[str], module: str, written: str) -> Name:
    """Choose among names for the same thing: around the module that defines it, then short, then not the root."""

    def rank(name: str) -> tuple[bool, bool, int]:
        room = name.rpartition(".")[0]
        return room == "geoedge", not f"{module}.".startswith(f"{room}."), room.count(".")

    room, _, name = min(alike, key=rank).rpartition(".")
    return Name(room, module, name, written)


def meant(module: str, name: str) -> Name | None:
    """Return the public name that a module knows by a bare name, if it is one."""
    return _by_definition().get(definition(module, name))


@cache
def _by_definition() -> dict[tuple[str, str], Name]:
    return {(name.module, name.written): name for name in exports().values()}


def names() -> list[Name]:
    """Return all public names, each once."""
    return sorted(set(exports().values()), key=lambda name: (name.room, name.module, name.name))


def definition(module: str, name: str) -> tuple[str, str]:
    """Follow imports from a module to the one that defines a name; return that module and the name there."""
    while (source := _imports(module).get(name)) is not None:
        module, name = source
    return module, name


@cache
def _imports(module: str) -> dict[str, tuple[str, str]]:
    """Return what a module imports from geoedge, also for type checkers alone, as rooms import lazily."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(source(module)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("geoedge"):
            assert node.module is not None
            for alias in node.names:
                if importlib.util.find_spec(node.module) and not _is_module(f"{node.module}.{alias.name}"):
                    found[alias.asname or alias.name] = (node.module, alias.name)
    return found


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@cache
def source(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
