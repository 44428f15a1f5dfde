"""The program itself: its verbs' home, its exit codes, and how it takes an interrupt."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from geoedge import __version__
from geoedge.errors import GeoEdgeError

__all__ = ["app", "main", "script"]

AGAIN_S = 5.0
"""When an interrupt that nobody heard is repeated [s]; long enough to tidy up where it was heard."""
SOON_S = 0.1
"""When an interrupt tries again that came while a kernel was compiled [s]."""

app = typer.Typer(
    help="City-scale what-if studies of LLM inference at the wireless edge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"geoedge {__version__}")
        raise typer.Exit


@app.callback()
def _all_verbs(
    version: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """City-scale what-if studies of LLM inference at the wireless edge."""


def main() -> None:
    """Run the command line: exit 0 on success, 1 with one line on a user's error, 2 on wrong usage, 130 on Ctrl-C."""
    caught: list[int] = []

    def interrupt(number: int, _: object) -> None:
        if number != signal.SIGALRM:
            caught.append(number)
        if _compiling():
            signal.setitimer(signal.ITIMER_REAL, SOON_S)
            return
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)  # it may fall into a callback that swallows it
        raise KeyboardInterrupt

    # a compiled kernel or a worker process turns an interrupt into an error of its own; the list tells
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        app()
    except GeoEdgeError as error:
        print(f"geoedge: {_printable(str(error))}", file=sys.stderr)
        raise SystemExit(1) from None
    except BaseException as stop:
        done = isinstance(stop, SystemExit) and not stop.code
        if done or not caught:
            raise
        print("geoedge: interrupted", file=sys.stderr)
        raise SystemExit(128 + caught[0]) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)


def script() -> None:
    """Run the command line as a program of its own."""
    try:
        main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done; nothing is left to interrupt


def _compiling() -> bool:
    """Return whether LLVM is at work on this thread; what it has half done cannot be taken apart without a crash."""
    numba = sys.modules.get("numba.core.compiler_lock")
    return numba is not None and bool(numba.global_compiler_lock.is_locked())


def _printable(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
