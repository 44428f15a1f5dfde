"""Names at the ends of lines keep apart; axes carry times and round numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.style import sheet
from geoedge.style.marks import clocked, counted, line_styles, round_ticks, spread_out, warm_up

PLACES = st.lists(st.floats(-5, 15), min_size=1, max_size=6)


@given(PLACES, st.floats(0.1, 1.5))
def test_places_keep_apart_in_order_and_inside(at, apart) -> None:
    placed = np.array(spread_out(at, apart, 0.0, 10.0))
    order = np.argsort(at, kind="stable")
    assert (np.diff(placed[order]) >= apart - 1e-9).all()
    assert placed.min() >= -1e-9
    assert placed.max() <= 10.0 + 1e-9


def test_what_is_apart_stays_where_it_is_and_what_touches_moves_alike() -> None:
    assert spread_out([1.0, 5.0, 9.0], 1.0, 0.0, 10.0) == [1.0, 5.0, 9.0]
    assert spread_out([5.0, 5.0], 1.0, 0.0, 10.0) == pytest.approx([4.5, 5.5])
    assert spread_out([10.0, 10.0, 2.0], 2.0, 0.0, 10.0) == pytest.approx([8.0, 10.0, 2.0])


def test_the_clock_goes_past_midnight() -> None:
    with sheet(1, 1.0) as figure:
        axes = figure.subplots()
        clocked(axes, 22.0, 26.0)
    assert [label.get_text() for label in axes.get_xticklabels()][::2] == [
        "22:00",
        "23:00",
        "00:00",
        "01:00",
        "02:00",
    ]


def test_a_span_beyond_a_day_gets_few_times() -> None:
    with sheet(1, 1.0) as figure:
        axes = figure.subplots()
        clocked(axes, 0.0, 24.0 * 7)
    assert len(axes.get_xticks()) == 8


def test_logarithmic_ticks_are_plain_numbers() -> None:
    with sheet(1, 1.0) as figure:
        axes = figure.subplots()
        round_ticks(axes, 0.03, 30.0)
    words = [label.get_text() for label in axes.get_xticklabels()]
    assert words == ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]


def test_a_warm_up_is_shaded_and_named_where_there_is_room() -> None:
    with sheet(1, 1.0) as figure:
        long, short, none = figure.subplots(1, 3)
        for axes, end in ((long, 3.0), (short, 0.1), (none, 0.0)):
            axes.set_xlim(0.0, 10.0)
            warm_up(axes, 0.0, end)
    assert [len(axes.texts) for axes in (long, short, none)] == [1, 0, 0]
    assert [len(axes.patches) for axes in (long, short, none)] == [1, 1, 0]


def test_lines_differ_in_colour_and_dash() -> None:
    styles = line_styles(4)
    assert len({style["color"] for style in styles}) == 4
    assert len({style["linestyle"] for style in styles}) == 4
    assert counted(1) == "1 request"
    assert counted(12345) == "12,345 requests"
