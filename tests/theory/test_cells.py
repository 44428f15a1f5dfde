"""Cells of a typical site: moments against known constants, the sample against the closed forms."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from geoedge.errors import GeoEdgeError
from geoedge.theory import association_per_density, cell_moments, solve_equilibrium
from geoedge.theory.cells import sample_cells

CASES = json.loads((Path(__file__).parents[1] / "reference" / "theory.json").read_text(encoding="utf-8"))


def test_poisson_voronoi_cell():
    """The second moment of its area is known (Gilbert 1962), whatever the radio delay."""
    case = CASES["voronoi_second_moment"]
    given = case["input"]
    offset = np.column_stack([given["beta1"], given["beta2"]])
    found = cell_moments(given["lam"], offset, given["xi"], given["alpha"], given["s"])
    assert found[0, 1] == pytest.approx(case["output"]["EA2"], rel=case["rel_tol"])
    assert found[0, 1] == pytest.approx(1.280176, rel=3e-4)


def test_load_of_the_serving_site(baseline):
    case = CASES["sizebias_base_l3"]
    network = baseline(case["input"]["cfg"]["lam_req"])
    point = solve_equilibrium(network)
    for s in range(network.tiers):
        work = network.request_intensity * network.type_probability * network.occupancy_time[s]
        second = cell_moments(network.tier_density, point.cost_offset, 0.28, 2.5, s)
        mean = work @ point.served_area[s]
        assert work @ second @ work / mean**2 - 1 == pytest.approx(
            case["output"]["acv2"][s], rel=case["rel_tol"]
        )
        assert second @ work / point.served_area[s] == pytest.approx(
            np.array(case["output"]["serving_work"][s]), rel=case["rel_tol"]
        )


def test_moments_scale_with_density():
    """Four times the sites on a sixteenth of the radio delay's plane: areas shrink by four."""
    offset = np.array([[0.0, 0.2], [0.1, 0.0]])
    wide = cell_moments([0.5, 1.0], offset, 0.3, 2.0, 0)
    narrow = cell_moments([2.0, 4.0], offset, 0.3 * 4.0, 2.0, 0)
    assert 16.0 * narrow == pytest.approx(wide, rel=1e-9)


def test_tiers_with_equal_offsets_are_one_tier():
    split = cell_moments([0.3, 0.7], [[0.2], [0.2]], 0.3, 3.0, 1)
    assert split == pytest.approx(cell_moments([1.0], [[0.0]], 0.3, 3.0, 0), rel=1e-9)


def test_a_lone_site_and_one_that_serves_nobody():
    offset = np.array([[0.0], [0.0]])
    lone = cell_moments([1.0, 0.0], offset, 0.3, 2.5, 1)[0, 0]
    # a point added to a Poisson process has the cell of a typical site of it
    assert lone == pytest.approx(1.2802, rel=1e-3)
    assert not cell_moments([1.0, 1.0], [[0.0], [1e4]], 0.3, 2.5, 1).any()


@pytest.mark.parametrize("tier", [-1, 2, 0.5])
def test_no_such_tier(tier):
    with pytest.raises(GeoEdgeError, match="`tier` is"):
        cell_moments([1.0, 1.0], [[0.0], [0.0]], 0.3, 2.5, tier)


def test_offsets_need_types():
    with pytest.raises(GeoEdgeError, match=r"shape \(S, Q\)"):
        cell_moments([1.0], [0.0], 0.3, 2.5, 0)


def test_sample_has_the_exact_moments(baseline):
    network = baseline(3.0)
    offset = solve_equilibrium(network).cost_offset
    area = association_per_density(network.tier_density, offset, 0.28, 2.5)
    for s in range(network.tiers):
        cells = sample_cells(network, offset, s)
        work = network.type_probability * network.occupancy_time[s]
        load = cells.area @ work
        second = cell_moments(network.tier_density, offset, 0.28, 2.5, s)
        assert cells.weight.sum() == pytest.approx(1.0)
        assert cells.weight @ load == pytest.approx(area[s] @ work)
        assert cells.weight @ load**2 == pytest.approx(work @ second @ work)
        # weights hardly move: the bare sample is right within its own errors
        bare = load.std() / load.mean() / np.sqrt(load.size)
        assert load.mean() == pytest.approx(area[s] @ work, rel=4 * bare)


def test_sampled_rings_are_theorem_1(baseline):
    """The share of a ring is the probability that no site is cheaper there, Eq. (26)."""
    network = baseline(3.0)
    offset = solve_equilibrium(network).cost_offset
    cells = sample_cells(network, offset, 2)
    gap = (offset[2] - offset)[:, :, None] / network.delay_coefficient
    reach = np.maximum(cells.ring**2.5 + gap, 0.0) ** 0.8
    expected = np.exp(-np.pi * np.tensordot(network.tier_density, reach, 1))
    error = cells.share.std(axis=0) / np.sqrt(len(cells.share))
    assert (np.abs(cells.share.mean(axis=0) - expected) <= 4.5 * error + 1e-3).all()


def test_sampled_voronoi_areas_follow_the_known_law(random_network):
    """Areas of Poisson-Voronoi cells are gamma distributed of shape 3.575 to good approximation (Ferenc and Neda 2007)."""
    network = random_network(2)
    alone = network.with_placement(np.eye(network.tiers)[0])
    cells = sample_cells(alone, np.zeros_like(alone.prefill_time), 0, 4096)
    luck = cells.area[:, 0] * alone.site_density
    assert stats.kstest(luck, stats.gamma(3.575, scale=1 / 3.575).cdf).statistic < 0.03


def test_the_sample_is_the_same_every_time(baseline):
    network = baseline(3.0)
    one, other = (sample_cells(network, network.prefill_time, 1, 500) for _ in range(2))
    assert (one.share == other.share).all()
    assert (one.weight == other.weight).all()
