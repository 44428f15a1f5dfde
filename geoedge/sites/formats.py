"""Files of sites of every kind as one table of rows, recognised by what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._columns import (
    CELL_HEADER,
    CELL_ROLES,
    DEGREE_PARTS,
    LAT_NAMES,
    LON_NAMES,
    ROLES,
    find_columns,
    format_name,
    given_columns,
    is_cell_record,
    plain_name,
)
from geoedge.sites._delimited import Delimited, as_utf8, split_records
from geoedge.sites._geo import read_geo, read_osm
from geoedge.sites._packing import Content, check_name, open_content
from geoedge.sites._rows import SiteRows, check_metres, numbers, to_degrees

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["FORMATS", "known_crs", "read_rows"]

FORMATS = "CSV, GeoJSON, GeoPackage, shapefile or OpenStreetMap file, packed or not"
"""What sites may come as, in words."""

DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
SOUTH_OR_WEST = ("S", "W", "O")
"""First letters of the hemispheres that count as negative, ouest among them."""


def read_rows(
    path: Path, *, columns: Mapping[str, str] | str | None = None, crs: str | None = None
) -> SiteRows:
    """Return the rows of a file of sites.

    Parameters
    ----------
    path
        The file.
    columns
        Which column is what, where that cannot be guessed: ``"lon=LONGITUDE,lat=LATITUDE,operator=OWNER"``.
    crs
        CRS of the coordinates of a file that states none, for example ``"EPSG:2154"``; degrees by default.

    Raises
    ------
    CityError
        If the file cannot be read, or has no column of longitude and latitude.
    """
    given, projection = given_columns(columns), None if crs is None else known_crs(crs)
    with open_content(path) as content:
        if content.kind == "table":
            rows = _read_table(path, content, given, projection)
        elif content.kind in ("osm", "pbf"):
            rows = read_osm(path, content)
        else:
            rows = read_geo(path, content, given, projection)
        if content.packed:
            rows.facts["packed"] = content.packed
        return rows


def known_crs(crs: str) -> Any:
    """Return a CRS by its name.

    Parameters
    ----------
    crs
        For example ``"EPSG:2154"``.

    Raises
    ------
    CityError
        If it is unknown, or does not say where on Earth a point is.
    """
    from pyproj import CRS, Transformer
    from pyproj.exceptions import CRSError, ProjError

    try:
        found = CRS.from_user_input(crs)
        Transformer.from_crs(found, "EPSG:4326", always_xy=True)
    except (CRSError, ProjError) as error:
        reason = " ".join(str(error).split())[:80]
        msg = f"`crs` = {crs!r} is no coordinate reference system of the Earth ({reason}); name one such as EPSG:2154"
        raise CityError(msg) from None
    return found


def _read_table(path: Path, content: Content, given: dict[str, str], crs: Any) -> SiteRows:
    """Read text in columns, with or without a header."""
    text, encoding = as_utf8(content.data)
    records = split_records(text)
    header, headless = _header(records, given)
    found = find_columns(path, header, given, projected=crs is not None)
    reader = _Table(records, header, headless, found, crs)
    if records is None:
        msg = f"{path}: is empty; a file of sites has rows"
        raise CityError(msg)
    if not (reader.parts or {"lon", "lat"} <= set(found) or "pair" in found):
        check_name(path)
        msg = (
            f"{path}: a CSV of sites needs a header with longitude ({', '.join(LON_NAMES[:5])}) and latitude "
            f"({', '.join(LAT_NAMES[:3])}), not {', '.join(header[:8])}; or name the columns, as lon=4,lat=5"
        )
        raise CityError(msg)
    return reader.rows(path, encoding)


def _header(records: Delimited | None, given: dict[str, str]) -> tuple[list[str], bool]:
    """Return the names of the columns, and whether they are not in the file."""
    if records is None:
        return [], True
    if is_cell_record(records.first):
        return list(CELL_HEADER), True
    places = [given.get(axis, "") for axis in ("lon", "lat")]
    if all(place.isdecimal() and 0 < int(place) <= len(records.first) for place in places):
        import pyarrow as pa

        values = numbers(pa.array([records.first[int(place) - 1] for place in places]))
        if np.isfinite(values).all():
            return [f"column {k + 1}" for k in range(len(records.first))], True
    return [name.strip() for name in records.first], False


class _Table:
    """A table on its way to rows."""

    def __init__(
        self, records: Delimited | None, header: list[str], headless: bool, found: dict[str, int], crs: Any
    ) -> None:
        plain = [plain_name(name) for name in header]
        names = DEGREE_PARTS["lon"] + DEGREE_PARTS["lat"]
        self.parts = [plain.index(name) for name in names] if set(names) <= set(plain) else []
        self.records, self.header, self.headless, self.found, self.crs = records, header, headless, found, crs

    def rows(self, path: Path, encoding: str) -> SiteRows:
        """Return the rows."""
        assert self.records is not None
        records, skip = self.records, 0 if self.headless else 1
        roles = [role for role in self.found if role not in ("lon", "lat", "pair")]
        places = self._places()
        wanted = [self.found[role] for role in roles] + places
        arrays, count = records.columns(wanted, skip)
        texts = dict(zip(roles, (_trimmed(array) for array in arrays), strict=False))
        lonlat = self._lonlat(arrays[len(roles) :])
        if self.crs is not None:
            check_metres(path, lonlat, self.crs)
        fixed = set(CELL_ROLES) <= set(texts)
        width = len(records.first)
        return SiteRows(
            format=format_name(self.header, headless=self.headless),
            lonlat=lonlat if self.crs is None else to_degrees(lonlat, self.crs),
            texts=texts,
            malformed=(count > width) | (count == 0) | (fixed & (count < width)),
            text=lambda row: records.text(row + skip),
            columns={role: self.header[at] for role, at in self._named().items()},
            facts={
                "delimiter": DELIMITER_NAMES.get(records.delimiter, records.delimiter),
                "encoding": encoding,
                **({} if self.crs is None else {"CRS": self.crs.to_string()}),
            },
            notes=tuple(self._repeated()),
            stated_crs=self.crs is not None,
            lines=True,
        )

    def _named(self) -> dict[str, int]:
        """Return the columns to report."""
        order = [role for role in (*ROLES, "pair") if role in self.found]
        named = {role: self.found[role] for role in order}
        if self.parts:
            named |= {"lon": self.parts[0], "lat": self.parts[4]}
        return named

    def _repeated(self) -> Iterator[str]:
        """Yield what to say of columns that are used and whose name stands more than once in the header."""
        plain = [plain_name(name) for name in self.header]
        for at in dict.fromkeys(self._named().values()):
            if (times := plain.count(plain[at])) > 1 and plain[at]:
                yield (
                    f"the header has {self.header[at]!r} {times} times; column {at + 1} is used, "
                    "and another may be named by its number"
                )

    def _places(self) -> list[int]:
        if self.parts:
            return self.parts
        return [self.found["pair"]] if "pair" in self.found else [self.found["lon"], self.found["lat"]]

    def _lonlat(self, arrays: list[Any]) -> NDArray[np.float64]:
        """Return coordinates from two columns, from one that holds both, or from degrees, minutes and seconds."""
        import pyarrow.compute as pc

        if self.parts:
            return np.column_stack([_from_parts(arrays[:4]), _from_parts(arrays[4:])])
        if "pair" in self.found:
            words = pc.replace_substring_regex(
                arrays[0], r"^[\s\[(]*(\S+?)\s*[,;\s]\s*(\S+?)[\s\])]*$", r"\1 \2"
            )
            halves = [pc.replace_substring_regex(words, r"^(\S+) (\S+)$", rf"\{k}") for k in (2, 1)]
            return np.column_stack([numbers(half) for half in halves])
        return np.column_stack([numbers(array) for array in arrays])


def _trimmed(array: Any) -> Any:
    import pyarrow.compute as pc

    return pc.utf8_trim_whitespace(array)


def _from_parts(arrays: list[Any]) -> NDArray[np.float64]:
    """Return degrees from degrees, minutes, seconds and hemisphere; NaN where they are no angle."""
    degrees, minutes, seconds = (numbers(array) for array in arrays[:3])
    letters = np.array(arrays[3].to_pylist(), dtype=object)
    negative = np.array([str(letter).strip().upper()[:1] in SOUTH_OR_WEST for letter in letters], dtype=bool)
    angle = degrees + minutes / 60.0 + seconds / 3600.0
    with np.errstate(invalid="ignore"):
        fair = (degrees >= 0) & (minutes >= 0) & (minutes < 60) & (seconds >= 0) & (seconds < 60)
    return np.where(fair, np.where(negative, -angle, angle), np.nan)
