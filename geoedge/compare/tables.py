"""Tables beside the three answers: policies, the controller, places, and the age of telemetry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoedge.compare.columns import FIELD, THEORY, interval
from geoedge.control.actions import REPAIRS
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.answers import WindowedAnswer
    from geoedge.results import Results
    from geoedge.study import PolicyName, Study
    from geoedge.sweep import Replication
    from geoedge.theory import TheoryAnswer

__all__ = [
    "cell_table",
    "control_epochs",
    "control_table",
    "horizon_of",
    "planned",
    "policy_table",
    "replication_table",
    "staleness_curve",
]

POLICY_NAMES: tuple[PolicyName, ...] = ("load_aware", "prefix_only", "nearest")


def policy_table(study: Study) -> pd.DataFrame:
    """Return TTFT coverage of the routing policies in theory and on the map, one row a policy.

    Parameters
    ----------
    study
        The study.
    """
    import pandas as pd

    from geoedge.study import field_answers, theory_answers

    target = study.scenario.target.ttft_target_s
    return pd.DataFrame(
        [
            (
                policy,
                theory_answers(study, policy=policy).ttft_coverage(target),
                field_answers(study, policy=policy, warm_up=False).ttft_coverage(target),
            )
            for policy in POLICY_NAMES
        ],
        columns=["policy", THEORY, FIELD],
    )


def control_table(still: Sequence[Replication], steered: Sequence[Replication]) -> pd.DataFrame:
    """Return what the controller changes in each metric, paired by replication, with 95 % intervals.

    Parameters
    ----------
    still, steered
        Replications without and with the controller, on common random numbers.
    """
    import pandas as pd

    rows = [
        (name, *interval([b.metrics[name] - a.metrics[name] for a, b in zip(still, steered, strict=True)]))
        for name in still[0].metrics
    ]
    return pd.DataFrame(rows, columns=["metric", "change", "low", "high"])


def replication_table(runs: Mapping[str, Sequence[Replication]]) -> pd.DataFrame:
    """Return every metric of every replication, so that runs on the same people can be paired later on.

    Parameters
    ----------
    runs
        Replications by column of the table of answers.

    Returns
    -------
    pandas.DataFrame
        Columns column, replication, seed, metric, value.
    """
    import pandas as pd

    rows = [
        (column, run.replication, run.seed, metric, value)
        for column, line in runs.items()
        for run in line
        for metric, value in run.metrics.items()
    ]
    return pd.DataFrame(rows, columns=["column", "replication", "seed", "metric", "value"])


def control_epochs(still: Sequence[Replication], steered: Sequence[Replication]) -> pd.DataFrame:
    """Return what the controller moved, promised and brought in each epoch, averaged over paired replications.

    Parameters
    ----------
    still, steered
        Replications without and with the controller, on common random numbers.

    Returns
    -------
    pandas.DataFrame
        Columns epoch, start_s, moves, bytes_moved (of the epoch), predicted_gain (of all moves so far, each as
        predicted, when it was made, for the epoch that started), still (coverage), change (coverage gained by all moves
        so far), low, high (95 % interval of the change), horizon_gain (as predicted_gain, but mean over the epochs that
        the planner planned for).
    """
    import pandas as pd

    rows, plans = [], [planned(run.actions) for run in steered]
    for epoch, start in zip(still[0].epochs["epoch"], still[0].epochs["start_s"], strict=True):
        base, coverage = (
            np.array([run.epochs.set_index("epoch").loc[epoch, "coverage"] for run in line], dtype=np.float64)
            for line in (still, steered)
        )
        moves = [plan[plan["epoch"] == epoch] for plan in plans]
        summed = ("bytes_moved", "predicted_gain", "horizon_gain")
        moved, *gains = (np.mean([part[name].sum() for part in moves]) for name in summed)
        count = np.mean([len(part) for part in moves])
        rows.append((epoch, start, count, moved, gains[0], base.mean(), *interval(coverage - base), gains[1]))
    names = ["epoch", "start_s", "moves", "bytes_moved", "predicted_gain", "still", "change", "low", "high"]
    table = pd.DataFrame(rows, columns=[*names, "horizon_gain"])
    return table.assign(**{name: table[name].cumsum() for name in ("predicted_gain", "horizon_gain")})


def horizon_of(actions: pd.DataFrame) -> int:
    """Return over how many epochs gains were predicted by which moves were chosen; 1 where these are of one epoch.

    Parameters
    ----------
    actions
        The controller's log, perhaps of a version that did not tell.
    """
    if "horizon_gain" not in actions:
        return 1
    further = actions.loc[
        actions["horizon_gain"].sub(actions["predicted_gain"]).abs() > 0.0, "horizon_epochs"
    ]
    return int(further.max()) if len(further) else 1


def planned(actions: pd.DataFrame) -> pd.DataFrame:
    """Return the actions of plans, without what sites do by themselves, with a controller or without.

    Parameters
    ----------
    actions
        Table ``actions`` of a run.
    """
    return actions[~actions["action"].isin(REPAIRS)]


def cell_table(study: Study, theory: WindowedAnswer[TheoryAnswer], results: Results) -> pd.DataFrame:
    """Return demand and local coverage of every cell and epoch, beside what Poisson theory predicts.

    Local coverage is the field's, at the waits advertised and the profiles held in the run; theory's is for the
    cell's own request mix, on a Poisson network of the initial placement.

    Parameters
    ----------
    study
        The study.
    theory
        Theory's answer for it.
    results
        A run of it.
    """
    import pandas as pd

    from geoedge.field import evaluate
    from geoedge.study import field_inputs, service_queue

    target, cell_m = study.scenario.target.ttft_target_s, study.scenario.demand.cell_m
    frames = []
    for epoch, (demand, rows) in enumerate(zip(study.demand, _by_epoch(results), strict=True)):
        own_mix = demand.rate / demand.rate.sum(axis=1, keepdims=True)
        by_type = np.nan_to_num(theory.answers[epoch].coverage_by_type(target))
        answer = evaluate(
            field_inputs(study, demand, rows["profile"].to_numpy()),
            rows["advertised_wait_s"].to_numpy(),
            policy=study.scenario.routing.solved_as,
            queue=service_queue(study.scenario),
        )
        frames.append(
            pd.DataFrame(
                {
                    "x_m": demand.xy[:, 0],
                    "y_m": demand.xy[:, 1],
                    "cell_m": cell_m,
                    "epoch": epoch,
                    "demand_per_km2_s": demand.rate.sum(axis=1) * (M2_PER_KM2 / cell_m**2),
                    "local_coverage": answer.local_coverage(target),
                    "ppp_coverage": own_mix @ by_type,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _by_epoch(results: Results) -> list[pd.DataFrame]:
    table = results.epochs.sort_values(["epoch", "site"], kind="stable")
    return [rows for _, rows in table.groupby("epoch")]


def staleness_curve(
    study: Study,
    periods_s: Sequence[float] = (0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0),
    *,
    replications: int | None = None,
    workers: int | None = None,
    progress: Callable[[float, int], None] | None = None,
) -> pd.DataFrame:
    """Return simulated coverage over the age of telemetry, with equilibrium waits beside it.

    Sites report the wait that their present queue means for a new request, every so many seconds; caches stay
    where they are.

    Parameters
    ----------
    study
        The study.
    periods_s
        Time between two reports [s]; 0 reports at every request.
    replications
        Paired runs of each; the scenario's by default.
    workers
        Processes; one a core by default.
    progress
        As in `geoedge.sweep.replicate`.

    Returns
    -------
    pandas.DataFrame
        Columns advertise, telemetry_period_s, coverage, low, high (95 % interval); the first row is
        ``equilibrium``.
    """
    import pandas as pd

    from geoedge.sweep import replicate

    still = {"control.controller": "none", "routing.telemetry_delay_s": 0.0}
    kinds = [("equilibrium", float("nan"))] + [("state", float(period)) for period in periods_s]
    variants = [still | {"routing.advertise": "equilibrium"}] + [
        still | {"routing.advertise": "state", "routing.telemetry_period_s": float(period)}
        for period in periods_s
    ]
    count = study.scenario.simulation.replications if replications is None else replications
    runs = replicate(study, variants, count, workers=workers, progress=progress)
    rows = [
        (*kind, *interval([run.metrics["coverage"] for run in line]))
        for kind, line in zip(kinds, runs, strict=True)
    ]
    return pd.DataFrame(rows, columns=["advertise", "telemetry_period_s", "coverage", "low", "high"])
