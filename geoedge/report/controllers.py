"""Controllers side by side, for a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from geoedge.compare.controllers.words import heading, row_words
from geoedge.report._narrow import show
from geoedge.report._text import table, terminal
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from geoedge.compare.controllers import ControllerComparison

__all__ = ["print_controllers"]

LONGEST = 1000
"""Characters of a sentence that are shown."""


def print_controllers(found: ControllerComparison, picture: Path | None = None) -> None:
    """Print what each controller answers in time, moves and earns.

    Parameters
    ----------
    found
        As `geoedge.compare_controllers` gives it.
    picture
        Where its picture was written, if it was.
    """
    console = terminal()
    made = table(Text(f"{plain_text(found.title)}: who moves caches"), *heading(found))
    for _, row in found.table.iterrows():
        made.add_row(*(Text(plain_text(word)) for word in row_words(found, row)))
    show(console, made)
    for sentence in found.sentences():
        console.print(Text(f"• {plain_text(sentence, LONGEST)}"))
    if picture is not None:
        console.print(Text(f"\npicture  {picture}"))
