"""A figure for a paper: its width, letters and lines, the same whatever the caller's settings are."""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from textwrap import wrap
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import AutoLocator, FixedLocator

from geoedge.errors import GeoEdgeError
from geoedge.style import GRID, INK, PALETTE, QUIET, WIDTH_IN
from geoedge.texts import LONGEST, plain_text

__all__ = ["DPI", "PaperFigure", "sheet", "shown", "width_in", "wrapped", "written"]

DPI = 200
"""Dots per inch of pictures made of pixels."""

_SETTINGS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlepad": 5.0,
    "axes.titlesize": 8.0,
    "axes.titleweight": "bold",
    "figure.facecolor": "white",
    "figure.titlesize": 8.5,
    "figure.titleweight": "bold",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with Matplotlib, so that files are alike everywhere
    "font.size": 7.5,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "legend.borderaxespad": 0.2,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "legend.title_fontsize": 7.0,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,  # TrueType inside: editable, and accepted by journals
    "ps.fonttype": 42,
    "savefig.dpi": DPI,
    "svg.fonttype": "path",  # letters as shapes: the same without our font; words of a PDF can be searched
    "svg.hashsalt": "geoedge",
    "text.color": INK,
    "text.parse_math": False,  # names of sites may hold dollar signs
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 7.0,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 7.0,
    "ytick.major.size": 2.5,
    "ytick.major.width": 0.6,
}
_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
"""What would differ between two files of one figure."""


@contextmanager
def _settings(*, letters: bool = False) -> Iterator[None]:
    """Put the caller's settings aside while a figure is made or written; `letters` keeps words of an SVG as words."""
    known: dict[Any, Any] = {
        key: value for key, value in mpl.rcParamsDefault.items() if "backend" not in key
    } | _SETTINGS
    if letters:
        known["svg.fonttype"] = "none"
    with mpl.rc_context(known), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names may be in any script
        yield


class PaperFigure(Figure):
    """A Matplotlib figure without pyplot that is written the same everywhere, by `savefig` too."""

    letters = False
    """Whether an SVG has its words as words, for a page with fonts of its own, and not as shapes."""

    def draw(self, renderer: Any) -> None:
        """Draw the figure in geoedge's style; called by canvases.

        Parameters
        ----------
        renderer
            What draws.
        """
        with _settings(letters=self.letters):
            super().draw(renderer)

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Write the figure in geoedge's style; equal figures give equal bytes.

        Parameters
        ----------
        fname
            File, or what is written to.
        **kwargs
            As of `matplotlib.figure.Figure.savefig`.
        """
        named = PurePath(fname).suffix[1:] if isinstance(fname, str | PurePath) else ""
        kind = str(kwargs.get("format") or named or "png").lower()
        kwargs["metadata"] = {**_METADATA.get(kind, {}), **(kwargs.get("metadata") or {})} or None
        with _settings(letters=self.letters):
            super().savefig(fname, **kwargs)

    def _repr_png_(self) -> bytes:
        """Return the picture as a notebook shows it."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=130)
        return buffer.getvalue()


def written(figure: Figure, kind: str) -> bytes:
    """Return a figure, ours or any other, as the content of a file; equal figures give equal bytes.

    Parameters
    ----------
    figure
        The figure.
    kind
        ``"png"``, ``"svg"`` or ``"pdf"``.
    """
    buffer = io.BytesIO()
    with _settings():
        figure.savefig(buffer, format=kind, metadata=_METADATA[kind])
    return buffer.getvalue()


_ISOLATED = ("\u2068", "\u2069")
"""Marks around a text that is read from right to left, so that what stands beside it keeps its place."""
_READS_BOTH_WAYS = (3, 11)
"""From this version on Matplotlib draws text in its direction of reading; before, marks would be seen."""


def shown(value: object, longest: int = LONGEST) -> str:
    """Return text that anybody may have written as it may stand in a figure, on one line.

    Parameters
    ----------
    value
        The name or title; ``None`` and NaN become empty.
    longest
        Characters that are shown; a longer text ends in an ellipsis.
    """
    words = plain_text(value, longest)
    backwards = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in words)
    return words.join(_ISOLATED) if backwards and mpl.__version_info__[:2] >= _READS_BOTH_WAYS else words


def wrapped(words: str, letters: int) -> str:
    """Return words on lines of at most so many letters, what is read from right to left marked on each.

    Parameters
    ----------
    words
        Words, `shown`.
    letters
        Most letters of a line.
    """
    lines, opened = [], ""
    for line in wrap(words, letters):
        marked = opened + line
        opened = _ISOLATED[0] if marked.count(_ISOLATED[0]) > marked.count(_ISOLATED[1]) else ""
        lines.append(marked + (_ISOLATED[1] if opened else ""))
    return "\n".join(lines)


def width_in(columns: int) -> float:
    """Return the width of a figure over columns of a paper [inch].

    Parameters
    ----------
    columns
        Columns of a paper that it spans, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If it is neither one column nor two.
    """
    if columns not in list(WIDTH_IN):  # what is given may have no hash
        msg = f"figure: `columns` must be 1 or 2 columns of a paper, not {columns!r}"
        raise GeoEdgeError(msg)
    return WIDTH_IN[columns]


@contextmanager
def sheet(columns: int, height_in: float) -> Iterator[PaperFigure]:
    """Hand out an empty figure to draw on in geoedge's style.

    Parameters
    ----------
    columns
        Columns of a paper that it spans, 1 or 2.
    height_in
        Height [inch].

    Raises
    ------
    GeoEdgeError
        If it is neither one column nor two.
    """
    width = width_in(columns)
    with _settings():
        figure = PaperFigure(figsize=(width, height_in), layout="constrained")
        yield figure
        _settle(figure)
        for words in figure.findobj(Text):
            assert isinstance(words, Text)  # what findobj looked for
            words.set_parse_math(False)


def _settle(figure: PaperFigure) -> None:
    """Keep the ticks that the laid out figure has: with others, labels of axes would be pushed over its edge."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_locator(), AutoLocator):
                axis.set_major_locator(FixedLocator(axis.get_majorticklocs().tolist()))
