"""The streets that a few residents take, kept for whoever wants to see where people go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from geoedge.city.trips import ACTIVITIES, HOME, MODES
from geoedge.results import PATH_COLUMNS, followed
from geoedge.simulation._motion import BACK, LEG

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.routes import Routes
    from geoedge.city.trips import MobilityModel
    from geoedge.simulation.mobility import Population

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Legs = NDArray[np.void]

__all__ = ["TOLERANCE_M", "Paths", "simplified"]

TOLERANCE_M = 5.0
"""How far a kept path may lie from where its user was at the same instant [m]."""


class Paths:
    """The trips of some residents, noted as they are lived and drawn along the streets in the end.

    Residents are followed evenly over all of them, as `geoedge.results.followed` says; nothing is drawn at random for
    it. People of crowds make no trips, and none of them is followed.

    Parameters
    ----------
    residents
        Number of residents.
    """

    def __init__(self, residents: int) -> None:
        self.user = followed(residents)
        self._who: list[Ints] = []
        self._legs: list[Legs] = []

    def note(self, population: Population) -> None:
        """Note the trips in the stretch that residents have just lived through.

        Parameters
        ----------
        population
            The residents.
        """
        who, legs = population.trips(self.user)
        self._who.append(who)
        self._legs.append(legs)

    def table(self, population: Population) -> pd.DataFrame:
        """Return the way along the streets of every trip noted, one row a vertex, by user and time.

        Trips are whole: the first ones may have begun before the run, the last ones end after it. Rows lie on the
        streets, and at every instant the straight line from one to the next is within `TOLERANCE_M` of where the user
        was.

        Parameters
        ----------
        population
            The residents.
        """
        who, legs = self._noted()
        model = population.mobility
        if model is None or not len(who):
            return pd.DataFrame(columns=list(PATH_COLUMNS)).astype(dict(PATH_COLUMNS))
        mode = population.mode[who]
        home = model.home_node[mode, population.home[who]]
        trip, time, xy, length = _along_streets(model.routes, legs, home)
        kept = simplified(trip, time, xy, TOLERANCE_M)
        facts = _facts(model, who, mode, legs) | {"length_m": length}
        columns = {name: fact[trip[kept]] for name, fact in facts.items()}
        columns |= {"time_s": time[kept], "x_m": xy[kept, 0], "y_m": xy[kept, 1]}
        return pd.DataFrame(columns)[list(PATH_COLUMNS)].astype(dict(PATH_COLUMNS))

    def _noted(self) -> tuple[Ints, Legs]:
        """Return who made which trip, by user and time; one over the turn of an epoch was noted in both."""
        who = np.concatenate([np.zeros(0, dtype=np.int64), *self._who])
        legs = np.concatenate([np.zeros(0, dtype=LEG), *self._legs])
        order = np.lexsort((legs["start"], who))
        who, legs = who[order], legs[order]
        new = np.ones(len(who), dtype=bool)
        new[1:] = (np.diff(who) != 0) | (np.diff(legs["start"]) != 0)
        return who[new], legs[new]


def _facts(model: MobilityModel, who: Ints, mode: NDArray[np.int8], legs: Legs) -> dict[str, NDArray[Any]]:
    """Return what is told of each trip, shape (trips,)."""
    names = np.array(ACTIVITIES, dtype=object)
    away = legs["stage"] == BACK
    activity = model.destination_activity[legs["place"]]
    trip = np.arange(len(who)) - np.searchsorted(who, who)
    return {
        "user": who,
        "trip": trip,
        "mode": np.array(MODES, dtype=object)[mode],
        "from_activity": names[np.where(away, activity, HOME)],
        "to_activity": names[np.where(away, HOME, activity)],
        "depart_s": legs["start"],
        "arrive_s": legs["end"],
    }


def _along_streets(routes: Routes, legs: Legs, home: Ints) -> tuple[Ints, Floats, Floats, Floats]:
    """Return trip, instant [s] and place [m] of every vertex on the way, and the length of each trip [m].

    Parameters
    ----------
    routes
        Routes of the city.
    legs
        The trips, shape (m,).
    home
        Node of each user's home, shape (m,).
    """
    streets, away = routes.streets, legs["stage"] == BACK
    ways = [
        routes.edges(place, node, away=back)
        for place, node, back in zip(legs["place"].tolist(), home.tolist(), away.tolist(), strict=True)
    ]
    edge = np.array([edge for way in ways for edge in way], dtype=np.int64)
    trip = np.repeat(np.arange(len(legs)), [len(way) for way in ways])
    place, back = legs["place"][trip], away[trip]

    def reached(node: NDArray[np.int32]) -> Floats:
        ahead = routes.toward_time[place, home[trip]] - routes.toward_time[place, node]
        return np.asarray(legs["start"][trip] + np.where(back, routes.away_time[place, node], ahead))

    begin, end = reached(streets.edge_from[edge]), reached(streets.edge_to[edge])
    owner, share, xy = streets.vertices(edge)
    time = begin[owner] + share * (end - begin)[owner]
    length = np.zeros(len(legs))
    np.add.at(length, trip, streets.edge_length[edge])
    first = np.ones(len(owner), dtype=bool)  # an edge begins where the one before it ends
    first[1:] = (np.diff(owner) == 0) | (np.diff(trip[owner]) != 0)
    return trip[owner][first], time[first], xy[first], length


def simplified(path: Ints, time_s: Floats, xy: Floats, tolerance_m: float) -> NDArray[np.bool_]:
    """Return which vertices of paths in time to keep: ends, and what is needed to be near at every instant.

    This is the algorithm of Douglas and Peucker with the distance between places at the same instant in place of that
    between lines (Meratnia and de By, EDBT 2004), so that the pace is kept as well as the way. Between two vertices
    both the path and its chord move evenly; the distance of the two is largest at a vertex.

    Parameters
    ----------
    path
        Which path each vertex belongs to, in increasing order, shape (n,).
    time_s
        When it is passed [s], nondecreasing along a path, shape (n,).
    xy
        Where it is [m], shape (n, 2).
    tolerance_m
        Largest distance of what is kept from where the path was at the same instant [m].
    """
    kept = np.ones(len(path), dtype=bool)
    kept[1:-1] = (np.diff(path[:-1]) != 0) | (np.diff(path[1:]) != 0)
    while True:
        held = np.flatnonzero(kept)
        chord = np.cumsum(kept) - 1
        left, right = held[chord], held[np.minimum(chord + 1, len(held) - 1)]
        span = time_s[right] - time_s[left]
        share = np.divide(time_s - time_s[left], span, out=np.zeros_like(span), where=span > 0.0)
        error = np.hypot(*(xy - xy[left] - share[:, None] * (xy[right] - xy[left])).T)
        worst = np.maximum.reduceat(error, held)
        far = np.flatnonzero((error > tolerance_m) & (error == worst[chord]))
        if not len(far):
            return kept
        kept[far[np.unique(chord[far], return_index=True)[1]]] = True
