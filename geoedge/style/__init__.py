"""How everything looks that geoedge draws: colours that everybody can tell apart, sizes of a paper, files.

The colours are those of the map page. Matplotlib is imported by the functions that draw, not by this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geoedge.style.paper import PaperFigure, sheet, shown, width_in, wrapped
    from geoedge.style.saving import check_picture, save_figure

__all__ = [
    "BLUE",
    "DASHES",
    "GAIN",
    "GREEN",
    "GRID",
    "INK",
    "LEVEL",
    "LOSS",
    "MARKERS",
    "ORANGE",
    "PALETTE",
    "PINK",
    "PROFILE_COLOURS",
    "QUIET",
    "SHADE",
    "SKY",
    "VERMILION",
    "WIDTH_IN",
    "PaperFigure",
    "check_picture",
    "colour_of",
    "save_figure",
    "sheet",
    "shown",
    "width_in",
    "wrapped",
]

BLUE, ORANGE, GREEN, PINK, SKY, VERMILION = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"
"""Colours by name."""
PROFILE_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, VERMILION, "#7f7f7f", "#f0e442")
"""The eight colours of Okabe and Ito for colour-blind readers, black replaced by grey; profiles take them in turn."""
PALETTE = (BLUE, VERMILION, GREEN, PINK, ORANGE, SKY)
"""The same for lines, those first that are dark enough on white."""
INK, QUIET, LEVEL, GRID, SHADE = "#222222", "#5d6977", "#8a949e", "#e3e7eb", "#f0f2f4"
"""Words, quiet words, neutral bars, grids, and what lies behind a part that does not count."""
GAIN, LOSS = BLUE, VERMILION
"""Better and worse; what they colour carries its sign as well."""
DASHES = ("-", "--", "-.", ":")
"""Lines differ in their dashes too, for print without colour."""
MARKERS = {
    "circle": "o",
    "square": "s",
    "triangle": "^",
    "diamond": "D",
    "pentagon": "p",
    "cross": "P",
    "wedge": "v",
    "hexagon": "h",
}
"""Markers of Matplotlib for the shapes of profiles on the map."""

WIDTH_IN = {1: 3.5, 2: 7.16}
"""Width of a figure over one and two columns of a paper [inch], as journals of the IEEE set them."""

_HOMES = {
    "PaperFigure": "paper",
    "check_picture": "saving",
    "save_figure": "saving",
    "sheet": "paper",
    "shown": "paper",
    "width_in": "paper",
    "wrapped": "paper",
}


def colour_of(column: str, place: int = 0) -> str:
    """Return the colour of an answer, the same in all figures; others take the palette in turn.

    Parameters
    ----------
    column
        What the answer is called in tables, such as ``"theory (PPP)"``.
    place
        Where it stands among its like.
    """
    for word, colour in _ANSWERS:
        if word in column:
            return colour
    return PALETTE[place % len(PALETTE)]


_ANSWERS: Sequence[tuple[str, str]] = (
    ("theory", BLUE),
    ("ensemble", LEVEL),
    ("same count", LEVEL),
    ("field", ORANGE),
    ("controller", GREEN),
    ("simulation: state", SKY),
    ("simulation", INK),
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"geoedge.style.{_HOMES[name]}"), name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
