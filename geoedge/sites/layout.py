"""Layout: where sites are and what each holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from geoedge.errors import CityError
from geoedge.streams import generator
from geoedge.units import KM, M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.city import City
    from geoedge.city.demand import Demand

__all__ = ["Layout", "SitesConfig", "make_layout", "place_profiles"]

SHARE_TOLERANCE = 1e-6
"""How far placement probabilities may be from summing to 1."""


class SitesConfig(Protocol):
    """The ``[sites]`` section of a scenario, as far as this room reads it."""

    @property
    def source(self) -> str:
        """``"hosts"``, a point process, or a file of sites."""

    @property
    def merge_distance_m(self) -> float:
        """Objects nearer than this are one site [m]."""

    @property
    def density_per_km2(self) -> float | None:
        """Density of a layout drawn at random [1/km²]."""

    @property
    def operator(self) -> str | None:
        """The only operator of a file to keep."""

    @property
    def radio(self) -> str | None:
        """The only technologies of a file to keep."""

    @property
    def columns(self) -> str | None:
        """Which column of a file is what, where that cannot be guessed."""

    @property
    def crs(self) -> str | None:
        """CRS of the coordinates of a file that states none; degrees if omitted."""

    @property
    def placement(self) -> str | None:
        """Which site holds which profile; if omitted, sites drawn at random choose alone and others share."""

    @property
    def process(self) -> ProcessConfig | None:
        """Parameters of the point process."""


class ProcessConfig(Protocol):
    """The ``[sites.process]`` section of a scenario, as far as this room reads it."""

    def given(self) -> dict[str, Any]:
        """Return the parameters that are given."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Sites in one projected CRS, on a plane or on a torus.

    Parameters
    ----------
    xy
        Positions [m], shape (n, 2).
    profile
        Cache profile that each site holds, shape (n,).
    name
        What each site is called, text that anybody may have written, length n.
    kind
        What each site is, for example ``"amenity=police"``, length n.
    label
        Where the layout comes from, in words to show beside it.
    crs
        The projected CRS of `xy`; ``None`` for a window without a map.
    period_m
        Width and height of the torus window [m]; ``None`` for the plane.
    report
        What was read, merged and dropped, and why; ``report["profiles_placed"]`` is False where nobody has said
        yet which profile each site holds, so that `profile` is 0 throughout.

    Raises
    ------
    CityError
        If lengths disagree, there is no site, or a position is not finite.
    """

    xy: NDArray[np.float64]
    profile: NDArray[np.int64]
    name: tuple[str, ...]
    kind: tuple[str, ...]
    label: str
    crs: str | None = None
    period_m: tuple[float, float] | None = None
    report: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        xy = np.array(self.xy, dtype=np.float64).reshape(-1, 2)
        profile = np.array(self.profile, dtype=np.int64).reshape(-1)
        lengths = {len(xy), len(profile), len(self.name), len(self.kind)}
        if len(lengths) > 1 or not len(xy):
            msg = (
                f"`xy`, `profile`, `name`, `kind` must be of one length of at least 1, not {sorted(lengths)}"
            )
            raise CityError(msg)
        if not np.isfinite(xy).all() or profile.min() < 0:
            msg = "`xy` must be finite and `profile` nonnegative, but some entries are not"
            raise CityError(msg)
        if self.period_m is not None:
            xy = np.mod(xy, np.asarray(self.period_m, dtype=np.float64))
        for key, array in (("xy", xy), ("profile", profile)):
            array.setflags(write=False)
            object.__setattr__(self, key, array)

    def __len__(self) -> int:
        return len(self.xy)

    def __repr__(self) -> str:
        where = "plane" if self.period_m is None else f"torus {self.period_m[0]:g} x {self.period_m[1]:g} m"
        return f"Layout({len(self)} sites, {self.label}, {where})"

    @property
    def period_km(self) -> tuple[float, float] | None:
        """Width and height of the torus window [km]; ``None`` for the plane."""
        return None if self.period_m is None else (self.period_m[0] / KM, self.period_m[1] / KM)

    @property
    def xy_km(self) -> NDArray[np.float64]:
        """Positions [km], shape (n, 2)."""
        return np.asarray(self.xy) / KM

    def with_profile(self, profile: ArrayLike) -> Layout:
        """Return the same sites holding other profiles, from then on placed.

        Parameters
        ----------
        profile
            Cache profile of each site, shape (n,).
        """
        report = {**self.report, "profiles_placed": True}
        return replace(self, profile=np.asarray(profile, dtype=np.int64), report=report)

    def density(self, area_km2: float | None = None) -> float:
        """Return sites per area [1/km²].

        Parameters
        ----------
        area_km2
            The land the sites stand on [km²]; may be left out on a torus.

        Raises
        ------
        CityError
            If there is neither an area nor a torus.
        """
        if area_km2 is None:
            if self.period_m is None:
                msg = "`area_km2` must be given for a layout on the plane, for example `city.area_km2`"
                raise CityError(msg)
            area_km2 = self.period_m[0] * self.period_m[1] / M2_PER_KM2
        return len(self) / area_km2

    def nearest_per_profile(
        self, points_xy_m: ArrayLike, n_profiles: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return distance to and index of the nearest site of every profile.

        Parameters
        ----------
        points_xy_m
            Places [m], shape (m, 2).
        n_profiles
            Number of profiles S.

        Returns
        -------
        distance_km, site
            Distance [km], ``inf`` where no site holds the profile, and site index, −1 there; each of shape (m, S).
        """
        from scipy.spatial import cKDTree

        boxsize: Any = self.period_m
        points = np.asarray(points_xy_m, dtype=np.float64).reshape(-1, 2)
        if self.period_m is not None:
            points = np.mod(points, self.period_m)
        distance = np.full((len(points), n_profiles), np.inf)
        site = np.full((len(points), n_profiles), -1, dtype=np.int64)
        for s in range(n_profiles):
            members = np.flatnonzero(self.profile == s)
            if members.size:
                metres, nearest = cKDTree(self.xy[members], boxsize=boxsize).query(points)
                distance[:, s], site[:, s] = metres / KM, members[nearest]
        return distance, site


def place_profiles(
    n: int, placement_probability: ArrayLike, rng: np.random.Generator | int, *, independent: bool = False
) -> NDArray[np.int64]:
    """Draw which profile every site holds, Eq. (7).

    By default the numbers of sites per profile are fixed to match the probabilities as closely as whole
    sites can (largest remainder) and only shuffled over the sites; so a small city has the mix it was
    promised. Independent marks, as a Poisson network has them, are an option.

    Parameters
    ----------
    n
        Number of sites.
    placement_probability
        π_s, shape (S,), summing to 1.
    rng
        Random generator, or a seed for one.
    independent
        Draw each site's profile on its own.

    Raises
    ------
    CityError
        If the probabilities are negative or do not sum to 1.
    """
    share = np.asarray(placement_probability, dtype=np.float64).reshape(-1)
    if not (share.size and (share >= 0).all() and abs(share.sum() - 1.0) <= SHARE_TOLERANCE):
        msg = f"`placement_probability` must be nonnegative and sum to 1, not {share.tolist()}"
        raise CityError(msg)
    share = share / share.sum()
    rng = generator(rng)
    if independent:
        return rng.choice(share.size, size=n, p=share).astype(np.int64)
    count = np.floor(n * share).astype(np.int64)
    by_remainder = np.argsort(-(n * share - count), kind="stable")
    count[by_remainder[: n - count.sum()]] += 1
    return rng.permutation(np.repeat(np.arange(share.size, dtype=np.int64), count))


def make_layout(
    city: City,
    sites: SitesConfig,
    placement_probability: ArrayLike | None = None,
    rng: np.random.Generator | int = 0,
    *,
    profile_names: Sequence[str] = (),
    demand: Demand | None = None,
    saving_s: ArrayLike | None = None,
) -> Layout:
    """Make the layout that a scenario asks for.

    Profiles are those a file states, else placed from the probabilities given, as ``placement`` says. Without either
    they are not placed: ``report["profiles_placed"]`` is False, and a study of the layout places them by its own
    workload. The stream is used for the positions first (of a process only) and the profiles second.

    Parameters
    ----------
    city
        The city the sites stand in.
    sites
        The scenario's ``[sites]`` section: ``source`` is ``"hosts"``, a key of `PROCESSES` or a file.
    placement_probability
        π_s, shape (S,); leave out to leave the profiles to the study.
    rng
        Random generator, or a seed for one.
    profile_names
        Names that a file's profile column may use, length S.
    demand
        Where requests come from, for sites or placements that follow it.
    saving_s
        What each profile saves on a request of each type [s], shape (S, Q), for a placement that follows demand.

    Raises
    ------
    CityError
        If no site is left inside the city, or a process has no density or a parameter that is not its own.
    """
    from geoedge.sites.hosts import host_layout
    from geoedge.sites.placements import place
    from geoedge.sites.processes import PROCESSES, draw_layout
    from geoedge.sites.towers import read_sites

    rng = generator(rng)
    if sites.source in PROCESSES:
        if sites.density_per_km2 is None:
            msg = f'`sites.density_per_km2` must be given when `sites.source` is "{sites.source}", for example 2.0'
            raise CityError(msg)
        layout = draw_layout(
            sites.source,
            city,
            sites.density_per_km2,
            rng,
            demand=demand,
            # marks of its own, Eq. (8), are part of the draw
            placement_probability=placement_probability if sites.placement is None else None,
            **(sites.process.given() if sites.process is not None else {}),
        )
    elif sites.source == "hosts":
        layout = host_layout(city, merge_distance_m=sites.merge_distance_m)
    else:
        layout = read_sites(
            sites.source,
            city,
            merge_distance_m=sites.merge_distance_m,
            profile_names=profile_names,
            operator=sites.operator,
            radio=sites.radio,
            columns=sites.columns,
            crs=sites.crs,
        )
    if layout.report["profiles_placed"] or placement_probability is None:
        return layout
    return place(
        sites.placement or "fixed", layout, placement_probability, rng, demand=demand, saving_s=saving_s
    )
