"""The one way to compile a kernel: cached on disk, exact arithmetic, one thread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["inlined", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function for arrays, keeping its type.

    ``fastmath`` stays off because candidate bounds and ties rely on exact comparisons, and threads stay out
    because runs are parallel over replications.

    Parameters
    ----------
    function
        A function of numbers and arrays.
    """
    return _compiled(function, forceinline=False)


def inlined(function: F) -> F:
    """Compile a function as `kernel` does, and copy it into its callers.

    The event loop hands whole tables around; a call that copies their descriptors costs as much as its work.

    Parameters
    ----------
    function
        A function of numbers and arrays.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: F, *, forceinline: bool) -> F:
    dispatcher = numba.njit(cache=True, forceinline=forceinline)(function)
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
    drop_stale(
        Path(dispatcher.stats.cache_path), name, _newest_source(Path(function.__code__.co_filename).parent)
    )
    return cast(F, dispatcher)


@cache
def _newest_source(room: Path) -> float:
    """Return when a module of the kernel's room, or of the room all others inline from, last changed [s]."""
    modules = {*room.glob("*.py"), *Path(__file__).parent.joinpath("serving").glob("*.py")}
    return max((path.stat().st_mtime for path in modules), default=0.0)


def drop_stale(folder: Path, name: str, changed_s: float) -> None:
    """Delete a kernel's cache index if it is older than a change of the sources.

    The compiler looks at the file of the kernel alone, and would go on using code that it has copied into the
    kernel from a file that has changed since.
    """
    with suppress(OSError):
        for index in folder.glob(f"{name}-*.nbi"):
            if index.stat().st_mtime < changed_s:
                index.unlink()
