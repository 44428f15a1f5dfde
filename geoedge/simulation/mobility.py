"""Users who move: their days in event time, where each one is at any instant, and what they ask for."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from geoedge.city.demand import Demand, RequestRates
from geoedge.city.trips import ACTIVITIES, DAY_START_S, HOUR_S, MODES, STREET, hour_of
from geoedge.errors import ScenarioError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.trips import MobilityModel

__all__ = ["Asked", "Population", "draw_requests"]


class Asked(NamedTuple):
    """What users ask for: requests as columns, sorted by time.

    Parameters
    ----------
    created_s
        When it was made [s since midnight], shape (n,).
    user
        By whom, shape (n,).
    request_type
        Of which type, shape (n,).
    x_m, y_m
        Where the user was [m], shape (n,).
    activity
        What the user was doing, an index into `ACTIVITIES`, shape (n,).
    """

    created_s: NDArray[np.float64]
    user: NDArray[np.int32]
    request_type: NDArray[np.int16]
    x_m: NDArray[np.float64]
    y_m: NDArray[np.float64]
    activity: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class _Legs:
    """Legs of all users in compressed rows, from `since_s` to `now_s`."""

    since_s: float
    now_s: float
    offset: NDArray[np.int64]
    row: NDArray[np.void]


class Population:
    """N users as columns, each at home at 03:00 and from then on where its trips take it.

    Make one with `draw` or `at_points`. `advance` brings all users to an instant; `position` answers for any
    instant between the last two.

    Parameters
    ----------
    home_xy
        Where each user lives [m], shape (N, 2).
    home
        Home of each user, an index into the mobility model's homes, -1 without a model, shape (N,).
    mode
        How each user travels, an index into `MODES`, shape (N,).
    mobility
        How users move; None if they stay where they are.
    state
        State of each user's random stream, shape (N,).
    """

    def __init__(
        self,
        home_xy: NDArray[np.float64],
        home: NDArray[np.int64],
        mode: NDArray[np.int8],
        mobility: MobilityModel | None,
        state: NDArray[np.uint64],
    ) -> None:
        from geoedge.simulation._motion import BACK, LEG

        self.home_xy = home_xy
        self.home = home
        self.mode = mode
        self.mobility = mobility
        self._state = state
        self._node = np.zeros(0, dtype=np.int64) if mobility is None else mobility.home_node[mode, home]
        rows = np.zeros(len(home), dtype=LEG)
        rows["start"] = rows["end"] = DAY_START_S
        rows["stage"], rows["place"] = BACK, 0
        self._legs = _Legs(DAY_START_S, DAY_START_S, np.arange(len(home) + 1), rows)
        self.advance(DAY_START_S)

    @classmethod
    def draw(
        cls, mobility: MobilityModel, users: int, rng: np.random.Generator, *, still: bool = False
    ) -> Population:
        """Return users with random homes, modes and days.

        Parameters
        ----------
        mobility
            How users live and move.
        users
            Number of users N.
        rng
            Random stream; one of its children draws homes, one modes and one the days, so that the first
            users of a larger population are those of a smaller one.
        still
            Whether users stay at home.

        Raises
        ------
        ScenarioError
            If there are no users.
        """
        if users < 1:
            msg = f"`users` = {users}: must be at least 1"
            raise ScenarioError(msg)
        homes, modes, days = rng.spawn(3)
        cumulative = np.cumsum(mobility.home_probability)
        home = np.searchsorted(cumulative, homes.random(users) * cumulative[-1], side="right")
        home = np.minimum(home, len(cumulative) - 1)
        mode = np.where(modes.random(users) < mobility.walk_share, 0, 1).astype(np.int8)
        state = days.integers(0, 2**64, size=users, dtype=np.uint64)
        return cls(mobility.home_xy[home], home, mode, None if still else mobility, state)

    @classmethod
    def at_points(cls, xy: ArrayLike) -> Population:
        """Return users who stay at given points, at home there.

        Parameters
        ----------
        xy
            Where they are [m], shape (N, 2).
        """
        points = np.asarray(xy, dtype=np.float64).reshape(-1, 2)
        count = len(points)
        home, mode = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.int8)
        return cls(points, home, mode, None, np.zeros(count, dtype=np.uint64))

    def __len__(self) -> int:
        return len(self.home)

    def __repr__(self) -> str:
        how = "still" if self.mobility is None else f"{np.mean(self.mode == MODES.index('walk')):.0%} walk"
        return f"Population({len(self)} users, {how}, at {self.now_s / HOUR_S:.2f} h)"

    def copy(self) -> Self:
        """Return users who have lived the same so far and go on by themselves, to the same days."""
        other = copy(self)
        other._state = self._state.copy()
        return other

    @property
    def now_s(self) -> float:
        """The instant that users have reached [s since midnight]."""
        return self._legs.now_s

    @property
    def since_s(self) -> float:
        """The earliest instant that `position` still knows [s since midnight]."""
        return self._legs.since_s

    def advance(self, until_s: float) -> None:
        """Let users live until an instant; their days do not depend on the steps in which they are lived.

        Parameters
        ----------
        until_s
            The instant [s since midnight], not before `now_s`.

        Raises
        ------
        ScenarioError
            If it is before `now_s` or not finite.
        """
        legs = self._legs
        if not legs.now_s <= until_s < np.inf:
            msg = f"`until_s` = {until_s:g}: users have reached {legs.now_s:g} s; give a later instant"
            raise ScenarioError(msg)
        offset, row = legs.offset, legs.row
        if self.mobility is not None:
            from geoedge.simulation._motion import advance_users

            model, routes = self.mobility, self.mobility.routes
            offset, row = advance_users(
                float(until_s),
                legs.now_s,
                offset,
                row,
                self._state,
                self._node,
                model.departures_per_hour / HOUR_S,
                _cumulative(model.destination_probability()),
                model.dwell_s[model.destination_activity],
                routes.toward_time,
                routes.away_time,
            )
        self._legs = _Legs(legs.now_s, float(until_s), offset, row)

    def position(self, user: ArrayLike, time_s: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
        """Return where users are at instants, exact along the street [m], shape (m, 2), and what they do, shape (m,).

        Parameters
        ----------
        user
            Users, shape (m,).
        time_s
            An instant for each, or one for all [s since midnight], from `since_s` to `now_s`.

        Raises
        ------
        ScenarioError
            If an instant is out of that range or a user does not exist.
        """
        who = np.atleast_1d(np.asarray(user, dtype=np.int64))
        when = np.ascontiguousarray(np.broadcast_to(np.asarray(time_s, dtype=np.float64), who.shape))
        self._check(who, when)
        xy = self.home_xy[who]
        activity = np.zeros(len(who), dtype=np.int8)
        if self.mobility is None or not len(who):
            return xy, activity
        stage, place, edge, fraction = self._locate(who, when)
        model = self.mobility
        from geoedge.simulation._motion import AT_HOME, DWELL

        visiting, moving = stage == DWELL, (stage != DWELL) & (stage != AT_HOME)
        activity[visiting] = model.destination_activity[place[visiting]]
        xy[visiting] = model.destination_xy[place[visiting]]
        activity[moving] = STREET
        on_edge = edge >= 0
        xy[on_edge] = model.routes.streets.position(edge[on_edge], fraction[on_edge])
        at_door = moving & ~on_edge
        xy[at_door] = model.routes.streets.node_xy[self._node[who[at_door]]]
        return xy, activity

    def positions(self, time_s: float | None = None) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
        """Return where all users are at an instant, by default now [m], shape (N, 2), and what they do, shape (N,).

        Parameters
        ----------
        time_s
            The instant [s since midnight], from `since_s` to `now_s`.
        """
        return self.position(np.arange(len(self)), self.now_s if time_s is None else time_s)

    def trips(self, user: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.void]]:
        """Return who of some users is under way between `since_s` and `now_s`, and each of those trips, by user and time.

        Parameters
        ----------
        user
            The users, shape (m,).
        """
        from geoedge.simulation._motion import BACK, OUT

        who = np.repeat(np.arange(len(self)), np.diff(self._legs.offset))
        legs = self._legs.row
        trip = np.isin(who, user) & np.isin(legs["stage"], (OUT, BACK)) & (legs["end"] > legs["start"])
        return who[trip], legs[trip]

    def activity_shares(self, time_s: float | None = None) -> NDArray[np.float64]:
        """Return the share of users in each activity at an instant, by default now, shape (4,).

        Parameters
        ----------
        time_s
            The instant [s since midnight], from `since_s` to `now_s`.
        """
        _, activity = self.positions(time_s)
        return np.bincount(activity, minlength=len(ACTIVITIES)) / len(self)

    def demand(self, rates: RequestRates, time_s: float | None = None) -> Demand:
        """Return the demand of the users where they are at an instant, by default now: one point for each.

        Parameters
        ----------
        rates
            What users ask for.
        time_s
            The instant [s since midnight], from `since_s` to `now_s`; it sets the hour too.
        """
        instant = self.now_s if time_s is None else time_s
        xy, activity = self.positions(instant)
        return Demand.from_points(xy, rates.during(instant, instant).T[activity])

    def _check(self, who: NDArray[np.int64], when: NDArray[np.float64]) -> None:
        if not len(who):
            return
        if who.min() < 0 or who.max() >= len(self):
            msg = f"`user` must be from 0 to {len(self) - 1}, not {who.min()} to {who.max()}"
            raise ScenarioError(msg)
        if not (self.since_s <= when.min() and when.max() <= self.now_s):
            msg = (
                f"`time_s` = {when.min():g} to {when.max():g}: positions are known from {self.since_s:g} "
                f"to {self.now_s:g} s; advance the population first"
            )
            raise ScenarioError(msg)

    def _locate(
        self, who: NDArray[np.int64], when: NDArray[np.float64]
    ) -> tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int32], NDArray[np.float64]]:
        from geoedge.simulation._motion import locate_users

        assert self.mobility is not None
        routes = self.mobility.routes
        streets = routes.streets
        return locate_users(
            who,
            when,
            self._legs.offset,
            self._legs.row,
            self._node,
            routes.toward_time,
            routes.toward_edge,
            routes.away_time,
            routes.away_edge,
            streets.edge_from,
            streets.edge_to,
            streets.edge_time,
        )


def _cumulative(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the running sum of each row, ending at exactly 1 so that no draw falls past it."""
    total = np.cumsum(probability, axis=1)
    return np.divide(total, total[:, -1:], out=np.ones_like(total), where=total[:, -1:] > 0.0)


def draw_requests(
    population: Population, rates: RequestRates, start_s: float, end_s: float, rng: np.random.Generator
) -> Asked:
    """Return the requests that users make in an interval: exact Poisson processes by thinning.

    Users ask at the rate of their activity and the hour. Candidates are drawn at the highest rate of the
    hour and kept with the share that the user's activity at that instant allows; every candidate uses the
    same random numbers whatever becomes of it.

    Parameters
    ----------
    population
        Users, advanced to the end of the interval and no further than one step.
    rates
        What users ask for.
    start_s, end_s
        The interval [s since midnight].
    rng
        Random stream of this interval.

    Raises
    ------
    ScenarioError
        If the interval is empty or the population does not know positions in it.
    """
    if not start_s < end_s:
        msg = f"`start_s` = {start_s:g} must lie before `end_s` = {end_s:g}"
        raise ScenarioError(msg)
    hours = np.arange(np.floor(start_s / HOUR_S) + 1, np.ceil(end_s / HOUR_S)) * HOUR_S
    marks = [start_s, *hours.tolist(), end_s]
    pieces = [_hour_requests(population, rates, *span, rng) for span in pairwise(marks)]
    return Asked(*(np.concatenate(column) for column in zip(*pieces, strict=True)))


def _hour_requests(
    population: Population, rates: RequestRates, start_s: float, end_s: float, rng: np.random.Generator
) -> Asked:
    """Return the requests of an interval within one hour."""
    hour = int(hour_of(0.5 * (start_s + end_s)))
    by_activity = np.cumsum(rates.at(hour), axis=0)
    total = by_activity[-1]
    count = rng.poisson(len(population) * total.max() * (end_s - start_s))
    gaps = np.cumsum(rng.standard_exponential(count + 1))
    time = start_s + (end_s - start_s) * (gaps[:-1] / gaps[-1])
    user = rng.integers(0, len(population), size=count)
    level = rng.random(count) * total.max()
    xy, activity = population.position(user, time)
    kept = level < total[activity]
    xy, activity, level = xy[kept], activity[kept], level[kept]
    edges = (
        by_activity[:, activity]
        if rates.popularity is None
        else np.cumsum(rates.by_type(time[kept], activity, hour), axis=0)
    )
    kind = (level >= edges[:-1]).sum(axis=0)
    return Asked(
        created_s=time[kept],
        user=user[kept].astype(np.int32),
        request_type=kind.astype(np.int16),
        x_m=xy[:, 0],
        y_m=xy[:, 1],
        activity=activity,
    )
