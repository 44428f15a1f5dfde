"""Numbers and the terminal that they are printed on."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

__all__ = ["number", "table", "terminal", "with_half", "with_interval"]


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as text; a dash for none or NaN."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    return f"{value:.{digits}f}"


def with_half(value: float, low: float, high: float, *, digits: int = 3, signed: bool = False) -> str:
    """Return a number with half of its interval; without, where there is none."""
    text = f"{value + 0.0:+.{digits}f}" if signed else number(value, digits)
    half = (high - low) / 2
    return text if math.isnan(half) else f"{text} ± {half:.{digits}f}"


def with_interval(value: float, low: float, high: float) -> str:
    """Return a number with its interval: as half of it around a number in its middle, else by both ends."""
    if math.isnan(low) or abs((low + high) / 2 - value) < 1e-9:
        return with_half(value, low, high)
    return "{} [{}, {}]".format(*(number(each, 2) for each in (value, low, high)))


def terminal() -> Console:
    """Return the terminal, wide where it is a file."""
    console = _Plain()
    return console if console.is_terminal else _Plain(width=160)


class _Plain(Console):
    """A console on which nobody's text moves the cursor, changes colours or turns the order of letters."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the pieces of what is shown, without the invisible controls of its text."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else _visible(text), style, control)


def _visible(text: str) -> str:
    return "".join(c for c in text if c == "\n" or unicodedata.category(c)[0] != "C")


def table(title: str | Text, *columns: str | Text, left: int = 1) -> Table:
    """Return an empty table whose first columns are words and the others numbers."""
    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        made.add_column(name, justify="left" if index < left else "right")
    return made
