"""Small estimators on a torus, which has no edge to correct for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree


def torus_k(xy, period, r):
    """Return pairs of sites within each distance, every pair twice."""
    tree = cKDTree(xy, boxsize=period)
    return tree.count_neighbors(tree, r).astype(float) - len(xy)


@pytest.fixture
def assert_k():
    """Return a check that the mean K of layouts on a torus, at their true density, is a formula's."""

    def check(layouts, density_per_km2, r_m, expected, *, errors=4.0):
        # with the true density K is unbiased; each distance may miss by 4 standard errors of the mean
        area, r = np.prod(layouts[0].period_m), np.asarray(r_m, dtype=float)
        scale = (density_per_km2 * 1e-6) ** 2 * area
        seen = np.array([torus_k(one.xy, one.period_m, r) for one in layouts]) / scale
        error = seen.std(axis=0, ddof=1) / np.sqrt(len(seen))
        off = np.abs(seen.mean(axis=0) - expected)
        assert (off <= errors * error + 1e-9 * np.pi * r**2).all(), (off / error, error / (np.pi * r**2))
        assert (error < 0.1 * np.pi * r**2).all()  # otherwise the check could hardly fail

    return check


@pytest.fixture
def assert_mean_count():
    """Return a check that layouts have the number of sites asked for on average."""

    def check(layouts, expected, *, errors=4.0):
        count = np.array([len(one) for one in layouts])
        error = max(count.std(ddof=1) / np.sqrt(len(count)), 1e-9)
        assert abs(count.mean() - expected) <= errors * error, (count.mean(), expected, error)
        assert error < 0.05 * expected

    return check


@pytest.fixture
def least_distance():
    """Return the distance between the two nearest sites [m], around a torus too."""

    def distance(layout):
        tree = cKDTree(layout.xy, boxsize=layout.period_m)
        return tree.query(layout.xy, k=2)[0][:, 1].min()

    return distance
