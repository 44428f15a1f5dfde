"""Cut a small OpenStreetMap file out of a large one, with what a city needs and nothing about its mappers."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoedge.city.places import is_place
from geoedge.city.read import header_facts, not_osm, things_of
from geoedge.errors import CityError, OutputError
from geoedge.files import check_place, folder_for, keep_apart

if TYPE_CHECKING:
    from geoedge.city.read import Bbox

__all__ = ["check_bbox", "clip"]

_KEPT_TAGS = frozenset(
    [
        "access",
        "amenity",
        "area",
        "bridge",
        "building",
        "building:height",
        "building:levels",
        "foot",
        "government",
        "healthcare",
        "height",
        "highway",
        "junction",
        "layer",
        "levels",
        "man_made",
        "maxspeed",
        "motor_vehicle",
        "motorcar",
        "name",
        "natural",
        "office",
        "oneway",
        "operator",
        "shop",
        "telecom",
        "tourism",
        "tower:type",
        "tunnel",
        "type",
        "vehicle",
    ]
)
_AREA_KEYS = ("building", "amenity", "shop", "office", "man_made", "telecom")


def check_bbox(bbox: Any) -> Bbox:
    """Return a bounding box as four numbers.

    Parameters
    ----------
    bbox
        West, south, east, north [degree].

    Raises
    ------
    CityError
        If it is not four numbers in range, the first two below the last two.
    """
    try:
        west, south, east, north = (float(value) for value in bbox)
    except (TypeError, ValueError):
        msg = f"`bbox` must be four numbers west, south, east, north in degrees, not {bbox!r}"
        raise CityError(msg) from None
    if not (-180.0 <= west < east <= 180.0 and -90.0 <= south < north <= 90.0):
        msg = (
            f"`bbox` is {west:g},{south:g},{east:g},{north:g}; west must be below east within -180..180 "
            "and south below north within -90..90"
        )
        raise CityError(msg)
    return west, south, east, north


def clip(source: str | Path, bbox: Any, output: str | Path) -> dict[str, int]:
    """Write the part of an OpenStreetMap file that a city needs, and return how many things of each kind it holds.

    Kept are streets, buildings, places, masts and coastline with at least one node in the box, each way whole.
    Users, change sets, versions and times are not written; the date of the extract is, in the file's header. The
    file appears whole or not at all, and is the same whenever it is made.

    Parameters
    ----------
    source
        An .osm, .osm.gz, .osm.bz2 or .osm.pbf file.
    bbox
        West, south, east, north [degree].
    output
        The .osm.pbf file to write.

    Raises
    ------
    CityError
        If the source cannot be read, the box is none, or nothing lies in it.
    OutputError
        If the output cannot be written, or is the source.
    """
    source, output, box = Path(source), Path(output), check_bbox(bbox)
    if not output.name.lower().endswith((".osm.pbf", ".osm", ".osm.gz", ".osm.bz2")):
        msg = f"`output` is {output.name}; its name must end in .osm.pbf"
        raise OutputError(msg)
    keep_apart({"source": source}, {"output": output})
    check_place(output, "`output`")
    stated, date = header_facts(source)
    part = _Part(box)
    try:
        part.collect(source)
        part.complete(source)
    except RuntimeError as error:
        raise not_osm(source, error) from None
    if not part.ways and not part.nodes:
        msg = (
            f"`bbox` {','.join(f'{x:g}' for x in box)}: {source.name} has no street, building or place there"
        )
        raise CityError(msg)
    covered = _common(box, stated) if stated else box
    _write_whole(part, covered, output, date if date != "unknown" else part.newest[:10])
    return dict(part.counts)


def _common(box: Bbox, other: Bbox) -> Bbox:
    """Return the part of a box that another covers."""
    return max(box[0], other[0]), max(box[1], other[1]), min(box[2], other[2]), min(box[3], other[3])


class _Part:
    """Things to keep, by id: nodes as (lon, lat, tags), ways as (refs, tags), relations as (members, tags)."""

    def __init__(self, box: Bbox) -> None:
        self.box = box
        self.nodes: dict[int, tuple[float, float, dict[str, str]]] = {}
        self.ways: dict[int, tuple[list[int], dict[str, str]]] = {}
        self.relations: dict[int, tuple[list[tuple[str, int, str]], dict[str, str]]] = {}
        self.wanted_ways: set[int] = set()
        self.counts: Counter[str] = Counter()
        self.newest = ""

    def collect(self, source: Path) -> None:
        """Choose nodes and ways in the box, and relations of chosen or crossing ways."""
        import osmium

        near: set[int] = set()
        tagged = osmium.filter.EmptyTagFilter()
        tagged.enable_for(osmium.osm.NODE)
        things: Any = osmium.FileProcessor(str(source)).with_locations().with_filter(tagged)
        for thing in things_of(things, source):
            kind = thing.type_str()
            if thing.timestamp.year > 1971:
                self.newest = max(self.newest, thing.timestamp.isoformat())
            if kind == "n":
                self._node(thing)
            elif kind == "w" and any(self._inside(node.location) for node in thing.nodes):
                near.add(thing.id)
                self._way(thing)
            elif kind == "r":
                self._relation(thing, near)

    def complete(self, source: Path) -> None:
        """Fetch the outlines of relations and every node of a kept way; what the source lacks is dropped."""
        import osmium

        missing = self.wanted_ways.difference(self.ways)
        if missing:
            ways: Any = osmium.FileProcessor(str(source), osmium.osm.WAY).with_filter(
                osmium.filter.IdFilter(missing)
            )
            for way in ways:
                self.ways[way.id] = ([node.ref for node in way.nodes], _kept(way.tags))
        refs = {ref for way_refs, _ in self.ways.values() for ref in way_refs}.difference(self.nodes)
        nodes: Any = osmium.FileProcessor(str(source), osmium.osm.NODE).with_filter(
            osmium.filter.IdFilter(refs)
        )
        for node in nodes:
            self.nodes[node.id] = (node.lon, node.lat, {})
        self.counts["references_dropped"] = len(refs.difference(self.nodes))
        for way_id, (way_refs, tags) in list(self.ways.items()):
            self.ways[way_id] = ([ref for ref in way_refs if ref in self.nodes], tags)

    def _inside(self, location: Any) -> bool:
        west, south, east, north = self.box
        return bool(location.valid()) and west <= location.lon <= east and south <= location.lat <= north

    def _node(self, node: Any) -> None:
        if self._inside(node.location):
            tags = dict(node.tags)
            if is_place(tags):
                self.nodes[node.id] = (node.lon, node.lat, _kept(tags))
                self.counts["places"] += 1

    def _way(self, way: Any) -> None:
        tags = dict(way.tags)
        kinds = _kinds(tags)
        if kinds:
            self.counts.update(kinds)
            self.ways[way.id] = ([node.ref for node in way.nodes], _kept(tags))

    def _relation(self, relation: Any, near: set[int]) -> None:
        tags = dict(relation.tags)
        members = [(member.type, member.ref, member.role) for member in relation.members]
        ways = {ref for kind, ref, _ in members if kind == "w"}
        if (
            tags.get("type") == "multipolygon"
            and any(key in tags for key in _AREA_KEYS)
            and _kinds(tags)
            and ways & near
        ):
            self.counts.update(_kinds(tags))
            self.relations[relation.id] = ([member for member in members if member[0] == "w"], _kept(tags))
            self.wanted_ways |= ways


def _kinds(tags: dict[str, str]) -> list[str]:
    """Return what a way or area is to a city."""
    found = {
        "streets": "highway" in tags,
        "buildings": tags.get("building", "no") != "no",
        "places": is_place(tags),
        "coastline": tags.get("natural") == "coastline",
    }
    return [name for name, true in found.items() if true]


def _kept(tags: Any) -> dict[str, str]:
    return {key: value for key, value in sorted(dict(tags).items()) if key in _KEPT_TAGS}


def _write_whole(part: _Part, covered: Bbox, output: Path, date: str) -> None:
    """Write beside the output, then put it in its place."""
    try:
        with folder_for(output), tempfile.TemporaryDirectory(dir=output.parent, prefix=".clip-") as folder:
            draft = Path(folder) / output.name
            _write(part, covered, draft, date)
            os.replace(draft, output)
    except (OSError, RuntimeError) as error:
        msg = f"`output` {output} cannot be written ({error}); choose a folder that can"
        raise OutputError(msg) from None


def _write(part: _Part, covered: Bbox, path: Path, date: str) -> None:
    import osmium

    header = osmium.io.Header()
    west, south, east, north = covered
    header.add_box(osmium.osm.Box(west, south, east, north))
    header.set("generator", "geoedge city clip")
    if date and date != "unknown":
        header.set("osmosis_replication_timestamp", f"{date}T00:00:00Z")
    target = osmium.io.File(str(path))
    target.parse_format(
        "osm.pbf,add_metadata=none,pbf_compression_level=9" if path.name.endswith(".pbf") else ""
    )
    mutable = osmium.osm.mutable
    with osmium.SimpleWriter(target, header=header) as writer:
        for node, (lon, lat, tags) in sorted(part.nodes.items()):
            writer.add_node(mutable.Node(id=node, location=(lon, lat), tags=tags))
        for way, (refs, tags) in sorted(part.ways.items()):
            writer.add_way(mutable.Way(id=way, nodes=refs, tags=tags))
        for relation, (members, tags) in sorted(part.relations.items()):
            writer.add_relation(mutable.Relation(id=relation, members=members, tags=tags))
