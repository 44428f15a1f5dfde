"""TOML files read, and what is wrong with them said in one line."""

from __future__ import annotations

import difflib
import re
import tomllib
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as bounds
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from geoedge.errors import ScenarioError

__all__ = [
    "FieldDoc",
    "assign",
    "did_you_mean",
    "explain",
    "field_docs",
    "first_and_more",
    "read",
    "resolve_path",
    "shown",
]

_SHOWN_CHARACTERS = 60
_FILE_SUFFIXES = (
    *(".osm", ".gz", ".bz2", ".xz", ".pbf", ".csv", ".txt", ".tsv"),
    *(".geojson", ".json", ".gpkg", ".shp", ".zip", ".parquet"),
)
_WORDS = {int: "an integer", float: "a number", str: "text", bool: "true or false"}


def read(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    ScenarioError
        If the file cannot be read or is not TOML; names the line.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); name a TOML file"
    except UnicodeDecodeError as error:
        msg = f"{path}: byte {error.start} is not UTF-8; a scenario is a TOML text file in UTF-8"
    except tomllib.TOMLDecodeError as error:
        msg = f"{path}: not valid TOML: {one_line(str(error))}; see the TOML syntax at toml.io"
    raise ScenarioError(msg)


def resolve_path(data: dict[str, Any], section: str, key: str, folder: Path) -> None:
    """Make a file named by ``section.key`` absolute if it lies in this folder."""
    table = data.get(section)
    name = table.get(key) if isinstance(table, dict) else None
    if isinstance(table, dict) and isinstance(name, str) and name.lower().endswith(_FILE_SUFFIXES):
        candidate = folder / name
        if candidate.is_file():
            table[key] = str(candidate.resolve())


def one_line(text: str) -> str:
    """Return text with white space and whatever cannot be printed made single spaces."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def shown(value: object) -> str:
    """Return a value as it stands in an error: one line, not too long."""
    return _clipped(_toml_like(value))


def _clipped(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _toml_like(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if value.isprintable() else f'"{value.encode("unicode_escape").decode()}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml_like(item) for item in value)}]"
    return repr(value)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``, did you mean "x"?`` for the nearest known word, or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}?" if near else ""


def first_and_more(problems: Sequence[str]) -> str:
    """Return the first problem, on one clean line, and how many more there are."""
    first = one_line(problems[0])
    return first if len(problems) == 1 else f"{first} (and {len(problems) - 1} more)"


def dotted(loc: Sequence[str | int]) -> str:
    """Return a place in nested tables as ``a.b[2].c``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{_clipped(part)}" for part in loc)
    return text.removeprefix(".")


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """Return a validation error as one line: key, value given, what is allowed."""
    items: list[dict[str, Any]] = [dict(item) for item in error.errors(include_url=False)]
    places: list[tuple[str | int, ...]] = [item["loc"] for item in items]
    # A bad entry makes its list too short as well, and a mistyped key leaves the right one missing.
    roots = [item for item in items if not _is_echo(item, places)]
    roots.sort(key=lambda item: item["type"] != "extra_forbidden")
    return first_and_more([_explain_one(item, model) for item in roots])


def _is_echo(item: dict[str, Any], places: list[tuple[str | int, ...]]) -> bool:
    loc = item["loc"]
    return item["type"] == "too_short" and any(place[: len(loc)] == loc != place for place in places)


def _explain_one(item: dict[str, Any], model: type[BaseModel]) -> str:
    loc, kind = item["loc"], item["type"]
    if kind == "value_error":
        return str(item["ctx"]["error"])
    if kind == "extra_forbidden":
        return _unknown_key(loc, model)
    if kind == "missing" and isinstance(loc[-1], int):
        loc, kind = loc[:-1], "too_short"
    allowed = _allowed_at(loc, model)
    if kind == "missing":
        return f"{dotted(loc)} is missing; needed: {allowed}"
    key = dotted(loc) or "scenario"
    near = did_you_mean(item["input"], _choices(loc, model)) if isinstance(item["input"], str) else ""
    return f"{key} = {shown(item['input'])} is not allowed{near}; allowed: {allowed}"


def _choices(loc: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """Return the words that are allowed at a place, if it takes one of a few."""
    bare, _ = _bare(_walk(loc, model)[0])
    return [str(choice) for choice in get_args(bare)] if get_origin(bare) is Literal else []


def _unknown_key(loc: Sequence[str | int], model: type[BaseModel]) -> str:
    place = loc[:-1]
    known = list(_walk(place, model)[0].model_fields)
    hint = _nearest_key(place, str(loc[-1]), known, model)
    where = f"[{dotted(place)}]" if place else "the top level"
    return f"{dotted(loc)} is not a known key, did you mean {hint}? {where} knows {', '.join(known)}"


def _nearest_key(place: Sequence[str | int], name: str, known: list[str], model: type[BaseModel]) -> str:
    """Return the nearest key of the same table; of another table where only that one is near."""
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if not near:
        elsewhere = {doc.key.rsplit(".", 1)[-1]: doc.key for doc in reversed(list(field_docs(model)))}
        for match in difflib.get_close_matches(name, list(elsewhere), n=1, cutoff=0.8):
            return elsewhere[match]
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return dotted([*place, near[0]])


def _walk(loc: Sequence[str | int], model: type[BaseModel]) -> tuple[Any, FieldInfo | None]:
    """Return the type and the nearest field at a place in the tables."""
    here: Any = model
    field: FieldInfo | None = None
    for part in loc:
        here, _ = _bare(here)
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = here.model_fields[str(part)]
            here = field.annotation if not field.metadata else Annotated[field.annotation, *field.metadata]
        else:
            args = get_args(here)
            here = args[0] if len(args) == 2 and args[1] is Ellipsis else args[int(part)]
    return (here if field is None or get_origin(here) is Annotated else _bare(here)[0]), field


def _bare(annotation: Any) -> tuple[Any, list[Any]]:
    """Strip ``Annotated`` and ``| None``; return the type and the bounds met on the way."""
    metadata: list[Any] = []
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *extra = get_args(annotation)
            for one in extra:
                metadata.extend(one.metadata if isinstance(one, FieldInfo) else [one])
        elif get_origin(annotation) in (Union, types.UnionType):
            annotation = next(arg for arg in get_args(annotation) if arg is not type(None))
        else:
            return annotation, metadata


def _allowed_at(loc: Sequence[str | int], model: type[BaseModel]) -> str:
    annotation, field = _walk(loc, model)
    text = _allowed(annotation)
    unit = _unit(field)
    return text if unit in ("", "–") or "table" in text else f"{text} [{unit}]"


def _allowed(annotation: Any) -> str:
    bare, metadata = _bare(annotation)
    if get_origin(bare) is Literal:
        return "one of " + ", ".join(f'"{choice}"' for choice in get_args(bare))
    if get_origin(bare) is tuple:
        return _allowed_list(bare, metadata)
    if isinstance(bare, type) and issubclass(bare, BaseModel):
        return f"a table with {', '.join(bare.model_fields)}"
    word = _WORDS[bare]
    if bare is str:
        return f"{word}{_length(metadata, 'characters')}"
    return f"{word}{_range(metadata)}"


def _allowed_list(bare: Any, metadata: list[Any]) -> str:
    args = get_args(bare)
    if args[-1] is not Ellipsis:
        return f"a list of {len(args)} values, each {_allowed(args[0])}"
    return f"a list{_length(metadata, 'entries')}, each {_allowed(args[0])}"


def _range(metadata: list[Any]) -> str:
    signs: dict[type, tuple[str, str]] = {
        bounds.Gt: (">", "gt"),
        bounds.Ge: ("≥", "ge"),
        bounds.Lt: ("<", "lt"),
        bounds.Le: ("≤", "le"),
    }
    parts = [
        f"{signs[type(m)][0]} {_number(getattr(m, signs[type(m)][1]))}" for m in metadata if type(m) in signs
    ]
    return f" {' and '.join(parts)}" if parts else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _length(metadata: list[Any], word: str) -> str:
    least = next((m.min_length for m in metadata if isinstance(m, bounds.MinLen)), 0)
    most = next((m.max_length for m in metadata if isinstance(m, bounds.MaxLen)), None)
    if most is None:
        return f" of at least {least} {word}" if least else ""
    return f" of {least} {word}" if least == most else f" of {least} to {most} {word}"


def _unit(field: FieldInfo | None) -> str:
    match = re.search(r"\[([^\[\]]+)\]$", (field.description or "") if field else "")
    return match.group(1) if match else ""


@dataclass(frozen=True)
class FieldDoc:
    """One field of a scenario, for tables and help."""

    key: str
    """Dotted key; ``[]`` stands for each entry of a list."""
    text: str
    """What it means."""
    unit: str
    """Its unit, ``–`` if it has none."""
    allowed: str
    """Type and range in words."""
    default: str
    """The default, ``required`` if there is none."""


def field_docs(model: type[BaseModel], prefix: str = "") -> Iterator[FieldDoc]:
    """Yield every field of a model and of the tables in it, in order.

    Parameters
    ----------
    model
        A scenario or one of its sections.
    prefix
        What their keys begin with.
    """
    for name, field in model.model_fields.items():
        key = f"{prefix}{name}"
        annotation = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        bare, _ = _bare(annotation)
        text = (field.description or "").rsplit(" [", 1)[0]
        default = "required" if field.is_required() else _default(field.default)
        yield FieldDoc(key, text, _unit(field), _allowed(annotation), default)
        inner = get_args(bare)[0] if get_origin(bare) is tuple else bare
        inner, _ = _bare(inner)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from field_docs(inner, f"{key}[]." if get_origin(bare) is tuple else f"{key}.")


def _default(value: object) -> str:
    if value is None:
        return "omitted"
    return "as below" if isinstance(value, BaseModel) else shown(value)


_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def assign(data: dict[str, Any], key: str, value: Any, model: type[BaseModel]) -> None:
    """Set one value in nested tables by its dotted key; ``None`` removes it.

    Raises
    ------
    ScenarioError
        If the key leads nowhere; names the nearest one.
    """
    steps: list[str | int] = [int(m[2]) if m[2] else m[1] for m in _STEP.finditer(key)]
    if not steps:
        msg = f"override: {shown(key)} is not a key; write for example routing.policy"
        raise ScenarioError(msg)
    value = _plain(value)
    here: Any = data
    for step in steps[:-1]:
        here = _enter(here, step, key, model)
    last = steps[-1]
    if isinstance(here, dict) and isinstance(last, str):
        if value is None:
            here.pop(last, None)
        else:
            here[last] = value
    elif isinstance(here, list):
        here[_position(here, last, key)] = value
    else:
        raise ScenarioError(_no_such_key(key, model))


def _plain(value: Any) -> Any:
    """Return a NumPy number or array, as sweeps make them, or a path as TOML would hold it."""
    if isinstance(value, PurePath):
        return str(value)
    return value.tolist() if hasattr(value, "tolist") else value


def _enter(here: Any, step: str | int, key: str, model: type[BaseModel]) -> Any:
    if isinstance(here, list):
        return here[_position(here, step, key)]
    if isinstance(here, dict) and isinstance(step, str):
        return here.setdefault(step, {})
    raise ScenarioError(_no_such_key(key, model))


def _position(entries: list[Any], step: str | int, key: str) -> int:
    names = [str(entry.get("name", "")) if isinstance(entry, dict) else "" for entry in entries]
    position = names.index(step) if step in names else int(step) if str(step).isdecimal() else -1
    if 0 <= position < len(entries):
        return position
    if not entries:
        lists = key[: key.rindex(str(step))].rstrip(".[")
        msg = f"override: {one_line(key)} has no entry {shown(step)}, for there are none; write {one_line(lists)} in the TOML file"
        raise ScenarioError(msg)
    known = one_line(", ".join(name for name in names if name)) or f"0 to {len(entries) - 1}"
    msg = f"override: {one_line(key)} has no entry {shown(step)}{did_you_mean(str(step), names)}; entries: {known}"
    raise ScenarioError(msg)


def _no_such_key(key: str, model: type[BaseModel]) -> str:
    known = [doc.key for doc in field_docs(model)]
    return f"override: {shown(key)} is not a known key{did_you_mean(key, known)}; write for example routing.policy"
