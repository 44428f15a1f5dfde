"""Figures as SVG that can stand in a page: shapes and text alone, names of their own, colours to be switched.

Fonts are left to the page, so that text looks like the text around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from markupsafe import Markup, escape

from geoedge.errors import GeoEdgeError
from geoedge.report.page.ink import in_the_dark

if TYPE_CHECKING:
    from geoedge.style import PaperFigure

__all__ = ["colour_names", "inline_svg"]

_TAGS = frozenset({"svg", "g", "defs", "path", "use", "text", "tspan", "clipPath", "rect", "circle", "image"})
_ATTRIBUTES = frozenset(
    {"clip-path", "cx", "cy", "d", "height", "id", "r", "style", "transform", "viewBox", "width", "x", "y"}
)
_STYLES = frozenset(
    {
        *("fill", "fill-opacity", "fill-rule", "font-size", "font-style", "font-weight"),
        *("opacity", "stroke", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin"),
        *("stroke-opacity", "stroke-width", "text-anchor", "clip-path"),
    }
)
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_REFERENCE = re.compile(r"url\(#([\w-]+)\)")
_PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]+")
_USED = re.compile(r"""(?:href="#|url\(#)([\w-]+)""")
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")


def inline_svg(figure: PaperFigure, key: str, label: str) -> Markup:
    """Return a figure as an SVG element: text as text, colours as CSS variables, nothing that could be carried out.

    Parameters
    ----------
    figure
        The figure.
    key
        Stands before every name inside, so that no two figures of a page share one.
    label
        What the figure shows, for those who cannot see it.

    Raises
    ------
    GeoEdgeError
        If the figure holds what no page should.
    """
    drawn = _drawn(figure)
    used = set(_USED.findall(drawn))
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)
    lines = "".join(_written(root, key, outermost=True))
    return Markup(lines.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1))


def colour_names(markup: str) -> dict[str, tuple[str, str]]:
    """Return the CSS variables of all figures of a page: name, colour in the light and in the dark.

    Parameters
    ----------
    markup
        The figures.
    """
    names = sorted(set(re.findall(r"var\(--c([0-9a-f]{6})\)", markup)))
    return {f"--c{name}": (f"#{name}", in_the_dark(f"#{name}")) for name in names}


def _drawn(figure: PaperFigure) -> str:
    from geoedge.style.paper import written

    figure.letters = True  # words are to be found and selected
    return written(figure, "svg").decode()


def _written(element: ElementTree.Element, key: str, *, outermost: bool = False) -> Iterator[str]:
    """Yield the text of an element and of what is in it, unless it is none that figures need."""
    tag = element.tag.rpartition("}")[2]
    if tag in ("metadata", "style", "title", "desc"):
        return
    if tag not in _TAGS:
        msg = f"report: a figure holds an element <{tag}>, which has no place in a page; draw it with shapes and text"
        raise GeoEdgeError(msg)
    yield f"<{tag}{''.join(_attributes(element, key, outermost))}>"
    if tag in ("text", "tspan") and element.text:
        yield str(escape(element.text))
    for child in element:
        yield from _written(child, key)
        if tag == "text" and child.tail:
            yield str(escape(child.tail))
    yield f"</{tag}>"


def _attributes(element: ElementTree.Element, key: str, outermost: bool) -> Iterator[str]:
    for name, value in element.attrib.items():
        short = name.rpartition("}")[2]
        words = ""
        if short == "href":
            words = _target(value, key)
        elif short == "id":
            words = f"{key}-{value}"
        elif short == "style":
            words = _styled(value, key)
        elif short in ("d", "x", "y"):
            words = _LONG_NUMBER.sub(_shorter, " ".join(value.split()))
        elif short in _ATTRIBUTES and not (outermost and short in ("width", "height")):
            words = "" if value.startswith("rotate(-0 ") else _renamed(value, key)
        if words:
            yield f' {short}="{escape(words)}"'


def _shorter(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _renamed(value: str, key: str) -> str:
    return _REFERENCE.sub(lambda found: f"url(#{key}-{found[1]})", value)


def _target(value: str, key: str) -> str:
    if value.startswith("#"):
        return f"#{key}-{value[1:]}"
    if not _PICTURE.fullmatch(value):
        msg = (
            f"report: a figure refers to {value[:40]!r} outside of it, which no page should; draw it instead"
        )
        raise GeoEdgeError(msg)
    return re.sub(r"\s", "", value)


def _styled(value: str, key: str) -> str:
    """Return the declarations that figures need, with colours as variables."""
    found = []
    for declaration in value.split(";"):
        name, _, words = (part.strip() for part in declaration.partition(":"))
        if name in _STYLES:
            found.append(f"{name}:{_COLOUR.sub(_variable, _renamed(words, key))}")
    return ";".join(found)


def _variable(colour: re.Match[str]) -> str:
    return f"var(--c{colour[0][1:].lower()})"
