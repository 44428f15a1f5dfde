"""M/M/c in its time against matrix exponentials, queues at rest, and events."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.special import gammaincc

from geoedge.errors import GeoEdgeError
from geoedge.serving.queue import fcfs_starts
from geoedge.theory import erlang_c, relaxation_time, transient_wait_tail, wait_cdf

TIMES = np.array([0.0, 0.3, 1.0, 4.0])
STATES = 90


def generator(births: float, deaths: float, servers: int) -> np.ndarray:
    """Return the rates between numbers of requests at a site, which cannot be more than `STATES` - 1."""
    n = np.arange(STATES)
    up, down = np.where(n < STATES - 1, births, 0.0), np.minimum(n, servers) * deaths
    return np.diag(up[:-1], 1) + np.diag(down[1:], -1) - np.diag(up + down)


def by_exponentials(stretches: list[tuple[float, float, int, float]]) -> np.ndarray:
    """Return the tails of stretches (λ, μ, c, length), the mean law of each from one exponential of a double matrix."""
    law, tails = np.eye(STATES)[0], []
    for births, deaths, servers, length in stretches:
        rates = generator(births, deaths, servers)
        double = np.block([[rates, np.eye(STATES)], [np.zeros((STATES, 2 * STATES))]])
        both = law @ expm(double * length)[:STATES]
        law, mean = both[:STATES], both[STATES:] / length
        waiting = np.arange(STATES - servers)
        tails.append(mean[servers:] @ gammaincc(waiting[:, None] + 1.0, servers * deaths * TIMES))
    return np.array(tails)


@pytest.mark.parametrize(
    "stretches",
    [
        [(1.5, 1.0, 2, 3.0)],
        [(4.0, 1.0, 3, 10.0), (1.0, 1.0, 3, 2.0), (2.0, 0.8, 4, 30.0)],  # beyond capacity, then less and less
        [(2.0, 1.0, 1, 8.0), (0.0, 1.0, 1, 3.0), (0.5, 2.0, 1, 0.5)],  # nobody comes for a while
        [(2.5, 1.0, 5, 9.0), (2.5, 1.0, 2, 9.0), (2.5, 1.0, 5, 9.0)],  # servers go and come back
    ],
)
def test_it_is_the_matrix_exponentials(stretches):
    found = transient_wait_tail(TIMES, *zip(*stretches, strict=True))
    np.testing.assert_allclose(found, by_exponentials(stretches), atol=1e-11)


@pytest.mark.parametrize(("servers", "utilization"), [(1, 0.5), (5, 0.9), (40, 0.95)])
def test_after_a_long_time_it_is_erlangs_formula(servers, utilization):
    rate = servers * utilization
    length = 400.0 * relaxation_time(rate, 1.0, servers)
    found = transient_wait_tail(TIMES, [rate, rate], [1.0, 1.0], [servers, servers], [length, length])
    np.testing.assert_allclose(found[1], 1.0 - wait_cdf(TIMES, rate, 1.0, servers), rtol=1e-8, atol=1e-10)
    assert found[1, 0] == pytest.approx(erlang_c(rate, servers), rel=1e-9)
    assert (found[0] < found[1]).all()  # from empty on


def test_beyond_capacity_the_queue_grows_as_a_fluid_does():
    (tail,) = transient_wait_tail([50.0, 100.0, 150.0, 450.0], [1.2], [0.2], [5], [1000.0])
    # after t (1.2 − 1) t wait, and one starts every second: 100 s at half-time
    assert tail == pytest.approx([0.75, 0.5, 0.25, 0.0], abs=0.03)


def test_requests_one_by_one_wait_as_long():
    """Poisson arrivals and exponential services from an empty site on, 15 minutes near capacity and 15 beyond."""
    rate, length, rng = np.array([1.9, 2.2]), 900.0, np.random.default_rng(1)
    tails = np.empty((400, 2, len(TIMES)))
    for tail in tails:
        arrivals = [length * (k + np.sort(rng.random(rng.poisson(rate[k] * length)))) for k in range(2)]
        came = np.concatenate(arrivals)
        wait = fcfs_starts(came, 2.4 * rng.standard_exponential(len(came)), 5) - came
        longer = wait[:, None] > TIMES + 1e-9
        first = len(arrivals[0])
        tail[:] = longer[:first].sum(axis=0), longer[first:].sum(axis=0)
    tails /= (rate * length)[:, None]
    expected = transient_wait_tail(TIMES, rate, [1 / 2.4] * 2, [5, 5], [length] * 2)
    error = tails.std(axis=0, ddof=1) / np.sqrt(len(tails))
    assert (error < 0.02).all()
    assert (np.abs(tails.mean(axis=0) - expected) < 3.5 * error).all()


def test_nobody_waits_for_ever():
    assert transient_wait_tail([np.inf, 1e300], [0.5], [1.0], [1], [10.0]).tolist() == [[0.0, 0.0]]


def test_no_wait_is_shorter_than_none():
    assert transient_wait_tail([-1.0], [1.0], [1.0], [2], [1.0]) == 1.0


def test_time_to_rest_is_that_of_one_server_and_at_least_a_service():
    assert relaxation_time(0.81, 1.0, 1) == pytest.approx(100.0)
    np.testing.assert_allclose(relaxation_time([0.0, 2.0, 2.5], 0.5, 4), [2.0, np.inf, np.inf])


def test_what_is_left_of_the_start_falls_by_e_in_it():
    """Late, near capacity: the part of an M/M/5 queue that is not yet there falls as the relaxation time says."""
    rate, service = 4.5, 1.0
    rest = float(relaxation_time(rate, service, 5))
    lengths = np.array([8.0, 0.01, 1.0, 0.01]) * rest
    found = transient_wait_tail([0.0], [rate] * 4, [service] * 4, [5] * 4, lengths)[:, 0]
    missing = erlang_c(rate, 5) - found[[1, 3]]
    # besides the exponential a power −3/2 of the time, as for one server
    assert missing[1] / missing[0] == pytest.approx(np.exp(-1.0) * (9.0 / 8.0) ** -1.5, rel=0.03)


def test_a_load_measured_in_it_is_known_to_seven_tenths_of_what_it_leaves_free():
    rate, servers, rng = 4.9, 5, np.random.default_rng(3)
    rest = float(relaxation_time(rate, 1.0, servers))
    count = rng.poisson(rate * rest, 4000)
    load = rng.standard_gamma(count) / rest
    assert load.std() / (servers - rate) == pytest.approx(np.sqrt(0.5), rel=0.05)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([0.0], [-1.0], [1.0], [1], [1.0]), "`arrival_rate` must hold rates >= 0"),
        (([0.0], [1.0], [0.0], [1], [1.0]), "`service_rate` must hold rates > 0"),
        (([0.0], [1.0], [1.0], [1.5], [1.0]), "`concurrency` must hold positive integers"),
        (([0.0], [1.0], [1.0], [1], [0.0]), "`duration` must hold times > 0"),
        (([np.nan], [1.0], [1.0], [1], [1.0]), "`time` must hold times without NaN"),
    ],
)
def test_what_has_no_meaning_is_refused(given, words):
    with pytest.raises(GeoEdgeError, match=words):
        transient_wait_tail(*given)
    if "duration" not in words and "time" not in words:
        with pytest.raises(GeoEdgeError, match=words):
            relaxation_time(*given[1:4])
