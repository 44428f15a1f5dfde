"""How people move: homes, destinations, and when users leave the one for the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.city.attraction import destination_candidates, home_floor
from geoedge.city.routes import Routes, shortest_routes
from geoedge.errors import CityError, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.city import City
    from geoedge.city.streets import StreetGraph

__all__ = [
    "ACTIVITIES",
    "DAY_START_S",
    "HOME",
    "HOUR_S",
    "LEISURE",
    "MODES",
    "STREET",
    "WORK",
    "MobilityModel",
    "hour_of",
    "make_mobility",
]

ACTIVITIES = ("home", "work", "leisure", "street")
"""What a user is doing, in the order of every axis of activities."""
HOME, WORK, LEISURE, STREET = range(4)
MODES = ("walk", "drive")
"""Ways to travel, in the order of `Population.mode`."""
HOUR_S = 3600.0
DAY_START_S = 3 * HOUR_S
"""When everybody is at home: 03:00 of the simulated day [s]."""


def hour_of(time_s: ArrayLike) -> NDArray[np.int64]:
    """Return the hour of day, 0 to 23, of instants [s since midnight].

    Parameters
    ----------
    time_s
        Instants; past 24:00 the clock begins anew.
    """
    return np.asarray(np.floor(np.asarray(time_s, dtype=np.float64) / HOUR_S), dtype=np.int64) % 24


@dataclass(frozen=True, eq=False)
class MobilityModel:
    """Homes, destinations and hourly habits of a city's users.

    A user lives in one of H homes and leaves it in a Poisson process, at the rate of the hour, for one of K
    destinations; its choice depends on the hour and not on the home. The user takes the shortest-time route of
    its mode, stays an exponential time, and returns by the shortest-time route.

    Parameters
    ----------
    home_building
        Building of each home, an index into the city's table, shape (H,).
    home_xy
        Its position [m], shape (H, 2).
    home_probability
        Share of users who live there, shape (H,), sum 1.
    home_door
        Street node at which its trips begin and end, by mode, each of shape (H,).
    destination_xy
        Where visitors stay [m], shape (K, 2).
    destination_activity
        `WORK` or `LEISURE`, shape (K,).
    destination_weight
        Share of its activity's visits, shape (K,), sum 1 over each activity.
    destination_door
        Street node of the destination, by mode, each of shape (K,).
    walk_share
        Share of users who walk; the others drive [–].
    departures_per_hour
        Rate at which a user at home leaves, by hour of day [1/h], shape (24,).
    work_share, leisure_share
        Relative share of departures to each activity, by hour of day [–], shape (24,).
    dwell_s
        Mean stay by activity, of use for `WORK` and `LEISURE` only [s], shape (4,).
    streets
        Streets by mode; only the modes that users have.
    """

    home_building: NDArray[np.int64]
    home_xy: NDArray[np.float64]
    home_probability: NDArray[np.float64]
    home_door: dict[str, NDArray[np.int32]]
    destination_xy: NDArray[np.float64]
    destination_activity: NDArray[np.int64]
    destination_weight: NDArray[np.float64]
    destination_door: dict[str, NDArray[np.int32]]
    walk_share: float
    departures_per_hour: NDArray[np.float64]
    work_share: NDArray[np.float64]
    leisure_share: NDArray[np.float64]
    dwell_s: NDArray[np.float64]
    streets: dict[str, StreetGraph]

    def __repr__(self) -> str:
        work = int((self.destination_activity == WORK).sum())
        return (
            f"MobilityModel({len(self.home_building)} homes, {work} work and "
            f"{len(self.destination_activity) - work} leisure destinations, {self.walk_share:.0%} walk)"
        )

    @property
    def modes(self) -> tuple[str, ...]:
        """Modes that users have, in the order of their streets in `routes`."""
        return tuple(self.streets)

    def mode_share(self, mode: str) -> float:
        """Return the share of users of a mode [–]."""
        return self.walk_share if mode == "walk" else 1.0 - self.walk_share

    @cached_property
    def routes(self) -> Routes:
        """Shortest-time routes of all modes side by side."""
        return shortest_routes(
            list(self.streets.values()), [self.destination_door[mode] for mode in self.streets]
        )

    @cached_property
    def home_node(self) -> NDArray[np.int64]:
        """Node of `routes` at each home's door by mode, -1 for a mode that nobody has, shape (2, H)."""
        node = np.full((len(MODES), len(self.home_building)), -1, dtype=np.int64)
        start = 0
        for mode, graph in self.streets.items():
            node[MODES.index(mode)] = self.home_door[mode] + start
            start += graph.node_count
        return node

    def choice(self) -> NDArray[np.float64]:
        """Return the probability of a destination per unit of its weight, by activity and hour, shape (4, 24)."""
        has = np.bincount(self.destination_activity, weights=self.destination_weight, minlength=4)
        pull = np.zeros((4, 24))
        pull[WORK], pull[LEISURE] = self.work_share, self.leisure_share
        total = has @ pull
        return np.divide(pull, total, out=np.zeros_like(pull), where=total > 0)

    def destination_probability(self) -> NDArray[np.float64]:
        """Return the probability of each destination by the hour of departure, shape (24, K)."""
        return self.choice()[self.destination_activity].T * self.destination_weight


def make_mobility(
    city: City,
    *,
    walk_share: float,
    departures_per_hour: ArrayLike,
    work_share: ArrayLike,
    leisure_share: ArrayLike,
    dwell_hours: Mapping[str, float],
    destinations: int,
    rng: np.random.Generator,
) -> MobilityModel:
    """Return the mobility model of a city.

    Homes are all buildings with dwellings, in proportion to their floor area. Destinations are drawn once,
    half of them for work and half for leisure, from the doors of the city in proportion to their weight and
    never twice; a drawn door stands for those that were not.

    Parameters
    ----------
    city
        Streets, buildings and places.
    walk_share
        Share of users who walk; the others drive [–].
    departures_per_hour
        Rate at which a user at home leaves, by hour of day [1/h], shape (24,).
    work_share, leisure_share
        Relative share of departures to each activity, by hour of day [–], shape (24,).
    dwell_hours
        Mean stay by activity [h], keys ``"work"`` and ``"leisure"``.
    destinations
        Number of destinations K, at least 2; fewer if the city has fewer.
    rng
        Random stream that draws the destinations.

    Raises
    ------
    ScenarioError
        If a value is not what it must be.
    CityError
        If the city has no streets of a mode that users have, no home or no destination.
    """
    hourly = {
        name: _hourly(name, values)
        for name, values in (
            ("departures_per_hour", departures_per_hour),
            ("work_share", work_share),
            ("leisure_share", leisure_share),
        )
    }
    streets = _streets(city, walk_share)
    homes, floor = home_floor(city.buildings)
    if not len(homes):
        msg = f"city {city.name}: no building holds a dwelling; take a larger area or tag buildings"
        raise CityError(msg)
    place, activity, weight = _draw_destinations(city, next(iter(streets.values())), destinations, rng)
    model = MobilityModel(
        home_building=homes,
        home_xy=city.buildings.xy[homes],
        home_probability=floor / floor.sum(),
        home_door={mode: _door(graph, city.buildings.xy[homes]) for mode, graph in streets.items()},
        destination_xy=place,
        destination_activity=activity,
        destination_weight=weight,
        destination_door={mode: _door(graph, place) for mode, graph in streets.items()},
        walk_share=float(walk_share),
        dwell_s=_dwell_s(dwell_hours),
        streets=streets,
        **hourly,
    )
    _check_choice(model)
    return model


def _draw_destinations(
    city: City, graph: StreetGraph, count: int, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Return position, activity and weight of the drawn destinations."""
    if count < 2:
        msg = f"mobility.destinations = {count}: must be an integer of at least 2"
        raise ScenarioError(msg)
    places, weights = destination_candidates(city, graph)
    have = [len(weight) for weight in weights]
    if not sum(have):
        msg = f"city {city.name}: no office, shop, amenity or building to go to; take a larger area"
        raise CityError(msg)
    work = min(have[0], max(count // 2, count - have[1]))
    xy, activity, weight = [], [], []
    for code, wanted, place, full in zip(
        (WORK, LEISURE), (work, min(have[1], count - work)), places, weights, strict=True
    ):
        chosen, new_weight = sample_by_weight(full, wanted, rng)
        xy.append(place[chosen])
        activity.append(np.full(wanted, code, dtype=np.int64))
        weight.append(new_weight)
    return np.concatenate(xy), np.concatenate(activity), np.concatenate(weight)


def sample_by_weight(
    weight: NDArray[np.float64], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return a systematic sample without replacement and weights (sum 1) that stand for the whole.

    Item i is drawn with probability min(1, c·w_i) and weighs w_i divided by it, so that the sample's
    share of any group is the group's own share in expectation, up to the final scaling.

    Parameters
    ----------
    weight
        Positive weights, shape (n,).
    count
        Number of items to draw, at most n.
    rng
        Random stream.
    """
    if count == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    sure = np.zeros(len(weight), dtype=bool)
    chance = np.ones(len(weight))
    while not sure.all():
        chance[~sure] = weight[~sure] * ((count - sure.sum()) / weight[~sure].sum())
        above = ~sure & (chance >= 1.0)
        chance[above] = 1.0
        sure |= above
        if not above.any():
            break
    order = rng.permutation(len(weight))
    steps = np.cumsum(chance[order])
    steps *= count / steps[-1]
    points = np.arange(count) + rng.random()
    chosen = np.sort(order[np.minimum(np.searchsorted(steps, points, side="right"), len(order) - 1)])
    kept = weight[chosen] / chance[chosen]
    return chosen.astype(np.int64), kept / kept.sum()


def _streets(city: City, walk_share: float) -> dict[str, StreetGraph]:
    """Return the streets of the modes that users have."""
    if not 0.0 <= walk_share <= 1.0:
        msg = f"mobility.walk_share = {walk_share}: must lie between 0 and 1"
        raise ScenarioError(msg)
    shares = dict(zip(MODES, (walk_share, 1.0 - walk_share), strict=True))
    wanted = [mode for mode, share in shares.items() if share > 0.0]
    for mode in wanted:
        if mode not in city.streets or city.streets[mode].edge_count == 0:
            msg = f"city {city.name}: no {mode} streets; set mobility.walk_share to {float(mode != 'walk'):g}"
            raise CityError(msg)
    return {mode: city.streets[mode] for mode in wanted}


def _door(graph: StreetGraph, xy: NDArray[np.float64]) -> NDArray[np.int32]:
    return graph.nearest_node(xy).astype(np.int32)


def _hourly(name: str, values: ArrayLike) -> NDArray[np.float64]:
    hours = np.asarray(values, dtype=np.float64)
    if hours.shape != (24,) or not np.isfinite(hours).all() or (hours < 0).any():
        msg = f"mobility.{name}: must be 24 nonnegative numbers, one for each hour from midnight"
        raise ScenarioError(msg)
    return hours


def _dwell_s(dwell_hours: Mapping[str, float]) -> NDArray[np.float64]:
    dwell: NDArray[Any] = np.zeros(4)
    for code, name in ((WORK, "work"), (LEISURE, "leisure")):
        hours = float(dwell_hours.get(name, 0.0))
        if not 0.0 < hours < np.inf:
            msg = f"mobility.dwell_hours.{name} = {hours:g}: must be a positive number of hours"
            raise ScenarioError(msg)
        dwell[code] = hours * HOUR_S
    return dwell


def _check_choice(model: MobilityModel) -> None:
    """Refuse an hour at which users leave and have nowhere to go."""
    aimless = (model.departures_per_hour > 0.0) & (model.choice().sum(axis=0) == 0.0)
    if aimless.any():
        hour = int(np.flatnonzero(aimless)[0])
        msg = (
            f"mobility: users leave at hour {hour} but no destination draws them; make work_share[{hour}] or "
            f"leisure_share[{hour}] positive"
        )
        raise ScenarioError(msg)
