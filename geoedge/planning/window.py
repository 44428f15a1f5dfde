"""The measured window of a study in few parts, so that many layouts can be asked about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.city.demand import Demand
from geoedge.errors import GeoEdgeError, ScenarioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.scenario import Scenario
    from geoedge.study import Study

    Floats = NDArray[np.float64]

__all__ = ["coarser", "merged_demand", "refuse_other_ground", "window_parts"]


def refuse_other_ground(scenario: Scenario, what: str) -> None:
    """Refuse a scenario whose radio follows streets or whose city has neighbours, where many layouts are asked.

    Parameters
    ----------
    scenario
        The scenario.
    what
        What asks them.

    Raises
    ------
    ScenarioError
        If it does.
    """
    from geoedge.study import refuse_streets

    refuse_streets(scenario, what)
    if scenario.field.edge != "cut":
        msg = f'field.edge = "{scenario.field.edge}": {what} knows the city alone; use "cut"'
        raise ScenarioError(msg)


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


def coarser(demand: Demand, most: int) -> Demand:
    """Return a demand on wider cells, each where its requests are centred, until there are few enough.

    Parameters
    ----------
    demand
        A demand on cells; one on points stays as it is. Cells that ask for nothing are left out of wider ones.
    most
        Cells, at most.
    """
    cell_m = demand.cell_m
    if cell_m is None or len(demand.xy) <= most:
        return demand
    asking = demand.rate.sum(axis=1) > 0
    asking[0] |= not asking.any()  # one quiet cell stands for a demand of nothing but these
    demand, times = Demand(demand.xy[asking], demand.rate[asking], cell_m), 1
    if len(demand.xy) <= most:
        return demand
    while True:
        times += 1
        cells, cell = np.unique(np.floor(demand.xy / (times * cell_m)), axis=0, return_inverse=True)
        if len(cells) <= most:
            break
    rate: Floats = np.zeros((len(cells), demand.rate.shape[1]))
    np.add.at(rate, cell.reshape(-1), demand.rate)
    centre: Floats = np.zeros((len(cells), 2))
    weight = demand.rate.sum(axis=1)
    np.add.at(centre, cell.reshape(-1), weight[:, None] * demand.xy)
    total = rate.sum(axis=1, keepdims=True)
    return Demand(centre / total, rate, times * cell_m)
