"""Figures for the page: drawn narrow enough for a phone, and left out with a reason where there is nothing to draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from geoedge.errors import GeoEdgeError
from geoedge.report.page.blocks import Block, Picture, Words
from geoedge.report.page.svg import inline_svg
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from geoedge.results import Results
    from geoedge.style import PaperFigure

__all__ = ["drawn", "runs_drawn"]


def drawn(key: str, words: str, draw: Callable[[], PaperFigure], *, print_only: bool = False) -> Block:
    """Return a figure as a block, or why it is not there.

    Parameters
    ----------
    key
        Name of the figure, of its own in the page.
    words
        What it shows, for those who cannot see it.
    draw
        Makes it.
    print_only
        Whether it is for paper alone.
    """
    label = plain_text(words, 400)
    try:
        return Picture(inline_svg(draw(), key, label), label, print_only=print_only)
    except GeoEdgeError as error:
        return Words(f"Not drawn: {error}", "quiet")


def runs_drawn(key: str, words: str, figure: str, runs: Sequence[Results]) -> Block:
    """Return a figure of `geoedge.figures` of some runs, over one column of a paper.

    Parameters
    ----------
    key
        Name of the figure, of its own in the page.
    words
        What it shows, for those who cannot see it.
    figure
        Name of the function.
    runs
        The runs.
    """

    def draw() -> PaperFigure:
        from geoedge import figures

        made: PaperFigure = getattr(figures, figure)(*runs, columns=1)
        return made

    return drawn(key, words, draw)
