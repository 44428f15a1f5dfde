"""What the package imports is what it declares, and nothing is declared for no reason."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_OTHERS = {"altair", "ipyvue", "ipyvuetify", "solara-assets"}
"""What Mesa and Solara import where they draw the app."""


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w-]", each)[0] for each in requirements}


def imported() -> dict[str, set[str]]:
    """Return the packages of others from which geoedge imports, each with the names it may be declared by."""
    found = set()
    for path in (ROOT / "geoedge").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    homes = packages_distributions()
    return {
        name: {each.lower().replace("_", "-") for each in [name, *homes[name]]}
        for name in found - sys.stdlib_module_names - {"geoedge"}
    }


def test_every_import_is_declared_and_every_requirement_imported() -> None:
    wanted = declared(PROJECT["dependencies"]) | declared(PROJECT["optional-dependencies"]["app"])
    used = imported()
    assert [name for name, known in used.items() if not known & wanted] == []
    assert wanted - set().union(*used.values()) == FOR_OTHERS
