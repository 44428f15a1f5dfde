"""Real sites: candidate hosts on the map of a city, and files of one's own."""

from __future__ import annotations

import csv
import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from geoedge.errors import CityError
from geoedge.sites.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City

__all__ = ["HOST_KINDS", "host_layout", "merge_nearby", "read_sites"]

HOST_KINDS = (
    "man_made=mast",
    "man_made=communications_tower",
    "man_made=antenna",
    "man_made=MDF",
    "man_made=telephone_office",
    "man_made=telephone_exchange",
    "telecom=exchange",
    "telecom=central_office",
    "telecom=data_center",
    "telecom=data_centre",
    "telecom=antenna",
    "telecom=bts",
    "amenity=post_office",
    "amenity=police",
    "amenity=townhall",
    "amenity=fire_station",
    "amenity=hospital",
    "amenity=fuel",
)
"""Places where an edge box could stand, the likeliest first; a merged site is called after the first of them."""

HOSTS_LABEL = "candidate hosts from OpenStreetMap, not an operator's network"

LON_NAMES = ("lon", "lng", "long", "longitude", "x", "lon_deg", "wgs84_lon")
LAT_NAMES = ("lat", "latitude", "y", "lat_deg", "wgs84_lat")
NAME_NAMES = ("name", "site", "site_id", "id", "enb", "label")
SAMPLE_ROWS = 5
"""How many of the dropped rows a report names, by reason."""

HARMLESS_WARNINGS = (
    "Several features with id",  # ids are not used
    "Measured (M) geometry types are not supported",  # nor is a measure along a line
    "too many members in array",  # nor is a fourth coordinate
    "as JSON; leaving as string",  # names may be any text
)
"""What the readers of files warn of without harm to a site's place, name or profile."""

MISSING, OUT_OF_RANGE, SWAPPED, OUTSIDE = "missing", "out_of_range", "swapped", "outside"


class _Rows(NamedTuple):
    """Rows of a file: longitude and latitude [degree], name, profile as written (None if no such column), notes."""

    lonlat: NDArray[np.float64]
    name: list[str]
    profile: list[str] | None
    notes: tuple[str, ...] = ()


def merge_nearby(xy: NDArray[np.float64], distance_m: float) -> NDArray[np.int64]:
    """Return a group number for every object; objects linked by steps within the distance are one group.

    Groups are numbered by their first member.

    Parameters
    ----------
    xy
        Positions [m], shape (n, 2).
    distance_m
        Objects at most this far apart belong together [m]; 0 merges identical positions only.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    n = len(xy)
    pairs = cKDTree(xy).query_pairs(distance_m, output_type="ndarray")
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    group = connected_components(links, directed=False)[1]
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def _merged(
    xy: NDArray[np.float64], name: Sequence[str], kind: Sequence[str], distance_m: float
) -> tuple[NDArray[np.float64], tuple[str, ...], tuple[str, ...]]:
    """Return one site per group: the mean place, the first name there is, the first kind."""
    group = merge_nearby(xy, distance_m)
    n = int(group.max()) + 1 if len(group) else 0
    size = np.bincount(group, minlength=n)
    middle = np.column_stack([np.bincount(group, xy[:, axis], n) / size for axis in (0, 1)])
    names, kinds = [""] * n, [""] * n
    for k, g in enumerate(group.tolist()):
        names[g] = names[g] or name[k]
        kinds[g] = kinds[g] or kind[k]
    names = [text or f"site {g}" for g, text in enumerate(names)]
    return middle, tuple(names), tuple(kinds)


def host_layout(city: City, *, merge_distance_m: float = 50.0, kinds: Sequence[str] = HOST_KINDS) -> Layout:
    """Return the places of a city where an edge box could stand.

    They are candidate hosts, not an operator's network, and the layout's label says so.

    Parameters
    ----------
    city
        The city.
    merge_distance_m
        Objects within this distance are one site [m].
    kinds
        Kinds of place that count, the likeliest host first.

    Raises
    ------
    CityError
        If the city has no such place on its land.
    """
    rank = {kind: k for k, kind in enumerate(kinds)}
    order = np.array([rank.get(str(kind), len(rank)) for kind in city.places.kind], dtype=np.int64)
    chosen = np.argsort(order, kind="stable")[: int((order < len(rank)).sum())]
    inside = chosen[city.contains(city.places.xy[chosen])]
    if not inside.size:
        msg = (
            f"city {city.name!r} has none of the {len(kinds)} kinds of host place on its land; "
            'set `sites.source` to "poisson" or to a file of sites'
        )
        raise CityError(msg)
    kind = [str(city.places.kind[k]) for k in inside]
    name = [str(city.places.name[k]) for k in inside]
    xy, names, site_kinds = _merged(city.places.xy[inside], name, kind, merge_distance_m)
    report = {
        "objects": int(chosen.size),
        "dropped": {OUTSIDE: int(chosen.size - inside.size)},
        "merged": int(inside.size - len(xy)),
        "sites": len(xy),
        "profiles_placed": False,
        "objects_by_kind": {k: kind.count(k) for k in kinds if k in kind},
    }
    return Layout(
        xy=xy,
        profile=np.zeros(len(xy), dtype=np.int64),
        name=names,
        kind=site_kinds,
        label=HOSTS_LABEL,
        crs=city.crs,
        report=report,
    )


def read_sites(
    path: str | Path, city: City, *, merge_distance_m: float = 0.0, profile_names: Sequence[str] = ()
) -> Layout:
    """Read sites from a file of one's own.

    CSV needs columns of longitude and latitude (lon, lng, long, longitude or x; lat, latitude or y; WGS 84
    degrees), and may have name and profile. GeoJSON and GeoPackage may hold any geometry, of which a
    representative point counts; without a CRS they are taken for WGS 84 degrees. Rows without usable coordinates and
    sites outside the city are dropped and counted in the layout's report, whose ``notes`` say what else was wrong
    with the file. Sites whose profile the file states are never merged.

    Parameters
    ----------
    path
        A ``.csv``, ``.geojson``, ``.json`` or ``.gpkg`` file.
    city
        The city the sites stand in.
    merge_distance_m
        Sites within this distance are one [m].
    profile_names
        Names the profile column may use; otherwise it must hold profile numbers.

    Raises
    ------
    CityError
        If the file is missing, cannot be read, or leaves no site inside the city.
    """
    path = Path(path)
    if not path.is_file():
        msg = f"`sites.source`: no file {path}; give hosts, a point process such as poisson, or a .csv, .geojson or .gpkg file"
        raise CityError(msg)
    readers = {".csv": _read_csv, ".geojson": _read_geo, ".json": _read_geo, ".gpkg": _read_geo}
    if path.suffix.lower() not in readers:
        msg = f"{path}: sites come as {', '.join(readers)}, not {path.suffix or 'a file without suffix'}"
        raise CityError(msg)
    rows = readers[path.suffix.lower()](path)
    keep, report = _sort_out(rows.lonlat, city)
    if not keep.size:
        reasons = ", ".join(f"{count} {reason}" for reason, count in report["dropped"].items() if count)
        msg = f"{path}: no site inside {city.name}: of {len(rows.lonlat)} rows {reasons or 'none'}; check lon/lat"
        msg = "; ".join([msg, *rows.notes])
        raise CityError(msg)
    xy, name = city.from_lonlat(rows.lonlat[keep]), [rows.name[k] for k in keep]
    profile = (
        None if rows.profile is None else _profiles(path, [rows.profile[k] for k in keep], profile_names)
    )
    if profile is None:
        xy, names, _ = _merged(xy, name, ["file"] * len(xy), merge_distance_m)
    else:
        names = tuple(text or f"site {k}" for k, text in enumerate(name))
    report |= {"merged": int(keep.size - len(xy)), "sites": len(xy), "profiles_placed": profile is not None}
    report |= {"notes": list(rows.notes)} if rows.notes else {}
    report["checksum"] = hashlib.sha256(path.read_bytes()).hexdigest()
    return Layout(
        xy=xy,
        profile=np.zeros(len(xy), dtype=np.int64) if profile is None else profile,
        name=names,
        kind=("file",) * len(xy),
        label=f"sites of {path.name}",
        crs=city.crs,
        report=report,
    )


def _sort_out(lonlat: NDArray[np.float64], city: City) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """Return the rows that are sites inside the city, and why the others are not."""
    reason = np.full(len(lonlat), "", dtype=object)
    finite = np.isfinite(lonlat).all(axis=1)
    reason[~finite] = MISSING
    inside = np.zeros(len(lonlat), dtype=bool)
    flipped = np.zeros(len(lonlat), dtype=bool)
    for flags, columns in ((inside, (0, 1)), (flipped, (1, 0))):
        degrees = lonlat[:, columns]
        legal = finite & (np.abs(degrees[:, 0]) <= 180.0) & (np.abs(degrees[:, 1]) <= 90.0)
        flags[legal] = city.contains(city.from_lonlat(degrees[legal]))
        if columns == (0, 1):
            reason[finite & ~legal] = OUT_OF_RANGE
            reason[legal & ~flags] = OUTSIDE
    reason[flipped & ~inside] = SWAPPED
    dropped = {key: np.flatnonzero(reason == key) for key in (MISSING, OUT_OF_RANGE, SWAPPED, OUTSIDE)}
    report = {
        "rows": len(lonlat),
        "dropped": {key: int(rows.size) for key, rows in dropped.items()},
        "dropped_rows": {
            key: (rows[:SAMPLE_ROWS] + 1).tolist() for key, rows in dropped.items() if rows.size
        },
    }
    return np.flatnonzero(inside), report


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    """Return the position of the first of these names in a header, ignoring case."""
    plain = [text.strip().lower() for text in header]
    return next((plain.index(name) for name in names if name in plain), None)


def _read_csv(path: Path) -> _Rows:
    """Read a CSV file with a header, whatever its delimiter."""
    data = path.read_bytes()
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    lines = text.splitlines()
    delimiter = max(",;\t|", key=lines[0].count) if lines else ","
    rows = list(csv.reader(lines, delimiter=delimiter))
    header = rows[0] if rows else []
    lon, lat = _column(header, LON_NAMES), _column(header, LAT_NAMES)
    if lon is None or lat is None:
        msg = (
            f"{path}: a CSV of sites needs a header with longitude ({', '.join(LON_NAMES[:5])}) and latitude "
            f"({', '.join(LAT_NAMES[:3])}), not {', '.join(header[:8]) or 'an empty file'}"
        )
        raise CityError(msg)
    name, profile = _column(header, NAME_NAMES), _column(header, ("profile",))
    body = [row for row in rows[1:] if any(cell.strip() for cell in row)]
    cells = [row + [""] * (len(header) - len(row)) for row in body]
    lonlat = np.array([[_number(row[lon]), _number(row[lat])] for row in cells]).reshape(-1, 2)
    return _Rows(
        lonlat,
        [row[name].strip() if name is not None else "" for row in cells],
        [row[profile].strip() for row in cells] if profile is not None else None,
    )


def _number(text: str) -> float:
    """Return a number, with point or comma, or NaN."""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return np.nan


def _read_geo(path: Path) -> _Rows:
    """Read a GeoJSON or GeoPackage file; any geometry counts by a representative point."""
    import geopandas

    frame, notes = _geo_frame(path)
    if not isinstance(frame, geopandas.GeoDataFrame):
        msg = f"{path}: has no geometry; save it with one"
        raise CityError(msg)
    lonlat, more = _geo_points(path, frame)
    header = [str(column) for column in frame.columns]
    name, profile = _column(header, NAME_NAMES), _column(header, ("profile",))
    return _Rows(
        lonlat,
        _texts(frame[header[name]]) if name is not None else [""] * len(frame),
        _texts(frame[header[profile]]) if profile is not None else None,
        (*notes, *more),
    )


def _geo_frame(path: Path) -> tuple[Any, list[str]]:
    """Return the table of a file, and what its reader warned of that is not harmless, each once."""
    import geopandas
    from shapely.errors import ShapelyError

    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = geopandas.read_file(path)
    except (RuntimeError, ValueError, OSError, ShapelyError) as error:
        msg = f"{path}: cannot be read as {path.suffix[1:]}: {str(error).splitlines()[0]}"
        raise CityError(msg) from error
    texts = dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    return frame, [text for text in texts if not any(known in text for known in HARMLESS_WARNINGS)]


def _geo_points(path: Path, frame: Any) -> tuple[NDArray[np.float64], list[str]]:
    """Return one place a row [degree], NaN where there is none, and what is wrong with the geometry or its CRS."""
    notes = []
    shapes = frame.geometry
    if shapes.crs is None:
        notes.append("the file states no CRS; WGS 84 degrees assumed")
        shapes = shapes.set_crs("EPSG:4326")
    usable = ~(shapes.isna() | shapes.is_empty).to_numpy()
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
    return lonlat, notes


def _texts(column: Any) -> list[str]:
    return ["" if gone else str(value).strip() for value, gone in zip(column, column.isna(), strict=True)]


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
