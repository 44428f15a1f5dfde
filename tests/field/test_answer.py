"""The questions a field answers, each recomputed from its definition."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.field import FieldAnswer, solve_field
from geoedge.theory.queueing import wait_cdf


@pytest.fixture(scope="module")
def answer(make_problem) -> FieldAnswer:
    return solve_field(make_problem(3, n_sites=10, n_points=500, utilization=0.75))


def test_site_tables_follow_their_equations(answer):
    problem = answer.problem
    occupancy = problem.occupancy_time[problem.profile]
    work = (answer.site_rate * occupancy).sum(axis=1)
    np.testing.assert_allclose(answer.served_mix.sum(axis=1), 1.0)
    np.testing.assert_allclose(answer.site_arrival_rate / answer.service_rate, work, rtol=1e-12)
    np.testing.assert_allclose(answer.utilization, work / problem.servers, rtol=1e-12)
    assert answer.mean_utilization == pytest.approx(work.sum() / problem.servers.sum())
    prefill = (answer.site_rate * problem.prefill_time[problem.profile]).sum(axis=1)
    np.testing.assert_allclose(answer.prefill_load, prefill)


def test_coverage_is_the_queue_of_each_entry(answer):
    problem, entries = answer.problem, answer.entries
    prefill = problem.prefill_time[problem.profile[entries.site], entries.type]
    within = wait_cdf(
        0.9 - entries.radio - prefill,
        answer.site_arrival_rate[entries.site],
        answer.service_rate[entries.site],
        problem.servers[entries.site],
    )
    rate = entries.share * problem.rate[entries.place, entries.type]
    assert answer.ttft_coverage(0.9) == pytest.approx(rate @ within / rate.sum(), rel=1e-12)


def test_sites_and_places_average_to_the_whole(answer):
    whole = answer.ttft_coverage(0.9)
    by_site = answer.site_coverage(0.9) @ answer.site_arrival_rate / answer.site_arrival_rate.sum()
    assert by_site == pytest.approx(whole)
    weights = answer.problem.rate.sum(axis=1)
    assert np.average(answer.local_coverage(0.9), weights=weights) == pytest.approx(whole)
    by_type = (answer.local_coverage_by_type(0.9) * answer.problem.rate).sum() / answer.problem.rate.sum()
    assert by_type == pytest.approx(whole)


def test_places_without_demand_have_no_coverage_of_their_own(answer):
    rate = answer.problem.rate.copy()
    rate[7] = 0.0
    quiet = solve_field(answer.problem.with_rate(rate))
    assert np.isnan(quiet.local_coverage(1.0)[7])
    assert np.isfinite(quiet.local_coverage_by_type(1.0)[7]).all()  # what a request there would get


def test_quantile_inverts_coverage(answer):
    for probability in (0.1, 0.5, 0.9, 0.99):
        tau = answer.ttft_quantile(probability)
        assert answer.ttft_coverage(tau) >= probability
        assert answer.ttft_coverage(tau * (1 - 1e-6)) < probability + 1e-4
    assert answer.ttft_quantile(0.0) == pytest.approx(0.0, abs=1e-6)


def test_mean_is_the_integral_of_misses_and_the_sum_of_parts(answer):
    tau = np.linspace(0.0, 60.0, 12_001)
    misses = np.array([1.0 - answer.ttft_coverage(t) for t in tau])
    assert answer.mean_ttft == pytest.approx(np.trapezoid(misses, tau), rel=2e-3)
    assert answer.mean_ttft == pytest.approx(sum(answer.parts().values()))
    assert set(answer.parts()) == {"radio", "wait", "prefill"}


def test_association_and_offloading(answer):
    problem = answer.problem
    np.testing.assert_allclose(answer.association.sum(axis=0), 1.0)
    mix = problem.rate.sum(axis=0) / problem.rate.sum()
    np.testing.assert_allclose(answer.profile_share, answer.association @ mix)
    tokens = (answer.association * problem.hit_tokens).sum(axis=0) @ mix / (problem.prompt_tokens @ mix)
    assert answer.offloading_ratio() == pytest.approx(tokens)
    saved = problem.full_prefill_time - problem.prefill_time
    time = (answer.association * saved).sum(axis=0) @ mix / (problem.full_prefill_time @ mix)
    assert answer.offloading_ratio("prefill_time") == pytest.approx(time)
    with pytest.raises(GeoEdgeError, match="`by` must be"):
        answer.offloading_ratio("bytes")


def test_distance_agrees_with_the_radio_delay(answer):
    np.testing.assert_allclose(
        answer.serving_distance, answer.problem.geometry.distance(answer.entries.radio), rtol=1e-9, atol=1e-9
    )
    assert 0.1 < answer.mean_serving_distance < 1.0


def test_quantile_refuses_certainty(answer):
    with pytest.raises(GeoEdgeError, match=r"`probability` must lie in \[0, 1\)"):
        answer.ttft_quantile(1.0)
