"""Answers side by side in one table, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.answers import METRICS, Answer, answer_metrics
from geoedge.errors import GeoEdgeError
from geoedge.results import Results

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.sweep import Replication

__all__ = [
    "ENSEMBLE",
    "FIELD",
    "STALE",
    "STEERED",
    "STILL",
    "THEORY",
    "Comparison",
    "compare",
    "exact",
    "interval",
    "long_table",
    "simulated",
]

THEORY, ENSEMBLE, FIELD = "theory (PPP)", "PPP ensemble", "field (map)"
STILL, STEERED, STALE = "simulation: equilibrium", "with controller", "simulation: state"
"""The three simulations: routing on equilibrium waits with caches that stay, the same with the scenario's
controller, and routing on waits read from present queues with caches that stay."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """Answers side by side.

    Parameters
    ----------
    table
        One row a metric and column: metric, label, unit, column, value, low, high; `low` and `high` bound a
        95 % interval where the value was simulated, and are NaN elsewhere.
    """

    table: pd.DataFrame

    @property
    def wide(self) -> pd.DataFrame:
        """One row a metric, one column an answer."""
        columns = list(dict.fromkeys(self.table["column"]))
        rows = list(dict.fromkeys(self.table["metric"]))
        return self.table.pivot(index="metric", columns="column", values="value").loc[rows, columns]

    def _labelled(self) -> pd.DataFrame:
        """The wide table with words and units for its rows."""
        words = self.table.drop_duplicates("metric").set_index("metric")
        return self.wide.round(4).rename(index=lambda key: f"{words.label[key].strip()} [{words.unit[key]}]")

    def __repr__(self) -> str:
        return self._labelled().to_string()

    def _repr_html_(self) -> str:
        return str(self._labelled().to_html())


def interval(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Return mean and 95 % interval (Student's t) of independent replications; NaN bounds for a single one."""
    from scipy.stats import t as student

    data = np.asarray(values, dtype=np.float64)
    mean = float(data.mean())
    if len(data) < 2:
        return mean, float("nan"), float("nan")
    half = float(student.ppf(0.975, len(data) - 1) * data.std(ddof=1) / np.sqrt(len(data)))
    return mean, mean - half, mean + half


def compare(
    *answers: Answer,
    labels: Sequence[str] | None = None,
    ttft_target_s: float | None = None,
    profile_names: Sequence[str] | None = None,
) -> Comparison:
    """Return answers side by side.

    Parameters
    ----------
    *answers
        Of theory, field or simulation, in any number.
    labels
        Their names; by default what they are.
    ttft_target_s
        TTFT target τ₀ [s]; by default that of the simulation among the answers.
    profile_names
        Names of the profiles; by default those of the simulation among the answers.

    Raises
    ------
    GeoEdgeError
        If no simulation is among the answers and target or names are missing.
    """
    runs = [answer for answer in answers if isinstance(answer, Results)]
    if runs and ttft_target_s is None:
        ttft_target_s = runs[0].meta["ttft_target_s"]
    if runs and profile_names is None:
        profile_names = runs[0].meta["profile_names"]
    if ttft_target_s is None or profile_names is None or not answers:
        msg = "`ttft_target_s` and `profile_names` must be given where no simulation is among the answers"
        raise GeoEdgeError(msg)
    names = list(labels) if labels is not None else [_label(answer) for answer in answers]
    columns = {
        name: exact(answer_metrics(answer, ttft_target_s, profile_names))
        for name, answer in zip(names, answers, strict=True)
    }
    return Comparison(long_table(columns))


def _label(answer: Any) -> str:
    if isinstance(answer, Results):
        return answer.label
    kinds = getattr(answer, "answers", (answer,))
    return FIELD if "Field" in type(kinds[0]).__name__ else THEORY


def exact(metrics: Mapping[str, float]) -> dict[str, tuple[float, float, float]]:
    return {name: (value, float("nan"), float("nan")) for name, value in metrics.items()}


def simulated(runs: Sequence[Replication]) -> dict[str, tuple[float, float, float]]:
    return {name: interval([run.metrics[name] for run in runs]) for name in runs[0].metrics}


def long_table(columns: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for column, metrics in columns.items():
        for metric, (value, low, high) in metrics.items():
            label, unit = METRICS.get(metric, (metric.replace("share:", "served by "), "–"))
            rows.append((metric, label, unit, column, value, low, high))
    return pd.DataFrame(rows, columns=["metric", "label", "unit", "column", "value", "low", "high"])
