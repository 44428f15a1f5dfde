"""Runs side by side: every metric one column a run, and differences from the first, paired where that is fair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geoedge.answers import METRICS
from geoedge.compare.columns import FIELD, THEORY, interval
from geoedge.report._text import number, with_interval
from geoedge.report.page.answers import WORDS, with_unit
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told, share_people

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Difference", "answers_beside", "difference", "differences_grid", "pairing_words"]


def answers_beside(runs: Sequence[Told]) -> Grid | None:
    """Return coverage in theory, field and simulation, one column a run; None if no run has answers.

    A row is an answer, whatever policy or waits its column in a run is named after; the note has these names.

    Parameters
    ----------
    runs
        The runs.
    """
    kinds = [kind for kind in WORDS if any(each.answer(kind) for each in runs)]
    if not kinds:
        return None
    rows = [[kind, *(_cell(each, "coverage", each.answer(kind)) for each in runs)] for kind in kinds]
    label, unit = METRICS["coverage"]
    heads, note = ["", *(each.name for each in runs)], " ".join(_aligned_words(runs))
    return Grid(f"{with_unit(label.strip(), unit)}, all answers", heads, rows, note)


def _aligned_words(runs: Sequence[Told]) -> Iterator[str]:
    """Yield what the same answer means in one run and in another, and where the other simulations are."""
    for each in runs:
        solved = {(each.answer(kind) or "").partition(": ")[2] for kind in (THEORY, FIELD)} - {""}
        if solved:
            named = " and ".join(name.replace("_", "-") for name in sorted(solved))
            own = str(each.meta.get("policy", "its own")).replace("_", "-")
            yield f"{each.name}: theory, layouts and field are those of {named} routing, its simulation routes by {own}."
    waits = {each.name: (each.own or "").partition(": ")[2] for each in runs if each.own}
    if len(set(waits.values())) > 1:
        told = "; ".join(f"{name}, {f'{kind} waits' if kind else 'none'}" for name, kind in waits.items())
        yield f"Waits that routers go by in the simulation: {told}."
    if any(
        column.startswith("simulation") and column != each.own for each in runs for column in each.columns
    ):
        yield "Simulations with other waits stand in the tables of their runs below."


def _cell(told: Told, metric: str, column: str | None) -> str:
    value, low, high = told.value(metric, column)
    return "–" if math.isnan(value) else with_interval(value, low, high)


@dataclass(frozen=True)
class Difference:
    """By how much a metric of two runs differs.

    Parameters
    ----------
    mean
        The other's less the first's.
    half
        Half of the 95 % interval; NaN where nobody knows it.
    means
        The metric in the first and in the other, over the seeds that both have; None where these are all seeds of both,
        or where the runs are not paired.
    """

    mean: float
    half: float = math.nan
    means: tuple[float, float] | None = None

    @property
    def words(self) -> str:
        """The difference with its interval, and with the means that it is between where no column has them."""
        if math.isnan(self.mean):
            return "–"
        if math.isinf(self.mean):
            return "+∞" if self.mean > 0 else "−∞"
        words = f"{self.mean:+.3f}" if math.isnan(self.half) else f"{self.mean:+.3f} ± {self.half:.3f}"
        between = "" if self.means is None else " ({} → {})".format(*map(number, self.means))
        return f"{words}{between}".replace("-", "−")


def differences_grid(runs: Sequence[Told]) -> Grid:
    """Return every metric of the scenarios as they are, one column a run, with differences from the first run.

    Parameters
    ----------
    runs
        At least two runs.
    """
    first, *others = runs
    rows = [_row(first, others, metric) for metric in METRICS]
    heads = ["", first.name]
    for each in others:
        heads += [each.name, f"{each.name} − {first.name}"]
    note = " ".join(pairing_words(runs))
    return Grid("Simulation of each scenario as it is", heads, rows, note)


def _row(first: Told, others: Sequence[Told], metric: str) -> list[str]:
    label, unit = METRICS[metric]
    cells = [with_unit(label, unit), _own(first, metric)]
    for each in others:
        cells += [_own(each, metric), difference(first, each, metric).words]
    return cells


def _own(told: Told, metric: str) -> str:
    if told.answers is None:
        return number(told.results.metrics()[metric])
    return _cell(told, metric, told.as_it_is)


def difference(first: Told, other: Told, metric: str) -> Difference:
    """Return by how much a metric differs.

    Runs are paired seed by seed where the same people make the same requests in both, over the seeds that both have.

    Parameters
    ----------
    first, other
        Two runs.
    metric
        Key of the metric.
    """
    mine, theirs = (each.replications(each.as_it_is, metric) for each in (first, other))
    if mine is not None and theirs is not None and not share_people(first, other):
        common = _common(mine, theirs)
        if len(common):
            mean, low, high = interval((theirs[common] - mine[common]).to_numpy())
            means = (float(mine[common].mean()), float(theirs[common].mean()))
            whole = len(common) == len(mine) == len(theirs)
            return Difference(mean, (high - low) / 2, None if whole else means)
    values = [
        each.value(metric, each.as_it_is)[0] if each.answers is not None else each.results.metrics()[metric]
        for each in (first, other)
    ]
    return Difference(values[1] - values[0])


def _common(mine: pd.Series, theirs: pd.Series) -> pd.Index:
    """Return the seeds that two runs both have."""
    return mine.index.intersection(theirs.index)


def pairing_words(runs: Sequence[Told]) -> Iterator[str]:
    """Yield for each run whether its differences from the first are paired, and if not, why.

    Parameters
    ----------
    runs
        At least two runs.
    """
    first, *others = runs
    for each in others:
        why = share_people(first, each)
        pair = f"{each.name} and {first.name}"
        if why:
            yield f"{pair} are not paired: {why}; their difference has no interval."
        else:
            yield f"{pair} share people and requests{_paired_words(first, each)}"
        if first.target_s != each.target_s:
            yield f"Their TTFT targets differ ({first.target_s:g} s and {each.target_s:g} s): coverage means different things."


def _paired_words(first: Told, other: Told) -> str:
    """Return over which replications two runs of the same people are compared."""
    mine, theirs = (each.replications(each.as_it_is, "coverage") for each in (first, other))
    if mine is None or theirs is None:
        lacking = first.name if mine is None else other.name
        return f", but {lacking} kept no table of replications; their difference has no interval."
    count = len(_common(mine, theirs))
    if not count:
        return ", but have no seed in common; their difference has no interval."
    spread = ", ± 95 % interval" if count > 1 else "; one pair has no interval"
    if count == len(mine) == len(theirs):
        if count == 1:
            return f": differences are those of one pair of runs{spread}."
        return f": differences are means over {count} paired replications{spread}."
    over = "the one seed that" if count == 1 else f"the {count} seeds that"
    return (
        f": differences are over {over} both have, with the means over {'it' if count == 1 else 'those'} in brackets, "
        f"{first.name} → {other.name}{spread}. Columns are over all seeds of their run ({len(mine)} and {len(theirs)})."
    )
