"""The number at an M/M/c site carried on: against differences of Poisson numbers, its own balance, and bounded work."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import skellam

from geoedge.theory._births_deaths import passed

HALF_HOUR_S = 1800.0


def law_at(number: int, size: int) -> np.ndarray:
    """Return the law of a number that is known."""
    return np.eye(1, size, number)[0]


@pytest.mark.parametrize(("births", "deaths", "number"), [(6.0, 1.0, 200), (2.0, 1.5, 400), (0.0, 1.5, 300)])
def test_while_all_servers_are_busy_it_is_a_difference_of_poisson_numbers(births, deaths, number):
    length, size = 30.0, 700
    law = law_at(number, size)
    mean, _ = passed(law, births, deaths, 2, length)
    n, drift = np.arange(size), births - 2.0 * deaths
    expected = skellam.pmf(n - number, max(births, 1e-12) * length, 2.0 * deaths * length)
    np.testing.assert_allclose(law, expected, atol=1e-10)
    middle = mean @ n
    assert middle == pytest.approx(number + drift * length / 2.0)
    spread = (births + 2.0 * deaths) * length / 2.0 + (drift * length) ** 2 / 12.0
    assert mean @ (n - middle) ** 2 == pytest.approx(spread, rel=1e-8)


@pytest.mark.parametrize("load", [0.0, 0.6, 0.98, 1.0, 1.02, 1.2, 3.0])
@pytest.mark.parametrize("number", [0, 3, 40, 900])
def test_who_is_there_are_those_who_came_less_those_who_were_served(load, number):
    """However a stretch is followed, its mean law and the law at its end must agree on that."""
    servers, deaths, length = 5, 0.25, 600.0
    births = load * servers * deaths
    law = law_at(number, 4000)
    mean, _ = passed(law, births, deaths, servers, length)
    n = np.arange(4000)
    assert mean.sum() == pytest.approx(1.0, abs=1e-10)
    served = deaths * length * (mean @ np.minimum(n, servers))
    assert law @ n == pytest.approx(number + births * length - served, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize(
    ("load", "servers", "deaths", "most"),
    [
        (1.5, 5, 0.25, 1e7),
        (1.2, 5, 0.25, 3e7),
        (1.02, 5, 0.25, 8e8),
        (0.9, 5, 0.25, 1e7),
        (1.2, 10, 1.0, 3e7),
    ],
)
def test_the_work_of_a_day_is_bounded_within_and_beyond_capacity(load, servers, deaths, most):
    births, work = load * servers * deaths, 0
    longest = int(
        36 * HALF_HOUR_S * max(births - servers * deaths, 0.0) + 20.0 * np.sqrt(births * 36 * HALF_HOUR_S)
    )
    law = law_at(0, longest + 100)
    for _ in range(36):
        work += passed(law, births, deaths, servers, HALF_HOUR_S)[1]
    assert work < most
