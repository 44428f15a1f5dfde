"""Progress: what it says of pace and time left, and that it is silent where it should be."""

from __future__ import annotations

import io

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
