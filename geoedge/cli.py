"""The command line: verbs in the words of the library, and nothing a notebook could not call."""

from __future__ import annotations

import json
import math
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geoedge.errors import GeoEdgeError, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from geoedge.scenario import Scenario

__all__ = ["app", "main"]

app = typer.Typer(
    help="City-scale what-if studies of LLM inference at the wireless edge.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
city_app = typer.Typer(help="Maps: what is in them, and cutting them.", no_args_is_help=True)
app.add_typer(city_app, name="city")

PLACES_OPTIONS = ("candidates", "sites", "orders", "output", "figure")
ScenarioArgument = Annotated[
    str, typer.Argument(help="shipped scenario (paper, monaco, neubrandenburg) or a TOML file")
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="change one value, for example routing.policy=nearest"),
]
Seed = Annotated[int | None, typer.Option(help="seed of every random stream; the scenario's by default")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for machines")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print no progress")]


@app.command()
def run(
    scenario: ScenarioArgument,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="run folder; runs/SCENARIO by default")
    ] = None,
    controller: Annotated[str | None, typer.Option(help="greedy or none; the scenario's by default")] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="paired runs; the scenario's by default")
    ] = None,
    layouts: Annotated[int, typer.Option(min=0, help="Poisson layouts of each ensemble")] = 50,
    workers: Annotated[int | None, typer.Option(min=1, help="processes; one a core by default")] = None,
    seed: Seed = None,
    settings: Setting = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Ask theory, field and simulation about a city, and write a run folder and a map."""
    from geoedge.compare import run as run_study
    from geoedge.results import check_writable

    changes = {"control.controller": controller, "simulation.replications": replications, "seed": seed}
    study = _scenario(scenario, settings, changes)
    folder = output or Path("runs") / Path(scenario).stem
    check_writable(folder)
    with _progress(quiet or as_json) as report:
        results = run_study(study, layouts=layouts, workers=workers, progress=report)
        report("map", 0, 1)
        from geoedge.maps import city_map

        page = city_map(results)
        written = results.save(folder, {"map.html": page.to_html()})
    if as_json:
        print(json.dumps(_json_summary(results, written), indent=1))
        return
    from geoedge.report.run import print_run

    print_run(results, written)


@app.command()
def solve(
    scenario: ScenarioArgument,
    policy: Annotated[
        str | None, typer.Option(help="a name of routing.policy, as load_aware or llm_d")
    ] = None,
    settings: Setting = None,
    as_json: AsJson = False,
) -> None:
    """Ask Poisson theory alone: metrics, laws of load, tiers, capacity."""
    from geoedge.answers import WindowedAnswer
    from geoedge.planning.predict import prediction
    from geoedge.study import solve as solve_theory

    study = _scenario(scenario, settings, {"routing.policy": policy})
    names = [profile.name for profile in study.workload.profiles]
    answer = solve_theory(study)
    found = prediction(answer, study.target.ttft_target_s, names)
    if as_json:
        print(json.dumps(_plain(found), indent=1))
        return
    from geoedge.report.theory import print_prediction

    epochs = int((answer.weights > 0).sum()) if isinstance(answer, WindowedAnswer) else 1
    print_prediction(found, study.title, study.target.ttft_target_s, epochs)


@app.command()
def plan(
    context: typer.Context,
    scenario: ScenarioArgument,
    method: Annotated[str, typer.Option(help="slsqp, grid, cobyqa or spsa")] = "slsqp",
    law: Annotated[str, typer.Option(help="law of load: mean_field, per_tier or per_site")] = "mean_field",
    policy: Annotated[
        str | None, typer.Option(help="a name of routing.policy, as load_aware or llm_d")
    ] = None,
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
    """Find the best mix of cache profiles, the sites needed, and what matters most, by theory; or places to equip."""
    from geoedge.planning import plan as make_plan

    _refuse_idle_options(context, places)
    changes = {
        "sites.source": candidates,
        "routing.policy": policy,
        "target.ttft_target_s": target,
        "target.reliability": reliability,
        "plan.memory_budget_bytes": memory_budget,
        "plan.load_factors": _factors(loads),
        "control.fallback_floor": fallback_floor,
        "control.deep_cap": deep_cap,
        "seed": seed,
    }
    study = _scenario(scenario, settings, changes)
    if places:
        _plan_places(study, sites, orders, output, figure, as_json, quiet)
        return
    with _progress(quiet or as_json) as report:
        found = make_plan(study, method=method, law=law, criterion=criterion, progress=report)  # type: ignore[arg-type]
    if as_json:
        print(json.dumps(_plain(found.to_dict()), indent=1))
        return
    from geoedge.report.theory import print_plan

    print_plan(found, study.title)


def _refuse_idle_options(context: typer.Context, places: bool) -> None:
    """Refuse options of the other kind of plan, which would do nothing."""
    idle = ("method", "law", "criterion", "loads") if places else PLACES_OPTIONS
    for name in idle:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            words = "does nothing with --places; leave one out" if places else "needs --places; add it"
            msg = f"--{name}: {words}"
            raise GeoEdgeError(msg)


def _plan_places(
    scenario: Scenario,
    sites: int | None,
    orders: int,
    output: Path | None,
    figure: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    from geoedge.files import check_place, keep_apart, write_whole
    from geoedge.planning.places import plan_places
    from geoedge.report.pictures import check_picture, save_figure

    if output is not None and output.suffix.lower() != ".csv":
        msg = f"--output {str(output)!r}: the order of building is a table; name a file that ends in .csv"
        raise GeoEdgeError(msg)
    if output is not None:
        check_place(output)
    if figure is not None:
        check_picture(figure)
    read = {"sites.source": scenario.sites.source}
    keep_apart(read, {"--output": output, "--figure": figure})
    with _progress(quiet or as_json) as report:
        found = plan_places(scenario, sites=sites, orders=orders, progress=report)
    if output is not None:
        write_whole(output, found.to_csv().encode(), "order of building")
    if figure is not None:
        save_figure(found.figure(), figure)
    if as_json:
        print(json.dumps(_plain(found.to_dict()), indent=1))
        return
    from geoedge.report.places import print_places

    print_places(found, scenario.title)


@app.command()
def check(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help="shipped scenario, a TOML file, or a folder that `geoedge run` wrote"
        ),
    ],
    settings: Setting = None,
) -> None:
    """Check a scenario and say what it holds; of a run, replay the controller's log and audit the tables."""
    if Path(scenario).is_dir():
        _check_run(Path(scenario), settings)
        return
    from geoedge.report.given import print_scenario

    print_scenario(_scenario(scenario, settings, {}))


def _check_run(folder: Path, settings: list[str] | None) -> None:
    from geoedge.report.audit import print_audit
    from geoedge.results import Results
    from geoedge.simulation.audit import audit_run

    if settings:
        msg = f"--set {settings[0]!r}: {str(folder)!r} is a run, whose scenario is settled; leave it out"
        raise GeoEdgeError(msg)
    found = audit_run(Results.load(folder))
    print_audit(found, str(folder))
    if found.violations:
        msg = f"{folder}: {len(found.violations)} rules are broken, as listed"
        raise GeoEdgeError(msg)


@app.command("map")
def map_(
    run_folder: Annotated[Path, typer.Argument(metavar="RUN", help="a folder that `geoedge run` wrote")],
    output: Annotated[Path, typer.Option("-o", "--output", help="page to write, .html")],
) -> None:
    """Draw a run as an interactive page that opens without network."""
    from geoedge.maps import city_map
    from geoedge.results import Results

    _check_page(output)
    page = city_map(Results.load(run_folder)).save(output)
    print(page)


@app.command()
def compare(
    run_folder: Annotated[
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
    figure: Annotated[Path | None, typer.Option(help="picture to write, .png, .svg or .pdf")] = None,
    layouts: Annotated[
        int, typer.Option(help="with --explain: random layouts of each world that has them")
    ] = 40,
    replications: Annotated[
        int | None, typer.Option(min=1, help="paired runs; the scenario's by default")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="processes; one a core by default")] = None,
    seed: Seed = None,
    settings: Setting = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Print the three answers of a run side by side, or why theory and city differ, or what controllers earn."""
    from geoedge.results import Results

    if explain and controllers is not None:
        msg = f"--controllers {controllers}: asks another question than --explain; leave one out"
        raise GeoEdgeError(msg)
    if baseline is not None and controllers is None:
        msg = f"--baseline {baseline}: needs --controllers; add it"
        raise GeoEdgeError(msg)
    if explain or controllers is not None:
        chosen: dict[str, Any] = {"replications": replications, "workers": workers, "rng": seed}
        asked = _compared(run_folder, settings)
        if controllers is None:
            _explain(
                asked,
                chosen | {"orders": orders, "metric": metric, "layouts": layouts},
                figure,
                as_json,
                quiet,
            )
        else:
            names = [name.strip() for name in controllers.split(",")]
            _contest(asked, chosen | {"controllers": names, "baseline": baseline}, figure, as_json, quiet)
        return
    if figure is not None:
        msg = f"--figure {str(figure)!r}: the picture is that of --explain or of --controllers; add one"
        raise GeoEdgeError(msg)
    if settings:
        msg = f"--set {settings[0]}: nothing can be set in a run that is over; add --explain or --controllers"
        raise GeoEdgeError(msg)
    results = Results.load(run_folder)
    if as_json:
        print(json.dumps(_json_summary(results, Path(run_folder)), indent=1))
        return
    from geoedge.report.run import print_run

    print_run(results, Path(run_folder))


def _compared(name: str, settings: list[str] | None) -> Scenario:
    """Return the scenario of a run folder, or the scenario of that name."""
    folder = Path(name)
    return _scenario(str(folder / "scenario.toml") if folder.is_dir() else name, settings, {})


def _contest(
    scenario: Scenario, chosen: dict[str, Any], figure: Path | None, as_json: bool, quiet: bool
) -> None:
    from geoedge.compare import compare_controllers
    from geoedge.report.controllers import print_controllers
    from geoedge.report.pictures import check_picture, save_figure

    if figure is not None:
        check_picture(figure)
    with _progress(quiet or as_json) as report:
        found = compare_controllers(scenario, progress=report, **chosen)
    if figure is not None:
        save_figure(found.figure(), figure)
    if as_json:
        print(json.dumps(_plain(found.to_dict()), indent=1))
        return
    print_controllers(found, figure)


def _explain(
    scenario: Scenario, chosen: dict[str, Any], figure: Path | None, as_json: bool, quiet: bool
) -> None:
    from geoedge.compare import explain_gap

    if figure is not None:
        from geoedge.report.pictures import check_picture, save_figure

        check_picture(figure)
    with _progress(quiet or as_json) as report:
        found = explain_gap(scenario, progress=report, **chosen)
    if figure is not None:
        save_figure(found.figure(), figure)
    if as_json:
        print(json.dumps(_plain(found.to_dict()), indent=1))
        return
    from geoedge.report.gap import print_gap

    print_gap(found, figure)


@city_app.command("info")
def city_info(
    source: Annotated[str, typer.Argument(help="shipped city, map file or place name")],
    buildings: Annotated[
        Path | None, typer.Option(help="footprints instead of the map's own: .gpkg, .geojson or .shp")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a map holds, what was imputed and what was dropped."""
    from geoedge.city import load_city
    from geoedge.report.given import print_city

    city = load_city(source, buildings=buildings)
    if as_json:
        print(json.dumps(city.report, indent=1, default=str))
        return
    print_city(city)


@city_app.command("clip")
def city_clip(
    source: Annotated[Path, typer.Argument(help=".osm, .osm.gz, .osm.bz2 or .osm.pbf")],
    bbox: Annotated[str, typer.Option(metavar="W,S,E,N", help="west, south, east, north in degrees")],
    output: Annotated[Path, typer.Option("-o", "--output", help="file to write, .osm.pbf")],
) -> None:
    """Cut a map file to a box: complete ways, without personal metadata."""
    from geoedge.city import clip

    try:
        box = tuple(float(part) for part in bbox.split(","))
    except ValueError:
        box = ()
    if len(box) != 4:
        msg = f"--bbox {bbox!r}: must be four numbers W,S,E,N in degrees, for example 7.40,43.72,7.47,43.76"
        raise GeoEdgeError(msg)
    counts = ", ".join(f"{count:,} {what}" for what, count in clip(source, box, output).items())
    print(f"{output}: {counts}")


@app.command()
def sites(
    file: Annotated[
        Path, typer.Argument(help="CSV, GeoJSON, GeoPackage, shapefile, .osm or .pbf, packed or not")
    ],
    city: Annotated[
        str | None, typer.Option(help="shipped city, map file or place name; the sites' own hull by default")
    ] = None,
    buildings: Annotated[
        Path | None, typer.Option(help="footprints instead of the map's own: .gpkg, .geojson or .shp")
    ] = None,
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
) -> None:
    """Say what a file of sites holds, what is wrong with it, and how far its sites are from Poisson."""
    from geoedge.files import keep_apart
    from geoedge.sites import survey_sites

    if output is not None:
        _check_page(output)
    map_file = city if city is not None and Path(city).is_file() else None
    read = {"the file of sites": file, "--city": map_file, "--buildings": buildings}
    keep_apart(read, {"--quarantine": quarantine, "--output": output})
    land = None
    if city is None and buildings is not None:
        msg = f"--buildings {str(buildings)!r}: footprints belong to a city; name it with --city"
        raise GeoEdgeError(msg)
    if city is not None:
        from geoedge.city import load_city

        land = load_city(city, buildings=buildings)
    asked = {"operator": operator, "radio": radio, "columns": columns, "crs": crs, "quarantine": quarantine}
    found = survey_sites(file, land, merge_distance_m=merge, rng=seed, **asked)  # type: ignore[arg-type]
    if output is not None:
        from geoedge.maps import sites_map

        sites_map(found, land).save(output)
    written = {key: str(path) for key, path in (("quarantine", quarantine), ("map", output)) if path}
    if as_json:
        print(json.dumps(_plain(found.to_dict()) | written, indent=1))
        return
    from geoedge.report.sites import print_sites

    print_sites(found, written)


def _check_page(output: Path) -> None:
    if output.suffix.lower() not in (".html", ".htm"):
        msg = f"--output {str(output)!r}: a map is a page; name a file that ends in .html"
        raise GeoEdgeError(msg)


def _scenario(name: str, settings: list[str] | None, changes: dict[str, Any]) -> Scenario:
    from geoedge.scenario import load_scenario

    given = {key: value for key, value in changes.items() if value is not None}
    for setting in settings or []:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            msg = f"--set {setting!r}: must be KEY=VALUE, for example --set routing.policy=nearest"
            raise ScenarioError(msg)
        given[key.strip()] = _literal(value.strip())
    scenario = load_scenario(name)
    return scenario.override(given) if given else scenario


def _factors(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        msg = f"--loads {text!r}: must be numbers > 0 with commas between, for example 0.5,1,1.5"
        raise GeoEdgeError(msg) from None


def _plain(value: Any) -> Any:
    """Return values that JSON knows: infinite and undefined numbers as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _literal(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _json_summary(results: Any, folder: Path) -> dict[str, Any]:
    tables = {
        name: json.loads(results.tables[name].to_json(orient="records"))
        for name in ("answers", "control", "policies")
        if name in results.tables
    }
    return {"run": str(folder), "meta": results.meta, **tables}


@contextmanager
def _progress(silent: bool) -> Iterator[Callable[[str, int, int], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=silent or not console.is_terminal) as progress:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                _finish(progress, tasks)
                tasks[stage] = progress.add_task(stage, total=total)
            progress.update(tasks[stage], completed=done, total=total)

        yield report
        _finish(progress, tasks)


def _finish(progress: Any, tasks: dict[str, Any]) -> None:
    for task in tasks.values():
        total = progress.tasks[task].total
        progress.update(task, completed=total)


def main() -> None:
    """Run the command line: exit 0 on success, 1 with one line on a user's error, 2 on wrong usage, 130 on Ctrl-C."""
    caught: list[int] = []

    def interrupt(number: int, _: object) -> None:
        caught.append(number)
        raise KeyboardInterrupt

    # a compiled kernel or a worker process turns an interrupt into an error of its own; the list tells
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        app()
    except GeoEdgeError as error:
        print(f"geoedge: {_printable(str(error))}", file=sys.stderr)
        raise SystemExit(1) from None
    except BaseException:
        if not caught:
            raise
        print("geoedge: interrupted", file=sys.stderr)
        raise SystemExit(128 + caught[0]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def script() -> None:
    """Run the command line as a program of its own."""
    try:
        main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done; nothing is left to interrupt


def _printable(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


if __name__ == "__main__":
    script()
