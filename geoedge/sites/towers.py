"""Real sites from files of one's own: read, cleaned and grouped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.files import keep_apart
from geoedge.sites._causes import check_spread, utm_zone
from geoedge.sites._rows import counted
from geoedge.sites.cleaning import Cleaned, clean
from geoedge.sites.formats import FORMATS, read_rows
from geoedge.sites.grouping import Grouping, group_rows, row_weights, site_names
from geoedge.sites.layout import Layout
from geoedge.sites.quarantine import write_quarantine

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City

__all__ = ["clean_file", "make_sites", "read_sites", "site_operators"]

LISTED_OPERATORS = 8
CHAIN = 3.0
"""A merged site is called wide if one of its members is farther from its middle than so many merge distances."""


def read_sites(
    path: str | Path,
    city: City,
    *,
    merge_distance_m: float = 0.0,
    profile_names: Sequence[str] = (),
    operator: str | None = None,
    radio: str | None = None,
    columns: Mapping[str, str] | str | None = None,
    crs: str | None = None,
    quarantine: str | Path | None = None,
) -> Layout:
    """Read sites from a file of one's own.

    What the file is, is told by its content: cell lists of OpenCelliD and the Mozilla Location Service, lists of ACMA
    and ANFR, any table with columns of longitude and latitude (or eastings and northings with `crs`), and perhaps
    name, operator, radio and profile; GeoJSON, GeoPackage and shapefiles, of which any geometry counts by a
    representative point; masts of an OpenStreetMap file; packed with gzip, bzip2, xz or zip or not. Rows without
    usable coordinates and sites outside the city are dropped and counted in the layout's report, nothing is
    repaired. Rows that name one site are one, as are sites of one operator within `merge_distance_m`. Sites whose
    profile the file states are never merged.

    Parameters
    ----------
    path
        The file.
    city
        The city the sites stand in.
    merge_distance_m
        Sites within this distance are one [m].
    profile_names
        Names the profile column may use; otherwise it must hold profile numbers.
    operator
        The only operator to keep, by name or as ``"208-01"``; all by default.
    radio
        The only technologies to keep, such as ``"LTE"`` or ``"LTE,NR"``; all by default.
    columns
        Which column is what, where that cannot be guessed: ``"lon=LONGITUDE,lat=LATITUDE,operator=OWNER"``.
    crs
        CRS of the coordinates of a file that states none, for example ``"EPSG:2154"``; degrees by default.
    quarantine
        CSV file to write the rows to that cannot be used.

    Raises
    ------
    CityError
        If the file is missing, cannot be read, or leaves no site inside the city.
    """
    path, cleaned = clean_file(path, city, operator, radio, columns, crs, quarantine)
    return make_sites(path, cleaned, city, merge_distance_m, profile_names)[0]


def clean_file(
    path: str | Path,
    city: City | None,
    operator: str | None,
    radio: str | None,
    columns: Mapping[str, str] | str | None,
    crs: str | None,
    quarantine: str | Path | None,
) -> tuple[Path, Cleaned]:
    """Return a file's path and its rows, sorted out, with at least one that can be used.

    Parameters
    ----------
    path, city, operator, radio, columns, crs, quarantine
        As for `read_sites`; the city may be left out with None.

    Raises
    ------
    CityError
        If the file is missing, cannot be read, or leaves no row.
    """
    path = Path(path)
    if not path.is_file():
        msg = f"`sites.source`: no file {path}; give hosts, a point process such as poisson, or a {FORMATS}"
        raise CityError(msg)
    keep_apart({"the file of sites": path}, {"quarantine": quarantine})
    cleaned = clean(read_rows(path, columns=columns, crs=crs), city, operator=operator, radio=radio)
    if quarantine is not None:
        write_quarantine(cleaned, quarantine)
    if not cleaned.kept.size:
        reasons = ", ".join(f"{count} {reason}" for reason, count in cleaned.dropped.items() if count)
        where = f"no site inside {city.name}" if city is not None else "no usable site"
        msg = f"{path}: {where}: of {counted(len(cleaned.rows), 'row')} {reasons or 'none'}; check lon/lat"
        raise CityError("; ".join([msg, *cleaned.rows.notes]))
    return path, cleaned


def make_sites(
    path: Path, cleaned: Cleaned, city: City | None, merge_distance_m: float, profile_names: Sequence[str]
) -> tuple[Layout, Grouping]:
    """Return the layout of the rows that are kept, and how it was made of them.

    Parameters
    ----------
    path, city, merge_distance_m, profile_names
        As for `read_sites`; the city may be left out with None.
    cleaned
        The rows, sorted out.

    Raises
    ------
    CityError
        If the merge distance is negative, or a stated profile unknown.
    """
    rows, kept = cleaned.rows, cleaned.kept
    if not (np.isfinite(merge_distance_m) and merge_distance_m >= 0.0):
        msg = f"`merge_distance_m` = {merge_distance_m:g}: must be 0 m or more"
        raise CityError(msg)
    if city is None:
        check_spread(path, rows.lonlat[kept])
    crs = city.crs if city is not None else utm_zone(*np.median(rows.lonlat[kept], axis=0))
    xy = _projected(rows.lonlat[kept], crs)
    stated = "profile" in rows.texts
    key, rule = cleaned.site, cleaned.rule
    if stated:
        key, rule, merge_distance_m = np.arange(len(kept)), "every row on its own: profiles are stated", -1.0
    made = group_rows(xy, key, cleaned.operator[kept], row_weights(rows, kept), merge_distance_m)
    places = made.xy if city is None else _on_land(made, xy, city)
    profile = np.zeros(len(made.xy), dtype=np.int64)
    if stated:
        profile = _profiles(path, rows.take("profile", kept), profile_names)
    operators, _ = site_operators(cleaned, made)
    layout = Layout(
        xy=places,
        profile=profile,
        name=tuple(site_names(rows, cleaned.radio, kept, made)),
        kind=tuple(name or "file" for name in operators),
        label=f"sites of {path.name}",
        crs=crs,
        report=_report(path, cleaned, made, rule, merge_distance_m, stated),
    )
    return layout, made


def _on_land(made: Grouping, xy: NDArray[np.float64], city: City) -> NDArray[np.float64]:
    """Return the places of the sites; a mean of rows that is outside the city gives way to the nearest of them."""
    places = made.xy.copy()
    for site in np.flatnonzero(~city.contains(places)).tolist():
        rows = xy[made.group == site]
        places[site] = rows[np.argmin(np.hypot(*(rows - places[site]).T))]
    return places


def _projected(lonlat: NDArray[np.float64], crs: str) -> NDArray[np.float64]:
    from pyproj import Transformer

    transformer = Transformer.from_crs("EPSG:4326", crs, always_xy=True)
    return np.column_stack(transformer.transform(lonlat[:, 0], lonlat[:, 1]))


def _report(
    path: Path, cleaned: Cleaned, made: Grouping, rule: str, merge_distance_m: float, stated: bool
) -> dict[str, Any]:
    """Return what was read, dropped, grouped and merged, in plain values."""
    rows, kept = cleaned.rows, cleaned.kept
    problems = [item.to_dict() for item in cleaned.problems]
    notes = [*rows.notes, *_notes(cleaned, made, merge_distance_m)]
    return {
        "file": path.name,
        "format": rows.format,
        "facts": dict(rows.facts),
        "columns": dict(rows.columns),
        "rows": len(rows),
        "kept": int(kept.size),
        "dropped": cleaned.dropped,
        "dropped_rows": {item["reason"]: item["rows"] for item in problems if not item["used"]},
        "problems": problems,
        "filtered": dict(cleaned.filtered),
        "operators": cleaned.operator_counts(),
        "radios": cleaned.radio_counts(),
        "grouped": rule,
        "objects": made.objects,
        "merge_distance_m": max(merge_distance_m, 0.0),
        "merged": int(kept.size - len(made.xy)),
        "sites": len(made.xy),
        "profiles_placed": stated,
        **({"notes": notes} if notes else {}),
        "checksum": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def _notes(cleaned: Cleaned, made: Grouping, merge_distance_m: float) -> list[str]:
    """Return what the reader of a report should know about how sites were made."""
    notes = []
    operators = [name for name in cleaned.operator_counts() if name]
    if len(operators) > 1:
        listed = ", ".join(operators[:LISTED_OPERATORS])
        more = f" and {len(operators) - LISTED_OPERATORS} more" if len(operators) > LISTED_OPERATORS else ""
        notes.append(
            f"sites of {len(operators)} operators ({listed}{more}) lie over each other and read as more random than "
            "those of one; look at one operator alone"
        )
    if len(states := cleaned.counts("status")) > 1:
        listed = ", ".join(
            f"{name or 'none'} {count}" for name, count in list(states.items())[:LISTED_OPERATORS]
        )
        notes.append(f"the file states how far each is built ({listed}); all of them count as sites")
    if made.scattered.size:
        notes.append(
            f"{made.scattered.size} rows belong to sites whose rows are more than 2 km from their middle; their place is a guess"
        )
    if merge_distance_m > 0 and made.widest_m > CHAIN * merge_distance_m:
        notes.append(
            f"merging in steps of {merge_distance_m:g} m made sites that reach {made.widest_m:.0f} m from their middle; "
            "use a smaller merge distance"
        )
    return notes


def site_operators(cleaned: Cleaned, made: Grouping) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the operator of each site, and its technologies from old to new.

    Parameters
    ----------
    cleaned
        The rows, sorted out.
    made
        The sites they were grouped to.
    """
    from geoedge.sites._cells import RADIOS

    first = cleaned.kept[made.first]
    operators = tuple(cleaned.operators[k] for k in cleaned.operator[first].tolist())
    radio = cleaned.radio[cleaned.kept]
    found: list[list[str]] = [[] for _ in operators]
    for name in RADIOS:
        for site in np.unique(made.group[radio == name]).tolist():
            found[site].append(name)
    return operators, tuple(", ".join(names) for names in found)


def _profiles(path: Path, written: list[str], names: Sequence[str]) -> NDArray[np.int64]:
    """Return profile numbers from names or numbers."""
    number = {name: k for k, name in enumerate(names)}
    found = []
    for text in written:
        value = number.get(text)
        if value is None and text.replace(".0", "", 1).isdigit():
            value = int(float(text))
        if value is None or (names and value >= len(names)):
            allowed = ", ".join(names) if names else "profile numbers 0, 1, ..."
            msg = f"{path}: profile {text!r} is unknown; allowed: {allowed}"
            raise CityError(msg)
        found.append(value)
    return np.array(found, dtype=np.int64)
