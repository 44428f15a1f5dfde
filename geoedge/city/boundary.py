"""The boundary of a city: land where people are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["SENSITIVITY_M", "inhabited_land", "sea"]

SENSITIVITY_M = (50.0, 100.0, 150.0, 200.0)
"""Buffers for which the area is reported [m]."""

_DETAIL_M = 2.0
_SIDE_M = 0.5
_CELL_M = 1000.0


def sea(coastline: Sequence[NDArray[np.float64]], window: Any) -> Any:
    """Return the sea inside a window [m], empty where there is no coastline.

    The window is cut along the coastline; a piece is sea if more coast has it on the right, where the sea is by
    convention, than on the left. A coastline that ends inside the window, as in a clipped file, is prolonged to the
    nearest edge of the window.

    Parameters
    ----------
    coastline
        Lines with the land on their left [m], shape (n, 2) each.
    window
        Rectangle that holds the city [m].
    """
    lines = [shapely.LineString(line) for line in coastline if len(line) > 1]
    lines = [line for line in lines if line.intersects(window)]
    if not lines:
        return shapely.Polygon()
    # Whole lines cut the window cleanly where clipped ones would end a hair before its edge.
    cuts = shapely.union_all([window.exterior, *lines, *_prolonged(lines, window)])
    pieces = shapely.get_parts(shapely.polygonize([cuts]))
    pieces = pieces[shapely.within(shapely.point_on_surface(pieces), window)]
    wet = _votes(pieces, lines, side=-1.0) > _votes(pieces, lines, side=1.0)
    return shapely.union_all(pieces[wet])


def _prolonged(lines: list[Any], window: Any) -> Iterator[Any]:
    """Yield lines from loose ends of the coast inside the window to just beyond its edge."""
    ends = [
        shapely.Point(point)
        for line in lines
        if not line.is_closed
        for point in (line.coords[0], line.coords[-1])
    ]
    for index, end in enumerate(ends):
        meets = any(end.distance(other) < _SIDE_M for place, other in enumerate(ends) if place != index)
        gap = end.distance(window.exterior)
        if not meets and window.contains(end) and gap > 0:
            inner, outer = np.asarray(shapely.shortest_line(end, window.exterior).coords)
            yield shapely.LineString([inner, outer + (outer - inner) * (1.0 / gap)])


def _votes(pieces: NDArray[Any], parts: list[Any], *, side: float) -> NDArray[np.float64]:
    """Return how much coast [m] has each piece on one side, +1 left and -1 right."""
    votes = np.zeros(len(pieces))
    tree = shapely.STRtree(pieces)
    for part in parts:
        xy = np.asarray(part.coords)
        step = np.diff(xy, axis=0)
        length = np.hypot(*step.T)
        real = length > 0
        normal = np.column_stack([-step[:, 1], step[:, 0]])[real] / length[real, None]
        beside = (xy[:-1] + 0.5 * step)[real] + side * _SIDE_M * normal
        point, piece = tree.query(shapely.points(beside), predicate="within")
        np.add.at(votes, piece, length[real][point])
    return votes


def inhabited_land(
    lines: Any, footprints: Any, water: Any, window: Any, buffer_m: float
) -> tuple[Any, dict[str, float]]:
    """Return the land within a distance of streets and buildings, and its area for other distances.

    The buffer is closed (gaps narrower than twice the distance are filled), then the sea is taken away.

    Parameters
    ----------
    lines, footprints
        Arrays of streets and buildings [m].
    water
        The sea [m].
    window
        Rectangle that holds the city [m], or None; the land ends there.
    buffer_m
        The distance [m].
    """
    steps = sorted({*SENSITIVITY_M, float(buffer_m)})
    grown = _union(np.concatenate([np.asarray(lines), np.asarray(footprints)]), steps[0])
    before = steps[0]
    shapes = {}
    for step in steps:
        grown = grown.buffer(step - before, quad_segs=8) if step > before else grown
        before = step
        closed = grown.buffer(step, quad_segs=8).buffer(-step, quad_segs=8)
        land = shapely.difference(closed, water)
        shapes[step] = land if window is None else shapely.intersection(land, window)
    areas = {f"{step:g}": round(shapes[step].area / M2_PER_KM2, 4) for step in steps}
    return _areal(shapes[float(buffer_m)]), areas


def _union(shapes: NDArray[Any], distance: float) -> Any:
    """Return the union of buffers, tile by tile, which keeps each union small."""
    centre = shapely.get_coordinates(shapely.centroid(shapes))
    tile = np.unique(np.floor(centre / _CELL_M), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(tile, kind="stable")
    groups = np.split(shapes[order], np.flatnonzero(np.diff(tile[order])) + 1)
    tiles = [shapely.union_all(shapely.buffer(group, distance, quad_segs=4)) for group in groups]
    return shapely.simplify(shapely.union_all(tiles), _DETAIL_M)


def _areal(shape: Any) -> Any:
    """Return the polygons of a shape, without the slivers of lines that an intersection leaves."""
    parts = [part for part in shapely.get_parts(shape) if part.geom_type == "Polygon" and part.area > 1.0]
    return parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
