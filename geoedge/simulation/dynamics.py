"""What happens in a run besides an ordinary day: events made into instants, and crowds that come and ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.crowds import RADIUS_M, Crowd, make_crowd, place_of
from geoedge.city.trips import DAY_START_S, HOUR_S, LEISURE
from geoedge.errors import ScenarioError
from geoedge.simulation.mobility import Asked
from geoedge.simulation.tables import Drawn
from geoedge.streams import stream
from geoedge.study.events import look_up_events, sites_around

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.city.demand import RequestRates
    from geoedge.scenario import EventConfig
    from geoedge.study import Study

    Floats = NDArray[np.float64]

__all__ = ["Moment", "Occurrence", "Timeline", "ask_in_crowd", "occurrences", "with_crowd"]

DAY_END_S = 24 * HOUR_S


@dataclass(frozen=True, eq=False)
class Occurrence:
    """One thing that happens in one run.

    Parameters
    ----------
    event
        Which event of the scenario it is.
    number
        How many times that event has happened before on this day.
    kind
        Kind of the event.
    start_s, end_s
        When it begins and is over [s since midnight]; equal for what is done at once.
    xy
        Where [m], shape (2,), if at a place.
    radius_m
        How far around [m].
    sites
        Which sites.
    crowd
        Who comes.
    rate_left
        Share of the backhaul rate that is left [–].
    prefix
        Which prefix gets a new version.
    detection_s
        How long nobody knows of it [s].
    """

    event: int
    number: int
    kind: str
    start_s: float
    end_s: float
    xy: Floats | None = None
    radius_m: float = float("nan")
    sites: tuple[int, ...] = ()
    crowd: Crowd | None = None
    rate_left: float = 1.0
    prefix: str = ""
    detection_s: float = 0.0

    @property
    def known_s(self) -> float:
        """When it is known: after its detection, or once it is over [s since midnight]."""
        return min(self.start_s + self.detection_s, self.end_s)


class Moment(IntEnum):
    """What becomes of an occurrence; at one instant in this order."""

    ENDS = 0
    BEGINS = 1
    IS_FOUND = 2
    """It has begun before, and is known from now on."""


def occurrences(study: Study, seed: int) -> list[Occurrence]:
    """Return what happens within the window of a run, in order of its beginning.

    Random instants are drawn for the whole day, so that they do not depend on the part of it that is run.

    Parameters
    ----------
    study
        The study.
    seed
        Seed of the run; every event has streams of its own.

    Raises
    ------
    ScenarioError
        If a site does not exist.
    CityError
        If a place is not known or has no land around it.
    """
    look_up_events(study.scenario, study.city, study.layout)
    start, end = study.epochs[0][0], study.epochs[-1][1]
    found = [
        one
        for number, event in enumerate(study.scenario.dynamics.events)
        for one in _of_event(study, number, event, seed)
    ]
    return sorted(
        (one for one in found if one.start_s < end and (one.end_s > start or one.start_s >= start)),
        key=lambda one: (one.start_s, one.event, one.number),
    )


def _of_event(study: Study, number: int, event: EventConfig, seed: int) -> Iterator[Occurrence]:
    place = place_of(study.city, event)
    for k, start in enumerate(_instants(number, event, seed)):
        xy = _drawn_place(study, number, k, seed) if event.kind == "flash_crowd" and place is None else place
        crowd = None
        if event.kind == "flash_crowd" and xy is not None:
            rate = study.scenario.demand.request_rate_per_user_s or 0.0
            crowd = make_crowd(event, xy, start, rate, study.workload.type_names)
            crowd.land(study.city)
        yield Occurrence(
            event=number,
            number=k,
            kind=event.kind,
            start_s=start,
            end_s=start + (event.duration_s or 0.0),
            xy=xy,
            radius_m=float("nan") if xy is None else event.radius_m or RADIUS_M,
            sites=_sites(study, number, event, k, seed, xy),
            crowd=crowd,
            rate_left=1.0 if event.rate_left is None else event.rate_left,
            prefix=event.prefix or "",
            detection_s=event.detection_s or 0.0,
        )


def _instants(number: int, event: EventConfig, seed: int) -> list[float]:
    if event.per_day is None:
        return [event.start_s]
    rng = stream(seed, "dynamics", number, "instants")
    day = DAY_END_S - DAY_START_S
    count = rng.poisson(event.per_day * day / DAY_END_S)
    return [float(instant) for instant in np.sort(DAY_START_S + day * rng.random(count))]


def _drawn_place(study: Study, number: int, k: int, seed: int) -> Floats:
    """Return a leisure destination, drawn by weight [m], shape (2,)."""
    model = study.mobility
    weight = np.where(model.destination_activity == LEISURE, model.destination_weight, 0.0)
    if not weight.any():
        msg = f"dynamics.events[{number}]: the city has no leisure destination to draw; give place, or lon and lat"
        raise ScenarioError(msg)
    rng = stream(seed, "dynamics", number, k, "place")
    return np.asarray(model.destination_xy[rng.choice(len(weight), p=weight / weight.sum())])


def _sites(
    study: Study, number: int, event: EventConfig, k: int, seed: int, xy: Floats | None
) -> tuple[int, ...]:
    """Return the sites that an event is about."""
    n = len(study.layout)
    if event.sites is not None:
        return tuple(sorted(event.sites))
    if event.count is not None:
        drawn = stream(seed, "dynamics", number, k, "sites").choice(n, event.count, replace=False)
        return tuple(sorted(drawn.tolist()))
    if event.kind == "backhaul_loss":
        return tuple(range(n))
    if event.kind == "site_failure" and xy is not None:
        return sites_around(f"dynamics.events[{number}]", event, study.layout, xy)
    return ()


class Timeline:
    """The beginnings and ends of occurrences in order of time, and when those are found that begin in silence.

    What has begun before the window begins with it; what is not over by its end is not ended.

    Parameters
    ----------
    happening
        What happens.
    start_s
        Start of the window [s since midnight].
    """

    def __init__(self, happening: Sequence[Occurrence], start_s: float) -> None:
        moments = [(max(one.start_s, start_s), Moment.BEGINS, k) for k, one in enumerate(happening)]
        moments += [(one.end_s, Moment.ENDS, k) for k, one in enumerate(happening) if one.end_s > one.start_s]
        moments += [
            (max(one.known_s, start_s), Moment.IS_FOUND, k)
            for k, one in enumerate(happening)
            if one.start_s < one.known_s < one.end_s
        ]
        self._happening = tuple(happening)
        self._moments = sorted(moments)
        self._next = 0

    def next_s(self) -> float:
        """Return when the next one begins, is found or ends [s since midnight]; infinite if none does."""
        return self._moments[self._next][0] if self._next < len(self._moments) else float("inf")

    def due(self, now_s: float) -> Iterator[tuple[Occurrence, Moment]]:
        """Yield what begins, is found or ends by an instant and was not yielded before; ends come first.

        Parameters
        ----------
        now_s
            The instant [s since midnight].
        """
        while self.next_s() <= now_s:
            _, moment, k = self._moments[self._next]
            self._next += 1
            yield self._happening[k], moment


def ask_in_crowd(
    one: Occurrence, crowd: Crowd, city: City, rates: RequestRates, seed: int, first_user: int
) -> Drawn:
    """Return all that a crowd asks, from its first arrival to its end, on streams of its own.

    Parameters
    ----------
    one
        The occurrence.
    crowd
        Its crowd.
    city
        The city.
    rates
        What residents ask for.
    seed
        Seed of the run.
    first_user
        Number of the first person.
    """
    people, asking, service = (
        stream(seed, "dynamics", one.event, one.number, name) for name in ("people", "requests", "service")
    )
    xy = crowd.standing(city, people)
    arrived = crowd.start_s + crowd.gather_s * people.random(crowd.people)
    there = np.cumsum(crowd.end_s - arrived)
    count = asking.poisson(crowd.rate * there[-1])
    spent = np.sort(asking.random(count)) * there[-1]
    who = np.minimum(np.searchsorted(there, spent, side="right"), crowd.people - 1)
    time = crowd.end_s - (there[who] - spent)
    order = np.argsort(time, kind="stable")
    who, time = who[order], time[order]
    kind = _kinds(crowd, rates, time, asking.random(count))
    asked = Asked(
        created_s=time,
        user=(first_user + who).astype(np.int32),
        request_type=kind,
        x_m=xy[who, 0],
        y_m=xy[who, 1],
        activity=np.full(count, LEISURE, dtype=np.int8),
    )
    return Drawn(asked, service.standard_exponential(count))


def _kinds(crowd: Crowd, rates: RequestRates, time_s: Floats, level: Floats) -> NDArray[np.int16]:
    """Return the type of each request of a crowd, made at increasing instants, from a level in [0, 1)."""
    kind = np.zeros(len(time_s), dtype=np.int16)
    if not len(time_s):
        return kind
    hours = np.arange(np.floor(time_s[0] / HOUR_S) + 1, np.floor(time_s[-1] / HOUR_S) + 1) * HOUR_S
    for low, high in pairwise([0, *np.searchsorted(time_s, hours).tolist(), len(time_s)]):
        edges = np.cumsum(crowd.shares(rates, time_s[low:high]), axis=0)
        kind[low:high] = (level[low:high] >= edges[:-1]).sum(axis=0)
    return kind


def with_crowd(drawn: Drawn, crowds: Sequence[Drawn], start_s: float, end_s: float) -> Drawn:
    """Return the requests of an epoch with those that crowds make in it, by time; residents' stay as they are.

    Parameters
    ----------
    drawn
        What residents ask in the epoch.
    crowds
        All that crowds ask.
    start_s, end_s
        The epoch [s since midnight].
    """
    parts = [drawn]
    for crowd in crowds:
        created = crowd.asked.created_s
        part = slice(*np.searchsorted(created, (start_s, end_s), side="left").tolist())
        if part.start < part.stop:
            parts.append(Drawn(Asked._make(column[part] for column in crowd.asked), crowd.mark[part]))
    if len(parts) == 1:
        return drawn
    order = np.argsort(np.concatenate([part.asked.created_s for part in parts]), kind="stable")
    columns = zip(*(part.asked for part in parts), strict=True)
    turns = drawn.turns
    return Drawn(
        Asked._make(np.concatenate(column)[order] for column in columns),
        np.concatenate([part.mark for part in parts])[order],
        None if turns is None else turns.with_single(order.size - len(turns)).part(order),
    )
