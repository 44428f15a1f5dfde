"""When there is something to earn, and who earns it then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geoedge.compare.controllers.ratios import NOWHERE, paired, share

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.sweep import Replication

__all__ = ["LEAST_RUNS", "hours_table"]

LEAST_RUNS = 3
"""Paired runs that it takes: the epochs of each are chosen by the others, of which one alone would be noise."""

Runs = Mapping[str, Sequence["Replication"]]
Floats = NDArray[np.float64]


def hours_table(runs: Runs, baseline: str, oracle: str, since_s: float, worth: float) -> pd.DataFrame:
    """Return what each contestant earns in the epochs in which an oracle is ahead, and in all others.

    An epoch of a run counts as worth it where the oracle's mean gain in the *other* runs reaches `worth`: a run that
    took part in choosing its own epochs would be chosen for its luck with them. Epochs in which no other run has
    requests are in neither group.

    Parameters
    ----------
    runs
        Replications by contestant, on common random numbers.
    baseline
        Contestant that the others are measured against.
    oracle
        Contestant whose gain tells when moving is worth it.
    since_s
        Start of the first epoch that counts [s since midnight].
    worth
        Gain in coverage from which on there is something to earn.

    Returns
    -------
    pandas.DataFrame
        Columns worth_it, controller, epochs (a run), requests (a run), change and oracle_share with _low and _high
        (95 % interval of paired runs). Empty where fewer than three runs, or no oracle, take part.
    """
    import pandas as pd

    names = [name for name in runs if name != baseline]
    columns = ["worth_it", "controller", "epochs", "requests"]
    columns += [f"{name}{end}" for name in ("change", "oracle_share") for end in ("", "_low", "_high")]
    if oracle not in names or len(runs[baseline]) < LEAST_RUNS:
        return pd.DataFrame(columns=columns)
    seen = runs[baseline][0].epochs["start_s"].to_numpy() >= since_s - 1e-6
    gains = {name: _gains(runs[name], runs[baseline])[:, seen] for name in names}
    requests = np.array([run.epochs["requests"].to_numpy()[seen] for run in runs[baseline]], dtype=np.float64)
    told_by_others = _by_others(gains[oracle])
    rows = []
    for worth_it, epochs in ((True, told_by_others >= worth), (False, told_by_others < worth)):
        weights = requests * epochs
        told = weights.sum(axis=1) > 0.0
        if told.sum() < 2:
            continue
        means = {name: _means(gains[name], weights)[told] for name in names}
        for name in names:
            shared = share(means[name], means[oracle]) if name != oracle else NOWHERE
            values = (*paired(means[name], np.zeros(int(told.sum()))), *shared)
            counts = (float(epochs.sum(axis=1).mean()), float(weights.sum(axis=1).mean()))
            rows.append((worth_it, name, *counts, *values))
    return pd.DataFrame(rows, columns=columns)


def _gains(line: Sequence[Replication], base: Sequence[Replication]) -> Floats:
    """Return by how much more of the requests of an epoch were in time than with the baseline, shape (R, E)."""
    return np.array(
        [
            (run.epochs["coverage"] - first.epochs["coverage"]).to_numpy()
            for run, first in zip(line, base, strict=True)
        ]
    )


def _by_others(gains: Floats) -> Floats:
    """Return, for each run and epoch, the mean of the other runs that had requests in it; NaN where none had."""
    known = np.isfinite(gains)
    held = np.where(known, gains, 0.0)
    count = known.sum(axis=0) - known
    return np.asarray(np.where(count > 0, (held.sum(axis=0) - held) / np.maximum(count, 1), np.nan))


def _means(gains: Floats, weights: Floats) -> Floats:
    total = weights.sum(axis=1)
    return np.asarray(
        (np.where(weights > 0.0, gains, 0.0) * weights).sum(axis=1) / np.where(total > 0.0, total, 1.0)
    )
