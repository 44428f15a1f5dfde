"""Figures to files: checked before the work, written whole, equal bytes for equal figures."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from geoedge.errors import OutputError
from geoedge.files import check_place, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_picture", "save_figure"]

_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
"""What would differ between two files of one figure."""
DPI = 120


def check_picture(path: Path) -> None:
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
    if path.suffix.lower() not in _METADATA:
        msg = f"{path}: a picture ends in {', '.join(_METADATA)}; name such a file"
        raise OutputError(msg)
    check_place(path)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure, whole or not at all, and return its path.

    Parameters
    ----------
    figure
        The figure.
    path
        The file; its ending names the format.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    import matplotlib as mpl

    check_picture(path)
    kind, buffer = path.suffix.lower(), io.BytesIO()
    with mpl.rc_context({**mpl.rcParamsDefault, "svg.hashsalt": "geoedge"}):
        figure.savefig(buffer, format=kind[1:], dpi=DPI, metadata=_METADATA[kind])
    return write_whole(path, buffer.getvalue(), "picture")
