"""The least density: it is reached, nothing below reaches it, and the best mix needs no more than another."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.theory import (
    PlacementLimits,
    minimum_density,
    minimum_density_and_mix,
    optimal_placement,
    solve,
    solve_equilibrium,
)

BYTES = np.array([0.0, 4.0, 12.0])


@pytest.mark.parametrize("policy", ["load_aware", "nearest"])
def test_minimum_density_is_the_least(baseline, policy: str) -> None:
    network, level = baseline(3.0), 0.8 if policy == "load_aware" else 0.5
    density = minimum_density(network, level, 0.8, policy)
    for factor, holds in ((1.0 + 1e-9, True), (1.0 - 1e-6, False)):
        scaled = network.scaled(density * factor / network.site_density)
        assert (float(solve(scaled, policy).ttft_coverage(0.8)) >= level) is holds


def test_minimum_density_next_to_a_jump_and_out_of_reach(baseline) -> None:
    # the target is long, so that what limits the density is stability alone: coverage jumps there
    network = baseline(3.0)
    density = minimum_density(network, 0.99, 1e6, "nearest")
    assert solve(network.scaled(density / 1.2), "nearest").stable
    assert not solve(network.scaled(0.999 * density / 1.2), "nearest").stable
    assert minimum_density(network, 0.9, 0.1, "nearest") == np.inf


@pytest.mark.parametrize(
    ("policy", "target", "level", "first", "later"),
    [
        ("load_aware", 1.0, 0.8709, (1.03, 1.05), (1.26, 1.32)),
        ("load_aware", 3.0, 0.9779, (1.04, 1.06), (1.26, 1.31)),
        ("prefix_only", 3.0, 0.2901, (0.47, 0.48), (0.70, 1.10)),
    ],
)
def test_the_first_of_several_crossings_is_found(
    random_network, policy: str, target: float, level: float, first, later
) -> None:
    # more sites bring a busy tier closer to more people: coverage is below the level again at some more sites
    network = random_network(0, 0.9)

    def covered(factor: float) -> float:
        return float(solve(network.scaled(factor), policy).ttft_coverage(target))

    factor = minimum_density(network, level, target, policy) / network.site_density
    assert first[0] < factor < first[1]
    assert covered(factor * (1.0 + 1e-9)) >= level
    assert max(covered(each) for each in factor * np.linspace(0.85, 1.0 - 1e-6, 8)) < level
    assert max(covered(each) for each in np.linspace(*later, 4)) < level


@pytest.mark.parametrize("seed", range(8))
def test_a_peak_between_two_densities_of_the_scan_is_found(random_network, seed: int) -> None:
    # levels that the highest peaks of a dense table just reach
    network, factors = random_network(seed, 0.9), 2.0 ** np.linspace(-1.5, 1.0, 300)
    covered = np.array(
        [float(solve(network.scaled(factor), "prefix_only").ttft_coverage(2.0)) for factor in factors]
    )
    record = np.flatnonzero(
        (np.maximum.accumulate(covered)[:-1] == covered[:-1]) & (covered[:-1] > covered[1:])
    )
    for level in {*(covered[record] - 1e-6), 0.5 * covered.max()}:
        if 0.01 < level < 1.0:
            found = minimum_density(network, level, 2.0, "prefix_only") / network.site_density
            assert found <= factors[np.flatnonzero(covered >= level)[0]] * (1.0 + 1e-9)
            assert float(solve(network.scaled(found), "prefix_only").ttft_coverage(2.0)) >= level - 1e-9


def test_the_scan_ends_where_the_target_is_impossible(baseline, monkeypatch) -> None:
    from geoedge.theory import _asked

    solved = []
    monkeypatch.setattr(
        _asked, "solve_equilibrium", lambda *a, **k: solved.append(1) or solve_equilibrium(*a, **k)
    )
    for load, level in ((3.0, 0.8), (3.0, 0.99), (9.0, 0.9)):
        solved.clear()
        minimum_density(baseline(load), level, 0.8)
        assert len(solved) <= 40
    solved.clear()
    assert minimum_density(baseline(3.0), 0.9, 0.1) == np.inf
    assert not solved


def test_an_idle_network_needs_sites_within_reach_alone(baseline) -> None:
    network = baseline(0.0)
    density = minimum_density(network, 0.9, 0.8)
    idle = solve(network.scaled(density / network.site_density))
    assert float(idle.queue_free_coverage(0.8)) == pytest.approx(0.9, abs=1e-8)


def test_the_best_mix_needs_no_more_than_the_present_one(random_network) -> None:
    network = random_network(0, 0.9)
    present = minimum_density(network, 0.2901, 3.0, "prefix_only")
    assert minimum_density_and_mix(network, 0.2901, 3.0, policy="prefix_only").site_density < 0.99 * present


def test_a_window_needs_between_its_hours(baseline) -> None:
    hours = [baseline(1.0), baseline(6.0)]
    calm, busy = (minimum_density(hour, 0.8, 0.8) for hour in hours)
    both = minimum_density(hours, 0.8, 0.8, weights=[1.0, 1.0])
    assert calm < both < busy
    answers = [solve(hour.scaled(both / hour.site_density)) for hour in hours]
    assert np.mean([float(answer.ttft_coverage(0.8)) for answer in answers]) == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize("level", [0.7, 0.9, 0.99])
def test_the_best_mix_needs_fewest_sites(baseline, level: float) -> None:
    limits = PlacementLimits(BYTES, 3.8, [0.1, 0.0, 0.0], [1.0, 1.0, 0.25])
    network = baseline(3.0)
    found = minimum_density_and_mix(network, level, 0.8, limits)
    assert limits.holds(found.placement_probability)
    assert found.site_density < minimum_density(network, level, 0.8)
    # at that density no mix covers more, and this one covers just enough
    scaled = network.scaled(found.site_density / network.site_density)
    best = optimal_placement(scaled, 0.8, limits, method="grid")
    assert best.coverage == pytest.approx(level, abs=1e-6)


def test_a_mix_is_found_where_the_present_one_can_never_reach_the_target(baseline) -> None:
    # without a deep tier a long prompt takes 0.68 s of prefill at least, with one 0.40 s
    network = baseline(3.0, placement=(0.5, 0.5, 0.0))
    assert minimum_density(network, 0.9, 0.5) == np.inf
    found = minimum_density_and_mix(network, 0.9, 0.5)
    assert found.site_density < np.inf
    assert found.placement_probability[2] > 0.1
    assert minimum_density_and_mix(network, 0.9, 0.05).site_density == np.inf


@pytest.mark.parametrize("level", [0.0, 1.0, float("nan")])
def test_the_reliability_must_make_sense(baseline, level: float) -> None:
    for ask in (minimum_density, minimum_density_and_mix):
        with pytest.raises(GeoEdgeError, match=r"must lie in \(0, 1\)"):
            ask(baseline(3.0), level, 0.8)
