"""The equilibrium on a map: closed forms, Wardrop's condition, invariances, conservation, overload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.errors import GeoEdgeError
from geoedge.field import FieldProblem, Geometry, evaluate, solve_field
from geoedge.theory.queueing import mean_wait, wait_cdf


def with_geometry(problem: FieldProblem, **changes: object) -> FieldProblem:
    return replace(problem, geometry=replace(problem.geometry, **changes))


def test_a_single_site_is_one_mmc_queue(make_problem):
    problem = make_problem(1, n_sites=1, n_types=1, utilization=0.8)
    answer = solve_field(problem)
    service = 1.0 / problem.occupancy_time[problem.profile[0], 0]
    servers = problem.servers[0]
    wait = mean_wait(problem.request_rate, service, servers)
    assert answer.advertised_wait[0] == pytest.approx(wait, rel=1e-2)
    assert answer.mean_wait[0] == pytest.approx(wait, rel=1e-12)
    before = answer.entries.radio + problem.prefill_time[problem.profile[0], 0]
    within = wait_cdf(1.2 - before, problem.request_rate, service, servers)
    expected = np.average(within, weights=problem.rate[answer.entries.place, 0])
    assert answer.ttft_coverage(1.2) == pytest.approx(expected, rel=1e-9)


def test_two_sites_in_mirror_image_share_alike():
    x = (np.arange(40) + 0.5) * 0.05
    rate = np.full((40, 1), 0.15)
    geometry = Geometry(np.column_stack([x, np.zeros(40)]), [[0.5, 0.0], [1.5, 0.0]], 0.28, 2.5, 50.0)
    one = np.ones((1, 1))
    answer = solve_field(FieldProblem(geometry, rate, [0, 0], 0.1 * one, one, [4], 0 * one, [1024.0], [0.1]))
    np.testing.assert_allclose(answer.site_arrival_rate, 3.0, rtol=1e-9)
    assert answer.advertised_wait[0] == pytest.approx(answer.advertised_wait[1], rel=1e-9)


def test_waits_move_the_boundary_as_the_cost_says():
    # All demand stands next to site 0: its wait must rise until the other site is worth the way.
    geometry = Geometry(np.zeros((1, 2)), [[0.0, 0.0], [1.0, 0.0]], 0.28, 2.5, 50.0)
    one = np.ones((1, 1))
    answer = solve_field(
        FieldProblem(geometry, [[6.0]], [0, 0], 0.1 * one, one, [4], 0 * one, [1024.0], [0.1])
    )
    assert answer.stable
    assert answer.site_arrival_rate.sum() == pytest.approx(6.0)
    assert answer.advertised_wait[0] - answer.advertised_wait[1] == pytest.approx(0.28, abs=1e-3)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_sites=st.integers(1, 12),
    n_types=st.integers(1, 4),
    utilization=st.floats(0.05, 0.97),
    period=st.booleans(),
    scope=st.sampled_from(["site", "tier"]),
)
def test_feasible_problems_are_solved_and_lose_nobody(
    make_problem, seed, n_sites, n_types, utilization, period, scope
):
    # `utilization` counts every request at the slowest cache, so that routing cannot make it infeasible.
    problem = make_problem(
        seed, n_sites=n_sites, n_types=n_types, utilization=utilization, period=period, n_points=150
    )
    answer = solve_field(problem, scope=scope)
    assert answer.converged
    assert answer.residual <= 1e-3
    np.testing.assert_allclose(answer.site_rate.sum(axis=0), problem.rate.sum(axis=0), rtol=1e-9)
    if scope == "site":
        assert answer.stable


def test_nobody_would_rather_go_elsewhere(make_problem):
    """Wardrop: the sites a place uses cost no more than a tie span above the cheapest, at the waits suffered."""
    problem = make_problem(11, n_sites=30, n_points=2000, utilization=0.75)
    answer = solve_field(problem, tolerance=1e-6)
    geometry, entries = problem.geometry, answer.entries
    gap = geometry.point_xy[:, None] - geometry.site_xy[None]
    radio = geometry.radio_delay(np.hypot(gap[..., 0], gap[..., 1]))
    suffered = problem.prefill_time[problem.profile] + answer.mean_wait[:, None]
    cost = radio[:, :, None] + suffered[None]
    used = cost[entries.place, entries.site, entries.type]
    regret = used - cost.min(axis=1)[entries.place, entries.type]
    assert (regret <= geometry.span[entries.place] + 1e-3).all()
    np.testing.assert_allclose(answer.mean_wait, answer.advertised_wait, atol=1e-3)


@pytest.mark.parametrize("utilization", [0.3, 0.5, 0.65, 0.8, 0.95])
def test_a_city_of_clustered_sites_converges(make_problem, utilization):
    # Sites on top of each other, of different profiles: whole types flip within milliseconds of wait.
    problem = make_problem(21, n_sites=45, n_points=3000, utilization=utilization, n_types=4)
    sites = np.random.default_rng(4).random((9, 2))[np.arange(45) % 9] * 2.0
    sites += np.random.default_rng(5).normal(0.0, 0.03, sites.shape)
    answer = solve_field(with_geometry(problem, site_xy=sites))
    assert answer.converged
    assert answer.stable
    assert answer.iterations < 150


def test_sites_at_one_place_share_by_profile():
    geometry = Geometry(np.zeros((1, 2)), np.zeros((4, 2)), 0.28, 2.5, 50.0)
    one = np.ones((1, 1))
    answer = solve_field(
        FieldProblem(geometry, [[8.0]], [0] * 4, 0.1 * one, one, [4], 0 * one, [1024.0], [0.1])
    )
    np.testing.assert_allclose(answer.site_arrival_rate, 2.0, rtol=1e-6)


def test_moving_and_scaling_the_map_changes_nothing_but_distances(make_problem):
    problem = make_problem(8, utilization=0.7)
    base = solve_field(problem, tolerance=1e-7)
    geometry = problem.geometry
    shift = np.array([5.0, -3.0])
    moved = with_geometry(problem, point_xy=geometry.point_xy + shift, site_xy=geometry.site_xy + shift)
    np.testing.assert_allclose(solve_field(moved, tolerance=1e-7).mean_wait, base.mean_wait, rtol=1e-3)
    scaled = with_geometry(
        problem,
        point_xy=geometry.point_xy * 4.0,
        site_xy=geometry.site_xy * 4.0,
        delay_coefficient=0.28 / 4.0**2.5,
        cell_m=400.0,
    )
    answer = solve_field(scaled, tolerance=1e-7)
    np.testing.assert_allclose(answer.mean_wait, base.mean_wait, rtol=1e-3)
    assert answer.ttft_coverage(0.8) == pytest.approx(base.ttft_coverage(0.8), abs=1e-6)
    assert answer.mean_serving_distance == pytest.approx(4.0 * base.mean_serving_distance, rel=1e-5)


def test_a_wide_torus_is_the_plane_and_a_narrow_one_is_not(make_problem):
    problem = make_problem(9, utilization=0.6)
    plane = solve_field(problem)
    wide = solve_field(with_geometry(problem, period_km=(100.0, 100.0)))
    np.testing.assert_allclose(wide.mean_wait, plane.mean_wait, rtol=1e-9)
    narrow = solve_field(with_geometry(problem, period_km=(2.0, 2.0)))
    assert narrow.mean_serving_distance < plane.mean_serving_distance


def test_the_torus_has_no_origin(make_problem):
    problem = make_problem(10, period=True)
    shifted = with_geometry(
        problem, point_xy=problem.geometry.point_xy + 0.7, site_xy=problem.geometry.site_xy + 0.7
    )
    one, other = (solve_field(p, tolerance=1e-7) for p in (problem, shifted))
    np.testing.assert_allclose(one.site_arrival_rate, other.site_arrival_rate, rtol=1e-4)


@pytest.mark.parametrize("utilization", [1.6, 4.0])
def test_overload_is_reported_and_spread(make_problem, utilization):
    problem = make_problem(12, n_sites=20, utilization=utilization, type_free=True)
    answer = solve_field(problem)
    assert problem.least_work_share == pytest.approx(utilization)
    assert answer.converged
    assert not answer.stable
    assert answer.unstable_sites.size == 20
    # Nobody can relieve anybody: a backlog grows everywhere alike.
    np.testing.assert_allclose(answer.utilization, utilization, atol=0.02)
    assert answer.ttft_coverage(100.0) == 0.0
    assert answer.unstable_share == pytest.approx(1.0)
    assert answer.mean_ttft == np.inf
    assert answer.ttft_quantile(0.5) == np.inf
    assert "20 sites beyond capacity" in repr(answer)


def test_overload_of_one_neighbourhood_stays_there():
    # Two towns 200 km apart: the far one is no relief at any wait that a backlog shows.
    geometry = Geometry([[0.0, 0.0], [200.0, 0.0]], [[0.1, 0.0], [200.1, 0.0]], 10.0, 2.5, 50.0)
    one = np.ones((1, 1))
    answer = solve_field(
        FieldProblem(geometry, [[6.0], [2.0]], [0, 0], 0.1 * one, one, [4], 0 * one, [1024.0], [0.1])
    )
    assert answer.unstable_sites.tolist() == [0]
    np.testing.assert_allclose(answer.utilization, [1.5, 0.5], rtol=1e-3)
    assert answer.unstable_share == pytest.approx(0.75)
    assert answer.ttft_coverage(60.0) == pytest.approx(0.25, abs=1e-3)


def test_tiers_advertise_the_queue_at_their_mean_rate(make_problem):
    problem = make_problem(13, n_sites=12, utilization=0.5)
    answer = solve_field(problem, scope="tier", tolerance=1e-8)
    for s in np.unique(problem.profile):
        members = problem.profile == s
        rate = answer.site_arrival_rate[members].mean()
        work = (answer.site_arrival_rate / answer.service_rate)[members].mean()
        expected = mean_wait(rate, rate / work, problem.concurrency[s])
        np.testing.assert_allclose(answer.advertised_wait[members], expected, rtol=1e-4)


@pytest.mark.parametrize("policy", ["nearest", "prefix_only"])
def test_policies_that_heed_no_wait_need_no_solving(make_problem, policy):
    problem = make_problem(14, n_sites=9)
    answer = solve_field(problem, policy=policy)
    assert answer.residual == 0.0
    assert (answer.advertised_wait == 0).all()
    wait = mean_wait(answer.site_arrival_rate, answer.service_rate, problem.servers)
    np.testing.assert_allclose(answer.mean_wait, wait, rtol=1e-9)  # the real queue still waits


def test_a_warm_start_ends_where_a_cold_one_does_and_sooner(make_problem):
    problem = make_problem(15, n_sites=30, n_points=1500, utilization=0.7)
    cold = solve_field(problem, tolerance=1e-6)
    warm = solve_field(problem, waits=cold.advertised_wait * 1.02, tolerance=1e-6)
    np.testing.assert_allclose(warm.utilization, cold.utilization, atol=1e-5)
    assert warm.iterations < cold.iterations
    again = solve_field(problem, waits=cold.mean_wait)
    assert again.iterations <= 2


def test_a_warm_start_may_hold_infinite_waits(make_problem):
    problem = make_problem(16, utilization=0.6)
    waits = np.where(np.arange(6) == 2, np.inf, 0.1)
    assert solve_field(problem, waits=waits).converged


def test_evaluating_the_equilibrium_gives_it_back(make_problem):
    problem = make_problem(17, utilization=0.7)
    solved = solve_field(problem)
    given_waits = evaluate(problem, solved.advertised_wait)
    assert not given_waits.solved
    assert given_waits.ttft_coverage(0.8) == solved.ttft_coverage(0.8)


def test_no_demand_means_no_waits(make_problem):
    problem = make_problem(18)
    answer = solve_field(problem.with_rate(np.zeros_like(problem.rate)))
    assert answer.converged
    assert (answer.advertised_wait == 0).all()
    assert np.isnan(answer.ttft_coverage(1.0))


def test_weighted_points_are_split_too(make_problem):
    # Few users, each a point without extent: an equilibrium exists only if a point may be shared.
    problem = make_problem(19, n_sites=8, n_points=25, n_types=1, cell_m=None, utilization=0.8)
    assert solve_field(problem).converged


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"policy": "fastest"}, "`policy` must be one of load_aware, nearest, prefix_only"),
        ({"scope": "cell"}, "`scope` must be one of site, tier"),
        ({"waits": [1.0]}, "`waits` must be nonnegative seconds of shape"),
        ({"waits": [-1.0] * 6}, "`waits` must be nonnegative seconds"),
        ({"waits": [np.nan] * 6}, "`waits` must be nonnegative seconds"),
    ],
)
def test_wrong_arguments_are_one_clear_line(make_problem, arguments, words):
    with pytest.raises(GeoEdgeError, match=words) as caught:
        solve_field(make_problem(), **arguments)
    assert "\n" not in str(caught.value)


def test_wrong_problems_are_one_clear_line(make_problem):
    problem = make_problem()
    with pytest.raises(GeoEdgeError, match=r"`rate` must be finite and nonnegative of shape \(400, 3\)"):
        problem.with_rate(problem.rate[:10])
    with pytest.raises(GeoEdgeError, match="`profile` must be below 3"):
        problem.with_profile(problem.profile + 5)
    with pytest.raises(GeoEdgeError, match="`site_xy` must be finite coordinates"):
        Geometry(np.zeros((1, 2)), np.empty((0, 2)), 0.28, 2.5)
