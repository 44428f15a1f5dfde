"""The report page: one file that opens without network, the same bytes for the same runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from geoedge.errors import GeoEdgeError, OutputError
from geoedge.files import write_whole
from geoedge.maps.inline import policy
from geoedge.report.page.blocks import Frame, More, Part
from geoedge.report.page.compose import Asked, parts_of
from geoedge.report.page.svg import colour_names
from geoedge.report.page.told import Told, told_runs
from geoedge.simulation.audit import damage_told
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment, Template

    from geoedge.city import City
    from geoedge.compare import Gap
    from geoedge.results import Results

__all__ = ["ReportPage", "report_page"]

LONGEST_TITLE = 200


@dataclass(frozen=True, eq=False)
class ReportPage:
    """One page about one run or several.

    Parameters
    ----------
    title
        Its head line.
    lines
        Lines under it.
    parts
        Its sections.
    credits
        Whom its maps are owed to: words and the addresses they link to (empty for plain words).
    """

    title: str
    lines: Sequence[str]
    parts: Sequence[Part]
    credits: Sequence[tuple[str, str]]

    def __repr__(self) -> str:
        return f"ReportPage({plain_text(self.title)!r}, {len(self.parts)} parts, {len(self._html.encode()):,} bytes)"

    @cached_property
    def _html(self) -> str:
        body = _template().render(page=self, style=_asset("page.css"))
        colours = colour_names(body)
        head = [
            policy("".join(frame.page for frame in _frames(self.parts))),  # frames inherit it
            f"<style>{_variables(colours)}</style>",
        ]
        return body.replace("<!-- head -->", "\n".join(head), 1)

    def to_html(self) -> str:
        """Return the page as text."""
        return self._html

    def save(self, path: str | Path) -> Path:
        """Write the page, whole or not at all, and return its path.

        Parameters
        ----------
        path
            The file, ending in .html or .htm.

        Raises
        ------
        OutputError
            If it cannot be written there.
        """
        place = Path(path)
        if place.suffix.lower() not in (".html", ".htm"):
            msg = f"report {str(place)!r}: a report is a page; name a file that ends in .html"
            raise OutputError(msg)
        return write_whole(place, self._html.encode(), "report")


def report_page(
    *runs: Results | str | Path,
    gap: Gap | None = None,
    city: City | None = None,
    title: str | None = None,
    maps: bool = True,
) -> ReportPage:
    """Tell about one run, or lay several side by side, in one page that opens without network.

    Parameters
    ----------
    *runs
        Folders that `geoedge run` wrote, or results; with several, the first is what the others are compared with.
    gap
        The gap between theory and city, taken apart by `geoedge.explain_gap`, to be told, too.
    city
        City of the runs, where their scenarios do not name it.
    title
        Head line; the runs' own by default.
    maps
        Whether the interactive maps are to be in the page.

    Raises
    ------
    GeoEdgeError
        If there are no runs or too many, one has no request after its warm-up, or what is given is none of all that.
    OutputError
        If a folder is no run.
    """
    told = told_runs(runs, city)
    _checked(gap)
    with damage_told(" · ".join(each.name for each in told)):
        for each in told:
            each.results.metrics()  # says in one line if there is nothing to tell
        lines = [_line(each, alone=len(told) == 1) for each in told]
        parts = parts_of(Asked(told, gap, maps))
    heads = list(
        dict.fromkeys(plain_text(each.meta.get("title"), LONGEST_TITLE) or each.name for each in told)
    )
    return ReportPage(
        plain_text(title, LONGEST_TITLE) or plain_text(" · ".join(heads), 2 * LONGEST_TITLE),
        lines,
        parts,
        _credits(told),
    )


def _checked(gap: object) -> None:
    """Refuse what is no gap.

    Raises
    ------
    GeoEdgeError
        If something else was given.
    """
    from geoedge.compare import Gap

    if gap is not None and not isinstance(gap, Gap):
        msg = f"report: `gap` must be a Gap, not {type(gap).__name__}; make it with `geoedge.explain_gap(scenario)`"
        raise GeoEdgeError(msg)


def _line(told: Told, *, alone: bool) -> str:
    meta = told.meta
    facts = [
        told.window,
        f"after {meta['warm_up_s'] / 60:.0f} min of warm-up",
        f"{len(told.results.sites)} sites" + (f" ({meta['layout']})" if meta.get("layout") else ""),
        f"routing {meta['policy']}".replace("_", "-"),
        f"controller {meta['controller']}".replace("_", "-"),
        f"seed {meta['seed']}" if "seed" in meta else "",
    ]
    said = " · ".join(each for each in facts if each)
    return said if alone else f"{told.name}: {plain_text(meta.get('title'), 100)} · {said}"


def _credits(runs: Sequence[Told]) -> list[tuple[str, str]]:
    """Return the credits of the runs' maps, each once."""
    from geoedge.maps.credit import map_credit

    given = dict.fromkeys(
        tuple(str(each.meta.get(name, "")) for name in ("attribution", "extract_date")) for each in runs
    )
    found: list[tuple[str, str]] = []
    for words, date in (pair for pair in given if pair[0]):
        found += [*([(" · ", "")] if found else []), *map_credit(words, date)]
    return found


def _frames(blocks: Sequence[Any]) -> Iterator[Frame]:
    """Yield the pages within the page, wherever they are."""
    for block in blocks:
        if isinstance(block, Frame):
            yield block
        elif isinstance(block, Part | More):
            yield from _frames(block.blocks)


def _variables(colours: dict[str, tuple[str, str]]) -> str:
    light = "".join(f"{name}:{pair[0]};" for name, pair in colours.items())
    dark = "".join(f"{name}:{pair[1]};" for name, pair in colours.items() if pair[0] != "#ffffff")
    ground = "--cffffff:var(--figure);" if "--cffffff" in colours else ""
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}{ground}}}}}"


@cache
def _template() -> Template:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made: Environment = Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["coded"] = _coded
    return made.get_template("page.html.jinja")


def _coded(text: str) -> Markup:
    """Return text in which words between backticks are set as code."""
    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if k % 2 else part for k, part in enumerate(parts)
    )


def _asset(name: str) -> str:
    return (files("geoedge.report.page") / "assets" / name).read_text(encoding="utf-8")
