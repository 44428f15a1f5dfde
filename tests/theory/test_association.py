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
    cost_rule,
    mean_serving_distance,
    serving_distance_pdf,
    shares_and_slopes,
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


@pytest.mark.parametrize("exponent", [2.0, 2.5, 3.5])
def test_overlaps_are_derivatives(exponent: float) -> None:
    offset = np.array([[0.9, 0.3], [0.8, 0.3001], [0.35, 0.9]])
    _, overlap = shares_and_slopes(DENSITY, offset, 0.28, exponent)
    for t in range(3):
        step = np.zeros((3, 1))
        step[t] = 1e-6
        up, _ = shares_and_slopes(DENSITY, offset + step, 0.28, exponent, slopes=False)
        down, _ = shares_and_slopes(DENSITY, offset - step, 0.28, exponent, slopes=False)
        numeric = (up - down) / 2e-6
        for s in range(3):
            if s != t:
                np.testing.assert_allclose(DENSITY[t] * overlap[:, s, t], numeric[s], rtol=2e-5)


def test_one_tier_distance_and_delay_in_closed_form() -> None:
    assert mean_serving_distance([0.7], [0.3], 0.28, 2.5)[0] == pytest.approx(0.5 / np.sqrt(0.7), rel=1e-12)
    for exponent in (1.0, 2.0, 2.5, 4.0):
        rule = cost_rule(np.array([0.7]), np.array([0.3]), 0.28, exponent)
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


@given(systems(), st.floats(0.01, 2.0), st.floats(1e-4, 1.0))
@settings(max_examples=60, deadline=None)
def test_a_limit_and_a_layer_only_move_the_nodes(system, limit: float, layer: float) -> None:
    density, offset, coefficient, exponent = system
    limits = np.full(offset.size, limit * coefficient)
    plain = cost_rule(density, offset, coefficient, exponent, delay_limit=limits)
    fine = cost_rule(density, offset, coefficient, exponent, delay_limit=limits, layer=layer * limits)
    assert (plain.delay <= limits[0] * (1 + 1e-12)).all()
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
    ],
)
def test_bad_input_is_one_line(arguments, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        association_probability(*arguments)
    assert "\n" not in str(caught.value)


def test_no_distance_to_a_tier_that_serves_nobody() -> None:
    with pytest.raises(GeoEdgeError, match="serves nobody"):
        serving_distance_pdf(0.3, 1, [1.0, 0.0], [0.1, 0.2], 0.28, 2.5)
