"""When a farther site is chosen, Eq. (46), against the costs themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.theory import boundary_distance, break_even_wait, distance_advantage

exponents = st.sampled_from([1.0, 1.5, 2.0, 2.5, 4.0, 6.0])
seconds, kilometres = st.floats(0.0, 2.0), st.floats(0.01, 3.0)
coefficients = st.floats(0.01, 3.0)
few = settings(max_examples=60, deadline=None)


@given(kilometres, seconds, seconds, coefficients, exponents)
@few
def test_both_cost_alike_at_the_boundary(near, offset, rival, coefficient, exponent) -> None:
    far = float(boundary_distance(near, offset, rival, coefficient, exponent))
    cost, rival_cost = coefficient * near**exponent + offset, coefficient * far**exponent + rival
    if far > 0.0:
        assert rival_cost == pytest.approx(cost, rel=1e-12)
    else:
        assert rival >= cost * (1 - 1e-12)


@given(kilometres, seconds, seconds, seconds, coefficients, exponents)
@few
def test_waiting_at_t_brings_its_boundary_nearer_and_waiting_at_s_farther(
    near, offset, rival, wait, coefficient, exponent
) -> None:
    radio = (coefficient, exponent)
    plain = boundary_distance(near, offset, rival, *radio)
    assert boundary_distance(near, offset, rival + wait, *radio) <= plain
    assert boundary_distance(near, offset + wait, rival, *radio) >= plain


@given(kilometres, kilometres, seconds, seconds, coefficients, exponents)
@few
def test_the_break_even_wait_puts_t_on_the_boundary(
    near, far, offset, prefill, coefficient, exponent
) -> None:
    wait = float(break_even_wait(near, far, offset, prefill, coefficient, exponent))
    reached = float(boundary_distance(near, offset, prefill + wait, coefficient, exponent))
    assert reached**exponent == pytest.approx(far**exponent, rel=1e-9, abs=1e-12 / coefficient)


def test_the_advantage_of_a_deep_cache_collapses_with_its_wait() -> None:
    # the long request of the paper's baseline: 0.957 s of prefill without a cache, 0.403 s with the deep one
    wait = np.linspace(0.0, 2.0, 201)
    advantage = distance_advantage(0.4, 0.957349888, 0.403177472 + wait, 0.28, 2.5)
    assert advantage[0] > 0.9  # a deep site may be more than 0.9 km farther away while it is idle
    assert (np.diff(advantage) <= 0.0).all()
    saved = 0.957349888 - 0.403177472
    # waits that eat up the prefill saved leave nothing, and 0.03 s more, the radio delay of s, leave no place at all
    assert abs(float(np.interp(saved, wait, advantage))) < 2e-2
    gone = saved + 0.28 * 0.4**2.5
    assert (advantage[wait > gone] == -0.4).all()
    assert (advantage[wait < gone] > -0.4).all()


def test_equal_offsets_choose_the_nearer() -> None:
    near = np.linspace(0.0, 5.0, 11)
    np.testing.assert_allclose(boundary_distance(near, 0.3, 0.3, 0.28, 2.5), near, rtol=1e-14)
    assert np.abs(distance_advantage(near, 0.3, 0.3, 0.28, 2.5)).max() < 1e-14


def test_overloaded_sites_are_never_and_always_beaten() -> None:
    assert float(boundary_distance(0.4, 0.3, np.inf, 0.28, 2.5)) == 0.0
    assert float(boundary_distance(0.4, np.inf, 0.3, 0.28, 2.5)) == np.inf
