"""The patch of sites behind the per-site law: its answer to waits, its equilibrium, and how its luck is taken out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.theory import TieredNetwork, solve
from geoedge.theory._patch import Patch, _respond, settle
from geoedge.theory._typical import _screening, _spread, _waves, make_patch, settled_levels


def patch_of(network: TieredNetwork) -> tuple[Patch, np.ndarray]:
    """Return the patch of a network without empty tiers, and the tiers' waits at its sites."""
    point = solve(network).equilibrium
    patch = make_patch(network, point.queue)
    return patch, point.advertised_wait[patch.tier]


@pytest.fixture(scope="module")
def crowded(baseline) -> tuple[Patch, np.ndarray]:
    return patch_of(baseline(12.0))


@pytest.mark.parametrize("softness", [0.0, 16.0])
def test_slopes_are_those_of_work(crowded, softness):
    patch, wait = crowded
    patch = replace(patch, softness=softness)
    state = _respond(patch, wait, None)
    step = 1e-6 * patch.usual_delay * np.random.default_rng(0).standard_normal(wait.size)
    ahead, behind = (_respond(patch, wait + sign * step, state) for sign in (1.0, -1.0))
    assert ahead.work - behind.work == pytest.approx(2.0 * state.work_slope @ step, rel=1e-3, abs=1e-9)
    assert ahead.rate - behind.rate == pytest.approx(2.0 * state.rate_slope @ step, rel=1e-3, abs=1e-9)


def test_all_requests_are_served(crowded):
    patch, wait = crowded
    network = patch.network
    area = patch.servers.sum() / (network.tier_density @ network.concurrency)
    for demand in (1.0, 1.1):
        state = _respond(replace(patch, demand=demand), wait, None)
        assert state.rate.sum() == pytest.approx(demand * network.request_intensity * area)


@pytest.mark.parametrize(("seed", "fill"), [(0, 0.6), (0, 0.85), (3, 0.85)])
def test_patches_with_radio_far_below_waits_are_solved(random_network, seed, fill):
    """Plain Newton steps do not get there: such a patch is softened."""
    patch, wait = patch_of(random_network(seed, fill))
    state = settle(patch, wait)
    assert state.residual <= 2e-3
    # queue and demand agree at every site that has a wait to speak of
    felt = patch.wait_at(state.work, state.occupancy)
    busy = state.by_load > 0.1 * state.occupancy
    assert felt[busy] == pytest.approx(state.wait[busy], rel=0.05, abs=1e-3)


def test_long_waves_have_the_power_of_poisson_sites(crowded):
    patch, _ = crowded
    wave = 2.0 * np.pi / patch.side * _waves()
    power = np.abs(np.exp(1j * patch.xy @ wave.T).T @ patch.servers) ** 2
    assert power == pytest.approx(np.full(power.size, float((patch.servers**2).sum())), rel=0.05)


def test_levels_of_demand(crowded, baseline):
    """They are at most as far apart as sites vary in number, and the closer together the farther load spreads."""
    patch, wait = crowded
    poisson = np.sqrt((patch.servers**2).sum()) / patch.servers.sum()
    own, spread = [], []
    for load in (6.0, 12.0, 17.0):
        each, start = patch_of(baseline(load))
        middle = settle(each, start)
        own.append(_screening(each, middle))
        spread.append(_spread(each, middle))
    assert own == sorted(own, reverse=True)
    assert spread == sorted(spread, reverse=True)
    assert 0.0 < spread[-1] < 0.9 * poisson < spread[0] < 1.1 * poisson
    low, high = settled_levels(patch, wait)
    assert low.work.sum() < high.work.sum()
    assert low.wait.mean() < settle(patch, wait).wait.mean() < high.wait.mean()
