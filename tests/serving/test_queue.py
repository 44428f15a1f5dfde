"""The FCFS queue against the definition and against the event loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.serving.events import ServingEngine
from geoedge.serving.queue import fcfs_starts
from geoedge.serving.records import Requests

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
