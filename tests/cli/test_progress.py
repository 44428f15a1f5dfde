"""Progress: what it says of pace and time left, and that it is silent where it should be."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from geoedge.cli import progress as shown
from geoedge.cli.manner import Manner
from geoedge.cli.progress import pace_words


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ((0, 8, "layouts", 0.0, 3.0), "0/8 layouts"),  # nothing is done yet, so there is no pace
        ((4, 8, "layouts", 2.0, 0.0), "4/8 layouts  0:00:02 left  2 layouts/s"),
        ((4, 8, "steps", 40.0, 6.0), "4/8 steps  0:00:34 left  6 steps/min"),
        ((4, 8, "steps", 4.0, 46.0), "4/8 steps  0:00:30 left  6 steps/min"),  # the fifth is long overdue
        ((7, 8, "steps", 7.0, 10.0), "7/8 steps  0:00:00 left  28.2 steps/min"),
        ((3, 10, "steps", 60.0, 0.0), "3/10 steps  0:02:20 left  3 steps/min"),
        ((1, 3, "steps", 7200.0, 0.0), "1/3 steps  4:00:00 left  0.5 steps/h"),
        ((8, 8, "runs", 4.0, 0.0), "8/8 runs  2 runs/s"),  # done: nothing is left
        ((4, 8, "runs", 40.0, 0.0, 1.5), "4/8 runs  0:00:40 left  9 simulated h/min"),
        ((0.5, 2, "runs", 30.0, 0.0), "0.5/2 runs  0:01:30 left  1 runs/min"),  # before any run has ended
        ((0.5, 2, "runs", 30.0, 20.0), "0.5/2 runs  0:01:10 left  1 runs/min"),  # while its results are made
        ((1.96, 2, "runs", 98.0, 0.0), "1.9/2 runs  0:00:02 left  1.2 runs/min"),  # two are not done yet
        (
            (1.5, 2, "runs", 100.0, 0.0, None, 1.25),
            "1.5/2 runs  0:03:20 left  9 runs/h",
        ),  # slower than at first
        ((1.5, 2, "runs", 90.0, 0.0, 24.0), "1.5/2 runs  0:00:30 left  24 simulated h/min"),
    ],
)
def test_pace_and_time_left(asked, words) -> None:
    assert pace_words(*asked) == words


def drawn(monkeypatch, stages: list[tuple[str, int, int]], run_s: float | None = None) -> str:
    """Return what a terminal shows at the end of these stages, a second each step."""
    clock = iter(range(10_000))
    monkeypatch.setattr(
        shown,
        "Progress",
        lambda *columns, **given: _Still(*columns, get_time=lambda: float(next(clock)), **given),
    )
    out = io.StringIO()
    with shown.progress(run_s, Console(file=out, force_terminal=True, width=120, color_system=None)) as tell:
        for stage in stages:
            tell(*stage)
    return out.getvalue()


class _Still(shown.Progress):
    """Progress that draws when it ends alone."""

    def __init__(self, *columns, **given) -> None:
        super().__init__(*columns, auto_refresh=False, **given)


def test_stages_stand_below_each_other_with_their_pace(monkeypatch) -> None:
    stages = [("city", 0, 1), ("Poisson layouts", 0, 2), ("Poisson layouts", 2, 2), ("exchanges", 3, 0)]
    stages += [("simulations", 0, 4), ("simulations", 1, 4)]
    text = drawn(monkeypatch, stages, 7200.0)
    assert text.index("city") < text.index("Poisson layouts") < text.index("simulations")
    assert "2/2 layouts" in text
    assert "simulated h/" in text
    assert "1/1" not in text  # a stage of one step has no count
    assert "3/3 steps" in text  # of a stage whose length nobody knew
    last = text[text.rindex("simulations") :]
    assert "4/4 runs" in last  # what has ended is whole


@pytest.mark.parametrize("manner", [Manner(True, False), Manner(False, True)])
def test_json_and_quiet_show_none(capsys, manner) -> None:
    with manner.progress() as tell:
        tell("simulations", 1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_file_gets_no_progress() -> None:
    out = io.StringIO()
    with shown.progress(None, Console(file=out, force_terminal=False)) as tell:
        tell("simulations", 1, 2)
    assert out.getvalue() == ""


class _Moving(shown.Progress):
    """Progress by a clock that is set, drawn when asked."""

    now_s = 0.0

    def __init__(self, *columns, **given) -> None:
        super().__init__(*columns, auto_refresh=False, get_time=lambda: _Moving.now_s, **given)


def lines_at(monkeypatch, tell_s: list[float], done: Callable[[float], float], total: int, at: set[float]):
    """Return what a terminal shows at some times, told at others how much is done of simulations of a day."""
    monkeypatch.setattr(shown, "Progress", _Moving)
    monkeypatch.setattr(_Moving, "now_s", 0.0)
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    lines = {}
    with shown.progress(86400.0, console) as tell:
        for now_s in sorted(at.union(tell_s)):
            _Moving.now_s = now_s
            if now_s in tell_s:
                tell("simulations", done(now_s), total)
            if now_s in at:
                console.file.seek(0)
                console.file.truncate()
                tell.__self__.shown.refresh()
                lines[now_s] = console.file.getvalue()
    return lines, console.file.getvalue()


def test_the_time_left_of_a_run_is_known_while_it_goes_on(monkeypatch) -> None:
    """Runs of 100 s, after 20 s in which workers start: what is left is said from the first steps on."""
    told_s = [half / 2.0 for half in range(2 * 120 + 1)]
    at = {10.0, 25.0, 70.2, 110.0}
    lines, last = lines_at(monkeypatch, told_s, lambda now_s: max(0.0, now_s - 20.0) / 100.0, 1, at)
    assert "left" not in lines[10.0]
    assert "0.0/1 runs  0:01:35 left" in lines[25.0]
    assert "0.5/1 runs  0:00:50 left  14.4 simulated h/min" in lines[70.2]
    assert "0.9/1 runs  0:00:10 left" in lines[110.0]
    assert "1/1 runs" in last


def test_the_pace_is_that_of_late(monkeypatch) -> None:
    """Two runs side by side, one of which ends after a fifth of the time of the other; then a third."""

    def done(now_s: float) -> float:
        return min(1.0, (now_s - 10.0) / 20.0) + (now_s - 10.0) / 100.0

    told_s = [float(now_s) for now_s in range(10, 211)]
    lines, _ = lines_at(monkeypatch, told_s, done, 3, {110.0, 210.0})
    assert "2/3 runs  0:01:40 left  14.4 simulated h/min" in lines[110.0]  # a run in 100 s, as it goes on
    assert "3/3 runs  21.6 simulated h/min" in lines[210.0]  # of all the time since the first move
