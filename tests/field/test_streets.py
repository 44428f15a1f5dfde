"""Radio along streets: shortest ways on a small net, never below the straight line, and exact choices."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.field import evaluate, serving_regions, solve_field, street_ways
from geoedge.field.geometry import Geometry
from geoedge.sites import Layout


@dataclass
class Streets:
    node_xy: np.ndarray
    edge_from: np.ndarray
    edge_to: np.ndarray
    edge_length: np.ndarray


def grid(n: int = 21, step_m: float = 100.0) -> Streets:
    """Return a square net of one-way streets."""
    axis = np.arange(n) * step_m
    node = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    number = np.arange(n * n).reshape(n, n)
    start = np.concatenate((number[:, :-1].ravel(), number[:-1].ravel()))
    end = np.concatenate((number[:, 1:].ravel(), number[1:].ravel()))
    return Streets(node, start.astype(np.int32), end.astype(np.int32), np.full(len(start), step_m))


def test_ways_on_a_net_are_city_blocks():
    site = np.array([[0.5, 0.5], [1.93, 0.1]])
    ways = street_ways(grid(), site)
    geometry = Geometry([[0.2, 0.8], [1.0, 1.04]], site, 0.3, 2.5, None, None, ways)
    place, which = np.indices((2, 2)).reshape(2, -1)
    expected = [0.6, 1.7 + 0.7 + 0.03, 0.04 + 1.0, 0.04 + 0.9 + 0.9 + 0.03]
    np.testing.assert_allclose(geometry.way_km(place, which), expected, rtol=1e-6)


@pytest.mark.parametrize("n_sites", [3, 90])
def test_choices_along_streets_are_the_brute_force_argmin(make_problem, n_sites):
    problem = make_problem(4, n_sites=n_sites, n_points=900)
    ways = street_ways(grid(), problem.geometry.site_xy)
    street = replace(problem, geometry=replace(problem.geometry, ways=ways))
    waits = np.random.default_rng(1).exponential(0.2, n_sites)
    answer, geometry = evaluate(street, waits), street.geometry
    place, site = np.indices((900, n_sites))
    way = geometry.way_km(place.ravel(), site.ravel()).reshape(900, n_sites)
    straight = problem.geometry.way_km(place.ravel(), site.ravel()).reshape(900, n_sites)
    assert (way >= straight * (1 - 1e-6)).all()
    cost = geometry.radio_delay(way)[:, :, None] + answer.offset
    np.testing.assert_array_equal(answer.owner, cost.argmin(axis=1))
    solved = solve_field(street)
    assert solved.converged
    assert solved.mean_serving_distance > solve_field(problem).mean_serving_distance


def test_regions_follow_the_streets():
    import shapely

    site = np.array([[500.0, 500.0], [1500.0, 1500.0]])
    layout = Layout(site, [0, 0], ("", ""), ("", ""), "test", "EPSG:32632")
    land = shapely.box(0, 0, 2000, 2000)
    ways = street_ways(grid(), site / 1000)
    regions = serving_regions(land, layout, np.zeros((2, 1)), 0.3, 2.5, cell_m=20.0, ways=ways)
    assert regions.area_km2.sum() == pytest.approx(4.0, rel=1e-9)
    # by city blocks the corners (0, 2) and (2, 0) are as far from either, and all of them a tie
    assert regions.area_km2.iloc[0] > 2.2


def test_wrong_streets_are_one_line():
    streets = grid(3)
    with pytest.raises(GeoEdgeError, match="fall apart"):
        street_ways(replace(streets, node_xy=np.vstack([streets.node_xy, [[9e3, 9e3]]])), [[0.0, 0.0]])
    with pytest.raises(GeoEdgeError, match="below the straight line"):
        street_ways(replace(streets, edge_length=streets.edge_length * 0.9), [[0.0, 0.0]])
    ways = street_ways(streets, [[0.0, 0.0]])
    with pytest.raises(GeoEdgeError, match="lead to 1 sites, but there are 2"):
        Geometry([[0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]], 0.3, 2.5, None, None, ways)
    with pytest.raises(GeoEdgeError, match="knows no torus"):
        Geometry([[0.0, 0.0]], [[0.0, 0.0]], 0.3, 2.5, None, (1.0, 1.0), ways)
