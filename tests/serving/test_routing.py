"""Routing against plain numpy: every site, every point, no pruning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.serving import candidates, routing
from geoedge.serving.routing import POLICIES, route


def costs(points, types, sites, offset, coefficient, exponent, period=None):
    """Return the cost of every site for every point, shape (m, n)."""
    gap = np.abs(points[:, None] - sites[None])
    if period is not None:
        gap = np.minimum(gap, np.asarray(period) - gap)
    return coefficient * np.hypot(gap[..., 0], gap[..., 1]) ** exponent + offset[:, types].T


def assert_argmin(chosen, table):
    """Assert that the chosen cost is the least, up to the rounding of two ways to compute it."""
    picked = table[np.arange(len(table)), chosen]
    np.testing.assert_allclose(picked, table.min(axis=1), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("exponent", [0.7, 2.0, 2.5, 3.0, 3.7, 4.0])
@pytest.mark.parametrize("period", [None, (9.0, 13.0)])
@pytest.mark.parametrize("n_sites", [3, 60, 250])
def test_route_is_the_argmin(exponent, period, n_sites):
    rng = np.random.default_rng(n_sites)
    side = np.array([9.0, 13.0])
    sites = rng.uniform(size=(n_sites, 2)) * side
    points = rng.uniform(size=(7000, 2)) * side
    types = rng.integers(0, 3, 7000)
    offset = rng.uniform(0, 0.6, (n_sites, 3))
    chosen = route(points, types, sites, offset, 0.28, exponent, period)
    table = costs(points, types, sites, offset, 0.28, exponent, period)
    assert_argmin(chosen, table)
    assert chosen.dtype == np.int64
    assert (chosen == table.argmin(axis=1)).all()


@given(
    seed=st.integers(0, 10**6),
    n_sites=st.integers(1, 40),
    spread=st.sampled_from([0.0, 0.01, 1.0, 50.0]),
    torus=st.booleans(),
    clump=st.sampled_from([1.0, 0.05]),
)
@settings(max_examples=60, deadline=None)
def test_lists_agree_with_the_full_scan(seed, n_sites, spread, torus, clump):
    """Force the lists on any number of sites; clumps, equal and wild offsets, points outside the sites' box."""
    rng = np.random.default_rng(seed)
    period = (5.0, 3.0) if torus else None
    sites = rng.uniform(size=(n_sites, 2)) * (5.0, 3.0) * clump
    points = rng.uniform(size=(300, 2)) * (5.0, 3.0)
    types = rng.integers(0, 2, 300)
    offset = rng.uniform(0, spread, (n_sites, 2))
    ground = routing.make_ground(sites, 0.28, 2.5, period)
    lists = candidates.build_lists(*points.T, ground, offset)
    zero = np.zeros(n_sites)
    pruned = routing._route(*np.ascontiguousarray(points.T), types, ground, offset, zero, lists)
    scanned = routing._route(
        *np.ascontiguousarray(points.T), types, ground, offset, zero, candidates.NO_LISTS
    )
    assert (pruned == scanned).all()


@given(
    seed=st.integers(0, 10**6),
    slack=st.sampled_from([0.0, 0.1, 3.0]),
    scale=st.sampled_from([0.01, 0.3, 4.0]),
)
@settings(max_examples=40, deadline=None)
def test_waits_advertised_after_the_lists_were_built(seed, slack, scale):
    """Lists built without waits stay exact for any nonnegative wait, and points off the grid are scanned."""
    rng = np.random.default_rng(seed)
    sites, points = rng.uniform(0, 6, (80, 2)), rng.uniform(-1, 7, (500, 2))
    types, offset = rng.integers(0, 3, 500), rng.uniform(0, 0.4, (80, 3))
    wait = rng.exponential(scale, 80) * rng.integers(0, 2, 80)
    ground = routing.make_ground(sites, 0.28, 2.5)
    lists = candidates.build_lists(*points[:200].T, ground, offset, slack)
    pruned = routing._route(*np.ascontiguousarray(points.T), types, ground, offset, wait, lists)
    table = costs(points, types, sites, offset + wait[:, None], 0.28, 2.5)
    assert (pruned == table.argmin(axis=1)).all()


@pytest.mark.parametrize("n_points", [50, 30_000])
def test_ties_go_to_the_lowest_index(n_points):
    """Twins of every site, on a lattice where many points are equally far from several sites."""
    lattice = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)
    sites = np.concatenate((lattice, lattice))[np.random.default_rng(1).permutation(72)]
    points = np.random.default_rng(2).integers(0, 24, (n_points, 2)) * 0.25
    offset = np.zeros((72, 1))
    for period in (None, (6.0, 6.0)):
        gap = np.abs(points[:, None] - sites)
        if period:
            gap = np.minimum(gap, 6.0 - gap)
        expected = (gap**2).sum(axis=-1).argmin(axis=1)
        assert (route(points, 0, sites, offset, 0.28, 2.0, period) == expected).all()


@pytest.mark.parametrize("coefficient", [0.0, 1e-9, 0.3])
def test_lists_stay_short_where_nothing_can_be_pruned(coefficient):
    """Many sites at nearly one cost everywhere: lists are cut, and what they lack is scanned."""
    rng = np.random.default_rng(11)
    sites, offset = rng.uniform(0, 3, (400, 2)), np.repeat(rng.integers(0, 2, (400, 1)) * 1e-12, 2, axis=1)
    sites[:200] = 1.5
    x, y = rng.uniform(0, 3, (2, 4000))
    ground = routing.make_ground(sites, coefficient, 2.0)
    lists = candidates.build_lists(x, y, ground, offset)
    assert np.diff(lists.start).max() <= candidates.LIST_LIMIT
    types, zero = rng.integers(0, 2, 4000), np.zeros(400)
    pruned = routing._route(x, y, types, ground, offset, zero, lists)
    assert (pruned == routing._route(x, y, types, ground, offset, zero, candidates.NO_LISTS)).all()


def test_torus_wraps_points_and_sites():
    rng = np.random.default_rng(3)
    sites, points = rng.uniform(0, 4, (30, 2)), rng.uniform(0, 4, (3000, 2))
    offset = rng.uniform(0, 0.2, (30, 1))
    inside = route(points, 0, sites, offset, 0.3, 2.0, (4.0, 4.0))
    # Whole periods in binary fractions, so that only the wrapping differs.
    shifted = route(points + 8.0, 0, sites - 4.0, offset, 0.3, 2.0, (4.0, 4.0))
    assert (inside == shifted).mean() > 0.999


def test_closed_sites_are_never_chosen():
    rng = np.random.default_rng(4)
    sites, points = rng.uniform(0, 4, (40, 2)), rng.uniform(0, 4, (9000, 2))
    offset = np.where(rng.uniform(size=(40, 2)) < 0.5, np.inf, 0.1)
    offset[0] = 0.1
    types = rng.integers(0, 2, 9000)
    chosen = route(points, types, sites, offset, 0.3, 2.0)
    assert np.isfinite(offset[chosen, types]).all()
    assert_argmin(chosen, costs(points, types, sites, offset, 0.3, 2.0))


def test_one_place_and_one_site():
    assert route(np.zeros((3000, 2)), 0, [[1.0, 1.0]], [[0.0]], 0.3, 2.5).tolist() == [0] * 3000
    assert route(np.zeros((0, 2)), 0, [[1.0, 1.0]], [[0.0]], 0.3, 2.5).size == 0
    crowd = route(np.zeros((5000, 2)), 0, np.zeros((20, 2)), np.zeros((20, 1)), 0.3, 2.5)
    assert (crowd == 0).all()


def test_policies():
    prefill, wait = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([1.0, 2.0])
    assert (POLICIES["nearest"](prefill, wait) == 0).all()
    assert (POLICIES["prefix_only"](prefill, wait) == prefill).all()
    np.testing.assert_allclose(POLICIES["load_aware"](prefill, wait), [[1.1, 1.2], [2.3, 2.4]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"offset": [[np.nan], [0.0]]}, "NaN"),
        ({"offset": [[0.0]]}, "one row for each of 2 sites"),
        ({"offset": [[np.inf], [np.inf]]}, "infinite at every site for request type 0"),
        ({"types": [1]}, r"0\.\.0"),
        ({"points_xy_km": [[np.nan, 0.0]]}, "finite"),
        ({"delay_exponent": 0.0}, "delay_exponent"),
        ({"delay_coefficient": -1.0}, "delay_coefficient"),
        ({"period_km": (0.0, 1.0)}, "period_km"),
    ],
)
def test_wrong_input_is_named(change, words):
    good = {
        "points_xy_km": [[0.0, 0.0]],
        "types": [0],
        "site_xy_km": [[0.0, 0.0], [1.0, 0.0]],
        "offset": [[0.0], [0.0]],
        "delay_coefficient": 0.3,
        "delay_exponent": 2.0,
    }
    with pytest.raises(ValueError, match=words):
        route(**(good | change))
