"""From a map in degrees to a city in metres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from geoedge.city.boundary import inhabited_land, sea
from geoedge.city.buildings import building_table, enrich, impute_levels, match_footprints
from geoedge.city.city import ATTRIBUTION, LEVEL_SOURCES, City, _transform
from geoedge.city.names import name_streets
from geoedge.city.osm import build_streets
from geoedge.city.places import merge_places, place_table
from geoedge.city.speeds import MODES
from geoedge.errors import CityError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from geoedge.city.city import BuildingTable, PlaceTable
    from geoedge.city.read import Bbox, MapData
    from geoedge.city.streets import StreetGraph

__all__ = ["SourceFacts", "compile_city"]

_MARGIN_M = 1000.0


@dataclass(frozen=True)
class SourceFacts:
    """What is known of a source besides its content.

    Parameters
    ----------
    name
        What the city is called.
    checksum
        sha256 of the source.
    origin
        Where the map came from and what was changed, to show with anything made from it.
    enrichment_checksum
        sha256 of the newer map, if there is one.
    buildings_checksum
        sha256 of the file of buildings, if they have one of their own.
    """

    name: str
    checksum: str
    origin: str
    enrichment_checksum: str | None = None
    buildings_checksum: str | None = None


def compile_city(
    data: MapData,
    facts: SourceFacts,
    *,
    bbox: Bbox | None = None,
    boundary_buffer_m: float = 100.0,
    enrichment: MapData | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> City:
    """Return a city from what a map holds.

    Parameters
    ----------
    data
        The map.
    facts
        Name and checksums of its source.
    bbox
        West, south, east, north of the part to keep [degree]; by default the area that the map claims to cover.
    boundary_buffer_m
        Distance from streets and buildings within which people are [m].
    enrichment
        A newer map of the same place, for levels, uses and places.
    progress
        Called with a line of text as each stage begins.

    Raises
    ------
    CityError
        If there is no street that anybody may use.
    """
    if not data.ways:
        msg = f"city {facts.name}: the map has no streets (ways with `highway`); give a map of an inhabited place"
        raise CityError(msg)
    window = bbox or data.bbox
    to_metres = _Projection(_utm(data, window))
    progress("streets")
    streets, street_report = _streets(data, facts.name, window, to_metres)
    progress("buildings and places")
    footprints, buildings, building_report = _buildings(data, enrichment, window, to_metres)
    places, place_report = _places(data, enrichment, window, to_metres)
    progress("land")
    boundary, areas = _land(data, streets, footprints, window, to_metres, boundary_buffer_m)
    return City(
        name=facts.name,
        crs=to_metres.crs,
        checksum=facts.checksum,
        attribution=ATTRIBUTION,
        extract_date=data.extract_date,
        boundary=boundary,
        streets=streets,
        buildings=buildings,
        places=places,
        report={
            "streets": street_report,
            "buildings": building_report,
            "places": place_report,
            "boundary_buffer_m": boundary_buffer_m,
            "area_km2_by_buffer_m": areas,
            "coastline_ways": len(data.coastline),
            "references_dropped": data.references_dropped,
            "ways_dropped": data.ways_dropped,
            "relations_dropped": data.relations_dropped,
            "bbox": list(window) if window else None,
            "origin": facts.origin,
            "enrichment_checksum": facts.enrichment_checksum,
            "enrichment_date": enrichment.extract_date if enrichment else None,
            "buildings_checksum": facts.buildings_checksum,
            "buildings_file": data.buildings_file,
        },
        street_names=name_streets(data.named, to_metres, to_metres.box(window) if window else None),
    )


class _Projection:
    """Degrees to metres of one CRS."""

    def __init__(self, crs: str) -> None:
        self.crs = crs

    def __call__(self, lonlat: Any) -> NDArray[np.float64]:
        return _transform("EPSG:4326", self.crs, lonlat)

    def shapes(self, shapes: list[Any]) -> NDArray[Any]:
        """Return shapes in metres."""
        return np.asarray(shapely.transform(np.array(shapes, dtype=object), self), dtype=object)

    def box(self, bbox: Bbox) -> Any:
        """Return a rectangle of degrees in metres, its sides split so that they follow the projection."""
        return shapely.transform(shapely.segmentize(shapely.box(*bbox), 0.01), self)


def _utm(data: MapData, window: Bbox | None) -> str:
    """Return the UTM zone of the middle of the map."""
    import geopandas

    if window is None:
        lonlat = np.concatenate([way.lonlat for way in data.ways])
        window = (*lonlat.min(axis=0).tolist(), *lonlat.max(axis=0).tolist())
    crs = geopandas.GeoSeries([shapely.box(*window)], crs="EPSG:4326").estimate_utm_crs()
    return f"EPSG:{crs.to_epsg()}"


def _streets(
    data: MapData, name: str, window: Bbox | None, to_metres: _Projection
) -> tuple[dict[str, StreetGraph], dict[str, Any]]:
    """Return the streets of both modes, and a report."""
    streets, report = build_streets(data.ways, to_metres, window)
    missing = [mode for mode in MODES if mode not in streets]
    if missing:
        where = f"inside bbox {','.join(f'{x:g}' for x in window)}" if window else "in the map"
        msg = f"city {name}: no {missing[0]} street {where}; streets of both modes are needed: widen the bbox or the file"
        raise CityError(msg)
    return streets, report


def _land(
    data: MapData,
    streets: dict[str, StreetGraph],
    footprints: NDArray[Any],
    window: Bbox | None,
    to_metres: _Projection,
    buffer_m: float,
) -> tuple[Any, dict[str, float]]:
    """Return the land where people are, and its area by buffer."""
    lines = np.concatenate([_lines(graph) for graph in streets.values()])
    frame = None if window is None else to_metres.box(window)
    around = frame
    if around is None:
        around = shapely.box(*shapely.total_bounds(lines)).buffer(_MARGIN_M, join_style="mitre")
    water = sea([to_metres(line) for line in data.coastline], around)
    return inhabited_land(lines, footprints, water, frame, buffer_m)


def _inside(lonlat: Any, window: Bbox | None) -> NDArray[np.bool_]:
    """Return which points lie in a window, shape (n,)."""
    points = np.asarray(lonlat, dtype=np.float64).reshape(-1, 2)
    if window is None:
        return np.ones(len(points), dtype=bool)
    west, south, east, north = window
    lon, lat = points.T
    return np.asarray((lon >= west) & (lon <= east) & (lat >= south) & (lat <= north))


def _chosen(data: MapData, window: Bbox | None) -> tuple[list[Any], list[dict[str, str]]]:
    """Return the footprints whose centre lies in the window, and their tags."""
    centre = shapely.get_coordinates(shapely.centroid(np.array(data.buildings, dtype=object)))
    keep = np.flatnonzero(_inside(centre, window))
    return [data.buildings[index] for index in keep], [data.building_tags[index] for index in keep]


def _buildings(
    data: MapData, enrichment: MapData | None, window: Bbox | None, to_metres: _Projection
) -> tuple[NDArray[Any], BuildingTable, dict[str, Any]]:
    """Return footprints, their table with every level known or guessed, and a report."""
    shapes, tags = _chosen(data, window)
    polygons = to_metres.shapes(shapes)
    table = building_table(polygons, tags)
    matched = 0
    if enrichment is not None:
        other_shapes, other_tags = _chosen(enrichment, window)
        others = to_metres.shapes(other_shapes)
        match = match_footprints(polygons, others)
        matched = int((match >= 0).sum())
        table = enrich(table, match, building_table(others, other_tags))
    table, guesses = impute_levels(table)
    total = max(len(table), 1)
    share = {
        name: round(float(np.count_nonzero(table.levels_source == index)) / total, 6)
        for index, name in enumerate(LEVEL_SOURCES)
    }
    floor = float(table.floor_m2.sum()) or 1.0
    return (
        polygons,
        table,
        {
            "count": len(table),
            "matched": matched,
            "levels_share": share,
            "levels_imputed_share": share["imputed"],
            "levels_from_neighbours_share": guesses["neighbours_share"],
            "levels_mean_abs_error": guesses["mean_abs_error"],
            "levels_imputed_floor_share": round(float(table.floor_m2[table.levels_imputed].sum()) / floor, 6),
            "unspecified_share": round(float(table.is_kind("unspecified").sum()) / total, 6),
        },
    )


def _places(
    data: MapData, enrichment: MapData | None, window: Bbox | None, to_metres: _Projection
) -> tuple[PlaceTable, dict[str, Any]]:
    """Return places of both maps, those in both once, and a report."""
    tables = []
    for source in (data, enrichment):
        if source is not None:
            keep = np.flatnonzero(_inside(source.places, window))
            lonlat = np.array([source.places[index] for index in keep], dtype=np.float64).reshape(-1, 2)
            tables.append(place_table(to_metres(lonlat), [source.place_tags[index] for index in keep]))
    if len(tables) == 1:
        return tables[0], {"count": len(tables[0]), "added": 0, "in_both": 0}
    merged, both = merge_places(*tables)
    return merged, {"count": len(merged), "added": len(merged) - len(tables[0]), "in_both": both}


def _lines(graph: Any) -> NDArray[Any]:
    """Return the streets of a graph as lines [m]; each once where it runs both ways."""
    counts = np.diff(graph.geometry_offset)
    lines = shapely.linestrings(graph.geometry_xy, indices=np.repeat(np.arange(len(counts)), counts))
    once = dict(zip(shapely.to_wkb(shapely.normalize(lines)).tolist(), lines, strict=True))
    return np.array(list(once.values()), dtype=object)
