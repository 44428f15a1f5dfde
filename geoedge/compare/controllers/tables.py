"""Tables of a comparison of controllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geoedge.compare.columns import interval, named
from geoedge.compare.controllers.ratios import NOWHERE, paired, share
from geoedge.compare.tables import planned
from geoedge.control.actions import Action, Change
from geoedge.control.log import LogEntry, oscillations
from geoedge.units import GB

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.sweep import Replication

__all__ = ["change_table", "contest_table", "epoch_table", "returns"]

WITHIN_EPOCHS = 4
"""A site that comes back within so many epochs to what it held has moved for nothing."""

Runs = Mapping[str, Sequence["Replication"]]
Floats = NDArray[np.float64]


def returns(actions: pd.DataFrame, within_epochs: int = WITHIN_EPOCHS) -> int:
    """Return how often a site came back, within so many epochs, to a profile that it had given up.

    Parameters
    ----------
    actions
        A controller's log, as `Results.actions` has it.
    within_epochs
        Epochs between leaving a profile and taking it up again, at most.
    """
    return len(oscillations(_entries(actions), within_epochs))


def _entries(actions: pd.DataFrame) -> Iterator[LogEntry]:
    """Yield the actions of a log, in order of time, as what was decided."""
    for row in actions.sort_values("time_s", kind="stable").to_dict("records"):
        first = Change(row["site"], row["from_profile"], row["to_profile"], row["bytes_moved"])
        changes = [first]
        if row["partner_site"] >= 0:
            changes.append(Change(row["partner_site"], row["to_profile"], row["from_profile"], 0.0))
        action = Action(row["action"], tuple(changes))
        yield LogEntry(row["epoch"], row["time_s"], action, row["transfer_s"])


def contest_table(runs: Runs, baseline: str, oracle: str) -> pd.DataFrame:
    """Return one row a contestant: what it answered in time, what it moved, and what it earned.

    Parameters
    ----------
    runs
        Replications by contestant, on common random numbers.
    baseline
        Contestant that the others are measured against.
    oracle
        Contestant whose gain the others have a share of, if it takes part.
    """
    import pandas as pd

    base = _metric(runs[baseline], "coverage")
    most = _metric(runs[oracle], "coverage") - base if oracle in runs else np.full(len(base), np.nan)
    rows = []
    for name, line in runs.items():
        coverage = _metric(line, "coverage")
        told = oracle in runs and name not in (baseline, oracle)
        rows.append(
            {
                "controller": name,
                "replications": len(line),
                **named("coverage", interval(coverage)),
                **named("change", paired(coverage, base)),
                **named("oracle_share", share(coverage - base, most) if told else NOWHERE),
                "p95_ttft_s": float(_metric(line, "p95_ttft_s").mean()),
                "mean_ttft_s": float(_metric(line, "mean_ttft_s").mean()),
                "rejected_share": _mean(line, lambda run: run.rejected_share),
                "moves": _mean(line, lambda run: len(planned(run.actions))),
                "moved_gb": _mean(line, lambda run: planned(run.actions)["bytes_moved"].sum() / GB),
                "returns": _mean(line, lambda run: returns(run.actions)),
                "unstable": _mean(line, lambda run: len(run.unstable)),
            }
        )
    return pd.DataFrame(rows)


def change_table(runs: Runs, baseline: str) -> pd.DataFrame:
    """Return every metric of every contestant beside its paired difference to the baseline, one row each.

    Parameters
    ----------
    runs
        Replications by contestant, on common random numbers.
    baseline
        Contestant that the others are measured against.
    """
    import pandas as pd

    rows = [
        {
            "controller": name,
            "metric": metric,
            "value": float(_metric(line, metric).mean()),
            **named("change", paired(_metric(line, metric), _metric(runs[baseline], metric))),
        }
        for name, line in runs.items()
        for metric in line[0].metrics
    ]
    return pd.DataFrame(rows)


def epoch_table(runs: Runs, baseline: str) -> pd.DataFrame:
    """Return one row a contestant and epoch: what it answered in time, what it moved, and what it earned.

    Parameters
    ----------
    runs
        Replications by contestant, on common random numbers.
    baseline
        Contestant that the others are measured against.
    """
    import pandas as pd

    names = ("coverage", "requests", "utilization", "mean_wait_s")
    values = {
        name: {column: np.array([run.epochs[column] for run in line]) for column in names}
        for name, line in runs.items()
    }
    rows = []
    for name, line in runs.items():
        first, seen = line[0].epochs, values[name]
        plans = [planned(run.actions) for run in line]
        moves = [[plan[plan["epoch"] == k] for plan in plans] for k in first["epoch"]]
        for k, (epoch, start, end) in enumerate(
            zip(first["epoch"], first["start_s"], first["end_s"], strict=True)
        ):
            base = values[baseline]["coverage"][:, k]
            rows.append(
                {
                    "controller": name,
                    "epoch": int(epoch),
                    "start_s": float(start),
                    "end_s": float(end),
                    **named("coverage", interval(seen["coverage"][:, k])),
                    **named("change", paired(seen["coverage"][:, k], base)),
                    **{column: float(seen[column][:, k].mean()) for column in names[1:]},
                    "moves": float(np.mean([len(part) for part in moves[k]])),
                    "moved_gb": float(np.mean([part["bytes_moved"].sum() for part in moves[k]]) / GB),
                }
            )
    return pd.DataFrame(rows)


def _metric(line: Sequence[Replication], metric: str) -> Floats:
    return np.array([run.metrics[metric] for run in line], dtype=np.float64)


def _mean(line: Sequence[Replication], measure: Callable[[Replication], float]) -> float:
    return float(np.mean([measure(run) for run in line]))
