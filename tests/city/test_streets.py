"""Street graphs: exact positions, fastest parallel edges, doors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

from geoedge.city.streets import StreetGraph, polyline_lengths
from geoedge.errors import CityError


def graph_of(
    nodes: list[tuple[float, float]], edges: list[tuple[int, int, list[tuple[float, float]], float]]
) -> StreetGraph:
    """Return a graph from (from, to, vertices between, speed)."""
    xy = np.array(nodes, dtype=float)
    shapes = [np.array([xy[u], *middle, xy[v]]) for u, v, middle, _ in edges]
    offset = np.concatenate([[0], np.cumsum([len(shape) for shape in shapes])]).astype(np.int64)
    geometry = np.concatenate(shapes)
    start, end = (np.array([edge[k] for edge in edges], dtype=np.int32) for k in (0, 1))
    speed = np.array([edge[3] for edge in edges])
    return StreetGraph("walk", xy, start, end, polyline_lengths(offset, geometry), speed, offset, geometry)


@pytest.fixture
def corner() -> StreetGraph:
    """An L of 300 + 400 m from node 0 to 1, a straight way back of 500 m, and a slow parallel of it."""
    return graph_of(
        [(0, 0), (300, 400)],
        [(0, 1, [(300, 0)], 10.0), (1, 0, [], 5.0), (1, 0, [], 2.0)],
    )


def test_lengths_follow_the_geometry(corner: StreetGraph) -> None:
    assert corner.edge_length.tolist() == [700.0, 500.0, 500.0]
    assert corner.edge_time.tolist() == [70.0, 100.0, 250.0]


def test_positions_on_an_l_are_where_a_ruler_puts_them(corner: StreetGraph) -> None:
    fraction = np.array([0.0, 0.2, 3 / 7, 5 / 7, 1.0])
    expected = [(0, 0), (140, 0), (300, 0), (300, 200), (300, 400)]
    np.testing.assert_allclose(corner.position(np.zeros(5, dtype=int), fraction), expected, atol=1e-9)


def test_fractions_beyond_the_street_stay_on_it(corner: StreetGraph) -> None:
    np.testing.assert_allclose(corner.position([1, 1], [-3.0, 7.0]), [(300, 400), (0, 0)], atol=1e-9)


@given(
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=2, max_size=8), st.floats(0, 1)
)
def test_positions_agree_with_shapely(points: list[tuple[float, float]], fraction: float) -> None:
    # Two decoys before and after: an edge must not read its neighbours' vertices.
    decoy = (0, 1, [(5e5, 5e5)], 1.0)
    graph = graph_of([points[0], points[-1]], [decoy, (0, 1, points[1:-1], 1.0), decoy])
    found = graph.position([1], [fraction])[0]
    wanted = shapely.LineString(points).interpolate(fraction, normalized=True)
    np.testing.assert_allclose(found, (wanted.x, wanted.y), atol=1e-6)


def test_a_street_without_length_has_a_position() -> None:
    graph = graph_of([(3, 4), (3, 4)], [(0, 1, [], 1.0)])
    np.testing.assert_array_equal(graph.position([0, 0], [0.3, 1.0]), [(3, 4), (3, 4)])


def test_the_matrix_keeps_the_fastest_of_parallel_streets(corner: StreetGraph) -> None:
    np.testing.assert_array_equal(corner.matrix().toarray(), [[0.0, 70.0], [100.0, 0.0]])
    np.testing.assert_array_equal(corner.matrix_edges, [0, 1])
    np.testing.assert_array_equal(corner.edge_index([0, 1, 0], [1, 0, 0]), [0, 1, -1])


def test_matrix_and_edges_agree_on_a_random_graph(rng: np.random.Generator) -> None:
    nodes = [tuple(point) for point in rng.uniform(0, 1000, (30, 2))]
    edges = [
        (int(u), int(v), [], float(s))
        for (u, v), s in zip(rng.integers(0, 30, (200, 2)), rng.uniform(1, 9, 200), strict=True)
    ]
    graph = graph_of(nodes, edges)
    best = {}
    for edge, (u, v) in enumerate(zip(graph.edge_from.tolist(), graph.edge_to.tolist(), strict=True)):
        if (u, v) not in best or graph.edge_time[edge] < graph.edge_time[best[u, v]]:
            best[u, v] = edge
    coo = graph.matrix().tocoo()
    assert coo.nnz == len(best)
    for u, v, time, edge in zip(coo.row, coo.col, coo.data, graph.matrix_edges, strict=True):
        assert edge == best[u, v]
        assert time == graph.edge_time[edge]
    everything = np.indices((30, 30)).reshape(2, -1)
    wanted = [best.get((u, v), -1) for u, v in everything.T.tolist()]
    np.testing.assert_array_equal(graph.edge_index(*everything), wanted)


def test_doors_are_the_nearest_nodes(rng: np.random.Generator) -> None:
    graph = graph_of([tuple(point) for point in rng.uniform(0, 1000, (50, 2))], [(0, 1, [], 1.0)])
    points = rng.uniform(0, 1000, (200, 2))
    brute = np.linalg.norm(points[:, None] - graph.node_xy[None], axis=2).argmin(axis=1)
    np.testing.assert_array_equal(graph.nearest_node(points), brute)


def test_arrays_that_do_not_belong_together_are_refused(corner: StreetGraph) -> None:
    with pytest.raises(CityError, match="do not agree in length"):
        replace(corner, edge_speed=np.ones(2))
    with pytest.raises(CityError, match=r"outside 0\.\.1"):
        replace(corner, edge_to=np.array([1, 0, 2], dtype=np.int32))


def test_every_node_reaches_every_other_in_shipped_cities(shipped) -> None:
    for graph in shipped.streets.values():
        there = dijkstra(graph.matrix(), indices=0)
        back = dijkstra(graph.matrix().T.tocsr(), indices=0)
        assert np.isfinite(there).all()
        assert np.isfinite(back).all()


def test_streets_of_shipped_cities_begin_and_end_at_their_nodes(shipped) -> None:
    for graph in shipped.streets.values():
        every = np.arange(graph.edge_count)
        np.testing.assert_allclose(
            graph.position(every, np.zeros(len(every))), graph.node_xy[graph.edge_from], atol=1e-6
        )
        np.testing.assert_allclose(
            graph.position(every, np.ones(len(every))), graph.node_xy[graph.edge_to], atol=1e-6
        )
        straight = np.linalg.norm(graph.node_xy[graph.edge_from] - graph.node_xy[graph.edge_to], axis=1)
        assert (graph.edge_length >= straight - 1e-6).all()
        assert (graph.edge_speed > 0.3).all()
        assert (graph.edge_speed < 56.0).all()


def test_vertices_of_edges_come_in_their_order_with_the_share_travelled(corner: StreetGraph) -> None:
    owner, share, xy = corner.vertices(np.array([1, 0, 0]))
    assert owner.tolist() == [0, 0, 1, 1, 1, 2, 2, 2]
    np.testing.assert_allclose(share, [0.0, 1.0, 0.0, 3 / 7, 1.0, 0.0, 3 / 7, 1.0])
    np.testing.assert_allclose(xy, corner.position(np.array([1, 0, 0])[owner], share), atol=1e-9)
    assert [len(part) for part in corner.vertices(np.zeros(0, dtype=np.int64))] == [0, 0, 0]


def test_an_edge_without_length_has_no_share_to_travel() -> None:
    loop = graph_of([(0, 0), (0, 0)], [(0, 1, [], 1.0), (1, 0, [], 1.0)])
    assert loop.vertices(np.array([0]))[1].tolist() == [0.0, 0.0]
