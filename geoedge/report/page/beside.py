"""Runs side by side: every metric one column a run, and differences from the first, paired where that is fair."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from geoedge.answers import METRICS
from geoedge.compare.columns import interval
from geoedge.report._text import number
from geoedge.report.page.answers import with_unit
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told, share_people
from geoedge.report.run import _with_interval

__all__ = ["answers_beside", "difference", "differences_grid", "pairing_words"]


def answers_beside(runs: Sequence[Told], metric: str = "coverage") -> Grid | None:
    """Return one metric in all answers, one column a run; None if no run has answers.

    Parameters
    ----------
    runs
        The runs.
    metric
        Key of the metric.
    """
    kinds = list(dict.fromkeys(column for each in runs for column in each.columns))
    if not kinds:
        return None
    rows = [[kind, *(_cell(each, metric, kind) for each in runs)] for kind in kinds]
    label, unit = METRICS[metric]
    return Grid(f"{with_unit(label.strip(), unit)}, all answers", ["", *(each.name for each in runs)], rows)


def _cell(told: Told, metric: str, column: str | None) -> str:
    value, low, high = told.value(metric, column)
    return "–" if math.isnan(value) else _with_interval({"value": value, "low": low, "high": high})


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
        cells += [_own(each, metric), difference_words(difference(first, each, metric))]
    return cells


def _own(told: Told, metric: str) -> str:
    if told.answers is None:
        return number(told.results.metrics()[metric])
    return _cell(told, metric, told.as_it_is)


def difference(first: Told, other: Told, metric: str) -> tuple[float, float]:
    """Return by how much a metric differs, and half of the 95 % interval; NaN for a half that nobody knows.

    Runs are paired seed by seed where the same people make the same requests in both.

    Parameters
    ----------
    first, other
        Two runs.
    metric
        Key of the metric.
    """
    mine, theirs = (each.replications(each.as_it_is, metric) for each in (first, other))
    if mine is not None and theirs is not None and not share_people(first, other):
        common = mine.index.intersection(theirs.index)
        if len(common):
            mean, low, high = interval((theirs[common] - mine[common]).to_numpy())
            return mean, (high - low) / 2
    values = [
        each.value(metric, each.as_it_is)[0] if each.answers is not None else each.results.metrics()[metric]
        for each in (first, other)
    ]
    return values[1] - values[0], math.nan


def difference_words(found: tuple[float, float]) -> str:
    """Return a difference with its interval as text."""
    mean, half = found
    if math.isnan(mean):
        return "–"
    words = f"{mean:+.3f}" if math.isnan(half) else f"{mean:+.3f} ± {half:.3f}"
    return words.replace("-", "−")


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
        lacking = next(
            (one.name for one in (first, each) if one.replications(one.as_it_is, "coverage") is None), ""
        )
        if why:
            yield f"{each.name} and {first.name} are not paired: {why}; their difference has no interval."
        elif lacking:
            yield (
                f"{each.name} and {first.name} share people and requests, but {lacking} kept no table of replications; "
                "their difference has no interval."
            )
        else:
            yield (
                f"{each.name} and {first.name} share people and requests: differences are means over paired replications, "
                "± 95 % interval."
            )
        if first.target_s != each.target_s:
            yield f"Their TTFT targets differ ({first.target_s:g} s and {each.target_s:g} s): coverage means different things."
