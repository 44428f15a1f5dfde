"""Streets through osmnx, the only module that imports it."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np
import shapely

from geoedge.city.names import NAME_TAGS, NamedWay, street_rank
from geoedge.city.places import PLACE_TAGS, is_place
from geoedge.city.read import STREET_TAGS, MapData, StreetWay
from geoedge.city.speeds import MODES, overpass_filter, speed_kmh, street_usable
from geoedge.city.streets import StreetGraph, polyline_lengths
from geoedge.errors import CityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from geoedge.city.download import Endpoints, Visit
    from geoedge.city.read import Bbox

__all__ = ["build_streets", "download_map"]

_KMH = 3.6  # km/h in a metre per second
_SHORTEST_M = 0.01
_LARGEST_KM2 = 1000.0
_DEGREE_KM = 111.2


@contextmanager
def osmnx_settings(**changes: Any) -> Iterator[Any]:
    """Give osmnx with some settings changed, and put every setting back afterwards.

    Parameters
    ----------
    **changes
        Names and values of `osmnx.settings`.
    """
    import osmnx

    names = [name for name in vars(osmnx.settings) if not name.startswith("_")]
    before = {name: getattr(osmnx.settings, name) for name in names}
    try:
        for name, value in changes.items():
            setattr(osmnx.settings, name, value)
        yield osmnx
    finally:
        for name, value in before.items():
            setattr(osmnx.settings, name, value)


def build_streets(
    ways: list[StreetWay], project: Any, window: Any = None
) -> tuple[dict[str, StreetGraph], dict[str, Any]]:
    """Return the street graph of each mode, and a report of what was kept and guessed.

    Each graph is simplified by osmnx (a node only where streets meet or end) and is the largest strongly connected
    component, so that one-way dead ends trap nobody.

    Parameters
    ----------
    ways
        Streets of all modes, in degrees.
    project
        Function from longitudes and latitudes to the city's CRS, (n, 2) to (n, 2).
    window
        West, south, east, north [degree]; streets are cut at their last node inside it.

    Raises
    ------
    CityError
        If no mode has a street.
    """
    graphs, report = {}, {}
    for mode in MODES:
        usable = [way for way in ways if street_usable(mode, way.tags)]
        graph = _graph_from_ways(usable, window, both_ways=mode == "walk")
        if graph is not None:
            graphs[mode], report[mode] = _compile_mode(graph, mode, project)
    return graphs, report


def _graph_from_ways(ways: list[StreetWay], window: Any, *, both_ways: bool) -> Any:
    """Return an osmnx graph of these streets, not simplified, or None where there are none."""
    runs = [run for way in ways for run in _inside(way, window)]
    if not runs:
        return None
    with (
        tempfile.TemporaryDirectory() as folder,
        osmnx_settings(
            useful_tags_way=["highway", "maxspeed", "oneway", "junction"], all_oneway=False
        ) as osmnx,
    ):
        path = Path(folder) / "streets.osm"
        path.write_text("".join(_xml(runs)), encoding="utf-8")
        return osmnx.graph_from_xml(path, bidirectional=both_ways, simplify=False, retain_all=True)


def _inside(way: StreetWay, window: Any) -> Iterator[tuple[list[int], NDArray[np.float64], dict[str, str]]]:
    """Yield the stretches of a street whose nodes lie in the window."""
    if window is None:
        yield way.refs, way.lonlat, way.tags
        return
    west, south, east, north = window
    lon, lat = way.lonlat.T
    inside = (lon >= west) & (lon <= east) & (lat >= south) & (lat <= north)
    bounds = np.flatnonzero(np.diff(np.concatenate([[False], inside, [False]])))
    for start, stop in bounds.reshape(-1, 2):
        if stop - start > 1:
            yield way.refs[start:stop], way.lonlat[start:stop], way.tags


def _xml(runs: list[tuple[list[int], NDArray[np.float64], dict[str, str]]]) -> Iterator[str]:
    """Yield OpenStreetMap XML of stretches of streets: each node once, then the ways, numbered anew."""
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<osm version="0.6" generator="geoedge">\n'
    nodes = {ref: point for refs, lonlat, _ in runs for ref, point in zip(refs, lonlat.tolist(), strict=True)}
    for ref, (lon, lat) in nodes.items():
        yield f'<node id="{ref}" lat="{lat:.7f}" lon="{lon:.7f}"/>\n'
    for number, (refs, _, tags) in enumerate(runs, start=1):
        yield f'<way id="{number}">'
        yield from (f'<nd ref="{ref}"/>' for ref in refs)
        yield from (f"<tag k={quoteattr(key)} v={quoteattr(value)}/>" for key, value in tags.items())
        yield "</way>\n"
    yield "</osm>\n"


def _compile_mode(graph: Any, mode: str, project: Any) -> tuple[StreetGraph, dict[str, Any]]:
    """Return the arrays of one mode, and what was dropped and guessed on the way."""
    import osmnx

    total, imputed = 0.0, 0.0
    for _, _, data in graph.edges(data=True):
        forward, length = not data["reversed"], data["length"]
        speed, guessed = speed_kmh(mode, {key: str(value) for key, value in data.items()})
        data.clear()
        data.update(length=length, travel_time=length / (speed / _KMH), forward=length if forward else 0.0)
        total += data["forward"]
        imputed += data["forward"] * guessed
    core = osmnx.truncate.largest_component(graph, strongly=True)
    kept = sum(length for _, _, length in core.edges(data="forward"))
    simple = osmnx.simplify_graph(
        core, remove_rings=False, edge_attr_aggs={"length": sum, "travel_time": sum, "forward": sum}
    )
    streets = _arrays(simple, mode, project)
    report = {
        "nodes": streets.node_count,
        "edges": streets.edge_count,
        "street_km": round(kept / 1000.0, 3),
        "dropped_share": round(1.0 - kept / total, 6) if total else 0.0,
        "speed_imputed_share": round(imputed / total, 6) if total else 0.0,
    }
    return streets, report


def _arrays(graph: Any, mode: str, project: Any) -> StreetGraph:
    """Return a simplified osmnx graph as arrays, in the order of its node ids."""
    ids = sorted(graph.nodes)
    number = {node: index for index, node in enumerate(ids)}
    lonlat = np.array([(graph.nodes[node]["x"], graph.nodes[node]["y"]) for node in ids])
    edges = sorted(
        graph.edges(keys=True, data=True), key=lambda edge: (number[edge[0]], number[edge[1]], edge[2])
    )
    start = np.array([number[edge[0]] for edge in edges], dtype=np.int32)
    end = np.array([number[edge[1]] for edge in edges], dtype=np.int32)
    shapes = [
        np.array(data["geometry"].coords) if "geometry" in data else lonlat[[number[u], number[v]]]
        for u, v, _, data in edges
    ]
    offset = np.concatenate([[0], np.cumsum([len(shape) for shape in shapes])]).astype(np.int64)
    geometry = project(np.concatenate(shapes))
    speed = np.array(
        [data["length"] / data["travel_time"] if data["length"] > 0 else 1.0 for *_, data in edges]
    )
    length = np.maximum(polyline_lengths(offset, geometry), _SHORTEST_M)
    return StreetGraph(mode, project(lonlat), start, end, length, speed, offset, geometry)


def download_map(place: str, bbox: Bbox | None, endpoints: Endpoints, visit: Visit, folder: Path) -> MapData:
    """Return what the map services hold of a place, in three requests.

    Parameters
    ----------
    place
        A name that Nominatim knows.
    bbox
        West, south, east, north [degree] instead of the place's own outline.
    endpoints
        Addresses of the services.
    visit
        The time limit.
    folder
        Where to keep the answers; those already there are not asked for again.

    Raises
    ------
    DownloadError
        If a service does not deliver.
    CityError
        If there is no such place, or it is too large for these services.
    """
    fixed = {**endpoints.settings, "use_cache": True, "cache_folder": str(folder)}

    def ask(what: str, request: Callable[[Any], Any]) -> Any:
        def once() -> Any:
            with osmnx_settings(
                **fixed, **visit.settings, useful_tags_way=sorted({*STREET_TAGS, *NAME_TAGS})
            ) as osmnx:
                return request(osmnx)

        return visit.fetch(what, once)

    area = shapely.box(*bbox) if bbox else ask("outline", lambda osmnx: _outline(osmnx, place))
    _check_area(place, area, visit.offline)
    graph = ask("streets", lambda osmnx: _street_graph(osmnx, area))
    frame = ask("buildings and places", lambda osmnx: _feature_frame(osmnx, area))
    data = MapData(ways=_street_edges(graph), named=_named_edges(graph), bbox=bbox or tuple(area.bounds))
    for geometry, tags in _features(frame):
        _sort_in(data, geometry, tags)
    return data


def _outline(osmnx: Any, place: str) -> Any:
    """Return the area of a place, or None where the service knows none."""
    try:
        return osmnx.geocode_to_gdf(place).geometry.iloc[0]
    except (osmnx._errors.InsufficientResponseError, TypeError):
        return None


def _check_area(place: str, area: Any, offline: tuple[str, ...]) -> None:
    """Refuse a place without an area, or one that would be a burden to a public service."""
    if area is None:
        msg = (
            f"city {place!r}: neither a shipped city ({', '.join(offline)}), nor a file, nor a place whose outline "
            "the map service knows; check the spelling, add the country, or give a bbox"
        )
        raise CityError(msg)
    west, south, east, north = area.bounds
    size_km2 = (east - west) * np.cos(np.radians(0.5 * (south + north))) * (north - south) * _DEGREE_KM**2
    if size_km2 > _LARGEST_KM2:
        msg = (
            f"city {place!r}: its frame covers {size_km2:.0f} km², and public map services are for at most "
            f"{_LARGEST_KM2:.0f}; give a bbox of a part, or download an extract and give its path"
        )
        raise CityError(msg)


def _street_graph(osmnx: Any, area: Any) -> Any:
    """Return the streets of an area as osmnx's graph, or None where there are none."""
    try:
        return osmnx.graph_from_polygon(
            area, custom_filter=overpass_filter(), simplify=False, retain_all=True, truncate_by_edge=True
        )
    except osmnx._errors.InsufficientResponseError:
        return None


def _street_edges(graph: Any) -> list[StreetWay]:
    """Return the streets of a graph as ways of one step each, in the direction of travel."""
    ways: list[StreetWay] = []
    for start, end, edge, ends in _edges(graph):
        tags = {key: str(edge[key]) for key in STREET_TAGS if key in edge}
        tags["oneway"] = "yes" if edge["oneway"] else "no"
        ways.append(StreetWay([start, end], ends, tags))
    return ways


def _named_edges(graph: Any) -> list[NamedWay]:
    """Return the streets of a graph that bear names, as ways of one step each; no areas, and none closed to all."""
    named: list[NamedWay] = []
    for _, _, edge, ends in _edges(graph):
        tags = {key: str(edge[key]) for key in NAME_TAGS if key in edge}
        if (rank := street_rank(tags)) >= 0:
            named.append(NamedWay(tags["name"], rank, ends))
    return named


def _edges(graph: Any) -> Iterator[tuple[int, int, dict[str, Any], NDArray[np.float64]]]:
    """Yield the edges of a graph in the direction of travel: its ends, what it says, and where the ends lie."""
    if graph is None:
        return
    for start, end, edge in graph.edges(data=True):
        if not edge["reversed"]:
            ends = [(graph.nodes[node]["x"], graph.nodes[node]["y"]) for node in (start, end)]
            yield start, end, edge, np.array(ends)


def _feature_frame(osmnx: Any, area: Any) -> Any:
    """Return buildings, places and coastline of an area as osmnx's table, or None where there are none."""
    tags = {"building": True, "natural": ["coastline"], **PLACE_TAGS}
    try:
        return osmnx.features_from_polygon(area, tags)
    except osmnx._errors.InsufficientResponseError:
        return None


def _features(frame: Any) -> list[tuple[Any, dict[str, str]]]:
    """Return the shapes of a table with their tags."""
    if frame is None:
        return []
    columns = frame.drop(columns="geometry").to_dict("records")
    rows = [{str(key): value for key, value in row.items() if isinstance(value, str)} for row in columns]
    return list(zip(frame.geometry, rows, strict=True))


def _sort_in(data: MapData, geometry: Any, tags: dict[str, str]) -> None:
    """Add a building, place or stretch of coast to what a map holds."""
    if tags.get("building", "no") != "no" and geometry.area > 0.0:
        data.buildings.append(geometry)
        data.building_tags.append(tags)
    if is_place(tags):
        centre = geometry.centroid
        data.places.append((centre.x, centre.y))
        data.place_tags.append(tags)
    if tags.get("natural") == "coastline":
        lines = [part for part in shapely.get_parts(geometry) if part.geom_type == "LineString"]
        data.coastline.extend(np.asarray(line.coords) for line in lines)
