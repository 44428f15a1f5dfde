"""Buildings from a file of their own: a GeoPackage, GeoJSON or Shapefile of footprints beside a map of streets."""

from __future__ import annotations

import hashlib
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import shapely

from geoedge.errors import CityError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from geoedge.city.read import Bbox, MapData

__all__ = ["FOOTPRINT_SUFFIXES", "check_footprints", "footprints_checksum", "take_footprints"]

FOOTPRINT_SUFFIXES = (".gpkg", ".geojson", ".json", ".shp", ".zip")
"""GeoPackage, GeoJSON, Shapefile, zipped Shapefile."""

_TAG_OF = {
    "building:levels": "building:levels",
    "building_levels": "building:levels",
    "building:l": "building:levels",  # as a Shapefile cuts the two above to ten characters
    "building_l": "building:levels",
    "levels": "building:levels",
    "storeys": "building:levels",
    "floors": "building:levels",
    "num_floors": "building:levels",
} | {key: key for key in ("building", "height", "amenity", "shop", "office", "tourism")}
_SHAPEFILE_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")
_MOST_NOTES = 3
_LONGEST_NOTE = 160


def check_footprints(path: Path) -> None:
    """Refuse what cannot be a file of footprints.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    CityError
        If it is missing, a folder, or of another kind.
    """
    if not path.is_file():
        msg = f"`city.buildings`: no file {path}; give an existing {', '.join(FOOTPRINT_SUFFIXES)}, or leave it out"
        raise CityError(msg)
    if not path.name.lower().endswith(FOOTPRINT_SUFFIXES):
        msg = (
            f"`city.buildings`: {path.name} is none of {', '.join(FOOTPRINT_SUFFIXES)} "
            "(GeoPackage, GeoJSON, Shapefile, zipped Shapefile); convert it"
        )
        raise CityError(msg)


def footprints_checksum(path: Path) -> str:
    """Return the sha256 of a file of footprints; of all its parts if it is a Shapefile.

    Parameters
    ----------
    path
        The file.
    """
    parts = [path]
    if path.suffix.lower() == ".shp":
        beside = {other.suffix.lower(): other for other in path.parent.glob(f"{path.stem}.*")}
        parts = [beside[suffix] for suffix in _SHAPEFILE_PARTS if suffix in beside]
    whole = hashlib.sha256()
    for part in parts:
        with part.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest() if len(parts) > 1 else stream.read())
    return whole.hexdigest()


def take_footprints(data: MapData, path: Path, window: Bbox | None) -> None:
    """Put the buildings of a file in the place of those that a map has.

    Columns are read as OpenStreetMap tags: ``building`` (the use), storeys (``building:levels``, ``levels``,
    ``num_floors``, ``floors`` or ``storeys``), ``height`` [m], ``amenity``, ``shop``, ``office`` and ``tourism``, in
    any case. Rows that are no areas, come twice, have ``building`` = no or lie outside are counted in
    `data.buildings_file`.

    Parameters
    ----------
    data
        What the map holds.
    path
        A GeoPackage, GeoJSON, Shapefile or zipped Shapefile of polygons.
    window
        West, south, east, north of the part to keep [degree]; by default the extent of the map's streets.

    Raises
    ------
    CityError
        If the file cannot be read, or holds no building there.
    """
    rows = _read(path, _extent(data) if window is None else window)
    if not rows.shapes:
        msg = (
            f"`city.buildings`: {path.name} has no building among the city's streets ({rows.total} rows near them, "
            f"dropped: {_counted(rows.dropped)}); check the place and the CRS of the file"
        )
        raise CityError(msg)
    data.buildings_file = {
        "name": path.name,
        "rows": rows.total,
        "dropped": rows.dropped,
        "replaced": len(data.buildings),
        **({"notes": rows.notes} if rows.notes else {}),
    }
    data.buildings, data.building_tags = rows.shapes, rows.tags


class _Footprints(NamedTuple):
    """Areas [degree], their tags, rows near the window, rows of them dropped by reason, and what the reader said."""

    shapes: list[Any]
    tags: list[dict[str, str]]
    total: int
    dropped: dict[str, int]
    notes: list[str]


def _extent(data: MapData) -> Bbox:
    """Return the rectangle around all streets [degree]."""
    if not data.ways:
        return (-180.0, -90.0, 180.0, 90.0)  # a map without streets is refused later, in words of its own
    lonlat = np.concatenate([way.lonlat for way in data.ways])
    west, south = lonlat.min(axis=0).tolist()
    east, north = lonlat.max(axis=0).tolist()
    return west, south, east, north


def _counted(dropped: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count) or "none"


def _read(path: Path, window: Bbox) -> _Footprints:
    """Return the footprints of a file that lie in a window."""
    frame, notes = _frame(path, window)
    shapes, trouble = _areas(path, frame, window)
    keep = np.flatnonzero(trouble == "")
    tags = _tags(frame.drop(columns=frame.geometry.name).iloc[keep])
    built = [index for index, one in enumerate(tags) if one.get("building") != "no"]
    dropped = {reason: int((trouble == reason).sum()) for reason in ("not an area", "twice", "outside")}
    dropped["not a building"] = len(tags) - len(built)
    return _Footprints(
        [shapes[keep[index]] for index in built],
        [{"building": "yes", **tags[index]} for index in built],
        len(frame),
        dropped,
        notes,
    )


def _frame(path: Path, window: Bbox) -> tuple[Any, list[str]]:
    """Return the rows near a window with the columns that say something, and what the reader warned of."""
    import geopandas

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            layer = _layer(path, geopandas.list_layers(path))
            head = geopandas.read_file(path, layer=layer, rows=0)
            columns = [name for name in head.columns if name.lower() in _TAG_OF]
            near = geopandas.GeoSeries([shapely.box(*window)], crs="EPSG:4326") if head.crs else None
            frame = geopandas.read_file(path, layer=layer, columns=columns, bbox=near)
        except (RuntimeError, ValueError, OSError) as error:
            reason = " ".join(str(error).split())[:120]
            msg = f"`city.buildings`: {path.name} cannot be read ({reason}); save it as a GeoPackage of polygons"
            raise CityError(msg) from error
    said = dict.fromkeys(" ".join(str(one.message).split())[:_LONGEST_NOTE] for one in caught)
    return frame, list(said)[:_MOST_NOTES]


def _layer(path: Path, layers: Any) -> str:
    """Return the one layer that may hold areas."""
    kinds = ("Polygon", "Unknown", "GeometryCollection")
    pairs = zip(layers["name"], layers["geometry_type"], strict=True)
    found = [
        str(name) for name, kind in pairs if isinstance(kind, str) and any(word in kind for word in kinds)
    ]
    if len(found) != 1:
        has = f"{len(found)} layers of them: {', '.join(found[:5])}" if found else "no layer of polygons"
        msg = f"`city.buildings`: {path.name} must hold one layer of footprints and has {has}; save that layer alone"
        raise CityError(msg)
    return found[0]


def _areas(path: Path, frame: Any, window: Bbox) -> tuple[NDArray[Any], NDArray[np.object_]]:
    """Return valid areas [degree] of all rows, and why a row is of no use, empty where it is; each of shape (n,)."""
    shapes = _degrees(path, frame.geometry)
    trouble = np.full(len(shapes), "", dtype=object)
    area = np.isin(shapely.get_type_id(shapes), (3, 6)) & np.isfinite(shapely.area(shapes))
    shapes[area] = shapely.make_valid(shapely.force_2d(shapes[area]))
    area &= shapely.area(shapes) > 0.0
    trouble[~area] = "not an area"
    centre = np.full((len(shapes), 2), np.nan)
    centre[area] = shapely.get_coordinates(shapely.centroid(shapes[area]))
    west, south, east, north = window
    lon, lat = centre.T
    trouble[area & ~((lon >= west) & (lon <= east) & (lat >= south) & (lat <= north))] = "outside"
    used = np.flatnonzero(trouble == "")
    trouble[used[_repeated(shapes[used])]] = "twice"
    return shapes, trouble


def _repeated(shapes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which shapes equal an earlier one, shape (n,)."""
    codes = shapely.to_wkb(shapely.normalize(shapes)).tolist()
    first: dict[bytes, int] = {}
    return np.array([first.setdefault(code, index) < index for index, code in enumerate(codes)], dtype=bool)


def _degrees(path: Path, geometry: Any) -> NDArray[Any]:
    """Return shapes in WGS 84 degrees; those of a file that states no CRS are taken for such."""
    if geometry.crs is None:
        bounds = geometry.total_bounds
        if np.isfinite(bounds).all() and (np.abs(bounds) > (180.0, 90.0, 180.0, 90.0)).any():
            msg = (
                f"`city.buildings`: {path.name} states no CRS, and its coordinates, up to {np.abs(bounds).max():g}, "
                "are no degrees; save it with its CRS"
            )
            raise CityError(msg)
        return np.array(geometry.array, dtype=object)
    try:
        return np.array(geometry.to_crs("EPSG:4326").array, dtype=object)
    except RuntimeError as error:
        msg = f"`city.buildings`: the CRS of {path.name}, {geometry.crs.name!r}, cannot be turned into degrees; save it in WGS 84"
        raise CityError(msg) from error


def _tags(table: Any) -> list[dict[str, str]]:
    """Return the rows of a table as OpenStreetMap tags; numbers that are missing or not positive say nothing."""
    found: list[dict[str, str]] = [{} for _ in range(len(table))]
    for name in table.columns:
        column = table[name]
        numeric = column.dtype.kind in "iuf"
        for row, value in zip(found, column.tolist(), strict=True):
            if numeric and value > 0.0:
                row[_TAG_OF[name.lower()]] = f"{value:g}"
            elif isinstance(value, str) and value.strip():
                row[_TAG_OF[name.lower()]] = value.strip()
    return found
