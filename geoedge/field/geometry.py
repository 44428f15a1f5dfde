"""Where requests and sites are, and what the way between them costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.field.blocks import Blocks
    from geoedge.field.streets import StreetWays

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Geometry"]

TIE_FLOOR_S = 5e-4
"""Least tie span [s]: costs closer than this are shared, also between sites at one place."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """Places and sites, and the radio delay between them; built once, whatever the sites hold.

    Parameters
    ----------
    point_xy
        Places of demand [km], shape (n_points, 2).
    site_xy
        Sites [km], shape (n, 2).
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay, Eq. (10).
    cell_m
        Side of the cells that the places are centres of [m]; ``None`` for points without extent.
    period_km
        Sizes of the torus window [km]; ``None`` for the plane.
    ways
        Ways along the streets to the sites, if radio follows them; ``None`` where it goes straight.

    Raises
    ------
    GeoEdgeError
        If there is no place or no site, a number is not finite or out of range, or ways do not fit the sites.
    """

    point_xy: Floats
    site_xy: Floats
    delay_coefficient: float
    delay_exponent: float
    cell_m: float | None = None
    period_km: tuple[float, float] | None = None
    ways: StreetWays | None = None

    def __post_init__(self) -> None:
        for name in ("point_xy", "site_xy"):
            places = np.array(getattr(self, name), dtype=np.float64).reshape(-1, 2)
            if not len(places) or not np.isfinite(places).all():
                msg = (
                    f"`{name}` must be finite coordinates in km of at least one place, not {len(places)} rows"
                )
                raise GeoEdgeError(msg)
            if self.period_km is not None:
                places = np.mod(places, np.asarray(self.period_km, dtype=np.float64))
            places.setflags(write=False)
            object.__setattr__(self, name, places)
        if not (self.delay_coefficient >= 0 and self.delay_exponent > 0):
            msg = (
                f"`delay_coefficient` ({self.delay_coefficient}) must be >= 0 and "
                f"`delay_exponent` ({self.delay_exponent}) > 0"
            )
            raise GeoEdgeError(msg)
        if self.ways is not None:
            self._check_ways(self.ways)

    def _check_ways(self, ways: StreetWays) -> None:
        if self.period_km is not None:
            msg = "radio along streets knows no torus; leave out `period_km` or `ways`"
            raise GeoEdgeError(msg)
        if len(ways.site_gap_km) != len(self.site_xy):
            msg = f"`ways` lead to {len(ways.site_gap_km)} sites, but there are {len(self.site_xy)}; find them for these sites"
            raise GeoEdgeError(msg)

    @property
    def period(self) -> tuple[float, float]:
        """Sizes of the torus window [km], infinite for the plane."""
        return (np.inf, np.inf) if self.period_km is None else self.period_km

    @cached_property
    def blocks(self) -> Blocks:
        """Places in blocks and tiles, with bounds of the radio delay, as the kernels take them."""
        from geoedge.field.blocks import Blocks, fill_tiles, gathered

        tile, start, order = gathered(self.point_xy, len(self.site_xy))
        shape = len(tile) - 1, len(self.site_xy)
        node, gap, node_km, site_gap = self._streets
        blocks = Blocks(
            tile,
            start,
            order,
            np.empty(shape),
            np.empty(shape),
            self.point_xy,
            self.site_xy,
            float(self.delay_coefficient),
            float(self.delay_exponent),
            float(self.period[0]),
            float(self.period[1]),
            node,
            node_km,
            gap,
            site_gap,
        )
        fill_tiles(blocks)
        return blocks

    @cached_property
    def _streets(self) -> tuple[Ints, Floats, NDArray[np.float32], Floats]:
        """Each place's node and its gap, and the ways from there; all empty where radio goes straight."""
        if self.ways is None:
            return np.empty(0, dtype=np.int64), np.empty(0), np.empty((0, 0), dtype=np.float32), np.empty(0)
        return *self.ways.doors(self.point_xy), self.ways.node_km, self.ways.site_gap_km

    def way_km(self, place: Ints, site: Ints) -> Floats:
        """Return how far radio goes between places and sites, pair by pair [km], shape (m,).

        Parameters
        ----------
        place, site
            Indices, shape (m,).
        """
        if self.ways is not None:
            node, gap, node_km, site_gap = self._streets
            way: Floats = gap[place] + node_km[node[place], site] + site_gap[site]
            return way
        side = np.abs(self.point_xy[place] - self.site_xy[site])
        side = np.minimum(side, np.asarray(self.period) - side)
        straight: Floats = np.hypot(side[:, 0], side[:, 1])
        return straight

    @cached_property
    def span(self) -> Floats:
        """Tie span of every place [s], shape (n_points,): how much the radio delay changes across its cell."""
        from geoedge.field.cells import nearest_delay

        radius = self.distance(nearest_delay(self.blocks))
        half = 0.0 if self.cell_m is None else 0.5 * self.cell_m / KM
        inner = self.radio_delay(np.maximum(radius - half, 0.0))
        return np.maximum(self.radio_delay(radius + half) - inner, TIE_FLOOR_S)

    def at(self, places: Ints, cell_m: float | None) -> Geometry:
        """Return the geometry of some of the places, as centres of cells of another size.

        Parameters
        ----------
        places
            Which places, shape (m,).
        cell_m
            Side of their cells [m], ``None`` for points.
        """
        return replace(self, point_xy=self.point_xy[places], cell_m=cell_m)

    def radio_delay(self, distance_km: Floats) -> Floats:
        """Return the radio delay ξ r^α [s], Eq. (10).

        Parameters
        ----------
        distance_km
            Distances r [km], any shape.
        """
        delay: Floats = self.delay_coefficient * distance_km**self.delay_exponent
        return delay

    def distance(self, delay_s: Floats) -> Floats:
        """Return the distance [km] at which radio takes so long; zero if radio costs nothing.

        Parameters
        ----------
        delay_s
            Radio delays [s], any shape.
        """
        if self.delay_coefficient == 0.0:
            return np.zeros_like(delay_s)
        distance: Floats = (delay_s / self.delay_coefficient) ** (1.0 / self.delay_exponent)
        return distance
