"""Radio that follows the streets: the way from any place to every site along the street network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["StreetWays", "Streetlike", "street_ways"]

SITES_AT_ONCE = 64
"""Sites whose shortest ways are held in full precision at a time."""
SHORTER_M = 0.01
"""How much shorter than the straight line between its ends an edge may be, from rounding alone [m]."""


class Streetlike(Protocol):
    """A street graph, as `geoedge.city.streets.StreetGraph` is."""

    @property
    def node_xy(self) -> Floats: ...
    @property
    def edge_from(self) -> NDArray[np.int32]: ...
    @property
    def edge_to(self) -> NDArray[np.int32]: ...
    @property
    def edge_length(self) -> Floats: ...


@dataclass(frozen=True, eq=False)
class StreetWays:
    """Shortest ways along streets from every node to every site.

    A place reaches the network at its nearest node, in a straight line, and so does a site. So no way is shorter
    than the straight line.

    Parameters
    ----------
    node_xy
        Nodes [km], shape (N, 2).
    node_km
        Way from a node to a site, the site's own gap left out [km], shape (N, n).
    site_gap_km
        From a site to its nearest node [km], shape (n,).
    """

    node_xy: Floats
    node_km: NDArray[np.float32]
    site_gap_km: Floats

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.node_xy)

    def doors(self, point_xy: ArrayLike) -> tuple[Ints, Floats]:
        """Return the node nearest to each place, and how far it is [km], each of shape (m,).

        Parameters
        ----------
        point_xy
            Places [km], shape (m, 2).
        """
        gap, node = self._tree.query(np.asarray(point_xy, dtype=np.float64).reshape(-1, 2))
        return np.asarray(node, dtype=np.int64), np.asarray(gap, dtype=np.float64)


def street_ways(streets: Streetlike, site_xy: ArrayLike) -> StreetWays:
    """Return the shortest ways to sites along streets, which radio follows in either direction.

    Parameters
    ----------
    streets
        Street graph in metres.
    site_xy
        Sites in the graph's CRS [km], shape (n, 2).

    Raises
    ------
    GeoEdgeError
        If the graph is empty or falls apart, or an edge is shorter than the straight line between its ends.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra
    from scipy.spatial import cKDTree

    nodes = np.asarray(streets.node_xy, dtype=np.float64)
    start, end, length = streets.edge_from, streets.edge_to, streets.edge_length
    if not len(nodes) or not len(length):
        msg = 'radio.distance = "street": the map has no streets; use "straight"'
        raise GeoEdgeError(msg)
    straight = np.hypot(*(nodes[start] - nodes[end]).T)
    if (length < straight - SHORTER_M).any():
        msg = f"`edge_length` of {int((length < straight - SHORTER_M).sum())} edges is below the straight line between their ends"
        raise GeoEdgeError(msg)
    low, high = np.minimum(start, end), np.maximum(start, end)
    order = np.lexsort((length, high, low))
    first = np.append(True, (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0))
    kept = order[first]
    graph = coo_array(
        (np.maximum(length[kept], SHORTER_M), (low[kept], high[kept])), shape=(len(nodes), len(nodes))
    ).tocsr()
    sites = np.asarray(site_xy, dtype=np.float64).reshape(-1, 2)
    gap, door = cKDTree(nodes / KM).query(sites)
    own, column = np.unique(door, return_inverse=True)
    way = np.empty((len(nodes), len(own)), dtype=np.float32)
    for part in np.array_split(np.arange(len(own)), -(-len(own) // SITES_AT_ONCE)):
        way[:, part] = dijkstra(graph, directed=False, indices=own[part]).T / KM
    if not np.isfinite(way).all():
        msg = f"`streets` fall apart: {int((~np.isfinite(way)).any(axis=1).sum())} nodes do not reach every site"
        raise GeoEdgeError(msg)
    return StreetWays(nodes / KM, np.ascontiguousarray(way[:, column.reshape(-1)]), np.asarray(gap))
