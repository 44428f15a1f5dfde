"""The gap between theory and city, for a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from geoedge.report._narrow import show
from geoedge.report._text import table, terminal
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from geoedge.compare import Gap

__all__ = ["print_gap"]

LONGEST = 400
"""Characters of a sentence that are shown."""


def print_gap(gap: Gap, picture: Path | None = None) -> None:
    """Print what each effect is worth, what that says, and how it was found.

    Parameters
    ----------
    gap
        As `geoedge.explain_gap` gives it.
    picture
        Where its picture was written, if it was.
    """
    console, (names, rows) = terminal(), gap.worded()
    made = table(Text(f"{plain_text(gap.title)}: from Poisson theory to the city"), *names)
    for row in rows:
        made.add_row(*(Text(word) for word in row))
    show(console, made)
    for sentence in (*gap.sentences(), *gap.notes):
        console.print(Text(f"• {plain_text(sentence, LONGEST)}"))
    if picture is not None:
        console.print(Text(f"\npicture  {picture}"))
