"""`geoedge run` and `geoedge solve`: the three answers, and theory's alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geoedge.cli.asking import scenario_of
from geoedge.cli.manner import Manner, print_json, run_facts
from geoedge.cli.options import (
    AsJson,
    Policy,
    Quiet,
    Replications,
    ScenarioArgument,
    Seed,
    Setting,
    Workers,
)
from geoedge.cli.program import app

__all__ = ["run", "solve"]


@app.command()
def run(
    scenario: ScenarioArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="run folder; runs/SCENARIO by default")
    ] = None,
    controller: Annotated[
        str | None,
        typer.Option(help="who moves caches, such as none, greedy or look_ahead; the scenario's by default"),
    ] = None,
    replications: Replications = None,
    layouts: Annotated[int, typer.Option(min=0, help="Poisson layouts of each ensemble")] = 50,
    workers: Workers = None,
    seed: Seed = None,
    settings: Setting = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Ask theory, field and simulation; write a run folder and a map."""
    from geoedge.results import check_writable

    changes = {"control.controller": controller, "simulation.replications": replications, "seed": seed}
    study, manner = scenario_of(scenario, settings, changes), Manner(as_json, quiet)
    folder = output or Path("runs") / Path(scenario).stem
    check_writable(folder)
    from geoedge.compare import run as run_study

    with manner.progress(study.simulation.duration_s) as report:
        results = run_study(study, layouts=layouts, workers=workers, progress=report)
        report("map", 0, 1)
        from geoedge.maps import city_map

        page = city_map(results)
        written = results.save(folder, {"map.html": page.to_html()})
    if as_json:
        print_json(run_facts(results, written))
        return
    from geoedge.report.run import print_run

    print_run(results, manner.named(written))


@app.command()
def solve(
    scenario: ScenarioArgument,
    policy: Policy = None,
    settings: Setting = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Ask Poisson theory alone: metrics, laws of load, tiers, capacity."""
    from geoedge.answers import WindowedAnswer
    from geoedge.planning.predict import prediction
    from geoedge.study import solve as solve_theory

    study = scenario_of(scenario, settings, {"routing.policy": policy})
    names = [profile.name for profile in study.workload.profiles]
    with Manner(as_json, quiet).progress() as report:
        report("theory", 0, 1)
        answer = solve_theory(study)
        found = prediction(answer, study.target.ttft_target_s, names)
    if as_json:
        print_json(found)
        return
    from geoedge.report.theory import print_prediction

    epochs = int((answer.weights > 0).sum()) if isinstance(answer, WindowedAnswer) else 1
    print_prediction(found, study.title, study.target.ttft_target_s, epochs)
