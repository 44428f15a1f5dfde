"""Text in columns, as fast as it comes: what is one record a line is split in C, the rest record by record."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Delimited", "as_utf8", "split_records"]

DELIMITERS = ",;\t|"
LONGEST_RECORD_LINES = 50
"""How many lines a quoted field may span; farther apart, two quotes are two strays."""
LONGEST_LINE_BYTES = 100_000
NEWLINE, QUOTE = 10, 34
NOTHING = b' \t\n"' + DELIMITERS.encode()
"""Signs that make no record, however many."""


def as_utf8(data: bytes) -> tuple[bytes, str]:
    """Return text as UTF-8 with plain line ends, and what it was encoded in.

    A line that is no UTF-8 is taken for Windows-1252, so that one damaged line does not spoil the names of all.

    Parameters
    ----------
    data
        The bytes of a text file.
    """
    name = "UTF-8"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data, name = data.decode("utf-16", errors="replace").encode(), "UTF-16"
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            data, name = b"\n".join(map(_line_as_utf8, data.split(b"\n"))), "Windows-1252"
    return data, name


def _line_as_utf8(line: bytes) -> bytes:
    if line.isascii():
        return line
    try:
        line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace").encode()
    return line


@dataclass(frozen=True, eq=False)
class Delimited:
    """Records of a text file; blank lines, and lines of nothing but delimiters, are none.

    Parameters
    ----------
    data
        The text as UTF-8, ending in a line end.
    delimiter
        What stands between fields.
    first
        The fields of the first record.
    start, stop
        Where each record begins and ends in `data`, shape (n,), the first record included.
    plain
        Whether a record is one line without quotes and with as many fields as the first, shape (n,).
    """

    data: bytes
    delimiter: str
    first: list[str]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    plain: NDArray[np.bool_]

    def text(self, record: int) -> str:
        """Return a record as it stands in the file."""
        return self.data[self.start[record] : self.stop[record]].decode(errors="replace")

    def columns(self, wanted: Sequence[int], skip: int) -> tuple[list[Any], NDArray[np.int64]]:
        """Return columns as arrow arrays of text, and how many fields each record has (0 for none at all).

        Parameters
        ----------
        wanted
            Positions of the columns.
        skip
            Records at the start that are no data: 1 for a header.
        """
        import pyarrow as pa

        plain = self.plain[skip:]
        width = len(self.first)
        count = np.full(len(plain), width, dtype=np.int64)
        made = self._plain_columns(wanted, skip)
        odd = np.flatnonzero(~plain)
        if not odd.size:
            return made, count
        rows = self._odd_rows((odd + skip).tolist())
        count[odd] = [_length(row, width) for row in rows]
        place = np.argsort(np.concatenate([np.flatnonzero(plain), odd]), kind="stable")
        for k, column in enumerate(wanted):
            texts = pa.array([row[column] if column < len(row) else "" for row in rows], pa.string())
            made[k] = pa.concat_arrays([made[k], texts]).take(pa.array(place))
        return made, count

    def _odd_rows(self, records: list[int]) -> list[list[str]]:
        """Return the fields of records that are not plain, at once where the rules of CSV hold for all of them."""
        texts = [self.text(record) for record in records]
        try:
            rows = list(csv.reader(texts, delimiter=self.delimiter, strict=True))
        except csv.Error:
            rows = []
        if len(rows) == len(texts):  # no record runs into the next, or there would be fewer
            return rows
        return [_fields(text, self.delimiter) or [] for text in texts]

    def _plain_columns(self, wanted: Sequence[int], skip: int) -> list[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        body = self._plain_text(skip)
        if not body or not wanted:
            return [pa.array([], pa.string()) for _ in wanted]
        names = [str(k) for k in range(len(self.first))]
        chosen = list(dict.fromkeys(names[k] for k in wanted))
        table = arrow_csv.read_csv(
            pa.BufferReader(body),
            arrow_csv.ReadOptions(column_names=names, block_size=1 << 24),
            # a blank line never gets here, and a single empty field is a record
            arrow_csv.ParseOptions(delimiter=self.delimiter, quote_char=False, ignore_empty_lines=False),
            arrow_csv.ConvertOptions(
                include_columns=chosen, column_types=dict.fromkeys(chosen, pa.string()), check_utf8=False
            ),
        )
        return [table[names[k]].combine_chunks() for k in wanted]

    def _plain_text(self, skip: int) -> bytes | memoryview:
        """Return the plain records, one a line."""
        plain = self.plain[skip:]
        start, stop = self.start[skip:], self.stop[skip:]
        if not plain.any():
            return b""
        lengths = stop - start + 1
        if plain.all() and lengths.sum() == stop[-1] + 1 - start[0]:
            return memoryview(self.data)[start[0] : stop[-1] + 1]
        kept = np.zeros(len(self.data) + 1, dtype=np.int8)
        np.add.at(kept, start[plain], 1)
        np.add.at(kept, stop[plain] + 1, -1)
        return np.frombuffer(self.data, dtype=np.uint8)[np.cumsum(kept[:-1], dtype=np.int8) > 0].tobytes()


def split_records(data: bytes) -> Delimited | None:
    """Return the records of a text file; None if it has none.

    Parameters
    ----------
    data
        The text as UTF-8 with plain line ends.
    """
    if announced := re.match(rb"sep=(.)\n", data, flags=re.IGNORECASE):
        data = data[announced.end() :]  # what spreadsheets write in front
    data += b"" if data.endswith(b"\n") else b"\n"
    buffer = np.frombuffer(data, dtype=np.uint8)
    stop = np.flatnonzero(buffer == NEWLINE)
    start = np.concatenate([[0], stop[:-1] + 1])
    filled = _filled(data, buffer, start, stop)
    if not filled.any():
        return None
    start, stop = start[filled].astype(np.int64), stop[filled].astype(np.int64)
    head = data[start[0] : stop[0]].decode(errors="replace")
    delimiter = announced[1].decode() if announced else _delimiter(head)
    between = _count(buffer, ord(delimiter), start, stop)
    quotes = _count(buffer, QUOTE, start, stop)
    stop, whole = _joined(data, delimiter, start, stop, np.flatnonzero(quotes % 2))
    first = _fields(data[start[0] : stop[0]].decode(errors="replace"), delimiter) or [head]
    plain = (quotes == 0) & (between == len(first) - 1) & (stop - start <= LONGEST_LINE_BYTES)
    return Delimited(data, delimiter, first, start[whole], stop[whole], plain[whole])


def _filled(
    data: bytes, buffer: NDArray[np.uint8], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which lines hold more than blanks, quotes and delimiters."""
    blank = np.zeros(256, dtype=bool)
    blank[list(NOTHING)] = True
    filled = ~(blank[buffer[start]] & blank[buffer[np.maximum(stop - 1, start)]])
    for line in np.flatnonzero(~filled).tolist():
        filled[line] = bool(data[start[line] : stop[line]].strip(NOTHING))
    return filled


def _count(
    buffer: NDArray[np.uint8], sign: int, start: NDArray[np.int64], stop: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how often a sign stands in each line."""
    places = np.flatnonzero(buffer == sign)
    return np.searchsorted(places, stop) - np.searchsorted(places, start)


def _delimiter(head: str) -> str:
    """Return the sign that a first line holds most of, outside of quotes."""
    return max(DELIMITERS, key=re.sub('"[^"]*"', "", head).count)


def _joined(
    data: bytes, delimiter: str, start: NDArray[np.int64], stop: NDArray[np.int64], odd: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where records end whose quotes span lines, and which lines begin a record."""
    stop, whole = stop.copy(), np.ones(len(start), dtype=bool)
    width, k = 0, 0
    while k + 1 < len(odd):
        here, there = int(odd[k]), int(odd[k + 1])
        if there - here <= LONGEST_RECORD_LINES:
            text = data[start[here] : stop[there]].decode(errors="replace")
            fields = _parsed(text, delimiter)
            width = width or len(_fields(data[start[0] : stop[0]].decode(errors="replace"), delimiter) or [])
            if fields is not None and (here == 0 or len(fields) == width):
                stop[here], whole[here + 1 : there + 1] = stop[there], False
                k += 1
        k += 1
    return stop, whole


def _parsed(text: str, delimiter: str) -> list[str] | None:
    """Return the fields of one record by the rules of CSV; None if it is not one."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    return rows[0] if len(rows) == 1 else None


def _fields(text: str, delimiter: str) -> list[str] | None:
    """Return the fields of one record; quotes that close nowhere count as any other sign."""
    return _parsed(text, delimiter) or (
        None if "\n" in text or len(text) > LONGEST_LINE_BYTES else text.split(delimiter)
    )


def _length(row: list[str], width: int) -> int:
    """Return how many fields a record has; empty ones beyond the last column do not count."""
    return len(row) if any(field.strip() for field in row[width:]) else min(len(row), width)
