"""What a file of sites is, told by its content: unpacked where it is packed, whatever its name says."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any

from geoedge.errors import CityError
from geoedge.sites._rows import counted

__all__ = ["Content", "check_name", "open_content"]

LIMIT_BYTES = 4_000_000_000
"""What a packed file may hold unpacked [B]; more is taken for an attempt to fill the memory."""

PACKERS: dict[str, tuple[bytes, Any]] = {
    "gzip": (b"\x1f\x8b", gzip.open),
    "bzip2": (b"BZh", bz2.open),
    "xz": (b"\xfd7zXZ\x00", lzma.open),
}
"""First bytes of a packed file, and what opens it."""

SUFFIXES = {
    "geopackage": ".gpkg",
    "geojson": ".geojson",
    "shapefile": ".shp",
    "osm": ".osm",
    "pbf": ".osm.pbf",
}
"""The name that readers of each kind want."""

BAD_ZIP = (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError, ValueError, OSError)
"""What an archive that is damaged, locked or packed in an unknown way raises."""

NAMED = {
    ".gpkg": "GeoPackage",
    ".shp": "shapefile",
    ".pbf": "OpenStreetMap file",
    ".osm": "OpenStreetMap file",
    ".zip": "zip file",
    ".gz": "gzip file",
    ".bz2": "bzip2 file",
    ".xz": "xz file",
}
"""What a name promises that is no table of text."""

OSM_HEADER = b"OSMHeader"
SHAPE_PARTS = (".shp", ".shx", ".dbf", ".prj", ".cpg")
BINARY = bytes(set(range(32)) - set(b"\t\n\r\f\v\x1a\x1b"))


@dataclass(frozen=True)
class Content:
    """A file of sites, unpacked.

    Parameters
    ----------
    kind
        ``"table"`` or a key of `SUFFIXES`.
    data
        Its bytes; of a shapefile only the part with the geometry.
    packed
        How it was packed, empty if it was not.
    path
        Where a reader of this kind finds it; the file itself, or a copy that lives as long as it is open.
    """

    kind: str
    data: bytes
    packed: str
    path: Path


@contextmanager
def open_content(path: Path) -> Iterator[Content]:
    """Open a file of sites, packed or not, for as long as the context lasts.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    CityError
        If it cannot be read, is damaged, or is none of the kinds that are known.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); name a file you may read"
        raise CityError(msg) from None
    with TemporaryDirectory(prefix="geoedge-") as folder:
        yield _content(path, data, Path(folder))


def check_name(path: Path) -> None:
    """Refuse a file that holds nothing known and whose name promises another kind than a table.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    CityError
        If it does.
    """
    if kind := NAMED.get(path.suffix.lower()):
        msg = f"{path}: is named {path.suffix} but holds no {kind}; it is damaged, cut off or misnamed; download or save it again"
        raise CityError(msg)


def _content(path: Path, data: bytes, folder: Path) -> Content:
    for packed, (magic, opened) in PACKERS.items():
        if data.startswith(magic):
            with opened(io.BytesIO(data)) as stream:
                return _placed(path, _unpacked(path, packed, stream), packed, folder)
    if data.startswith(b"PK\x03\x04"):
        return _from_zip(path, data, folder)
    return _placed(path, data, "", folder)


def _placed(path: Path, data: bytes, packed: str, folder: Path) -> Content:
    """Return what the bytes are; where a reader needs a file of the right name, there is one."""
    kind = _kind(path, data)
    suffix = SUFFIXES.get(kind)
    if suffix is None or (not packed and path.name.lower().endswith(suffix)):
        return Content(kind, data, packed, path)
    if kind == "shapefile":
        msg = f"{path}: a shapefile is several files; name the .shp beside them, or pack all of them into one .zip"
        raise CityError(msg)
    copy = folder / f"sites{suffix}"
    copy.write_bytes(data)
    return Content(kind, data, packed, copy)


def _unpacked(path: Path, packed: str, stream: IO[bytes]) -> bytes:
    try:
        data = stream.read(LIMIT_BYTES + 1)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        msg = f"{path}: the {packed} file is damaged ({error}); download or pack it again"
        raise CityError(msg) from None
    _limited(path, len(data))
    return data


def _limited(path: Path, size: int) -> None:
    if size > LIMIT_BYTES:
        msg = f"{path}: holds more than {LIMIT_BYTES / 1e9:.0f} GB unpacked; cut it to the region first"
        raise CityError(msg)


def _from_zip(path: Path, data: bytes, folder: Path) -> Content:
    """Return the shapefile in an archive, or else its only file."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = [item for item in archive.infolist() if not _hidden(item)]
        _limited(path, sum(item.file_size for item in members))
        shapes = [item for item in members if item.filename.lower().endswith(".shp")]
        if len(shapes) == 1:
            return _shapefile(archive, members, shapes[0], folder)
        if len(members) != 1:
            names = ", ".join(item.filename for item in members[:5]) or "nothing"
            msg = f"{path}: the archive holds {names}; pack one shapefile or one file of sites"
            raise CityError(msg)
        return _placed(path, archive.read(members[0]), "zip", folder)
    except CityError:
        raise
    except BAD_ZIP as error:
        msg = f"{path}: the zip file cannot be unpacked ({error}); pack it again without password"
        raise CityError(msg) from None


def _hidden(item: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(item.filename).parts
    return item.is_dir() or "__MACOSX" in parts or parts[-1].startswith(".")


def _shapefile(
    archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], shape: zipfile.ZipInfo, folder: Path
) -> Content:
    """Unpack the parts of a shapefile under names of our own, so that no name in the archive counts."""
    stem = shape.filename[:-4].lower()
    for item in members:
        suffix = PurePosixPath(item.filename).suffix.lower()
        if suffix in SHAPE_PARTS and item.filename[: -len(suffix)].lower() == stem:
            (folder / f"sites{suffix}").write_bytes(archive.read(item))
    copy = folder / "sites.shp"
    return Content("shapefile", copy.read_bytes(), "zip", copy)


def _kind(path: Path, data: bytes) -> str:
    """Return what the bytes are.

    Raises
    ------
    CityError
        If they are neither text nor a known kind of map.
    """
    if not data:
        msg = f"{path}: is empty; a file of sites has rows"
        raise CityError(msg)
    if data.startswith(b"SQLite format 3\x00"):
        return "geopackage"
    if data.startswith(b"\x00\x00\x27\x0a"):
        return "shapefile"
    if OSM_HEADER in data[:64]:
        return "pbf"
    start = data[:4096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.startswith(b"{"):
        return "geojson"
    if start.startswith(b"<") and b"<osm" in start:
        return "osm"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "table"
    if start.startswith((b"<", b"PAR1")) or set(start) & set(BINARY.replace(b"\x00", b"")):
        check_name(path)
        msg = (
            f"{path}: is no file of sites that is known; sites come as CSV, GeoJSON, GeoPackage, shapefile or "
            "OpenStreetMap file, packed with gzip, bzip2, xz or zip or not"
        )
        raise CityError(msg)
    if nothing := data.count(0):
        check_name(path)
        line = data[: data.index(0)].count(b"\n") + 1
        msg = f"{path}: holds {counted(nothing, 'NUL byte')}, the first in line {line}, which no text has; save it again as UTF-8 text"
        raise CityError(msg)
    return "table"
