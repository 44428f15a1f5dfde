"""What a report page is made of: parts with paragraphs, lists, tables, pictures and maps, all of them plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from geoedge.texts import plain_text

__all__ = [
    "Bar",
    "Block",
    "Code",
    "Frame",
    "Grid",
    "Items",
    "More",
    "Part",
    "Picture",
    "Steps",
    "Tiles",
    "Words",
]

LONGEST_CELL = 300
"""Characters of a cell of a table that are shown."""
LONGEST_SENTENCE = 1000
LONGEST_WHOLE = 24
"""Characters of a number up to which no line ends in it."""
PHONE_LETTERS = 38
"""Characters that have room on a phone beside the names of the rows."""
LONGEST_LINE = 60


_UNIT = re.compile(r"(?<=\d) (?=(?:%|s|ms|km²|points|GiB|GB)\b|%)")
"""The blank between a number and its unit, where no line should end."""


def _sentence(text: str) -> str:
    return _UNIT.sub("\N{NO-BREAK SPACE}", plain_text(text, LONGEST_SENTENCE))


@dataclass(frozen=True)
class Words:
    """A paragraph; `tone` is ``""``, ``"lead"`` for the verdict, or ``"quiet"`` for what is said beside."""

    kind: ClassVar[str] = "words"
    text: str
    tone: str = ""

    @property
    def shown(self) -> str:
        """The text as a line that cannot hide or reorder what stands beside it."""
        return _sentence(self.text)


@dataclass(frozen=True)
class Items:
    """A list of sentences; `warning` marks what the reader must not miss."""

    kind: ClassVar[str] = "items"
    sentences: Sequence[str]
    warning: bool = False

    @property
    def shown(self) -> list[str]:
        """The sentences as safe lines."""
        return [_sentence(each) for each in self.sentences]


@dataclass(frozen=True)
class Tiles:
    """Key numbers: value and what it is."""

    kind: ClassVar[str] = "tiles"
    pairs: Sequence[tuple[str, str]]

    @property
    def shown(self) -> list[tuple[str, str]]:
        """The pairs as safe lines."""
        return [(plain_text(value), plain_text(name, LONGEST_CELL)) for value, name in self.pairs]


@dataclass(frozen=True)
class Grid:
    """A table: its first column names the rows, the first `left` columns are words, the others numbers."""

    kind: ClassVar[str] = "grid"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    left: int = 1
    longest_whole: ClassVar[int] = LONGEST_WHOLE

    @property
    def shown(self) -> list[list[str]]:
        """The rows as safe lines."""
        return [[plain_text(cell, LONGEST_CELL) for cell in row] for row in self.rows]

    @property
    def heads(self) -> list[str]:
        """The heads as safe lines."""
        return [plain_text(name, LONGEST_CELL) for name in self.columns]

    @property
    def wide(self) -> bool:
        """Whether a phone shows its rows one under the other."""
        columns = list(zip(self.columns, *self.rows, strict=True))
        letters = [max(len(cell) for cell in column) for column in columns]
        beside = sum(min(each, LONGEST_WHOLE) + 2 for each in letters[1:])
        return beside > PHONE_LETTERS or max(letters) > LONGEST_LINE


@dataclass(frozen=True)
class Picture:
    """A figure as SVG that was made safe; `words` say what it shows, and `print_only` keeps it off the screen."""

    kind: ClassVar[str] = "picture"
    svg: Markup
    words: str
    print_only: bool = False


@dataclass(frozen=True)
class Bar:
    """One bar of a waterfall, in per cent of its width: from left to right, better or worse, with an interval or none."""

    left: float
    right: float
    tone: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Steps:
    """A waterfall as a table: name, change, level and what the step is, and the bar that shows it."""

    kind: ClassVar[str] = "steps"
    caption: str
    rows: Sequence[tuple[str, str, str, str, Bar]]
    note: str = ""

    @property
    def shown(self) -> list[tuple[str, str, str, str, Bar]]:
        """The rows as safe lines."""
        return [
            (plain_text(name), plain_text(change), plain_text(level), plain_text(words, LONGEST_CELL), bar)
            for name, change, level, words, bar in self.rows
        ]


@dataclass(frozen=True)
class Code:
    """Text that was written by somebody and stays as it is, line by line."""

    kind: ClassVar[str] = "code"
    text: str
    label: str

    @property
    def shown(self) -> str:
        """The text with its lines, each without invisible controls."""
        lines = self.text.splitlines()
        return "\n".join(_indented(line) for line in lines)


def _indented(line: str) -> str:
    bare = line.lstrip(" ")
    return " " * (len(line) - len(bare)) + plain_text(bare, len(bare) + 1)


@dataclass(frozen=True)
class Frame:
    """A page within the page: the interactive map."""

    kind: ClassVar[str] = "frame"
    page: str
    label: str

    @property
    def srcdoc(self) -> Markup:
        """The page as the value of an attribute in single quotes: markup is full of double ones."""
        return Markup(self.page.replace("&", "&amp;").replace("'", "&#39;"))


@dataclass(frozen=True)
class More:
    """Blocks that open on a click, and are printed."""

    kind: ClassVar[str] = "more"
    label: str
    blocks: Sequence[Block]

    @property
    def shown(self) -> str:
        """The label as a safe line."""
        return plain_text(self.label, LONGEST_CELL)


Block = Words | Items | Tiles | Grid | Picture | Steps | Code | Frame | More


@dataclass(frozen=True)
class Part:
    """A section of the page."""

    key: str
    title: str
    blocks: Sequence[Block]
