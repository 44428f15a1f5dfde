"""How work is spread over processes: results in order, and an interrupt that is heard once."""

from __future__ import annotations

import signal
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from multiprocessing import resource_tracker
from typing import Any, TypeVar

__all__ = ["in_processes"]

LOOK_S = 0.01
"""How often it is asked whether a call has ended [s]."""

T = TypeVar("T")


def in_processes(
    function: Callable[..., T],
    calls: Sequence[tuple[Any, ...]],
    workers: int,
    ended: Callable[[int], bool] | None = None,
) -> Iterator[T]:
    """Call a function with each of these arguments, in other processes, and yield the results in order.

    Who closes the iterator stops the work.

    Parameters
    ----------
    function
        A function of a module.
    calls
        Its arguments.
    workers
        Processes; 1 for this one.
    ended
        Asked again and again, in the thread that waits for the result of a call, whether this call has ended, well or
        not; a chance to tell how far it is. Not asked where calls are made in this process.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    with warnings.catch_warnings():
        # a worker that has grown is replaced between two calls, and none is lost
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        # who closes the iterator knows that work is left
        warnings.filterwarnings("ignore", r"\d+ tasks (have been|which were)", UserWarning)
        parallel = Parallel(n_jobs=workers, return_as="generator", batch_size=1)
        with _children_deaf():
            results = parallel(delayed(function)(*each) for each in calls)
        with closing(results):
            if ended is not None and effective_n_jobs(workers) > 1:
                for number in range(len(calls)):
                    _wait(parallel, number, ended)
                    yield next(results)
            yield from results


def _wait(parallel: Any, number: int, ended: Callable[[int], bool]) -> None:
    """Wait until a call has ended, or until it never will, as it is known when a worker died."""
    # of which the pool alone knows; where it cannot be asked, the result is waited for without looking
    while not ended(number) and not getattr(parallel, "_aborting", True):
        time.sleep(LOOK_S)


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
