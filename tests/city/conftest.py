"""A small town in OpenStreetMap's own formats, made here, and the shipped cities, loaded once."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np
import pytest

from geoedge.city import City, load_city

if TYPE_CHECKING:
    from pathlib import Path

WEST, SOUTH = 9.0, 50.0  # on the central meridian of UTM zone 32, where x is 500 km
DEGREE_M = 111_229.0  # a degree of latitude there
EAST_M = 71_696.0  # a degree of longitude there


@dataclass
class Town:
    """Elements of a map, written as XML, or as the JSON of a map service."""

    nodes: dict[int, tuple[float, float, dict[str, str]]] = field(default_factory=dict)
    ways: dict[int, tuple[list[int], dict[str, str]]] = field(default_factory=dict)
    relations: dict[int, tuple[list[tuple[str, int, str]], dict[str, str]]] = field(default_factory=dict)

    def node(self, x: float, y: float, **tags: str) -> int:
        """Add a node at x, y [m] from the south-west corner."""
        number = len(self.nodes) + 1
        self.nodes[number] = (WEST + x / EAST_M, SOUTH + y / DEGREE_M, _tags(tags))
        return number

    def way(self, refs: list[int], **tags: str) -> int:
        """Add a way; a key `a__b` means a:b."""
        number = 1000 + len(self.ways)
        self.ways[number] = (refs, _tags(tags))
        return number

    def square(self, x: float, y: float, side: float, **tags: str) -> int:
        """Add a closed way around a square with its lower left corner at x, y."""
        ring = [self.node(x + a * side, y + b * side) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
        return self.way([*ring, ring[0]], **tags)

    def grid(self, count: int = 4, step: float = 100.0, **tags: str) -> list[list[int]]:
        """Add count streets each way, and return their crossings."""
        cross = [[self.node(step * i, step * j) for i in range(count)] for j in range(count)]
        tags = {"highway": "residential", **tags}
        for line in [*cross, *(list(column) for column in zip(*cross, strict=True))]:
            self.way(line, **tags)
        return cross

    def elements(self) -> list[dict[str, Any]]:
        """Return the elements as Overpass writes them."""
        found: list[dict[str, Any]] = []
        for number, (lon, lat, tags) in self.nodes.items():
            found.append(
                {"type": "node", "id": number, "lat": round(lat, 7), "lon": round(lon, 7), "tags": tags}
            )
        for number, (refs, tags) in self.ways.items():
            found.append({"type": "way", "id": number, "nodes": refs, "tags": tags})
        return [{key: value for key, value in item.items() if value != {}} for item in found]

    def xml(self) -> str:
        """Return the elements as an .osm file, with mappers' names and times, as exports have them."""
        mark = 'version="3" timestamp="2020-05-01T10:00:00Z" uid="77" user="Eve Mapper" changeset="4711"'
        text = ['<?xml version="1.0" encoding="UTF-8"?>\n<osm version="0.6" generator="tests">\n']
        for number, (lon, lat, tags) in self.nodes.items():
            text.append(
                f'<node id="{number}" lat="{lat:.7f}" lon="{lon:.7f}" {mark}>{_xml_tags(tags)}</node>\n'
            )
        for number, (refs, tags) in self.ways.items():
            inner = "".join(f'<nd ref="{ref}"/>' for ref in refs)
            text.append(f'<way id="{number}" {mark}>{inner}{_xml_tags(tags)}</way>\n')
        for number, (members, tags) in self.relations.items():
            inner = "".join(
                f'<member type="{kind}" ref="{ref}" role="{role}"/>' for kind, ref, role in members
            )
            text.append(f'<relation id="{number}" {mark}>{inner}{_xml_tags(tags)}</relation>\n')
        return "".join([*text, "</osm>\n"])

    def write(self, path: Path) -> Path:
        """Write the town in the format of the file's name."""
        data = self.xml().encode()
        if path.name.endswith(".pbf"):
            import osmium

            buffer = osmium.io.FileBuffer(data, "osm")
            with osmium.SimpleWriter(str(path)) as writer:
                for thing in osmium.FileProcessor(buffer):
                    writer.add(thing)
        else:
            pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)
            path.write_bytes(pack(data))
        return path


def _tags(tags: dict[str, str]) -> dict[str, str]:
    return {key.replace("__", ":"): value for key, value in tags.items()}


def _xml_tags(tags: dict[str, str]) -> str:
    return "".join(f"<tag k={quoteattr(key)} v={quoteattr(value)}/>" for key, value in tags.items())


@pytest.fixture
def town() -> Town:
    """An empty town."""
    return Town()


@pytest.fixture
def village() -> Town:
    """Streets on a grid, two with names, nine buildings, a shop and a post office."""
    made = Town()
    made.grid()
    for number, name in ((1000, "Dorfstraße"), (1005, "</script><b>Gasse</b>")):
        made.ways[number][1]["name"] = name
    for i in range(3):
        for j in range(3):
            made.square(100 * i + 20, 100 * j + 20, 30, building="yes" if i else "apartments")
    made.node(150, 110, shop="bakery", name="Bäcker & <b>Söhne</b>")
    made.node(50, 190, amenity="post_office", name="Post")
    made.node(60, 190, amenity="bench")
    return made


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GEOEDGE_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session", params=["monaco", "neubrandenburg"])
def shipped(request: pytest.FixtureRequest) -> City:
    """Each shipped city."""
    return load_city(request.param)


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded generator."""
    return np.random.default_rng(20240501)
