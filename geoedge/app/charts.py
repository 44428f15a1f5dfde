"""The live charts: one measure each over the window of the day, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.app.parts import in_seconds
from geoedge.app.svg import Drawing, nice_ticks, polyline
from geoedge.units import GB, clock

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from geoedge.app.model import CityModel
    from geoedge.study import Study

    Floats = NDArray[np.float64]

__all__ = ["bytes_chart", "charts", "coverage_chart", "load_chart", "ttft_chart"]

WIDTH, HEIGHT = 420.0, 168.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 18.0, 30.0, 24.0
FLOOR = HEIGHT - BOTTOM
LEAST_TTFT = 1.5
"""A chart of TTFT reaches at least so many targets."""
LEAST_BYTES = 1e9
"""A chart of bytes reaches at least so far [B]."""
TICKS = 6
"""Times of day that are written below a chart, about."""


@dataclass(frozen=True)
class Axes:
    """Where a time of day and a value lie in a chart.

    Parameters
    ----------
    start_s, end_s
        The window [s since midnight].
    top
        Value at the upper edge.
    """

    start_s: float
    end_s: float
    top: float

    def x(self, time_s: Floats | float) -> Floats:
        """Return where times lie."""
        share = (np.asarray(time_s) - self.start_s) / (self.end_s - self.start_s)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, value: Floats | float) -> Floats:
        """Return where values lie; those beyond the edge on it, and those that are unbounded too."""
        return FLOOR - (FLOOR - TOP) * np.minimum(np.asarray(value, dtype=np.float64) / self.top, 1.0)


def charts(model: CityModel) -> tuple[str, ...]:
    """Return all charts of a model without a problem, in the order of the page."""
    return tuple(make(model) for make in (coverage_chart, ttft_chart, load_chart, bytes_chart))


def coverage_chart(model: CityModel) -> str:
    """Return the share of requests in time over the day, with the share that is asked for."""
    rows, study = _rows(model), _study(model)
    wanted, target = study.scenario.target.reliability, study.scenario.target.ttft_target_s
    shown = Chart.empty(study, f"Requests in time, TTFT at most {target:g} s", 1.0, _percent)
    shown.level(wanted, f"asked for: {_percent(wanted)}")
    shown.line(rows["time_s"], rows["coverage"], "main")
    return shown.told(_now(rows["coverage"], _percent))


def ttft_chart(model: CityModel) -> str:
    """Return the TTFT that 95 % of requests keep to over the day, with the target."""
    rows, study = _rows(model), _study(model)
    target, p95 = study.scenario.target.ttft_target_s, rows["p95_ttft_s"]
    bounded = p95[np.isfinite(p95)]
    top = max(LEAST_TTFT * target, float(bounded.max()) if len(bounded) else 0.0)
    shown = Chart.empty(study, "p95 of the time to first token", top, in_seconds)
    shown.level(target, f"target: {target:g} s")
    shown.line(rows["time_s"], p95, "main")
    return shown.told(_now(p95, in_seconds))


def load_chart(model: CityModel) -> str:
    """Return the utilisation of all sites together and of the busiest one over the day."""
    rows = _rows(model)
    shown = Chart.empty(_study(model), "Servers busy: all sites, and the busiest", 1.0, _percent)
    shown.line(rows["time_s"], rows["busiest"], "second")
    shown.line(rows["time_s"], rows["utilization"], "main")
    return shown.told(f"{_now(rows['utilization'], _percent)} and {_now(rows['busiest'], _percent)}")


def bytes_chart(model: CityModel) -> str:
    """Return what the controller moved in each epoch."""
    study, moved = _study(model), model.epoch_bytes()
    most = np.nanmax(moved) if np.isfinite(moved).any() else 0.0
    shown = Chart.empty(study, "Moved by the controller, each epoch", max(LEAST_BYTES, float(most)), _bytes)
    shown.bars(study.epochs, moved)
    done = moved[np.isfinite(moved)]
    return shown.told(f"{_bytes(float(done[-1]))} in this epoch" if len(done) else "–")


class Chart:
    """A chart on its way: the empty axes first, then what they show.

    Parameters
    ----------
    drawing
        Where it is drawn.
    axes
        Where times and values lie.
    title
        What it shows.
    """

    def __init__(self, drawing: Drawing, axes: Axes, title: str) -> None:
        self.drawing, self.axes, self.title = drawing, axes, title

    @classmethod
    def empty(cls, study: Study, title: str, top: float, words: Callable[[float], str]) -> Chart:
        """Return a chart with its axes, the warm-up shaded, and nothing in it.

        Parameters
        ----------
        study
            Whose window it covers.
        title
            What it shows.
        top
            What the axis of values must reach.
        words
            How a value is written.
        """
        levels = nice_ticks(top)
        axes = Axes(study.epochs[0][0], study.epochs[-1][1], levels[-1])
        chart = cls(Drawing(WIDTH, HEIGHT, label=title, style_class="ge-chart"), axes, title)
        warm = axes.start_s + study.scenario.simulation.warm_up_s
        chart._shade(axes.start_s, warm)
        for level in levels:
            y = float(axes.y(level))
            chart.drawing.add("path", "grid", d=f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}")
            chart.drawing.text(words(level), "tick", x=LEFT - 6, y=y + 4, text_anchor="end")
        for time_s in _times(axes.start_s, axes.end_s):
            chart.drawing.text(
                clock(time_s), "tick", x=float(axes.x(time_s)), y=HEIGHT - 7, text_anchor="middle"
            )
        return chart

    def _shade(self, start_s: float, end_s: float) -> None:
        x, end = float(self.axes.x(start_s)), float(self.axes.x(end_s))
        if end > x:
            self.drawing.add(
                "rect", "warm-up", title="warm-up", x=x, y=TOP, width=end - x, height=FLOOR - TOP
            )

    def level(self, value: float, words: str) -> None:
        """Draw a value that things are measured by."""
        y = float(self.axes.y(value))
        self.drawing.add("path", "level", title=words, d=f"M{LEFT} {y:.1f}H{WIDTH - RIGHT}")

    def line(self, time_s: pd.Series, value: pd.Series, style_class: str) -> None:
        """Draw a measure over time, and its last value as a dot."""
        x, y = self.axes.x(time_s.to_numpy()), self.axes.y(value.to_numpy())
        places = np.column_stack([x, y])
        self.drawing.add("path", f"line {style_class}", d=polyline(places))
        if len(places) and np.isfinite(places[-1]).all():
            self.drawing.add("circle", f"dot {style_class}", cx=places[-1, 0], cy=places[-1, 1], r=3.2)

    def bars(self, spans: Sequence[tuple[float, float]], value: Floats) -> None:
        """Draw one bar a span of time; none where the value is not a number."""
        for (start, end), height in zip(spans, value.tolist(), strict=True):
            if height != height:
                continue
            x, width = float(self.axes.x(start)), float(self.axes.x(end) - self.axes.x(start))
            y = float(self.axes.y(height))
            words = f"{clock(start)}–{clock(end)}: {_bytes(height)}"
            self.drawing.add(
                "rect", "column", title=words, x=x + 1, y=y, width=max(width - 2, 1), height=FLOOR - y
            )

    def told(self, now: str) -> str:
        """Return the chart with its title and its last value in words."""
        self.drawing.text(self.title, "heading", x=0.0, y=14.0)
        self.drawing.text(now, "now", x=WIDTH - 2, y=14.0, text_anchor="end")
        self.drawing.root.set("aria-label", f"{self.title}: now {now}")
        return self.drawing.markup()


def _study(model: CityModel) -> Study:
    assert model.city is not None, "a model with a problem has no charts"
    return model.city.study


def _rows(model: CityModel) -> pd.DataFrame:
    rows: pd.DataFrame = model.datacollector.get_model_vars_dataframe().astype(np.float64)
    return rows


def _times(start_s: float, end_s: float) -> Floats:
    """Return round times of day within a window [s since midnight]."""
    minutes = (5, 10, 15, 30, 60, 120, 180, 240, 360)
    span = end_s - start_s
    step = 60.0 * next((m for m in minutes if span / (60 * m) <= TICKS), minutes[-1])
    return np.arange(np.ceil(start_s / step), np.floor(end_s / step) + 1) * step


def _now(values: pd.Series, words: Callable[[float], str]) -> str:
    return words(float(values.iloc[-1])) if len(values) else "–"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %" if np.isfinite(value) else "–"


def _bytes(value: float) -> str:
    return f"{value / GB:.3g} GB"
