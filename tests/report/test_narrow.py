"""Tables on narrow terminals: every number is there, whole, whatever the width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from geoedge.report._narrow import parts, show
from geoedge.report._text import table

NUMBERS = ["0.873 ± 0.012", "0.67 [0.47, 0.85]", "12,345", "81%", "+0.0250 ± 0.0619", "∞"]


def wide() -> Table:
    """Return a table of eight columns, two of them words, one long."""
    made = table("A title", "", "unit", *(f"a long heading {k}" for k in range(6)), left=2)
    made.caption = "a caption"
    made.columns[0].no_wrap = True
    for name in ("TTFT coverage", "offloading ratio, by prefill time", "served by [red]deep"):
        made.add_row(Text(name), "km", *NUMBERS)
    return made


def printed(made, width: int) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width), made)
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160])
def test_no_number_is_cut_or_folded(width) -> None:
    text = printed(wide(), width)
    assert max(len(line.rstrip()) for line in text.splitlines()) <= width
    for number in NUMBERS:
        assert text.count(f" {number} ") == 3
    assert text.count("A title") == text.count("a caption") == 1
    assert text.index("A title") < text.index(NUMBERS[0]) < text.index(NUMBERS[-1]) < text.index("a caption")


def test_a_table_that_fits_stays_as_it_is() -> None:
    made = wide()
    assert parts(made, 160) == [made]
    assert len(parts(made, 80)) > 1


def test_the_first_columns_stand_in_every_part() -> None:
    for part in parts(wide(), 80):
        assert [str(cell) for cell in part.columns[1].cells] == ["km"] * 3
        assert len(part.columns) > 2


def test_words_give_way_first() -> None:
    made = table("", "name", "count")
    made.add_row("a name that is very long " * 4, "7")
    (part,) = parts(made, 40)
    assert printed(made, 40).count("very long") == 4
    assert part is not made


def test_text_is_printed_as_it_is() -> None:
    assert printed(Text("Controller (none): no moves."), 60) == "Controller (none): no moves.\n"


def test_heads_fold_before_numbers_or_other_heads_are_cut() -> None:
    made = table("", "name", "a long heading", "utilisation", left=1)
    made.columns[0].no_wrap = True
    made.add_row("x" * 20, "1.00", "0.50")
    (part,) = parts(made, 48)
    assert part is not made
    text = printed(made, 48)
    assert "utilisation" in text
    assert "x" * 20 in text
    assert "…" not in text
