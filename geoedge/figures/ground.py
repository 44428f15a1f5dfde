"""The city as a figure: land, streets, and sites by load, the hottest with their names."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.figures.given import asked
from geoedge.maps.scales import CategoryScale, utilisation_scale
from geoedge.maps.snapshot import HOT, SEA, draw_land, draw_scale_bar, draw_sites, draw_streets
from geoedge.maps.view import RunView
from geoedge.maps.words import percent
from geoedge.style import INK, MARKERS, QUIET, sheet, shown, width_in

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from geoedge.city import City
    from geoedge.results import Results
    from geoedge.style import PaperFigure

__all__ = ["site_map"]

HOTTEST = 5
"""How many of the worst sites are named."""
MANY = 150
"""Beyond so many sites they are drawn smaller."""
KEY_IN, LINE_IN = 0.56, 0.13
"""Height of what stands under the map, without the worst sites, and of a line of theirs [inch]."""
LETTER_IN, CREDIT_LETTER_IN = 0.055, 0.041
"""Width of a small letter, and of one of the credit [inch]."""
TALLEST = 1.4
"""Most height of the map over its width."""


def site_map(run: Results, city: City | None = None, *, columns: int = 1) -> PaperFigure:
    """Draw where the sites are, how busy each is after the warm-up, and which miss most requests.

    Parameters
    ----------
    run
        The run.
    city
        Its city; by default the one that the run's scenario names.
    columns
        Columns of a paper, 1 or 2.

    Raises
    ------
    GeoEdgeError
        If the run has no city or request, or was made on another city.
    """
    asked("site_map", (run,))
    _checked(city)
    width = width_in(columns)
    view = RunView.of(run, city)
    state = _state(run)
    land = view.land(5.0)
    west, south, east, north = land.bounds
    ratio = float(np.clip((north - south) / (east - west), 0.3, TALLEST))
    worst = state[state["missed"] > 0].head(HOTTEST)
    key = KEY_IN + LINE_IN * len(worst) + (0.27 if columns == 1 else 0.15)
    height = width * ratio + key
    with sheet(columns, height) as figure:
        figure.set_layout_engine("none")
        axes = figure.add_axes((0.0, key / height, 1.0, 1.0 - key / height))
        middle_x, middle_y = (west + east) / 2.0, (south + north) / 2.0
        span = 1.05 * max(east - west, (north - south) / ratio)
        axes.set(xlim=(middle_x - span / 2.0, middle_x + span / 2.0), xticks=[], yticks=[], facecolor=SEA)
        axes.set_ylim(middle_y - span * ratio / 2.0, middle_y + span * ratio / 2.0)
        axes.spines[:].set_visible(False)
        draw_land(axes, land)
        draw_streets(axes, view.city, strength=0.3 * columns, tolerance_m=4.0 / columns)
        load = state["utilization"].to_numpy(dtype=np.float64)
        draw_sites(axes, state, load, view.profiles, (7.0 if len(state) > MANY else 18.0) * columns)
        _number(axes, worst, columns)
        draw_scale_bar(axes)
        below = figure.add_axes((0.0, 0.0, 1.0, key / height), xlim=(0.0, width), ylim=(-key, 0.0))
        below.axis("off")
        _profiles(below, view.profiles)
        _loads(below)
        _worst(below, worst, max(float(state["missed"].sum()), 1.0))
        below.text(0.05, 0.04 - key, _credit(view, width), va="bottom", fontsize=5.0, color=QUIET)
    return figure


def _checked(city: object) -> None:
    """Refuse what is no city.

    Raises
    ------
    GeoEdgeError
        If something else was given.
    """
    from geoedge.city import City

    if city is not None and not isinstance(city, City):
        msg = (
            f"site_map: `city` must be a City, not {type(city).__name__}; a map shows one run, and by default the city "
            "that its scenario names"
        )
        raise GeoEdgeError(msg)


def _state(run: Results) -> pd.DataFrame:
    """Return one row a site with its place, load and misses after the warm-up."""
    places = run.sites[["site", "x_m", "y_m", "profile"]]
    return run.site_table().merge(places, on="site")


def _number(axes: Axes, worst: pd.DataFrame, columns: int) -> None:
    for rank, (x, y) in enumerate(zip(worst["x_m"], worst["y_m"], strict=True), start=1):
        axes.annotate(
            str(rank),
            (x, y),
            xytext=(5 + 3 * columns, 5 + 3 * columns),
            textcoords="offset points",
            ha="center",
            va="center",
            color="white",
            fontsize=5.0 + 0.7 * columns,
            fontweight="bold",
            bbox={"boxstyle": "circle,pad=0.25", "facecolor": HOT, "edgecolor": "white", "linewidth": 0.6},
            zorder=8,
        )


def _profiles(below: Axes, profiles: CategoryScale) -> None:
    """Write which shape stands for which profile, side by side, names cut to the room they have."""
    width = (below.get_xlim()[1] - 0.06) / len(profiles.names)
    letters = max(int((width - 0.2) / LETTER_IN), 3)
    for place, (name, shape) in enumerate(zip(profiles.names, profiles.shapes, strict=True)):
        x = 0.1 + place * width
        below.plot(
            x, -0.12, MARKERS[shape], color="white", markeredgecolor=INK, markeredgewidth=0.7, markersize=4
        )
        below.text(x + 0.08, -0.12, shown(name, letters), va="center", fontsize=6.5)


def _loads(below: Axes) -> None:
    """Draw the classes of load as a bar, with the edges between them."""
    from matplotlib.patches import Rectangle

    scale, side = utilisation_scale(), min(0.28, 0.55 * below.get_xlim()[1] / 7.0)
    below.text(0.05, -0.35, f"{scale.title} [{scale.unit}]", va="center", fontsize=6.5)
    start = 0.95
    for place, colour in enumerate(scale.colours):
        below.add_patch(
            Rectangle(
                (start + place * side, -0.34), side, 0.09, facecolor=colour, edgecolor=QUIET, linewidth=0.3
            )
        )
    for place, edge in enumerate(scale.edges, start=1):
        below.text(start + place * side, -0.36, scale.tick(edge), ha="center", va="top", fontsize=5.5)


def _worst(below: Axes, worst: pd.DataFrame, missed: float) -> None:
    """Name the sites that miss most requests, and their shares of all misses."""
    letters = int((below.get_xlim()[1] - 1.0) / LETTER_IN)
    named = zip(worst["name"], worst["site"], worst["missed"], strict=True)
    for rank, (name, site, count) in enumerate(named, start=1):
        words = f"{shown(name, letters) or f'Site {site}'}: {percent(count / missed)} of all misses"
        y = -KEY_IN + 0.04 - LINE_IN * (rank - 0.5)
        below.text(0.1, y, str(rank), ha="center", va="center", fontsize=6.5, fontweight="bold", color=HOT)
        below.text(0.18, y, words, va="center", fontsize=6.5)


def _credit(view: RunView, width: float) -> str:
    words = "".join(words for words, _ in view.credit())
    return textwrap.fill(words, int(width / CREDIT_LETTER_IN))
