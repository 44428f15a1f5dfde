"""The FCFS queue against the definition and against the event loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.serving.events import ServingEngine
from geoedge.serving.queue import fcfs_starts, simulate_waits
from geoedge.serving.records import Requests
from geoedge.theory import erlang_c, mean_and_error, mean_wait

TIMES = st.lists(st.floats(0, 20), min_size=1, max_size=40)


@given(gaps=TIMES, servers=st.integers(1, 6), data=st.data())
@settings(deadline=None)
def test_definition(gaps, servers, data):
    """Nobody starts before arriving or before predecessors, servers suffice, and none idles while one waits."""
    arrival = np.cumsum(gaps)
    service = np.array(data.draw(st.lists(st.floats(0, 20), min_size=len(gaps), max_size=len(gaps))))
    start = fcfs_starts(arrival, service, servers)
    assert (start >= arrival).all()
    assert (np.diff(start) >= 0).all()
    for k in range(len(gaps)):
        release = (start + service)[:k]
        assert (release > start[k]).sum() < servers
        if start[k] > arrival[k]:
            # Just before it started, all servers were held: one of them was released at this very instant.
            assert ((release >= start[k]) & (start[:k] <= start[k])).sum() >= servers
            assert (release == start[k]).any()


def test_one_server_is_the_lindley_recursion():
    rng = np.random.default_rng(0)
    arrival, service = np.cumsum(rng.exponential(1.0, 500)), rng.exponential(0.9, 500)
    wait = np.zeros(500)
    for k in range(1, 500):
        wait[k] = max(0.0, wait[k - 1] + service[k - 1] - (arrival[k] - arrival[k - 1]))
    np.testing.assert_allclose(fcfs_starts(arrival, service, 1) - arrival, wait, atol=1e-9)


def test_enough_servers_means_no_wait():
    rng = np.random.default_rng(1)
    arrival, service = np.sort(rng.uniform(0, 10, 50)), rng.exponential(100, 50)
    assert (fcfs_starts(arrival, service, 50) == arrival).all()


@pytest.mark.parametrize("servers", [1, 2, 7, 200])
def test_event_loop_agrees_at_one_site(servers):
    rng = np.random.default_rng(servers)
    m = 20_000
    arrival = np.cumsum(rng.exponential(1 / servers, m))
    service = rng.gamma(0.5, 1.9, m)
    requests = Requests(arrival, np.zeros(m), np.zeros(m), np.zeros(m), service)
    engine = ServingEngine(
        [[0.0, 0.0]], 0, servers, [[0.3]], [1.0], delay_coefficient=0.3, delay_exponent=2.0, law="tabulated"
    )
    engine.run(requests, arrival[-1])
    engine.finish()
    records = engine.records()
    assert (records.arrived_s == arrival).all()
    assert (records.started_s == fcfs_starts(arrival, service, servers)).all()
    assert (records.finished_s == records.started_s + service).all()
    np.testing.assert_allclose(records.ttft_s, records.started_s - arrival + 0.3)


@pytest.mark.parametrize(
    ("arrival", "service", "servers", "words"),
    [
        ([1.0, 0.0], [1.0, 1.0], 1, "nondecreasing"),
        ([0.0, np.nan], [1.0, 1.0], 1, "nondecreasing"),
        ([0.0], [1.0, 1.0], 1, "one length"),
        ([0.0], [-1.0], 1, "service_s"),
        ([0.0], [1.0], 0, "concurrency"),
    ],
)
def test_wrong_input_is_named(arrival, service, servers, words):
    with pytest.raises(ValueError, match=words):
        fcfs_starts(arrival, service, servers)


@pytest.mark.parametrize("servers", [1, 5])
def test_simulated_waits_follow_the_formula(servers):
    """M/M/c by batch means; with constant service and one server, half the wait (Pollaczek and Khinchine)."""
    rate, mu = 0.75 * servers, 1.0
    waits = simulate_waits(rate, mu, servers, 400_000, np.random.default_rng(servers))
    assert waits.shape == (400_000,)
    for value, expected in ((waits, mean_wait(rate, mu, servers)), (waits > 0, erlang_c(rate / mu, servers))):
        mean, error = mean_and_error(value, batches=50)
        assert error < 0.05 * expected
        assert abs(mean - expected) < 4 * error
    if servers == 1:
        ones = simulate_waits(rate, mu, 1, 400_000, np.random.default_rng(7), marks=lambda rng, n: np.ones(n))
        mean, error = mean_and_error(ones, batches=50)
        assert abs(mean - 0.75 / (2 * 0.25)) < 4 * error < 0.2


def test_a_warm_up_is_cut():
    """Without it the first customer finds an empty site; with it the same customers are there, later."""
    whole = simulate_waits(0.9, 1.0, 1, 1000, np.random.default_rng(1), warm_up=0)
    assert whole[0] == 0.0
    np.testing.assert_array_equal(
        simulate_waits(0.9, 1.0, 1, 900, np.random.default_rng(1), warm_up=100), whole[100:]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0.0, 1.0, 1, 10), "`arrival_rate` 0.0"),
        ((1.0, np.nan, 1, 10), "`service_rate` nan"),
        ((2.0, 1.0, 2, 10), "`arrival_rate` 2.0 must be below the 2.0 /s"),
        ((0.5, 1.0, 1, 0), "`customers` 0"),
    ],
)
def test_what_cannot_be_simulated_is_named(arguments, words):
    with pytest.raises(ValueError, match=words) as caught:
        simulate_waits(*arguments, np.random.default_rng(1))
    assert "\n" not in str(caught.value)
