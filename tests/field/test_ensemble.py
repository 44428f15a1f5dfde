"""The field over Poisson layouts: reproducible, whatever the number of workers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import shapely

from geoedge.errors import GeoEdgeError
from geoedge.field import Ensemble, poisson_ensemble, uniform_torus_demand

LENGTH, HIT = np.array([1024, 4096]), np.array([[0, 0], [512, 2048]])
PREFILL = 1.6e-4 * (LENGTH - HIT) + 1.8e-8 * (LENGTH - HIT) ** 2
WORKLOAD = SimpleNamespace(
    prefill_time=PREFILL,
    occupancy_time=PREFILL + 0.4,
    concurrency=np.array([18, 6]),
    hit_tokens=HIT,
    prompt_tokens=LENGTH,
    full_prefill_time=1.6e-4 * LENGTH + 1.8e-8 * LENGTH**2,
)
COMMON = {
    "placement_probability": (0.7, 0.3),
    "delay_coefficient": 0.28,
    "delay_exponent": 2.5,
    "tau": 0.8,
}


def ensemble(**changes: object) -> Ensemble:
    demand = uniform_torus_demand((6.0, 6.0), 2.0, (0.4, 0.6), 0.2)
    options = {**COMMON, "density_per_km2": 1.2, "n_layouts": 4, "seed": 3} | changes
    return poisson_ensemble((6000.0, 6000.0), demand, WORKLOAD, **options)


def test_the_same_whatever_the_number_of_workers():
    one, two = ensemble(), ensemble(workers=2)
    for name, values in vars(one).items():
        np.testing.assert_array_equal(values, getattr(two, name))


def test_a_longer_ensemble_begins_with_the_shorter():
    np.testing.assert_array_equal(ensemble(n_layouts=6).coverage[:4], ensemble().coverage)


def test_poisson_counts_vary_and_fixed_ones_do_not():
    assert len(set(ensemble(n_layouts=8).sites.tolist())) > 2
    assert set(ensemble(density_per_km2=None, count=40).sites.tolist()) == {40}


def test_more_sites_cover_more():
    few, many = (ensemble(density_per_km2=None, count=n, n_layouts=3).coverage for n in (20, 80))
    assert few.max() < many.min()


def test_layouts_without_a_site_are_misses():
    found = ensemble(density_per_km2=0.02, n_layouts=12)
    empty = found.sites == 0
    assert empty.any()
    assert (found.coverage[empty] == 0).all()
    assert not found.stable[empty].any()


def test_rank_and_table():
    found = ensemble()
    assert found.rank(found.coverage.min() - 1e-9) == 0.0
    assert found.rank(found.coverage.max() + 1e-9) == 1.0
    assert found.rank(np.sort(found.coverage)[1]) == pytest.approx(0.375)
    table = found.table()
    assert len(table) == len(found) == 4
    assert {"coverage", "mean_ttft_s", "p95_ttft_s", "mean_serving_distance_km"} <= set(table.columns)


def test_on_land():
    land = shapely.box(0, 0, 3000, 3000)
    demand = uniform_torus_demand((3.0, 3.0), 2.0, (0.4, 0.6), 0.1)
    found = poisson_ensemble(land, demand, WORKLOAD, **COMMON, count=12, n_layouts=2)
    assert (found.residual <= 1e-3).all()
    assert ((found.coverage > 0.3) & (found.coverage < 1.0)).all()


def test_uniform_demand_adds_up():
    demand = uniform_torus_demand((4.0, 2.0), 3.0, (0.4, 0.6), 0.1)
    assert demand.xy.shape == (800, 2)
    assert demand.rate.sum() == pytest.approx(3.0 * 8.0)
    np.testing.assert_allclose(demand.rate.sum(axis=0), [9.6, 14.4])
    with pytest.raises(GeoEdgeError, match="whole number of cells"):
        uniform_torus_demand((1.0, 1.0), 1.0, (1.0,), 0.3)


@pytest.mark.parametrize("changes", [{"count": 5}, {"density_per_km2": None}, {"n_layouts": 0}])
def test_unclear_ensembles_are_refused(changes):
    with pytest.raises(GeoEdgeError):
        ensemble(**changes)
