"""A comparison of controllers in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.compare.controllers.compared import ORACLE, WORTH_IT
from geoedge.units import clock

if TYPE_CHECKING:
    from geoedge.compare.controllers.compared import ControllerComparison

__all__ = ["GOAL_SHARE", "heading", "row_words", "sentences", "signed"]

GOAL_SHARE = 0.5
"""Share of it that a controller should get."""
UNSTEERED = ("none", "static", "random", ORACLE)
"""Yardsticks, which nobody expects to earn a share of the oracle's gain."""


def heading(found: ControllerComparison) -> list[str]:
    """Return the names of the columns that `row_words` fills."""
    return [
        "controller",
        "in time",
        f"points over {found.baseline}",
        "of the oracle's gain",
        "p95 TTFT [s]",
        "mean TTFT [s]",
        *(["rejected"] if _rejects(found) else []),
        "moved [GB]",
        "moves",
        "there and back",
    ]


def _rejects(found: ControllerComparison) -> bool:
    """Return whether any contestant rejected requests."""
    return bool((found.table["rejected_share"] > 0.0).any())


def row_words(found: ControllerComparison, row: Any) -> list[str]:
    """Return a row of the table in words.

    Parameters
    ----------
    found
        The comparison.
    row
        A row of its table.
    """
    half = 50.0 * (row["coverage_high"] - row["coverage_low"])
    level = f"{100 * row['coverage']:.2f} %" + ("" if np.isnan(half) else f" ± {half:.2f}")
    return [
        str(row["controller"]),
        level,
        signed(row["change"], row["change_low"], row["change_high"]),
        _share(row),
        f"{row['p95_ttft_s']:.2f}",
        f"{row['mean_ttft_s']:.2f}",
        *([f"{row['rejected_share']:.1%}"] if _rejects(found) else []),
        f"{row['moved_gb']:.1f}",
        f"{row['moves']:.1f}",
        f"{row['returns']:.1f}",
    ]


def signed(value: float, low: float, high: float) -> str:
    """Return a difference in coverage in points, with its interval where it has one."""
    text = f"{100 * value:+.2f}".replace("-", "−")
    half = 50.0 * (high - low)
    return text if np.isnan(half) or half == 0.0 else f"{text} ± {half:.2f}"


def _share(row: Any) -> str:
    value, low, high = (row[f"oracle_share{end}"] for end in ("", "_low", "_high"))
    if np.isnan(value) or row["controller"] in UNSTEERED:
        return ""
    text = f"{value:.0%}" if np.isnan(low) else f"{value:.0%} [{low:.0%}, {high:.0%}]"
    return text.replace("-", "−")


def sentences(found: ControllerComparison) -> list[str]:
    """Return what a comparison says, a sentence each."""
    return [
        *_levels(found),
        *_oracle(found),
        *_earned(found),
        *_worth(found),
        *_hours(found),
        *_moved(found),
        *_warnings(found),
    ]


def _rows(found: ControllerComparison) -> dict[str, Any]:
    return {row["controller"]: row for _, row in found.table.iterrows()}


def _levels(found: ControllerComparison) -> Iterator[str]:
    start, end = (clock(time_s) for time_s in found.window_s)
    count = found.replications
    runs = "one run, which says nothing of its luck" if count == 1 else f"{count} paired runs"
    levels = ", ".join(f"{name} {100 * row['coverage']:.1f} %" for name, row in _rows(found).items())
    yield f"In time within {found.ttft_target_s:g} s from {start} to {end}, {runs}: {levels}."


def _oracle(found: ControllerComparison) -> Iterator[str]:
    row = _rows(found).get(ORACLE)
    if row is None or found.baseline == ORACLE:
        return
    worth = (
        "there is something to earn by moving caches"
        if row["change"] >= WORTH_IT
        else f"less than {100 * WORTH_IT:g} points in all, so little is to be earned by moving caches"
    )
    yield f"Knowing what will be asked gains {_points(row)} over {found.baseline}: {worth}."


def _points(row: Any) -> str:
    return f"{signed(row['change'], row['change_low'], row['change_high'])} points"


def _earned(found: ControllerComparison) -> Iterator[str]:
    """Say of each controller whether it earns its share where there is one, and that it does no harm elsewhere."""
    rows = _rows(found)
    oracle = rows.get(ORACLE)
    worth = oracle is not None and oracle["change"] >= WORTH_IT
    for name, row in rows.items():
        if name in UNSTEERED or name == found.baseline:
            continue
        verdict = _share_verdict(row) if worth else _harm_verdict(row)
        yield f"{name}: {_points(row)} over {found.baseline}; {verdict}."


def _share_verdict(row: Any) -> str:
    value, low, high = (row[f"oracle_share{end}"] for end in ("", "_low", "_high"))
    if np.isnan(value):
        return "what share of the oracle's gain this is cannot be told"
    reached = f"{value:.0%} of the oracle's gain".replace("-", "−")
    if value < GOAL_SHARE:
        return f"{reached}, less than half" + (
            ", though half is within the interval" if high >= GOAL_SHARE else ""
        )
    return f"{reached}, half or more" + (", though less is within the interval" if low < GOAL_SHARE else "")


def _harm_verdict(row: Any) -> str:
    if np.isnan(row["change_low"]):
        return "one run does not tell whether that is luck"
    if row["change_high"] < 0.0:
        return "it does harm, beyond its interval"
    if row["change_low"] > 0.0:
        return "it earns something"
    return "not told apart from zero"


def _worth(found: ControllerComparison) -> Iterator[str]:
    """Say what is earned in the epochs in which there is something to earn."""
    hours = found.hours
    counts = hours.drop_duplicates("worth_it").set_index("worth_it")["epochs"]
    ahead = f"the oracle is {100 * WORTH_IT:g} points or more ahead of {found.baseline}, by the other days"
    if len(counts) and True not in counts.index:
        yield f"In none of {counts.sum():.0f} epochs {ahead}."
        return
    for worth_it, part in hours.groupby("worth_it", sort=False):
        count = counts[worth_it]
        where = (
            f"In {count:.0f} of {counts.sum():.0f} epochs {ahead}"
            if worth_it
            else f"In the other {count:.0f}"
        )
        each = ", ".join(
            f"{row['controller']} {_points(row)}"
            + (f" ({_share(row)} of that)" if worth_it and _share(row) else "")
            for _, row in part.iterrows()
        )
        yield f"{where}: {each}."


def _hours(found: ControllerComparison) -> Iterator[str]:
    """Say of each controller when it earns and loses most against the baseline, an epoch."""
    for name, part in found.epochs.groupby("controller", sort=False):
        if name in UNSTEERED or name == found.baseline:
            continue
        seen = part[part["start_s"] >= found.window_s[0] - 1e-6]
        ranked = seen.sort_values("change", kind="stable")
        best, worst = ranked.iloc[-1], ranked.iloc[0]
        ahead = (
            _when(best, "furthest ahead of", found.baseline)
            if best["change"] > 0.0
            else f"never ahead of {found.baseline}"
        )
        behind = _when(worst, "furthest behind", "") if worst["change"] < 0.0 else "never behind"
        yield f"{name} is {ahead}, {behind}."


def _when(row: Any, what: str, whom: str) -> str:
    """Return when something was so in an epoch, and by how much."""
    words = f"{what} {whom}".rstrip()
    return f"{words} from {clock(row['start_s'])} to {clock(row['end_s'])} ({_points(row)})"


def _moved(found: ControllerComparison) -> Iterator[str]:
    rows = {name: row for name, row in _rows(found).items() if row["moves"] > 0}
    if rows:
        each = ", ".join(
            f"{name} {row['moved_gb']:.0f} GB in {row['moves']:.0f} moves" for name, row in rows.items()
        )
        yield f"Moved: {each}."
    back = {name: row["returns"] for name, row in rows.items() if row["returns"] > 0}
    if back:
        each = ", ".join(f"{name} {count:.1f}" for name, count in back.items())
        yield f"There and back within four epochs, per run: {each}."


def _warnings(found: ControllerComparison) -> Iterator[str]:
    sick = {name: row["unstable"] for name, row in _rows(found).items() if row["unstable"] > 0}
    if sick:
        each = ", ".join(f"{name} {count:.1f}" for name, count in sick.items())
        yield (
            f"UNSTABLE: epochs and sites whose offered load reached capacity, per run: {each}; mean and p95 of their "
            "waits depend on how long that lasted."
        )
