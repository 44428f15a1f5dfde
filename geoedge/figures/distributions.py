"""How times and loads are distributed: TTFT over requests, waits against Erlang's formula, load over sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.figures.given import asked, legend_across, named, ttft_of
from geoedge.maps.samples import NO_WAIT_S, Served
from geoedge.maps.scales import profile_scale
from geoedge.style import INK, MARKERS, QUIET, colour_of, sheet, shown
from geoedge.style.marks import counted, legend_room, line_styles, percents, round_ticks
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from geoedge.results import Results
    from geoedge.style import PaperFigure

    Floats = NDArray[np.float64]

__all__ = ["load_distribution", "ttft_distribution", "wait_distribution"]

POINTS = 400
"""Points of a curve; a file with all requests would be no figure."""
TAIL = 5e-4
"""Share of requests beyond either end of the axis of times."""
LEAST_S = 1e-3
"""Where an axis of times begins at the earliest [s]."""
RARE = 1e-3
"""Share of requests at which the axis of waits ends."""


def ttft_distribution(*runs: Results, names: Sequence[str] | None = None, columns: int = 1) -> PaperFigure:
    """Draw the share of requests whose first token comes within a time, for one run or several.

    On the curve of a single run stand theory and field at the target, if the run has asked them. Where requests were
    rejected a curve ends below 100 %.

    Parameters
    ----------
    *runs
        The runs.
    names
        What to call them; labels, titles or rules by default, whichever tells them apart.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If there is no run, or one without requests or without any that was served.
    """
    asked("ttft_distribution", runs)
    called = named("ttft_distribution", runs, names)
    times = [ttft_of("ttft_distribution", run) for run in runs]
    with sheet(columns, 2.4 + legend_room(len(runs))) as figure:
        axes = figure.subplots()
        for run, each, name, style in zip(runs, times, called, line_styles(len(runs)), strict=True):
            x, y = _curve(each)
            share = f"{100.0 * run.ttft_coverage(run.meta['ttft_target_s']):.1f} %"
            label = f"{name} {share}" if len(runs) == 1 else f"{name}: {share} of {counted(len(each))}"
            axes.plot(x, 100.0 * y, label=label, **style)
        ends = np.array([_finite_ends(each) for each in times])
        round_ticks(axes, *_span(float(ends[:, 0].min()), float(ends[:, 1].max())))
        percents(axes, "first token by then [% of requests]")
        axes.set_xlabel("time to first token, TTFT [s]")
        axes.grid()
        targets = _targets(axes, runs)
        if len(runs) == 1:
            _predicted(axes, runs[0])
            title = f"{counted(len(times[0]))}, in time:"
            box = axes.legend(loc="lower right", title=title, alignment="left", frameon=True)
            box.get_frame().set(facecolor="white", edgecolor="none", alpha=0.85)
        else:
            figure.legend(loc="outside lower center", title=f"in time ({targets}):")
    return figure


def _curve(ordered: Floats) -> tuple[Floats, Floats]:
    """Return times at some of their ranks, the ends closely, and the share of requests up to each."""
    n = int(np.isfinite(ordered).sum())
    body = np.linspace(0, n - 1, POINTS)
    tail = np.geomspace(1.0, n, POINTS // 4) - 1.0
    ranks = np.unique(np.rint(np.concatenate([body, tail, n - 1.0 - tail])).astype(np.int64))
    x = np.unique(ordered[ranks])
    return x, np.searchsorted(ordered, x, side="right") / len(ordered)


def _finite_ends(ordered: Floats) -> tuple[float, float]:
    finite = ordered[np.isfinite(ordered)]
    return float(np.quantile(finite, TAIL)), float(np.quantile(finite, 1.0 - TAIL))


def _span(low: float, high: float) -> tuple[float, float]:
    """Return ends of a logarithmic axis that is not too short, with a little room."""
    low = max(low, LEAST_S) * 0.9
    return low, max(high, 4.0 * low) * 1.1


def _targets(axes: Axes, runs: Sequence[Results]) -> str:
    """Draw a line at each target that lies on the axis, and return all in words."""
    low, high = axes.get_xlim()
    targets = sorted({float(run.meta["ttft_target_s"]) for run in runs})
    for target in targets:
        if low < target < high:
            axes.axvline(target, color=QUIET, linewidth=0.7, zorder=1)
            where = axes.get_xaxis_transform()
            axes.text(
                target, 1.01, f"target {target:g} s", transform=where, ha="center", color=QUIET, fontsize=6.5
            )
    return ", ".join(f"{target:g} s" for target in targets)


def _predicted(axes: Axes, run: Results) -> None:
    """Mark what theory and field say at the target, if the run has asked them."""
    target, table = float(run.meta["ttft_target_s"]), run.tables.get("answers")
    if table is None or not {"metric", "column", "value"} <= set(table.columns):
        return
    rows = table[(table["metric"] == "coverage") & table["column"].str.startswith(("theory", "field"))]
    for (name, value), mark in zip(zip(rows["column"], rows["value"], strict=True), "^sDv", strict=False):
        style: dict[str, Any] = {
            "color": colour_of(name),
            "markeredgecolor": "white",
            "markeredgewidth": 0.5,
            "markersize": 5,
        }
        label = f"{shown(name, 24)} {100.0 * value:.1f} %"
        axes.plot(target, 100.0 * value, mark, linestyle="", label=label, zorder=5, **style)


def wait_distribution(run: Results, *, columns: int = 1) -> PaperFigure:
    """Draw the share of requests that wait longer than a time, against M/M/c at rest and in the time that it has.

    Both yardsticks have each site's own arrivals, mean service time and servers in each epoch and are averaged by
    requests; where a site failed within an epoch, its arrivals are those per second that it was open. On the
    logarithmic axis an exponential tail is a straight line. Erlang's formula knows queues at rest under loads that are
    known, and near capacity an epoch gives neither: in the time that such a queue takes to come to rest, chance moves
    the load that is measured by most of what it leaves free, and as waits grow ever faster with the load, what that
    adds is more than what it takes away. So the tail of the formula is too long, and the figure says which share of
    requests meets such sites and epochs. The second yardstick is the same queue followed from the empty start, with
    what one epoch leaves to the next. It still believes the loads as measured, services to be exponential, and arrivals
    not to look at queues, as they do not where prices hold for an epoch (`routing.advertise` = equilibrium).

    Parameters
    ----------
    run
        The run.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If the run has no request, or none that waited.
    """
    asked("wait_distribution", (run,))
    served = Served.of(run)
    wait = np.sort(served.wait_s) - NO_WAIT_S
    if not len(wait) or wait[-1] <= 0.0:
        msg = f"wait_distribution: no request of run {plain_text(run.label)!r} waited at a site; there is no wait to draw"
        raise GeoEdgeError(msg)
    top = float(np.quantile(wait, 1.0 - RARE)) or float(wait[-1])
    times = np.linspace(0.0, max(top, float(wait[-1]) * 1e-3), POINTS // 2)
    with sheet(columns, 2.4 + legend_room(3)) as figure:
        axes = figure.subplots()
        longer = 1.0 - np.searchsorted(wait, times, side="right") / len(wait)
        some = longer > 0.0
        axes.plot(times[some], 100.0 * longer[some], color=INK, label=f"simulated, {counted(len(wait))}")
        theory = colour_of("theory")
        label = "M/M/c in the time it has, at measured loads"
        axes.plot(times, 100.0 * served.in_time(times), "-.", color=theory, label=label)
        label = "Erlang C, M/M/c at rest, at measured loads"
        axes.plot(times, 100.0 * (1.0 - _erlang(served, times)), "--", color=QUIET, label=label)
        axes.set_yscale("log")
        percents(axes, "wait longer [% of requests]", log=True, least=100.0 * RARE)
        axes.set_xlabel("wait in the queue of a site [s]")
        axes.set_xlim(0.0, float(times[-1]))
        figure.legend(loc="outside lower center")
        axes.grid()
        _restless(axes, served)
    return figure


def _erlang(served: Served, times: Floats) -> Floats:
    """Return the share of all requests that wait at most so long by the formula."""
    by_site = served.erlang(np.broadcast_to(times, (served.count.shape[1], len(times))))
    weights = served.count.sum(axis=0)
    return np.asarray(weights @ by_site / weights.sum())


def _restless(axes: Axes, served: Served) -> None:
    """Say how many requests meet queues that do not come to rest, or not at all as capacity is exceeded."""
    share, over = (
        float(served.count[chosen].sum() / served.count.sum())
        for chosen in (~served.rests(), served.offered >= served.servers)
    )
    if share > 0.0:
        beyond = f",\n{100.0 * over:.1f} % beyond capacity" if over > 0.0 else ""
        words = f"{100.0 * share:.1f} % of requests at sites and epochs\nwithout time to come to rest{beyond}"
        axes.text(0.02, 0.03, words, transform=axes.transAxes, fontsize=6.5, color=QUIET)


def load_distribution(*runs: Results, names: Sequence[str] | None = None, columns: int = 1) -> PaperFigure:
    """Draw how busy the sites are, from the idlest to the busiest, for one run or several.

    Sites of a single run are marked by the profile that they hold.

    Parameters
    ----------
    *runs
        The runs.
    names
        What to call them; labels, titles or rules by default, whichever tells them apart.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If there is no run, or one without requests.
    """
    asked("load_distribution", runs)
    called = named("load_distribution", runs, names)
    loads = [_site_loads(run) for run in runs]
    marked = [] if len(runs) > 1 else _held_names(runs[0], loads[0][1])
    across = (
        1 if len(runs) > 1 else legend_across([f"{called[0]}, {len(runs[0].sites)} sites", *marked], columns)
    )
    with sheet(columns, 2.45 + 0.14 * -(-(len(runs) + len(marked)) // across)) as figure:
        axes = figure.subplots()
        axes.axhline(100.0, color=QUIET, linewidth=0.7, zorder=1)
        for run, (load, profile), name, style in zip(
            runs, loads, called, line_styles(len(runs)), strict=True
        ):
            order = np.argsort(load, kind="stable")
            share = 100.0 * np.arange(len(load) + 1) / len(load)
            label = f"{name}, {len(load)} site" + ("" if len(load) == 1 else "s")
            axes.stairs(100.0 * load[order], share, baseline=None, label=label, **style)
            if len(runs) == 1:
                _held(axes, (share[1:] + share[:-1]) / 2.0, 100.0 * load[order], profile[order], run)
        axes.set_xlabel("sites, the idlest first [%]")
        percents(axes, "busy servers [%]")
        axes.set_xlim(0.0, 100.0)
        axes.grid()
        figure.legend(loc="outside lower center", ncols=across, columnspacing=1.0)
    return figure


def _site_loads(run: Results) -> tuple[Floats, NDArray[np.int64]]:
    """Return busy seconds over servers' seconds of every site after the warm-up, and the profile it held longest."""
    held = run.measured_epochs.groupby(["site", "profile"])["server_s"].sum().reset_index()
    longest = held.sort_values(["site", "server_s"], kind="stable").groupby("site")["profile"].last()
    load = run.site_table().sort_values("site")["utilization"]
    return load.to_numpy(dtype=np.float64), longest.to_numpy(dtype=np.int64)


def _held_names(run: Results, profile: NDArray[np.int64]) -> list[str]:
    """Return the profiles that sites hold, as they are called in the legend."""
    held = set(profile.tolist())
    return [shown(str(name), 24) for place, name in enumerate(run.meta["profile_names"]) if place in held]


def _held(axes: Axes, x: Floats, y: Floats, profile: NDArray[np.int64], run: Results) -> None:
    """Mark sites by the profile they hold, as on the map."""
    scale = profile_scale(run.meta["profile_names"])
    for place, (name, colour, shape) in enumerate(zip(scale.names, scale.colours, scale.shapes, strict=True)):
        part = profile == place
        if part.any():
            axes.plot(
                x[part],
                y[part],
                MARKERS[shape],
                color=colour,
                markeredgecolor=INK,
                markeredgewidth=0.4,
                label=shown(name, 24),
            )
