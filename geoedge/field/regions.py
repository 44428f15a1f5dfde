"""Serving regions: which site serves which land, as raster and as polygons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.units import KM

if TYPE_CHECKING:
    import geopandas
    from numpy.typing import ArrayLike, NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.field.streets import StreetWays
    from geoedge.sites.layout import Layout

    Ints = NDArray[np.int64]

__all__ = ["RegionRaster", "region_raster", "serving_regions"]

MOST_CELLS = 4_000_000
"""Cells of a raster beyond which the cell size is refused."""
SAME_VERTEX_M = 1e-6
"""Vertices this close are one vertex [m]."""


@dataclass(frozen=True, eq=False)
class RegionRaster:
    """The serving site of every cell of a raster over a bounding box.

    Parameters
    ----------
    site
        Site of every cell, rows from south to north, shape (rows, columns).
    origin
        South-west corner [m].
    cell_m
        Side of a cell [m].
    """

    site: NDArray[np.int64]
    origin: tuple[float, float]
    cell_m: float


def region_raster(
    bounds: tuple[float, float, float, float],
    layout: Layout,
    offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    cell_m: float,
    type_index: int = 0,
    *,
    ways: StreetWays | None = None,
) -> RegionRaster:
    """Return the site of least cost at the centre of every cell, Eq. (22), by the router's own choice.

    Parameters
    ----------
    bounds
        West, south, east, north [m].
    layout
        The sites; its torus is honoured.
    offset
        Cost beyond the radio delay by site and type [s], shape (n, Q); ``inf`` closes a site to a type.
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay.
    cell_m
        Side of a cell [m].
    type_index
        Request type, a column of `offset`.
    ways
        Ways along the streets to the sites, if radio follows them.

    Raises
    ------
    GeoEdgeError
        If the cell size is not positive, or so small that the raster is huge, or no site is open to the type.
    """
    from geoedge.serving.routing import checked_offset, route

    west, south, east, north = bounds
    if not cell_m > 0:
        msg = f"`cell_m` must be a positive number of metres, not {cell_m}"
        raise GeoEdgeError(msg)
    columns = max(int(np.ceil((east - west) / cell_m)), 1)
    rows = max(int(np.ceil((north - south) / cell_m)), 1)
    if rows * columns > MOST_CELLS:
        msg = f"`cell_m` = {cell_m} makes {rows * columns} cells; choose {cell_m * 2:g} or more"
        raise GeoEdgeError(msg)
    x = west + (np.arange(columns) + 0.5) * cell_m
    y = south + (np.arange(rows) + 0.5) * cell_m
    places = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2) / KM
    column = checked_offset(np.asarray(offset, dtype=np.float64)[:, [type_index]], len(layout))
    if ways is None:
        site = route(places, 0, layout.xy_km, column, delay_coefficient, delay_exponent, layout.period_km)
    else:
        from geoedge.field.cells import owners
        from geoedge.field.problem import Geometry

        geometry = Geometry(
            places, layout.xy_km, delay_coefficient, delay_exponent, cell_m, layout.period_km, ways
        )
        site = owners(geometry.blocks, column)[:, 0]
    return RegionRaster(np.asarray(site, dtype=np.int64).reshape(rows, columns), (west, south), cell_m)


def serving_regions(
    boundary: Polygon | MultiPolygon,
    layout: Layout,
    offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    *,
    cell_m: float = 25.0,
    type_index: int | None = 0,
    tolerance_m: float | None = None,
    ways: StreetWays | None = None,
) -> geopandas.GeoDataFrame:
    """Return the land that every site serves, as polygons that neither overlap nor leave gaps.

    Edges between regions are found on a raster and smoothed together, so that they may be off by a cell and the
    tolerance; the land's own outline is kept, with its holes and parts, and the areas add up to its area. Pieces
    smaller than a cell that smoothing and the outline leave go to the neighbour with the longest common edge.

    Parameters
    ----------
    boundary
        Land to divide [m].
    layout
        The sites.
    offset
        Cost beyond the radio delay by site and type [s], shape (n, Q), for example `FieldAnswer.offset`.
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay.
    cell_m
        Side of the cells that the regions are found on [m].
    type_index
        Request type, a column of `offset`; ``None`` for every type.
    tolerance_m
        How far a simplified edge may move [m]; by default one cell.
    ways
        Ways along the streets to the sites, if radio follows them.

    Returns
    -------
    geopandas.GeoDataFrame
        Columns ``type_index``, ``site``, ``area_km2`` and the geometry, one row per type and site that serves land, sorted
        by both. A site that serves no land, or a profile that serves none anywhere, has no row.

    Raises
    ------
    GeoEdgeError
        If the boundary is empty, the cell size is unusable, or no site is open to a type.
    """
    import geopandas
    import pandas as pd

    if boundary.is_empty or not boundary.area > 0:
        msg = "`boundary` must be a polygon of positive area [m²], but it is empty"
        raise GeoEdgeError(msg)
    kinds = range(np.shape(offset)[1]) if type_index is None else [type_index]
    frames = []
    for kind in kinds:
        raster = region_raster(
            boundary.bounds, layout, offset, delay_coefficient, delay_exponent, cell_m, kind, ways=ways
        )
        site, area = _tiling(raster, boundary, cell_m if tolerance_m is None else tolerance_m)
        frame = geopandas.GeoDataFrame({"type_index": kind, "site": site}, geometry=area, crs=layout.crs)
        frames.append(frame)
    whole = pd.concat(frames, ignore_index=True)
    whole["area_km2"] = whole.geometry.area / KM**2
    return whole[["type_index", "site", "area_km2", "geometry"]]


def _outlines(raster: RegionRaster) -> tuple[Ints, list[Any]]:
    """Return sites and the outlines of their cells, one polygon per connected piece."""
    import shapely
    from rasterio.features import shapes
    from rasterio.transform import Affine

    to_map = Affine(raster.cell_m, 0.0, raster.origin[0], 0.0, raster.cell_m, raster.origin[1])
    pieces = list(shapes(raster.site.astype(np.int32), transform=to_map, connectivity=4))
    site = np.array([int(value) for _, value in pieces], dtype=np.int64)
    return site, [shapely.geometry.shape(outline) for outline, _ in pieces]


def _tiling(raster: RegionRaster, land: Any, tolerance_m: float) -> tuple[Ints, list[Any]]:
    """Return the sites that serve land, ascending, and the land that each serves."""
    import shapely

    site, outline = _outlines(raster)
    # Outer edges stay, so that what is clipped below still covers all the land.
    smooth = shapely.coverage_simplify(outline, tolerance_m, simplify_boundary=False)
    shapely.prepare(land)
    clipped, index = shapely.get_parts(shapely.intersection(smooth, land), return_index=True)
    clipped, inner = shapely.get_parts(clipped, return_index=True)
    # Where an outline runs along the land's, clipping leaves points and lines.
    flat = shapely.get_dimensions(clipped) == 2
    clipped, site = clipped[flat], site[index[inner[flat]]]
    # Neighbours are clipped one by one and may miss each other by a rounding; their common net of edges cannot.
    net = shapely.union_all(shapely.boundary(clipped), grid_size=SAME_VERTEX_M)
    parts = shapely.get_parts(shapely.polygonize([net]))
    inside, piece = shapely.STRtree(clipped).query(shapely.point_on_surface(parts), predicate="intersects")
    inside, first = np.unique(inside, return_index=True)  # faces of the net that lie in holes are in no piece
    parts, site = parts[inside], site[piece[first]]
    owner = _without_slivers(parts, site, raster.cell_m**2)
    serving = np.unique(owner)
    return serving, [shapely.union_all(parts[owner == i]) for i in serving]


def _without_slivers(parts: NDArray[Any], site: Ints, least_area: float) -> Ints:
    """Return the site of every part, small ones taking that of the neighbour with the longest common edge.

    A small part that touches nothing is a small island, and stays what it is.
    """
    import shapely

    owner, area = site.copy(), shapely.area(parts)
    tree = shapely.STRtree(parts)
    for k in np.flatnonzero(area < least_area)[np.argsort(area[area < least_area])]:
        near = tree.query(parts[k], predicate="intersects")
        near = near[(near != k) & (area[near] > area[k])]
        if near.size:
            common = shapely.length(shapely.intersection(parts[k], parts[near]))
            if common.max() > 0:
                owner[k] = owner[near[common.argmax()]]
    return owner
