"""Text that anybody may have written, made safe to show: in a page, a picture, or on a terminal."""

from __future__ import annotations

import unicodedata

__all__ = ["LONGEST", "plain_text"]

LONGEST = 80
"""Characters of a name that are shown."""


def plain_text(value: object, longest: int = LONGEST) -> str:
    """Return text that anybody may have written as one short line without invisible controls.

    Line breaks become blanks; control, format and bidirectional characters, which could hide or reorder what
    stands beside them, are left out, as are surrogates. Letters of every script stay as they are.

    Parameters
    ----------
    value
        The name or title; ``None`` and NaN become empty.
    longest
        Characters that are shown; a longer text ends in an ellipsis.
    """
    if value is None or value != value:
        return ""
    kept = (" " if c.isspace() else c for c in str(value) if c.isspace() or unicodedata.category(c)[0] != "C")
    line = " ".join("".join(kept).split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
