"""Find the files that come with geoedge, whatever directory it is called from."""

from __future__ import annotations

from pathlib import Path

from geoedge.errors import GeoEdgeError

__all__ = ["data_path", "data_root"]


def data_root() -> Path:
    """Return the folder of the shipped data: inside the installed package, or the repository's own.

    Raises
    ------
    GeoEdgeError
        If neither exists, as in a package installed without its data.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "_data", package.parent / "data"):
        if (root / "osm").is_dir():
            return root
    msg = f"shipped data: no `_data` in {package.name} and no `data` beside it; reinstall geoedge from its wheel"
    raise GeoEdgeError(msg)


def data_path(*parts: str) -> Path:
    """Return the path of a shipped file or folder, for example ``data_path("osm", "monaco.osm.pbf")``.

    Parameters
    ----------
    *parts
        Folder and file names below the data folder.

    Raises
    ------
    GeoEdgeError
        If there is no such file.
    """
    root = data_root()
    path = root.joinpath(*parts)
    if not path.exists():
        here = sorted(item.name for item in path.parent.iterdir()) if path.parent.is_dir() else []
        msg = f"shipped data: no {'/'.join(parts)}; there are {', '.join(here) or 'no files in that folder'}"
        raise GeoEdgeError(msg)
    return path
