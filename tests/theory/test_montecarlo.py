"""Theory against 200,000 independent requests, drawn without any of its integrals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from geoedge.errors import GeoEdgeError
from geoedge.streams import stream
from geoedge.theory import mean_and_error, nearest_distances, sample_requests, solve
from geoedge.theory.equilibrium import POLICIES

SAMPLES = 200_000


def within(sampled: tuple[float, float], exact: float, errors: float = 4.0) -> None:
    """Assert that a sampled mean lies within some standard errors of the exact one."""
    value, error = sampled
    assert abs(value - exact) <= errors * max(error, 0.5 / SAMPLES)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("load", [1.0, 3.0, 5.0])
def test_baseline(baseline, load: float, policy: str) -> None:
    answer = solve(baseline(load), policy)
    sample = sample_requests(answer.equilibrium, SAMPLES, stream(7, "baseline", policy, str(load)))
    for tau in (0.2, 0.5, 0.8, 1.2, 2.0):
        within(sample.ttft_coverage(tau), float(answer.ttft_coverage(tau)))
    within(sample.mean(sample.distance), answer.mean_serving_distance)
    within(sample.mean(sample.radio), answer.parts()["radio"])
    within(sample.mean(sample.prefill), answer.parts()["prefill"])
    if answer.stable:
        within(sample.mean(sample.wait), answer.parts()["wait"])
    share, error = sample.association(3, 2)
    assert (np.abs(share - answer.association) <= 4.0 * error + 1e-5).all()


@pytest.mark.parametrize("seed", range(6))
def test_random_networks(random_network, seed: int) -> None:
    answer = solve(random_network(seed, 0.75))
    sample = sample_requests(answer.equilibrium, SAMPLES, stream(seed, "random networks"))
    for tau in np.quantile(sample.ttft, [0.1, 0.5, 0.9]):
        within(sample.ttft_coverage(float(tau)), float(answer.ttft_coverage(tau)))
    within(sample.mean(sample.ttft), answer.mean_ttft)
    share, error = sample.association(answer.network.tiers, answer.network.types)
    assert (np.abs(share - answer.association) <= 4.5 * error + 1e-4).all()


def test_nearest_distances_have_the_right_law() -> None:
    distance = nearest_distances(np.array([0.5, 0.0, 2.0]), SAMPLES, np.random.default_rng(1))
    assert np.isinf(distance[:, 1]).all()
    for column, density in ((0, 0.5), (2, 2.0)):
        beyond = (distance[:, column] > 0.6).mean()
        expected = np.exp(-np.pi * density * 0.36)
        assert abs(beyond - expected) < 4.0 * np.sqrt(expected * (1 - expected) / SAMPLES)


def test_same_stream_same_sample(baseline) -> None:
    point = solve(baseline(3.0)).equilibrium
    one, two = (sample_requests(point, 100, stream(3, "twice")) for _ in range(2))
    np.testing.assert_array_equal(one.ttft, two.ttft)


def test_a_seed_will_do_for_a_generator(baseline) -> None:
    point = solve(baseline(3.0)).equilibrium
    one, two = sample_requests(point, 100, 3), sample_requests(point, 100, np.random.default_rng(3))
    np.testing.assert_array_equal(one.ttft, two.ttft)
    np.testing.assert_array_equal(
        nearest_distances([0.5, 2.0], 10, 3),
        nearest_distances(np.array([0.5, 2.0]), 10, np.random.default_rng(3)),
    )


def test_too_few_samples(baseline) -> None:
    with pytest.raises(GeoEdgeError, match="must be at least 2"):
        sample_requests(solve(baseline(3.0)).equilibrium, 1, np.random.default_rng(1))


def test_the_error_of_a_series_is_that_of_its_batches() -> None:
    rng = np.random.default_rng(5)
    independent = rng.normal(2.0, 3.0, 100_000)
    mean, error = mean_and_error(independent)
    assert mean == pytest.approx(independent.mean())
    assert error == pytest.approx(3.0 / np.sqrt(100_000), rel=0.02)
    # an autoregressive series with factor 0.9: the error is √19 times that of as many independent values
    series = lfilter([1.0], [1.0, -0.9], rng.normal(size=400_000))
    naive, batched = mean_and_error(series)[1], mean_and_error(series, batches=200)[1]
    assert batched / naive == pytest.approx(np.sqrt(19.0), rel=0.2)
    assert mean_and_error([1.0, np.inf]) == (np.inf, np.inf)


def test_the_interval_of_a_quantile_holds_what_it_promises(baseline) -> None:
    answer = solve(baseline(3.0))
    exact, held = {p: answer.ttft_quantile(p) for p in (0.5, 0.95)}, 0
    for run in range(100):
        sample = sample_requests(answer.equilibrium, 400, stream(run, "quantiles"))
        for probability, value in exact.items():
            middle, low, high = sample.ttft_quantile(probability, confidence=0.9)
            assert low <= middle <= high
            held += low <= value <= high
    assert 168 <= held <= 196  # of 200 at 0.90 to 0.93, four standard deviations to either side


def test_few_samples_do_not_enclose_the_far_tail(baseline) -> None:
    sample = sample_requests(solve(baseline(3.0)).equilibrium, 20, stream(1, "few"))
    assert sample.ttft_quantile(0.99)[2] == np.inf


def test_means_given_tier_and_type(baseline) -> None:
    answer = solve(baseline(3.0))
    sample = sample_requests(answer.equilibrium, SAMPLES, stream(2, "by tier and type"))
    mean, error = sample.serving_distance(3, 2)
    assert (np.abs(mean - answer.serving_distance) <= 4.0 * error).all()
    for by in ("tokens", "prefill_time"):
        within(sample.offloading_ratio(answer.network, by), answer.offloading_ratio(by))
    few = sample_requests(answer.equilibrium, 2, stream(2, "two requests"))
    assert np.isnan(few.serving_distance(3, 2)[0]).any()


def test_waits_of_a_given_sampler(baseline) -> None:
    point = solve(baseline(3.0)).equilibrium
    sample = sample_requests(
        point, 1000, np.random.default_rng(1), draw_waits=lambda tier, count, rng: np.full(count, 0.1 * tier)
    )
    np.testing.assert_array_equal(sample.wait, 0.1 * sample.tier)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s, n: s.ttft_quantile(1.0), "`probability` is 1.0, but must be above 0 and below 1"),
        (lambda s, n: s.ttft_quantile(0.5, 0.0), "`confidence` is 0.0"),
        (lambda s, n: s.offloading_ratio(n, "bytes"), "`by` is 'bytes'"),
        (lambda s, n: mean_and_error([1.0]), r"`value` of shape \(1,\) in 1 parts"),
        (lambda s, n: mean_and_error(np.ones(10), batches=11), "in 11 parts"),
        (lambda s, n: mean_and_error(np.ones((3, 3))), r"shape \(3, 3\)"),
    ],
)
def test_bad_input_is_one_line(baseline, call, words: str) -> None:
    point = solve(baseline(3.0)).equilibrium
    sample = sample_requests(point, 10, np.random.default_rng(1))
    with pytest.raises(GeoEdgeError, match=words) as caught:
        call(sample, point.network)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("waits", [[0.1, 0.2], [np.nan] * 10, [-1.0] * 10])
def test_a_sampler_that_gives_no_waits(baseline, waits) -> None:
    point = solve(baseline(3.0, placement=(1.0, 0.0, 0.0))).equilibrium
    with pytest.raises(GeoEdgeError, match=r"`draw_waits` gave .* must give 10 waits >= 0 s"):
        sample_requests(point, 10, np.random.default_rng(1), draw_waits=lambda tier, count, rng: waits)
