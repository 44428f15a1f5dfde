"""One layer a question about the land: where requests come from, where they are late, and where the prediction errs.

The cells of a run are gathered in the classes of a scale and merged, so that a page carries a few areas a layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geoedge.maps.layers import by_epoch
from geoedge.maps.outlines import cell_areas, clip_area
from geoedge.maps.page import MapLayer
from geoedge.maps.scales import BinnedScale, CategoryScale, coverage_scale, demand_scale, difference_scale
from geoedge.maps.wire import ToLonLat, encode_polygons
from geoedge.maps.words import percent, rate
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "HOT_COLOUR",
    "Canvas",
    "coverage_layers",
    "demand_layers",
    "demand_on_larger_cells",
    "difference_layers",
    "hot_place_layers",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HOT_COLOUR = "#d1124a"
OPACITY = 0.78
"""Opacity of surfaces on the white land, the same in map and legend."""


@dataclass(frozen=True)
class Canvas:
    """How cells become areas of the page.

    Parameters
    ----------
    cell_m
        Size of a cell [m].
    tolerance_m
        Side of the square details that are smoothed away [m].
    to_lonlat
        From points [m], shape (n, 2), to longitude and latitude [degree].
    land
        Land to which the areas are cut, a shapely (multi)polygon [m]; None for whole cells.
    """

    cell_m: float
    tolerance_m: float
    to_lonlat: ToLonLat
    land: Any = None

    def features(self, cells: pd.DataFrame, index: Ints, labels: list[str]) -> list[list[Any]]:
        """Return one merged area a class, with a tip that weighs it.

        Parameters
        ----------
        cells
            One row a cell of one epoch: x_m, y_m, demand_per_km2_s.
        index
            Class of each cell, -1 for cells that are not drawn.
        labels
            One name a class.
        """
        xy = cells[["x_m", "y_m"]].to_numpy(dtype=np.float64)
        areas = cell_areas(xy, self.cell_m, index, len(labels), self.tolerance_m)
        demand = np.nan_to_num(cells["demand_per_km2_s"].to_numpy(dtype=np.float64))
        total = float(demand.sum())
        features: list[list[Any]] = []
        for level, area in enumerate(areas):
            inside = index == level
            size = float(inside.sum()) * self.cell_m**2 / M2_PER_KM2
            share = float(demand[inside].sum()) / total if total > 0 else np.nan
            tip = [labels[level], percent(share), rate(size, "km²")]
            outline = encode_polygons(clip_area(area, self.land), self.to_lonlat)
            if outline:
                features.append(["polygon", outline, level, tip, {}])
        return features


Classify = Callable[["pd.DataFrame"], Floats]


def _surface(
    cells: pd.DataFrame,
    canvas: Canvas,
    scale: BinnedScale,
    value: Classify,
    *,
    theme: str,
    label: str,
    question: str,
) -> list[MapLayer]:
    labels = [scale.label(level) for level in range(len(scale.colours))]
    return [
        MapLayer(
            theme,
            label,
            canvas.features(rows, scale.index(value(rows)), labels),
            role="surface",
            question=question,
            fields=("Share of all requests", "Area"),
            style={"stroke": False, "fillOpacity": OPACITY},
            styles=[{"fillColor": colour} for colour in scale.colours],
            legends=[scale.legend() | {"opacity": OPACITY}],
            epoch=epoch,
        )
        for epoch, rows in by_epoch(cells)
    ]


def demand_on_larger_cells(cells: pd.DataFrame, cell_m: float, times: int) -> pd.DataFrame:
    """Return the request density on cells that many times as wide, which keep the number of requests.

    Demand differs from cell to cell, so that few cells merge; larger ones spare a page most of its weight.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, demand_per_km2_s.
    cell_m
        Size of these cells [m].
    times
        How many of them side by side make a larger one.

    Returns
    -------
    pandas.DataFrame
        The same columns for the larger cells, those of one lattice in all epochs.
    """
    joined = cells[["epoch", "x_m", "y_m", "demand_per_km2_s"]].copy()
    for axis in ("x_m", "y_m"):
        corner = joined[axis].min() - cell_m / 2
        number = np.floor((joined[axis] - corner) / (cell_m * times))
        joined[axis] = corner + (number + 0.5) * (cell_m * times)
    joined["demand_per_km2_s"] /= times**2
    return joined.groupby(["epoch", "x_m", "y_m"], as_index=False, sort=True).sum()


def demand_layers(cells: pd.DataFrame, canvas: Canvas) -> list[MapLayer]:
    """Return where requests come from, epoch by epoch, on one scale.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, demand_per_km2_s.
    canvas
        How cells become areas.
    """
    drawn = cells[cells["demand_per_km2_s"] > 0]
    return _surface(
        drawn,
        canvas,
        demand_scale(drawn["demand_per_km2_s"].to_numpy(dtype=np.float64)),
        lambda rows: rows["demand_per_km2_s"].to_numpy(dtype=np.float64),
        theme="demand",
        label="Demand",
        question="Where do requests come from?",
    )


def coverage_layers(cells: pd.DataFrame, canvas: Canvas, reliability: float) -> list[MapLayer]:
    """Return the share of requests in time, place by place.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, demand_per_km2_s, local_coverage.
    canvas
        How cells become areas.
    reliability
        Share of requests that should be in time; one of the scale's edges.
    """
    return _surface(
        cells,
        canvas,
        coverage_scale(reliability),
        lambda rows: rows["local_coverage"].to_numpy(dtype=np.float64),
        theme="coverage",
        label="Requests in time",
        question="What share of the requests from here gets its first token in time?",
    )


def difference_layers(cells: pd.DataFrame, canvas: Canvas) -> list[MapLayer]:
    """Return where reality beats or misses the Poisson prediction, for the mix of requests of each place.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, demand_per_km2_s, local_coverage, ppp_coverage.
    canvas
        How cells become areas.
    """
    return _surface(
        cells,
        canvas,
        difference_scale(),
        lambda rows: (rows["local_coverage"] - rows["ppp_coverage"]).to_numpy(dtype=np.float64),
        theme="difference",
        label="Real map minus Poisson prediction",
        question="Where does this map beat (blue) or miss (orange) the coverage that theory predicts for a random network?",
    )


def hot_place_layers(cells: pd.DataFrame, canvas: Canvas, reliability: float) -> list[MapLayer]:
    """Return the places with requests whose coverage falls below the stated reliability.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, demand_per_km2_s, local_coverage.
    canvas
        How cells become areas.
    reliability
        Share of requests that should be in time.
    """
    words = f"Below {100 * reliability:.4g} % of requests in time"
    legend = CategoryScale("Hot places", (words,), (HOT_COLOUR,), ("square",))
    layers = []
    for epoch, rows in by_epoch(cells):
        late = (rows["local_coverage"] < reliability) & (rows["demand_per_km2_s"] > 0)
        index = np.where(late.to_numpy(), 0, -1)
        layers.append(
            MapLayer(
                "hot_places",
                "Hot places",
                [[*feature[:3], None, {}] for feature in canvas.features(rows, index, [words])],
                pane="outline",
                style={"color": HOT_COLOUR, "weight": 1.5, "fillColor": HOT_COLOUR, "fillOpacity": 0.1},
                legends=[legend.legend(form="shapes")],
                epoch=epoch,
            )
        )
    return layers
