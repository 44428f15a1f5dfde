"""`geoedge sites`: what a file of sites holds, and how far its sites are from Poisson."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geoedge.cli.manner import Manner, check_ending, print_json
from geoedge.cli.options import AsJson, Buildings, Quiet
from geoedge.cli.program import app
from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from geoedge.city import City
    from geoedge.cli.progress import Report

__all__ = ["sites"]


@app.command()
def sites(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="CSV, GeoJSON, GeoPackage, shapefile, .osm or .pbf, packed or not"
        ),
    ],
    city: Annotated[
        str | None, typer.Option(help="shipped city, map file or place name; the sites' own hull by default")
    ] = None,
    buildings: Buildings = None,
    operator: Annotated[
        str | None, typer.Option(help="the only operator to keep, by name or as 208-01")
    ] = None,
    radio: Annotated[str | None, typer.Option(help="the only technologies to keep: LTE or LTE,NR")] = None,
    merge: Annotated[float, typer.Option(min=0.0, help="sites of one operator this near are one [m]")] = 50.0,
    columns: Annotated[
        str | None, typer.Option(metavar="ROLE=COLUMN,…", help="for example lon=LONGITUDE,lat=LATITUDE")
    ] = None,
    crs: Annotated[str | None, typer.Option(help="CRS of a file that states none, such as EPSG:2154")] = None,
    quarantine: Annotated[Path | None, typer.Option(help="CSV file for the rows that cannot be used")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="map page to write, .html")] = None,
    seed: Annotated[int, typer.Option(help="seed of the Poisson layouts compared with")] = 0,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what a file of sites holds, and how far from Poisson it is."""
    from geoedge.sites import survey_sites

    _check_files(file, city, buildings, quarantine, output)
    with Manner(as_json, quiet).progress() as report:
        land = _land(city, buildings, report)
        report(f"reading {file.name}", 0, 1)
        asked = {
            "operator": operator,
            "radio": radio,
            "columns": columns,
            "crs": crs,
            "quarantine": quarantine,
        }
        found = survey_sites(file, land, merge_distance_m=merge, rng=seed, **asked)  # type: ignore[arg-type]
        if output is not None:
            from geoedge.maps import sites_map

            report("map", 0, 1)
            sites_map(found, land).save(output)
    written = {key: str(path) for key, path in (("quarantine", quarantine), ("map", output)) if path}
    if as_json:
        print_json(found.to_dict() | written)
        return
    from geoedge.report.sites import print_sites

    print_sites(found, {} if quiet else written)


def _check_files(
    file: Path, city: str | None, buildings: Path | None, quarantine: Path | None, output: Path | None
) -> None:
    """Refuse what cannot be written, what would be written over, and footprints of no city."""
    from geoedge.files import check_place, keep_apart

    if output is not None:
        check_ending(output, "a map is a page", ".html", ".htm")
    for name, path in (("quarantine file", quarantine), ("map", output)):
        if path is not None:
            check_place(path, name)
    map_file = city if city is not None and Path(city).is_file() else None
    read = {"the file of sites": file, "--city": map_file, "--buildings": buildings}
    keep_apart(read, {"--quarantine": quarantine, "--output": output})
    if city is None and buildings is not None:
        msg = f"--buildings {str(buildings)!r}: footprints belong to a city; name it with --city"
        raise GeoEdgeError(msg)


def _land(city: str | None, buildings: Path | None, report: Report) -> City | None:
    if city is None:
        return None
    from geoedge.city import load_city

    return load_city(city, buildings=buildings, progress=lambda stage: report(stage, 0, 1))
