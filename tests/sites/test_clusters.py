"""Thomas and Matérn clusters: K in closed form, counts, parents beyond the edge."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from geoedge.errors import CityError
from geoedge.sites import draw_layout

TORUS = (6000.0, 6000.0)
LAND = shapely.union_all([shapely.box(0, 0, 1000, 3000), shapely.box(2000, 0, 4000, 500)])
R = np.array([80.0, 150.0, 250.0, 400.0])


def test_thomas_has_its_k(assert_k):
    # πr² + (1 − exp(−r²/4σ²))/λ_p
    given = {"parents_per_km2": 2.0, "spread_m": 100.0}
    layouts = [draw_layout("thomas", TORUS, 8.0, seed, **given) for seed in range(200)]
    assert_k(layouts, 8.0, R, np.pi * R**2 - np.expm1(-(R**2) / (4 * 100.0**2)) / 2e-6)


def test_matern_clusters_have_their_k(assert_k):
    # The distance of two uniform places in a disc, by simulation of 400,000 of them.
    rng = np.random.default_rng(5)
    disc = 200.0 * np.sqrt(rng.random((2, 400_000))) * np.exp(2j * np.pi * rng.random((2, 400_000)))
    within = (np.abs(disc[0] - disc[1])[:, None] <= R).mean(axis=0)
    given = {"parents_per_km2": 2.0, "radius_m": 200.0}
    layouts = [draw_layout("matern_cluster", TORUS, 8.0, seed, **given) for seed in range(200)]
    assert_k(layouts, 8.0, R, np.pi * R**2 + within / 2e-6)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("thomas", {"parents_per_km2": 1.5, "spread_m": 300.0}),
        ("matern_cluster", {"parents_per_km2": 1.5, "radius_m": 500.0}),
    ],
)
def test_the_density_asked_for_is_the_mean_density(name, given, assert_mean_count):
    # Clusters as wide as the land: without parents outside half of the sites would be missing.
    layouts = [draw_layout(name, LAND, 6.0, seed, **given) for seed in range(500)]
    assert_mean_count(layouts, 24.0)
    assert all(shapely.contains_xy(LAND, *one.xy.T).all() for one in layouts[:50])


def test_a_cluster_wider_than_the_torus_is_refused():
    with pytest.raises(CityError, match="at most half the shorter side of the torus, 3000 m"):
        draw_layout("matern_cluster", TORUS, 1.0, 0, radius_m=3500.0)
