"""Coverage, its inverse and its means: identities, monotony, limits, and answers for overloaded networks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from geoedge.errors import GeoEdgeError
from geoedge.theory import ErlangC, TheoryAnswer, TieredNetwork, erlang_c, mean_wait, solve, wait_cdf
from geoedge.theory.equilibrium import POLICIES

from_seed = st.integers(0, 10_000)
policies = st.sampled_from(POLICIES)


def single(load: float = 3.0) -> TieredNetwork:
    """Return one tier and one type with α = 2."""
    return TieredNetwork([0.7], [4], [1.0], [[0.2]], [[0.7]], load, 0.5, 2.0, [[100]], [800], [0.25])


def test_one_tier_in_closed_form() -> None:
    # radio is exponential with rate πλ/ξ, the wait is 0 or exponential: their sum has elementary terms
    answer = solve(single())
    rate, mu = 3.0 / 0.7, 1.0 / 0.7
    drain, near = 4 * mu - rate, np.pi * 0.7 / 0.5
    waits = float(mean_wait(rate, mu, 4)) * drain
    for spare in (0.05, 0.3, 1.0, 4.0):
        late = waits * near / (near - drain) * (np.exp(-drain * spare) - np.exp(-near * spare))
        expected = 1.0 - np.exp(-near * spare) - late
        assert float(answer.ttft_coverage(0.2 + spare)) == pytest.approx(expected, abs=1e-11)
        assert float(answer.queue_free_coverage(0.2 + spare)) == pytest.approx(
            1 - np.exp(-near * spare), abs=1e-11
        )
    assert answer.parts() == pytest.approx(
        {"radio": 0.5 / (np.pi * 0.7), "wait": float(mean_wait(rate, mu, 4)), "prefill": 0.2}
    )


@given(from_seed, policies, st.lists(st.floats(0.0, 8.0), min_size=2, max_size=4))
@settings(max_examples=30, deadline=None)
def test_coverage_rises_from_nothing_to_everything(
    random_network, seed: int, policy: str, taus: list[float]
) -> None:
    answer = solve(random_network(seed), policy)
    targets = np.sort(taus)
    coverage = answer.ttft_coverage(targets)
    assert (np.diff(coverage) >= -1e-10).all()
    assert (coverage <= answer.queue_free_coverage(targets) + 1e-10).all()
    assert float(answer.ttft_coverage(0.0)) == 0.0
    assert float(answer.ttft_coverage(-1.0)) == 0.0
    assert float(answer.ttft_coverage(1e-310)) == 0.0  # no panel so narrow that its nodes underflow
    served = float(answer.profile_share @ ~answer.equilibrium.overloaded)
    assert float(answer.ttft_coverage(np.inf)) == pytest.approx(served, abs=1e-10)
    assert float(answer.queue_free_coverage(1e6)) == pytest.approx(1.0, abs=1e-10)


@given(from_seed, policies, st.floats(0.02, 0.98))
@settings(max_examples=25, deadline=None)
def test_quantile_inverts_coverage(random_network, seed: int, policy: str, probability: float) -> None:
    answer = solve(random_network(seed, 0.6), policy)
    quantile = answer.ttft_quantile(probability)
    if np.isfinite(quantile):
        assert float(answer.ttft_coverage(quantile)) >= probability - 1e-10
        assert float(answer.ttft_coverage(quantile * (1 - 1e-6))) <= probability + 1e-10
    else:
        assert float(answer.ttft_coverage(np.inf)) <= probability


@pytest.mark.parametrize("policy", POLICIES)
def test_mean_is_the_integral_of_what_is_late(baseline, policy: str) -> None:
    answer = solve(baseline(3.0), policy)
    late, _ = quad(lambda t: 1.0 - float(answer.ttft_coverage(t)), 0.0, 12.0, limit=400, epsabs=1e-9)
    assert answer.mean_ttft == pytest.approx(late, abs=1e-6)


@given(from_seed)
@settings(max_examples=15, deadline=None)
def test_mean_cost_is_the_mean_of_the_least_cost(random_network, seed: int) -> None:
    # Eq. (42) at the load-aware point: Σ p (β_min + ∫ e^{−Λ}), an integral that no tier enters by itself
    network = random_network(seed, 0.8)
    answer = solve(network)
    node, weight = np.polynomial.legendre.leggauss(60)
    u, half = 0.5 * (node + 1.0), 0.5 * weight
    expected = 0.0
    for q, p in enumerate(network.type_probability):
        offset = answer.equilibrium.cost_offset[:, q]

        def alive(y: np.ndarray, offset: np.ndarray = offset) -> np.ndarray:
            reach = np.maximum(y[:, None] - offset, 0.0) / network.delay_coefficient
            return np.exp(-np.pi * (reach ** (2 / network.delay_exponent) @ network.tier_density))

        low = offset.min()
        top = low + 50.0 ** (network.delay_exponent / 2) * network.delay_coefficient / (
            np.pi * network.tier_density[offset.argmin()]
        ) ** (network.delay_exponent / 2)
        ends = np.unique(np.concatenate([offset, low + (top - low) * np.logspace(-6, 0, 13)]))
        expected += p * low
        for a, b in pairwise(ends[ends <= top]):  # u^5 takes the kink at a panel's start away
            expected += p * (b - a) * float(5.0 * u**4 * half @ alive(a + (b - a) * u**5))
    assert answer.mean_ttft == pytest.approx(expected, rel=1e-7)


@given(from_seed, policies)
@settings(max_examples=20, deadline=None)
def test_distances_scale_and_nothing_else(random_network, seed: int, policy: str) -> None:
    network, k = random_network(seed), 2.7
    scaled = replace(
        network,
        tier_density=k * network.tier_density,
        request_intensity=k * network.request_intensity,
        delay_coefficient=k ** (network.delay_exponent / 2) * network.delay_coefficient,
    )
    one, other = solve(network, policy), solve(scaled, policy)
    np.testing.assert_allclose(other.ttft_coverage([0.3, 1.0]), one.ttft_coverage([0.3, 1.0]), atol=1e-7)
    np.testing.assert_allclose(other.mean_serving_distance, one.mean_serving_distance / np.sqrt(k), rtol=1e-6)


def test_coverage_grows_with_density_and_falls_with_load(baseline) -> None:
    by_density = [float(solve(baseline(3.0, density)).ttft_coverage(0.8)) for density in (0.5, 1.2, 3.0, 9.0)]
    assert (np.diff(by_density) > 0).all()
    by_load = [float(solve(baseline(load)).ttft_coverage(0.8)) for load in (0.1, 1.0, 3.0, 6.0, 12.0, 17.0)]
    assert (np.diff(by_load) < 0).all()


def test_policies_order_as_in_the_paper(baseline) -> None:
    coverage = {policy: float(solve(baseline(3.0), policy).ttft_coverage(0.8)) for policy in POLICIES}
    assert coverage["load_aware"] > coverage["prefix_only"] > coverage["nearest"]
    assert [round(coverage[policy], 2) for policy in POLICIES] == [0.69, 0.55, 0.52]


def test_where_nothing_is_stable_everything_is_a_miss(baseline) -> None:
    answer = solve(baseline(20.0))
    assert not answer.stable
    assert answer.ttft_coverage([0.8, 100.0, np.inf]).tolist() == [0.0, 0.0, 0.0]
    assert answer.ttft_quantile(0.1) == np.inf
    assert answer.p95_ttft == np.inf
    assert answer.mean_ttft == np.inf
    assert np.isfinite([answer.parts()["radio"], answer.parts()["prefill"]]).all()
    assert answer.association.sum(axis=0) == pytest.approx([1.0, 1.0])


def test_one_overloaded_tier_caps_the_coverage(baseline) -> None:
    answer = solve(baseline(4.0), "prefix_only")
    served = float(answer.profile_share[:2].sum())
    assert float(answer.ttft_coverage(1e6)) == pytest.approx(served, abs=1e-9)
    assert answer.ttft_quantile(served - 1e-3) < np.inf
    assert answer.ttft_quantile(served + 1e-3) == np.inf
    assert answer.parts()["wait"] == np.inf


def test_an_empty_tier_counts_for_nothing(baseline) -> None:
    answer = solve(baseline(3.0, placement=(0.6, 0.0, 0.4)))
    assert answer.profile_share[1] == 0.0
    assert np.isfinite(answer.mean_ttft)
    rare = solve(baseline(3.0, placement=(0.6, 1e-9, 0.4 - 1e-9)))
    assert float(answer.ttft_coverage(0.8)) == pytest.approx(float(rare.ttft_coverage(0.8)), abs=1e-7)


def test_parts_add_up_and_distances_average(baseline) -> None:
    answer = solve(baseline(3.0))
    assert sum(answer.parts().values()) == pytest.approx(answer.mean_ttft)
    weight = answer.association * answer.network.type_probability
    assert (weight * answer.serving_distance).sum() == pytest.approx(answer.mean_serving_distance, rel=1e-10)
    assert answer.profile_share.sum() == pytest.approx(1.0)


def test_prefill_seconds_of_the_baseline(baseline) -> None:
    # at load 3 the paper's baseline asks more of a GPU than there is: 1.9 s a second (deep), 1.1 (shallow)
    answer = solve(baseline(3.0))
    np.testing.assert_allclose(answer.prefill_seconds_per_site[1:], [1.1, 1.9], atol=0.05)
    assert answer.prefill_overcommitted.tolist() == [False, True, True]


def test_offloading_without_and_with_full_hits(baseline) -> None:
    network = baseline(3.0)
    none = replace(
        network, hit_tokens=np.zeros((3, 2)), prefill_time=np.tile(network.full_prefill_time, (3, 1))
    )
    assert solve(none).offloading_ratio("tokens") == 0.0
    assert solve(none).offloading_ratio("prefill_time") == pytest.approx(0.0, abs=1e-12)
    every = replace(network, hit_tokens=np.tile([1024, 4096], (3, 1)), prefill_time=np.zeros((3, 2)))
    assert solve(every).offloading_ratio("tokens") == pytest.approx(1.0)
    assert solve(every).offloading_ratio("prefill_time") == pytest.approx(1.0)


def nasty_answer(random_network, seed: int):
    """Return the answer of a random network with a rare tier under one of the policies."""
    network = random_network(seed, 0.8, [1.2, 2.0, 2.5, 5.0][seed % 4])
    density = network.tier_density.copy()
    density[seed % network.tiers] *= 1e-6 if network.tiers > 1 and seed % 2 else 1.0
    return solve(replace(network, tier_density=density), POLICIES[seed % 3])


@pytest.mark.parametrize("seed", range(12))
def test_coverage_against_graded_panels(random_network, graded, seed: int) -> None:
    answer = nasty_answer(random_network, seed)
    network, point = answer.network, answer.equilibrium
    finite = point.mean_wait[~point.overloaded]
    kinks = [
        network.prefill_time[0, 0] + 1e-9,
        network.prefill_time.max(),
        *(network.prefill_time[0, 0] + finite),
    ]
    for tau in (0.4, *kinks[:3]):
        expected = 0.0
        for q, probability in enumerate(network.type_probability):
            spare = np.where(point.overloaded, 0.0, tau - network.prefill_time[:, q])

            def in_time(s: int, delay: np.ndarray, spare: np.ndarray = spare) -> np.ndarray:
                return wait_cdf(
                    spare[s] - delay,
                    point.site_arrival_rate[s],
                    point.service_rate[s],
                    network.concurrency[s],
                )

            radio = (network.delay_coefficient, network.delay_exponent)
            area = graded(
                network.tier_density, point.cost_offset[:, q], *radio, np.maximum(spare, 0.0), in_time
            )
            expected += probability * network.tier_density @ area
        assert float(answer.ttft_coverage(tau)) == pytest.approx(expected, abs=1e-10)


@given(from_seed, policies, st.floats(0.05, 5.0), st.floats(0.5, 0.999))
@settings(max_examples=40, deadline=None)
def test_planned_waits_bound_coverage_from_below(
    random_network, seed: int, policy: str, tau: float, kept: float
) -> None:
    answer = solve(random_network(seed, 0.85), policy)
    bound, covered = float(answer.planned_wait_bound(tau, kept)), float(answer.ttft_coverage(tau))
    assert bound <= covered + 1e-10
    at_once = float(answer.no_wait_bound(tau))
    assert at_once <= covered + 1e-10
    assert at_once <= float(answer.queue_free_coverage(tau)) + 1e-10
    # with all the time in the world it is the share of those whose wait is kept
    served = float(answer.profile_share @ ~answer.equilibrium.overloaded)
    assert kept * served - 1e-9 <= float(answer.planned_wait_bound(np.inf, kept)) <= served + 1e-9


def test_planned_waits_lose_little_where_few_wait(baseline) -> None:
    calm = solve(baseline(1e-3))
    assert float(calm.planned_wait_bound(0.8)) == pytest.approx(float(calm.ttft_coverage(0.8)), rel=1e-4)
    # at load 3 only the deep tier waits, and the others keep all of their requests;
    # planning for half of its waits loses less than one request in ten
    busy = solve(baseline(3.0))
    covered, bound = float(busy.ttft_coverage(0.8)), float(busy.planned_wait_bound(0.8, 0.5))
    assert covered - 0.1 < bound < covered


def test_types_with_all_the_time_in_the_world(baseline) -> None:
    np.testing.assert_allclose(solve(baseline(3.0)).coverage_by_type(np.inf), 1.0, atol=1e-9)
    answer = solve(baseline(4.0), "prefix_only")
    np.testing.assert_allclose(
        answer.coverage_by_type(np.inf), answer.association[:2].sum(axis=0), atol=1e-9
    )  # the deep tier is overloaded


def test_who_is_served_at_once_by_hand() -> None:
    # one tier: whether anybody waits does not depend on where a request comes from
    answer = solve(single())
    at_once = 1.0 - float(erlang_c(3.0, 4))
    for tau in (0.1, 0.5, 2.0, np.inf):
        free = float(answer.queue_free_coverage(tau))
        assert float(answer.no_wait_bound(tau)) == pytest.approx(at_once * free, abs=1e-11)
    assert answer.no_wait_bound([[0.5, 0.8]]).shape == (1, 2)


def test_bounds_of_tiers_with_different_queues(baseline) -> None:
    # each tier counts with its own probability to wait, and an overloaded one with nothing
    answer = solve(baseline(4.0), "prefix_only")
    point = answer.equilibrium
    load = point.site_arrival_rate / point.service_rate
    at_once = np.where(point.overloaded, 0.0, 1.0 - erlang_c(load, answer.network.concurrency))
    assert float(answer.no_wait_bound(np.inf)) == pytest.approx(
        float(answer.profile_share @ at_once), abs=1e-9
    )
    assert 0.0 < float(answer.no_wait_bound(0.8)) < float(answer.ttft_coverage(0.8))
    calm = solve(baseline(1e-3))
    assert float(calm.no_wait_bound(0.8)) == pytest.approx(float(calm.ttft_coverage(0.8)), rel=1e-4)


@dataclass(frozen=True, eq=False)
class OtherLaw(TheoryAnswer):
    """An answer that says nothing of who waits how long."""


@dataclass(frozen=True, eq=False)
class NobodyKeeps(TheoryAnswer):
    """An answer that says it all: no wait is ever kept."""

    def _planned_waits(self, kept):
        return np.full(self.network.tiers, 0.1)

    def _kept(self, nodes, wait):
        return np.zeros(nodes.tier.size)


def test_bounds_are_refused_where_a_law_does_not_say_who_waits(baseline) -> None:
    point = solve(baseline(3.0)).equilibrium
    for ask in ("no_wait_bound", "planned_wait_bound"):
        with pytest.raises(GeoEdgeError, match=f"{ask}: of OtherLaw no lower bound is known") as caught:
            getattr(OtherLaw(point), ask)(0.8)
        assert "\n" not in str(caught.value)
        assert float(getattr(NobodyKeeps(point), ask)(0.8)) == 0.0


def test_hit_tokens_are_the_offloading_ratio_times_the_prompt(random_network) -> None:
    for seed in range(8):
        answer = solve(random_network(seed))
        prompt = answer.network.type_probability @ answer.network.prompt_tokens
        assert answer.mean_hit_tokens == pytest.approx(answer.offloading_ratio("tokens") * prompt, rel=1e-12)


class Renamed(ErlangC):
    """M/M/c itself, but not by its class: what the general path makes of it."""


def test_the_general_path_covers_alike(baseline) -> None:
    for load in (0.5, 3.0, 12.0):
        fast, general = solve(baseline(load)), solve(baseline(load), queue=Renamed())
        targets = [0.2, 0.8, 3.0]
        np.testing.assert_allclose(general.ttft_coverage(targets), fast.ttft_coverage(targets), atol=1e-9)


def test_types_a_few_at_a_time(baseline) -> None:
    # the type of the baseline split into very many, more than are held at a time
    network, times = baseline(3.0), 400
    many = replace(
        network,
        type_probability=np.repeat(network.type_probability, times) / times,
        **{
            name: np.repeat(getattr(network, name), times, axis=-1)
            for name in ("prefill_time", "occupancy_time", "hit_tokens", "prompt_tokens", "full_prefill_time")
        },
    )
    assert float(solve(many).ttft_coverage(0.8)) == pytest.approx(
        float(solve(network).ttft_coverage(0.8)), abs=1e-11
    )
    assert solve(many).mean_serving_distance == pytest.approx(solve(network).mean_serving_distance, rel=1e-11)


def test_targets_of_any_shape(baseline) -> None:
    answer = solve(baseline(3.0))
    assert np.ndim(answer.ttft_coverage(0.8)) == 0
    assert answer.ttft_coverage(np.full((2, 3), 0.8)).shape == (2, 3)
    assert answer.ttft_coverage([]).shape == (0,)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: a.ttft_quantile(1.2), r"must lie in \[0, 1\], not 1.2"),
        (lambda a: a.ttft_quantile(float("nan")), r"must lie in \[0, 1\]"),
        (lambda a: a.ttft_coverage(float("nan")), "NaN"),
        (lambda a: a.planned_wait_bound(0.8, 1.0), r"`kept` must lie in \(0, 1\)"),
        (lambda a: a.planned_wait_bound(0.8, "a"), r"`kept` must lie in \(0, 1\), not 'a'"),
        (lambda a: a.ttft_quantile(None), r"must lie in \[0, 1\], not None"),
        (lambda a: a.coverage_by_type([0.8, 0.9]), "must be one target in seconds"),
        (lambda a: a.offloading_ratio("bytes"), 'must be "tokens" or "prefill_time"'),
    ],
)
def test_bad_input_is_one_line(call, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        call(solve(single()))
    assert "\n" not in str(caught.value)
