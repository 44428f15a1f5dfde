"""Notebooks have two minutes each: by the clock, or where others use the same cores by the processor's own.

A notebook fails that takes longer by both, with room for a slower machine. Its processor time is that of its kernel and
of the processes whose end the kernel has awaited: what waits for a core does not count, nor does a worker that outlives
its kernel, so that a notebook which left its work to such would pass. On an idle machine the clock says how long a reader
waits.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Generator
from typing import Any

import pytest

LIMIT_S = 120.0
"""Most that a notebook may take [s]."""
SLOWER = 1.5
"""How much slower a machine may be than one on which it takes that long."""

_taken: dict[str, tuple[float, float]] = {}


def spent_s() -> float:
    """Return the processor time of processes started from here that are over, and of those they awaited [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Let a notebook fail that takes too long; its kernel is over when it has run."""
    begun, before = time.monotonic(), spent_s()
    result = yield
    clock, processor = _taken[item.name] = time.monotonic() - begun, spent_s() - before
    if min(clock, processor) > SLOWER * LIMIT_S:
        msg = (
            f"{item.name} took {clock:.0f} s, {processor:.0f} s of processor time, and may take {LIMIT_S:g} s"
        )
        pytest.fail(msg, pytrace=False)
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what each notebook took."""
    for name, (clock, processor) in _taken.items():
        terminalreporter.write_line(f"{name}: {clock:.0f} s, {processor:.0f} s of processor time")
