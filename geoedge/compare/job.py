"""The main job: theory, field and simulation asked about one city."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from geoedge.answers import Answer, answer_metrics
from geoedge.compare.columns import (
    ENSEMBLE,
    FIELD,
    STEERED,
    THEORY,
    TWINS,
    intervals,
    long_table,
    median_range,
)
from geoedge.compare.findings import Asked, findings
from geoedge.compare.layouts import layout_table
from geoedge.compare.tables import (
    cell_table,
    control_epochs,
    control_table,
    policy_table,
    replication_table,
)
from geoedge.policies import POLICIES

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.city.city import City
    from geoedge.results import Results
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.study import Study
    from geoedge.sweep import Replication

__all__ = ["own_column", "run", "variants"]

Progress = Callable[[str, float, int], None]


def own_column(scenario: Scenario) -> str:
    """Return the name of the simulation that routes as the scenario says, with caches that stay.

    Parameters
    ----------
    scenario
        A scenario, of which the routing counts.
    """
    routing = scenario.routing
    return f"simulation: {routing.advertise}" if POLICIES[routing.policy].reads == "wait" else "simulation"


def variants(scenario: Scenario) -> dict[str, dict[str, Any]]:
    """Return the simulations to run, by column: what each changes in the scenario.

    Caches stay in all but the last. Where waits are heeded, equilibrium waits and waits read from present queues
    stand side by side; the last is the scenario as it is, if it has a controller.

    Parameters
    ----------
    scenario
        A scenario with a city.
    """
    still = {"control.controller": "none"}
    own = own_column(scenario)
    found: dict[str, dict[str, Any]] = {own: still}
    routing = scenario.routing
    if POLICIES[routing.policy].reads == "wait" and not routing.local_count:
        kinds = dict.fromkeys(("equilibrium", "state", routing.advertise))
        found = {f"simulation: {kind}": still | {"routing.advertise": kind} for kind in kinds}
    return found if scenario.control.controller == "none" else found | {STEERED: {}}


def run(
    scenario: Scenario,
    *,
    city: City | None = None,
    layout: Layout | None = None,
    study: Study | None = None,
    layouts: int = 50,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Ask theory, field and simulation about a city: the main job.

    Parameters
    ----------
    scenario
        A scenario with a city.
    city, layout
        City and sites, if they exist already.
    study
        The scenario's study, if it is prepared already; city and layout are then its own.
    layouts
        Poisson layouts of each ensemble, 0 for none.
    workers
        Processes; one a core by default. The result does not depend on it.
    progress
        Told the stage, and how many of its steps are done; of simulations with parts of those that are underway.

    Returns
    -------
    Results
        The first replication of the scenario as it is, with the tables ``answers``, ``policies``, ``ensemble``,
        ``cells``, ``replications`` and, if it has a controller, ``control`` and ``control_epochs``.
    """
    from geoedge.scenario import require_scenario
    from geoedge.study import field_answers, prepare, refuse_streets, theory_answers

    require_scenario(scenario, "run")
    refuse_streets(scenario, "a run")
    tell = progress or (lambda *_: None)
    tell("city, sites, demand", 0, 1)
    if study is None:
        study = prepare(scenario, city=city, layout=layout)
    study = study.with_scenario(scenario)
    tell("theory and field", 0, 1)
    theory, field = theory_answers(study), field_answers(study)
    policies = policy_table(study)
    ensemble = layout_table(study, layouts, workers=workers, progress=partial(tell, "Poisson layouts"))
    runs = _simulations(study, workers, partial(tell, "simulations"))
    own = own_column(scenario)
    kept = runs[STEERED if STEERED in runs else own][0].results
    assert kept is not None  # kept by _simulations
    tables = {
        "answers": long_table(_columns(study, theory, field, ensemble, runs)),
        "policies": policies,
        "ensemble": ensemble,
        "cells": cell_table(study, theory, kept),
        "replications": replication_table(runs),
    }
    if STEERED in runs:
        tables["control"] = control_table(runs[own], runs[STEERED])
        tables["control_epochs"] = control_epochs(runs[own], runs[STEERED])
    return kept.with_tables(**tables).with_meta(
        replications=len(runs[own]),
        area_km2=study.city.area_km2,
        findings=findings(Asked(study, theory, field, ensemble, runs, own, kept)),
    )


def _simulations(
    study: Study, workers: int | None, progress: Callable[[float, int], None]
) -> dict[str, list[Replication]]:
    """Run the variants on common random numbers; the scenario as it is keeps its first records."""
    from geoedge.sweep import replicate

    columns = variants(study.scenario)
    keep = STEERED if STEERED in columns else own_column(study.scenario)
    runs = replicate(
        study,
        list(columns.values()),
        study.scenario.simulation.replications,
        workers=workers,
        keep=[list(columns).index(keep)],
        progress=progress,
    )
    return dict(zip(columns, runs, strict=True))


def _columns(
    study: Study,
    theory: Answer,
    field: Answer,
    ensemble: pd.DataFrame,
    runs: Mapping[str, Sequence[Replication]],
) -> dict[str, dict[str, tuple[float, float, float]]]:
    target, names = study.scenario.target.ttft_target_s, study.workload.profile_names
    columns = {THEORY: intervals([answer_metrics(theory, target, names)])}
    for column, count in ((ENSEMBLE, "Poisson"), (TWINS, "fixed")):
        if len(ensemble):
            rows = ensemble.loc[ensemble["count"] == count, list(columns[THEORY])]
            columns[column] = {name: median_range(rows[name].to_numpy()) for name in columns[THEORY]}
    columns[FIELD] = intervals([answer_metrics(field, target, names)])
    routing = study.scenario.routing
    if routing.solved_as != routing.policy:
        columns = {f"{name}: {routing.solved_as}": values for name, values in columns.items()}
    return columns | {name: intervals([run.metrics for run in line]) for name, line in runs.items()}
