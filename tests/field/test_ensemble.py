"""Poisson layouts on a torus: exact means, honest errors, the stopping rule, and what a seed fixes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.field import evaluate, solve_field, torus_ensemble, torus_problem, torus_side
from geoedge.field.ensemble import regressed
from geoedge.theory import ErlangC, TieredNetwork, TwoMomentQueue, solve


def network(intensity: float = 1.0, tiers: int = 3) -> TieredNetwork:
    """Return up to three tiers, the last of which is rare, has all the cache and few servers."""
    prefill = np.array([[0.2, 0.9], [0.1, 0.7], [0.0, 0.2]])[:tiers]
    hit = np.array([[0, 0], [512, 512], [1024, 3072]])[:tiers]
    return TieredNetwork(
        np.array([0.6, 0.4, 0.08])[:tiers],
        np.array([12, 8, 6])[:tiers],
        [0.4, 0.6],
        prefill,
        prefill + 0.4,
        intensity,
        0.28,
        2.5,
        hit,
        [1024, 4096],
        [0.2, 0.9],
    )


@pytest.mark.parametrize("policy", ["load_aware", "prefix_only", "nearest"])
def test_controls_have_the_means_that_theory_says(policy):
    answer = torus_ensemble(network(2.0), policy=policy, scope="tier", targets=(0.5, 0.8), rng=3, layouts=150)
    controls = np.column_stack((answer.queue_free, answer.controls))
    error = controls.std(axis=0, ddof=1) / np.sqrt(answer.layouts)
    assert (np.abs(controls.mean(axis=0)) <= 4 * error).all()
    assert (error > 0).all()


def test_without_queues_coverage_is_theorys():
    quiet = network(1e-6)
    for scope in ("tier", "site"):
        answer = torus_ensemble(quiet, scope=scope, targets=(0.4, 0.8), rng=1, half_width=0.002)
        assert answer.reached
        np.testing.assert_allclose(answer.coverage, solve(quiet).ttft_coverage([0.4, 0.8]), atol=5e-4)
        # what theory knows exactly explains everything but the places' tie spans
        assert (answer.variance_reduction > 100).all()
        assert answer.unstable_share == (0.0, 0.0)


def test_regions_scatter_as_poisson_cells_do():
    # E[area²] of a Poisson-Voronoi cell is 1.2802 / density² (Gilbert 1962).
    one = network(1.0, tiers=1)
    ratio = []
    for seed in range(40):
        rate = evaluate(torus_problem(one, 14.0, seed, extended=False), policy="nearest").site_arrival_rate
        ratio.append(rate @ rate / (0.6 * 14.0**2) * 0.6**2)
    assert np.mean(ratio) == pytest.approx(1.2802, abs=4 * np.std(ratio) / np.sqrt(40))
    assert np.std(ratio) / np.sqrt(40) < 0.02


def test_waits_per_tier_are_those_of_an_infinite_network():
    busy = network(4.0)
    theory = solve(busy).equilibrium.advertised_wait
    problem = torus_problem(busy, 55.0, 2, places=60_000, extended=False)
    solved = solve_field(problem, scope="tier")
    on_torus = [solved.advertised_wait[problem.profile == s][0] for s in range(3)]
    np.testing.assert_allclose(on_torus, theory, rtol=0.15, atol=2e-3)
    given = evaluate(problem, theory[problem.profile])
    assert given.ttft_coverage(0.8) == pytest.approx(solved.ttft_coverage(0.8), abs=0.01)


def test_uneven_sites_cost_coverage_unless_they_advertise_their_own_waits():
    busy = network(5.0)
    tier = torus_ensemble(busy, scope="tier", rng=4, half_width=0.01)
    site = torus_ensemble(busy, scope="site", rng=4, half_width=0.01)
    assert tier.reached
    assert site.reached
    mean_field = solve(busy).ttft_coverage(0.8)
    assert tier.coverage[0] + 0.02 < site.coverage[0] <= mean_field + 0.002
    assert tier.unstable_share[0] > 0.01
    assert np.isinf(tier.mean_wait).any()
    assert site.unstable_share[0] == 0.0
    assert np.isfinite(site.mean_wait).all()
    np.testing.assert_allclose(tier.advertised_wait, tier.theory.mean_wait)


def test_errors_are_honest():
    """Over many small ensembles, misses are as large as the standard errors say."""
    busy = network(3.0)
    rng = np.random.default_rng(5)
    small = [
        torus_ensemble(busy, scope="tier", rng=rng, layouts=24, sites=60, places_per_site=20)
        for _ in range(40)
    ]
    layouts = np.concatenate([each.layout_coverage[:, 0] for each in small])
    controls = np.concatenate([np.column_stack((each.queue_free, each.controls)) for each in small])
    truth, error, _ = regressed(layouts, controls)
    misses = np.array([(each.coverage[0] - truth) / each.standard_error[0] for each in small])
    assert error < 0.3 * np.mean([each.standard_error[0] for each in small])
    assert 0.7 < np.sqrt(np.mean(misses**2)) < 1.5
    assert abs(misses.mean()) < 4 / np.sqrt(40)


@pytest.mark.parametrize("scope", ["tier", "site"])
def test_other_queues_are_those_of_the_sites(scope):
    queues = (None, ErlangC(), TwoMomentQueue(0.0), TwoMomentQueue(np.array([1.0, 0.0])))
    plain, erlang, constant, mixed = (
        torus_ensemble(
            network(8.0, tiers=2),
            scope=scope,
            rng=2,
            layouts=8,
            sites=60,
            places_per_site=20,
            queue=queue,
            targets=(1.0,),
        ).coverage[0]
        for queue in queues
    )
    assert plain == erlang
    # those who wait for servers of constant times do so about half as long; the second tier has most of the waits
    assert plain + 1e-3 < mixed < constant


def test_regression_takes_out_what_controls_explain():
    rng = np.random.default_rng(0)
    controls = rng.normal(size=(60, 3))
    value, error, freedom = regressed(0.7 + controls @ [0.3, -2.0, 1e-6], controls)
    assert value == pytest.approx(0.7, abs=1e-12)
    assert error < 1e-12
    assert freedom == 56


def test_regression_uses_few_controls_of_few_layouts():
    rng = np.random.default_rng(0)
    values, controls = rng.normal(size=12), rng.normal(size=(12, 9))
    assert regressed(values, controls)[2] == 12 - 1 - 2
    assert regressed(values, controls) == regressed(values, controls[:, :2])


def test_a_seed_fixes_the_answer_whatever_the_number_of_workers():
    one, again, other = (
        torus_ensemble(network(), rng=seed, layouts=26, sites=30, places_per_site=16, workers=workers)
        for seed, workers in ((7, 1), (7, 2), (8, 1))
    )
    np.testing.assert_array_equal(one.layout_coverage, again.layout_coverage)
    np.testing.assert_array_equal(one.controls, again.controls)
    assert (one.layout_coverage != other.layout_coverage).any()


def test_it_stops_when_it_knows_enough_and_says_when_it_may_not_go_on():
    rough, fine = (
        torus_ensemble(network(3.0), scope="tier", rng=1, half_width=half, sites=60, places_per_site=20)
        for half in (0.05, 0.01)
    )
    assert rough.layouts < fine.layouts
    assert rough.reached
    assert fine.reached
    np.testing.assert_array_equal(rough.layout_coverage, fine.layout_coverage[: rough.layouts])
    cut = torus_ensemble(
        network(3.0), scope="tier", rng=1, half_width=1e-4, most_layouts=30, sites=60, places_per_site=20
    )
    assert cut.layouts == 30
    assert not cut.reached
    assert "30 layouts" in repr(cut)


def test_a_torus_is_four_times_as_wide_as_anybody_reaches():
    one = network(1.0, tiers=1)
    reach = np.sqrt(np.log(1e4) / (np.pi * 0.6))
    assert torus_side(solve(one, "nearest"), 1) == pytest.approx(4 * reach, rel=1e-6)
    assert torus_side(solve(one, "nearest"), 6000) == pytest.approx(100.0)


def test_empty_tiers_change_nothing():
    full = network()
    empty = replace(full, tier_density=[0.6, 0.4, 0.0])
    there = network(tiers=2)
    both = [
        torus_ensemble(each, rng=2, layouts=24, sites=40, places_per_site=16, targets=(0.8, 1.2))
        for each in (empty, there)
    ]
    np.testing.assert_allclose(both[0].coverage, both[1].coverage, rtol=1e-12)
    np.testing.assert_allclose(both[0].standard_error, both[1].standard_error, rtol=1e-9)
    assert np.isnan(both[0].advertised_wait[2])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scope": "city"}, "scope.*site, tier.*'city'"),
        ({"targets": (0.8, -1.0)}, "targets.*above 0"),
        ({"targets": ()}, "targets.*one or more"),
        ({"half_width": 0.0}, "half_width.*layouts"),
        ({"layouts": 3}, "layouts.*at least 8, not 3"),
        ({"most_layouts": 3}, "most_layouts.*at least"),
        ({"workers": 0}, "workers.*at least 1"),
        ({"sites": 0.0}, "sites.*above 0"),
        ({"places_per_site": -1.0}, "places_per_site.*above 0"),
        ({"policy": "random"}, "policy"),
    ],
)
def test_what_cannot_be_asked(wrong, said):
    with pytest.raises(GeoEdgeError, match=said):
        torus_ensemble(network(), rng=1, **wrong)
