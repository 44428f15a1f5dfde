"""`geoedge check`: a scenario held against its rules, or a run against its own log."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from geoedge.cli.asking import scenario_of
from geoedge.cli.manner import Manner, print_json
from geoedge.cli.options import AsJson, Quiet, Setting
from geoedge.cli.program import app
from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from geoedge.scenario import Scenario

__all__ = ["check"]


@app.command()
def check(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO", help="shipped scenario, a TOML file, or a folder that `geoedge run` wrote"
        ),
    ],
    settings: Setting = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check a scenario; of a run, replay its log and audit its tables."""
    manner = Manner(as_json, quiet)
    if Path(scenario).is_dir():
        _check_run(Path(scenario), settings, manner)
    else:
        _check_scenario(scenario, settings, manner)


def _check_scenario(name: str, settings: list[str] | None, manner: Manner) -> None:
    from geoedge.report.given import print_scenario, scenario_facts

    study = scenario_of(name, settings)
    looked_up = _events_exist(study, manner)
    idle, outside = _idle_events(study), _bounds_broken(study)
    if manner.as_json:
        told = {"events_looked_up": looked_up, "events_outside_window": idle, "bounds_broken": outside}
        print_json({**scenario_facts(study), **told})
        return
    print_scenario(study, brief=manner.quiet)
    if not looked_up and not manner.quiet:
        print("Places and sites of its events are looked up by the run, which downloads the map.")
    for line in () if manner.quiet else outside:
        print(line)
    for k in () if manner.quiet else idle:
        kind = study.dynamics.events[k].kind
        print(f"dynamics.events[{k}] ({kind}) will not happen: it lies outside of the window of the run.")


def _bounds_broken(scenario: Scenario) -> list[str]:
    """Return which bounds of the controller the scenario's own shares break, and what becomes of that."""
    from geoedge.control.planners import PLANNERS, starts_best
    from geoedge.control.planners.limits import shares_outside
    from geoedge.texts import plain_text
    from geoedge.workload import build_workload

    control, workload = scenario.control, build_workload(scenario.workload, scenario.hardware)
    moves = PLANNERS[control.controller].moves
    after = "plans lead back to the bound first" if moves else "nobody moves anything"
    if starts_best(control):
        after = "the best start keeps the bound"
    names = [plain_text(name) for name in workload.profile_names]
    lines = shares_outside(workload.placement_probability, workload.hit_tokens, names, control)
    return [f"{line} in the scenario's own mix; {after}." for line in lines]


def _idle_events(scenario: Scenario) -> list[int]:
    """Return which events have no part in the window."""
    from geoedge.scenario.dynamics import HOUR_S

    start = scenario.simulation.start_hour * HOUR_S
    end = start + scenario.simulation.duration_s
    return [k for k, event in enumerate(scenario.dynamics.events) if not event.falls_within(start, end)]


def _events_exist(scenario: Scenario, manner: Manner) -> bool:
    """Look up what events name on the map, if it is at hand; return whether it was."""
    from geoedge.study import events_exist, needs_map

    if not needs_map(scenario):
        return True
    with manner.progress() as report:
        report("looking events up on the map", 0, 1)
        return events_exist(scenario)


def _check_run(folder: Path, settings: list[str] | None, manner: Manner) -> None:
    from geoedge.report.audit import print_audit
    from geoedge.results import Results
    from geoedge.simulation.audit import audit_run

    if settings:
        msg = f"--set {settings[0]!r}: {str(folder)!r} is a run, whose scenario is settled; leave it out"
        raise GeoEdgeError(msg)
    with manner.progress() as report:
        report("reading the run", 0, 1)
        results = Results.load(folder)
        report("replaying its log", 0, 1)
        found = audit_run(results)
    if manner.as_json:
        print_json({"run": str(folder), **asdict(found)})
    else:
        print_audit(found, str(folder), brief=manner.quiet)
    if found.violations:
        msg = f"{folder}: {len(found.violations)} rules are broken, as listed"
        raise GeoEdgeError(msg)
