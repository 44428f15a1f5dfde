"""What the field is asked: demand on a map, sites and their profiles, the workload, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.field.cells import Blocks
    from geoedge.sites.layout import Layout

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Demandlike", "FieldProblem", "Geometry", "Workloadlike", "field_problem"]

NEAREST_KEPT = 64
"""Nearest sites listed for every block; the others are looked at only where the list does not settle a choice."""
BLOCK_POINTS = 16
"""About how many places make a block."""
TIE_FLOOR_S = 5e-4
"""Least tie span [s]: costs closer than this are shared, also between sites at one place."""


class Demandlike(Protocol):
    """Weighted points, as `geoedge.city.demand.Demand` is."""

    @property
    def xy(self) -> Floats: ...
    @property
    def rate(self) -> Floats: ...
    @property
    def cell_m(self) -> float | None: ...


class Workloadlike(Protocol):
    """The arrays of a workload that the field needs."""

    @property
    def prefill_time(self) -> Floats: ...
    @property
    def occupancy_time(self) -> Floats: ...
    @property
    def concurrency(self) -> Ints: ...
    @property
    def hit_tokens(self) -> Ints: ...
    @property
    def prompt_tokens(self) -> Ints: ...
    @property
    def full_prefill_time(self) -> Floats: ...


def _gather(point_xy: Floats) -> tuple[Ints, Ints]:
    """Gather places into square blocks; return where each block starts and the places in block order."""
    low, high = point_xy.min(axis=0), point_xy.max(axis=0)
    width, height = np.maximum(high - low, 1e-9)
    side = np.sqrt(width * height * BLOCK_POINTS / len(point_xy))
    column, row = np.floor((point_xy - low) / max(side, width / 1e6, height / 1e6)).astype(np.int64).T
    key = row * (int(column.max()) + 1) + column
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    return np.append(start, len(order)).astype(np.int64), order.astype(np.int64)


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

    Raises
    ------
    GeoEdgeError
        If there is no place or no site, or a number is not finite or out of range.
    """

    point_xy: Floats
    site_xy: Floats
    delay_coefficient: float
    delay_exponent: float
    cell_m: float | None = None
    period_km: tuple[float, float] | None = None

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

    @property
    def period(self) -> tuple[float, float]:
        """Sizes of the torus window [km], infinite for the plane."""
        return (np.inf, np.inf) if self.period_km is None else self.period_km

    @cached_property
    def _filled(self) -> tuple[Blocks, Floats]:
        """The blocks, and the radio delay of every place to the nearest site of its block's list [s]."""
        from geoedge.field.cells import Blocks, fill_blocks

        start, order = _gather(self.point_xy)
        n_blocks, kept = len(start) - 1, min(NEAREST_KEPT, len(self.site_xy))
        blocks = Blocks(
            start,
            order,
            np.empty((n_blocks, kept), dtype=np.int64),
            np.empty((n_blocks, kept)),
            np.empty((n_blocks, kept)),
            np.empty((len(order), kept)),
            self.point_xy,
            self.site_xy,
            float(self.delay_coefficient),
            float(self.delay_exponent),
            float(self.period[0]),
            float(self.period[1]),
        )
        return blocks, fill_blocks(blocks)

    @property
    def blocks(self) -> Blocks:
        """Places in blocks with their nearest sites, as the kernels take them."""
        return self._filled[0]

    @cached_property
    def span(self) -> Floats:
        """Tie span of every place [s], shape (n_points,): how much the radio delay changes across its cell."""
        radius = self.distance(self._filled[1])
        half = 0.0 if self.cell_m is None else 0.5 * self.cell_m / KM
        inner = self.radio_delay(np.maximum(radius - half, 0.0))
        return np.maximum(self.radio_delay(radius + half) - inner, TIE_FLOOR_S)

    def radio_delay(self, distance_km: Floats) -> Floats:
        """Return the radio delay [s], Eq. (10), of distances [km]."""
        delay: Floats = self.delay_coefficient * distance_km**self.delay_exponent
        return delay

    def distance(self, delay_s: Floats) -> Floats:
        """Return the distance [km] of radio delays [s]; zero if radio costs nothing."""
        if self.delay_coefficient == 0.0:
            return np.zeros_like(delay_s)
        distance: Floats = (delay_s / self.delay_coefficient) ** (1.0 / self.delay_exponent)
        return distance


@dataclass(frozen=True, eq=False)
class FieldProblem:
    """Demand on a map, sites, and the workload that runs on them.

    Parameters
    ----------
    geometry
        Places and sites.
    rate
        Requests of every place and type [1/s], shape (n_points, Q).
    profile
        Profile that each site holds, shape (n,).
    prefill_time
        Residual prefill T_pf by profile and type [s], shape (S, Q), Eq. (12).
    occupancy_time
        Time that a request holds a server [s], shape (S, Q), Eq. (14).
    concurrency
        Servers of a site by profile, shape (S,), Eq. (13).
    hit_tokens
        Cached tokens of a request [token], shape (S, Q), Eq. (4).
    prompt_tokens
        Prompt lengths [token], shape (Q,).
    full_prefill_time
        Prefill without any cache [s], shape (Q,).

    Raises
    ------
    GeoEdgeError
        If shapes disagree, or a number is not finite or out of range.
    """

    geometry: Geometry
    rate: Floats
    profile: Ints
    prefill_time: Floats
    occupancy_time: Floats
    concurrency: Ints
    hit_tokens: Floats
    prompt_tokens: Floats
    full_prefill_time: Floats

    def __post_init__(self) -> None:
        n_profiles, n_types = np.shape(self.prefill_time)
        shapes = {
            "rate": (len(self.geometry.point_xy), n_types),
            "profile": (len(self.geometry.site_xy),),
            "prefill_time": (n_profiles, n_types),
            "occupancy_time": (n_profiles, n_types),
            "concurrency": (n_profiles,),
            "hit_tokens": (n_profiles, n_types),
            "prompt_tokens": (n_types,),
            "full_prefill_time": (n_types,),
        }
        for name, shape in shapes.items():
            kind = np.int64 if name in ("profile", "concurrency") else np.float64
            array = np.ascontiguousarray(getattr(self, name), dtype=kind)
            if array.shape != shape or not np.isfinite(array).all() or (array < 0).any():
                msg = f"`{name}` must be finite and nonnegative of shape {shape}, not shape {array.shape}"
                raise GeoEdgeError(msg)
            object.__setattr__(self, name, array)
        if (
            self.profile.max() >= n_profiles
            or self.concurrency.min() < 1
            or not self.occupancy_time.min() > 0
        ):
            msg = f"`profile` must be below {n_profiles}, `concurrency` at least 1, `occupancy_time` positive"
            raise GeoEdgeError(msg)

    @property
    def n_sites(self) -> int:
        """Number of sites n."""
        return len(self.profile)

    @property
    def n_types(self) -> int:
        """Number of request types Q."""
        return int(self.rate.shape[1])

    @property
    def servers(self) -> Ints:
        """Concurrency of every site, shape (n,)."""
        return self.concurrency[self.profile]

    @property
    def request_rate(self) -> float:
        """Requests of all places and types [1/s]."""
        return float(self.rate.sum())

    @property
    def least_work_share(self) -> float:
        """Work of all requests, each where it takes least time, over all servers; no routing can serve 1 or more."""
        held = np.unique(self.profile)
        return float(self.rate.sum(axis=0) @ self.occupancy_time[held].min(axis=0) / self.servers.sum())

    def with_profile(self, profile: ArrayLike) -> FieldProblem:
        """Return the same problem with other profiles at the sites; the geometry is kept.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        """
        return replace(self, profile=np.asarray(profile, dtype=np.int64))

    def with_rate(self, rate: ArrayLike) -> FieldProblem:
        """Return the same problem with other request rates at the places; the geometry is kept.

        Parameters
        ----------
        rate
            Requests of every place and type [1/s], shape (n_points, Q).
        """
        return replace(self, rate=np.asarray(rate, dtype=np.float64))


def field_problem(
    demand: Demandlike,
    layout: Layout,
    workload: Workloadlike,
    *,
    delay_coefficient: float,
    delay_exponent: float,
    geometry: Geometry | None = None,
) -> FieldProblem:
    """Return the problem of a demand, a layout and a workload.

    Parameters
    ----------
    demand
        Requests at weighted points or cells, in the layout's CRS.
    layout
        Sites and what they hold.
    workload
        Times, hits and concurrency by profile and type.
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay, Eq. (10).
    geometry
        That of an earlier problem with the same places and sites, to save building it again.
    """
    if geometry is None:
        geometry = Geometry(
            np.asarray(demand.xy) / KM,
            layout.xy_km,
            delay_coefficient,
            delay_exponent,
            demand.cell_m,
            layout.period_km,
        )
    return FieldProblem(
        geometry=geometry,
        rate=demand.rate,
        profile=layout.profile,
        prefill_time=workload.prefill_time,
        occupancy_time=workload.occupancy_time,
        concurrency=workload.concurrency,
        hit_tokens=np.asarray(workload.hit_tokens, dtype=np.float64),
        prompt_tokens=np.asarray(workload.prompt_tokens, dtype=np.float64),
        full_prefill_time=workload.full_prefill_time,
    )
