"""Poisson layouts: the count is Poisson, the places uniform."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from scipy import stats

from geoedge.errors import CityError
from geoedge.sites import poisson_layout

LAND = shapely.union_all([shapely.box(0, 0, 1000, 3000), shapely.box(2000, 0, 4000, 500)])
HOLED = LAND.difference(shapely.box(200, 200, 800, 2800))


def test_the_count_is_poisson_not_fixed():
    # Mean and variance 5 x 4 = 20; the variance of 3,000 counts has a relative sd of about sqrt(2/3000) = 2.6 %.
    count = np.array([len(poisson_layout(LAND, 5.0, seed)) for seed in range(3000)])
    assert count.mean() == pytest.approx(20.0, abs=4 * np.sqrt(20 / 3000))
    assert count.var() == pytest.approx(20.0, rel=0.12)


def test_places_are_uniform_over_the_land():
    xy = poisson_layout(HOLED, None, 5, count=20_000).xy
    assert shapely.contains_xy(HOLED, *xy.T).all()
    parts = [shapely.box(0, 0, 200, 3000), shapely.box(800, 0, 1000, 3000), shapely.box(2000, 0, 4000, 500)]
    parts.append(shapely.box(200, 0, 800, 200))
    share = np.array([part.intersection(HOLED).area for part in parts]) / HOLED.area
    seen = np.array([shapely.intersects_xy(part, *xy.T).sum() for part in parts])
    rest = np.array([1 - share.sum(), 20_000 - seen.sum()])
    p = stats.chisquare(np.append(seen, rest[1]), 20_000 * np.append(share, rest[0])).pvalue
    assert p > 1e-4


def test_a_torus_is_filled_evenly():
    sites = poisson_layout((2000.0, 1000.0), None, 1, count=5000, placement_probability=(0.6, 0.4))
    assert sites.period_m == (2000.0, 1000.0)
    for axis, size in enumerate((2000.0, 1000.0)):
        assert stats.kstest(sites.xy[:, axis] / size, "uniform").pvalue > 1e-4
    assert np.bincount(sites.profile).tolist() == [3000, 2000]  # a fixed count has fixed shares


def test_one_seed_is_one_layout():
    one, two = (poisson_layout(LAND, 3.0, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one.xy, two.xy)
    np.testing.assert_array_equal(one.profile, two.profile)


@pytest.mark.parametrize(
    ("window", "density", "count", "words"),
    [
        (LAND, -1.0, None, "`density_per_km2` must be a positive"),
        (LAND, np.nan, None, "`density_per_km2` must be a positive"),
        (LAND, None, None, "`density_per_km2` must be a positive"),
        (LAND, 1e-9, None, "drew 0 sites"),
        (LAND, None, 0, "drew 0 sites"),
        (shapely.Polygon(), 1.0, None, "`window` must be a polygon"),
        ((0.0, 1.0), 1.0, None, "`window` must be a polygon, or positive width"),
    ],
)
def test_impossible_draws_are_refused(window, density, count, words):
    with pytest.raises(CityError, match=words) as caught:
        poisson_layout(window, density, 0, count=count)
    assert "\n" not in str(caught.value)
