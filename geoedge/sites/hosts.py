"""Candidate hosts: places on the map of a city where an edge box could stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites.grouping import merge_nearby
from geoedge.sites.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City

__all__ = ["HOST_KINDS", "host_layout"]

HOST_KINDS = (
    "man_made=mast",
    "man_made=communications_tower",
    "man_made=antenna",
    "man_made=MDF",
    "man_made=telephone_office",
    "man_made=telephone_exchange",
    "telecom=exchange",
    "telecom=central_office",
    "telecom=data_center",
    "telecom=data_centre",
    "telecom=antenna",
    "telecom=bts",
    "amenity=post_office",
    "amenity=police",
    "amenity=townhall",
    "amenity=fire_station",
    "amenity=hospital",
    "amenity=fuel",
)
"""Places where an edge box could stand, the likeliest first; a merged site is called after the first of them."""

HOSTS_LABEL = "candidate hosts from OpenStreetMap, not an operator's network"


def host_layout(city: City, *, merge_distance_m: float = 50.0, kinds: Sequence[str] = HOST_KINDS) -> Layout:
    """Return the places of a city where an edge box could stand.

    They are candidate hosts, not an operator's network, and the layout's label says so.

    Parameters
    ----------
    city
        The city.
    merge_distance_m
        Objects within this distance are one site [m].
    kinds
        Kinds of place that count, the likeliest host first.

    Raises
    ------
    CityError
        If the city has no such place on its land.
    """
    rank = {kind: k for k, kind in enumerate(kinds)}
    order = np.array([rank.get(str(kind), len(rank)) for kind in city.places.kind], dtype=np.int64)
    chosen = np.argsort(order, kind="stable")[: int((order < len(rank)).sum())]
    inside = chosen[city.contains(city.places.xy[chosen])]
    if not inside.size:
        msg = (
            f"city {city.name!r} has none of the {len(kinds)} kinds of host place on its land; "
            'set `sites.source` to "poisson" or to a file of sites'
        )
        raise CityError(msg)
    kind = [str(city.places.kind[k]) for k in inside]
    name = [str(city.places.name[k]) for k in inside]
    xy, names, site_kinds = _merged(city.places.xy[inside], name, kind, merge_distance_m)
    report = {
        "objects": int(chosen.size),
        "dropped": {"outside": int(chosen.size - inside.size)},
        "merged": int(inside.size - len(xy)),
        "sites": len(xy),
        "profiles_placed": False,
        "objects_by_kind": {k: kind.count(k) for k in kinds if k in kind},
    }
    return Layout(
        xy=xy,
        profile=np.zeros(len(xy), dtype=np.int64),
        name=names,
        kind=site_kinds,
        label=HOSTS_LABEL,
        crs=city.crs,
        report=report,
    )


def _merged(
    xy: NDArray[np.float64], name: Sequence[str], kind: Sequence[str], distance_m: float
) -> tuple[NDArray[np.float64], tuple[str, ...], tuple[str, ...]]:
    """Return one site per group: the mean place, the first name there is, the first kind."""
    group = merge_nearby(xy, distance_m)
    n = int(group.max()) + 1 if len(group) else 0
    size = np.bincount(group, minlength=n)
    middle = np.column_stack([np.bincount(group, xy[:, axis], n) / size for axis in (0, 1)])
    names, kinds = [""] * n, [""] * n
    for k, g in enumerate(group.tolist()):
        names[g] = names[g] or name[k]
        kinds[g] = kinds[g] or kind[k]
    names = [text or f"site {g}" for g, text in enumerate(names)]
    return middle, tuple(names), tuple(kinds)
