"""The map page: a folium map that opens without network, draws equal bytes from equal input, and stays small.

Leaflet comes from the installed package and is written into the page, as are the page's own script and style;
a content security policy forbids the page to ask anything of any host and to run any script that is not its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import folium
from branca.element import CssLink, Element, Figure, JavascriptLink, MacroElement
from folium.template import Template

from geoedge.errors import OutputError
from geoedge.files import write_whole
from geoedge.maps.credit import ODBL_CREDIT
from geoedge.maps.inline import policy, shared_head
from geoedge.maps.wire import UNIT, script_json
from geoedge.texts import plain_text

__all__ = ["LIMIT_BYTES", "MapLayer", "MapPage", "RunData"]

LIMIT_BYTES = 5_000_000
"""What a page may weigh [B]."""

PANES = (
    ("tiles", 200, "none", False),
    ("land", 300, "canvas", False),
    ("surface", 320, "canvas", True),
    ("outline", 340, "canvas", False),
    ("streets", 360, "canvas", False),
    ("people", 365, "svg", True),
    ("street_names", 370, "none", False),
    ("places", 400, "svg", True),
    ("actions", 410, "svg", True),
    ("sites", 420, "svg", True),
    ("names", 430, "none", False),
    ("ranks", 440, "none", True),
)
"""Panes from below to above: name, height, renderer, and whether the pointer finds what is in them."""


class _Text(Element):
    """Text that is put into the page as it stands."""

    _template = Template("{{ this.text }}")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class MapLayer(MacroElement):
    """One layer of the map, which one switch shows and hides.

    Parameters
    ----------
    theme
        Short name of the layer.
    label
        What the switch is called: the question that the layer answers.
    features
        ``[form, geometry, style, tip, more]`` each, the same at all times: form is polygon, line or point; geometry
        as `wire` encodes it; style an index into `styles`; tip a title and one text a field, or None; more further
        options.
    role
        ``"surface"``: one of these is shown at a time; ``"overlay"``: any number.
    pane
        Name of one of `PANES`.
    kind
        ``"features"``, or how the page draws the layer from the run's own numbers.
    explanation
        What the panel adds to the label while the layer is shown.
    fields
        What the texts of a tip are.
    style, styles, dark_styles
        Leaflet path options of all features, and of each class of them, on light and on dark ground.
    legends
        Legends as the scales write them.
    show
        Whether the page opens with it.
    more
        What the page needs to know besides to draw this kind.
    """

    _template = Template("{% macro script(this, kwargs) %}geoedge.add({{ this.payload }});\n{% endmacro %}")

    def __init__(
        self,
        theme: str,
        label: str,
        features: Sequence[Sequence[Any]] = (),
        *,
        role: str = "overlay",
        pane: str = "surface",
        kind: str = "features",
        explanation: str = "",
        fields: Sequence[str] = (),
        style: Mapping[str, Any] | None = None,
        styles: Sequence[Mapping[str, Any]] = ({},),
        dark_styles: Sequence[Mapping[str, Any]] = (),
        legends: Sequence[Mapping[str, Any]] = (),
        show: bool = False,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._name = "MapLayer"
        self.theme, self.kind = theme, kind
        self.features = list(features)
        self.description = {
            "theme": theme,
            "label": label,
            "role": role,
            "pane": pane,
            "kind": kind,
            "explanation": explanation,
            "fields": list(fields),
            "style": dict(style or {}),
            "styles": [dict(item) for item in styles],
            "dark_styles": [dict(item) for item in dark_styles],
            "legends": [dict(item) for item in legends],
            "show": show,
            **(more or {}),
        }

    @cached_property
    def payload(self) -> str:
        """The layer as JSON for the page's script."""
        return script_json({**self.description, "features": self.features})


class RunData(MacroElement):
    """The numbers of a run, from which the page draws every epoch itself.

    Parameters
    ----------
    data
        What `rundata` and its neighbours make of the run.
    """

    _template = Template("{% macro script(this, kwargs) %}geoedge.run({{ this.payload }});\n{% endmacro %}")

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._name = "RunData"
        self.data = dict(data)

    @cached_property
    def payload(self) -> str:
        """The numbers as JSON for the page's script."""
        return script_json(self.data)


class PageFigure(Figure):
    """The document around the map: head line, map, and the panel with switches, legends and notes."""

    _template = Template(
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<title>{{ this.title|e }}</title>\n{{ this.header.render(**kwargs) }}\n</head>\n<body>\n"
        '<header class="page-head"><div class="page-title"><h1><bdi>{{ this.title|e }}</bdi></h1>'
        '<button type="button" id="scheme" aria-label="Dark or light colours"></button></div>'
        "{% for line in this.lines %}<p><bdi>{{ line|e }}</bdi></p>{% endfor %}"
        "<noscript>This map needs JavaScript{% if not this.sources %}; it loads nothing from outside"
        "{% endif %}.</noscript></header>\n"
        "<main>{{ this.html.render(**kwargs) }}\n"
        '<section id="card" class="card" aria-labelledby="card-title" hidden></section></main>\n'
        '<section id="time" class="page-time" aria-label="Time"></section>\n'
        '<aside class="page-side" aria-label="Layers and legends" tabindex="0"><div id="controls"></div>'
        '<div id="ranking"></div>'
        '{% if this.notes %}<h2>Notes</h2><ul class="notes">'
        "{% for note in this.notes %}<li>{{ note|e }}</li>{% endfor %}</ul>{% endif %}</aside>\n"
        "<script>\n{{ this.script.render(**kwargs) }}\n{{ this.map.start_call() }}\n</script>\n</body>\n</html>\n"
    )

    def __init__(self, title: str, lines: Sequence[str], limit_bytes: int, content: MapPage) -> None:
        super().__init__(title=title)
        self.map = content
        self.add_child(content)
        self.lines, self.limit_bytes = list(lines), limit_bytes
        self.sources: list[str] = []
        self.notes: list[str] = []
        self.header.add_child(_Text(shared_head()), name="page_head")

    def render(self, **kwargs: Any) -> str:
        """Return the whole page.

        Raises
        ------
        OutputError
            If an element would load something from outside, or the page is over its limit.
        """
        page = self.unlimited(**kwargs)
        size = len(page.encode())
        if size > self.limit_bytes:
            msg = (
                f"map: the page has {size / 1e6:.1f} MB, more than its limit of {self.limit_bytes / 1e6:.1f} MB; "
                "draw fewer epochs, or a smaller part of the city"
            )
            raise OutputError(msg)
        return page

    def unlimited(self, **kwargs: Any) -> str:
        """Return the whole page, whatever its size."""
        _number(self)
        page = super().render(**kwargs)
        self._refuse_outside()
        return page.replace("<head>\n", f"<head>\n{policy(page, self.sources)}\n", 1)

    def _refuse_outside(self) -> None:
        links = [
            child for child in self.header._children.values() if isinstance(child, JavascriptLink | CssLink)
        ]
        if links:
            msg = f"map: a layer wants to load {links[0].url} from outside; use layers that Leaflet alone can draw"
            raise OutputError(msg)


class MapPage(folium.Map):
    """A folium map without tiles or anything else from outside.

    Parameters
    ----------
    title
        Head line of the page.
    lines
        Lines under it.
    bounds
        West, south, east and north of what is shown first [degree].
    epochs, types
        Names of the epochs and request types that the switches offer.
    first_epoch
        Which epoch the page opens with.
    attribution
        Words and the addresses they link to (empty for plain words), shown on the map.
    limit_bytes
        What the page may weigh [B].
    """

    default_js: list[tuple[str, str]] = []  # noqa: RUF012
    default_css: list[tuple[str, str]] = []  # noqa: RUF012
    _template = Template(
        "{% macro html(this, kwargs) %}"
        '<div class="page-map" id="{{ this.get_name() }}" role="region" aria-label="Map"></div>'
        "{% endmacro %}{% macro script(this, kwargs) %}"
        'const {{ this.get_name() }} = L.map("{{ this.get_name() }}", {{ this.leaflet_options() }});\n'
        "{% endmacro %}"
    )

    def __init__(
        self,
        title: str,
        *,
        bounds: tuple[float, float, float, float],
        lines: Sequence[str] = (),
        epochs: Sequence[str] = (),
        types: Sequence[str] = (),
        first_epoch: int = 0,
        attribution: Sequence[tuple[str, str]] = ODBL_CREDIT,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        west, south, east, north = bounds
        super().__init__(location=[(south + north) / 2, (west + east) / 2], tiles=None, prefer_canvas=True)
        self.bounds = [[south, west], [north, east]]
        self.epochs, self.types = list(map(plain_text, epochs)), list(map(plain_text, types))
        self.first_epoch = first_epoch
        self.attribution = [list(part) for part in attribution]
        self.page = PageFigure(
            plain_text(title, 200), [plain_text(line, 400) for line in lines], limit_bytes, self
        )

    def note(self, text: str) -> None:
        """Add a note for the reader, such as what was simplified or left out.

        Parameters
        ----------
        text
            The note, plain text; cut after 400 characters.
        """
        line = plain_text(text, 400)
        if line not in self.page.notes:
            self.page.notes.append(line)

    def load_from(self, source: str) -> None:
        """Let the page load pictures from a host; without this it loads nothing.

        Parameters
        ----------
        source
            The host as a content security policy names it, such as ``https://tile.openstreetmap.org``.
        """
        self.page.sources.append(source)

    def leaflet_options(self) -> str:
        """Return the options of the Leaflet map."""
        return script_json(
            {
                "preferCanvas": True,
                "attributionControl": False,
                "zoomSnap": 0.25,
                "minZoom": 8,
                "maxZoom": 19,
                "maxBoundsViscosity": 0.5,
            }
        )

    def start_call(self) -> str:
        """Return the last words of the page's script: all layers are described, draw them."""
        settings = {
            "bounds": self.bounds,
            "epochs": self.epochs,
            "types": self.types,
            "epoch": self.first_epoch,
            "attribution": self.attribution,
            "panes": PANES,
            "unit": UNIT,
        }
        return f"geoedge.start({self.get_name()}, {script_json(settings)});"

    @property
    def size_bytes(self) -> int:
        """What the page weighs [B], also beyond its limit."""
        return len(self.page.unlimited().encode())

    def to_html(self) -> str:
        """Return the page as text."""
        return self.page.render()

    def save(
        self, outfile: str | bytes | os.PathLike[str] | BinaryIO, close_file: bool = True, **kwargs: Any
    ) -> Path | None:
        """Write the page, whole or not at all, and return its path.

        Parameters
        ----------
        outfile
            Path of the file, or a binary file that is open for writing.
        close_file
            Close the open file after writing.
        **kwargs
            What folium hands on when it renders.

        Raises
        ------
        OutputError
            If the page cannot be written there, or is over its limit.
        """
        data = self.page.render(**kwargs).encode()
        if isinstance(outfile, str | bytes | os.PathLike):
            return write_whole(Path(os.fsdecode(outfile)), data, "map")
        outfile.write(data)
        if close_file:
            outfile.close()
        return None


def _number(root: Figure) -> None:
    """Give every element a number in place of its random name, so that equal input makes equal pages."""
    waiting, count = list(root._children.values()), 0
    while waiting:
        element = waiting.pop(0)
        element._id = f"{count}"
        count += 1
        waiting.extend(element._children.values())
