"""Flash crowds: where they gather, who is there when, and what that adds to the expected demand."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.demand import Demand, RequestRates
from geoedge.city.popularity import type_shares
from geoedge.city.trips import HOUR_S, LEISURE, hour_of
from geoedge.errors import CityError
from geoedge.scenario.toml import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from shapely import Polygon

    from geoedge.city.city import City
    from geoedge.scenario import EventConfig

    Floats = NDArray[np.float64]

__all__ = ["Crowd", "find_place", "make_crowd", "place_of", "with_crowds"]

RADIUS_M = 100.0
"""How far around a place people stand if nothing is said [m]."""
GATHER_SHARE = 0.1
"""Share of a crowd's time over which people arrive if nothing is said."""
ONE_PLACE_M = 250.0
"""Places of one name no further apart are one place [m]."""
_CIRCLE = 64
"""Corners of a quarter of a circle."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """People who come to a place, ask there, and leave together.

    Parameters
    ----------
    xy
        The middle of it [m], shape (2,).
    radius_m
        How far around people stand, on land [m].
    people
        How many come.
    start_s, gather_s, end_s
        When the first one comes, over how long they arrive, evenly, and when all leave [s since midnight].
    rate
        Requests of each of them [1/s].
    share
        What they ask for, shape (Q,); None if it is what people at leisure ask for.
    """

    xy: Floats
    radius_m: float
    people: int
    start_s: float
    gather_s: float
    end_s: float
    rate: float
    share: Floats | None

    def present(self, start_s: float, end_s: float) -> float:
        """Return the mean number of people who are there in a stretch of time.

        Parameters
        ----------
        start_s, end_s
            The stretch [s since midnight].
        """
        low, high = (float(np.clip(t, self.start_s, self.end_s)) for t in (start_s, end_s))
        return self.people * (self._stood(high) - self._stood(low)) / (end_s - start_s)

    def _stood(self, time_s: float) -> float:
        """Return the time that one of them has been there by an instant, on average [s]."""
        here = time_s - self.start_s
        ramp = min(here, self.gather_s)
        return (0.5 * ramp * ramp / self.gather_s if self.gather_s > 0.0 else 0.0) + here - ramp

    def shares(self, rates: RequestRates, time_s: Floats) -> Floats:
        """Return what is asked for at instants of one hour, shape (Q, n).

        Parameters
        ----------
        rates
            What residents ask for.
        time_s
            The instants [s since midnight], shape (n,).
        """
        if self.share is not None:
            return np.tile(self.share[:, None], (1, len(time_s)))
        hour = int(hour_of(time_s[0])) if len(time_s) else 0
        asked = rates.by_type(time_s, np.full(len(time_s), LEISURE), hour)
        total = asked.sum(axis=0)
        if (total == 0.0).any():
            msg = f"flash_crowd: at hour {hour} people at leisure ask for nothing; say in `types` what the crowd asks for"
            raise CityError(msg)
        return np.asarray(asked / total, dtype=np.float64)

    def demand(self, rates: RequestRates, start_s: float, end_s: float) -> Floats:
        """Return the mean requests of a stretch of time [1/s], shape (Q,).

        Parameters
        ----------
        rates
            What residents ask for.
        start_s, end_s
            The stretch [s since midnight].
        """
        low, high = max(start_s, self.start_s), min(end_s, self.end_s)
        asked = np.zeros(len(rates.type_rate))
        if low >= high:
            return asked
        hours = np.arange(np.floor(low / HOUR_S) + 1, np.ceil(high / HOUR_S)) * HOUR_S
        for first, last in pairwise([low, *hours.tolist(), high]):
            when = first + (last - first) * (np.arange(64) + 0.5) / 64
            mean = self.shares(rates, when).mean(axis=1)
            asked += mean * self.rate * self.present(first, last) * (last - first)
        return asked / (end_s - start_s)

    def land(self, city: City) -> Polygon:
        """Return the land on which people stand [m].

        Parameters
        ----------
        city
            The city.

        Raises
        ------
        CityError
            If there is none.
        """
        import shapely

        disc = shapely.Point(*self.xy).buffer(self.radius_m, quad_segs=_CIRCLE)
        land = disc.intersection(city.boundary)
        if land.area <= 1e-6 * disc.area:
            lon, lat = city.to_lonlat(self.xy)[0]
            msg = (
                f"flash_crowd: no land of {city.name} within {self.radius_m:g} m of longitude {lon:.5f}, latitude {lat:.5f}; "
                "choose a place in the city, or a wider radius_m"
            )
            raise CityError(msg)
        return land

    def standing(self, city: City, rng: np.random.Generator) -> Floats:
        """Return where people stand, evenly over the land within the radius [m], shape (people, 2).

        Parameters
        ----------
        city
            The city.
        rng
            Random stream.
        """
        import shapely

        land = self.land(city)
        shapely.prepare(land)
        low, high = (np.array(land.bounds[k : k + 2]) for k in (0, 2))
        kept: list[Floats] = []
        missing = self.people
        while missing > 0:
            drawn = rng.uniform(low, high, (4 * self.people + 64, 2))
            inside = drawn[shapely.contains_xy(land, *drawn.T)][:missing]
            kept.append(inside)
            missing -= len(inside)
        return np.concatenate(kept)

    def cells(self, city: City, cell_m: float) -> tuple[Floats, Floats]:
        """Return the centres of the cells on which people stand [m], shape (n, 2), and the share on each, shape (n,).

        Parameters
        ----------
        city
            The city.
        cell_m
            Side of a cell [m]; cells stand at its multiples.
        """
        import shapely

        land = self.land(city)
        low, high = (np.array(land.bounds[k : k + 2]) / cell_m for k in (0, 2))
        across = [np.arange(np.floor(a), np.ceil(b)) for a, b in zip(low, high, strict=True)]
        corner = np.stack(np.meshgrid(*across, indexing="ij"), axis=-1).reshape(-1, 2) * cell_m
        area = shapely.area(shapely.intersection(shapely.box(*corner.T, *(corner + cell_m).T), land))
        used = area > 0.0
        return corner[used] + 0.5 * cell_m, area[used] / area[used].sum()


def make_crowd(
    event: EventConfig, xy: Floats, start_s: float, rate: float, type_names: Sequence[str]
) -> Crowd:
    """Return the crowd of an event.

    Parameters
    ----------
    event
        A flash_crowd of a scenario.
    xy
        Where it is [m], shape (2,).
    start_s
        When it begins [s since midnight].
    rate
        Requests of a person if the event states none [1/s].
    type_names
        Names of all types, length Q.
    """
    duration = event.duration_s or 0.0
    gather = GATHER_SHARE * duration if event.gather_s is None else event.gather_s
    return Crowd(
        xy=np.asarray(xy, dtype=np.float64),
        radius_m=RADIUS_M if event.radius_m is None else event.radius_m,
        people=event.people or 0,
        start_s=start_s,
        gather_s=gather,
        end_s=start_s + duration,
        rate=event.request_rate_per_user_s or rate,
        share=None if event.types is None else type_shares(event.types, type_names),
    )


def place_of(city: City, event: EventConfig) -> Floats | None:
    """Return where an event is stated to happen [m], shape (2,); nothing if it states no place.

    Parameters
    ----------
    city
        The city.
    event
        An event of a scenario.

    Raises
    ------
    CityError
        If the city knows no such place, or several far apart.
    """
    if event.lon is not None and event.lat is not None:
        return np.asarray(city.from_lonlat([(event.lon, event.lat)])[0])
    return None if event.place is None else find_place(city, event.place)


def find_place(city: City, name: str) -> Floats:
    """Return where the place of a name is [m], shape (2,).

    Names are text that anybody may have written in the map; they are compared without regard to case and
    spaces around them.

    Parameters
    ----------
    city
        A city; its table of places counts.
    name
        The name.

    Raises
    ------
    CityError
        In one line: if no place is called so, with the nearest name, or if places far apart are.
    """
    names = [_plain(each) for each in city.places.name.tolist()]
    found = np.flatnonzero([each == _plain(name) for each in names])
    if not len(found):
        near = difflib.get_close_matches(
            _plain(name), sorted({each for each in names if each}), n=1, cutoff=0.5
        )
        known = city.places.name[names.index(near[0])] if near else None
        hint = f", did you mean {shown(str(known).strip())}?" if near else "."
        named = len({each for each in names if each})
        msg = (
            f"place = {shown(name)}: {city.name} has no place of this name{hint} Name one of its {named} named places, or "
            "give lon and lat"
        )
        raise CityError(msg)
    points = city.places.xy[found]
    apart = float(np.hypot(*np.ptp(points, axis=0)))
    if apart > ONE_PLACE_M:
        lon, lat = city.to_lonlat(points[:1])[0]
        msg = (
            f"place = {shown(name)}: {len(found)} places up to {apart:.0f} m apart are called so; give lon and lat, such as "
            f"lon = {lon:.5f}, lat = {lat:.5f} for the first"
        )
        raise CityError(msg)
    return np.asarray(points.mean(axis=0))


def _plain(name: object) -> str:
    return " ".join(str(name or "").casefold().split())


def with_crowds(
    demand: Sequence[Demand],
    epochs: Sequence[tuple[float, float]],
    crowds: Sequence[Crowd],
    city: City,
    rates: RequestRates,
    cell_m: float,
) -> list[Demand]:
    """Return the expected demand of each epoch with what crowds add to it.

    Parameters
    ----------
    demand
        Expected demand of residents by epoch, on cells.
    epochs
        Start and end of each epoch [s since midnight].
    crowds
        Crowds that are expected.
    city
        The city.
    rates
        What residents ask for.
    cell_m
        Side of a cell [m].
    """
    places = [crowd.cells(city, cell_m) for crowd in crowds]
    found = []
    for plain, (start, end) in zip(demand, epochs, strict=True):
        parts = [(plain.xy, plain.rate)]
        for crowd, (xy, share) in zip(crowds, places, strict=True):
            asked = crowd.demand(rates, start, end)
            if asked.any():
                parts.append((xy, share[:, None] * asked))
        found.append(_merged(parts, cell_m) if len(parts) > 1 else plain)
    return found


def _merged(parts: Sequence[tuple[Floats, Floats]], cell_m: float) -> Demand:
    """Return demand on cells with the parts of each cell added up."""
    xy, rate = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    cells, row = np.unique(np.rint(xy / cell_m - 0.5).astype(np.int64), axis=0, return_inverse=True)
    total = np.zeros((len(cells), rate.shape[1]))
    np.add.at(total, row.reshape(-1), rate)
    return Demand(np.asarray((cells + 0.5) * cell_m, dtype=np.float64), total, cell_m)
