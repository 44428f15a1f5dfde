"""Shortest-time routes between every door and a few hundred destinations, as trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.streets import StreetGraph
from geoedge.errors import CityError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Routes", "join_streets", "shortest_routes"]


@dataclass(frozen=True, eq=False)
class Routes:
    """The shortest-time tree toward each destination and the one away from it.

    Streets of several modes stand side by side in one graph without edges between them, so that a node
    names its mode too; K destinations have a door in each mode.

    Parameters
    ----------
    streets
        Streets of all modes, N nodes and E directed edges.
    toward_time, away_time
        Travel time from each node to the destination and back [s], shape (K, N).
    toward_edge
        First edge of the route from each node to the destination, -1 at its door, shape (K, N).
    away_edge
        Last edge of the route from the destination to each node, -1 at its door, shape (K, N).
    """

    streets: StreetGraph
    toward_time: NDArray[np.float64]
    toward_edge: NDArray[np.int32]
    away_time: NDArray[np.float64]
    away_edge: NDArray[np.int32]

    def edges(self, destination: int, node: int, *, away: bool) -> list[int]:
        """Return the edges of the route from a node to a destination, or back to the node, in order of travel.

        Parameters
        ----------
        destination
            The destination.
        node
            The node, in the mode of the user.
        away
            Whether the route is the one from the destination to the node.
        """
        edges = (self.away_edge if away else self.toward_edge)[destination]
        beyond = self.streets.edge_from if away else self.streets.edge_to
        found, edge = [], int(edges[node])
        while edge >= 0:
            found.append(edge)
            edge = int(edges[beyond[edge]])
        return found[::-1] if away else found


def join_streets(graphs: Sequence[StreetGraph]) -> StreetGraph:
    """Return several street graphs as one, nodes and edges numbered one graph after the other.

    Parameters
    ----------
    graphs
        Streets of one mode each.
    """
    nodes = np.cumsum([0, *(graph.node_count for graph in graphs)])
    points = np.cumsum([0, *(len(graph.geometry_xy) for graph in graphs)])
    starts = [graph.geometry_offset[:-1] + start for graph, start in zip(graphs, points, strict=False)]
    return StreetGraph(
        mode="+".join(graph.mode for graph in graphs),
        node_xy=np.concatenate([graph.node_xy for graph in graphs]),
        edge_from=np.concatenate([g.edge_from + n for g, n in zip(graphs, nodes, strict=False)]).astype(
            np.int32
        ),
        edge_to=np.concatenate([g.edge_to + n for g, n in zip(graphs, nodes, strict=False)]).astype(np.int32),
        edge_length=np.concatenate([graph.edge_length for graph in graphs]),
        edge_speed=np.concatenate([graph.edge_speed for graph in graphs]),
        geometry_offset=np.concatenate([*starts, points[-1:]]).astype(np.int64),
        geometry_xy=np.concatenate([graph.geometry_xy for graph in graphs]),
    )


def shortest_routes(graphs: Sequence[StreetGraph], doors: Sequence[NDArray[np.int32]]) -> Routes:
    """Return the shortest-time trees of K destinations over the streets of one or more modes.

    Parameters
    ----------
    graphs
        Streets of one mode each.
    doors
        For each mode the node of each destination, each of shape (K,).

    Raises
    ------
    CityError
        If a node cannot reach a destination or be reached from it.
    """
    trees = [_mode_trees(graph, door) for graph, door in zip(graphs, doors, strict=True)]
    edges = np.cumsum([0, *(graph.edge_count for graph in graphs)])
    shifted = [
        [np.where(edge >= 0, edge + start, -1) for edge in (tree[1], tree[3])]
        for tree, start in zip(trees, edges, strict=False)
    ]
    return Routes(
        streets=join_streets(graphs),
        toward_time=np.concatenate([tree[0] for tree in trees], axis=1),
        toward_edge=np.concatenate([pair[0] for pair in shifted], axis=1).astype(np.int32),
        away_time=np.concatenate([tree[2] for tree in trees], axis=1),
        away_edge=np.concatenate([pair[1] for pair in shifted], axis=1).astype(np.int32),
    )


def _mode_trees(
    graph: StreetGraph, doors: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
    """Return toward times and edges and away times and edges of one mode, each of shape (K, N)."""
    from scipy.sparse.csgraph import dijkstra

    from geoedge.city._flows import tree_edges

    matrix = graph.matrix()
    roots, row = np.unique(doors, return_inverse=True)
    times: list[NDArray[np.float64]] = []
    firsts: list[NDArray[np.int32]] = []
    for toward in (True, False):
        time, link = dijkstra(matrix.T.tocsr() if toward else matrix, indices=roots, return_predecessors=True)
        if not np.isfinite(time).all():
            lost = int(np.isinf(time).any(axis=0).sum())
            msg = (
                f"streets ({graph.mode}): {lost} of {graph.node_count} nodes have no route to or from a destination; "
                f"keep the largest strongly connected component"
            )
            raise CityError(msg)
        edge = tree_edges(matrix.indptr, matrix.indices, graph.matrix_edges, link, toward)
        times.append(time[row])
        firsts.append(edge[row])
    return times[0], firsts[0], times[1], firsts[1]
