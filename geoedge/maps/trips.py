"""What a page keeps of the ways that people took: along the streets, with the instants at which they passed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from geoedge.errors import OutputError
from geoedge.maps.levels import LevelScale
from geoedge.maps.wire import encode_paths
from geoedge.results import evenly
from geoedge.workload import ACTIVITIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city import City
    from geoedge.results import Results

__all__ = ["MODES", "trips"]

MODES = {"walk": "on foot", "drive": "by car"}
"""Ways to travel, and what the page calls them."""


def trips(results: Results, city: City, number: int) -> dict[str, Any] | None:
    """Return the trips of some residents; None if the run keeps no paths, or nobody made one.

    Each has its user, the indices of its mode and of what is done before and after it, departure and arrival [s since
    midnight], length [m], its way as `wire` encodes paths, and when each point of that is passed, as a share of the trip.

    Parameters
    ----------
    results
        The run.
    city
        Its city.
    number
        How many residents at most, spread evenly over those who made a trip.

    Raises
    ------
    OutputError
        If the table of paths names a mode or an activity that there is none of, or a trip ends as it begins or before.
    """
    table = results.tables.get("paths")
    if table is None or not len(table) or number == 0:
        return None
    who = table["user"].unique()
    chosen = who[evenly(len(who), number)]
    rows = table[table["user"].isin(chosen)]
    trip = np.cumsum((np.diff(rows[["user", "trip"]].to_numpy(), axis=0, prepend=-1) != 0).any(axis=1)) - 1
    first = np.flatnonzero(np.diff(trip, prepend=-1))
    one = rows.iloc[first]
    if not (rows["arrive_s"] > rows["depart_s"]).all():
        msg = "map: the table of paths has a trip that ends no later than it begins; run the scenario again"
        raise OutputError(msg)
    spent = (rows["time_s"] - rows["depart_s"]) / (rows["arrive_s"] - rows["depart_s"])
    scale = LevelScale.shares()
    return {
        "scale": scale.described(),
        "user": one["user"].tolist(),
        "mode": _codes(one["mode"], tuple(MODES)),
        "from": _codes(one["from_activity"], ACTIVITIES),
        "to": _codes(one["to_activity"], ACTIVITIES),
        "depart_s": one["depart_s"].round(1).tolist(),
        "arrive_s": one["arrive_s"].round(1).tolist(),
        "length_m": one["length_m"].round().astype(np.int64).tolist(),
        "way": encode_paths(city.to_lonlat(rows[["x_m", "y_m"]].to_numpy(dtype=np.float64)), trip),
        "spent": [scale.encode(spent.iloc[a:b]) for a, b in pairwise([*first.tolist(), len(rows)])],
    }


def _codes(names: pd.Series[Any], known: Sequence[str]) -> list[int]:
    codes: NDArray[np.int64] = pd.Index(known).get_indexer(pd.Index(names))
    if (codes < 0).any():
        wrong = str(names.iloc[int(np.argmin(codes))])
        msg = f"map: the table of paths names {wrong!r}; it knows {', '.join(known)}; run the scenario again"
        raise OutputError(msg)
    return [int(code) for code in codes]
