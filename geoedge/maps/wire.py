"""What crosses from Python into the page: JSON that is safe in a script, and coordinates as small integers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoedge.errors import OutputError

__all__ = [
    "UNIT",
    "encode_lines",
    "encode_paths",
    "encode_point",
    "encode_polygons",
    "script_json",
]

Floats = NDArray[np.float64]
ToLonLat = Callable[[Floats], Floats]

UNIT = 1e-5
"""Resolution of coordinates in the page [degree]: about one metre."""


_TAG = re.compile(r"\{(?=[{%#])")
"""What opens a tag of a template; in JSON it stands within texts alone."""


def script_json(value: object) -> str:
    """Return JSON that can stand inside a script element and a Jinja template: no markup, no line separators, no NaN.

    Folium reads scripts of layers as templates once more, so that a name with tags in it would be carried out.

    Parameters
    ----------
    value
        Anything that JSON can hold.

    Raises
    ------
    OutputError
        If a number is not finite.
    """
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        msg = "map: a layer holds a number that is not finite, which no page can draw; leave such rows out"
        raise OutputError(msg) from None
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return _TAG.sub(r"\\u007b", text)


def encode_point(lonlat: Floats) -> list[int]:
    """Return one place, longitude and latitude [degree], shape (2,), as the page takes it."""
    return _encoded(np.asarray(lonlat, dtype=np.float64).reshape(1, 2), np.zeros(1, dtype=np.int64))[0]


def encode_lines(lines: Sequence[Any], to_lonlat: ToLonLat) -> list[list[int]]:
    """Return line strings in a projected CRS as the page takes them: the first point and the steps from there.

    Parameters
    ----------
    lines
        Shapely line strings [m].
    to_lonlat
        From points [m], shape (n, 2), to longitude and latitude [degree].
    """
    if not len(lines):
        return []
    places, owner = shapely.get_coordinates(lines, return_index=True)
    return [path for path in _encoded(to_lonlat(places), owner) if len(path) >= 4]


def encode_paths(lonlat: Floats, path: NDArray[np.int64]) -> list[list[int]]:
    """Return paths of which every point counts, as the page takes them: the first point and the steps from there.

    Parameters
    ----------
    lonlat
        Points of all paths, one path after the other [degree], shape (n, 2).
    path
        Which path each belongs to, shape (n,).
    """
    return _encoded(lonlat, path, every=True)


def encode_polygons(geometry: Any, to_lonlat: ToLonLat) -> list[list[list[int]]]:
    """Return a polygon or multipolygon in a projected CRS as the page takes it: per polygon its rings.

    Parts and holes that vanish at the page's resolution are left out.

    Parameters
    ----------
    geometry
        Shapely (multi)polygon [m].
    to_lonlat
        From points [m], shape (n, 2), to longitude and latitude [degree].
    """
    parts = shapely.get_parts(geometry)
    rings, part_of = shapely.get_rings(parts, return_index=True)
    if not len(rings):
        return []
    places, owner = shapely.get_coordinates(rings, return_index=True)
    open_end = np.append(np.diff(owner) == 0, False)  # the page closes rings itself
    paths = _encoded(to_lonlat(places)[open_end], owner[open_end])
    polygons: list[list[list[int]]] = []
    first = np.flatnonzero(np.diff(part_of, prepend=-1))
    for start, stop in pairwise([*first.tolist(), len(rings)]):
        shell, *holes = paths[start:stop]
        if len(shell) >= 6:
            polygons.append([shell, *(hole for hole in holes if len(hole) >= 6)])
    return polygons


def _encoded(lonlat: Floats, owner: NDArray[np.int64], *, every: bool = False) -> list[list[int]]:
    """Return each owner's points in units of `UNIT`: the first as it is, then steps; repeated points only if wanted."""
    if not np.isfinite(lonlat).all():
        msg = "map: a coordinate is not finite; check the CRS and the positions of the sites and cells"
        raise OutputError(msg)
    units = np.rint(lonlat / UNIT).astype(np.int64)
    starts = np.diff(owner, prepend=-1) != 0
    steps = np.diff(units, axis=0, prepend=np.zeros((1, 2), dtype=np.int64))
    steps[starts] = units[starts]
    kept = starts | np.any(steps != 0, axis=1) | every
    flat = steps[kept].ravel().tolist()
    cuts = [*(2 * np.flatnonzero(starts[kept])).tolist(), len(flat)]
    return [flat[a:b] for a, b in pairwise(cuts)]
