"""Placements: which profile each of given sites holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geoedge.errors import CityError
from geoedge.sites.layout import place_profiles
from geoedge.streams import generator

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.demand import Demand
    from geoedge.sites.layout import Layout

    Profiles: TypeAlias = NDArray[np.int64]

__all__ = ["PLACEMENTS", "place", "placement_energy"]

SWAPS = 400
"""Swaps per site that an annealing tries."""

WARM, COLD = 1.0, 1e-3
"""First and last temperature of an annealing, in energies of two sites of one profile at one place."""


@dataclass(frozen=True, eq=False)
class _Question:
    """What a placement may look at."""

    layout: Layout
    share: NDArray[np.float64]
    demand: Demand | None
    saving_s: NDArray[np.float64] | None


def _fixed(asked: _Question, rng: np.random.Generator) -> Profiles:
    return place_profiles(len(asked.layout), asked.share, rng)


def _independent(asked: _Question, rng: np.random.Generator) -> Profiles:
    return place_profiles(len(asked.layout), asked.share, rng, independent=True)


def _repelled(asked: _Question, rng: np.random.Generator) -> Profiles:
    return _annealed(asked, 1.0, rng)


def _clustered(asked: _Question, rng: np.random.Generator) -> Profiles:
    return _annealed(asked, -1.0, rng)


def _annealed(asked: _Question, sign: float, rng: np.random.Generator) -> Profiles:
    from geoedge.sites._annealing import anneal

    profile = _fixed(asked, rng)
    if len(profile) < 3:
        return profile
    period, reach = _scales(asked.layout, profile, asked.share.size)
    anneal(profile, asked.layout.xy, period, reach, sign, WARM, COLD, SWAPS * len(profile), rng)
    return profile


def _scales(
    layout: Layout, profile: Profiles, profiles: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the period of the sites, and the mean spacing of each profile's own [m], shape (S,)."""
    count = np.maximum(np.bincount(profile, minlength=profiles), 1)
    if layout.period_m is not None:
        return np.array(layout.period_m), np.sqrt(np.prod(layout.period_m) / count)
    import shapely

    hull = shapely.convex_hull(shapely.multipoints(layout.xy))
    # sites on a line have no hull to spread over, only a length
    area = float(hull.area) if hull.area > 0 else float(hull.length) ** 2 / len(profile)
    return np.full(2, np.inf), np.sqrt(max(area, 1.0) / count)


def _demanded(asked: _Question, rng: np.random.Generator) -> Profiles:
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial import cKDTree

    if asked.demand is None or asked.saving_s is None:
        missing = "demand" if asked.demand is None else "saving_s"
        msg = f'`{missing}` is missing: placement = "demand" follows it; give it, or `prepare` a scenario'
        raise CityError(msg)
    layout, rate = asked.layout, asked.demand.rate
    if asked.saving_s.shape != (asked.share.size, rate.shape[1]):
        msg = (
            f"`saving_s` has shape {asked.saving_s.shape}: must be one row for each of {asked.share.size} profiles and "
            f"one column for each of {rate.shape[1]} request types"
        )
        raise CityError(msg)
    from geoedge.sites._windows import wrapped

    points = asked.demand.xy if layout.period_m is None else wrapped(asked.demand.xy, layout.period_m)
    boxsize: Any = layout.period_m
    nearest = cKDTree(layout.xy, boxsize=boxsize).query(points)[1]
    near = np.zeros((len(layout), rate.shape[1]))
    np.add.at(near, nearest, rate)
    held = _fixed(asked, rng)  # a random order breaks ties at random
    site, seat = linear_sum_assignment((near @ asked.saving_s.T)[:, held], maximize=True)
    profile = np.empty(len(held), dtype=np.int64)
    profile[site] = held[seat]
    return profile


PLACEMENTS: dict[str, Callable[[_Question, np.random.Generator], Profiles]] = {
    "fixed": _fixed,
    "independent": _independent,
    "repelled": _repelled,
    "clustered": _clustered,
    "demand": _demanded,
}
"""Every placement by name, as the scenario's ``[sites]`` knows them."""


def place(
    name: str,
    layout: Layout,
    placement_probability: ArrayLike,
    rng: np.random.Generator | int,
    *,
    demand: Demand | None = None,
    saving_s: ArrayLike | None = None,
) -> Layout:
    """Return a layout's sites with profiles placed on them.

    All placements but ``"independent"`` have the same fixed count of each profile (`place_profiles`):

    - ``"fixed"`` shuffles them over the sites; ``"independent"`` draws each site's profile on its own, Eq. (8).
    - ``"repelled"`` keeps sites of one profile apart, ``"clustered"`` together: simulated annealing, 400 swaps per
      site, of the sum of exp(−r²/ℓ_s²) over pairs of one profile s whose own mean spacing is ℓ_s. It comes near the
      optimum, from a random start, and need not reach it.
    - ``"demand"`` puts profiles where the requests are whose prefill they save: of all assignments the one that
      saves most if each request went to its nearest site. It knows no queues.

    Parameters
    ----------
    name
        Key of `PLACEMENTS`.
    layout
        The sites.
    placement_probability
        π_s, shape (S,).
    rng
        Random generator, or a seed for one.
    demand
        Where requests come from, for ``"demand"``.
    saving_s
        What each profile saves on a request of each type, Eq. (6) [s], shape (S, Q), for ``"demand"``.

    Raises
    ------
    CityError
        If the name is unknown, the probabilities do not sum to 1, or ``"demand"`` has none.
    """
    if name not in PLACEMENTS:
        msg = f"`name` = {name!r}: no such placement; choose one of {', '.join(PLACEMENTS)}"
        raise CityError(msg)
    share = np.asarray(placement_probability, dtype=np.float64).reshape(-1)
    saving = None if saving_s is None else np.asarray(saving_s, dtype=np.float64)
    drawn = PLACEMENTS[name](_Question(layout, share, demand, saving), generator(rng))
    return layout.with_profile(drawn)


def placement_energy(layout: Layout, profiles: int) -> float:
    """Return how close sites of one profile are: the energy that ``"repelled"`` lowers, per site [–].

    Parameters
    ----------
    layout
        The sites and their profiles.
    profiles
        Number of profiles S.
    """
    period, reach = _scales(layout, layout.profile, profiles)
    total = 0.0
    for s in range(profiles):
        xy = layout.xy[layout.profile == s]
        off = np.abs(xy[:, None] - xy[None])
        squared = (np.minimum(off, period - off) ** 2).sum(axis=-1)
        total += 0.5 * (float(np.exp(-squared / reach[s] ** 2).sum()) - len(xy))
    return total / len(layout)
