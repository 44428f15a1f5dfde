"""The measured window of a study in few parts, so that much can be asked about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.city.demand import Demand
from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.study.prepared import Study

    Floats = NDArray[np.float64]

__all__ = ["merged_demand", "window_parts"]


def window_parts(study: Study, parts: int) -> tuple[tuple[Demand, ...], Floats]:
    """Return the mean demand of each part of the measured window, and the share of requests that falls in it.

    Epochs that follow each other are joined, about equally many to a part; a part asks at its mean rate.

    Parameters
    ----------
    study
        The study.
    parts
        Parts, at most as many as there are measured epochs.

    Raises
    ------
    GeoEdgeError
        If there is to be no part.
    """
    if parts < 1:
        msg = f"`parts` = {parts}: the measured window is taken in at least 1 part"
        raise GeoEdgeError(msg)
    measured = np.flatnonzero(study.measured_s > 0)
    found, requests = [], []
    for epochs in np.array_split(measured, min(parts, len(measured))):
        seconds = study.measured_s[epochs]
        found.append(merged_demand([study.demand[k] for k in epochs], seconds / seconds.sum()))
        requests.append(study.expected_requests[epochs].sum())
    return tuple(found), np.array(requests) / np.sum(requests)


def merged_demand(demands: Sequence[Demand], shares: Sequence[float] | NDArray[Any]) -> Demand:
    """Return the mean of demands on one raster.

    Parameters
    ----------
    demands
        Demands whose cells are of one raster.
    shares
        Weight of each, adding up to one.
    """
    xy = np.concatenate([one.xy for one in demands])
    rate = np.concatenate([one.rate * share for one, share in zip(demands, shares, strict=True)])
    places, place = np.unique(xy, axis=0, return_inverse=True)
    total: Floats = np.zeros((len(places), rate.shape[1]))
    np.add.at(total, place.reshape(-1), rate)
    return Demand(places, total, demands[0].cell_m)
