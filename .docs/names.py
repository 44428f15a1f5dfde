"""How names in docstrings find their page, and how the fields of a scenario's sections are told."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any

import public
from docutils import nodes
from pages import key_table
from pydantic import BaseModel
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from geoedge.scenario import field_docs


def setup(app: Sphinx) -> Mapping[str, Any]:
    """Let Sphinx call what is below."""
    app.connect("doctree-read", _as_the_module_means)
    app.connect("missing-reference", _by_another_name)
    app.connect("autodoc-process-docstring", _told)
    app.connect("autodoc-process-signature", _without_fields)
    app.connect("autodoc-skip-member", _foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _as_the_module_means(app: Sphinx, doctree: nodes.document) -> None:
    """Let a bare name on a module's page be what the module imports or defines by it."""
    module = app.env.docname.removeprefix("rooms/")
    if module not in public.modules():
        return
    for node in doctree.findall(pending_xref):
        head, *rest = node["reftarget"].split(".")
        name = public.meant(module, head) if node.get("refdomain") == "py" else None
        if name:
            node["reftarget"] = ".".join([name.qualified, *rest])


def _by_another_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element
) -> nodes.Node | None:
    """Resolve what is not named as at its home: `geoedge.run`, `geoedge.theory.coverage.solve`, `Study.layout`."""
    if node.get("refdomain") != "py":
        return None
    target = _home_of(node["reftarget"]) or _home_of(f"{node.get('py:module')}.{node['reftarget']}")
    if target is None:
        return None
    domain = env.domains.python_domain
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)


def _home_of(target: str) -> str | None:
    head, *rest = _split(target)
    home = public.exports().get(head) or _unique().get(head)
    return ".".join([home.qualified, *rest]) if home else None


def _split(target: str) -> list[str]:
    """Split the longest head that is known from attributes behind it."""
    parts = target.split(".")
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if head in public.exports() or head in _unique():
            return [head, *parts[length:]]
    return [target]


@cache
def _unique() -> Mapping[str, public.Name]:
    """Return classes by bare name; a bare lower-case word is as often a parameter or a key."""
    classes = [name for name in public.names() if isinstance(name.value, type)]
    times = Counter(name.name for name in classes)
    return {name.name: name for name in classes if times[name.name] == 1}


def _told(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep parameters from being taken for functions of the same name, and tell a section's fields."""
    lines[:] = map(_without_substitutions, lines)
    if inspect.isfunction(obj):
        own = "|".join(map(re.escape, inspect.signature(obj).parameters))
        lines[:] = [re.sub(rf"(?<!`)`({own})`(?!`)", r"``\1``", line) for line in lines] if own else lines
    if what == "class" and isinstance(obj, type) and issubclass(obj, BaseModel):
        lines += ["", *_fields(obj)]


def _foreign(app: Sphinx, what: str, name: str, obj: object, skip: bool, options: object) -> bool | None:
    """Leave out methods that another library gives to our classes."""
    return True if inspect.isfunction(obj) and not obj.__module__.startswith("geoedge") else None


def _without_substitutions(line: str) -> str:
    """Let bars be bars, as in |x|, outside of literals."""
    parts = line.split("``")
    parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
    return "``".join(parts)


def _without_fields(
    app: Sphinx,
    what: str,
    name: str,
    obj: object,
    options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Leave out the signature of a section, which the table of its fields tells."""
    section = isinstance(obj, type) and issubclass(obj, BaseModel)
    return ("", None) if section else (signature, returns)


def _fields(section: type[BaseModel]) -> list[str]:
    docs = [doc for doc in field_docs(section) if "." not in doc.key]
    return key_table((f"``{doc.key}``", doc) for doc in docs).splitlines()
