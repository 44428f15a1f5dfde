"""What must hold of every network: sums, orders, limits, and changes of description that change nothing.

Examples are the same at each run, so that the suite is stable; `solve` is asked under all three policies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gamma

from geoedge.theory import POLICIES, TheoryAnswer, TieredNetwork, solve

policies = st.sampled_from(POLICIES)
targets = st.lists(st.floats(0.0, 5.0), min_size=2, max_size=6).map(sorted)
some = settings(max_examples=25, deadline=None)

TIERS = ("tier_density", "concurrency", "prefill_time", "occupancy_time", "hit_tokens")
TYPES = ("type_probability", "prompt_tokens", "full_prefill_time")
BOTH = ("prefill_time", "occupancy_time", "hit_tokens")


def prefill(tokens: np.ndarray) -> np.ndarray:
    return 1.6e-4 * tokens + 1.8e-8 * tokens**2


@st.composite
def networks(draw, most_tiers: int = 4, busiest: float = 0.9) -> TieredNetwork:
    """Draw a network whose load is a share of what is known to be carried."""
    tiers, types = draw(st.integers(1, most_tiers)), draw(st.integers(1, 3))
    rows = [
        st.lists(values, min_size=tiers, max_size=tiers)
        for values in (st.floats(0.05, 2.0), st.integers(1, 20))
    ]
    density, concurrency = (draw(row) for row in rows)
    length = np.array(draw(st.lists(st.integers(300, 8000), min_size=types, max_size=types)))
    depth = np.array(draw(st.lists(st.sampled_from([0, 0, 512, 2048]), min_size=tiers, max_size=tiers)))
    weight = np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=types, max_size=types)))
    hit = np.minimum(depth[:, None], length)
    residual = prefill(length - hit)
    network = TieredNetwork(
        density,
        concurrency,
        weight / weight.sum(),
        residual,
        residual + draw(st.floats(0.05, 2.0)),
        0.0,
        draw(st.floats(0.03, 1.0)),
        draw(st.sampled_from([1.5, 2.0, 2.5, 3.5, 4.0, 5.0])),
        hit,
        length,
        prefill(length),
    )
    return network.with_intensity(draw(st.floats(0.0, busiest)) * network.sufficient_intensity)


def idle(network: TieredNetwork) -> TieredNetwork:
    """Return the network without any queue, so that what a tier adds to every cost is a wait held fixed."""
    return network.with_intensity(0.0)


def waiting(network: TieredNetwork, wait: np.ndarray) -> TieredNetwork:
    """Return an idle network in which every request waits for exactly so long at each tier [s]."""
    return replace(idle(network), prefill_time=network.prefill_time + wait[:, None])


def taking(network: TieredNetwork, tiers=slice(None), types=slice(None), **changes) -> TieredNetwork:
    """Return the network of these tiers and types, in this order."""
    arrays = {name: getattr(network, name) for name in {*TIERS, *TYPES}}
    arrays |= {name: arrays[name][tiers] for name in TIERS}
    arrays |= {name: arrays[name][..., types] for name in TYPES + BOTH}
    return replace(network, **(arrays | changes))


def same(one: TheoryAnswer, other: TheoryAnswer, tolerance: float = 1e-8) -> None:
    """Assert that two answers say the same of all requests together."""
    taus = [0.1, 0.4, 0.9, 2.0]
    np.testing.assert_allclose(other.ttft_coverage(taus), one.ttft_coverage(taus), atol=tolerance)
    np.testing.assert_allclose(other.mean_ttft, one.mean_ttft, rtol=100 * tolerance)
    np.testing.assert_allclose(other.offloading_ratio(), one.offloading_ratio(), atol=tolerance)
    np.testing.assert_allclose(other.mean_serving_distance, one.mean_serving_distance, rtol=tolerance)


# ------------------------------------------------------------------ sums and orders


@given(networks(), policies)
@some
def test_probabilities_sum_to_one(network, policy) -> None:
    answer = solve(network, policy)
    np.testing.assert_allclose(answer.association.sum(axis=0), 1.0, atol=1e-9)
    assert answer.profile_share.sum() == pytest.approx(1.0, abs=1e-9)
    assert (answer.association >= 0.0).all()
    # what arrives at all sites of a square kilometre is what is asked there, Eq. (15)
    arrived = network.tier_density @ answer.equilibrium.site_arrival_rate
    assert arrived == pytest.approx(network.request_intensity, rel=1e-8)


@given(networks(), policies, targets)
@some
def test_coverage_is_a_distribution_below_its_bound_without_queues(network, policy, taus) -> None:
    answer = solve(network, policy)
    coverage, free = answer.ttft_coverage(taus), answer.queue_free_coverage(taus)
    assert (np.diff(coverage) >= -1e-10).all()
    assert ((coverage >= 0.0) & (coverage <= free + 1e-10) & (free <= 1.0)).all()
    least = float(network.prefill_time.min())
    assert float(answer.ttft_coverage(least)) == 0.0
    if answer.stable:
        assert float(answer.ttft_coverage(1e9)) == pytest.approx(1.0, abs=1e-9)
    by_type = answer.coverage_by_type(taus[-1])
    assert network.type_probability @ by_type == pytest.approx(float(coverage[-1]), abs=1e-9)


@given(networks(), st.integers(0, 3), st.floats(1.0, 4.0), targets, st.randoms(use_true_random=False))
@some
def test_with_waits_held_fixed_more_sites_cover_more(network, which, factor, taus, random) -> None:
    """The least cost falls with every site that is added, whatever it holds."""
    fixed = waiting(network, np.array([random.uniform(0.0, 1.0) for _ in range(network.tiers)]))
    density = fixed.tier_density.copy()
    density[which % network.tiers] *= factor
    more = replace(fixed, tier_density=density)
    assert (solve(more).ttft_coverage(taus) >= solve(fixed).ttft_coverage(taus) - 1e-10).all()


@given(networks(), st.integers(0, 3), st.floats(0.0, 2.0), targets)
@some
def test_longer_waits_cover_less(network, which, wait, taus) -> None:
    waits = np.zeros(network.tiers)
    none = solve(waiting(network, waits)).ttft_coverage(taus)
    waits[which % network.tiers] = wait
    assert (solve(waiting(network, waits)).ttft_coverage(taus) <= none + 1e-10).all()


@given(networks(), st.sampled_from(["prefix_only", "nearest"]), st.floats(0.0, 1.0), targets)
@some
def test_where_nobody_looks_at_waits_a_smaller_load_covers_more(network, policy, share, taus) -> None:
    """Association stays, and every wait gets shorter in distribution."""
    busy, calm = (
        solve(network, policy),
        solve(network.with_intensity(share * network.request_intensity), policy),
    )
    np.testing.assert_array_equal(calm.association, busy.association)
    assert (calm.mean_wait <= busy.mean_wait).all()
    assert (calm.ttft_coverage(taus) >= busy.ttft_coverage(taus) - 1e-10).all()


@given(networks(), st.floats(1.0, 5.0), targets)
@some
def test_to_the_nearest_of_more_sites_at_the_same_demand_is_faster(network, factor, taus) -> None:
    """The mix of who serves stays; the way and the load of a site get smaller."""
    few, many = solve(network, "nearest"), solve(network.scaled(factor), "nearest")
    assert (many.ttft_coverage(taus) >= few.ttft_coverage(taus) - 1e-10).all()


# ------------------------------------------------------------------ limits


@pytest.mark.parametrize("change", ["no radio delay", "ever more sites"])
@given(network=networks(), policy=policies)
@some
def test_next_to_no_way_everybody_gets_the_best(change, network, policy) -> None:
    """Coverage without queues tends to a step at the least prefill, at each type's own; nearest goes by density."""
    network = idle(network)
    near = (
        replace(network, delay_coefficient=1e-13)
        if change == "no radio delay"
        else network.scaled(1e13 ** (2.0 / network.delay_exponent))
    )
    answer = solve(near, policy)
    for tau in np.unique(network.prefill_time) + 1e-4:
        in_time = network.prefill_time <= tau
        if policy == "nearest":
            expected = network.tier_density / network.site_density @ in_time @ network.type_probability
        else:
            expected = network.type_probability @ in_time.any(axis=0)
        assert float(answer.ttft_coverage(tau)) == pytest.approx(expected, abs=1e-6)


@given(networks(), policies)
@some
def test_the_closed_form_of_exponent_two_is_a_limit(network, policy) -> None:
    two = solve(replace(network, delay_exponent=2.0), policy)
    for exponent in (2.0 - 1e-7, 2.0 + 1e-7):
        same(two, solve(replace(network, delay_exponent=exponent), policy), tolerance=2e-6)


@given(networks(most_tiers=1), policies, targets)
@some
def test_one_tier_in_closed_form(network, policy, taus) -> None:
    """Everybody goes to the nearest site: E[ξR^α] = ξ Γ(1 + α/2)/(πλ)^{α/2}, and R² is exponential."""
    answer, free = solve(network, policy), solve(idle(network), policy)
    power, area = network.delay_exponent / 2.0, np.pi * network.site_density
    radio = network.delay_coefficient * gamma(1.0 + power) / area**power
    assert answer.parts()["radio"] == pytest.approx(radio, rel=1e-9)
    assert answer.mean_serving_distance == pytest.approx(0.5 / np.sqrt(network.site_density), rel=1e-9)
    spare = np.maximum(np.array(taus)[:, None] - network.prefill_time[0], 0.0) / network.delay_coefficient
    expected = -np.expm1(-area * spare ** (1.0 / power)) @ network.type_probability
    np.testing.assert_allclose(free.ttft_coverage(taus), expected, atol=1e-9)


# ------------------------------------------------------------------ descriptions


@given(networks(), policies, st.floats(0.05, 20.0))
@some
def test_scale_invariance(network, policy, k) -> None:
    """(λ_b, λ_req, ξ) → (k λ_b, k λ_req, k^{α/2} ξ) changes nothing but distances, which shrink by √k."""
    scaled = replace(
        network.scaled(k),
        request_intensity=k * network.request_intensity,
        delay_coefficient=k ** (network.delay_exponent / 2.0) * network.delay_coefficient,
    )
    one, other = solve(network, policy), solve(scaled, policy)
    np.testing.assert_allclose(
        other.ttft_coverage([0.1, 0.4, 0.9]), one.ttft_coverage([0.1, 0.4, 0.9]), atol=1e-8
    )
    np.testing.assert_allclose(other.utilization, one.utilization, atol=1e-8)
    np.testing.assert_allclose(other.mean_serving_distance * np.sqrt(k), one.mean_serving_distance, rtol=1e-7)


@given(networks(), policies, st.randoms(use_true_random=False))
@some
def test_the_order_of_tiers_and_types_does_not_matter(network, policy, random) -> None:
    tiers, types = list(range(network.tiers)), list(range(network.types))
    random.shuffle(tiers)
    random.shuffle(types)
    one, other = solve(network, policy), solve(taking(network, tiers, types), policy)
    same(one, other)
    np.testing.assert_allclose(other.association, one.association[np.ix_(tiers, types)], atol=1e-8)
    np.testing.assert_allclose(other.utilization, one.utilization[tiers], atol=1e-8)


@given(networks(most_tiers=3), policies, st.integers(0, 2), st.floats(0.1, 0.9))
@some
def test_a_tier_may_be_counted_in_two_parts(network, policy, which, share) -> None:
    s = which % network.tiers
    tiers = [*range(network.tiers), s]
    density = network.tier_density[tiers]
    density[s], density[-1] = share * density[s], (1.0 - share) * density[s]
    one, other = solve(network, policy), solve(taking(network, tiers, tier_density=density), policy)
    same(one, other)
    np.testing.assert_allclose(other.association[[s, -1]].sum(axis=0), one.association[s], atol=1e-8)
    np.testing.assert_allclose(other.utilization, one.utilization[tiers], atol=1e-8)


@given(networks(), policies, st.integers(0, 2), st.floats(0.1, 0.9))
@some
def test_a_type_may_be_counted_in_two_parts(network, policy, which, share) -> None:
    q = which % network.types
    types = [*range(network.types), q]
    probability = network.type_probability[types]
    probability[q], probability[-1] = share * probability[q], (1.0 - share) * probability[q]
    other = solve(taking(network, types=types, type_probability=probability), policy)
    same(solve(network, policy), other)
    np.testing.assert_allclose(other.association[:, q], other.association[:, -1], atol=1e-12)


@given(networks(), policies, st.floats(0.0, 5.0), st.integers(1, 30))
@some
def test_an_empty_tier_changes_nothing(network, policy, time, concurrency) -> None:
    """However fast its sites would be, and however full: there is none."""
    row, types = np.full((1, network.types), time), network.types
    wider = replace(
        network,
        tier_density=[*network.tier_density, 0.0],
        concurrency=[*network.concurrency, concurrency],
        prefill_time=np.vstack([network.prefill_time, row]),
        occupancy_time=np.vstack([network.occupancy_time, row + 0.1]),
        hit_tokens=np.vstack([network.hit_tokens, np.zeros((1, types))]),
    )
    one, other = solve(network, policy), solve(wider, policy)
    same(one, other)
    assert (other.association[-1] == 0.0).all()
    assert other.stable == one.stable


@given(networks(), policies)
@some
def test_a_type_that_nobody_asks_for_changes_nothing(network, policy) -> None:
    types = [*range(network.types), 0]
    wider = taking(network, types=types, type_probability=[*network.type_probability, 0.0])
    same(solve(network, policy), solve(wider, policy))
    assert np.isnan(solve(wider, policy).coverage_by_type(1.0)[-1])
