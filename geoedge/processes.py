"""How work is spread over processes: results in order, and an interrupt that is heard once."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any, TypeVar

__all__ = ["in_processes"]

T = TypeVar("T")


def in_processes(function: Callable[..., T], calls: Sequence[tuple[Any, ...]], workers: int) -> Iterator[T]:
    """Call a function with each of these arguments, in other processes, and yield the results in order.

    Parameters
    ----------
    function
        A function of a module.
    calls
        Its arguments.
    workers
        Processes; 1 for this one.
    """
    from joblib import Parallel, delayed

    with warnings.catch_warnings():
        # a worker that has grown is replaced between two calls, and none is lost
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        with _children_deaf():
            results = Parallel(n_jobs=workers, return_as="generator", batch_size=1)(
                delayed(function)(*each) for each in calls
            )
        yield from results


@contextmanager
def _children_deaf() -> Iterator[None]:
    """Let processes that start meanwhile not hear the Ctrl-C that a terminal sends to all; who started them stops them.

    Python cannot be told so from inside while it starts, and would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # Python's own helper lets the interrupt in again when it is started
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
