"""What documentation is made of: docstrings are whole and true, names lead somewhere, links of built pages are checked."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from pydantic import BaseModel

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / ".docs"))

import links  # noqa: E402
import maths  # noqa: E402
import pages  # noqa: E402
import public  # noqa: E402

SOURCES = sorted((ROOT / "geoedge").rglob("*.py"))
ROOMS = [
    "geoedge",
    *sorted(f"geoedge.{path.parent.name}" for path in (ROOT / "geoedge").glob("[a-z]*/__init__.py")),
]
GUIDED = [room for room in ROOMS if room not in {"geoedge.cli", "geoedge.style"}]
"""Rooms that tell in a guide what they are for."""
QUANTITY = re.compile(
    r"(^|_)(time|wait|delay|distance|rate|density|radius|area|offset|bytes|tokens|intensity|tau|budget|period|side)(_|$)"
    r"|_(s|m|km|km2|hour)$"
)
"""Parameters of these names have a unit."""
ELSEWHERE = re.compile(r"(?:As |Of all|The same|Theirs)\b")


def _docstrings() -> Iterator[tuple[str, str]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text


# -- public names ----------------------------------------------------------------------------------------


def _callables() -> Iterator[tuple[str, object, bool]]:
    """Yield all public functions, classes' methods among them, and whether the first parameter is the instance."""
    for name in public.names():
        value = name.value
        if not isinstance(value, type):
            if pages.kind(name) == "function":
                yield name.qualified, getattr(value, "py_func", value), False
            continue
        for key, member in vars(value).items():
            bound = not isinstance(member, staticmethod)
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            if (
                inspect.isfunction(function)
                and function.__name__ != "<lambda>"  # a default is no method
                and not key.startswith("_")
                and function.__module__.startswith("geoedge")
            ):
                yield f"{name.qualified}.{key}", function, bound


def _parameters(function: object, *, bound: bool) -> dict[str, str]:
    """Return annotations by name as a docstring writes it, with the stars of ``*args``."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    return {
        f"{stars.get(p.kind, '')}{p.name}": str(p.annotation) for p in given if not p.name.startswith("_")
    }


def _documented(text: str) -> dict[str, str]:
    """Return what the Parameters section says, by name."""
    found = {}
    for entry in NumpyDocString(text)["Parameters"]:
        for name in entry.name.split(","):
            found[name.strip()] = " ".join(entry.desc)
    return found


def _gaps(where: str, function: object, *, bound: bool) -> Iterator[str]:
    text = inspect.getdoc(function) or ""
    if not text:
        yield f"{where}: no docstring"
        return
    wanted, told = _parameters(function, bound=bound), _documented(text)
    for name in wanted:
        if name not in told and not (len(wanted) == 1 and f"`{name}`" in text):
            yield f"{where}: parameter {name} is not documented"
    for name, meaning in told.items():
        if name not in wanted:
            yield f"{where}: documents {name}, which is no parameter"
        elif _lacks_unit(name, wanted[name], meaning):
            yield f"{where}: {name} has no unit: {meaning}"
    raised = _raised(function)
    sections = NumpyDocString(text)["Raises"]
    if raised and not sections:
        yield f"{where}: raises {', '.join(sorted(raised))} and does not say so"


def _lacks_unit(name: str, annotation: str, meaning: str) -> bool:
    if name.endswith("exponent") or "in mean service times" in meaning:
        return False
    number = re.search(r"float|ArrayLike|Floats|int", annotation) and "Callable" not in annotation
    return bool(number and QUANTITY.search(name) and "[" not in meaning and not ELSEWHERE.match(meaning))


def _raised(function: object) -> set[str]:
    """Return geoedge's errors that a function raises itself."""
    code = inspect.unwrap(function).__code__  # type: ignore[arg-type]
    return {
        name
        for name in code.co_names
        if name.endswith("Error") and name in vars(importlib.import_module("geoedge.errors"))
    }


def test_public_functions_are_documented() -> None:
    found = list(_callables())
    assert len(found) > 300
    assert [gap for where, function, bound in found for gap in _gaps(where, function, bound=bound)] == []


def test_gaps_are_found() -> None:
    def waits(time_s: float, share: float) -> None:
        """Return waits.

        Parameters
        ----------
        time_s
            The time.
        shares
            Shares.
        """
        from geoedge.errors import GeoEdgeError

        raise GeoEdgeError

    assert list(_gaps("f", waits, bound=False)) == [
        "f: parameter share is not documented",
        "f: time_s has no unit: The time.",
        "f: documents shares, which is no parameter",
        "f: raises GeoEdgeError and does not say so",
    ]


def test_public_values_and_classes_are_documented() -> None:
    bare = [name.qualified for name in public.names() if not pages.first_line(name)]
    for name in public.names():
        value = name.value
        if isinstance(value, type):
            properties = {key: member for key, member in vars(value).items() if isinstance(member, property)}
            bare += [
                f"{name.qualified}.{key}" for key, p in properties.items() if key[0] != "_" and not p.__doc__
            ]
        if isinstance(value, type) and issubclass(value, BaseModel):
            bare += [
                f"{name.qualified}.{key}" for key, info in value.model_fields.items() if not info.description
            ]
    assert bare == []


def test_names_have_one_home() -> None:
    exports = public.exports()
    assert exports["geoedge.run"].qualified == "geoedge.compare.run"
    assert (
        exports["geoedge.compare.gap.Gap"].qualified
        == exports["geoedge.Gap"].qualified
        == "geoedge.compare.Gap"
    )
    assert exports["geoedge.theory.Placement"] != exports["geoedge.control.Placement"]
    assert public.meant("geoedge.planning.recommend", "Placement") == exports["geoedge.theory.Placement"]
    homes = [name.qualified for name in public.names()]
    assert len(homes) == len(set(homes))
    assert all(exports[home].qualified == home for home in homes)


# -- guides and examples ---------------------------------------------------------------------------------


@pytest.mark.parametrize("room", GUIDED)
def test_each_room_has_a_guide_with_an_example(room: str) -> None:
    text = importlib.import_module(room).__doc__
    assert 8 <= len(text.splitlines()) <= 30
    assert ">>> " in text
    named = {word.rpartition(".")[2] for word in re.findall(r"(?<!`)`([\w.]+)`(?!`)", text)}
    exported = {
        name for each in public.rooms() if f"{each}.".startswith(f"{room}.") for name in public.exported(each)
    }
    assert len(named & exported) >= min(3, len(exported))


def _modules_with_examples() -> list[str]:
    with_examples = [path for path in SOURCES if ">>> " in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in with_examples]
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_examples_print_what_they_say(name: str) -> None:
    module = importlib.import_module(name)
    tests = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    written = len(
        re.findall(r"^ *>>> ", Path(str(module.__file__)).read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert sum(len(test.examples) for test in tests) == written, "examples that doctest does not find"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    told: list[str] = []
    for test in tests:
        runner.run(test, out=told.append)
    assert runner.failures == 0, "".join(told)


# -- names in backticks ----------------------------------------------------------------------------------


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            known = {*getattr(value, "model_fields", ()), *getattr(value, "__annotations__", ())}
            known |= set(inspect.signature(value).parameters) if isinstance(value, type) else set()
            if not hasattr(value, part) and part not in known:
                return False
            value = getattr(value, part, None)
        return True
    return False


def test_qualified_names_in_docstrings_exist() -> None:
    known = {name.name: name.qualified for name in public.names() if isinstance(name.value, type)}
    broken, seen = [], 0
    for where, text in _docstrings():
        for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*\w)(?:\(\))?`(?!`)", text):
            head = name.partition(".")[0]
            qualified = (
                name if head == "geoedge" else f"{known[head]}{name[len(head) :]}" if head in known else ""
            )
            seen += bool(qualified)
            if qualified and not _resolves(qualified):
                broken.append(f"{where}: `{name}`")
    assert broken == []
    assert seen > 100
    assert not _resolves("geoedge.theory.solved")


# -- pages -----------------------------------------------------------------------------------------------


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<p id="top"><a href="a/b.html#here">ok</a> <a href="#top">ok</a> <a href="https://arxiv.org/abs/1">ok</a>'
        '<a href="a/b.html#away">1</a> <a href="a/c.html">2</a> <a href="#x">3</a> <a href="http://arxiv.org">4</a>'
        '<a href="https://example.org/">5</a> <a href="https://[bad">6</a> <img src="https://arxiv.org/i.png"></p>'
    )
    (tmp_path / "a/b.html").write_text(
        '<p id="here"><a href="../index.html#top">ok</a> <a href="../../x">7</a></p>'
    )
    assert [fault.partition(": ")[2] for fault in links.faults(tmp_path)] == [
        "'../../x' leads to no file",
        "'#x' leads to no such place on its page",
        "'a/b.html#away' leads to no such place on its page",
        "'a/c.html' leads to no file",
        "'http://arxiv.org' is no https address",
        "'https://[bad' is malformed (Invalid IPv6 URL)",
        "'https://arxiv.org/i.png' is fetched from outside",
        "'https://example.org/' leads to a host that is not listed (example.org)",
    ]


def test_no_page_is_a_fault(tmp_path: Path) -> None:
    assert links.faults(tmp_path) == [f"{tmp_path}: holds no page"]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Σ_t λ_t ((y − β_t)₊/ξ)^{2/α}", "Σ<t> λ<t> ((y − β<t>)₊/ξ)<2/α>"),
        ("r_t^{q'}, T_pf,t and P_cov(τ)", "r<t><q'>, T<pf,t> and P<cov>(τ)"),
        ("hit_tokens of k_function, n_sites [s/km^α]", "hit_tokens of k_function, n_sites [s/km<α>]"),
        ("W̄_s e^{−Λ(β_s+x)}", "W̄<s> e<−Λ(β<s>+x)>"),
    ],
)
def test_subscripts_and_exponents_are_set(text: str, marked: str) -> None:
    def flat(nodes: Iterator[object]) -> str:
        return "".join(n.astext() if not n.children else f"<{flat(iter(n.children))}>" for n in nodes)  # type: ignore[attr-defined]

    assert flat(maths.split(text)) == marked


def test_pages_are_written_for_every_name(tmp_path: Path) -> None:
    pages.write_pages(tmp_path / "pages")
    text = "\n".join(path.read_text(encoding="utf-8") for path in (tmp_path / "pages/rooms").glob("*.rst"))
    entries = set(re.findall(r"^\.\. auto(?:class|exception|function):: (\S+)$", text, re.MULTILINE))
    entries |= {
        f"{room}.{name}"
        for room, name in re.findall(
            r"^\.\. py:currentmodule:: (\S+)\n\n\.\. py:data:: (\S+)$", text, re.MULTILINE
        )
    }
    assert entries == {name.qualified for name in public.names()}
    front = (tmp_path / "pages/index.md").read_text(encoding="utf-8")
    assert all(f"rooms/{room}\n" in front for room in pages.ordered_rooms())
    assert all(
        (tmp_path / f"pages/notebooks/{path.stem}.md").exists()
        for path in (ROOT / "notebooks").glob("*.ipynb")
    )
