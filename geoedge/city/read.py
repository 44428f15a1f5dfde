"""Read what a city needs from an OpenStreetMap file: streets, buildings, places and coastline."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.city.names import NamedWay, street_rank
from geoedge.city.places import is_place
from geoedge.city.speeds import MODES, street_usable
from geoedge.errors import CityError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

__all__ = [
    "STREET_TAGS",
    "SUFFIXES",
    "Bbox",
    "MapData",
    "StreetWay",
    "check_file",
    "header_facts",
    "not_osm",
    "read_map",
    "things_of",
]

Bbox = tuple[float, float, float, float]
"""West, south, east, north [degree]."""

SUFFIXES = (".osm", ".osm.gz", ".osm.bz2", ".osm.pbf", ".pbf")
STREET_TAGS = (
    "highway",
    "maxspeed",
    "oneway",
    "junction",
    "area",
    "access",
    "foot",
    "motorcar",
    "motor_vehicle",
    "vehicle",
)

_NO_WAY = 0


@dataclass
class StreetWay:
    """A street as it is mapped: node ids, their positions, and its tags."""

    refs: list[int]
    lonlat: NDArray[np.float64]
    tags: dict[str, str]


@dataclass
class MapData:
    """What a file or a map service holds of a city, in degrees.

    Parameters
    ----------
    ways
        Streets of any mode.
    buildings
        Footprints as shapely polygons, with `building_tags` beside them.
    places
        Positions, with `place_tags` beside them.
    coastline
        Lines with the land on their left, shape (n, 2) each.
    named
        Streets that bear names, whether anybody may use them or not; of a place that is downloaded, those that some
        mode may use, and no areas.
    references_dropped, ways_dropped, relations_dropped
        References to absent nodes, ways left with fewer than two nodes, buildings of several outlines with a gap;
        ways of which nothing but the name is used do not count.
    buildings_file
        What was taken and dropped of a file of buildings of their own, or None where the map's own are used.
    bbox
        The area that the source claims to cover, or None.
    extract_date
        ISO date, or ``"unknown"``.
    """

    ways: list[StreetWay] = field(default_factory=list)
    buildings: list[Any] = field(default_factory=list)
    building_tags: list[dict[str, str]] = field(default_factory=list)
    places: list[tuple[float, float]] = field(default_factory=list)
    place_tags: list[dict[str, str]] = field(default_factory=list)
    coastline: list[NDArray[np.float64]] = field(default_factory=list)
    named: list[NamedWay] = field(default_factory=list)
    references_dropped: int = 0
    ways_dropped: int = 0
    relations_dropped: int = 0
    buildings_file: dict[str, Any] | None = None
    bbox: Bbox | None = None
    extract_date: str = "unknown"


def check_file(path: Path) -> None:
    """Refuse what cannot be an OpenStreetMap file.

    Raises
    ------
    CityError
        If it is missing, a folder, or of another kind.
    """
    if not path.is_file():
        msg = f"city file: no file {path}; give a shipped city, an existing .osm, .osm.gz, .osm.bz2 or .osm.pbf, or a place name"
        raise CityError(msg)
    if not path.name.lower().endswith(SUFFIXES):
        msg = (
            f"city file: {path.name} is none of {', '.join(SUFFIXES)}; convert it or rename it to what it is"
        )
        raise CityError(msg)


def not_osm(path: Path, error: Exception) -> CityError:
    """Return the one line for a file that pyosmium cannot read."""
    reason = " ".join(str(error).split())[:120]
    return CityError(
        f"city file: {path.name} is not a readable OpenStreetMap file ({reason}); download or export it again"
    )


def header_facts(path: Path) -> tuple[Bbox | None, str]:
    """Return the bounding box and the date that the header of a file states.

    Raises
    ------
    CityError
        If the file is missing or is no OpenStreetMap file.
    """
    import osmium

    check_file(path)
    try:
        with osmium.io.Reader(str(path), osmium.osm.NOTHING) as reader:
            header = reader.header()
            box, stamp = header.box(), header.get("osmosis_replication_timestamp")
    except RuntimeError as error:
        raise not_osm(path, error) from None
    bbox = None
    if box.valid():
        low, high = box.bottom_left, box.top_right
        bbox = (low.lon, low.lat, high.lon, high.lat)
    return bbox, stamp[:10] or "unknown"


def things_of(source: Iterable[Any], path: Path) -> Iterator[Any]:
    """Yield the things of an OpenStreetMap file as pyosmium reads them.

    Parameters
    ----------
    source
        What reads the file.
    path
        The file.

    Raises
    ------
    CityError
        If one holds what no such file may, as a name of more than 1024 bytes.
    """
    try:
        yield from source
    except ValueError as error:
        raise not_osm(path, error) from None


def read_map(path: Path) -> MapData:
    """Return the streets, buildings, places and coastline of an OpenStreetMap file.

    Ways that refer to absent nodes lose those references, counted in `references_dropped`.

    Parameters
    ----------
    path
        An .osm, .osm.gz, .osm.bz2 or .osm.pbf file.

    Raises
    ------
    CityError
        If the file is missing or is no OpenStreetMap file.
    """
    bbox, date = header_facts(path)
    reader = _Reader(MapData(bbox=bbox, extract_date=date))
    try:
        reader.read(path)
    except RuntimeError as error:
        raise not_osm(path, error) from None
    return reader.finish()


class _Reader:
    """Collects one file; outlines of building relations come once, as the relation."""

    def __init__(self, data: MapData) -> None:
        import osmium

        self.data = data
        self.newest = ""
        self.members: dict[int, set[int]] = {}
        self.assembled: set[int] = set()
        self.way_ids: list[int] = []
        self.wkb = osmium.geom.WKBFactory()

    def read(self, path: Path) -> None:
        """Read everything, ways after their nodes."""
        import osmium

        keys = osmium.filter.KeyFilter(
            "building", "amenity", "shop", "office", "highway", "natural", "man_made", "telecom", "tower:type"
        )
        areas = osmium.filter.KeyFilter("building", "amenity", "shop", "office")
        take = {"n": self._node, "w": self._way, "r": self._relation, "a": self._area}
        things: Any = osmium.FileProcessor(str(path)).with_areas(areas).with_filter(keys)
        for thing in things_of(things, path):
            take[thing.type_str()](thing)

    def finish(self) -> MapData:
        """Return what was read without the outlines that a relation already stands for."""
        data = self.data
        done = [outer for relation, outer in self.members.items() if relation in self.assembled]
        data.relations_dropped = len(self.members) - len(done)
        twice = set().union(*done)
        keep = [way not in twice for way in self.way_ids]
        data.buildings = [item for item, kept in zip(data.buildings, keep, strict=True) if kept]
        data.building_tags = [item for item, kept in zip(data.building_tags, keep, strict=True) if kept]
        if data.extract_date == "unknown" and self.newest > "1971":
            data.extract_date = self.newest[:10]
        return data

    def _node(self, node: Any) -> None:
        tags = dict(node.tags)
        self._date(node)
        if is_place(tags) and node.location.valid():
            self._place(node.location.lon, node.location.lat, tags)

    def _way(self, way: Any) -> None:
        tags = dict(way.tags)
        self._date(way)
        street = "highway" in tags and any(street_usable(mode, tags) for mode in MODES)
        coast = tags.get("natural") == "coastline"
        counts = street or coast or "building" in tags or is_place(tags)
        rank = street_rank(tags)
        if not (counts or rank >= 0):
            return
        refs, lonlat = self._line(way)
        self.data.references_dropped += counts * (len(way.nodes) - len(refs))
        if len(refs) < 2:
            self.data.ways_dropped += counts
            return
        if rank >= 0:
            self.data.named.append(NamedWay(tags["name"], rank, lonlat, tags.get("area") == "yes"))
        if street:
            kept = {key: tags[key] for key in STREET_TAGS if key in tags}
            self.data.ways.append(StreetWay(refs, lonlat, kept))
        if coast:
            self.data.coastline.append(lonlat)
        if way.is_closed():
            self._closed(way.id, lonlat, tags)
        elif is_place(tags):
            lon, lat = lonlat.mean(axis=0).tolist()
            self._place(lon, lat, tags)

    def _line(self, way: Any) -> tuple[list[int], NDArray[np.float64]]:
        """Return the ids and positions of the nodes that are there."""
        found = [(node.ref, node.lon, node.lat) for node in way.nodes if node.location.valid()]
        lonlat = np.array([item[1:] for item in found], dtype=np.float64).reshape(-1, 2)
        return [item[0] for item in found], lonlat

    def _closed(self, way_id: int, lonlat: NDArray[np.float64], tags: dict[str, str]) -> None:
        import shapely

        if len(lonlat) > 3:
            self._outline(shapely.make_valid(shapely.Polygon(lonlat)), way_id, tags)

    def _relation(self, relation: Any) -> None:
        if "building" in relation.tags and relation.tags.get("type") == "multipolygon":
            outer = {
                member.ref for member in relation.members if member.type == "w" and member.role != "inner"
            }
            self.members[relation.id] = outer

    def _area(self, area: Any) -> None:
        import shapely

        if not area.from_way():
            self.assembled.add(area.orig_id())
            polygon = shapely.make_valid(shapely.from_wkb(bytes.fromhex(self.wkb.create_multipolygon(area))))
            self._outline(polygon, _NO_WAY, dict(area.tags))

    def _outline(self, polygon: Any, way_id: int, tags: dict[str, str]) -> None:
        if polygon.area <= 0.0:
            return
        if tags.get("building", "no") != "no":
            self.data.buildings.append(polygon)
            self.data.building_tags.append(tags)
            self.way_ids.append(way_id)
        if is_place(tags):
            centre = polygon.centroid
            self._place(centre.x, centre.y, tags)

    def _place(self, lon: float, lat: float, tags: dict[str, str]) -> None:
        self.data.places.append((lon, lat))
        self.data.place_tags.append(tags)

    def _date(self, thing: Any) -> None:
        self.newest = max(self.newest, thing.timestamp.isoformat())
