"""What the numbers say, a sentence each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from geoedge.compare.columns import STALE, STEERED, STILL, interval

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.answers import WindowedAnswer
    from geoedge.field import FieldAnswer
    from geoedge.study import Study
    from geoedge.sweep import Replication
    from geoedge.theory import TheoryAnswer

__all__ = ["findings"]


def findings(
    study: Study,
    theory: WindowedAnswer[TheoryAnswer],
    field: WindowedAnswer[FieldAnswer],
    ensemble: pd.DataFrame,
    runs: Mapping[str, Sequence[Replication]],
) -> list[str]:
    """Return what the numbers say, a sentence each, in plain text.

    Parameters
    ----------
    study
        The study.
    theory, field
        The answers of theory and field.
    ensemble
        As `layout_table` gives it.
    runs
        Replications by column of the table.
    """
    from geoedge.study import theory_answers

    target = study.scenario.target.ttft_target_s
    on_map, poisson = field.ttft_coverage(target), theory.ttft_coverage(target)
    found = [
        f"Geography: the map's coverage is {100 * (on_map - poisson):+.1f} points from Poisson theory's; "
        f"dynamics: the simulation's is {100 * (interval(_values(runs[STILL]))[0] - on_map):+.1f} points from the field's."
    ]
    lands = study.city.report["area_km2_by_buffer_m"]
    widths = sorted(lands, key=float)
    low, high = (
        theory_answers(study, area_km2=lands[w]).ttft_coverage(target) for w in (widths[0], widths[-1])
    )
    found.append(
        f"Land is what lies within {study.city.report['boundary_buffer_m']:g} m of streets and buildings, "
        f"{study.city.area_km2:.1f} km²; at {widths[0]} m and {widths[-1]} m it is {lands[widths[0]]:.1f} and "
        f"{lands[widths[-1]]:.1f} km², and Poisson theory's coverage {low:.3f} and {high:.3f}."
    )
    buildings = study.city.report["buildings"]
    found.append(
        f"Storeys are imputed for {buildings['levels_imputed_share']:.1%} of buildings, "
        f"{buildings['levels_imputed_floor_share']:.1%} of floor area."
    )
    dropped = {why: count for why, count in study.layout.report.get("dropped", {}).items() if count}
    if dropped:
        listed = ", ".join(f"{count} {why.replace('_', ' ')}" for why, count in dropped.items())
        found.append(f"Of the sites given, {len(study.layout)} stand in the city; dropped: {listed}.")
    for count, name in (("Poisson", "a random number of"), ("fixed", "as many")):
        sample = ensemble.loc[ensemble["count"] == count, "coverage"] if len(ensemble) else None
        if sample is not None:
            found.append(
                f"The real layout's coverage ranks {int((sample > on_map).sum()) + 1} of {len(sample) + 1} among "
                f"{len(sample)} Poisson layouts with {name} sites on the same land."
            )
    change, low, high = interval(
        [b - a for a, b in zip(_values(runs[STILL]), _values(runs[STEERED]), strict=True)]
    )
    found.append(
        f"The controller changed coverage by {100 * change:+.2f} points (95 % interval {100 * low:+.2f} to {100 * high:+.2f})."
        if len(runs[STILL]) > 1
        else f"The controller changed coverage by {100 * change:+.2f} points (one run, no interval)."
    )
    routing = study.scenario.routing
    fresh = interval(_values(runs[STALE]))[0] - interval(_values(runs[STILL]))[0]
    found.append(
        f"Routing on present queues, {routing.telemetry_period_s:g} s apart and {routing.telemetry_delay_s:g} s late, "
        f"changes coverage by {100 * fresh:+.1f} points against equilibrium waits."
    )
    return found + _warnings(study, theory, field, ensemble, runs)


def _values(runs: Sequence[Replication]) -> list[float]:
    return [run.metrics["coverage"] for run in runs]


def _warnings(
    study: Study,
    theory: WindowedAnswer[TheoryAnswer],
    field: WindowedAnswer[FieldAnswer],
    ensemble: pd.DataFrame,
    runs: Mapping[str, Sequence[Replication]],
) -> list[str]:
    found = []
    if not theory.stable:
        found.append(
            "UNSTABLE: Poisson theory has no stable equilibrium in some epoch; its waits are then infinite."
        )
    sick = sorted({int(i) for answer in field.answers for i in answer.unstable_sites})
    if sick:
        found.append(
            f"UNSTABLE: in the field {len(sick)} of {len(study.layout)} sites reach capacity: {sick}."
        )
    for name, line in runs.items():
        rows = [row for run in line for row in run.unstable]
        if rows:
            found.append(
                f"UNSTABLE: in {name!r} a site's offered load reached capacity in {len(rows)} site-epochs of "
                f"{len(line)} runs; its waits depend on the horizon."
            )
    if len(ensemble) and not ensemble["stable"].all():
        found.append(
            f"UNSTABLE: {int((~ensemble['stable']).sum())} of {len(ensemble)} Poisson layouts have no stable equilibrium."
        )
    busiest = max(float(answer.prefill_load.max()) for answer in field.answers)
    verdict = "more than one GPU can do: FLAGGED" if busiest > 1 else "within one GPU"
    found.append(f"Prefill work is at most {busiest:.2f} s per second and site, {verdict}.")
    return found
