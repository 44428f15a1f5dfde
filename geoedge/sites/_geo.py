"""Rows of sites from files with geometry: GeoJSON, GeoPackage, shapefiles, and masts on an OpenStreetMap file."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._columns import find_columns
from geoedge.sites._packing import Content
from geoedge.sites._rows import SiteRows, check_metres

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["MAST_KEYS", "read_geo", "read_osm"]

MAST_KEYS = ("man_made", "telecom")
"""Keys whose places on an OpenStreetMap file are masts, antennas and exchanges."""

NAMES = {"geojson": "GeoJSON", "geopackage": "GeoPackage", "shapefile": "shapefile"}

HARMLESS_WARNINGS = (
    "Several features with id",  # ids are not used
    "Measured (M) geometry types are not supported",  # nor is a measure along a line
    "too many members in array",  # nor is a fourth coordinate
    "as JSON; leaving as string",  # names may be any text
    "non conformant file extension",  # the file is told by its content
)
"""What the readers of files warn of without harm to a site's place, name or profile."""


def read_geo(path: Path, content: Content, given: Mapping[str, str], crs: Any) -> SiteRows:
    """Return the rows of a file with geometry; any geometry counts by a representative point.

    Parameters
    ----------
    path
        The file, as the user named it.
    content
        What it holds.
    given
        Columns that the user names, by role.
    crs
        Its CRS if it states none; None for degrees.

    Raises
    ------
    CityError
        If it cannot be read, has no geometry, or a CRS without a place on Earth.
    """
    import geopandas
    import pyarrow as pa

    if inapplicable := {"lon", "lat"} & set(given):
        msg = f"{path}: `columns` names {sorted(inapplicable)[0]}, but a {NAMES[content.kind]} file has geometry; leave lon and lat out"
        raise CityError(msg)
    frame, notes = _frame(path, content)
    if not isinstance(frame, geopandas.GeoDataFrame):
        msg = f"{path}: has no geometry; save it with one"
        raise CityError(msg)
    lonlat, more, stated = _points(path, frame, crs)
    header = [str(column) for column in frame.columns]
    found = {
        role: at
        for role, at in find_columns(path, header, given).items()
        if role not in ("lon", "lat", "pair")
    }
    return SiteRows(
        format=NAMES[content.kind],
        lonlat=lonlat,
        texts={role: pa.array(_texts(frame.iloc[:, at]), pa.string()) for role, at in found.items()},
        malformed=np.zeros(len(frame), dtype=bool),
        text=lambda row: _row_text(frame, row),
        columns={role: header[at] for role, at in found.items()},
        facts={"CRS": stated},
        notes=(*notes, *more),
        stated_crs=crs is not None or stated != "EPSG:4326",
    )


def _frame(path: Path, content: Content) -> tuple[Any, list[str]]:
    """Return the table of a file, and what its reader warned of that is not harmless, each once."""
    import geopandas
    from shapely.errors import ShapelyError

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = geopandas.read_file(content.path)
    except (RuntimeError, ValueError, OSError, ShapelyError) as error:
        reason = str(error).splitlines()[0].replace(str(content.path), path.name)
        msg = f"{path}: cannot be read as {NAMES[content.kind].casefold()}: {reason}"
        raise CityError(msg) from error
    texts = dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    return frame, [text for text in texts if not any(known in text for known in HARMLESS_WARNINGS)]


def _points(path: Path, frame: Any, crs: Any) -> tuple[NDArray[np.float64], list[str], str]:
    """Return one place a row [degree], NaN where there is none, what is wrong, and the CRS."""
    notes = []
    shapes = frame.geometry
    if shapes.crs is None and crs is None:
        notes.append("the file states no CRS; WGS 84 degrees assumed")
    if shapes.crs is None:
        shapes = shapes.set_crs("EPSG:4326" if crs is None else crs)
    elif crs is not None and shapes.crs != crs:
        notes.append(f"the file states its CRS, {shapes.crs.to_string()[:60]}; the one given is not used")
    if crs is not None and frame.geometry.crs is None:
        check_metres(path, np.asarray(shapes.total_bounds).reshape(2, 2), shapes.crs)
    usable = ~(shapes.isna() | shapes.is_empty).to_numpy()
    areas = int((usable & (shapes.geom_type != "Point").to_numpy()).sum())
    if areas:
        what = (
            "row is a line, an area or several points"
            if areas == 1
            else "rows are lines, areas or several points"
        )
        notes.append(f"{areas:,} {what}, not one; each counts as one site at a point on it")
    if broken := int((usable & ~shapes.is_valid.to_numpy()).sum()):
        notes.append(f"geometry not valid in rows: {broken}; check where these sites are")
    with np.errstate(invalid="ignore"):  # a coordinate that is no number ends as a missing place
        points = shapes[usable].representative_point()
    try:
        points = points.to_crs("EPSG:4326")
    except RuntimeError as error:
        msg = f"{path}: its CRS {shapes.crs.name!r} cannot be turned into degrees; save the file in WGS 84"
        raise CityError(msg) from error
    lonlat = np.full((len(frame), 2), np.nan)
    lonlat[usable] = np.column_stack([points.x, points.y])
    return lonlat, notes, str(shapes.crs.to_string())


def _texts(column: Any) -> list[str]:
    return ["" if gone else str(value).strip() for value, gone in zip(column, column.isna(), strict=True)]


def _row_text(frame: Any, row: int) -> str:
    """Return a row as JSON, its geometry as well-known text."""
    values = {
        str(name): getattr(value, "wkt", value)
        for name, value in frame.iloc[row].items()
        if value is not None
    }
    return json.dumps(values, ensure_ascii=False, default=str)


def read_osm(path: Path, content: Content) -> SiteRows:
    """Return the masts, antennas and exchanges of an OpenStreetMap file.

    Parameters
    ----------
    path
        The file, as the user named it.
    content
        What it holds.

    Raises
    ------
    CityError
        If it cannot be read.
    """
    import osmium
    import pyarrow as pa

    from geoedge.city.places import place_kind
    from geoedge.city.read import read_map

    try:
        data = read_map(content.path)
    except CityError as error:
        msg = f"{path}: {str(error).removeprefix('city file: ').replace(content.path.name, 'this')}"
        raise CityError(msg) from None
    except (ValueError, osmium.InvalidLocationError) as error:  # of a damaged id or coordinate
        msg = f"{path}: is damaged ({' '.join(str(error).split())[:80]}); download or export it again"
        raise CityError(msg) from None
    kinds = [place_kind(tags) or "" for tags in data.place_tags]
    masts = [k for k, kind in enumerate(kinds) if kind.partition("=")[0] in MAST_KEYS]
    tags = [data.place_tags[k] for k in masts]
    counts = Counter(kinds[k] for k in masts)
    return SiteRows(
        format="OpenStreetMap file",
        lonlat=np.array([data.places[k] for k in masts], dtype=np.float64).reshape(-1, 2),
        texts={
            "name": pa.array([each.get("name", "") for each in tags], pa.string()),
            "operator": pa.array([each.get("operator", "") for each in tags], pa.string()),
        },
        malformed=np.zeros(len(masts), dtype=bool),
        text=lambda row: json.dumps(tags[row], ensure_ascii=False),
        facts={
            "taken": ", ".join(f"{count} {kind}" for kind, count in counts.items()) or "none",
            "left": f"{len(kinds) - len(masts)} places of other kinds",
        },
        stated_crs=True,
    )
