"""`geoedge city`: what a map holds, and a map cut to a box."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geoedge.cli.manner import Manner, print_json
from geoedge.cli.options import AsJson, Buildings, Quiet
from geoedge.cli.program import app
from geoedge.errors import GeoEdgeError

__all__ = ["clip", "info"]

city_app = typer.Typer(help="Maps: what is in them, and cutting them.", no_args_is_help=True)
app.add_typer(city_app, name="city")


@city_app.command()
def info(
    source: Annotated[str, typer.Argument(metavar="CITY", help="shipped city, map file or place name")],
    buildings: Buildings = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what a map holds, what was imputed and what was dropped."""
    from geoedge.city import load_city
    from geoedge.report.given import print_city

    with Manner(as_json, quiet).progress() as report:
        city = load_city(source, buildings=buildings, progress=lambda stage: report(stage, 0, 1))
    if as_json:
        print_json(city.report)
        return
    print_city(city)


@city_app.command()
def clip(
    source: Annotated[Path, typer.Argument(metavar="MAP", help=".osm, .osm.gz, .osm.bz2 or .osm.pbf")],
    bbox: Annotated[str, typer.Option(metavar="W,S,E,N", help="west, south, east, north in degrees")],
    output: Annotated[Path, typer.Option("-o", "--output", help="file to write, .osm.pbf")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Cut a map file to a box: complete ways, without personal metadata."""
    from geoedge.city import clip as clip_map

    box = _box(bbox)
    with Manner(as_json, quiet).progress() as report:
        report(f"cutting {source.name}", 0, 1)
        counts = clip_map(source, box, output)
    if as_json:
        print_json({"output": str(output), **counts})
    elif not quiet:
        print(f"{output}: {', '.join(f'{count:,} {what}' for what, count in counts.items())}")


def _box(text: str) -> tuple[float, float, float, float]:
    try:
        west, south, east, north = (float(part) for part in text.split(","))
    except ValueError:
        msg = f"--bbox {text!r}: must be four numbers W,S,E,N in degrees, for example 7.40,43.72,7.47,43.76"
        raise GeoEdgeError(msg) from None
    return west, south, east, north
