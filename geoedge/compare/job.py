"""The main job: theory, field and simulation asked about one city."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from geoedge.answers import Answer, answer_metrics
from geoedge.compare.columns import (
    ENSEMBLE,
    FIELD,
    STALE,
    STEERED,
    STILL,
    THEORY,
    exact,
    long_table,
    simulated,
)
from geoedge.compare.findings import findings
from geoedge.compare.layouts import layout_table
from geoedge.compare.tables import cell_table, control_epochs, control_table, policy_table

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.city.city import City
    from geoedge.results import Results
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.study import Study
    from geoedge.sweep import Replication

__all__ = ["run"]

Progress = Callable[[str, int, int], None]


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
        Poisson layouts of the ensemble, 0 for none.
    workers
        Processes; one a core by default. The result does not depend on it.
    progress
        Told the stage, and how many of its steps are done.

    Returns
    -------
    Results
        The first replication of the run with the scenario's controller, with the tables ``answers``,
        ``policies``, ``control``, ``ensemble`` and ``cells`` of the whole comparison.
    """
    from geoedge.study import field_answers, prepare, theory_answers

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
    first = runs[STEERED][0].results
    assert first is not None  # kept by _simulations
    columns = _columns(study, theory, field, ensemble, runs)
    return first.with_tables(
        answers=long_table(columns),
        policies=policies,
        control=control_table(runs[STILL], runs[STEERED]),
        control_epochs=control_epochs(runs[STILL], runs[STEERED]),
        ensemble=ensemble,
        cells=cell_table(study, theory, first),
    ).with_meta(
        replications=len(runs[STEERED]),
        area_km2=study.city.area_km2,
        imputed_share={
            "storeys": study.city.report["buildings"]["levels_imputed_share"],
            "floor area": study.city.report["buildings"]["levels_imputed_floor_share"],
        },
        findings=findings(study, theory, field, ensemble, runs),
    )


def _simulations(
    study: Study, workers: int | None, progress: Callable[[int, int], None]
) -> dict[str, list[Replication]]:
    """Run the three variants on common random numbers; the steered one keeps its first records."""
    from geoedge.sweep import replicate

    controller = study.scenario.control.controller
    variants: dict[str, dict[str, Any]] = {
        STILL: {"control.controller": "none", "routing.advertise": "equilibrium"},
        STEERED: {"control.controller": controller, "routing.advertise": "equilibrium"},
        STALE: {"control.controller": "none", "routing.advertise": "state"},
    }
    runs = replicate(
        study,
        list(variants.values()),
        study.scenario.simulation.replications,
        workers=workers,
        keep=[list(variants).index(STEERED)],
        progress=progress,
    )
    return dict(zip(variants, runs, strict=True))


def _columns(
    study: Study,
    theory: Answer,
    field: Answer,
    ensemble: pd.DataFrame,
    runs: Mapping[str, Sequence[Replication]],
) -> dict[str, dict[str, tuple[float, float, float]]]:
    target, names = study.scenario.target.ttft_target_s, study.workload.profile_names
    columns = {THEORY: exact(answer_metrics(theory, target, names))}
    if len(ensemble):
        free = ensemble[ensemble["count"] == "Poisson"]
        metrics = [name for name in columns[THEORY] if name in free]
        columns[ENSEMBLE] = {
            name: (free[name].mean(), *free[name].quantile([0.025, 0.975])) for name in metrics
        }
    columns[FIELD] = exact(answer_metrics(field, target, names))
    return columns | {name: simulated(line) for name, line in runs.items()}
