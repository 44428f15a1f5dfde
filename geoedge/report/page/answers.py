"""The verdict in a sentence, the three answers in a table, and the steps that lead from one to the next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from geoedge.compare.columns import ENSEMBLE, FIELD, STEERED, THEORY, TWINS, interval
from geoedge.maps.words import percent
from geoedge.report._text import number, with_interval
from geoedge.report.page.blocks import Bar, Grid, Steps
from geoedge.report.page.told import Told

__all__ = [
    "Step",
    "answers_grid",
    "change_words",
    "policies_grid",
    "steps_beside",
    "steps_of",
    "steps_table",
    "verdict",
    "with_unit",
]


def verdict(told: Told) -> str:
    """Return in one sentence what share of requests is in time, whether that is enough, and what theory says.

    Parameters
    ----------
    told
        A run.
    """
    column = told.as_it_is
    value, low, high = told.value("coverage", column)
    if math.isnan(value):
        value = told.results.ttft_coverage(told.target_s)
    who = {STEERED: f", with the {told.meta['controller']} controller,".replace("_", "-")}.get(
        column or "", ""
    )
    return (
        f"{percent(value)}{_half(low, high)} of requests{who} have their first token within {told.target_s:g} s"
        f"{_wanted(told, value, low, high)}{_others(told, value)}."
    )


def _half(low: float, high: float) -> str:
    return "" if math.isnan(low) else f" (± {50 * (high - low):.1f})"


def _wanted(told: Told, value: float, low: float, high: float) -> str:
    wanted = told.reliability
    if wanted is None:
        return ""
    asked = f"the {100 * wanted:g} % asked for"
    if low <= wanted <= high:
        return f", not told apart from {asked}"
    short = wanted - value
    return f", {100 * abs(short):.1f} points {'short of' if short > 0 else 'above'} {asked}"


def _others(told: Told, value: float) -> str:
    """Return what theory and field say of the same city."""
    theory, field = (told.value("coverage", told.column(kind))[0] for kind in (THEORY, FIELD))
    if math.isnan(theory) or math.isnan(field):
        return ""
    gap = 100 * (theory - value)
    side = "too high" if gap > 0 else "too low"
    return (
        f"; Poisson theory, which knows no map, says {percent(theory)}, {abs(gap):.1f} points {side}, and the field on the "
        f"map {percent(field)}"
    )


# -- the table ------------------------------------------------------------------------------------------


def answers_grid(told: Told) -> Grid | None:
    """Return the three answers as `geoedge compare` prints them; None if the run has none.

    Parameters
    ----------
    told
        A run.
    """
    if told.answers is None:
        return None
    rows = []
    for _, part in told.answers.groupby("metric", sort=False):
        first = part.iloc[0]
        cells = {
            row["column"]: with_interval(row["value"], row["low"], row["high"])
            for row in part.to_dict("records")
        }
        name = with_unit(str(first["label"]), str(first["unit"]))
        rows.append([name, *(cells.get(column, "–") for column in told.columns)])
    return Grid(f"The three answers, {told.window}", ["", *told.columns], rows, _how_known(told))


def with_unit(label: str, unit: str) -> str:
    """Return the name of a metric with its unit, if it has one; parts of another are indented by a dash."""
    name = f"– {label.strip()}" if label.startswith(" ") else label
    return name if unit == "–" else f"{name} [{unit}]"


def _how_known(told: Told) -> str:
    runs = told.meta.get("replications", 1)
    simulated = (
        f"Simulated numbers: mean of {runs} paired runs ± 95 % interval."
        if runs > 1
        else "Simulated numbers: one run, no interval."
    )
    layouts = len(told.layouts("Poisson"))
    poisson = (
        f" PPP ensemble (a Poisson number of sites) and same count (as many as in the city): median and 95 % range of {layouts} layouts each."
        if layouts
        else ""
    )
    return f"TTFT coverage: share of requests with a first token within {told.target_s:g} s. {simulated}{poisson}"


def policies_grid(told: Told) -> Grid | None:
    """Return coverage by routing policy in theory and on the map; None if the run has none.

    Parameters
    ----------
    told
        A run.
    """
    table = told.results.tables.get("policies")
    if table is None:
        return None
    rows = [
        [str(row[0]).replace("_", "-"), *(number(float(value)) for value in row[1:])]
        for row in table.itertuples(index=False)
    ]
    return Grid("TTFT coverage by routing policy", list(map(str, table.columns)), rows)


# -- the steps --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """From one answer to the next.

    Parameters
    ----------
    name
        The answer that it leads to.
    words
        What changes on the way.
    level
        Coverage there.
    change, low, high
        Change of coverage with its 95 % interval; NaN where it is not known.
    lacking
        Of what there are too few to tell the interval: layouts or runs; empty if there are enough.
    """

    name: str
    words: str
    level: float
    change: float
    low: float = math.nan
    high: float = math.nan
    lacking: str = ""


WORDS = {
    THEORY: "Sites at random on an endless plane, people everywhere alike, one load for all sites of a profile.",
    ENSEMBLE: "Random sites on the city's own land under its own demand: people are not spread evenly, land has an edge, "
    "loads differ from site to site, and how many sites there are is luck.",
    TWINS: "As many random sites as the city has, with its own mix of profiles.",
    FIELD: "The sites stand where they stand, and each holds what it holds.",
    "simulation": "People move and come in crowds, queues fill and drain.",
    STEERED: "Caches move from epoch to epoch.",
}


ADVERTISED = {
    "equilibrium": "Routers go by equilibrium waits, solved for a forecast of demand.",
    "state": "Routers go by waits that follow from the sites' queues when these were last reported.",
    "measured": "Routers go by the mean waits that sites measured last.",
}
"""What routers that read waits go by in the simulation."""


@dataclass(frozen=True)
class _Level:
    """Coverage in one answer, and half of its 95 % interval: 0 where it is exact, NaN where nobody knows."""

    name: str
    words: str
    value: float
    half: float


def steps_of(told: Told) -> list[Step]:
    """Return the answers from theory to the scenario as it is, each with what it changes in coverage.

    Poisson layouts have their means here, not their medians: steps add up.

    Parameters
    ----------
    told
        A run.
    """
    levels = list(_levels(told))
    if not levels:
        return []
    steps = [Step(levels[0].name, levels[0].words, levels[0].value, math.nan)]
    for before, now in pairwise(levels):
        change, half = now.value - before.value, math.hypot(before.half, now.half)
        if now.name == STEERED:
            half = math.nan if told.earned is None else told.earned[1]
        steps.append(_step(before, now, change, half))
    return steps


def _step(before: _Level, now: _Level, change: float, half: float) -> Step:
    """Return a step with its interval, or without where that says nothing.

    It says nothing where it holds all that is possible: an end that is not exact anywhere from no request to all.
    """
    ends = [each.value for each in (before, now) if each.half != 0.0]
    unknown = any(value - half <= 0.0 and value + half >= 1.0 for value in ends)
    if now.name in (ENSEMBLE, TWINS) or before.name in (ENSEMBLE, TWINS):
        unknown, lacking = unknown or math.isnan(half), "layouts"  # one layout has no interval
    else:
        lacking = "runs"
    if unknown:
        return Step(now.name, now.words, now.value, change, lacking=lacking)
    return Step(now.name, now.words, now.value, change, change - half, change + half)


def _levels(told: Told) -> Iterator[_Level]:
    """Yield the answers that the run has, in the order of the steps."""
    for kind in (THEORY, ENSEMBLE, TWINS, FIELD):
        value = told.value("coverage", told.column(kind))[0]
        half = 0.0
        if kind in (ENSEMBLE, TWINS):
            sample = told.layouts("Poisson" if kind == ENSEMBLE else "fixed")
            value, low, high = interval(sample) if len(sample) else (math.nan,) * 3
            half = (high - low) / 2
        if not math.isnan(value):
            yield _Level(kind, WORDS[kind], value, half)
    for column in dict.fromkeys((told.own, told.as_it_is)):
        value, low, high = told.value("coverage", column)
        if column is not None and not math.isnan(value):
            kind, _, advertised = column.partition(": ")
            words = " ".join((WORDS[kind], ADVERTISED[advertised])) if advertised else WORDS[kind]
            yield _Level(column, words, value, (high - low) / 2)


def change_words(step: Step) -> str:
    """Return the change of a step in points, with its interval."""
    if math.isnan(step.change):
        return ""
    half = 50 * (step.high - step.low)
    told = "" if math.isnan(half) or half == 0.0 else f" ± {half:.1f}"
    return f"{100 * step.change:+.1f}{told}".replace("-", "−")


def steps_table(steps: Sequence[Step]) -> Steps:
    """Return the steps as a waterfall: first the level of theory, then what each step adds or takes.

    Parameters
    ----------
    steps
        At least one step.
    """
    seen = [
        each for step in steps for each in (step.level, step.level - step.change + step.high) if each == each
    ]
    seen += [step.level - step.change + step.low for step in steps if step.low == step.low]
    low = 0.0 if min(seen) < 0.5 * max(seen) else max(0.0, math.floor(10 * min(seen) - 0.5) / 10)
    high = min(1.0, math.ceil(10 * max(seen) + 0.2) / 10)
    rows = [
        (step.name, change_words(step), percent(step.level), _step_words(step), _bar(step, low, high))
        for step in steps
    ]
    note = (
        f"Bars run from {100 * low:.0f} % to {100 * high:.0f} % of requests in time; a line through a bar's end is the 95 % "
        "interval of the step. Poisson layouts: means here, medians in the table above."
    )
    return Steps("From theory to the simulated city, in points of coverage", rows, note)


def _step_words(step: Step) -> str:
    """Return what is new in a step, and where there is no interval of what of there is too little."""
    return f"{step.words} Interval: too few {step.lacking} to tell." if step.lacking else step.words


def steps_beside(runs: Sequence[Told]) -> Grid | None:
    """Return the steps of several runs, one column a run; None if no run has any.

    Parameters
    ----------
    runs
        The runs.
    """
    found = [{step.name.partition(":")[0]: step for step in steps_of(each)} for each in runs]
    names = [name for name in WORDS if any(name in each for each in found)]
    rows = [[name, *(_beside(each.get(name)) for each in found)] for name in names]
    note = "Share of requests in time, and in brackets what the step from the answer before it changes, in points."
    heads = ["answer", *(each.name for each in runs)]
    return Grid("From theory to the simulated city", heads, rows, note) if rows else None


def _beside(step: Step | None) -> str:
    if step is None:
        return "–"
    change = change_words(step) + (f", too few {step.lacking} to tell" if step.lacking else "")
    return f"{percent(step.level)} ({change})" if change else percent(step.level)


def _bar(step: Step, low: float, high: float) -> Bar:
    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    if math.isnan(step.change):
        return Bar(0.0, place(step.level), "level")
    before = step.level - step.change
    left, right = sorted((place(before), place(step.level)))
    tone = "better" if step.change >= 0 else "worse"
    if math.isnan(step.low) or step.low == step.high:
        return Bar(left, right, tone)
    return Bar(left, right, tone, place(max(before + step.low, low)), place(min(before + step.high, high)))
