"""Pictures as SVG text: quick to make, sharp at every size, coloured by the page's style sheet in light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from geoedge.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Drawing", "fine", "marker_path", "nice_ticks", "polyline"]

CORNERS = {
    "triangle": (3, -90.0),
    "wedge": (3, 90.0),
    "square": (4, 45.0),
    "diamond": (4, 0.0),
    "pentagon": (5, -90.0),
    "hexagon": (6, 0.0),
}
"""Corners of a marker, and the direction of the first [degree]; equal areas follow from `marker_path`."""
CROSS_ARM = 0.38
"""Half the width of an arm of the cross, in its half length."""


class Drawing:
    """One SVG picture, element by element; every text and attribute is escaped.

    Parameters
    ----------
    width, height
        Size of its coordinates; the page scales it.
    label
        What it shows, for readers who do not see it; empty for a picture that another one describes.
    style_class
        Class in the style sheet.
    """

    def __init__(self, width: float, height: float, *, label: str = "", style_class: str = "") -> None:
        self.width, self.height = width, height
        about = {"role": "img", "aria-label": plain_text(label, 400)} if label else {"aria-hidden": "true"}
        self.root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {fine(width)} {fine(height)}",
                "class": style_class,
                **about,
            },
        )

    def add(self, tag: str, style_class: str, *, title: str = "", **attributes: str | float) -> None:
        """Add an element.

        Parameters
        ----------
        tag
            Its kind, such as ``"path"``.
        style_class
            Class in the style sheet.
        title
            What a pointer that rests on it shows.
        **attributes
            The rest; underscores stand for hyphens.
        """
        given = {name.replace("_", "-"): _attribute(value) for name, value in attributes.items()}
        element = ElementTree.SubElement(self.root, tag, {"class": style_class, **given})
        if title:
            ElementTree.SubElement(element, "title").text = title

    def text(self, words: object, style_class: str, **attributes: str | float) -> None:
        """Add a line of words, whoever wrote them."""
        given = {name.replace("_", "-"): _attribute(value) for name, value in attributes.items()}
        ElementTree.SubElement(self.root, "text", {"class": style_class, **given}).text = plain_text(words)

    def markup(self) -> str:
        """Return the picture as text."""
        return ElementTree.tostring(self.root, encoding="unicode")


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else fine(value)


def fine(value: float) -> str:
    """Return a coordinate with as many digits as an eye can follow."""
    return f"{value:.1f}".removesuffix(".0")


def polyline(places: Floats, *, closed: bool = False) -> str:
    """Return the path through places, shape (k, 2); gaps where one is not a number."""
    drawn, pen = [], "M"
    for x, y in places.tolist():
        if x != x or y != y:
            pen = "M"
            continue
        drawn.append(f"{pen}{fine(x)} {fine(y)}")
        pen = "L"
    return "".join(drawn) + ("Z" if closed and drawn else "")


def marker_path(shape: str, x: float, y: float, radius: float) -> str:
    """Return the outline of a marker, all shapes with the area of the circle of this radius.

    Parameters
    ----------
    shape
        One of `geoedge.maps.scales.SHAPES`.
    x, y
        Its centre.
    radius
        Radius of the circle.
    """
    if shape == "circle":
        r, d = fine(radius), fine(2 * radius)
        return f"M{fine(x - radius)} {fine(y)}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z"
    if shape == "cross":
        arm = CROSS_ARM
        reach = radius * np.sqrt(np.pi / (8 * arm - 4 * arm**2))
        corners = _turned(np.array([(1.0, -arm), (1.0, arm), (arm, arm)]))
        return polyline(np.array([x, y]) + reach * corners, closed=True)
    count, first = CORNERS[shape]
    reach = radius * np.sqrt(2 * np.pi / (count * np.sin(2 * np.pi / count)))
    angle = np.radians(first + 360.0 / count * np.arange(count))
    return polyline(np.array([x, y]) + reach * np.column_stack([np.cos(angle), np.sin(angle)]), closed=True)


def _turned(quarter: Floats) -> Floats:
    """Return a quarter of an outline and its three turns by a right angle."""
    parts = [quarter]
    for _ in range(3):
        parts.append(np.column_stack([-parts[-1][:, 1], parts[-1][:, 0]]))
    return np.concatenate(parts)


def nice_ticks(top: float, count: int = 4) -> Sequence[float]:
    """Return round numbers from 0 to at least a value, in steps of 1, 2, 2.5 or 5 times a power of ten.

    Parameters
    ----------
    top
        What they must reach, above 0.
    count
        How many steps at most.
    """
    rough = top / count
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s * power for s in (1.0, 2.0, 2.5, 5.0, 10.0) if s * power >= rough * (1 - 1e-9))
    return [float(step * k) for k in range(int(np.ceil(top / step * (1 - 1e-9))) + 1)]
