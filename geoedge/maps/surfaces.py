"""One layer a question about the land: who serves it, how long it waits, where demand is, where the prediction errs.

The page works out the surfaces itself: regions and times from the sites' prices by the rule of the run, the others
from values on the cells of the run, read between the centres of the cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geoedge.maps.levels import LevelScale
from geoedge.maps.page import MapLayer
from geoedge.maps.samples import lattice
from geoedge.maps.scales import (
    REGION_OPACITY,
    BinnedScale,
    CategoryScale,
    coverage_scale,
    demand_scale,
    difference_scale,
    people_scale,
    ttft_scale,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "HOT_COLOUR",
    "cell_layers",
    "encode_cells",
    "hot_place_layer",
    "on_larger_cells",
    "region_layer",
    "ttft_layer",
]

Floats = NDArray[np.float64]

HOT_COLOUR = "#d1124a"
OPACITY = 0.78
"""Opacity of surfaces on the land, the same in map and legend."""
VALUES = ("demand_per_km2_s", "local_coverage", "ppp_coverage")
PEOPLE = "people_per_km2"
"""Column of cells that only runs with records have."""


def region_layer(profiles: CategoryScale) -> MapLayer:
    """Return the serving regions, coloured by the profile that serves.

    Parameters
    ----------
    profiles
        Names and colours of the profiles.
    """
    return MapLayer(
        "regions",
        "Who serves me?",
        role="surface",
        kind="regions",
        explanation="Each area is served by one site, in the colour of the cache that answers a request of this type.",
        legends=[profiles.legend() | {"opacity": REGION_OPACITY}],
        show=True,
        more={"by_type": True, "opacity": REGION_OPACITY},
    )


def ttft_layer(target_s: float, *, mixed: bool) -> MapLayer:
    """Return the mean time to the first token as a surface with contours.

    Parameters
    ----------
    target_s
        Target [s]; its contour is drawn stronger.
    mixed
        Whether the run knows the mix of request types, so that all of them can be shown together.
    """
    scale = ttft_scale(target_s)
    return MapLayer(
        "ttft",
        "How long would I wait?",
        role="surface",
        kind="ttft",
        explanation=f"Radio, queue and prefill together, on average. The strong line is the target, {target_s:g} s.",
        legends=[scale.legend() | {"opacity": OPACITY}],
        more={
            "by_type": True,
            "mixed": mixed,
            "opacity": OPACITY,
            "scale": scale.described() | {"target": target_s},
        },
    )


def cell_layers(cells: pd.DataFrame, reliability: float) -> list[MapLayer]:
    """Return the share of requests in time, its difference to theory, demand, and people where they are known.

    Parameters
    ----------
    cells
        One row an epoch and cell: demand_per_km2_s, and perhaps people_per_km2.
    reliability
        Share of requests that should be in time; one of the scale's edges.
    """
    found = [
        _cell_layer(
            "coverage",
            "Who gets it in time?",
            "local_coverage",
            coverage_scale(reliability),
            "Share of the requests from here whose first token comes in time, all types together.",
        ),
        _cell_layer(
            "difference",
            "Where does reality beat Poisson theory?",
            "difference",
            difference_scale(),
            "Blue: more in time on this map than theory predicts for a random network. Orange: less.",
        ),
        _cell_layer(
            "demand",
            "Where do requests come from?",
            "demand_per_km2_s",
            demand_scale(cells["demand_per_km2_s"].to_numpy(dtype=np.float64)),
            "Requests that are expected, all types together.",
        ),
    ]
    if PEOPLE in cells:
        scale = people_scale(cells[PEOPLE].to_numpy(dtype=np.float64))
        words = "Where those who asked in this epoch were when they last did."
        found.append(_cell_layer("crowd", "Where are people?", PEOPLE, scale, words))
    return found


def _cell_layer(theme: str, label: str, column: str, scale: BinnedScale, explanation: str) -> MapLayer:
    return MapLayer(
        theme,
        label,
        role="surface",
        kind="cells",
        explanation=explanation,
        legends=[scale.legend() | {"opacity": OPACITY}],
        more={"column": column, "opacity": OPACITY, "scale": scale.described()},
    )


def hot_place_layer(reliability: float) -> MapLayer:
    """Return the places with requests whose coverage falls below the stated reliability.

    Parameters
    ----------
    reliability
        Share of requests that should be in time.
    """
    words = f"Below {100 * reliability:.4g} % of requests in time"
    legend = CategoryScale("Hot places", (words,), (HOT_COLOUR,))
    return MapLayer(
        "hot_places",
        "Where are too many late?",
        pane="outline",
        kind="late",
        legends=[legend.legend() | {"hatched": True}],
        more={"limit": reliability, "colour": HOT_COLOUR, "opacity": 0.85, "hatched": True},
    )


def encode_cells(cells: pd.DataFrame, cell_m: float) -> dict[str, Any]:
    """Return the cells as the page takes them: their places on a lattice once, and every epoch's values.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, demand_per_km2_s, local_coverage, ppp_coverage, and perhaps
        people_per_km2.
    cell_m
        Size of a cell [m].
    """
    xy = cells[["x_m", "y_m"]].to_numpy(dtype=np.float64)
    corner = xy.min(axis=0) - cell_m / 2
    row, column = lattice(xy, corner, cell_m)
    width, height = int(column.max()) + 1, int(row.max()) + 1
    places, cell = np.unique(row * width + column, return_inverse=True)
    epoch = cells["epoch"].to_numpy(dtype=np.int64)
    return {
        "cell_m": cell_m,
        "corner": np.round(corner, 3).tolist(),
        "width": width,
        "height": height,
        "steps": np.diff(places, prepend=0).tolist(),
        "values": {name: _values(cells, name, epoch, cell, len(places)) for name in _columns(cells)},
    }


def _columns(cells: pd.DataFrame) -> list[str]:
    return [name for name in (*VALUES, PEOPLE) if name in cells]


def _values(
    cells: pd.DataFrame, name: str, epoch: NDArray[np.int64], cell: NDArray[np.int64], count: int
) -> dict[str, Any]:
    table = np.full((int(epoch.max()) + 1, count), np.nan)
    table[epoch, cell] = cells[name].to_numpy(dtype=np.float64)
    scale = LevelScale.shares() if name.endswith("coverage") else LevelScale.times(table)
    return {"scale": scale.described(), "epochs": [scale.encode(values) for values in table]}


def on_larger_cells(cells: pd.DataFrame, cell_m: float, times: int) -> pd.DataFrame:
    """Return cells that many times as wide, which keep the number of requests and of those in time.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, demand_per_km2_s, local_coverage, ppp_coverage, and perhaps
        people_per_km2.
    cell_m
        Size of these cells [m].
    times
        How many of them side by side make a larger one.

    Returns
    -------
    pandas.DataFrame
        The same columns for the larger cells, those of one lattice in all epochs.
    """
    joined = cells[["epoch", "x_m", "y_m", *_columns(cells)]].copy()
    for axis in ("x_m", "y_m"):
        corner = joined[axis].min() - cell_m / 2
        number = np.floor((joined[axis] - corner) / (cell_m * times))
        joined[axis] = corner + (number + 0.5) * (cell_m * times)
    shares = [name for name in VALUES if name.endswith("coverage")]
    weight = joined["demand_per_km2_s"].where(joined["demand_per_km2_s"] > 0)
    known = {name: weight.where(joined[name].notna()) for name in shares}
    for name in shares:
        joined[name] *= known[name]
        joined[f"weight of {name}"] = known[name]
    densities = [name for name in _columns(cells) if name not in shares]
    joined[densities] /= times**2
    summed = joined.groupby(["epoch", "x_m", "y_m"], as_index=False, sort=True).sum(min_count=1)
    for name in shares:
        summed[name] /= summed.pop(f"weight of {name}")
    return summed
