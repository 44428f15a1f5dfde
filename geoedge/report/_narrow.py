"""Tables on narrow terminals: words fold and columns go below each other, but no number is cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Column, Table

__all__ = ["parts", "show"]

BETWEEN = 3
"""Blanks between two columns."""
WORDS_SHARE = 0.4
"""Share of the width that the first columns, those of words, take at most."""
LEAST_WORDS = 10
"""Width that a column of words keeps if that spares the table to be parted."""
LONGEST_WORDS = 40
"""Width at which the words of another column fold."""


def show(console: Console, made: RenderableType) -> None:
    """Print a table, in parts below each other where it is too wide, or what stands in its place."""
    for part in parts(made, console.width) if isinstance(made, Table) else [made]:
        console.print(part)


def parts(made: Table, width: int) -> list[Table]:
    """Return a table as one that fits into a width, or as several that have its first columns in common.

    Parameters
    ----------
    made
        The table; its first columns are words, and numbers are those that stand to the right.
    width
        Width of the terminal.
    """
    folded = [_natural(column) for column in made.columns]
    if _room([max(one, _head(column)) for one, column in zip(folded, made.columns, strict=True)]) <= width:
        return [made]
    if _room(folded) + BETWEEN <= width:
        return [_part(made, made.columns, folded, is_first=True, is_last=True)]
    leading = next((k for k, column in enumerate(made.columns) if column.justify == "right"), 0)
    if leading == 0:
        return [made]
    first, rest = made.columns[:leading], made.columns[leading:]
    natural = [_natural(column) for column in rest]
    left = width - _room(natural) - 2 * BETWEEN
    share = left if left >= _room([LEAST_WORDS] * leading) else int(WORDS_SHARE * width)
    heads = _shrunk([_natural(column) for column in first], share)
    groups = list(_grouped(natural, width - _room(heads) - 2 * BETWEEN))
    return [
        _part(
            made,
            [*first, *(rest[k] for k in group)],
            [*heads, *(natural[k] for k in group)],
            is_first=group is groups[0],
            is_last=group is groups[-1],
        )
        for group in groups
    ]


def _room(widths: Sequence[int]) -> int:
    return sum(widths) + BETWEEN * max(len(widths) - 1, 0)


def _natural(column: Column) -> int:
    """Return the width that a column needs: heads fold between words, numbers do not fold, words do where they are long."""
    lines = [line for cell in column.cells for line in str(cell).split("\n")]
    heads = [str(column.header)] if column.no_wrap else str(column.header).split()
    widest = max(map(cell_len, lines), default=1)
    if column.justify != "right":
        widest = min(widest, column.max_width or LONGEST_WORDS)
    return max(widest, *map(cell_len, heads), 1)


def _head(column: Column) -> int:
    """Return the width of a column's head where nothing of it folds."""
    return max(map(cell_len, str(column.header).split("\n")))


def _shrunk(widths: list[int], room: int) -> list[int]:
    """Return widths of which the largest give way until all have room."""
    while _room(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _grouped(widths: Sequence[int], room: int) -> Iterator[list[int]]:
    """Yield the columns that stand beside each other, at least one at a time."""
    group: list[int] = []
    for k, width in enumerate(widths):
        if group and _room([*(widths[i] for i in group), width]) > room:
            yield group
            group = []
        group.append(k)
    yield group


def _part(
    made: Table, columns: Sequence[Column], widths: Sequence[int], *, is_first: bool, is_last: bool
) -> Table:
    part = Table(
        title=made.title if is_first else None,
        caption=made.caption if is_last else None,
        title_justify=made.title_justify,
        caption_justify=made.caption_justify,
        box=made.box,
        pad_edge=made.pad_edge,
    )
    for column, width in zip(columns, widths, strict=True):
        part.add_column(
            column.header,
            justify=column.justify,
            width=width,
            overflow="ellipsis" if column.no_wrap else "fold",
            no_wrap=column.no_wrap,
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        part.add_row(*cells)
    return part
