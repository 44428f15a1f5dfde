"""Load a city by a shipped name, from a file, or by the name of a place."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geoedge.city.cache import cache_folder, cache_key, file_checksum, load_cached, place_key, save_cached
from geoedge.city.clipping import check_bbox
from geoedge.city.download import Endpoints, Visit, answers_facts, answers_folder
from geoedge.city.footprints import check_footprints, footprints_checksum, take_footprints
from geoedge.city.read import SUFFIXES, check_file, read_map
from geoedge.errors import CityError
from geoedge.shipped import data_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from geoedge.city.city import City
    from geoedge.city.read import Bbox, MapData

__all__ = ["load_city", "shipped_cities"]


def shipped_cities() -> dict[str, dict[str, str]]:
    """Return the cities that come with geoedge: the files of each, by name."""
    with data_path("osm", "cities.toml").open("rb") as stream:
        return tomllib.load(stream)


def load_city(
    source: Any,
    *,
    bbox: Any = None,
    boundary_buffer_m: float | None = None,
    enrichment: str | Path | None = None,
    buildings: str | Path | None = None,
    time_limit_s: float = 60.0,
    cache: bool = True,
    overpass_url: str | None = None,
    nominatim_url: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> City:
    """Return a city as arrays in one projected CRS.

    The first load of a city takes seconds; its arrays are then kept in the user's cache folder (`GEOEDGE_CACHE`
    names another), and a later load takes a fraction of a second. Where that cannot be read or written, the load
    succeeds without, and ``report["cache"]`` and `progress` say why.

    Parameters
    ----------
    source
        A shipped name (``"monaco"``, ``"neubrandenburg"``), the path of an .osm, .osm.gz, .osm.bz2 or .osm.pbf
        file, the name of a place, which is looked up and downloaded, or the `city` table of a scenario.
    bbox
        West, south, east, north of the part to keep [degree]; by default all.
    boundary_buffer_m
        Distance from streets and buildings within which people are [m]; by default 100.
    enrichment
        A newer file of the same place, for storeys, uses and places.
    buildings
        A GeoPackage, GeoJSON or Shapefile of footprints that take the place of the map's own buildings; columns such
        as ``building``, ``levels`` and ``height`` are used.
    time_limit_s
        Longest time for a download [s].
    cache
        Whether to use and fill the cache.
    overpass_url, nominatim_url
        Services for places; by default `GEOEDGE_OVERPASS_URL` and `GEOEDGE_NOMINATIM_URL`, or osmnx's own.
    progress
        Called with a line of text as each stage begins.

    Raises
    ------
    CityError
        If the source is missing, is no map, or has no streets there.
    DownloadError
        If a map service does not deliver in time.
    """
    if hasattr(source, "source"):
        bbox = getattr(source, "bbox", None) if bbox is None else bbox
        buffer = getattr(source, "boundary_buffer_m", None)
        boundary_buffer_m = buffer if boundary_buffer_m is None else boundary_buffer_m
        buildings = getattr(source, "buildings", None) if buildings is None else buildings
        source = source.source
    loading = _Loading(
        None if bbox is None else check_bbox(bbox),
        _check_buffer(100.0 if boundary_buffer_m is None else float(boundary_buffer_m)),
        cache,
        progress or (lambda _: None),
        None if buildings is None else _footprint_file(buildings),
    )
    text, shipped = str(source).strip(), shipped_cities()
    newer = Path(enrichment) if enrichment else None
    if isinstance(source, str) and text.casefold() in shipped:
        entry = shipped[text.casefold()]
        if newer is None and "enrichment" in entry:
            newer = data_path("osm", entry["enrichment"])
        return loading.from_file(text.casefold(), data_path("osm", entry["file"]), newer, entry["origin"])
    path = Path(source).expanduser()
    if isinstance(source, Path) or path.is_file() or text.lower().endswith(SUFFIXES):
        check_file(path)
        return loading.from_file(path.name.partition(".")[0], path, newer, f"OpenStreetMap file {path.name}")
    if not text:
        msg = "city: `source` is empty; give a shipped city, a file, or the name of a place"
        raise CityError(msg)
    endpoints = Endpoints.choose(overpass_url, nominatim_url)
    return loading.from_place(text, endpoints, Visit(text, time_limit_s, tuple(shipped)))


def _check_buffer(buffer_m: float) -> float:
    if not 1.0 <= buffer_m <= 5000.0:
        msg = f"`boundary_buffer_m` is {buffer_m:g}; it must lie between 1 and 5000 m"
        raise CityError(msg)
    return buffer_m


def _footprint_file(buildings: str | Path) -> Path:
    path = Path(buildings).expanduser()
    check_footprints(path)
    return path


@dataclass(frozen=True)
class _Loading:
    """How to load a city."""

    bbox: Bbox | None
    buffer_m: float
    cache: bool
    progress: Callable[[str], None]
    buildings: Path | None = None

    def from_file(self, name: str, path: Path, enrichment: Path | None, origin: str) -> City:
        """Return the city of a file, from the cache if it is there."""
        if enrichment is not None:
            check_file(enrichment)
        facts = {
            "name": name,
            "checksum": file_checksum(path),
            "origin": self._origin(origin),
            "enrichment_checksum": file_checksum(enrichment) if enrichment else None,
            **self._buildings_facts(),
        }

        def make() -> City:
            self.progress(f"reading {path.name}")
            newer = read_map(enrichment) if enrichment else None
            return self._compile(read_map(path), facts, newer)

        return self._cached({**facts, "bbox": self.bbox, "boundary_buffer_m": self.buffer_m}, make, [])

    def from_place(self, place: str, endpoints: Endpoints, visit: Visit) -> City:
        """Return the city of a place, from the cache if it is there."""
        services = {"overpass": endpoints.overpass, "nominatim": endpoints.nominatim}
        asked = {"place": place, "bbox": self.bbox, **services}

        def make() -> City:
            from geoedge.city.osm import download_map

            self.progress(f"asking map services for {place}")
            with answers_folder(cache_folder(), place_key(asked), visit, keep=self.cache) as folder:
                data = download_map(place, self.bbox, endpoints, visit, folder)
                checksum, data.extract_date = answers_facts(folder)
                origin = f"OpenStreetMap through its map services, {place}; missing storeys imputed"
                facts = {"name": place, "checksum": checksum, "origin": self._origin(origin)}
                return self._compile(data, facts | self._buildings_facts())

        facts = {**asked, "boundary_buffer_m": self.buffer_m, **self._buildings_facts()}
        return self._cached(facts, make, visit.notes)

    def _buildings_facts(self) -> dict[str, str]:
        """Return the checksum of a file of buildings, if there is one."""
        return {"buildings_checksum": footprints_checksum(self.buildings)} if self.buildings else {}

    def _origin(self, map_origin: str) -> str:
        return f"{map_origin}; buildings of {self.buildings.name}" if self.buildings else map_origin

    def _cached(self, facts: dict[str, Any], make: Callable[[], City], notes: list[str]) -> City:
        """Return the city of these facts, made where it is not there yet; troubles with the cache go in its report."""
        if not self.cache:
            return make()
        key = cache_key(facts)
        city, trouble = load_cached(key)
        if city is not None:
            return city
        city = make()
        if said := [note for note in (trouble, *notes, save_cached(key, city)) if note]:
            city.report["cache"] = "; ".join(said)
            self.progress(city.report["cache"])
        return city

    def _compile(self, data: MapData, facts: dict[str, Any], newer: MapData | None = None) -> City:
        from geoedge.city.compiler import SourceFacts, compile_city

        if self.buildings:
            self.progress(f"reading {self.buildings.name}")
            take_footprints(data, self.buildings, self.bbox or data.bbox)
        return compile_city(
            data,
            SourceFacts(**facts),
            bbox=self.bbox,
            boundary_buffer_m=self.buffer_m,
            enrichment=newer,
            progress=self.progress,
        )
