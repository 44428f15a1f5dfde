"""Worlds with a simulation: the same people and requests under more and more of what the scenario has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoedge.compare.gap.effects import run_changes
from geoedge.compare.gap.readings import Reading

if TYPE_CHECKING:
    from geoedge.compare.gap.orders import World
    from geoedge.study import Study
    from geoedge.sweep import Replication

__all__ = ["run_readings"]


def run_readings(
    study: Study,
    worlds: Sequence[World],
    absent: Mapping[str, str],
    metric: str,
    *,
    replications: int,
    seed: int,
    workers: int,
    told: Callable[[float], None],
) -> dict[World, Reading]:
    """Return what simulated worlds answer, on common random numbers.

    Parameters
    ----------
    study
        The study.
    worlds
        Sets of effects with "movement" among them.
    absent
        Effects that the scenario does not have.
    metric
        A metric of `geoedge.answers.METRICS`.
    replications, seed, workers
        As in `geoedge.sweep.replicate`.
    told
        Called with the number of runs done, parts of those underway included.
    """
    from geoedge.sweep import replicate

    variants = [run_changes(study.scenario, world, absent) for world in worlds]
    runs = replicate(
        study, variants, replications, seed=seed, workers=workers, progress=lambda done, _: told(done)
    )
    return {world: _reading(study, line, metric) for world, line in zip(worlds, runs, strict=True)}


def _reading(study: Study, runs: Sequence[Replication], metric: str) -> Reading:
    measured = set(np.flatnonzero(study.measured_s).tolist())
    sick = sum(any(row["epoch"] in measured for row in run.unstable) for run in runs)
    values = np.array([run.metrics[metric] for run in runs])
    return Reading("runs", values, flags=(("unstable", sick),) if sick else ())
