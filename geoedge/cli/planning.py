"""`geoedge plan`: the best mix, the sites needed and what matters by theory, or the places to equip by the field."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geoedge.cli.asking import factors, scenario_of
from geoedge.cli.manner import Manner, check_ending, given, print_json
from geoedge.cli.options import AsJson, Policy, Quiet, ScenarioArgument, Seed, Setting
from geoedge.cli.program import app
from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from geoedge.scenario import Scenario

__all__ = ["plan"]

MIX_OPTIONS = ("method", "law", "criterion", "loads")
PLACES_OPTIONS = ("candidates", "sites", "orders", "output", "figure")


@app.command()
def plan(
    context: typer.Context,
    scenario: ScenarioArgument,
    method: Annotated[str, typer.Option(help="slsqp, grid, cobyqa or spsa")] = "slsqp",
    law: Annotated[str, typer.Option(help="law of load: mean_field, per_tier or per_site")] = "mean_field",
    policy: Policy = None,
    target: Annotated[float | None, typer.Option(help="TTFT target [s]")] = None,
    reliability: Annotated[float | None, typer.Option(help="share of requests to be in time")] = None,
    memory_budget: Annotated[
        int | None, typer.Option(help="mean memory of a site's caches [B]; the present mix's by default")
    ] = None,
    fallback_floor: Annotated[float | None, typer.Option(help="least share of the fallback profile")] = None,
    deep_cap: Annotated[float | None, typer.Option(help="largest share of one deep profile")] = None,
    loads: Annotated[
        str | None, typer.Option(metavar="F,F,…", help="demands of the robust mix, over the present one")
    ] = None,
    criterion: Annotated[str, typer.Option(help="of the robust mix: regret, mean or worst")] = "regret",
    places: Annotated[
        bool,
        typer.Option("--places", "--city", help="choose which sites of the map to equip first, by the field"),
    ] = False,
    candidates: Annotated[
        str | None,
        typer.Option(help="with --places: candidate places, as sites.source; the scenario's sites"),
    ] = None,
    sites: Annotated[
        int | None, typer.Option(min=1, help="with --places: the best so many, not as few as it takes")
    ] = None,
    orders: Annotated[int, typer.Option(min=2, help="with --places: random orders to compare with")] = 40,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="with --places: order of building to write, .csv")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="with --places: picture to write, .png, .svg or .pdf")
    ] = None,
    seed: Seed = None,
    settings: Setting = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find the best mix and number of sites, or the places to equip.

    Theory finds the best mix of cache profiles, the sites needed and what matters most; with --places the field
    chooses sites of the map.
    """
    from geoedge.planning import plan as make_plan

    _refuse_idle_options(context, places)
    changes = {
        "sites.source": candidates,
        "routing.policy": policy,
        "target.ttft_target_s": target,
        "target.reliability": reliability,
        "plan.memory_budget_bytes": memory_budget,
        "plan.load_factors": factors(loads),
        "control.fallback_floor": fallback_floor,
        "control.deep_cap": deep_cap,
        "seed": seed,
    }
    study, manner = scenario_of(scenario, settings, changes), Manner(as_json, quiet)
    if places:
        _plan_places(study, sites, orders, output, figure, manner)
        return
    with manner.progress() as report:
        found = make_plan(study, method=method, law=law, criterion=criterion, progress=report)  # type: ignore[arg-type]
    if as_json:
        print_json(found.to_dict())
        return
    from geoedge.report.theory import print_plan

    print_plan(found, study.title)


def _refuse_idle_options(context: typer.Context, places: bool) -> None:
    """Refuse options of the other kind of plan, which would do nothing."""
    for name in given(context, *(MIX_OPTIONS if places else PLACES_OPTIONS)):
        words = "does nothing with --places; leave one out" if places else "needs --places; add it"
        msg = f"--{name}: {words}"
        raise GeoEdgeError(msg)


def _plan_places(
    scenario: Scenario,
    sites: int | None,
    orders: int,
    output: Path | None,
    figure: Path | None,
    manner: Manner,
) -> None:
    from geoedge.figures import check_picture, save_figure
    from geoedge.files import check_place, keep_apart, write_whole
    from geoedge.planning.places import plan_places

    if output is not None:
        check_ending(output, "the order of building is a table", ".csv")
        check_place(output)
    if figure is not None:
        check_picture(figure)
    read = {"sites.source": scenario.sites.source}
    keep_apart(read, {"--output": output, "--figure": figure})
    with manner.progress() as report:
        found = plan_places(scenario, sites=sites, orders=orders, progress=report)
    if output is not None:
        write_whole(output, found.to_csv().encode(), "order of building")
    if figure is not None:
        save_figure(found.figure(), figure)
    if manner.as_json:
        print_json(found.to_dict())
        return
    from geoedge.report.places import print_places

    print_places(found, scenario.title)
