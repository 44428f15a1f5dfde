"""The compiled queue and powers against the functions that they stand in for."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.compiled import kernel
from geoedge.theory import normalised_wait_and_slope, offered_load_for_wait
from geoedge.theory._erlang import load_for_wait, wait_and_slope
from geoedge.theory._powers import exponential, power


def loads(rng: np.random.Generator, count: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Return loads and servers: 1 to 10,000 servers, utilisations from 1e-3 to 1 − 1e-12."""
    servers = np.floor(10.0 ** rng.uniform(0.0, 4.0, count))
    near, far = 1.0 - 10.0 ** rng.uniform(-12.0, 0.0, count), 10.0 ** rng.uniform(-3.0, 0.0, count)
    return servers * np.where(rng.random(count) < 0.7, near, far), servers


def test_wait_and_slope_are_those_of_the_queue() -> None:
    load, servers = loads(np.random.default_rng(0))
    expected, expected_slope = normalised_wait_and_slope(load, servers)
    wait, slope = wait_and_slope(load, servers)
    counts = expected > 1e-250
    np.testing.assert_allclose(wait[counts], expected[counts], rtol=2e-12)
    np.testing.assert_allclose(slope[counts], expected_slope[counts], rtol=2e-12)
    assert (wait[~counts] <= 1e-249).all()


def test_the_inverse_is_that_of_the_queue() -> None:
    load, servers = loads(np.random.default_rng(1))
    wait = normalised_wait_and_slope(load, servers)[0]
    wait[wait <= 1e-250] = 0.5
    np.testing.assert_allclose(load_for_wait(wait, servers), offered_load_for_wait(wait, servers), rtol=1e-13)


def test_ends_of_the_queue() -> None:
    servers = np.array([1.0, 5.0, 5.0, 5.0])
    wait, slope = wait_and_slope(np.array([0.0, 0.0, 5.0, 7.0]), servers)
    assert wait.tolist() == [0.0, 0.0, np.inf, np.inf]
    assert slope.tolist() == [1.0, 0.0, np.inf, np.inf]
    assert load_for_wait(np.array([0.0, np.inf, 1e300]), servers[:3]).tolist() == [0.0, 5.0, 5.0]


@kernel
def powers(x: np.ndarray, exponent: float, out: np.ndarray) -> None:
    for j in range(x.size):
        out[j] = power(x[j], exponent)


@kernel
def exponentials(x: np.ndarray, out: np.ndarray) -> None:
    for j in range(x.size):
        out[j] = exponential(x[j])


@pytest.mark.parametrize("exponent", [0.125, 0.8, 1.0, 1.5, 2.0, -0.7])
def test_powers(exponent: float) -> None:
    # an odd count, so that the numbers left over by the vectors are tried too
    for decades, tolerance in ((12.0, 1e-14), (150.0, 2e-13)):
        x = 10.0 ** np.random.default_rng(0).uniform(-decades, decades / 6.0, 9999)
        out = np.empty_like(x)
        powers(x, exponent, out)
        np.testing.assert_allclose(out, x**exponent, rtol=tolerance)


def test_power_of_nothing_and_of_one() -> None:
    out = np.empty(2)
    powers(np.array([0.0, 1.0]), 0.8, out)
    assert 0.0 <= out[0] < 1e-200
    assert out[1] == 1.0


def test_exponentials() -> None:
    x = np.random.default_rng(0).uniform(-700.0, 700.0, 9999)
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=5e-16)
    exponentials(np.array([-1e4, -np.inf, 0.0]), out)
    assert out[:3].tolist() == pytest.approx([0.0, 0.0, 1.0], abs=1e-303)
