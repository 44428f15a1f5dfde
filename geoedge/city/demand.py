"""Where requests come from: weighted points, among them the expected demand of moving users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.popularity import hours_of_knots
from geoedge.city.presence import BIN_S, Presence, expected_presence
from geoedge.city.raster import presence_raster
from geoedge.city.trips import ACTIVITIES, hour_of
from geoedge.errors import GeoEdgeError, ScenarioError
from geoedge.units import KM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.city.popularity import Popularity
    from geoedge.city.trips import MobilityModel

__all__ = [
    "Demand",
    "RequestRates",
    "demand_of",
    "expected_demand",
    "uniform_demand",
    "uniform_torus_demand",
]


@dataclass(frozen=True, eq=False)
class RequestRates:
    """How often one user asks for each type, by what it is doing and by the hour.

    A user of activity a emits type q at hour h in a Poisson process of rate
    ``type_rate[q] * place_weight[q, a] * hour_weight[q, h]``. Where popularity drifts, it asks as often as before,
    whatever it is doing and at any hour; only the types are then shared out in proportion to their probability of
    the instant times both weights.

    Parameters
    ----------
    type_rate
        Base rate ν p_q of each type [1/s], shape (Q,).
    place_weight
        Relative rate by activity, in the order of `ACTIVITIES` [–], shape (Q, 4).
    hour_weight
        Relative rate by hour of day [–], shape (Q, 24).
    popularity
        Type probabilities over time; None if they stay as ``type_rate`` has them.

    Raises
    ------
    ScenarioError
        If a shape or a sign is wrong, or popularity drifts to where people have nothing left to ask for.
    """

    type_rate: NDArray[np.float64]
    place_weight: NDArray[np.float64]
    hour_weight: NDArray[np.float64]
    popularity: Popularity | None = None

    def __post_init__(self) -> None:
        types = len(self.type_rate)
        wanted = {
            "type_rate": (types,),
            "place_weight": (types, len(ACTIVITIES)),
            "hour_weight": (types, 24),
        }
        for name, shape in wanted.items():
            values = np.asarray(getattr(self, name), dtype=np.float64)
            if values.shape != shape or not np.isfinite(values).all() or (values < 0.0).any():
                msg = f"`{name}` must hold finite nonnegative numbers of shape {shape}, not {values.shape}"
                raise ScenarioError(msg)
            object.__setattr__(self, name, values)
        if self.popularity is not None:
            self._check_drift(self.popularity)

    def at(self, hour: int) -> NDArray[np.float64]:
        """Return the rate of each type by activity at an hour of day, before any drift [1/s], shape (Q, 4).

        The sum over types holds under a drift too.

        Parameters
        ----------
        hour
            Hour of day, 0 to 23.
        """
        return np.asarray(self.type_rate[:, None] * self.place_weight * self.hour_weight[:, hour, None])

    def during(self, start_s: float, end_s: float) -> NDArray[np.float64]:
        """Return the mean rate of each type by activity over a stretch within one hour [1/s], shape (Q, 4).

        Parameters
        ----------
        start_s, end_s
            The stretch [s since midnight]; an instant if they are equal.
        """
        hour = int(hour_of(0.5 * (start_s + end_s)))
        if self.popularity is None:
            return self.at(hour)
        when = start_s + (end_s - start_s) * (np.arange(64) + 0.5) / 64
        return np.stack(
            [self.by_type(when, np.full(64, a), hour).mean(axis=1) for a in range(len(ACTIVITIES))], axis=1
        )

    def by_type(
        self, time_s: NDArray[np.float64], activity: NDArray[np.integer], hour: int
    ) -> NDArray[np.float64]:
        """Return the rate of each type at instants of one hour by users of an activity [1/s], shape (Q, n).

        Parameters
        ----------
        time_s
            Instants [s since midnight], shape (n,).
        activity
            What the user does at each, an index into `ACTIVITIES`, shape (n,).
        hour
            Hour of day of all of them.
        """
        asked = self.at(hour)
        if self.popularity is None:
            return asked[:, activity]
        pull = self.popularity.at(time_s) * (self.place_weight * self.hour_weight[:, hour, None])[:, activity]
        whole = pull.sum(axis=0)
        share = np.divide(pull, whole, out=np.zeros_like(pull), where=whole > 0.0)
        return np.asarray(share * asked.sum(axis=0)[activity], dtype=np.float64)

    def _check_drift(self, popularity: Popularity) -> None:
        """Refuse a drift towards types that nobody asks for, as the number of requests could not stay."""
        for knot, hours in hours_of_knots(popularity):
            for hour in (h % 24 for h in hours):
                weight = self.place_weight * self.hour_weight[:, hour, None]
                lost = (self.at(hour).sum(axis=0) > 0.0) & (popularity.share[knot] @ weight == 0.0)
                if lost.any():
                    where = ACTIVITIES[int(np.flatnonzero(lost)[0])]
                    msg = (
                        f"popularity_drift: at hour {hour} people at {where} ask for none of the types that are left; "
                        "give a type with place_weight and hour_weight there some weight"
                    )
                    raise ScenarioError(msg)


@dataclass(frozen=True, eq=False)
class Demand:
    """Requests per second and type at points.

    Parameters
    ----------
    xy
        Points in the city's CRS [m], shape (n, 2).
    rate
        Requests of each type from each point [1/s], shape (n, Q).
    cell_m
        Side of the square cells whose centres the points are [m]; None if they are just points.
    """

    xy: NDArray[np.float64]
    rate: NDArray[np.float64]
    cell_m: float | None = None

    @classmethod
    def from_points(cls, xy: ArrayLike, rate: ArrayLike) -> Demand:
        """Return the demand of given points.

        Parameters
        ----------
        xy
            Points [m], shape (n, 2).
        rate
            Requests of each type from each point, shape (n, Q), or of each type from any point, shape (Q,) [1/s].

        Raises
        ------
        ScenarioError
            If the arrays do not agree, or a rate is negative or not finite.
        """
        points = np.asarray(xy, dtype=np.float64).reshape(-1, 2)
        rates = np.asarray(rate, dtype=np.float64)
        if rates.ndim == 1:
            rates = np.tile(rates, (len(points), 1))
        if rates.ndim != 2 or len(rates) != len(points):
            msg = f"`rate` of shape {rates.shape} does not fit {len(points)} points; give (n, Q) or (Q,)"
            raise ScenarioError(msg)
        if not np.isfinite(rates).all() or (rates < 0.0).any() or not np.isfinite(points).all():
            msg = "`xy` and `rate` must be finite and rates nonnegative; drop the points that are not"
            raise ScenarioError(msg)
        return cls(points, rates)

    @property
    def total(self) -> NDArray[np.float64]:
        """Requests of each type from everywhere [1/s], shape (Q,)."""
        return np.asarray(self.rate.sum(axis=0))

    @property
    def request_rate(self) -> float:
        """Requests from everywhere [1/s]."""
        return float(self.rate.sum())

    @property
    def mix(self) -> NDArray[np.float64]:
        """Share of each type in the requests [–], shape (Q,)."""
        return self.total / self.request_rate

    def intensity(self, area_km2: float) -> float:
        """Return the requests per second and area [1/(s km²)].

        Parameters
        ----------
        area_km2
            Area to spread them over [km²].
        """
        return self.request_rate / area_km2


def expected_demand(
    mobility: MobilityModel,
    rates: RequestRates,
    *,
    users: float,
    epochs: Sequence[tuple[float, float]],
    cell_m: float = 50.0,
    bin_s: float = BIN_S,
) -> list[Demand]:
    """Return the expected demand of moving users on a raster, averaged over each epoch.

    Parameters
    ----------
    mobility
        How users move.
    rates
        What they ask for.
    users
        Number of users.
    epochs
        Start and end of each epoch [s since midnight], from 03:00 on.
    cell_m
        Side of a cell [m]; cells stand at its multiples in the city's CRS.
    bin_s
        Time step of the computation, a divisor of an hour [s].

    Raises
    ------
    ScenarioError
        If an argument is not what it must be.
    """
    return demand_of(expected_presence(mobility, epochs, bin_s=bin_s), rates, users=users, cell_m=cell_m)


def demand_of(presence: Presence, rates: RequestRates, *, users: float, cell_m: float = 50.0) -> list[Demand]:
    """Return the demand of users who are where a presence expects them, one for each of its epochs.

    Parameters
    ----------
    presence
        Expected time of a user at each place.
    rates
        What users ask for.
    users
        Number of users.
    cell_m
        Side of a cell [m]; cells stand at its multiples in the city's CRS.

    Raises
    ------
    ScenarioError
        If `users` is negative or `cell_m` not positive.
    """
    if not 0.0 <= users < np.inf:
        msg = f"`users` = {users}: must be a nonnegative number"
        raise ScenarioError(msg)
    xy, spent = presence_raster(presence, cell_m)
    pieces_of_time = zip(presence.piece_start.tolist(), presence.piece_end.tolist(), strict=True)
    asked = np.stack([rates.during(start, end) for start, end in pieces_of_time])
    length = np.diff(presence.epochs, axis=1)[:, 0]
    found = []
    for epoch, seconds in enumerate(length):
        pieces = np.flatnonzero(presence.piece_epoch == epoch)
        rate = np.einsum("nap,pqa->nq", spent[:, :, pieces], asked[pieces]) * (users / seconds)
        used = rate.sum(axis=1) > 0.0
        found.append(Demand(xy[used], rate[used], cell_m))
    return found


def uniform_demand(land: Polygon | MultiPolygon, rate: ArrayLike, cell_m: float) -> Demand:
    """Return demand that is spread evenly over land, as square cells.

    A cell counts if its centre is on the land, and all that count ask alike; so the total is exact and the edge is
    followed to about a cell.

    Parameters
    ----------
    land
        Where requests come from [m].
    rate
        Requests of each type from everywhere [1/s], shape (Q,).
    cell_m
        Side of a cell [m]; cells stand at its multiples.

    Raises
    ------
    GeoEdgeError
        If `cell_m` is not positive, or so large that no cell has its centre on the land.
    """
    import shapely

    if not 0.0 < cell_m < np.inf:
        msg = f"`cell_m` = {cell_m}: must be a positive number of metres"
        raise GeoEdgeError(msg)
    left, bottom, right, top = (round(side / cell_m) for side in land.bounds)
    columns, rows = np.arange(left - 1, right + 1), np.arange(bottom - 1, top + 1)
    xy = (np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2) + 0.5) * cell_m
    shapely.prepare(land)
    xy = xy[shapely.contains_xy(land, xy[:, 0], xy[:, 1])]
    if not len(xy):
        msg = f"`cell_m` = {cell_m:g}: no cell has its centre on the land of {land.area / KM**2:.3g} km²; make it smaller"
        raise GeoEdgeError(msg)
    total = np.asarray(rate, dtype=np.float64).reshape(-1)
    return Demand(xy, np.tile(total / len(xy), (len(xy), 1)), cell_m)


def uniform_torus_demand(
    period_km: tuple[float, float], intensity: float, mix: ArrayLike, cell_km: float
) -> Demand:
    """Return uniform demand on a torus, as square cells.

    Parameters
    ----------
    period_km
        Sizes of the window [km], whole multiples of the cell.
    intensity
        Requests [1/(s km²)].
    mix
        p_q, shape (Q,).
    cell_km
        Side of a cell [km].

    Raises
    ------
    GeoEdgeError
        If the window is not a whole number of cells.
    """
    cells = np.asarray(period_km, dtype=np.float64) / cell_km
    shape = np.rint(cells).astype(np.int64)
    if (shape < 1).any() or not np.allclose(cells, shape, rtol=1e-9):
        msg = f"`period_km` {period_km} must be a whole number of cells of `cell_km` = {cell_km}"
        raise GeoEdgeError(msg)
    x, y = ((np.arange(n) + 0.5) * cell_km * KM for n in shape)
    xy = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    rate = np.tile(intensity * cell_km**2 * np.asarray(mix, dtype=np.float64), (len(xy), 1))
    return Demand(xy, rate, cell_km * KM)
