"""Files that are written: whole or not at all, and never over one that is read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from geoedge.errors import OutputError

__all__ = ["check_place", "folder_for", "has_room", "keep_apart", "write_whole"]


def check_place(path: Path, what: str = "") -> None:
    """Say in one line why a file cannot be written there, before minutes of work are spent.

    Parameters
    ----------
    path
        The file to be.
    what
        What it is to the user, for the error message.

    Raises
    ------
    OutputError
        If it is a folder, or nothing can be written there.
    """
    if not has_room(path) or path.is_dir():
        msg = f"{what} {path}: cannot be written there; name a file in a folder you may write to".lstrip()
        raise OutputError(msg)


def has_room(path: Path) -> bool:
    """Return whether something of this name can be made in the folder that is there.

    It is tried: permission bits do not tell of names that are too long, or of file systems that take no files.

    Parameters
    ----------
    path
        What is to be, with folders above it that may be missing.
    """
    try:
        parent = next(folder for folder in path.absolute().parents if folder.exists())
        handle, probe = tempfile.mkstemp(prefix=f".{path.name}-", dir=parent)
        os.close(handle)
        os.unlink(probe)
    except (OSError, ValueError, StopIteration):  # the root of a file system has nothing above it
        return False
    return True


@contextmanager
def folder_for(path: Path) -> Iterator[None]:
    """Make the folders above a file or folder, and take away those that were made if what follows fails.

    Parameters
    ----------
    path
        What is to be written.
    """
    missing = [folder for folder in path.absolute().parents if not folder.exists()]
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with suppress(OSError):
                folder.rmdir()
        raise


def write_whole(path: Path, data: bytes, what: str = "file") -> Path:
    """Write a file under another name first, so that nobody ever sees half of it, and return its path.

    Parameters
    ----------
    path
        Where the file is to be; its folder is made.
    data
        Its content.
    what
        What it is to the user, for the error message.

    Raises
    ------
    OutputError
        If it cannot be written there.
    """
    try:
        with folder_for(path):
            handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.chmod(partial, 0o644)
                os.replace(partial, path)
            finally:
                Path(partial).unlink(missing_ok=True)
    except OSError as error:
        msg = f"{what} {str(path)!r} cannot be written ({error.strerror}); name a file in a folder you may write to"
        raise OutputError(msg) from None
    return path


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
