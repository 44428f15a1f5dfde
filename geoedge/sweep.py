"""Many runs: paired replications of variants, and grids of scenario values.

Replication r of every variant runs on the same seed, so that variants see the same people and the same
requests, and differences between them are not noise. What comes out does not depend on the number of workers.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.answers import REJECTED
from geoedge.errors import ScenarioError
from geoedge.processes import in_processes
from geoedge.streams import stream
from geoedge.underway import Underway, noting

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.results import Results
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.study import Study

__all__ = ["Replication", "replicate", "replication_seed", "sweep"]

MOST_SEED = 2**62
STEPS_SHARE = 0.95
"""Share of a run that its steps take; the rest puts its results together."""
_NOT_A_KEY = {
    "seed": "give the base seed as `rng` (--seed) and several runs as `replications` (--replications)",
    "simulation.replications": "give it as `replications` (--replications)",
}
"""Keys that a grid cannot have, and what to use."""


@dataclass(frozen=True, eq=False)
class Replication:
    """What is kept of one run.

    Parameters
    ----------
    variant, replication
        Which variant, and which of its runs.
    seed
        The run's seed, the same for all variants.
    metrics
        One number for each metric of `geoedge.answers.METRICS` and each profile's share.
    epochs
        One row an epoch: epoch, start_s, end_s, requests, missed, coverage, utilization, mean_wait_s.
    actions
        The controller's log.
    unstable
        Epochs and sites whose offered load reached capacity.
    results
        Everything, where it was asked for.
    rejected_share
        Share of requests that no site took; it is among the metrics of all runs if one of them has such requests.
    """

    variant: int
    replication: int
    seed: int
    metrics: dict[str, float]
    epochs: pd.DataFrame
    actions: pd.DataFrame
    unstable: list[dict[str, float]]
    results: Results | None = None
    rejected_share: float = 0.0


def replication_seed(seed: int, replication: int) -> int:
    """Return the seed of a replication; the first one's is the base seed itself.

    Parameters
    ----------
    seed
        Base seed.
    replication
        Number of the replication, from 0.
    """
    if replication == 0:
        return seed
    return int(stream(seed, "replication", replication).integers(MOST_SEED))


def replicate(
    study: Study,
    variants: Sequence[Mapping[str, Any]],
    replications: int,
    *,
    seed: int | None = None,
    workers: int | None = None,
    keep: Sequence[int] = (),
    progress: Callable[[float, int], None] | None = None,
) -> list[list[Replication]]:
    """Run variants of a study, each so many times, on common random numbers.

    Parameters
    ----------
    study
        The study; variants may differ in routing, service, control and target.
    variants
        Values to replace by dotted key, one mapping a variant; ``{}`` is the scenario as it is.
    replications
        Runs of each variant, at least 1.
    seed
        Base seed; the scenario's by default.
    workers
        Processes; one a core by default, 1 for none but this one.
    keep
        Variants whose first replication keeps all its results.
    progress
        Told in this thread, at the start, after each run and at most twice a second between, how many runs are done
        and of how many; parts of runs count, so that 1.5 of 4 may be three halves. Never less than before, at last all.

    Returns
    -------
    list of list of Replication
        By variant and replication.

    Raises
    ------
    ScenarioError
        If there is nothing to run, or a variant changes what the study was made from.
    """
    studies = [study.with_scenario(study.scenario.override(changes)) for changes in variants]
    base = study.scenario.seed if seed is None else seed
    return _run_all(studies, replications, base, workers, frozenset(keep), progress)


def sweep(
    scenario: Scenario,
    grid: Mapping[str, Sequence[Any]],
    *,
    replications: int | None = None,
    rng: int | None = None,
    city: City | None = None,
    layout: Layout | None = None,
    workers: int | None = None,
    progress: Callable[[float, int], None] | None = None,
) -> pd.DataFrame:
    """Run a scenario over a grid of values, with paired replications.

    Parameters
    ----------
    scenario
        A scenario with a city.
    grid
        Values to try by dotted key, for example ``{"routing.policy": ["nearest", "load_aware"]}``; all
        combinations are run.
    replications
        Runs of each combination; the scenario's by default.
    rng
        Base seed; the scenario's by default.
    city, layout
        City and sites, if they exist already.
    workers
        Processes; one a core by default.
    progress
        Told in this thread, at the start, after each run and at most twice a second between, how many runs are done
        and of how many; parts of runs count, so that 1.5 of 4 may be three halves. Never less than before, at last all.

    Returns
    -------
    pandas.DataFrame
        One row a combination and replication: the grid's values, replication, seed, every metric.

    Raises
    ------
    ScenarioError
        If the grid is empty, a key or value is not valid, or a key is the seed or the number of replications.
    """
    import pandas as pd

    for key, cure in _NOT_A_KEY.items():
        if key in grid:
            msg = f"{key}: replications are paired by it, so that it cannot be varied; {cure}"
            raise ScenarioError(msg)
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    for point in points:
        scenario.override(point)  # a wrong value is said before minutes of work are spent
    studies = list(_studies(scenario, points, city, layout))
    runs = _run_all(
        studies,
        scenario.simulation.replications if replications is None else replications,
        scenario.seed if rng is None else rng,
        workers,
        frozenset(),
        progress,
    )
    return pd.DataFrame(
        [
            point | {"replication": run.replication, "seed": run.seed} | run.metrics
            for point, line in zip(points, runs, strict=True)
            for run in line
        ]
    )


def _studies(
    scenario: Scenario, points: Sequence[Mapping[str, Any]], city: City | None, layout: Layout | None
) -> Iterator[Study]:
    """Yield a study for each point, prepared anew only where the point asks for it."""
    from geoedge.study import PREPARED_FROM, prepare

    last: Study | None = None
    for point in points:
        changed = scenario.override(point)
        if last is None:
            last = prepare(changed, city=city, layout=layout)
        elif changed.dynamics.expected != last.scenario.dynamics.expected or any(
            getattr(changed, part) != getattr(last.scenario, part) for part in PREPARED_FROM
        ):
            known = last.city if changed.city == last.scenario.city else city
            last = prepare(changed, city=known, layout=layout)
        else:
            last = last.with_scenario(changed)
        yield last


def _run_all(
    studies: Sequence[Study],
    replications: int,
    seed: int,
    workers: int | None,
    keep: frozenset[int],
    progress: Callable[[float, int], None] | None,
) -> list[list[Replication]]:
    from joblib import cpu_count

    if replications < 1 or not studies or (workers is not None and workers < 1):
        msg = (
            f"sweep: {len(studies)} variants, {replications} replications, {workers} workers; "
            "there must be at least one of each"
        )
        raise ScenarioError(msg)
    tasks = [
        (v, r, replication_seed(seed, r), v in keep and r == 0)
        for r in range(replications)
        for v in range(len(studies))
    ]
    workers = min(len(tasks), cpu_count() if workers is None else workers)
    done: list[Replication] = []
    underway = Underway(len(tasks), progress)
    underway.tell()
    with closing(_outcomes(studies, tasks, workers, underway)) as outcomes:
        for run in outcomes:
            done.append(run)
            underway.tell()
    if any(run.rejected_share for run in done):
        done = [replace(run, metrics=run.metrics | {REJECTED: run.rejected_share}) for run in done]
    return [[run for run in done if run.variant == v] for v in range(len(studies))]


def _outcomes(
    studies: Sequence[Study], tasks: Sequence[tuple[int, int, int, bool]], workers: int, underway: Underway
) -> Generator[Replication, None, None]:
    """Yield the runs in order of their tasks, in this process or in others."""
    if workers <= 1:
        for number, task in enumerate(tasks):
            with underway.noting(number) as note:
                run = _run(studies[task[0]], *task, note)
            yield run
        return
    # some systems do not remove a file while it is mapped
    with tempfile.TemporaryDirectory(prefix="geoedge-", ignore_cleanup_errors=True) as folder:
        path, notes = Path(folder) / "studies.pickle", Path(folder) / "underway"
        # one file, not an argument of every task: a study holds the map and the routes
        path.write_bytes(pickle.dumps(list(studies), protocol=5))
        underway.share_through(notes)
        calls = [(str(path), notes, number, *task) for number, task in enumerate(tasks)]
        yield from in_processes(_run_stored, calls, workers, underway.ended)


def _run_stored(
    path: str, notes: Path, number: int, variant: int, replication: int, seed: int, keep: bool
) -> Replication:
    with noting(notes, number) as note:
        return _run(_stored(path)[variant], variant, replication, seed, keep, note)


@lru_cache(maxsize=1)
def _stored(path: str) -> list[Study]:
    with open(path, "rb") as file:
        studies: list[Study] = pickle.load(file)
    return studies


def _run(
    study: Study, variant: int, replication: int, seed: int, keep: bool, note: Callable[[float], None]
) -> Replication:
    from geoedge.simulation import EdgeCity

    model, (ends_s, shares) = EdgeCity(study.scenario, study=study, rng=seed), _milestones(study)
    while model.running:
        model.step()
        note(float(np.interp(model.clock_s, ends_s, shares)))
    results = model.run()
    return Replication(
        variant,
        replication,
        seed,
        results.metrics(),
        _by_epoch(results.epochs),
        results.actions,
        results.meta["unstable"],
        results if keep else None,
        results.rejected_share,
    )


def _milestones(study: Study) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return when epochs end [s], the start before them, and the share of a run's work that is done by then.

    A minute takes its time whoever asks, and so does a request; on a day half and half is near what both take.
    """
    start_s, end_s = np.array(study.epochs).T
    asked = np.array([demand.request_rate for demand in study.demand]) * (end_s - start_s)
    gone = [each.cumsum() / each.sum() for each in (end_s - start_s, asked) if each.sum() > 0.0]
    return np.append(start_s[0], end_s), np.append(0.0, STEPS_SHARE * np.mean(gone, axis=0))


def _by_epoch(epochs: pd.DataFrame) -> pd.DataFrame:
    """Return the epochs with all sites together."""
    taken = epochs["requests"] - epochs["rejected"]
    table = epochs.assign(
        busy=epochs["utilization"] * epochs["server_s"],
        servers=epochs["server_s"],
        taken=taken,
        waited=epochs["mean_wait_s"] * taken,
    )
    sums = table.groupby("epoch").agg(
        start_s=("start_s", "first"),
        end_s=("end_s", "first"),
        requests=("requests", "sum"),
        missed=("missed", "sum"),
        busy=("busy", "sum"),
        servers=("servers", "sum"),
        taken=("taken", "sum"),
        waited=("waited", "sum"),
    )
    sums["coverage"] = 1.0 - sums["missed"] / sums["requests"]
    sums["utilization"] = sums["busy"] / sums["servers"]
    sums["mean_wait_s"] = sums["waited"] / sums["taken"]
    return sums.drop(columns=["busy", "servers", "taken", "waited"]).reset_index()
