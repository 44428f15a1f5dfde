"""What the numbers say, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.compare.columns import STEERED, interval
from geoedge.compare.happenings import happenings
from geoedge.simulation.audit import bounds_told

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.answers import WindowedAnswer
    from geoedge.field import FieldAnswer
    from geoedge.results import Results
    from geoedge.scenario.operation import ServiceConfig
    from geoedge.study import Study
    from geoedge.sweep import Replication
    from geoedge.theory import TheoryAnswer

__all__ = ["Asked", "findings"]

RESIDUAL = 1e-3
"""Largest miss of an equilibrium that is called solved, in utilisation."""


@dataclass(frozen=True, eq=False)
class Asked:
    """Everything that was asked about a study.

    Parameters
    ----------
    study
        The study.
    theory, field
        Answers of theory and field.
    ensemble
        Poisson layouts, as `layout_table` gives them.
    runs
        Replications by column of the table.
    own
        Column of the simulation that routes as the scenario says, with caches that stay.
    kept
        The run that keeps its records.
    """

    study: Study
    theory: WindowedAnswer[TheoryAnswer]
    field: WindowedAnswer[FieldAnswer]
    ensemble: pd.DataFrame
    runs: Mapping[str, Sequence[Replication]]
    own: str
    kept: Results

    @property
    def target(self) -> float:
        """TTFT target [s]."""
        return self.study.scenario.target.ttft_target_s

    def coverage(self, column: str) -> np.ndarray[Any, Any]:
        """Return the coverage of each replication of a simulation."""
        return np.array([run.metrics["coverage"] for run in self.runs[column]])

    def layouts(self, count: str) -> np.ndarray[Any, Any]:
        """Return the coverage of each Poisson layout with a "Poisson" or "fixed" number of sites."""
        if not len(self.ensemble):
            return np.empty(0)
        return self.ensemble.loc[self.ensemble["count"] == count, "coverage"].to_numpy(dtype=np.float64)

    def measured(self) -> Iterator[FieldAnswer]:
        """Yield the field's answers after the warm-up."""
        weights = self.field.weights
        return (answer for w, answer in zip(weights, self.field.answers, strict=True) if w > 0)


def findings(asked: Asked) -> list[str]:
    """Return what the numbers say, a sentence each, in plain text.

    Parameters
    ----------
    asked
        A run and what was asked besides it.
    """
    kept = asked.kept
    events = (
        happenings(kept.tables["events"], len(kept.sites), kept.meta["horizon_s"])
        if "events" in kept.tables
        else ()
    )
    missing = _never(asked)
    told = (*_steps(asked), *_land(asked), *_sites(asked), *_changes(asked), *_rejected(asked))
    return [*told, *events, *missing, *bounds_told(asked.kept), *_warnings(asked)]


def _points(change: float) -> str:
    return f"{100 * change:+.1f} points"


def _steps(asked: Asked) -> Iterator[str]:
    routing = asked.study.scenario.routing
    if routing.solved_as != routing.policy:
        yield (
            f"Theory and field, and the prices and plans made from them, are those of {routing.solved_as} routing, which "
            f"stands for {routing.policy}: only the simulation routes by that."
        )
    theory, field = asked.theory.ttft_coverage(asked.target), asked.field.ttft_coverage(asked.target)
    twins, simulated = asked.layouts("fixed"), float(asked.coverage(asked.own).mean())
    if len(twins):
        yield (
            f"From Poisson theory to as many random sites under the city's own demand {_points(twins.mean() - theory)}: "
            "people are not spread evenly, land has an edge, loads differ from site to site. From there to the map "
            f"{_points(field - twins.mean())}: sites stand where people are."
        )
    else:
        yield f"From Poisson theory to the map {_points(field - theory)}: where people and sites are."
    shocks = "sites reject requests, " if asked.kept.epochs["rejected"].any() else ""
    shocks += "what the events below did, " if "events" in asked.kept.tables else ""
    yield (
        f"From the field to the simulation {_points(simulated - field)}: {shocks}{_guided(asked.own)}people come in crowds"
        f"{_service(asked.study.scenario.service)}."
    )


def _guided(own: str) -> str:
    """Return what routers go by in a simulation that the field does not know; nothing if they read no waits."""
    known = {
        "equilibrium": "prices follow a demand that moves on, ",
        "state": "routers go by queues as sites last reported them, ",
        "measured": "routers go by waits as sites last measured them, ",
    }
    return known.get(own.partition(": ")[2], "")


def _rejected(asked: Asked) -> Iterator[str]:
    """Yield how many requests no site took, after the warm-up as in all shares."""
    rejected, requests = int((asked.kept.column("site") < 0).sum()), asked.kept.requests
    if rejected:
        yield (
            f"Rejected: {rejected:,} of {requests:,} requests ({rejected / requests:.1%}) found closed every site that "
            "they were sent to. They count as not in time; mean TTFT is of the others."
        )


def _never(asked: Asked) -> Iterator[str]:
    """Yield which events of the scenario have no part in the window."""
    table = asked.kept.tables.get("events")
    seen = set() if table is None else set(table["event"])
    for number, event in enumerate(asked.study.scenario.dynamics.events):
        if number not in seen:
            yield f"dynamics.events[{number}] ({event.kind}) did not happen: it lies outside of the window of the run."


def _service(service: ServiceConfig) -> str:
    """Return what the field leaves out of service times."""
    if service.law == "exponential_mixture":
        return ""
    if service.queue == "service_law":
        return ", of service times the field knows mean and variance alone"
    return ", service times are not exponential"


def _land(asked: Asked) -> Iterator[str]:
    from geoedge.study import theory_answers

    report = asked.study.city.report
    lands = report["area_km2_by_buffer_m"]
    narrow, wide = min(lands, key=float), max(lands, key=float)
    low, high = (
        theory_answers(asked.study, area_km2=lands[width]).ttft_coverage(asked.target)
        for width in (narrow, wide)
    )
    yield (
        f"Land is what lies within {report['boundary_buffer_m']:g} m of streets and buildings, "
        f"{asked.study.city.area_km2:.1f} km²; at {narrow} m and {wide} m it is {lands[narrow]:.1f} and "
        f"{lands[wide]:.1f} km², and Poisson theory's coverage {low:.3f} and {high:.3f}."
    )
    buildings = report["buildings"]
    yield (
        f"Storeys are imputed for {buildings['levels_imputed_share']:.1%} of buildings, "
        f"{buildings['levels_imputed_floor_share']:.1%} of floor area."
    )


def _sites(asked: Asked) -> Iterator[str]:
    layout = asked.study.layout
    lost = {why: count for why, count in layout.report.get("dropped", {}).items() if count}
    merged = layout.report.get("merged", 0)
    listed = [f"{count} {why.replace('_', ' ')}" for why, count in lost.items()]
    yield (
        f"{len(layout)} sites, {layout.label}; dropped: {', '.join(listed) or 'none'}; merged with a neighbour: {merged}."
    )
    for note in layout.report.get("notes", ()):
        yield f"Sites: {note}."
    field = asked.field.ttft_coverage(asked.target)
    for count, name in (("Poisson", "a random number of"), ("fixed", "as many")):
        sample = asked.layouts(count)
        if len(sample):
            yield (
                f"The real layout's coverage ranks {int((sample > field).sum()) + 1} of {len(sample) + 1}, 1 being the "
                f"best, among {len(sample)} Poisson layouts with {name} sites on the same land."
            )


def _changes(asked: Asked) -> Iterator[str]:
    if STEERED in asked.runs:
        change, low, high = interval(asked.coverage(STEERED) - asked.coverage(asked.own))
        words = (
            "one run, no interval"
            if np.isnan(low)
            else f"95 % interval {100 * low:+.2f} to {100 * high:+.2f}"
        )
        yield f"The controller changed coverage by {100 * change:+.2f} points ({words})."
    steady, stale = "simulation: equilibrium", "simulation: state"
    if {steady, stale} <= set(asked.runs):
        routing = asked.study.scenario.routing
        yield (
            f"Routing on waits read from present queues, {routing.telemetry_period_s:g} s apart and "
            f"{routing.telemetry_delay_s:g} s late, changes coverage by "
            f"{_points(asked.coverage(stale).mean() - asked.coverage(steady).mean())} against equilibrium waits."
        )


def _warnings(asked: Asked) -> Iterator[str]:
    if not asked.theory.stable:
        yield "UNSTABLE: Poisson theory has no stable equilibrium in some epoch; its waits are then infinite."
    sick = sorted({int(i) for answer in asked.measured() for i in answer.unstable_sites})
    if sick:
        yield f"UNSTABLE: in the field {len(sick)} of {len(asked.study.layout)} sites reach capacity: {sick}."
    measured = np.flatnonzero(asked.study.measured_s)
    for name, line in asked.runs.items():
        count = sum(row["epoch"] in measured for run in line for row in run.unstable)
        if count:
            yield (
                f"UNSTABLE: in {name!r} a site's offered load reached capacity in {count} of "
                f"{len(line) * len(measured) * len(asked.study.layout)} site-epochs; its waits depend on the horizon."
            )
    if len(asked.ensemble) and not asked.ensemble["stable"].all():
        lost = int((~asked.ensemble["stable"]).sum())
        yield f"UNSTABLE: {lost} of {len(asked.ensemble)} Poisson layouts have no stable equilibrium."
    missed = max(answer.residual for answer in asked.measured())
    if missed > RESIDUAL:
        yield f"UNSOLVED: the field misses an equilibrium by {missed:.2g} in utilisation, more than {RESIDUAL:g}."
    if len(asked.ensemble) and not asked.ensemble["converged"].all():
        yield f"UNSOLVED: {int((~asked.ensemble['converged']).sum())} Poisson layouts miss their equilibrium."
    yield _prefill(asked, measured)


def _prefill(asked: Asked, measured: np.ndarray[Any, Any]) -> str:
    epochs = asked.kept.epochs
    run = float(epochs.loc[epochs["epoch"].isin(measured), "prefill_s_per_s"].max())
    field = max(float(answer.prefill_load.max()) for answer in asked.measured())
    verdict = "more than one GPU can do: FLAGGED" if max(run, field) > 1 else "within one GPU"
    return f"Prefill work is at most {field:.2f} s per second and site in the field, {run:.2f} in the run: {verdict}."
