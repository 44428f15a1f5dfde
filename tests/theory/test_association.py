"""Association and serving distance against closed forms, brute-force quadrature and invariances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gamma

from geoedge.errors import GeoEdgeError
from geoedge.theory.association import (
    association_per_density,
    association_probability,
    attracted_load,
    cost_rule,
    mean_serving_distance,
    serving_distance_pdf,
)

DENSITY = np.array([0.54, 0.42, 0.24])
LONG = np.array([0.957349888, 0.804651008, 0.403177472])


def by_distance(density, offset, coefficient, exponent, power: int = 0) -> np.ndarray:
    """Return ∫ r^power f_sel dr of each tier over distance, Eqs. (25, 26), by adaptive quadrature."""
    result = np.empty(len(density))
    for s in range(len(density)):

        def integrand(r: float, s: int = s) -> float:
            reach = np.maximum(r**exponent + (offset[s] - offset) / coefficient, 0.0) ** (2.0 / exponent)
            return r**power * 2 * np.pi * density[s] * r * np.exp(-np.pi * (density @ reach))

        kinks = ((np.maximum(offset - offset[s], 0.0)) / coefficient) ** (1.0 / exponent)
        ends = np.unique(
            np.concatenate([[0.0], kinks, [kinks.max() + 1.0, kinks.max() + 3.0, 9.0 / density.sum()]])
        )
        pieces = [quad(integrand, a, b, epsabs=1e-14, epsrel=1e-13, limit=400)[0] for a, b in pairwise(ends)]
        result[s] = sum(pieces)
    return result


offsets = st.lists(st.floats(0.0, 1.5), min_size=1, max_size=5)
exponents = st.sampled_from([1.0, 1.5, 2.0, 2.1, 2.5, 3.0, 4.0, 5.5])


@st.composite
def systems(draw):
    """Draw densities, offsets with near-ties, a delay coefficient and an exponent."""
    offset = np.array(draw(offsets))
    for s in range(1, offset.size):
        if draw(st.booleans()):
            offset[s] = offset[s - 1] + 10.0 ** draw(st.floats(-17.0, -1.0))
    density = np.array(draw(st.lists(st.floats(0.01, 3.0), min_size=offset.size, max_size=offset.size)))
    return density, offset, 10.0 ** draw(st.floats(-2.5, 0.5)), draw(exponents)


@given(systems())
@settings(max_examples=150, deadline=None)
def test_probabilities_sum_to_one(system) -> None:
    assert association_probability(*system).sum() == pytest.approx(1.0, abs=1e-10)


@given(systems(), st.floats(0.1, 10.0), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_order_shift_and_scale_change_nothing(system, k: float, random) -> None:
    density, offset, coefficient, exponent = system
    expected = association_probability(*system)
    order = np.array(random.sample(range(density.size), density.size))
    shuffled = association_probability(density[order], offset[order], coefficient, exponent)
    np.testing.assert_allclose(shuffled, expected[order], atol=1e-10)
    scaled = association_probability(k * density, offset, coefficient * k ** (exponent / 2), exponent)
    np.testing.assert_allclose(scaled, expected, atol=1e-10)
    # powers of two shift without rounding away the near-ties by much more than 1e-16
    shifted = association_probability(density, offset + 4.0, coefficient, exponent)
    np.testing.assert_allclose(shifted, expected, atol=1e-5)


@pytest.mark.parametrize("exponent", [1.0, 2.0, 2.2, 2.5, 3.0, 4.0, 6.0])
@pytest.mark.parametrize("coefficient", [0.02, 0.28, 2.0])
def test_against_quadrature_over_distance(exponent: float, coefficient: float) -> None:
    expected = by_distance(DENSITY, LONG, coefficient, exponent)
    np.testing.assert_allclose(
        association_probability(DENSITY, LONG, coefficient, exponent), expected, atol=1e-10
    )


def nasty(seed: int, exponent: float):
    """Return a system with rare and empty tiers, near-ties down to 1e-20 and offsets of very different size."""
    rng = np.random.default_rng(seed)
    tiers = int(rng.integers(2, 8))
    offset = rng.uniform(0.0, 1.5, tiers) * 10.0 ** rng.uniform(-3.0, 1.5)
    for s in range(1, tiers):
        if rng.random() < 0.4:
            offset[s] = offset[s - 1] + 10.0 ** rng.uniform(-20.0, -1.0)
    density = 10.0 ** rng.uniform(-2.0, 0.5, tiers)
    if seed % 3 == 1:
        density[rng.integers(tiers)] = 10.0 ** rng.uniform(-9.0, -3.0)
    if seed % 3 == 2:
        density[rng.integers(tiers)] = 0.0
    return density, offset, 10.0 ** rng.uniform(-4.0, 1.0), exponent


@pytest.mark.parametrize("exponent", [1.0, 1.3, 1.8, 2.0, 2.05, 2.2, 2.5, 3.0, 4.0, 5.0, 6.0, 9.0, 16.0])
def test_nasty_systems_against_graded_panels(graded, exponent: float) -> None:
    for seed in range(6):
        system = nasty(seed, exponent)
        density = system[0]
        expected = graded(*system)
        found = association_per_density(*system)
        np.testing.assert_allclose(density * found, density * expected, atol=2e-12)
        # the share of a tier that serves next to nobody has its digits too
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-250)


def test_first_kinks_of_a_tie_next_to_zero() -> None:
    # an offset of 1e-20 is a tie of 1e-20: with two offsets only the difference counts, to first order in it
    for exponent in (2.5, 5.0, 12.0):
        tied = association_probability([0.5, 0.3, 0.2], [0.0, 1e-20, 0.4], 0.28, exponent)
        equal = association_probability([0.5, 0.3, 0.2], [0.0, 0.0, 0.4], 0.28, exponent)
        tolerance = 2.0 * (1e-20 / 0.28) ** (2.0 / exponent)
        np.testing.assert_allclose(tied, equal, atol=max(tolerance, 1e-14))


def test_fifty_tiers_sum_to_one() -> None:
    rng = np.random.default_rng(4)
    density, offset = rng.uniform(0.0, 0.2, 50), rng.uniform(0.0, 2.0, (50, 5))
    for exponent in (1.2, 2.5, 4.0):
        total = association_probability(density, offset, 0.28, exponent).sum(axis=0)
        np.testing.assert_allclose(total, 1.0, atol=1e-11)


def test_exponent_two_in_closed_form() -> None:
    density, offset, coefficient = np.array([0.5, 0.3, 0.2]), np.array([0.957, 0.8046, 0.183]), 0.28
    order = np.argsort(offset)
    sorted_offset, sorted_density = offset[order], density[order]
    total = np.cumsum(sorted_density)
    level = np.array(
        [np.pi / coefficient * sorted_density @ np.maximum(b - sorted_offset, 0) for b in sorted_offset]
    )
    alive = np.exp(-np.append(level, np.inf))
    expected = np.empty(3)
    for rank, tier in enumerate(order):
        expected[tier] = sum(density[tier] / total[k] * (alive[k] - alive[k + 1]) for k in range(rank, 3))
    np.testing.assert_allclose(
        association_probability(density, offset, coefficient, 2.0), expected, rtol=1e-14
    )


def test_exponent_two_is_the_limit_of_the_integrals() -> None:
    exact = association_probability(DENSITY, LONG, 0.28, 2.0)
    for tiny in (1e-4, 1e-6, 1e-8):
        for exponent in (2.0 - tiny, 2.0 + tiny):
            np.testing.assert_allclose(
                association_probability(DENSITY, LONG, 0.28, exponent), exact, atol=2.0 * tiny + 1e-11
            )


def test_equal_offsets_share_by_density() -> None:
    shares = association_probability(DENSITY, np.full(3, 0.7), 0.28, 2.5)
    np.testing.assert_allclose(shares, DENSITY / DENSITY.sum(), rtol=1e-14)


def test_limits_of_radio_delay() -> None:
    # nothing to pay for distance: the cheapest tier serves all; nothing else to pay: all share by density
    np.testing.assert_allclose(association_probability(DENSITY, LONG, 1e-9, 2.5), [0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(
        association_probability(DENSITY, LONG, 1e9, 2.5), DENSITY / DENSITY.sum(), atol=1e-6
    )


def test_an_empty_tier_is_the_limit_of_a_rare_one() -> None:
    offset = np.array([0.9, 0.1, 0.2])
    empty = association_per_density([0.8, 0.0, 0.4], offset, 0.28, 2.5)
    rare = association_per_density([0.8, 1e-9, 0.4], offset, 0.28, 2.5)
    np.testing.assert_allclose(empty, rare, rtol=1e-7)
    assert association_probability([0.8, 0.0, 0.4], offset, 0.28, 2.5)[1] == 0.0


def test_one_call_serves_many_types() -> None:
    table = np.stack([LONG, LONG[::-1], np.zeros(3)], axis=1)
    together = association_probability(DENSITY, table, 0.28, 2.5)
    for q in range(3):
        np.testing.assert_array_equal(
            together[:, q], association_probability(DENSITY, table[:, q], 0.28, 2.5)
        )


def attraction(network, wait, **options):
    """Return what waits attract, with the slopes."""
    return attracted_load(network, np.asarray(wait), slopes=True, **options)


@pytest.mark.parametrize("exponent", [1.3, 2.0, 2.5, 3.5])
def test_slopes_are_derivatives(random_network, exponent: float) -> None:
    for seed in (1, 2, 3, 6):
        network = random_network(seed, exponent=exponent)
        wait = np.random.default_rng(seed).uniform(0.0, 0.5, network.tiers)
        here = attraction(network, wait)
        for t in range(network.tiers):
            step = 1e-6 * (np.arange(network.tiers) == t)
            up, down = attracted_load(network, wait + step), attracted_load(network, wait - step)
            for slope, above, below in (
                (here.work_slope, up.work, down.work),
                (here.request_slope, up.requests, down.requests),
            ):
                scale = np.abs(slope).max()
                np.testing.assert_allclose(slope[:, t], (above - below) / 2e-6, rtol=3e-5, atol=3e-5 * scale)


def test_attraction_is_the_association_summed(random_network) -> None:
    for seed in range(6):
        network = random_network(seed)
        wait = np.random.default_rng(seed).uniform(0.0, 0.5, network.tiers)
        drawn = attraction(network, wait)
        offset = network.prefill_time + wait[:, None]
        area = association_per_density(
            network.tier_density, offset, network.delay_coefficient, network.delay_exponent
        )
        np.testing.assert_allclose(drawn.area, area, rtol=1e-13)
        np.testing.assert_allclose(drawn.requests, area @ network.type_probability, rtol=1e-12)
        work = (area * network.occupancy_time) @ network.type_probability
        np.testing.assert_allclose(drawn.work, work, rtol=1e-12)
        assert network.tier_density @ drawn.requests == pytest.approx(1.0, abs=1e-11)


def test_one_tier_distance_and_delay_in_closed_form() -> None:
    assert mean_serving_distance([0.7], [0.3], 0.28, 2.5)[0] == pytest.approx(0.5 / np.sqrt(0.7), rel=1e-12)
    for exponent in (1.0, 2.0, 2.5, 4.0):
        rule = cost_rule(np.array([0.7]), np.array([[0.3]]), 0.28, exponent)
        mean = 0.7 * rule.weight @ rule.delay
        expected = 0.28 * gamma(1 + exponent / 2) / (np.pi * 0.7) ** (exponent / 2)
        assert mean == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("exponent", [2.0, 2.5, 4.0])
def test_mean_distance_against_quadrature(exponent: float) -> None:
    moment = by_distance(DENSITY, LONG, 0.28, exponent, power=1)
    share = by_distance(DENSITY, LONG, 0.28, exponent)
    np.testing.assert_allclose(
        mean_serving_distance(DENSITY, LONG, 0.28, exponent), moment / share, rtol=1e-9
    )


def test_a_limit_next_to_an_offset_overflows_nothing() -> None:
    # joints as close as doubles allow: 700 decades of x between one joint and the next
    density, offset = np.array([0.5, 0.3]), np.array([[0.0], [1.0]])
    for limit in (5e-324, 1e-300, 1e-160, 1e-20):
        rule = cost_rule(density, offset, 0.28, 16.0, delay_limit=np.array([[limit], [0.5]]))
        assert np.isfinite(rule.weight).all()
        assert (density[rule.tier] * rule.weight).sum() <= 1.0


@given(systems(), st.floats(0.01, 2.0), st.floats(1e-4, 1.0))
@settings(max_examples=60, deadline=None)
def test_a_limit_and_a_layer_only_move_the_nodes(system, limit: float, layer: float) -> None:
    density, offset, coefficient, exponent = system
    limits, column = np.full((offset.size, 1), limit * coefficient), offset[:, None]
    plain = cost_rule(density, column, coefficient, exponent, delay_limit=limits)
    fine = cost_rule(density, column, coefficient, exponent, delay_limit=limits, layer=layer * limits[:, 0])
    assert (plain.delay <= limits[0, 0] * (1 + 1e-12)).all()
    count = offset.size
    np.testing.assert_allclose(
        density * np.bincount(plain.tier, plain.weight, count),
        density * np.bincount(fine.tier, fine.weight, count),
        atol=1e-10,
    )


def test_density_of_the_distance_integrates_to_the_association() -> None:
    shares = association_probability(DENSITY, LONG, 0.28, 2.5)
    for tier in range(3):
        r = np.linspace(0.0, 5.0, 200_001)
        joint = serving_distance_pdf(r, tier, DENSITY, LONG, 0.28, 2.5, conditional=False)
        given_tier = serving_distance_pdf(r, tier, DENSITY, LONG, 0.28, 2.5)
        assert np.trapezoid(joint, r) == pytest.approx(shares[tier], abs=1e-8)
        assert np.trapezoid(given_tier, r) == pytest.approx(1.0, abs=1e-8)
    assert serving_distance_pdf(-1.0, 0, DENSITY, LONG, 0.28, 2.5) == 0.0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0.0, 0.0], [0.1, 0.2], 0.28, 2.5), "with one above 0"),
        (([-1.0, 1.0], [0.1, 0.2], 0.28, 2.5), "nonnegative"),
        (([1.0, 1.0], [0.1, np.inf], 0.28, 2.5), "`cost_offset` must be finite"),
        (([1.0, 1.0], [0.1], 0.28, 2.5), "must have shapes"),
        (([1.0, 1.0], [0.1, 0.2], 0.0, 2.5), "must be positive"),
        (([1.0, 1.0], [0.1, 0.2], 0.28, -1.0), "must be positive"),
        (([1.0, 1.0], [0.1, "far"], 0.28, 2.5), "`cost_offset` must be real numbers"),
        (([1.0, [1.0]], [0.1, 0.2], 0.28, 2.5), "`tier_density` must be real numbers"),
    ],
)
def test_bad_input_is_one_line(arguments, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        association_probability(*arguments)
    assert "\n" not in str(caught.value)


def test_no_distance_to_a_tier_that_serves_nobody() -> None:
    with pytest.raises(GeoEdgeError, match="serves nobody"):
        serving_distance_pdf(0.3, 1, [1.0, 0.0], [0.1, 0.2], 0.28, 2.5)


@pytest.mark.parametrize(
    ("tier", "offset"), [(2, [0.1, 0.2]), (-1, [0.1, 0.2]), (0, [[0.1, 0.3], [0.2, 0.1]])]
)
def test_no_distance_to_a_tier_that_is_not_there(tier: int, offset) -> None:
    with pytest.raises(GeoEdgeError, match="`tier` is"):
        serving_distance_pdf(0.3, tier, [1.0, 1.0], offset, 0.28, 2.5)
