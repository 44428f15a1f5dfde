"""The one way to compile a kernel: cached on disk, exact arithmetic, one thread."""

from __future__ import annotations

from collections.abc import Callable
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
    index = dispatcher._cache._cache_file
    index._source_stamp = (index._source_stamp, _sources(Path(function.__code__.co_filename).parent))
    return cast(F, dispatcher)


@cache
def _sources(room: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, time and size of all modules that a kernel of a room may have copied code or constants from.

    Those are of its own room, of the room all others inline from, the codes of policies, and this module. The
    compiler looks at the file of the kernel alone, and would go on using what it has copied from a file that has
    changed since. Taken when a process reads the room, this also tells what it compiles later on from what others
    compile who have read a change made meanwhile.
    """
    here = Path(__file__).parent
    shared = (path for part in ("serving/*.py", "policies.py", "compiled.py") for path in here.glob(part))
    modules = {*room.glob("*.py"), *shared}
    states = [(path.name, path.stat()) for path in sorted(modules)]
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in states)
