"""Geometry that a page can carry: streets as few long lines, cells as merged areas, regions with shared edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

if TYPE_CHECKING:
    from geoedge.city import StreetGraph

__all__ = ["STREET_CLASSES", "cell_areas", "clip_area", "simplify_areas", "street_lines"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STREET_CLASSES = ("foot paths", "streets", "main roads")
MAIN_ROAD_SPEED = 45 / 3.6
"""Streets on which one drives at least this fast [m/s] are drawn as main roads."""
SAME_VERTEX_M = 0.1
"""Vertices this close are one vertex of the map [m]."""


def street_lines(streets: Mapping[str, StreetGraph], tolerance_m: float) -> tuple[list[Any], ...]:
    """Return the streets of each class of `STREET_CLASSES` as long line strings, every piece once.

    Parameters
    ----------
    streets
        Street graphs by mode, ``"walk"`` and ``"drive"``, in one projected CRS.
    tolerance_m
        How far a simplified line may lie from the street [m].
    """
    pieces, ranks = [], []
    for mode, graph in streets.items():
        ends, edge = _pieces(graph)
        fast = graph.edge_speed[edge] >= MAIN_ROAD_SPEED
        pieces.append(ends)
        ranks.append(np.where(fast, 2, 1) if mode == "drive" else np.zeros(len(edge), dtype=np.int64))
    if not pieces:
        return tuple([] for _ in STREET_CLASSES)
    ends, rank = _once(np.concatenate(pieces), np.concatenate(ranks))
    return tuple(_joined(ends[rank == level], tolerance_m) for level in range(len(STREET_CLASSES)))


def _pieces(graph: StreetGraph) -> tuple[Floats, Ints]:
    """Return the straight pieces of all edges, shape (k, 2, 2), and the edge that each belongs to."""
    xy, offset = graph.geometry_xy, graph.geometry_offset
    edge = np.repeat(np.arange(graph.edge_count), np.diff(offset))
    inside = edge[:-1] == edge[1:]
    return np.stack([xy[:-1][inside], xy[1:][inside]], axis=1), edge[:-1][inside]


def _once(ends: Floats, rank: Ints) -> tuple[Floats, Ints]:
    """Keep each piece once, whichever way and mode it was drawn in, with its highest class."""
    grid = np.rint(ends / SAME_VERTEX_M).astype(np.int64)
    backward = (grid[:, 0, 0] > grid[:, 1, 0]) | (
        (grid[:, 0, 0] == grid[:, 1, 0]) & (grid[:, 0, 1] > grid[:, 1, 1])
    )
    grid[backward] = grid[backward, ::-1]
    order = np.lexsort((-rank, *grid.reshape(len(grid), 4).T))
    flat = grid[order].reshape(len(grid), 4)
    first = np.ones(len(flat), dtype=bool)
    first[1:] = np.any(flat[1:] != flat[:-1], axis=1)
    first &= np.any(flat[:, :2] != flat[:, 2:], axis=1)
    return np.asarray(flat[first].reshape(-1, 2, 2) * SAME_VERTEX_M, dtype=np.float64), rank[order][first]


def _joined(ends: Floats, tolerance_m: float) -> list[Any]:
    if not len(ends):
        return []
    merged = shapely.line_merge(shapely.multilinestrings(shapely.linestrings(ends)))
    return list(shapely.get_parts(shapely.simplify(merged, tolerance_m)))


def cell_areas(xy: Floats, cell_m: float, index: Ints, classes: int, tolerance_m: float) -> list[Any]:
    """Return one area a class: its square cells merged, and their steps smoothed without gaps or overlaps.

    Parameters
    ----------
    xy
        Cell centres [m] on one square lattice, shape (n, 2).
    cell_m
        Size of a cell [m].
    index
        Class of each cell, -1 for cells that are not drawn, shape (n,).
    classes
        Number of classes.
    tolerance_m
        Side of the square details that are smoothed away [m]; 0 keeps the cells as they are.
    """
    areas: list[Any] = [shapely.MultiPolygon()] * classes
    drawn = index >= 0
    if not drawn.any():
        return areas
    corner = xy[drawn].min(axis=0) - cell_m / 2
    column, row = np.floor((xy[drawn] - corner) / cell_m).astype(np.int64).T
    raster = np.full((int(row.max()) + 1, int(column.max()) + 1), -1, dtype=np.int32)
    raster[row, column] = index[drawn]
    for level, area in _merged(raster).items():
        areas[level] = area
    if tolerance_m > 0:
        # where three classes meet, the straight edge of one needs the corner of the others
        areas = [shapely.transform(shapely.segmentize(area, 1.0), np.rint) for area in areas]
    smooth = simplify_areas(areas, tolerance_m / cell_m)
    return [shapely.transform(area, lambda places: places * cell_m + corner) for area in smooth]


def _merged(raster: NDArray[np.int32]) -> dict[int, Any]:
    """Return the area of each class of a raster [cells], counted from its first corner."""
    from rasterio.features import shapes

    parts: dict[int, list[Any]] = {}
    for outline, level in shapes(raster, mask=raster >= 0, connectivity=4):
        shell, *holes = outline["coordinates"]
        parts.setdefault(int(level), []).append(shapely.Polygon(shell, holes))
    return {level: shapely.multipolygons(found) for level, found in sorted(parts.items())}


def simplify_areas(areas: Sequence[Any], tolerance: float) -> list[Any]:
    """Return areas simplified together, so that neighbours keep their common edge.

    Parameters
    ----------
    areas
        Polygons that do not overlap; empty ones stay empty.
    tolerance
        Side of the square details that vanish, in the unit of the coordinates.
    """
    filled = [i for i, area in enumerate(areas) if not area.is_empty]
    if tolerance <= 0 or not filled:
        return list(areas)
    simple = list(areas)
    for i, area in zip(filled, shapely.coverage_simplify([areas[i] for i in filled], tolerance), strict=True):
        simple[i] = area
    return simple


def clip_area(area: Any, land: Any) -> Any:
    """Return the part of an area that lies on land, without the lines and points where they only touch.

    Parameters
    ----------
    area, land
        Shapely (multi)polygons [m]; `land` None cuts nothing.
    """
    if land is None or area.is_empty:
        return area
    parts = shapely.get_parts(shapely.get_parts(shapely.intersection(area, land)))
    return shapely.MultiPolygon([part for part in parts if part.geom_type == "Polygon"])
