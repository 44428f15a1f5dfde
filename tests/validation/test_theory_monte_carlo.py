"""Theory against requests drawn one by one, over random networks, policies and loads up to 0.9 of capacity.

How much agreement is enough. More than a thousand numbers are compared, so that differences beyond three standard errors
come by chance now and then (one in 370). Three rules are therefore kept apart:

1. The rows that matter most, coverage in the paper's scenario, must each lie within 3 standard errors.
2. Over all random networks no difference may be larger than chance allows for the largest of so many (Bonferroni at
   1e-4, which needs no independence).
3. One coverage from each sample, samples being independent, must spread as standard errors say: the sum of squares
   is a chi-square, and must be neither too large (theory is off) nor too small (errors are overstated), at 1e-4.

Standard errors are those of theory's own probabilities where a share is compared, so that a share of zero is judged
too. Seeds are fixed: a run that passes once passes always. That the rules would notice an error is tested as well.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from geoedge.serving import simulate_waits
from geoedge.streams import stream
from geoedge.theory import (
    POLICIES,
    TheoryAnswer,
    TieredNetwork,
    erlang_c,
    mean_and_error,
    mean_wait,
    sample_requests,
    solve,
    solve_equilibrium,
    wait_cdf,
)

SAMPLES = 200_000
NETWORKS = 20  # each number of tiers with each number of types
FALSE_ALARM = 1e-4


def prefill(tokens):
    return 1.6e-4 * tokens + 1.8e-8 * tokens**2


def network(density, concurrency, probability, length, hit, decode, coefficient, exponent) -> TieredNetwork:
    """Return a network with the baseline's prefill curve, at no load."""
    length, hit = np.asarray(length), np.asarray(hit)
    residual = prefill(length - hit)
    times = (residual, residual + decode, 0.0, coefficient, exponent)
    return TieredNetwork(density, concurrency, probability, *times, hit, length, prefill(length))


def paper(load: float) -> TieredNetwork:
    """Return the scenario that reproduces the paper's figures."""
    mix, hit = 1.2 * np.array([0.45, 0.35, 0.2]), [[0, 0], [512, 512], [1024, 2048]]
    return network(mix, [18, 14, 6], [0.4, 0.6], [1024, 4096], hit, 0.4, 0.28, 2.5).with_intensity(load)


def capacity(plain: TieredNetwork) -> float:
    """Return the intensity from which no load-aware point is stable."""
    beyond = solve_equilibrium(plain.with_intensity(plain.necessary_intensity))
    assert beyond.critical_intensity is not None
    return beyond.critical_intensity


def random_network(seed: int) -> TieredNetwork:
    """Return a network of 1 to 5 tiers and 1 to 4 types, filled to a tenth to nine tenths of its capacity."""
    rng = stream(seed, "theory against Monte Carlo")
    tiers, types = 1 + seed % 5, 1 + seed % 4
    length = np.sort(rng.integers(300, 8000, types))
    hit = np.minimum(rng.integers(0, 4000, (tiers, types)) * (rng.random((tiers, types)) < 0.7), length)
    plain = network(
        rng.uniform(0.1, 2.0, tiers),
        rng.integers(1, 25, tiers),
        rng.dirichlet(np.full(types, 2.0)),
        length,
        hit,
        10.0 ** rng.uniform(-0.7, 0.5),
        10.0 ** rng.uniform(-1.2, 0.0),
        rng.uniform(1.5, 5.0),
    )
    return plain.with_intensity(float(np.linspace(0.1, 0.9, NETWORKS)[seed]) * capacity(plain))


def score(found: float, expected: float, error: float) -> float:
    """Return a difference in standard errors; rounding counts as none."""
    return 0.0 if abs(found - expected) <= 1e-9 * max(abs(expected), 1e-3) else (found - expected) / error


def share_score(hits: float, total: int, expected: float) -> float:
    """Return how unlikely a binomial count is, as a number of standard errors, exact for rare events too."""
    expected = min(max(expected, 0.0), 1.0)
    low, high = stats.binom.cdf(hits, total, expected), stats.binom.sf(hits - 1, total, expected)
    # a probability that rounding keeps from 0 or 1 is one
    if min(low, high) >= 0.5 or min(expected, 1.0 - expected) * total < 1e-6 >= abs(hits / total - expected):
        return 0.0
    return float(stats.norm.isf(min(low, high)) * np.sign(hits - total * expected))


def scores(answer: TheoryAnswer, seed: str, other: TheoryAnswer | None = None) -> dict[str, float]:
    """Return differences in standard errors between an answer and a sample of its network, or of another one."""
    point, mix = (other or answer).equilibrium, answer.network.type_probability
    sample = sample_requests(point, SAMPLES, stream(2026, "scores", seed))
    found: dict[str, float] = {}
    ttft = sample.ttft
    for probability in (0.1, 0.5, 0.9, 0.99):
        target = answer.ttft_quantile(probability)
        if np.isfinite(target):  # a quantile inverts the coverage: both are told by the share within it
            found[f"quantile {probability}"] = share_score((ttft <= target).sum(), SAMPLES, probability)
    served = ttft[np.isfinite(ttft)]  # none where every tier is overloaded
    for target in np.quantile(served, [0.3, 0.02, 0.75]) if served.size else ():
        expected = float(answer.ttft_coverage(target))
        found[f"coverage {target:.4g} s"] = share_score((ttft <= target).sum(), SAMPLES, expected)
    hits = np.zeros(answer.association.shape, dtype=np.int64)
    np.add.at(hits, (sample.tier, sample.request_type), 1)
    mean, error = sample.serving_distance(*hits.shape)
    expected = answer.serving_distance
    for s, q in np.ndindex(hits.shape):
        share = float(answer.association[s, q])
        found[f"association {s},{q}"] = share_score(hits[s, q], int(hits[:, q].sum()), share)
        if share * mix[q] * SAMPLES > 1000:
            found[f"distance {s},{q}"] = score(mean[s, q], expected[s, q], error[s, q])
    found["distance"] = score(*means(sample.mean(sample.distance), answer.mean_serving_distance))
    for by in ("tokens", "prefill_time"):
        ratio = sample.offloading_ratio(answer.network, by)
        found[f"offloading by {by}"] = score(*means(ratio, answer.offloading_ratio(by)))
    if answer.stable and point.stable:
        found["mean TTFT"] = score(*means(sample.mean(ttft), answer.mean_ttft))
    return found


def means(sampled: tuple[float, float], expected: float) -> tuple[float, float, float]:
    """Order a sampled mean, what is expected and the standard error."""
    return sampled[0], expected, sampled[1]


@pytest.fixture(scope="module")
def differences() -> dict[tuple[int, str], dict[str, float]]:
    """Return all differences of all random networks under all policies."""
    return {
        (seed, policy): scores(solve(random_network(seed), policy), f"{seed}/{policy}")
        for seed in range(NETWORKS)
        for policy in POLICIES
    }


def largest_by_chance(count: int) -> float:
    """Return the number of standard errors that the largest of so many differences exceeds once in 10,000 times."""
    return float(stats.norm.isf(0.5 * FALSE_ALARM / count))


def spread_is_chance(values: list[float]) -> bool:
    """Return whether independent differences spread as their standard errors say."""
    total = float(np.square(values).sum())
    low, high = stats.chi2.ppf([0.5 * FALSE_ALARM, 1.0 - 0.5 * FALSE_ALARM], len(values))
    return bool(low < total < high)


def test_the_networks_are_what_they_should_be() -> None:
    every = [random_network(seed) for seed in range(NETWORKS)]
    assert {(n.tiers, n.types) for n in every} == {(s, q) for s in range(1, 6) for q in range(1, 5)}
    assert min(n.delay_exponent for n in every) < 2.0 < 4.0 < max(n.delay_exponent for n in every)
    assert max(n.request_intensity / capacity(n) for n in every) == pytest.approx(0.9, rel=1e-6)
    assert all(solve(n).stable for n in every)
    assert not all(solve(n, policy).stable for n in every for policy in ("prefix_only", "nearest"))


def test_no_difference_is_larger_than_the_largest_by_chance(differences) -> None:
    flat = {(*key, name): z for key, row in differences.items() for name, z in row.items()}
    assert len(flat) > 1000
    worst = max(flat, key=lambda key: abs(flat[key]))
    assert abs(flat[worst]) < largest_by_chance(len(flat)), (worst, flat[worst])


def test_differences_spread_as_their_standard_errors_say(differences) -> None:
    firsts = [
        z for row in differences.values() for z in [z for name, z in row.items() if "coverage" in name][:1]
    ]
    assert len(firsts) > 0.9 * NETWORKS * len(POLICIES)  # all but those where every tier is overloaded
    assert spread_is_chance(firsts)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("load", [1.0, 3.0, 4.0])
def test_coverage_in_the_papers_scenario(load: float, policy: str) -> None:
    answer = solve(paper(load), policy)
    sample = sample_requests(answer.equilibrium, SAMPLES, stream(4, "headline", policy, str(load)))
    for target in (0.3, 0.8, 1.5):
        expected = float(answer.ttft_coverage(target))
        error = np.sqrt(expected * (1.0 - expected) / SAMPLES)
        assert abs(sample.ttft_coverage(target)[0] - expected) < 3.0 * error


CHANGES = {
    "radio 5 % slower": lambda n: replace(n, delay_coefficient=1.05 * n.delay_coefficient),
    "2 % more sites": lambda n: n.scaled(1.02),
    "2 % more requests": lambda n: n.with_intensity(1.02 * n.request_intensity),
    "occupancy 2 % longer": lambda n: replace(n, occupancy_time=1.02 * n.occupancy_time),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_rules_would_notice(change: str) -> None:
    answer, other = solve(paper(3.0)), solve(CHANGES[change](paper(3.0)))
    found = scores(answer, change, other)
    assert max(abs(z) for z in found.values()) > largest_by_chance(1300)


def test_figure_4() -> None:
    """Association at the baseline: errors of 200,000 requests of each type, and the paper's 1e-3 with more of them.

    A share of 0.43 of 200,000 requests has a standard error of 1.1e-3: that its figure's largest of six errors
    stays below 1e-3 is luck. The mean of 25 such samples is within 1e-3 by four of its own standard errors.
    """
    answer, batches = solve(paper(3.0)), 25
    lone = [replace(answer.network, type_probability=np.eye(2)[q]) for q in range(2)]
    share = np.empty((batches, 3, 2))
    for q in range(2):
        point = replace(answer.equilibrium, network=lone[q])
        for k in range(batches):
            tier = sample_requests(point, SAMPLES, stream(k, "figure 4", q)).tier
            share[k, :, q] = np.bincount(tier, minlength=3) / SAMPLES
    exact = answer.association
    error = np.sqrt(exact * (1.0 - exact) / SAMPLES)
    assert (np.abs(share - exact) < largest_by_chance(share.size) * error).all()
    chi = ((share - exact) ** 2 / exact).sum(axis=1) * SAMPLES  # three tiers: two degrees of freedom each
    assert stats.chi2.sf(chi.sum(), 2 * chi.size) > FALSE_ALARM
    assert np.abs(share.mean(axis=0) - exact).max() < 1e-3
    assert np.abs(share[0] - exact).max() < 3.5e-3


def test_loads_that_the_sampled_choice_attracts_are_those_of_the_fixed_point() -> None:
    """The waits that theory advertises make sampled requests load every tier as much as these waits need."""
    point = solve(paper(4.0)).equilibrium
    sample = sample_requests(point, SAMPLES, stream(9, "fixed point"))
    net, work = point.network, np.zeros((3, SAMPLES))
    rows = np.arange(SAMPLES)
    work[sample.tier, rows] = net.occupancy_time[sample.tier, sample.request_type]
    for s in range(3):
        mean, error = mean_and_error(net.request_intensity * work[s] / net.tier_density[s])
        assert abs(mean - point.utilization[s] * net.concurrency[s]) < 4.0 * error
        wait, error = mean_and_error(sample.wait[sample.tier == s])
        assert abs(wait - point.advertised_wait[s]) < 4.0 * error + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "utilization"), [(9, 0.82), (1, 0.6), (18, 0.9)])
def test_figure_5(servers: int, utilization: float) -> None:
    """Eq. (20) against the queue by events, M/M/9 at 0.82 first: batch means, one bound for all points at once."""
    mu = 1.0 / 0.9
    rate = utilization * servers * mu
    waits = simulate_waits(rate, mu, servers, 4_000_000, stream(5, "figure 5", servers))
    drain = servers * mu - rate
    times = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0]) / drain
    bound = stats.t.isf(0.5 * 1e-3 / (times.size + 1), 99)
    for time in times:
        share, error = mean_and_error(waits <= time, batches=100)
        expected = float(wait_cdf(time, rate, mu, servers))
        assert abs(share - expected) < bound * error
        assert error < 0.01
    mean, error = mean_and_error(waits, batches=100)
    assert abs(mean - float(mean_wait(rate, mu, servers))) < bound * error
    assert error < 0.05 * mean
    assert float(wait_cdf(0.0, rate, mu, servers)) == pytest.approx(1.0 - float(erlang_c(rate / mu, servers)))


@pytest.mark.slow
def test_coverage_with_waits_by_events() -> None:
    """Both twins together: sampled places, simulated queues, no formula but the fixed point's loads."""
    answer = solve(paper(3.0))
    point, runs = answer.equilibrium, []
    for run in range(20):
        rng = stream(run, "places and queues")
        pool = [
            simulate_waits(point.site_arrival_rate[s], point.service_rate[s], c, 100_000, rng)
            for s, c in enumerate(point.network.concurrency)
        ]

        def draw(tier: int, count: int, rng: np.random.Generator, pool=pool) -> np.ndarray:
            return rng.choice(pool[tier], count)

        sample = sample_requests(point, 100_000, rng, draw_waits=draw)
        runs.append([sample.ttft_coverage(tau)[0] for tau in (0.4, 0.8, 1.5)] + [sample.ttft.mean()])
    expected = [*answer.ttft_coverage([0.4, 0.8, 1.5]), answer.mean_ttft]
    bound = stats.t.isf(0.5 * 1e-3 / len(expected), len(runs) - 1)
    for values, value in zip(np.array(runs).T, expected, strict=True):
        mean, error = mean_and_error(values)
        assert abs(mean - value) < bound * error
        assert error < 0.01 * value
