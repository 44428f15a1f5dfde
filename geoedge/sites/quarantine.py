"""Rows that could not be used, kept in a file with the reason, whole or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from geoedge.files import write_whole

if TYPE_CHECKING:
    from geoedge.sites.cleaning import Cleaned

__all__ = ["write_quarantine"]

HEADER = ("row", "reason", "likely_cause", "text")


def write_quarantine(cleaned: Cleaned, path: str | Path) -> int:
    """Write the rows that could not be used and return how many they are.

    A row stands as it was, quoted and otherwise unchanged: a text that a spreadsheet would take for a formula is one
    here too. Rows count from 1 after the header; blank lines do not count.

    Parameters
    ----------
    cleaned
        Rows of a file, sorted out.
    path
        The CSV file to write.

    Raises
    ------
    OutputError
        If it cannot be written there.
    """
    bad = [(int(row), item) for item in cleaned.problems if not item.used for row in item.rows.tolist()]
    bad.sort(key=lambda found: found[0])
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows((row + 1, item.reason, item.cause, cleaned.rows.text(row)) for row, item in bad)
    write_whole(Path(path), text.getvalue().encode("utf-8", errors="replace"), "quarantine file")
    return len(bad)
