"""`geoedge map`, `report` and `app`: a run, or a city, to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geoedge.app import DEFAULT_PORT
from geoedge.cli.asking import scenario_of
from geoedge.cli.manner import Manner, check_ending, print_json
from geoedge.cli.options import AsJson, Quiet, RunArgument, Setting
from geoedge.cli.program import app
from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from geoedge.cli.progress import Report
    from geoedge.compare import Gap
    from geoedge.results import Results

__all__ = ["app_", "map_", "report"]

PageOutput = Annotated[Path, typer.Option("-o", "--output", help="page to write, .html")]


@app.command("map")
def map_(
    run: RunArgument,
    output: PageOutput,
    tiles: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="https address of tiles to load while the page is open, with {z}, {x} and {y}; none by default",
        ),
    ] = None,
    tiles_credit: Annotated[
        str | None, typer.Option(metavar="WORDS", help="with --tiles: whom to name for them")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Draw a run as an interactive page, to open without network."""
    from geoedge.maps import city_map
    from geoedge.results import Results

    if tiles_credit is not None and tiles is None:
        msg = f"--tiles-credit {tiles_credit!r}: needs --tiles; add it"
        raise GeoEdgeError(msg)
    _check_page(output)
    manner = Manner(as_json, quiet)
    with manner.progress() as tell:
        tell("reading the run", 0, 1)
        results = Results.load(run)
        tell("map", 0, 1)
        city_map(results, tiles=tiles, tiles_credit=tiles_credit).save(output)
    _say_page(output, manner)


@app.command()
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN", help="folders that `geoedge run` wrote; the others are compared with the first"
        ),
    ],
    output: PageOutput,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="of one run: find, too, which effect makes theory and city differ"),
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tell a run, or several side by side, on one page."""
    from geoedge.report.page import report_page

    if explain and len(runs) > 1:
        msg = f"--explain: is of one run, not of {len(runs)}; name one, or leave it out"
        raise GeoEdgeError(msg)
    _check_page(output)
    manner = Manner(as_json, quiet)
    with manner.progress() as tell:
        told, gap = _explained(runs[0], tell) if explain else (runs, None)
        tell("report", 0, 1)
        report_page(*told, gap=gap).save(output)
    _say_page(output, manner)


def _explained(run: Path, tell: Report) -> tuple[list[Results], Gap]:
    """Return a run, and why theory and city differ in its scenario."""
    from geoedge.compare import explain_gap
    from geoedge.results import Results

    tell("reading the run", 0, 1)
    results = Results.load(run)  # before minutes are spent on what is no run
    return [results], explain_gap(scenario_of(str(run / "scenario.toml")), progress=tell)


@app.command("app")
def app_(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help="shipped scenario with a city (monaco, neubrandenburg) or a TOML file"
        ),
    ] = "monaco",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="port on this machine; 0 for a free one")
    ] = DEFAULT_PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="open no browser")] = False,
    settings: Setting = None,
    quiet: Quiet = False,
) -> None:
    """Play with a city in the browser: sliders, a live map, charts."""
    from geoedge.app import serve

    study = scenario_of(scenario, settings)
    serve(study, port=port, open_browser=not no_browser, say=(lambda _: None) if quiet else None)


def _check_page(output: Path) -> None:
    """Refuse a page that cannot be written, before any work."""
    from geoedge.files import check_place

    check_ending(output, "this is a page", ".html", ".htm")
    check_place(output)


def _say_page(page: Path, manner: Manner) -> None:
    """Say where a page is."""
    if manner.as_json:
        print_json({"page": str(page), "bytes": page.stat().st_size})
    elif not manner.quiet:
        print(page)
