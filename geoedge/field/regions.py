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

    from geoedge.sites.layout import Layout

__all__ = ["RegionRaster", "region_raster", "serving_regions"]

MOST_CELLS = 4_000_000
"""Cells of a raster beyond which the cell size is refused."""


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
) -> RegionRaster:
    """Return the site of least cost at the centre of every cell, Eq. (22), by the router's own choice.

    Parameters
    ----------
    bounds
        West, south, east, north [m].
    layout
        The sites; its torus is honoured.
    offset
        Cost beyond the radio delay by site and type [s], shape (n, Q).
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay.
    cell_m
        Side of a cell [m].
    type_index
        Request type, a column of `offset`.

    Raises
    ------
    GeoEdgeError
        If the cell size is not positive, or so small that the raster is huge.
    """
    from geoedge.serving.routing import route

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
    column = np.ascontiguousarray(np.asarray(offset, dtype=np.float64)[:, [type_index]])
    site = route(places, 0, layout.xy_km, column, delay_coefficient, delay_exponent, layout.period_km)
    return RegionRaster(np.asarray(site, dtype=np.int64).reshape(rows, columns), (west, south), cell_m)


def _outlines(raster: RegionRaster) -> tuple[list[int], list[Any]]:
    """Return sites and the outlines of their cells, one polygon per connected piece."""
    import shapely
    from rasterio.features import shapes
    from rasterio.transform import Affine

    to_map = Affine(raster.cell_m, 0.0, raster.origin[0], 0.0, raster.cell_m, raster.origin[1])
    pieces = list(shapes(raster.site.astype(np.int32), transform=to_map, connectivity=4))
    return [int(value) for _, value in pieces], [shapely.geometry.shape(outline) for outline, _ in pieces]


def serving_regions(
    boundary: Polygon | MultiPolygon,
    layout: Layout,
    offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    *,
    cell_m: float = 25.0,
    type_index: int = 0,
    tolerance_m: float | None = None,
) -> geopandas.GeoDataFrame:
    """Return the land that every site serves, as polygons that neither overlap nor leave gaps.

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
        Request type, a column of `offset`.
    tolerance_m
        How far a simplified edge may move [m]; by default one cell.

    Returns
    -------
    geopandas.GeoDataFrame
        Columns ``site``, ``area_km2`` and the geometry, one row per site that serves land; sorted by site.

    Raises
    ------
    GeoEdgeError
        If the boundary is empty, or the cell size is unusable.
    """
    import geopandas
    import shapely

    if boundary.is_empty or not boundary.area > 0:
        msg = "`boundary` must be a polygon of positive area [m²], but it is empty"
        raise GeoEdgeError(msg)
    raster = region_raster(
        boundary.bounds, layout, offset, delay_coefficient, delay_exponent, cell_m, type_index
    )
    site, outline = _outlines(raster)
    # Outer edges stay, so that what is clipped below still covers the whole boundary.
    smooth = shapely.coverage_simplify(
        outline, cell_m if tolerance_m is None else tolerance_m, simplify_boundary=False
    )
    shapely.prepare(boundary)
    clipped = shapely.intersection(smooth, boundary)
    frame = geopandas.GeoDataFrame({"site": site}, geometry=list(clipped), crs=layout.crs)
    frame = frame[~frame.geometry.is_empty].dissolve("site", as_index=False)
    frame["geometry"] = [_areas_only(geometry) for geometry in frame.geometry]
    frame = frame[frame.geometry.area > 0].reset_index(drop=True)
    frame["area_km2"] = frame.geometry.area / KM**2
    return frame[["site", "area_km2", "geometry"]]


def _areas_only(geometry: Any) -> Any:
    """Drop the points and lines that clipping along an edge leaves."""
    import shapely

    if geometry.geom_type in ("Polygon", "MultiPolygon"):
        return geometry
    parts = shapely.get_parts(geometry)
    return shapely.union_all(parts[shapely.get_dimensions(parts) == 2])
