"""`geoedge sweep`: a scenario over a grid of values, with paired runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geoedge.cli.asking import grid, scenario_of
from geoedge.cli.manner import Manner, check_ending, print_json
from geoedge.cli.options import AsJson, Quiet, Replications, ScenarioArgument, Seed, Setting, Workers
from geoedge.cli.program import app

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sweep"]


@app.command()
def sweep(
    scenario: ScenarioArgument,
    vary: Annotated[
        list[str],
        typer.Option(
            "--vary",
            metavar="KEY=V1,V2,…",
            help="values to try, for example demand.users=5000,10000; several make a grid",
        ),
    ],
    replications: Replications = None,
    workers: Workers = None,
    seed: Seed = None,
    settings: Setting = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="table of all runs to write, .csv or .parquet")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Simulate combinations of values, each with paired runs."""
    from geoedge.files import check_place, keep_apart, write_whole
    from geoedge.report.sweep import print_sweep, summary
    from geoedge.sweep import sweep as run_sweep

    study, manner, values = scenario_of(scenario, settings), Manner(as_json, quiet), grid(vary)
    if output is not None:
        check_ending(output, "the runs are a table", ".csv", ".parquet")
        check_place(output)
        keep_apart({"sites.source": study.sites.source}, {"--output": output})
    with manner.progress(study.simulation.duration_s) as report:
        report("city, sites, demand", 0, 1)
        told = partial(report, "simulations")
        runs = run_sweep(study, values, replications=replications, rng=seed, workers=workers, progress=told)
    if output is not None:
        write_whole(output, _file(runs, values, output.suffix.lower()), "table")
    if as_json:
        rows = [table.to_dict("records") for table in (summary(runs, values), runs)]
        print_json({"title": study.title, "vary": values, "rows": rows[0], "runs": rows[1]})
        return
    print_sweep(runs, values, study.title, manner.named(output))


def _file(runs: pd.DataFrame, values: dict[str, list[Any]], ending: str) -> bytes:
    """Return the table as a file; a key whose values are of several kinds is a column of text."""
    mixed = {key for key, tried in values.items() if len({type(each) for each in tried}) > 1}
    lists = {key for key, tried in values.items() if any(isinstance(each, (list, dict)) for each in tried)}
    table = runs.astype(dict.fromkeys(mixed | lists, str))
    if ending == ".csv":
        return table.to_csv(index=False).encode()
    return bytes(table.to_parquet(index=False))
