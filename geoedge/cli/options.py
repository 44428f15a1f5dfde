"""Arguments and options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "Buildings",
    "Figure",
    "Policy",
    "Quiet",
    "Replications",
    "RunArgument",
    "ScenarioArgument",
    "Seed",
    "Setting",
    "Workers",
]

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help="shipped scenario (paper, monaco, neubrandenburg) or a TOML file"
    ),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="a folder that `geoedge run` wrote")]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="change one value, for example routing.policy=nearest"),
]
Policy = Annotated[str | None, typer.Option(help="a name of routing.policy, as load_aware or llm_d")]
Seed = Annotated[int | None, typer.Option(help="seed of every random stream; the scenario's by default")]
Replications = Annotated[int | None, typer.Option(min=1, help="paired runs; the scenario's by default")]
Workers = Annotated[int | None, typer.Option(min=1, help="processes; one a core by default")]
Figure = Annotated[Path | None, typer.Option(help="picture to write, .png, .svg or .pdf")]
Buildings = Annotated[
    Path | None, typer.Option(help="footprints instead of the map's own: .gpkg, .geojson or .shp")
]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document and nothing else")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print no progress, and only what was asked")]
