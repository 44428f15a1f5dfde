"""A picture of a run's map, for pages that cannot hold an interactive one."""

from __future__ import annotations

import io
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from geoedge.errors import OutputError
from geoedge.files import write_whole
from geoedge.maps.outlines import scale_bar, street_lines
from geoedge.maps.rundata import by_epoch, each, site_load
from geoedge.maps.scales import REGION_OPACITY, BinnedScale, CategoryScale, utilisation_scale
from geoedge.maps.view import RunView
from geoedge.maps.words import percent
from geoedge.style import MARKERS
from geoedge.texts import plain_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from geoedge.city import City
    from geoedge.results import Results

__all__ = ["HOT", "SEA", "draw_land", "draw_scale_bar", "draw_sites", "draw_streets", "picture"]

SEA, LAND, INK, QUIET, HOT = "#dfe7ee", "#ffffff", "#1d2733", "#4a5766", "#b3123f"
STREETS = (("#9aa5b1", 0.35), ("#8793a1", 0.6), ("#5d6977", 1.1))
HOTTEST = 5


def picture(
    results: Results,
    city: City | None = None,
    path: str | os.PathLike[str] | None = None,
    *,
    epoch: int | None = None,
    request_type: int = 0,
    width_px: int = 1400,
) -> bytes:
    """Draw serving regions, sites and the hottest sites of one epoch, and return the picture as PNG.

    Equal input draws equal bytes.

    Parameters
    ----------
    results
        The run.
    city
        Its city; by default the one that the run's scenario names.
    path
        Where to write the picture as well, whole or not at all.
    epoch
        Which epoch, counted from 0; by default the one with the most missed requests.
    request_type
        Whose serving regions, counted from 0.
    width_px
        Width of the picture [pixel].

    Raises
    ------
    OutputError
        If there is no such epoch or request type, or the file cannot be written.
    """
    view = RunView.of(results, city)
    shown = _worst_epoch(view.epochs) if epoch is None else epoch
    _check("epoch", shown, len(view.epoch_names))
    _check("request_type", request_type, len(results.meta["type_names"]))
    import matplotlib as mpl

    with mpl.rc_context(mpl.rcParamsDefault):  # the caller's style must not change the bytes
        data = _png(_draw(view, shown, request_type), width_px)
    if path is not None:
        write_whole(Path(path), data, "picture")
    return data


def _check(name: str, value: int, count: int) -> None:
    if not 0 <= value < count:
        msg = f"picture: `{name}` must lie in 0..{count - 1}, not {value}"
        raise OutputError(msg)


def _worst_epoch(epochs: pd.DataFrame) -> int:
    missed = {epoch: float(rows["missed"].sum()) for epoch, rows in by_epoch(epochs)}
    return max(missed, key=lambda epoch: (missed[epoch], -epoch))


def _png(figure: Figure, width_px: int) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # names may be in any script
        figure.savefig(
            buffer, format="png", dpi=width_px / figure.get_figwidth(), metadata={"Software": None}
        )
    return buffer.getvalue()


def _draw(view: RunView, epoch: int, request_type: int) -> Figure:
    from matplotlib.figure import Figure

    land = view.land(5.0)
    west, south, east, north = land.bounds
    height = float(np.clip(7.6 * (north - south) / (east - west) + 1.6, 5.0, 12.0))
    figure = Figure(figsize=(10.0, height), facecolor="white")
    axes = figure.add_axes((0.0, 0.4 / height, 0.76, 1.0 - 1.3 / height))
    margin = 0.03 * (east - west)
    axes.set(xlim=(west - margin, east + margin), ylim=(south - 2 * margin, north + margin))
    axes.set(aspect="equal", adjustable="datalim", facecolor=SEA)
    axes.set(xticks=[], yticks=[])
    for side in axes.spines.values():
        side.set_visible(False)
    rows = by_epoch(view.epochs)
    state = dict(rows)[epoch].merge(view.results.sites[["site", "name", "x_m", "y_m"]], on="site")
    scale = utilisation_scale()
    draw_land(axes, land)
    _regions(axes, view, land, epoch, request_type)
    draw_streets(axes, view.city)
    size = 58 if len(state) <= 150 else 26
    draw_sites(axes, state, site_load(state), view.profiles, size)
    _hottest(axes, state)
    draw_scale_bar(axes)
    _words(figure, view, epoch, request_type, height)
    _legends(figure, [_profile_block(view.profiles), _load_block(scale), _hot_block(state)], height)
    return figure


def draw_land(axes: Axes, land: Any) -> None:
    """Draw the land.

    Parameters
    ----------
    axes
        Axes in metres of the city.
    land
        Shapely (multi)polygon [m].
    """
    _areas(axes, land, facecolor=LAND, edgecolor="#7b8794", linewidth=0.8, zorder=1)


def _areas(axes: Axes, area: Any, **style: Any) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    rings = shapely.get_rings(shapely.get_parts(area))
    if len(rings):
        outline = Outline.make_compound_path(
            *(Outline(shapely.get_coordinates(ring), closed=True) for ring in rings)
        )
        axes.add_patch(PathPatch(outline, **style))


def _regions(axes: Axes, view: RunView, land: Any, epoch: int, request_type: int) -> None:
    for region in view.regions(land, 2.0, epoch=epoch, request_type=request_type):
        colour = view.profiles.colours[region.profile]
        _areas(axes, region.geometry, facecolor=colour, alpha=REGION_OPACITY, linewidth=0, zorder=2)
        _areas(axes, region.geometry, facecolor="none", edgecolor="#2b333d", linewidth=0.7, zorder=3)


def draw_streets(axes: Axes, city: City, *, strength: float = 1.0, tolerance_m: float = 1.0) -> None:
    """Draw the streets, main roads strongest.

    Parameters
    ----------
    axes
        Axes in metres of the city.
    city
        The city.
    strength
        Factor of the widths of lines.
    tolerance_m
        How far a line may lie from the street [m].
    """
    from matplotlib.collections import LineCollection

    drawn = street_lines(city.streets, tolerance_m)
    for lines, (colour, width) in zip(drawn, STREETS, strict=True):
        parts = [shapely.get_coordinates(line) for line in lines]
        bundle = LineCollection(parts, colors=colour, linewidths=strength * width, zorder=4)
        axes.add_collection(bundle, autolim=False)


def draw_sites(
    axes: Axes, state: pd.DataFrame, load: NDArray[np.float64], profiles: CategoryScale, size: float
) -> None:
    """Draw sites with the colour of their load and the shape of their profile.

    Parameters
    ----------
    axes
        Axes in metres of the city.
    state
        One row a site: x_m, y_m, profile.
    load
        Load of each, 1 at capacity, shape (n,).
    profiles
        Shapes of the profiles.
    size
        Size of a site [square points].
    """
    scale = utilisation_scale()
    colours = np.array(scale.colours)[scale.index(load)]
    for profile, shape in enumerate(profiles.shapes):
        held = (state["profile"] == profile).to_numpy()
        axes.scatter(
            state["x_m"][held],
            state["y_m"][held],
            s=size,
            c=colours[held],
            marker=MARKERS[shape],
            edgecolors="#10151b",
            linewidths=1.0 if size >= 20 else 0.5,
            zorder=6,
        )


def _worst_sites(state: pd.DataFrame) -> pd.DataFrame:
    return state[state["missed"] > 0].sort_values(["missed", "site"], ascending=[False, True]).head(HOTTEST)


def _hottest(axes: Axes, state: pd.DataFrame) -> None:
    for rank, row in enumerate(each(_worst_sites(state)), start=1):
        axes.annotate(
            str(rank),
            (row.x_m, row.y_m),
            xytext=(9, 9),
            textcoords="offset points",
            ha="center",
            va="center",
            color="white",
            fontsize=7.5,
            fontweight="bold",
            bbox={"boxstyle": "circle,pad=0.28", "facecolor": HOT, "edgecolor": "white", "linewidth": 1},
            zorder=8,
        )


LINE_LENGTH = 160
"""Characters of a line under the title at its full size; a longer one is set smaller."""


def draw_scale_bar(axes: Axes) -> None:
    """Draw a scale bar of a round length into the south-west corner of axes in metres."""
    west, east = axes.get_xlim()
    south, north = axes.get_ylim()
    length, label = scale_bar((east - west) / 4)
    x, y = west + 0.025 * (east - west), south + 0.03 * (north - south)
    axes.plot([x, x + length], [y, y], color=INK, linewidth=2, solid_capstyle="butt", zorder=9)
    axes.text(
        x + length / 2, y + 0.012 * (north - south), label, ha="center", color=INK, fontsize=8, zorder=9
    )


def _words(figure: Figure, view: RunView, epoch: int, request_type: int, height: float) -> None:
    meta = view.results.meta
    title = plain_text(meta.get("title") or view.results.label, 90)
    kind = plain_text(meta["type_names"][request_type])
    lines = [
        f"{view.epoch_names[epoch]} · who serves a request of type “{kind}” · sites by load",
        *view.lines()[:1],
    ]
    figure.text(
        0.014,
        1 - 0.28 / height,
        title,
        fontsize=13,
        fontweight="bold",
        color=INK,
        va="center",
        parse_math=False,
    )
    for at, line in enumerate(lines):
        below = 0.53 + 0.19 * at
        size = 8.6 * min(1.0, LINE_LENGTH / len(line))
        figure.text(
            0.014, 1 - below / height, line, fontsize=size, color=QUIET, va="center", parse_math=False
        )
    credit = "".join(words for words, _ in view.credit())
    figure.text(0.014, 0.2 / height, credit, fontsize=7.2, color=QUIET, va="center", parse_math=False)


Block = tuple[str, list[Any], list[str]]


def _legends(figure: Figure, blocks: list[Block], height: float) -> None:
    """Write legends one under the other, right of the map: title, handles and labels each."""
    top = 1 - 0.95 / height
    for title, handles, labels in blocks:
        if not handles:
            continue
        figure.legend(
            handles,
            [label.replace("$", r"\$") for label in labels],
            title=title,
            loc="upper left",
            bbox_to_anchor=(0.765, top),
            frameon=False,
            fontsize=8.4,
            title_fontproperties={"size": 8.8, "weight": "bold"},
            alignment="left",
            borderaxespad=0.0,
        )
        top -= (0.32 + 0.205 * len(handles)) / height


def _profile_block(profiles: CategoryScale) -> Block:
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 2, "linestyle": ""}
    marks = [
        Line2D([], [], marker=MARKERS[shape], color=colour, **style)
        for shape, colour in zip(profiles.shapes, profiles.colours, strict=True)
    ]
    return "Profile (shape, region)", marks, [plain_text(name, 24) for name in profiles.names]


def _load_block(scale: BinnedScale) -> Block:
    from matplotlib.patches import Patch

    areas = [Patch(facecolor=colour, edgecolor="#8a95a1") for colour in scale.colours]
    labels = [scale.label(level) for level in range(len(areas))]
    return f"{scale.title} (site colour)", areas, labels


def _hot_block(state: pd.DataFrame) -> Block:
    from matplotlib.lines import Line2D

    worst, total = _worst_sites(state), max(float(state["missed"].sum()), 1.0)
    ranks = [Line2D([], [], marker=f"${rank}$", color=HOT, linestyle="") for rank in range(1, len(worst) + 1)]
    labels = [
        f"{plain_text(row.name, 22) or f'Site {row.site}'}  {percent(row.missed / total)}"
        for row in each(worst)
    ]
    return "Hottest sites (share of misses)", ranks, labels
