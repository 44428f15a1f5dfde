"""Streets of one mode as arrays: a directed graph, travel times, and exact positions along a street."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

__all__ = ["StreetGraph", "polyline_lengths"]


def polyline_lengths(offset: NDArray[np.int64], xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the length of each polyline of a ragged array [m], shape (E,).

    Parameters
    ----------
    offset
        Where each polyline begins in `xy`, and the end of the last one, shape (E + 1,).
    xy
        Vertices of all polylines, one after the other [m], shape (G, 2).
    """
    along = _distance_along(offset, xy)
    return along[offset[1:] - 1] - along[offset[:-1]]


def _distance_along(offset: NDArray[np.int64], xy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the running distance over all polylines, with no step between one and the next, shape (G,)."""
    step = np.zeros(len(xy))
    step[1:] = np.hypot(np.diff(xy[:, 0]), np.diff(xy[:, 1]))
    step[offset[:-1]] = 0.0
    return np.cumsum(step)


@dataclass(frozen=True, eq=False)
class StreetGraph:
    """Streets that one mode can use, as a strongly connected directed graph in arrays.

    Parameters
    ----------
    mode
        ``"walk"`` or ``"drive"``.
    node_xy
        Junctions and street ends in the city's projected CRS [m], shape (N, 2).
    edge_from, edge_to
        Nodes that a directed edge leaves and enters, shape (E,).
    edge_length
        Length along the geometry [m], shape (E,).
    edge_speed
        Speed of this mode on the edge [m/s], shape (E,).
    geometry_offset
        Where each edge's polyline begins in `geometry_xy`, and the end of the last one, shape (E + 1,).
    geometry_xy
        Vertices of the polylines in the direction of travel [m], shape (G, 2).

    Raises
    ------
    CityError
        If the arrays do not belong together.
    """

    mode: str
    node_xy: NDArray[np.float64]
    edge_from: NDArray[np.int32]
    edge_to: NDArray[np.int32]
    edge_length: NDArray[np.float64]
    edge_speed: NDArray[np.float64]
    geometry_offset: NDArray[np.int64]
    geometry_xy: NDArray[np.float64]

    def __post_init__(self) -> None:
        edges = len(self.edge_from)
        lengths = {
            len(self.edge_to),
            len(self.edge_length),
            len(self.edge_speed),
            len(self.geometry_offset) - 1,
        }
        if lengths != {edges} or int(self.geometry_offset[-1]) != len(self.geometry_xy):
            msg = f"streets ({self.mode}): the arrays of {edges} edges do not agree in length; compile the city anew"
            raise CityError(msg)
        ends = (self.edge_from, self.edge_to)
        if edges and not all(int(end.min()) >= 0 and int(end.max()) < len(self.node_xy) for end in ends):
            msg = f"streets ({self.mode}): an edge names a node outside 0..{len(self.node_xy) - 1}; compile the city anew"
            raise CityError(msg)

    def __repr__(self) -> str:
        return f"StreetGraph({self.mode}: {self.node_count} nodes, {self.edge_count} edges)"

    @property
    def node_count(self) -> int:
        """Number of nodes N."""
        return len(self.node_xy)

    @property
    def edge_count(self) -> int:
        """Number of directed edges E."""
        return len(self.edge_from)

    @property
    def edge_time(self) -> NDArray[np.float64]:
        """Travel time of each edge [s], shape (E,)."""
        return self.edge_length / self.edge_speed

    @cached_property
    def _fastest(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Edges of the matrix: the fastest of each ordered pair, by row then column; also pair keys and row starts."""
        pair = self.edge_from.astype(np.int64) * self.node_count + self.edge_to
        order = np.lexsort((self.edge_time, pair))
        first = np.ones(len(order), dtype=bool)
        first[1:] = np.diff(pair[order]) != 0
        edges = order[first]
        row_start = np.searchsorted(self.edge_from[edges], np.arange(self.node_count + 1))
        return edges, pair[edges], row_start

    @property
    def matrix_edges(self) -> NDArray[np.int64]:
        """Edge behind each entry of `matrix().data`, shape (nnz,)."""
        return self._fastest[0]

    def matrix(self) -> Any:
        """Return the travel times as a `scipy.sparse.csr_array` [s], shape (N, N).

        Of parallel edges the fastest is kept; `matrix_edges` names the edge behind each entry.
        """
        from scipy.sparse import csr_array

        edges, _, row_start = self._fastest
        return csr_array(
            (self.edge_time[edges], self.edge_to[edges], row_start.astype(np.int32)),
            shape=(self.node_count, self.node_count),
        )

    def edge_index(self, start: ArrayLike, end: ArrayLike) -> NDArray[np.int64]:
        """Return the fastest edge between ordered pairs of nodes, -1 where there is none, shape (m,).

        Parameters
        ----------
        start, end
            Nodes that the edges leave and enter, shape (m,).
        """
        edges, pairs, _ = self._fastest
        wanted = np.asarray(start, dtype=np.int64) * self.node_count + np.asarray(end, dtype=np.int64)
        if not len(pairs):
            return np.full(wanted.shape, -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
        return np.where(pairs[place] == wanted, edges[place], -1)

    @cached_property
    def _along(self) -> NDArray[np.float64]:
        return _distance_along(self.geometry_offset, self.geometry_xy)

    def position(self, edge: ArrayLike, fraction: ArrayLike) -> NDArray[np.float64]:
        """Return the exact points at fractions of the length of edges [m], shape (m, 2).

        Parameters
        ----------
        edge
            Edges, shape (m,).
        fraction
            Share of the edge's length travelled, clipped to 0..1, shape (m,).
        """
        edge = np.asarray(edge, dtype=np.int64)
        along, xy = self._along, self.geometry_xy
        first, last = self.geometry_offset[edge], self.geometry_offset[edge + 1] - 1
        share = np.clip(np.asarray(fraction, dtype=np.float64), 0.0, 1.0)
        target = along[first] + share * (along[last] - along[first])
        left = np.clip(np.searchsorted(along, target, side="right") - 1, first, last - 1)
        step = along[left + 1] - along[left]
        weight = np.clip(
            np.divide(target - along[left], step, out=np.zeros_like(step), where=step > 0), 0.0, 1.0
        )
        return np.asarray(xy[left] * (1.0 - weight)[..., None] + xy[left + 1] * weight[..., None])

    def vertices(
        self, edge: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """Return the vertices of the polylines of edges: which of the edges, the share of it travelled, and where [m].

        Parameters
        ----------
        edge
            Edges, shape (m,), whose vertices come one after the other.
        """
        first = self.geometry_offset[edge]
        count = self.geometry_offset[edge + 1] - first
        owner = np.repeat(np.arange(len(edge)), count)
        vertex = np.arange(len(owner)) + (first - np.cumsum(count) + count)[owner]
        along = self._along[vertex] - self._along[first][owner]
        whole = (self._along[first + count - 1] - self._along[first])[owner]
        share = np.divide(along, whole, out=np.zeros(len(owner)), where=whole > 0.0)
        return owner, share, self.geometry_xy[vertex]

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.node_xy)

    def nearest_node(self, xy: ArrayLike) -> NDArray[np.int64]:
        """Return the node nearest to each point, its door to this graph, shape (m,).

        Parameters
        ----------
        xy
            Points in the city's CRS [m], shape (m, 2).
        """
        return np.asarray(self._tree.query(np.asarray(xy, dtype=np.float64))[1], dtype=np.int64)
