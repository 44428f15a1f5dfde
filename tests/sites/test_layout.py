"""Layouts: what sites hold, how dense they are, which is nearest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.errors import CityError
from geoedge.sites import Layout, place_profiles


def layout(xy: object, profile: object = None, **rest: object) -> Layout:
    n = len(np.asarray(xy))
    held = np.zeros(n, dtype=np.int64) if profile is None else profile
    return Layout(xy, held, ("a",) * n, ("file",) * n, "test", **rest)


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 300),
    weights=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6).filter(lambda w: sum(w) > 0.1),
    seed=st.integers(0, 1000),
)
def test_fixed_shares_are_as_close_as_whole_sites_can_be(n, weights, seed):
    share = np.array(weights) / sum(weights)
    count = np.bincount(place_profiles(n, share, seed), minlength=len(share))
    assert count.sum() == n
    assert (np.abs(count - n * share) < 1.0).all()
    assert (count[share == 0] == 0).all()


def test_which_site_holds_what_is_random():
    draws = np.array([place_profiles(10, (0.5, 0.5), seed) for seed in range(2000)])
    np.testing.assert_allclose(draws.mean(axis=0), 0.5, atol=4 * 0.5 / np.sqrt(2000))


def test_independent_profiles_vary_in_number():
    share = (0.45, 0.35, 0.2)
    count = [np.bincount(place_profiles(100, share, k, independent=True), minlength=3) for k in range(500)]
    assert np.var([c[0] for c in count]) == pytest.approx(100 * 0.45 * 0.55, rel=0.3)


@pytest.mark.parametrize("share", [(0.5, 0.4), (1.2, -0.2), (), (np.nan, 1.0)])
def test_shares_that_are_none_are_refused(share):
    with pytest.raises(CityError, match="`placement_probability` must be nonnegative and sum to 1"):
        place_profiles(5, share, 0)


def test_density_on_land_and_torus():
    sites = layout(np.zeros((6, 2)))
    assert sites.density(2.0) == 3.0
    with pytest.raises(CityError, match="`area_km2` must be given"):
        sites.density()
    assert layout(np.zeros((6, 2)), period_m=(2000.0, 1500.0)).density() == 2.0


@pytest.mark.parametrize("period", [None, (3000.0, 2000.0)])
def test_nearest_per_profile_is_brute_force(period):
    rng = np.random.default_rng(0)
    sites = layout(rng.random((40, 2)) * (3000, 2000), rng.integers(0, 3, 40), period_m=period)
    points = rng.random((200, 2)) * (3000, 2000)
    distance, site = sites.nearest_per_profile(points, 4)
    gap = np.abs(points[:, None] - sites.xy[None])
    if period is not None:
        gap = np.minimum(gap, np.array(period) - gap)
    metres = np.hypot(gap[..., 0], gap[..., 1])
    for s in range(3):
        mine = np.where(sites.profile == s, metres, np.inf)
        np.testing.assert_array_equal(site[:, s], mine.argmin(axis=1))
        np.testing.assert_allclose(distance[:, s], mine.min(axis=1) / 1000, rtol=1e-12)
    assert np.isinf(distance[:, 3]).all()
    assert (site[:, 3] == -1).all()


def test_a_torus_takes_sites_into_its_window():
    sites = layout([[-100.0, 2100.0]], period_m=(3000.0, 2000.0))
    np.testing.assert_allclose(sites.xy, [[2900.0, 100.0]])
    assert sites.period_km == (3.0, 2.0)
    np.testing.assert_allclose(sites.xy_km, [[2.9, 0.1]])


def test_layouts_do_not_change():
    sites = layout(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="read-only"):
        sites.profile[0] = 1
    assert sites.with_profile([1, 0]).profile.tolist() == [1, 0]
    assert sites.profile.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("xy", "profile"), [(np.empty((0, 2)), []), ([[0, np.nan]], [0]), ([[0, 0]], [-1]), ([[0, 0]], [0, 1])]
)
def test_impossible_layouts_are_refused(xy, profile):
    with pytest.raises(CityError):
        layout(xy, profile)
