"""What explaining a gap gives: the steps, what they add up to, and the means over orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from geoedge.compare.gap.effects import EFFECTS, RUN_EFFECTS
from geoedge.compare.gap.readings import Interval, Reading

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.compare.gap.orders import World
    from geoedge.style import PaperFigure

__all__ = ["METRICS", "Gap", "Spread", "Step"]

METRICS = {"coverage": "share of requests in time", "wait_s": "mean wait"}
"""What a gap may be a gap in."""


@dataclass(frozen=True)
class Step:
    """An effect's place in the chain.

    Parameters
    ----------
    effect
        Key of the effect.
    change
        What it changes, with its 95 % interval.
    after
        The metric with all effects so far.
    reason
        Why it is absent, else empty.
    """

    effect: str
    change: Interval
    after: float
    reason: str

    @property
    def label(self) -> str:
        """Name of the effect as a step of the chain."""
        return EFFECTS[self.effect].in_chain or EFFECTS[self.effect].label


class Spread(NamedTuple):
    """What an effect changes over all orders that make sense: on average, at least and at most."""

    mean: Interval
    least: float
    most: float


@dataclass(frozen=True, eq=False)
class Gap:
    """From theory to city, an effect at a time.

    Parameters
    ----------
    metric
        ``"coverage"``, a share, or ``"wait_s"``, in seconds.
    title
        What was studied.
    ttft_target_s
        TTFT target τ₀ [s].
    steps
        Effects, in the order in which they were switched on.
    start, end, total
        The metric in theory, with all effects on, and the difference, with 95 % intervals.
    spreads
        What each effect that is not absent changes over all orders (Shapley values); None unless asked for.
    orders
        How many orders of the effects make sense.
    notes
        How it was computed and what to beware of, a sentence each.
    readings
        What every world answered, by the effects that were on.
    """

    metric: str
    title: str
    ttft_target_s: float
    steps: tuple[Step, ...]
    start: Interval
    end: Interval
    total: Interval
    spreads: Mapping[str, Spread] | None
    orders: int
    notes: tuple[str, ...]
    readings: Mapping[World, Reading] = field(repr=False)

    @property
    def simulated(self) -> bool:
        """Whether the chain ends in a simulation."""
        return any(step.effect in RUN_EFFECTS for step in self.steps)

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row an effect: effect, label, change, low, high (95 % interval), after, reason (why it is absent, else
        empty). Changes of coverage are shares: 0.01 is a point."""
        import pandas as pd

        rows = [(step.effect, step.label, *step.change, step.after, step.reason) for step in self.steps]
        return pd.DataFrame(rows, columns=["effect", "label", "change", "low", "high", "after", "reason"])

    @cached_property
    def shapley(self) -> pd.DataFrame | None:
        """One row an effect: effect, label, change (mean over all orders), low, high, least, most; None unless asked for."""
        import pandas as pd

        if self.spreads is None:
            return None
        nothing = Spread(Interval(0.0, 0.0, 0.0), 0.0, 0.0)
        found = [(step, self.spreads.get(step.effect, nothing)) for step in self.steps]
        rows = [
            (step.effect, EFFECTS[step.effect].label, *each.mean, each.least, each.most)
            for step, each in found
        ]
        return pd.DataFrame(rows, columns=["effect", "label", "change", "low", "high", "least", "most"])

    def worded(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return the heading and the rows of the table in words, for people."""
        from geoedge.compare.gap.words import level, span

        names = ["", "change", METRICS[self.metric]]
        rows = [["Poisson theory", "", level(self.start.value, self.metric)]]
        for step in self.steps:
            change = f"0, {step.reason}" if step.reason else span(step.change, self.metric)
            rows.append([step.label, change, level(step.after, self.metric)])
        rows.append(["in all", span(self.total, self.metric), ""])
        if self.spreads is not None:
            names.append(f"mean of {self.orders} orders")
            means = [self.spreads.get(step.effect) for step in self.steps]
            words = ["" if each is None else span(each.mean, self.metric) for each in means]
            rows = [[*row, word] for row, word in zip(rows, ["", *words, ""], strict=True)]
        return tuple(names), [tuple(row) for row in rows]

    def _shown(self) -> pd.DataFrame:
        import pandas as pd

        names, rows = self.worded()
        return pd.DataFrame(rows, columns=list(names)).set_index("")

    def __repr__(self) -> str:
        return self._shown().to_string()

    def _repr_html_(self) -> str:
        return str(self._shown().to_html())

    def sentences(self) -> list[str]:
        """Return what the gap says, a sentence each, the largest effects first."""
        from geoedge.compare.gap.words import sentences

        return sentences(self)

    def figure(self, *, columns: int = 2) -> PaperFigure:
        """Return the waterfall from theory to city, with 95 % intervals.

        Parameters
        ----------
        columns
            Columns of a paper, 1 or 2.
        """
        from geoedge.compare.gap.picture import waterfall

        return waterfall(self, columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the readings as plain values."""
        tables = {"table": self.table, "shapley": self.shapley}
        plain = {
            name: None if each is None else each.to_dict(orient="records") for name, each in tables.items()
        }
        values = {name: getattr(self, name)._asdict() for name in ("start", "end", "total")}
        words = {name: getattr(self, name) for name in ("metric", "title", "ttft_target_s", "orders")}
        return words | values | plain | {"notes": list(self.notes), "sentences": self.sentences()}
