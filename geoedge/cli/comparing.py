"""`geoedge compare`: a run's answers side by side, why theory and city differ, or what controllers earn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from geoedge.cli.asking import scenario_of
from geoedge.cli.manner import Manner, given, print_json, run_facts
from geoedge.cli.options import AsJson, Figure, Quiet, Replications, Seed, Setting, Workers
from geoedge.cli.program import app
from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from geoedge.compare import ControllerComparison, Gap
    from geoedge.scenario import Scenario

__all__ = ["compare"]

EXPLAINED_BY = ("orders", "metric", "layouts")
SIMULATED_BY = ("replications", "workers", "seed")

T = TypeVar("T", "Gap", "ControllerComparison")


@app.command()
def compare(
    context: typer.Context,
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="a folder that `geoedge run` wrote, or with --explain or --controllers a scenario",
        ),
    ],
    explain: Annotated[
        bool, typer.Option("--explain", help="say which effect makes theory and city differ")
    ] = False,
    controllers: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME,…", help="say what each controller earns on the same people and requests"
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="with --controllers: the one the others are measured against")
    ] = None,
    orders: Annotated[
        str, typer.Option(help="with --explain: chain, or shapley for means over all orders")
    ] = "chain",
    metric: Annotated[str, typer.Option(help="with --explain: coverage or wait_s")] = "coverage",
    figure: Figure = None,
    layouts: Annotated[
        int, typer.Option(help="with --explain: random layouts of each world that has them")
    ] = 40,
    replications: Replications = None,
    workers: Workers = None,
    seed: Seed = None,
    settings: Setting = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show a run's answers, why they differ, or what controllers earn.

    Without options the three answers of a run stand side by side, as when it was made.
    """
    manner = Manner(as_json, quiet)
    _refuse_two_questions(context, explain, controllers, baseline)
    if not explain and controllers is None:
        _refuse_questions(context, figure, settings)
        _show_run(Path(run), manner)
        return
    chosen: dict[str, Any] = {"replications": replications, "workers": workers, "rng": seed}
    asked = _compared(run, settings)
    if controllers is None:
        _explain(asked, chosen | {"orders": orders, "metric": metric, "layouts": layouts}, figure, manner)
    else:
        names = [name.strip() for name in controllers.split(",")]
        _contest(asked, chosen | {"controllers": names, "baseline": baseline}, figure, manner)


def _refuse_two_questions(
    context: typer.Context, explain: bool, controllers: str | None, baseline: str | None
) -> None:
    """Refuse questions that exclude each other, and options of the one that is not asked."""
    if explain and controllers is not None:
        msg = f"--controllers {controllers}: asks another question than --explain; leave one out"
        raise GeoEdgeError(msg)
    if baseline is not None and controllers is None:
        msg = f"--baseline {baseline}: needs --controllers; add it"
        raise GeoEdgeError(msg)
    idle = () if explain else given(context, *EXPLAINED_BY)
    if idle:
        msg = f"--{idle[0]}: needs --explain; add it"
        raise GeoEdgeError(msg)


def _refuse_questions(context: typer.Context, figure: Path | None, settings: list[str] | None) -> None:
    """Refuse options that ask for simulations or a picture where a run is only shown."""
    if figure is not None:
        msg = f"--figure {str(figure)!r}: the picture is that of --explain or of --controllers; add one"
        raise GeoEdgeError(msg)
    if settings:
        msg = f"--set {settings[0]}: nothing can be set in a run that is over; add --explain or --controllers"
        raise GeoEdgeError(msg)
    for name in given(context, *SIMULATED_BY):
        msg = f"--{name}: nothing is simulated where a run is shown; add --explain or --controllers"
        raise GeoEdgeError(msg)


def _show_run(folder: Path, manner: Manner) -> None:
    from geoedge.results import Results

    with manner.progress() as report:
        report("reading the run", 0, 1)
        results = Results.load(folder)
    if manner.as_json:
        print_json(run_facts(results, folder))
        return
    from geoedge.report.run import print_run

    print_run(results, manner.named(folder))


def _compared(name: str, settings: list[str] | None) -> Scenario:
    """Return the scenario of a run folder, or the scenario of that name."""
    folder = Path(name)
    return scenario_of(str(folder / "scenario.toml") if folder.is_dir() else name, settings)


def _contest(scenario: Scenario, chosen: dict[str, Any], figure: Path | None, manner: Manner) -> None:
    from geoedge.compare import compare_controllers
    from geoedge.report.controllers import print_controllers

    _compare(compare_controllers, print_controllers, scenario, chosen, figure, manner)


def _explain(scenario: Scenario, chosen: dict[str, Any], figure: Path | None, manner: Manner) -> None:
    from geoedge.compare import explain_gap
    from geoedge.report.gap import print_gap

    _compare(explain_gap, print_gap, scenario, chosen, figure, manner)


def _compare(
    ask: Callable[..., T],
    tell: Callable[[T, Path | None], None],
    scenario: Scenario,
    chosen: dict[str, Any],
    figure: Path | None,
    manner: Manner,
) -> None:
    """Ask what takes simulations, and tell it in words, numbers and a picture."""
    from geoedge.figures import check_picture, save_figure

    if figure is not None:
        check_picture(figure)
    with manner.progress(scenario.simulation.duration_s) as report:
        found = ask(scenario, progress=report, **chosen)
    if figure is not None:
        save_figure(found.figure(), figure)
    if manner.as_json:
        print_json(found.to_dict())
        return
    tell(found, manner.named(figure))
