"""Rows that could not be used, kept in a file with the reason, whole or not at all."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from geoedge.errors import OutputError

if TYPE_CHECKING:
    from geoedge.sites.cleaning import Cleaned

__all__ = ["keep_apart", "write_quarantine"]

HEADER = ("row", "reason", "likely_cause", "text")


def keep_apart(read: Mapping[str, str | Path | None], written: Mapping[str, str | Path | None]) -> None:
    """Refuse to write over a file that is read, or two files at one place, however the paths are spelt.

    Parameters
    ----------
    read
        Files that are read, by what they are called to the user; None where there is none.
    written
        Files that are to be written, likewise.

    Raises
    ------
    OutputError
        If two of them are one file.
    """
    taken = {name: path for name, path in read.items() if path is not None}
    for name, path in written.items():
        if path is None:
            continue
        for other, there in taken.items():
            if _one_file(path, there):
                msg = f"{name} {str(path)!r} is the same file as {other} {str(there)!r}; name another file to write"
                raise OutputError(msg)
        taken[name] = path


def _one_file(path: str | Path, other: str | Path) -> bool:
    """Return whether two paths lead to one file, by another spelling or by a link."""
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of them is not there yet
        return os.path.realpath(path) == os.path.realpath(other)


def write_quarantine(cleaned: Cleaned, path: str | Path) -> int:
    """Write the rows that could not be used and return how many they are.

    A row stands as it was, quoted and otherwise unchanged: a text that a spreadsheet would take for a formula is one
    here too. Rows count from 1 after the header; blank lines do not count.

    Parameters
    ----------
    cleaned
        Rows of a file, sorted out.
    path
        The CSV file to write.

    Raises
    ------
    OutputError
        If it cannot be written there.
    """
    bad = [(int(row), item) for item in cleaned.problems if not item.used for row in item.rows.tolist()]
    bad.sort(key=lambda found: found[0])
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows((row + 1, item.reason, item.cause, cleaned.rows.text(row)) for row, item in bad)
    _write_whole(Path(path), text.getvalue().encode("utf-8", errors="replace"))
    return len(bad)


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name first, so that nobody ever sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(partial, 0o644)
            os.replace(partial, path)
        finally:
            Path(partial).unlink(missing_ok=True)
    except OSError as error:
        msg = f"quarantine file {str(path)!r} cannot be written ({error.strerror}); name a file in a folder you may write to"
        raise OutputError(msg) from None
