"""Answers side by side in one table, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.answers import REJECTED, Answer, answer_metrics, metric_words
from geoedge.errors import GeoEdgeError
from geoedge.results import Results

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ENSEMBLE",
    "FIELD",
    "STEERED",
    "THEORY",
    "TWINS",
    "Comparison",
    "compare",
    "interval",
    "intervals",
    "long_table",
    "median_range",
    "named",
]

THEORY, ENSEMBLE, TWINS, FIELD = "theory (PPP)", "PPP ensemble", "same count", "field (map)"
STEERED = "with controller"


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


def median_range(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Return the median and the 95 % range of what several layouts gave, of which some may be infinite.

    The ends are values of single layouts, as between a finite and an infinite wait nothing is to be interpolated.

    Parameters
    ----------
    values
        One number a layout; NaN where it has none, as a layout without sites has no distances.
    """
    given = np.asarray(values, dtype=np.float64)
    given = given[~np.isnan(given)]
    if not len(given):
        return (np.nan,) * 3
    low, high = np.quantile(given, (0.025, 0.975), method="nearest")
    lower, higher = (np.quantile(given, 0.5, method=method) for method in ("lower", "higher"))
    return float((lower + higher) / 2.0), float(low), float(high)


def interval(values: Sequence[float] | np.ndarray[Any, Any]) -> tuple[float, float, float]:
    """Return mean and 95 % interval (Student's t) of independent replications.

    Bounds are NaN for a single one, and where a value is not finite.

    Parameters
    ----------
    values
        One number a replication.
    """
    from scipy.stats import t as student

    data = np.asarray(values, dtype=np.float64)
    with np.errstate(invalid="ignore"):  # one wait beyond all bounds less another one is not known
        mean = float(data.mean())
    if len(data) < 2 or not np.isfinite(data).all():
        return mean, float("nan"), float("nan")
    half = float(student.ppf(0.975, len(data) - 1) * data.std(ddof=1) / np.sqrt(len(data)))
    return mean, mean - half, mean + half


def named(name: str, values: tuple[float, float, float]) -> dict[str, float]:
    """Return a number and its interval as cells of a row: under its name, and with ``_low`` and ``_high``.

    Parameters
    ----------
    name
        What the number is called.
    values
        The number, low and high, as `interval` gives them.
    """
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def compare(
    *answers: Answer | Sequence[Results],
    labels: Sequence[str] | None = None,
    ttft_target_s: float | None = None,
    profile_names: Sequence[str] | None = None,
) -> Comparison:
    """Return answers side by side.

    Parameters
    ----------
    *answers
        Of theory, field or simulation, in any number. Several runs in a list are replications: one column, with
        a 95 % interval. One run alone has none, since the demand of a city's window shifts.
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
    groups = [list(answer) if isinstance(answer, Sequence) else [answer] for answer in answers]
    runs = [answer for group in groups for answer in group if isinstance(answer, Results)]
    if runs and ttft_target_s is None:
        ttft_target_s = runs[0].meta["ttft_target_s"]
    if runs and profile_names is None:
        profile_names = runs[0].meta["profile_names"]
    if ttft_target_s is None or profile_names is None or not all(groups):
        msg = "`ttft_target_s` and `profile_names` must be given where no simulation is among the answers"
        raise GeoEdgeError(msg)
    names = list(labels) if labels is not None else [_label(group[0]) for group in groups]
    rejecting = any(run.rejected_share for run in runs)

    def metrics(answer: Any) -> dict[str, float]:
        found = answer_metrics(answer, ttft_target_s, profile_names)
        told = rejecting and isinstance(answer, Results)
        return found | ({REJECTED: answer.rejected_share} if told else {})

    columns = {
        name: intervals([metrics(answer) for answer in group])
        for name, group in zip(names, groups, strict=True)
    }
    return Comparison(long_table(columns))


def _label(answer: Any) -> str:
    if isinstance(answer, Results):
        return answer.label
    kinds = getattr(answer, "answers", (answer,))
    return FIELD if "Field" in type(kinds[0]).__name__ else THEORY


def intervals(metrics: Sequence[Mapping[str, float]]) -> dict[str, tuple[float, float, float]]:
    """Return each metric's mean and 95 % interval over replications; NaN bounds for a single one."""
    return {name: interval([each[name] for each in metrics]) for name in metrics[0]}


def long_table(columns: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for column, metrics in columns.items():
        for metric, (value, low, high) in metrics.items():
            rows.append((metric, *metric_words(metric), column, value, low, high))
    return pd.DataFrame(rows, columns=["metric", "label", "unit", "column", "value", "low", "high"])
