"""The M/M/c queue against exact rational arithmetic and its own inverses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from geoedge.errors import GeoEdgeError
from geoedge.theory.queueing import (
    ErlangC,
    WaitModel,
    erlang_c,
    mean_wait,
    normalised_wait,
    normalised_wait_and_slope,
    offered_load_for_wait,
    offered_load_slope,
    wait_cdf,
    wait_quantile,
)

servers = st.integers(1, 400)
utilizations = st.floats(0.01, 0.999)


def exact_erlang_c(load: Fraction, c: int) -> Fraction:
    """Return Eq. (18) by its recursion, without any rounding."""
    blocked = Fraction(1)
    for k in range(1, c + 1):
        blocked = load * blocked / (k + load * blocked)
    return c * blocked / ((c - load) + load * blocked)


@pytest.mark.parametrize("c", [1, 2, 3, 7, 15, 16, 17, 64, 170, 171, 200])
@pytest.mark.parametrize("rho", [0.01, 0.3, 0.5, 0.82, 0.99, 1.0 - 2.0**-30])
def test_erlang_c_is_exact(c: int, rho: float) -> None:
    load = rho * c
    exact = exact_erlang_c(Fraction(load), c) if c <= 64 else None
    if exact is None:  # the float recursion is stable and fast for many servers
        blocked = 1.0
        for k in range(1, c + 1):
            blocked = load * blocked / (k + load * blocked)
        exact = Fraction(c * blocked / ((c - load) + load * blocked))
    assert float(erlang_c(load, c)) == pytest.approx(float(exact), rel=2e-12, abs=1e-300)


def test_ten_thousand_servers() -> None:
    for rho in (0.9, 0.99, 0.9999, 1.0 - 1e-9):
        load, blocked = 10_000 * rho, 1.0
        for k in range(1, 10_001):
            blocked = load * blocked / (k + load * blocked)
        expected = 10_000 * blocked / ((10_000 - load) + load * blocked)
        assert float(erlang_c(load, 10_000)) == pytest.approx(expected, rel=1e-10)


def test_one_and_two_servers_in_closed_form() -> None:
    rho = np.linspace(0.0, 0.999, 50)
    np.testing.assert_allclose(erlang_c(rho, 1), rho, rtol=1e-13)
    np.testing.assert_allclose(erlang_c(2 * rho, 2), 2 * rho**2 / (1 + rho), rtol=1e-13)


def test_overload_always_waits_and_never_ends() -> None:
    assert erlang_c([3.0, 4.0, 9.0], 3).tolist() == [1.0, 1.0, 1.0]
    assert mean_wait([3.0, 4.0], 1.0, 3).tolist() == [np.inf, np.inf]
    assert wait_cdf([0.0, 1e9], 3.0, 1.0, 3).tolist() == [0.0, 0.0]
    assert wait_quantile([0.0, 0.5], 3.0, 1.0, 3).tolist() == [0.0, np.inf]
    assert normalised_wait(3.0, 3) == np.inf
    assert normalised_wait_and_slope(3.0, 3)[1] == np.inf


@pytest.mark.parametrize("gap", [1e-3, 1e-8, 1e-12, 1e-15])
def test_mean_wait_keeps_its_digits_next_to_saturation(gap: float) -> None:
    # inputs are exact binary numbers, so that the true mean is known however close ρ is to one
    c, mu = 6, 0.7
    arrivals = float(np.nextafter(c * mu * (1.0 - gap), 0.0))
    slack = c * Fraction(mu) - Fraction(arrivals)
    expected = float(exact_erlang_c(Fraction(arrivals) / Fraction(mu), c) / slack)
    assert float(mean_wait(arrivals, mu, c)) == pytest.approx(expected, rel=1e-12)


@given(st.integers(1, 60), utilizations, st.floats(0.1, 10.0))
@settings(max_examples=40, deadline=None)
def test_mean_is_the_integral_of_the_tail(c: int, rho: float, mu: float) -> None:
    arrivals = rho * c * mu
    scale = 1.0 / (c * mu - arrivals)
    # over u = w (cμ − λ), where every tail decays alike; none of the formulae is used
    tail, _ = quad(lambda u: 1.0 - float(wait_cdf(u * scale, arrivals, mu, c)), 0.0, 50.0, epsabs=1e-12)
    assert float(mean_wait(arrivals, mu, c)) == pytest.approx(tail * scale, rel=1e-7, abs=1e-11 * scale)
    assert float(mean_wait(arrivals, mu, c)) == pytest.approx(
        float(normalised_wait(arrivals / mu, c)) / mu, rel=1e-9, abs=1e-300
    )


@given(servers, utilizations, st.floats(0.0, 1.0, exclude_max=True))
@settings(max_examples=60, deadline=None)
def test_quantile_inverts_the_distribution(c: int, rho: float, level: float) -> None:
    arrivals = rho * c
    wait = float(wait_quantile(level, arrivals, 1.0, c))
    reached = float(wait_cdf(wait, arrivals, 1.0, c))
    assert reached >= level - 1e-12
    if wait > 0.0:
        assert reached == pytest.approx(level, abs=1e-12)


def test_distribution_has_its_atom_and_nothing_below() -> None:
    cdf = wait_cdf([-1.0, -1e-300, 0.0, 1.0, np.inf], 4.0, 1.0, 6)
    assert cdf[0] == cdf[1] == 0.0
    assert cdf[2] == pytest.approx(1.0 - float(erlang_c(4.0, 6)))
    assert cdf[4] == 1.0
    assert wait_quantile(1.0, 4.0, 1.0, 6) == np.inf


@given(st.integers(1, 10_000), st.floats(1e-6, 1.0, exclude_max=True))
@settings(max_examples=150, deadline=None)
def test_inverse_gives_back_the_load(c: int, rho: float) -> None:
    load = rho * c
    wait = float(normalised_wait(load, c))
    if wait > 1e-290:
        assert float(offered_load_for_wait(wait, c)) == pytest.approx(load, rel=1e-11)


def test_inverse_at_its_ends() -> None:
    assert offered_load_for_wait([0.0, np.inf], 7).tolist() == [0.0, 7.0]
    huge = float(offered_load_for_wait(1e6, 7))
    assert 7.0 - huge == pytest.approx(1e-6, rel=1e-4)  # heavy traffic: c − a ≈ 1/w
    np.testing.assert_allclose(offered_load_for_wait([0.1, 1.0, 9.0], 1), [1 / 11, 0.5, 0.9], rtol=1e-13)


@pytest.mark.parametrize(("load", "c"), [(0.4, 1), (1.1, 2), (5.0, 6), (13.9, 14), (95.0, 100)])
def test_slopes_are_derivatives(load: float, c: int) -> None:
    h = 1e-5 * (c - load)
    numeric = (normalised_wait(load + h, c) - normalised_wait(load - h, c)) / (2 * h)
    assert float(normalised_wait_and_slope(load, c)[1]) == pytest.approx(float(numeric), rel=1e-7)
    wait = float(normalised_wait(load, c))
    assert float(offered_load_slope(wait, c)) == pytest.approx(1.0 / float(numeric), rel=1e-7)


def test_slope_of_an_idle_queue() -> None:
    assert normalised_wait_and_slope([0.0, 0.0], [1, 2])[1].tolist() == pytest.approx([1.0, 0.0])
    assert offered_load_slope(0.0, 2) > 1e100


def test_everything_broadcasts() -> None:
    assert erlang_c(np.ones((4, 1)), [2, 3, 5]).shape == (4, 3)
    assert wait_cdf(np.zeros(5), 1.0, 1.0, 3).shape == (5,)
    assert offered_load_for_wait(0.5, np.array([[1], [2]])).shape == (2, 1)


def test_erlang_c_is_a_wait_model() -> None:
    model: WaitModel = ErlangC()
    assert isinstance(model, WaitModel)
    assert model.mean_wait(4.0, 1.0, 6) == mean_wait(4.0, 1.0, 6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: erlang_c(-1.0, 2), "`offered_load` must hold nonnegative numbers, not -1"),
        (lambda: erlang_c(np.nan, 2), "offered_load"),
        (lambda: erlang_c(1.0, 0), "`concurrency` must hold positive integers, not 0"),
        (lambda: erlang_c(1.0, 2.5), "concurrency"),
        (lambda: mean_wait(1.0, 0.0, 2), "`service_rate`"),
        (lambda: mean_wait(np.inf, 1.0, 2), "`arrival_rate`"),
        (lambda: wait_cdf(np.nan, 1.0, 1.0, 2), "NaN"),
        (lambda: wait_quantile(1.5, 1.0, 1.0, 2), r"must lie in \[0, 1\]"),
        (lambda: offered_load_for_wait(-0.1, 2), "`wait`"),
    ],
)
def test_bad_input_is_one_line(call, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
