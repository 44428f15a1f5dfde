"""Which rows of a file of sites can be used, which cannot and why, and which look odd; nothing is repaired."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._causes import CAUSES, Ground, explain, is_null, legal
from geoedge.sites._cells import RADIOS, cell_faults, radio_name, radio_names, repeated_cells
from geoedge.sites._rows import SiteRows
from geoedge.sites.grouping import site_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City

__all__ = ["Cleaned", "Problem", "clean"]

SAMPLE_ROWS = 5
"""How many of the rows of each kind a report names."""
LISTED_OPERATORS = 8

COARSE_DEG = {0.01: 0.0, 0.001: 0.05}
"""Steps of a grid that places are rounded to, and from which share of all rows on it is no chance."""
METRES_PER_DEGREE = 111_195.0
STACKED_ROWS, STACKED_SHARE = 20, 0.01
"""So many sites on one place, and such a share of all, are no mast's."""

SUSPECT = {
    "coarse": "both coordinates are rounded to steps of {step:g} degrees, up to {metres:.0f} m",
    "stacked": "many sites on one identical place: the middle of a town or area, not masts",
}


@dataclass(frozen=True)
class Problem:
    """Rows with one thing wrong.

    Parameters
    ----------
    reason
        Short name.
    cause
        The likely cause in words.
    rows
        The rows, counted from 0.
    samples
        The first of them as they stand in the file, text that anybody may have written.
    used
        Whether the rows are used all the same.
    """

    reason: str
    cause: str
    rows: NDArray[np.int64]
    samples: tuple[str, ...]
    used: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the problem in plain values; rows count from 1."""
        return {
            "reason": self.reason,
            "cause": self.cause,
            "count": len(self.rows),
            "rows": (self.rows[:SAMPLE_ROWS] + 1).tolist(),
            "samples": list(self.samples),
            "used": self.used,
        }


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Rows of a file, sorted out.

    Parameters
    ----------
    rows
        The rows.
    kept
        Those that are used, in the order of the file.
    problems
        What is wrong with the others, and what looks odd.
    filtered
        How many good rows were left out because another operator or technology was asked for.
    operator
        Operator of each row, an index into `operators`, shape (n,).
    operators
        Names of the operators, empty where the file does not say.
    radio
        Technology of each row, empty where unknown, shape (n,).
    site
        Number of the site that each row names that is used, as many as `kept`.
    rule
        How rows name their site, in words.
    """

    rows: SiteRows
    kept: NDArray[np.int64]
    problems: tuple[Problem, ...]
    filtered: Mapping[str, int]
    operator: NDArray[np.int64]
    operators: tuple[str, ...]
    radio: NDArray[np.object_]
    site: NDArray[np.int64]
    rule: str

    @property
    def dropped(self) -> dict[str, int]:
        """How many rows cannot be used, by the reason."""
        always = dict.fromkeys(("missing", "out_of_range", "swapped", "outside"), 0)
        return always | {item.reason: len(item.rows) for item in self.problems if not item.used}

    def operator_counts(self) -> dict[str, int]:
        """Return how many rows of each operator are used, the largest first."""
        counts = np.bincount(self.operator[self.kept], minlength=len(self.operators))
        order = np.argsort(-counts, kind="stable")
        return {self.operators[k]: int(counts[k]) for k in order if counts[k]}

    def counts(self, role: str) -> dict[str, int]:
        """Return how many rows that are used have each text in a column, the commonest first.

        Parameters
        ----------
        role
            The column; empty counts if the file has none.
        """
        if role not in self.rows.texts:
            return {}
        return dict(Counter(self.rows.take(role, self.kept)).most_common())

    def radio_counts(self) -> dict[str, int]:
        """Return how many rows of each technology are used."""
        found = self.radio[self.kept]
        counts = {name: int((found == name).sum()) for name in (*RADIOS, "")}
        return {name: count for name, count in counts.items() if count}


def clean(
    rows: SiteRows, city: City | None = None, *, operator: str | None = None, radio: str | None = None
) -> Cleaned:
    """Return which rows can be used.

    Parameters
    ----------
    rows
        Rows of a file.
    city
        The city they should be in; where most of them are if left out.
    operator
        The only operator to keep, by name or as ``"208-01"``, country and network code.
    radio
        The only technologies to keep: ``"LTE"``, ``"LTE,NR"``, ``"4G"``.

    Raises
    ------
    CityError
        If the operator or technology is not in the file.
    """
    wanted = _wanted_radios(radio)
    why, details = _faults(rows, city)
    names = (
        radio_names(rows.texts["radio"]) if "radio" in rows.texts else np.full(len(rows), "", dtype=object)
    )
    if rows.is_cells:
        for reason, faulty in cell_faults(rows, names).items():
            why[faulty & (why == "")] = reason
    for reason, repeats in _repeats(rows, names, np.flatnonzero(why == "")).items():
        why[repeats] = reason
    good = why == ""
    codes, operators = _operators(rows)
    chosen = _chosen_operator(operator, codes, operators, good)
    fitting = np.isin(names, wanted) if wanted else np.ones(len(rows), dtype=bool)
    kept = np.flatnonzero(good & chosen & fitting)
    if wanted and good.any() and not (good & fitting).any():
        there = ", ".join(name for name in RADIOS if (names[good] == name).any()) or "no known one"
        msg = f"`radio` = {radio!r}: no such rows; the file has {there}"
        raise CityError(msg)
    filtered = {"operator": int((good & ~chosen).sum()), "radio": int((good & chosen & ~fitting).sum())}
    problems = [
        Problem(reason, cause + details.get(reason, ""), at, _samples(rows, at))
        for reason, cause in CAUSES.items()
        if (at := np.flatnonzero(why == reason)).size
    ]
    site, rule = site_keys(rows, codes, names, kept)
    problems += _suspects(rows, kept, site)
    return Cleaned(rows, kept, tuple(problems), filtered, codes, operators, names, site, rule)


def _samples(rows: SiteRows, at: NDArray[np.int64]) -> tuple[str, ...]:
    return tuple(rows.text(row) for row in at[:SAMPLE_ROWS].tolist())


def _wanted_radios(radio: str | None) -> tuple[str, ...]:
    asked = [part.strip() for part in (radio or "").split(",") if part.strip()]
    names = tuple(radio_name(part) for part in asked)
    if "" in names or (radio is not None and not names):
        unknown = asked[names.index("")] if names else radio
        msg = f"`radio` = {unknown!r} is unknown; name {', '.join(RADIOS)}, or several with commas between"
        raise CityError(msg)
    return names


def _faults(rows: SiteRows, city: City | None) -> tuple[NDArray[np.object_], dict[str, str]]:
    """Return what is wrong with each row's place, empty for nothing, and details."""
    lonlat = rows.lonlat
    why = np.full(len(rows), "", dtype=object)
    finite = np.isfinite(lonlat).all(axis=1)
    why[~finite] = "missing"
    why[rows.malformed] = "malformed"
    usable = finite & ~rows.malformed
    fair = usable & legal(lonlat) & ~is_null(lonlat)
    ground = Ground.of_city(city) if city is not None else Ground.of_rows(lonlat[fair])
    here = ground.holds(lonlat) if ground is not None else np.zeros(len(rows), dtype=bool)
    strange = np.flatnonzero(usable & (~here | (is_null(lonlat) & (city is None))))
    if not strange.size:
        return why, {}
    why[strange], found = explain(lonlat[strange], ground, degrees=not rows.stated_crs)
    return why, {reason: f" ({detail})" for reason, detail in found.items() if detail}


def _repeats(
    rows: SiteRows, radio: NDArray[np.object_], good: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Return rows that repeat others: the same cell, or the same line word for word."""
    import pandas as pd

    if rows.is_cells:
        return repeated_cells(rows, radio, good)
    if not rows.lines:
        return {}
    # lines can only be equal where their places are
    places = pd.DataFrame(rows.lonlat[good]).duplicated(keep=False).to_numpy()
    shared = good[places]
    lines = pd.Series([rows.text(row) for row in shared.tolist()], dtype=object)
    return {"duplicate": shared[lines.duplicated().to_numpy()]}


def _operators(rows: SiteRows) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the operator of each row and their names: as written, or country and network code."""
    import pandas as pd

    if "operator" in rows.texts:
        coded = rows.texts["operator"].dictionary_encode()
        names = tuple(coded.dictionary.to_pylist())
        return np.array(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64), names
    if {"mcc", "net"} <= set(rows.texts):
        mcc, net = rows.whole("mcc"), rows.whole("net")
        codes, values = pd.factorize(mcc * 100_000 + net)
        return codes.astype(np.int64), tuple(f"{v // 100_000}-{v % 100_000:02d}" for v in values.tolist())
    return np.zeros(len(rows), dtype=np.int64), ("",)


def _chosen_operator(
    operator: str | None, codes: NDArray[np.int64], names: tuple[str, ...], good: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which rows are the chosen operator's."""
    if operator is None:
        return np.ones(len(codes), dtype=bool)
    asked = _operator_key(operator)
    wanted = [k for k, name in enumerate(names) if _operator_key(name) == asked]
    chosen = np.isin(codes, wanted)
    if not (chosen & good).any() and good.any():
        counts = np.bincount(codes[good], minlength=len(names))
        order = [k for k in np.argsort(-counts, kind="stable") if counts[k] and names[k]]
        listed = ", ".join(f"{names[k]} ({counts[k]})" for k in order[:LISTED_OPERATORS])
        more = f" and {len(order) - LISTED_OPERATORS} more" if len(order) > LISTED_OPERATORS else ""
        msg = f"`operator` = {operator!r}: no such rows; the file has {listed or 'no operators'}{more}"
        raise CityError(msg)
    return chosen


def _operator_key(name: str) -> str:
    """Return a name as it is compared: 208-1 is 208-01, and capitals do not count."""
    mcc, dash, net = name.strip().partition("-")
    if dash and mcc.isdecimal() and net.isdecimal():
        return f"{int(mcc)}-{int(net)}"
    return " ".join(name.casefold().split())


def _suspects(rows: SiteRows, kept: NDArray[np.int64], site: NDArray[np.int64]) -> list[Problem]:
    """Return rows that are used but look odd; each site, however many rows it has, counts once in a place."""
    import pandas as pd

    lonlat = rows.lonlat[kept]
    table = pd.DataFrame({"lon": lonlat[:, 0], "lat": lonlat[:, 1], "site": site})
    places = table.drop_duplicates().groupby(["lon", "lat"], as_index=False).size()
    together = table.merge(places, on=["lon", "lat"], how="left")["size"].to_numpy()
    stacked = together > max(STACKED_ROWS, STACKED_SHARE * len(np.unique(site)))
    found = [("stacked", SUSPECT["stacked"], kept[stacked])]
    if not rows.stated_crs and (step := _grid(lonlat)):
        cause = SUSPECT["coarse"].format(step=step, metres=step * METRES_PER_DEGREE)
        found.insert(0, ("coarse", cause, kept[_on_grid(lonlat, step)]))
    return [
        Problem(reason, cause, at, _samples(rows, at), used=True) for reason, cause, at in found if at.size
    ]


def _grid(lonlat: NDArray[np.float64]) -> float:
    """Return the finest step that more places are rounded to than chance would have it, 0 if none is."""
    step = 0.0
    for finer, share in COARSE_DEG.items():
        if _on_grid(lonlat, finer).sum() > share * len(lonlat):
            step = finer
    return step


def _on_grid(lonlat: NDArray[np.float64], step: float) -> NDArray[np.bool_]:
    steps = lonlat / step
    return np.asarray((np.abs(steps - np.rint(steps)) < 1e-6).all(axis=1))
