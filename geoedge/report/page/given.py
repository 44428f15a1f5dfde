"""What a run was made from: its scenario, its seed, the versions and checksums; and how scenarios differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told, heads

__all__ = ["difference_grid", "provenance_grid"]

LONGEST_VALUE = 120
ABSENT = "–"


def provenance_grid(runs: Sequence[Told]) -> Grid:
    """Return seed, versions and checksums, one column a run.

    Parameters
    ----------
    runs
        The runs.
    """
    facts = [dict(_facts(each)) for each in runs]
    names = list(dict.fromkeys(name for each in facts for name in each))
    rows = [[name, *(each.get(name, ABSENT) for each in facts)] for name in names]
    return Grid("Where the numbers come from", ["", *heads(runs)], rows)


def _facts(told: Told) -> Iterator[tuple[str, str]]:
    meta = told.meta
    yield "seed", str(meta.get("seed", ABSENT))
    yield "replications", str(meta.get("replications", 1))
    for key, name in (
        ("city", "city"),
        ("extract_date", "map of"),
        ("layout", "sites"),
        ("crs", "coordinates"),
    ):
        if meta.get(key):
            yield name, str(meta[key])
    if meta.get("area_km2"):
        yield "land [km²]", f"{meta['area_km2']:.4g}"
    for name, value in sorted(meta.get("versions", {}).items()):
        yield f"version of {name}", str(value)
    for name, value in sorted(meta.get("checksums", {}).items()):
        if value:
            yield f"checksum of {name}", str(value)


def difference_grid(runs: Sequence[Told]) -> Grid | None:
    """Return the keys in which scenarios differ, one column a run; None if a scenario cannot be read.

    Parameters
    ----------
    runs
        The runs.
    """
    if any(each.scenario is None for each in runs):
        return None
    flat = [dict(_flat(each.scenario.to_dict())) for each in runs if each.scenario is not None]
    keys = list(dict.fromkeys(key for each in flat for key in each))
    found = {key: [each.get(key) for each in flat] for key in keys}
    rows = [
        [key, *_shown(values)] for key, values in found.items() if any(value != values[0] for value in values)
    ]
    note = "" if rows else "The scenarios are the same, key by key."
    return Grid("Keys in which the scenarios differ", ["key", *(each.name for each in runs)], rows, note)


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every leaf of a scenario with its dotted key; members of lists go by their number, or their name."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(each, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple) and value and all(isinstance(each, Mapping) for each in value):
        for number, each in enumerate(value):
            yield from _flat(each, f"{key}[{each.get('name', number)}]")
    else:
        yield key, value


def _shown(values: Sequence[Any]) -> list[str]:
    """Return values as words; of long ones what stands around the first letter in which they differ."""
    words = [_words(value) for value in values]
    letters = zip_longest(*words)
    first = next((k for k, signs in enumerate(letters) if len(set(signs)) > 1), 0)
    return [_cut(each, first) for each in words]


def _words(value: Any) -> str:
    if value is None:
        return ABSENT
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _cut(words: str, first: int) -> str:
    if len(words) <= LONGEST_VALUE:
        return words
    start = min(max(first - LONGEST_VALUE // 3, 0), len(words) - LONGEST_VALUE)
    end = start + LONGEST_VALUE
    return f"{'…' if start else ''}{words[start:end]}{'…' if end < len(words) else ''}"
