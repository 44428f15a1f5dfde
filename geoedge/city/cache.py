"""The compiled cache: a city's arrays in one file, so that a second load needs neither osmnx nor the map."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from geoedge.city.city import BuildingTable, City, PlaceTable
from geoedge.city.names import StreetNames
from geoedge.city.streets import StreetGraph
from geoedge.errors import CityError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "cache_folder",
    "cache_key",
    "city_from_bytes",
    "city_to_bytes",
    "file_checksum",
    "load_cached",
    "save_cached",
]

_FORMAT = 2
_COMPILER = (
    "boundary.py",
    "buildings.py",
    "cache.py",
    "city.py",
    "compiler.py",
    "footprints.py",
    "names.py",
    "osm.py",
    "places.py",
    "read.py",
    "speeds.py",
    "streets.py",
)
_STREET_ARRAYS = (
    "node_xy",
    "edge_from",
    "edge_to",
    "edge_length",
    "edge_speed",
    "geometry_offset",
    "geometry_xy",
)
_NAME_ARRAYS = ("rank", "line_name", "line_offset", "xy")
_BUILDING_ARRAYS = ("xy", "footprint_m2", "levels", "kind", "levels_imputed", "levels_source")
_FACTS = ("name", "crs", "checksum", "attribution", "extract_date", "report")


def cache_folder() -> Path:
    """Return the folder of compiled cities: `GEOEDGE_CACHE`, or the user's cache folder."""
    chosen = os.environ.get("GEOEDGE_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("geoedge"))


def file_checksum(path: Path) -> str:
    """Return the sha256 of a file.

    Parameters
    ----------
    path
        The file.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def cache_key(facts: Mapping[str, Any]) -> str:
    """Return the name of a compiled city: a digest of its source, its options and the compiler.

    Parameters
    ----------
    facts
        Checksums and options that the result depends on.
    """
    here = Path(__file__).parent
    compiler = hashlib.sha256(b"".join((here / name).read_bytes() for name in _COMPILER)).hexdigest()
    whole = {**facts, "format": _FORMAT, "compiler": compiler, "osmnx": version("osmnx")}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:40]


def place_key(asked: Mapping[str, Any]) -> str:
    """Return the name of the folder of a place's answers.

    Parameters
    ----------
    asked
        What was asked, and of whom.
    """
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:40]


def city_to_bytes(city: City) -> bytes:
    """Return a city as the bytes of one `.npz` file; equal cities give equal bytes.

    Parameters
    ----------
    city
        The city.
    """
    arrays: dict[str, Any] = {
        "facts": _packed({name: getattr(city, name) for name in _FACTS} | {"modes": list(city.streets)}),
        "boundary": np.frombuffer(shapely.to_wkb(city.boundary), dtype=np.uint8),
        "places.xy": city.places.xy,
        "places.text": _packed({"kind": city.places.kind.tolist(), "name": city.places.name.tolist()}),
    }
    arrays |= {f"buildings.{name}": getattr(city.buildings, name) for name in _BUILDING_ARRAYS}
    arrays["names.text"] = _packed(city.street_names.name.tolist())
    arrays |= {f"names.{name}": getattr(city.street_names, name) for name in _NAME_ARRAYS}
    for mode, graph in city.streets.items():
        arrays |= {f"streets.{mode}.{name}": getattr(graph, name) for name in _STREET_ARRAYS}
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def city_from_bytes(data: bytes) -> City:
    """Return the city that `city_to_bytes` wrote.

    Parameters
    ----------
    data
        The bytes of the file.

    Raises
    ------
    CityError
        If they are not such a file, or damaged.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return _city(arrays)
    except (
        zipfile.BadZipFile,
        KeyError,
        ValueError,
        TypeError,
        OSError,
        EOFError,
        shapely.GEOSException,
    ) as error:
        msg = f"compiled city: damaged ({error}); delete it and load the city again"
        raise CityError(msg) from error


def _city(arrays: Any) -> City:
    facts, text = _unpacked(arrays["facts"]), _unpacked(arrays["places.text"])
    streets = {
        mode: StreetGraph(mode, *(arrays[f"streets.{mode}.{name}"] for name in _STREET_ARRAYS))
        for mode in facts.pop("modes")
    }
    kind, name = (np.array(text[column], dtype=object) for column in ("kind", "name"))
    street = np.array(_unpacked(arrays["names.text"]), dtype=object)
    return City(
        boundary=shapely.from_wkb(arrays["boundary"].tobytes()),
        streets=streets,
        buildings=BuildingTable(*(arrays[f"buildings.{column}"] for column in _BUILDING_ARRAYS)),
        places=PlaceTable(arrays["places.xy"], kind, name),
        street_names=StreetNames(street, *(arrays[f"names.{column}"] for column in _NAME_ARRAYS)),
        **facts,
    )


def _packed(value: Any) -> Any:
    return np.frombuffer(json.dumps(value).encode("ascii"), dtype=np.uint8)


def _unpacked(array: Any) -> Any:
    return json.loads(array.tobytes())


def load_cached(key: str) -> tuple[City | None, str]:
    """Return a compiled city, or None where there is none that can be read, and then why if it is there.

    Parameters
    ----------
    key
        Name from `cache_key`.
    """
    path = cache_folder() / f"{key}.npz"
    try:
        return city_from_bytes(path.read_bytes()), ""
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except OSError as error:
        return None, f"{path} cannot be read ({error.strerror}); city made anew"
    except CityError:
        return None, f"{path} was damaged; city made anew"


def save_cached(key: str, city: City) -> str:
    """Write a compiled city whole or not at all, and return why not; empty if it is written.

    Parameters
    ----------
    key
        Name from `cache_key`.
    city
        The city.
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as drafts:
            draft = Path(drafts) / f"{key}.npz"
            draft.write_bytes(city_to_bytes(city))
            os.replace(draft, folder / draft.name)
    except OSError as error:
        return f"city not kept: {folder} cannot be written ({error.strerror}); set GEOEDGE_CACHE to a folder that can be"
    return ""
