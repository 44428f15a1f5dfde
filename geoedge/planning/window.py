"""What many layouts can be asked: a demand on few cells, and no scenario that only one layout can answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.demand import Demand
from geoedge.errors import ScenarioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.scenario import Scenario

    Floats = NDArray[np.float64]

__all__ = ["coarser", "refuse_other_ground"]


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
