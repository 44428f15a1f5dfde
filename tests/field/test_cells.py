"""The kernels: choices against the router's, shares against their definition, slopes against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from geoedge.field import FieldProblem, Geometry, evaluate
from geoedge.field.cells import loads, shares
from geoedge.field.queues import NEARLY_FULL, eliminate, queue_curve, queue_inverse
from geoedge.serving.routing import route
from geoedge.theory.queueing import mean_wait


def _costs(problem: FieldProblem, offset: np.ndarray) -> np.ndarray:
    """Cost of every place, site and type, by brute force."""
    geometry = problem.geometry
    gap = np.abs(geometry.point_xy[:, None] - geometry.site_xy[None])
    gap = np.minimum(gap, np.asarray(geometry.period) - gap)
    radio = geometry.delay_coefficient * np.hypot(gap[..., 0], gap[..., 1]) ** geometry.delay_exponent
    return radio[:, :, None] + offset[None]


@pytest.mark.parametrize("period", [False, True])
@pytest.mark.parametrize("n_sites", [1, 7, 150])
@pytest.mark.parametrize("exponent", [2.0, 2.5, 3.3])
def test_owner_is_the_routers_choice(make_problem, period, n_sites, exponent):
    problem = make_problem(n_sites, n_sites=n_sites, period=period, delay_exponent=exponent)
    waits = np.random.default_rng(1).exponential(0.3, n_sites)
    answer, geometry = evaluate(problem, waits), problem.geometry
    for q in range(problem.n_types):
        chosen = route(
            geometry.point_xy, q, geometry.site_xy, answer.offset, 0.28, exponent, geometry.period_km
        )
        np.testing.assert_array_equal(answer.owner[:, q], chosen)


def test_far_sites_are_found_when_the_nearest_ones_are_all_dear(make_problem):
    # With the near sites closed by a huge wait the choice must look past them all.
    problem = make_problem(3, n_sites=150)
    geometry = problem.geometry
    waits = np.where(np.hypot(*(geometry.site_xy - 1.0).T) < 0.9, 500.0, 0.0)
    answer = evaluate(problem, waits)
    costs = _costs(problem, answer.offset)
    np.testing.assert_array_equal(answer.owner, costs.argmin(axis=1))


def test_ties_go_to_the_lowest_index_like_the_routers():
    geometry = Geometry([[0.5, 0.5], [0.0, 0.0]], [[1.0, 0.5], [0.0, 0.5], [1.0, 0.5]], 0.28, 2.5)
    owner = shares(geometry.blocks, geometry.span, np.zeros((3, 1)))[0]
    assert (
        owner[:, 0].tolist()
        == route([[0.5, 0.5], [0.0, 0.0]], 0, geometry.site_xy, np.zeros((3, 1)), 0.28, 2.5).tolist()
    )
    assert owner[0, 0] == 0


def test_shares_follow_their_definition(make_problem):
    problem = make_problem(5, n_sites=40, n_points=300, cell_m=400.0)
    waits = np.random.default_rng(2).exponential(0.1, 40)
    entries = evaluate(problem, waits).entries
    excess = _costs(problem, evaluate(problem, waits).offset)
    excess -= excess.min(axis=1, keepdims=True)
    span = problem.geometry.span
    expected = np.zeros_like(excess)
    for place, kind in np.ndindex(300, problem.n_types):
        # the share at which the level, up to which costs are filled, makes the shares add up to one
        over, most = excess[place, :, kind], span[place]
        level = brentq(lambda y, over=over: np.maximum(y - over, 0.0).sum() - most, 0.0, 2.0 * most)  # noqa: B023
        expected[place, :, kind] = np.maximum(level - over, 0.0) / most
    found = np.zeros_like(expected)
    found[entries.place, entries.site, entries.type] = entries.share
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (expected > 0).sum(axis=1).max() > 2  # the case is not trivial


def test_a_cell_across_a_boundary_is_split_like_its_area():
    # Two sites 1 km apart, cells of 50 m on the line between them: the boundary is x = 0.5 km.
    x = np.linspace(0.47, 0.53, 13)
    geometry = Geometry(np.column_stack([x, np.zeros(13)]), [[0.0, 0.0], [1.0, 0.0]], 0.28, 2.5, 50.0)
    _, row, site, share, _ = shares(geometry.blocks, geometry.span, np.zeros((2, 1)))
    left = np.bincount(row, share * (site == 0), 13)
    exact = np.clip((0.5 - (x - 0.025)) / 0.05, 0.0, 1.0)
    np.testing.assert_allclose(left, exact, atol=0.03)
    np.testing.assert_allclose(left + left[::-1], 1.0, atol=1e-9)


@pytest.mark.parametrize("groups", ["site", "tier"])
def test_loads_are_the_shares_and_slopes_their_differences(make_problem, groups):
    problem = make_problem(7, n_sites=25, n_points=600, cell_m=200.0)
    geometry, occupancy = problem.geometry, problem.occupancy_time[problem.profile]
    group = np.arange(25) if groups == "site" else problem.profile
    count = int(group.max()) + 1
    wait = np.random.default_rng(3).exponential(0.05, count)

    def at(wait: np.ndarray) -> tuple[np.ndarray, ...]:
        offset = problem.prefill_time[problem.profile] + wait[group][:, None]
        site_rate, pair, *slopes = loads(
            geometry.blocks, problem.rate, geometry.span, offset, occupancy, group, count, True
        )
        assert len(np.unique(pair)) == len(pair)
        dense = np.zeros((2, count * count))
        dense[:, pair] = slopes
        return site_rate, *dense.reshape(2, count, count)

    site_rate, rate_slope, work_slope = at(wait)
    _, row, site, share, _ = shares(
        geometry.blocks, geometry.span, problem.prefill_time[problem.profile] + wait[group][:, None]
    )
    expected = np.zeros((25, problem.n_types))
    np.add.at(expected, (site, row % problem.n_types), share * problem.rate.ravel()[row])
    np.testing.assert_allclose(site_rate, expected, rtol=1e-12)
    step = 1e-7
    for j in range(count):
        nudge = step * (np.arange(count) == j)
        change = (at(wait + nudge)[0] - at(wait - nudge)[0]) / (2 * step)
        np.testing.assert_allclose(np.bincount(group, change.sum(axis=1)), rate_slope[:, j], atol=1e-4)
        work = np.bincount(group, (change * occupancy).sum(axis=1))
        np.testing.assert_allclose(work, work_slope[:, j], atol=3e-4)
    np.testing.assert_allclose(rate_slope.sum(axis=0), 0.0, atol=1e-12)  # nobody is lost
    np.testing.assert_allclose(
        rate_slope.sum(axis=1), 0.0, atol=1e-12
    )  # raising all waits alike changes nothing


def test_queue_curve_is_the_mean_wait_and_its_inverse_inverts():
    servers = np.repeat([1, 2, 5, 18, 80], 12)
    load = servers * np.tile(np.linspace(0.02, 0.998, 12), 5)
    occupancy = np.full(60, 2.5)
    wait, by_load, by_occupancy = queue_curve(load, servers, occupancy)
    np.testing.assert_allclose(wait, mean_wait(load / occupancy, 1 / occupancy, servers), rtol=1e-10)
    np.testing.assert_allclose(by_occupancy, wait / occupancy, rtol=1e-12)
    step = 1e-6 * load
    rise = queue_curve(load + step, servers, occupancy)[0] - queue_curve(load - step, servers, occupancy)[0]
    np.testing.assert_allclose(by_load, rise / (2 * step), rtol=1e-4)
    shown = wait > 1e-250
    back = queue_inverse(wait, servers, occupancy, np.zeros(60))
    np.testing.assert_allclose(back[shown], load[shown], rtol=1e-9)


def test_queue_curve_goes_on_beyond_capacity():
    servers, occupancy = np.full(4, 5), np.full(4, 2.0)
    load = 5.0 * np.array([NEARLY_FULL, NEARLY_FULL + 1e-9, 1.2, 3.0])
    wait, by_load, _ = queue_curve(load, servers, occupancy)
    assert wait[1] == pytest.approx(wait[0], rel=1e-4)
    assert (np.diff(wait) > 0).all()
    assert by_load[3] == by_load[2]
    np.testing.assert_allclose(queue_inverse(wait, servers, occupancy, np.zeros(4)), load, rtol=1e-9)


def test_idle_queues_have_no_wait():
    wait, by_load, _ = queue_curve(np.zeros(2), np.array([1, 4]), np.full(2, 3.0))
    assert wait.tolist() == [0.0, 0.0]
    assert by_load.tolist() == [3.0, 0.0]  # M/M/1: the wait rises at once
    assert queue_inverse(np.zeros(2), np.array([1, 4]), np.full(2, 3.0), np.ones(2)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_elimination_solves(n):
    rng = np.random.default_rng(n)
    matrix, target = rng.normal(size=(n, n)), rng.normal(size=n)
    matrix[0, 0] = 0.0 if n > 1 else 2.0  # the first row is no pivot
    np.testing.assert_allclose(matrix @ eliminate(matrix.copy(), target.copy()), target, atol=1e-9)
