"""Rows to sites: by what the file calls a site, then by distance; those of different operators stay apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.sites._cells import RADIOS, SITE_BITS, cell_keys
from geoedge.sites._rows import SiteRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Grouping", "group_rows", "merge_nearby", "row_weights", "site_keys", "site_names"]

SCATTERED_M = 2000.0
"""Rows of one site this far from its middle are hardly at one place [m]."""
FEW = 1000
"""Up to so many places all pairs within reach are listed, at most half a million; beyond, the edges of a triangulation
do, about three a place whatever the reach."""


def merge_nearby(
    xy: NDArray[np.float64], distance_m: float, *, apart: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return a group number for every object; objects linked by steps within the distance are one group.

    Groups are numbered by their first member.

    Parameters
    ----------
    xy
        Positions [m], shape (n, 2).
    distance_m
        Objects at most this far apart belong together [m]; 0 merges identical positions only.
    apart
        A label for each object, shape (n,); objects of different labels are never linked. All alike if left out.
    """
    import pandas as pd
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    label = np.zeros(len(xy), dtype=np.int64) if apart is None else apart
    table = pd.DataFrame({"x": xy[:, 0], "y": xy[:, 1], "label": label})
    place = table.groupby(["x", "y", "label"], sort=False).ngroup().to_numpy(dtype=np.int64)
    first = np.unique(place, return_index=True)[1]
    pairs = [_close_pairs(xy[first], at, distance_m) for at in _by_label(label[first])]
    links = np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs])
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(len(first), len(first)))
    # places are numbered as they come, so that the first of each component is its lowest
    component = connected_components(graph, directed=False)[1]
    _, lowest, inverse = np.unique(component, return_index=True, return_inverse=True)
    number: NDArray[np.int64] = np.argsort(np.argsort(lowest))[inverse].astype(np.int64)
    return number[place]


def _by_label(label: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    order = np.argsort(label, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(label[order])) + 1) if len(label) else []


def _close_pairs(xy: NDArray[np.float64], at: NDArray[np.int64], distance_m: float) -> NDArray[np.int64]:
    """Return pairs of these places that link all that are within the distance, directly or by steps."""
    from scipy.spatial import Delaunay, QhullError, cKDTree

    if distance_m <= 0.0 or len(at) < 2:
        return np.empty((0, 2), dtype=np.int64)
    points = xy[at]
    try:
        mesh = Delaunay(points - points.mean(axis=0)) if len(at) > FEW else None
    except QhullError:  # all on one line
        mesh = None
    if mesh is None:
        return np.asarray(at[cKDTree(points).query_pairs(distance_m, output_type="ndarray")])
    # the shortest tree that joins all places runs along a Delaunay triangulation
    sides = [mesh.simplices[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]
    pairs = np.concatenate([*sides, mesh.coplanar[:, [0, 2]]])
    length = np.hypot(*(points[pairs[:, 0]] - points[pairs[:, 1]]).T)
    return np.asarray(at[pairs[length <= distance_m]])


def site_keys(
    rows: SiteRows, operator: NDArray[np.int64], radio: NDArray[np.object_], kept: NDArray[np.int64]
) -> tuple[NDArray[np.int64], str]:
    """Return a number for the site that each row names, one of its own for a row that names none, and the rule.

    Parameters
    ----------
    rows
        Rows of a file.
    operator, radio
        Operator and technology of each row, shape (n,).
    kept
        The rows to look at.
    """
    import pandas as pd

    own: NDArray[np.int64] = np.arange(len(kept), dtype=np.int64)
    if rows.is_cells:
        station, counts = cell_keys(rows, radio, kept)
        words = {"LTE": "LTE by eNodeB (cell >> 8)", "NR": "NR by gNB of 24 bits (cell >> 12)"}
        rules = [words.get(name, f"{name} cell by cell (area and cell)") for name in RADIOS if name in counts]
        return np.where(station < 0, len(kept) + own, station), "; ".join(rules)
    if "id" not in rows.texts or not len(kept):
        return own, "every row on its own"
    table = pd.DataFrame({"id": rows.take("id", kept), "operator": operator[kept]})
    key = table.groupby(["id", "operator"], sort=False).ngroup().to_numpy(dtype=np.int64)
    return np.where(
        (table["id"] == "").to_numpy(), len(kept) + own, key
    ), f"by {rows.columns.get('id', 'id')}"


@dataclass(frozen=True, eq=False)
class Grouping:
    """Sites and the rows they were made of.

    Parameters
    ----------
    group
        Site of each row, shape (n,), numbered by first member.
    xy
        Places of the sites [m], means of their rows weighted by samples, shape (m, 2).
    first
        First row of each site, shape (m,).
    objects
        How many sites the file itself tells apart.
    scattered
        Rows of sites by name whose rows are farther than 2 km from their middle.
    widest_m
        Largest distance of what was merged from the middle of its site [m].
    """

    group: NDArray[np.int64]
    xy: NDArray[np.float64]
    first: NDArray[np.int64]
    objects: int
    scattered: NDArray[np.int64]
    widest_m: float


def group_rows(
    xy: NDArray[np.float64],
    key: NDArray[np.int64],
    operator: NDArray[np.int64],
    weight: NDArray[np.float64],
    distance_m: float,
) -> Grouping:
    """Return the sites that rows belong to.

    Parameters
    ----------
    xy
        Places of the rows [m], shape (n, 2).
    key
        Number of the site that each row names, shape (n,).
    operator
        Operator of each row, shape (n,).
    weight
        Weight of each row in the place of its site, shape (n,).
    distance_m
        Sites of one operator within this distance are one [m]; below 0 none are, wherever they are.
    """
    _, first, named = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    named, first = order[named], np.sort(first)
    middle = _means(xy, named, weight)
    spread = np.hypot(*(xy - middle[named]).T)
    site = np.arange(len(first), dtype=np.int64)
    if distance_m >= 0.0:
        site = merge_nearby(middle, distance_m, apart=operator[first])
    group = site[named]
    places = _means(xy, group, weight)
    merged = np.hypot(*(middle - places[site]).T)
    loose = np.zeros(len(first), dtype=bool)
    loose[named[spread > SCATTERED_M]] = True
    return Grouping(
        group=group,
        xy=places,
        first=first[np.unique(site, return_index=True)[1]],
        objects=len(first),
        scattered=np.flatnonzero(loose[named]),
        widest_m=float(merged.max()) if len(merged) else 0.0,
    )


def _means(
    xy: NDArray[np.float64], group: NDArray[np.int64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the weighted mean place of each group; a group of one is exactly where its row is."""
    total = np.bincount(group, weight)
    means = np.column_stack([np.bincount(group, xy[:, axis] * weight) / total for axis in (0, 1)])
    alone = np.bincount(group)[group] == 1
    means[group[alone]] = xy[alone]
    return means


def row_weights(rows: SiteRows, kept: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of each row in the place of its site: its samples, at least one.

    Parameters
    ----------
    rows
        Rows of a file.
    kept
        The rows to look at.
    """
    if "samples" not in rows.texts:
        return np.ones(len(kept))
    return np.maximum(rows.whole("samples")[kept], 1).astype(np.float64)


def site_names(rows: SiteRows, radio: NDArray[np.object_], kept: NDArray[np.int64], made: Any) -> list[str]:
    """Return what each site is called: the first name among its rows, or what its first cell says.

    Parameters
    ----------
    rows
        Rows of a file.
    radio
        Technology of each row, shape (n,).
    kept
        The rows that were grouped.
    made
        Their grouping.
    """
    names = [""] * len(made.xy)
    if rows.is_cells:
        cells = rows.whole("cell")[kept[made.first]].tolist()
        areas = rows.whole("area")[kept[made.first]].tolist()
        kinds = radio[kept[made.first]].tolist()
        for k, (kind, area, cell) in enumerate(zip(kinds, areas, cells, strict=True)):
            station = {"LTE": "eNodeB", "NR": "gNB"}.get(kind)
            names[k] = f"{station} {cell >> SITE_BITS[kind]}" if station else f"{kind} {area}/{cell}"
        return names
    for name, site in zip(rows.take("name", kept), made.group.tolist(), strict=True):
        names[site] = names[site] or name
    return [name or f"site {k}" for k, name in enumerate(names)]
