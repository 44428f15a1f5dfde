"""Theory against 200,000 independent requests, drawn without any of its integrals."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.streams import stream
from geoedge.theory import nearest_distances, sample_requests, solve
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


def test_too_few_samples(baseline) -> None:
    with pytest.raises(GeoEdgeError, match="must be at least 2"):
        sample_requests(solve(baseline(3.0)).equilibrium, 1, np.random.default_rng(1))
