"""What the field is asked: demand on a map, sites and their profiles, the workload, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.field.geometry import Geometry
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.field.streets import StreetWays
    from geoedge.sites.layout import Layout

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Demandlike", "FieldProblem", "Geometry", "Workloadlike", "field_problem", "merged"]


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
    counted
        Whether the requests of a place count in averages, shape (n_points,); all of them if omitted. The others load
        the sites all the same.
    own_sites
        How many sites, the first ones, summaries of sites are about; all of them if omitted.

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
    counted: NDArray[np.bool_] | None = None
    own_sites: int | None = None

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
        if self.counted is not None and np.shape(self.counted) != shapes["rate"][:1]:
            msg = f"`counted` must have one entry for each of {shapes['rate'][0]} places, not shape {np.shape(self.counted)}"
            raise GeoEdgeError(msg)
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
    ways: StreetWays | None = None,
    counted: NDArray[np.bool_] | None = None,
    own_sites: int | None = None,
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
    ways
        Ways along the streets to the sites, if radio follows them.
    counted
        Whether the requests of a place count in averages, shape (n_points,); all of them by default.
    own_sites
        How many sites, the first ones, summaries of sites are about; all of them by default.
    """
    if geometry is None:
        geometry = Geometry(
            np.asarray(demand.xy) / KM,
            layout.xy_km,
            delay_coefficient,
            delay_exponent,
            demand.cell_m,
            layout.period_km,
            ways,
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
        counted=counted,
        own_sites=own_sites,
    )


def merged(problem: FieldProblem, places: float) -> FieldProblem:
    """Return the problem on about so many places, each square of neighbours gathered at the one that asks most.

    Parameters
    ----------
    problem
        The problem.
    places
        About how many places to keep.
    """
    from geoedge.field.blocks import square_of

    geometry, per_square = problem.geometry, len(problem.rate) / places
    column, row = square_of(geometry.point_xy, per_square)
    group = np.unique(row * (int(column.max()) + 1) + column, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((-problem.rate.sum(axis=1), group))
    chief = order[np.flatnonzero(np.diff(group[order], prepend=-1))]
    rate = np.stack([np.bincount(group, kind) for kind in problem.rate.T], axis=1).astype(np.float64)
    cell = None if geometry.cell_m is None else geometry.cell_m * float(np.sqrt(per_square))
    return replace(problem, geometry=geometry.at(chief, cell), rate=rate, counted=None)
