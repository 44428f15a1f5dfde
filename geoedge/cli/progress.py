"""Progress of long work on a terminal: the stage, how fast it goes, and how long it will take yet."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

__all__ = ["Report", "pace_words", "progress"]

Report = Callable[[str, float, int], None]
"""Told a stage, how many of its steps are done, perhaps with parts of those underway, and of how many: 0 where nobody
knows, 1 for a stage of one step that tells nothing of its parts."""
RUNS = "simulations"
"""The stage whose steps are simulations."""
NOUNS = {RUNS: "runs", "Poisson layouts": "layouts"}
"""What the steps of a stage are called; steps elsewhere."""


@contextmanager
def progress(run_s: float | None = None, console: Console | None = None) -> Iterator[Report]:
    """Show the progress of long work on standard error, if that is a terminal.

    Parameters
    ----------
    run_s
        What a simulation lasts, if simulations are run [s].
    console
        Where to show it; standard error by default.
    """
    console = console or Console(stderr=True)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(12),
        TimeElapsedColumn(),
        _Pace(run_s),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as shown:
        stages = _Stages(shown)
        yield stages.report
        stages.finish()


class _Stages:
    """The stages so far, one line each; a new one ends those before it."""

    def __init__(self, shown: Progress) -> None:
        self.shown = shown
        self.tasks: dict[str, Task] = {}
        self.past: dict[str, _Past] = {}

    def report(self, stage: str, done: float, total: int) -> None:
        if stage not in self.tasks:
            self.finish()
            number = self.shown.add_task(stage, total=None)
            self.tasks[stage] = next(task for task in self.shown.tasks if task.id == number)
            self.past[stage] = _Past()
        task, past = self.tasks[stage], self.past[stage]
        past.note(task.elapsed or 0.0, done)
        size = total if total > 1 or past.parts else None
        self.shown.update(task.id, completed=done, total=size, past=past)

    def finish(self) -> None:
        for task in self.tasks.values():
            size = task.total or task.completed or 1
            self.shown.update(task.id, completed=size, total=size)


class _Past:
    """When how much of a stage was done."""

    def __init__(self) -> None:
        self.ready_s = self.last_s = 0.0
        self.parts = False
        self.later: deque[tuple[float, float]] = deque([(0.0, 0.0)])

    def note(self, time_s: float, done: float) -> None:
        """Note that so much is done; the first half of the time is forgotten."""
        self.last_s = time_s
        self.parts = self.parts or done != int(done)
        if not done:  # what goes before the first move says nothing of the pace
            self.ready_s = time_s
            self.later.clear()
        self.later.append((time_s, done))
        while len(self.later) > 1 and self.later[1][0] <= 0.5 * (self.ready_s + time_s):
            self.later.popleft()

    def spent(self, whole: bool) -> tuple[float, float]:
        """Return the later half of the time, or all of it, up to the last note [s], and what was done before."""
        begun_s, before = (self.ready_s, 0.0) if whole else self.later[0]
        return self.last_s - begun_s, before


class _Pace(ProgressColumn):
    """How far a stage is, how fast it goes, and what is left."""

    def __init__(self, run_s: float | None) -> None:
        super().__init__()
        self.run_hours = None if run_s is None else run_s / 3600.0

    def render(self, task: Task) -> Text:
        noun = NOUNS.get(task.description, "steps")
        past: _Past | None = task.fields.get("past")
        if past is None or task.total is None or not (task.total > 1 or past.parts):
            return Text(f"{task.completed:.0f} {noun}" if task.completed > 1 else "")
        spent, before = past.spent(whole=task.completed >= task.total)
        since = (task.elapsed or 0.0) - past.last_s
        hours = self.run_hours if task.description == RUNS else None
        words = pace_words(task.completed, int(task.total), noun, spent, since, hours, before)
        return Text(words, no_wrap=True)


def pace_words(
    done: float,
    total: int,
    noun: str,
    spent_s: float,
    since_s: float,
    run_hours: float | None = None,
    before: float = 0.0,
) -> str:
    """Return how far a stage is, how fast it goes, and how long it will take yet.

    Parameters
    ----------
    done, total
        Steps done, perhaps with parts of those underway, and all of them.
    noun
        What they are called.
    spent_s
        A time up to the last time something was done [s].
    since_s
        Time since then [s].
    run_hours
        What a step simulates [h], if it does.
    before
        Steps that were done before the time spent began.
    """
    # 1.96 steps are not yet two
    count = f"{done:.0f}" if done == int(done) else f"{math.floor(done * 10.0) / 10.0:.1f}"
    words = f"{count}/{total} {noun}"
    moved = done - before
    if moved <= 0.0 or spent_s <= 0.0:
        return words
    # a step that takes longer than those before it slows the pace down before it is done
    pace = min(moved / spent_s, (moved + 1) / (spent_s + since_s)) if done < total else moved / spent_s
    if done < total:
        words += f"  {_duration((total - done) / pace - min(since_s, 1.0 / pace))} left"
    return f"{words}  {_rate(pace, noun) if run_hours is None else _rate(pace * run_hours, 'simulated h')}"


def _rate(per_s: float, noun: str) -> str:
    """Return a rate per the shortest unit of time in which one of them is done."""
    for unit, seconds in (("s", 1.0), ("min", 60.0)):
        if per_s * seconds >= 1.0:
            return f"{per_s * seconds:.3g} {noun}/{unit}"
    return f"{per_s * 3600.0:.3g} {noun}/h"


def _duration(time_s: float) -> str:
    minutes, seconds = divmod(max(round(time_s), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
