"""Figures to files: checked before the work, written whole, equal bytes for equal figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from geoedge.errors import OutputError
from geoedge.files import check_place, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_picture", "save_figure"]

FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: str | Path) -> None:
    """Say in one line why a picture cannot be written there, before minutes of work are spent.

    Parameters
    ----------
    path
        The file to be.

    Raises
    ------
    OutputError
        If its ending names no format, or there is no permission.
    """
    if Path(path).suffix.lower() not in FORMATS:
        msg = f"{path}: a picture ends in {', '.join(FORMATS)}; name such a file"
        raise OutputError(msg)
    check_place(Path(path))


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure, whole or not at all, and return its path.

    Parameters
    ----------
    figure
        The figure, one of geoedge's or any other.
    path
        The file; its ending names the format.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    from geoedge.style.paper import written

    check_picture(path)
    return write_whole(Path(path), written(figure, Path(path).suffix[1:].lower()), "picture")
