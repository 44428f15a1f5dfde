"""The queue against Erlang-C and Pollaczek–Khinchine by batch means, and against Ciw request by request."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from geoedge.serving.events import ServingEngine
from geoedge.serving.records import Requests
from geoedge.streams import stream

CONFIDENCE = 0.999


def erlang_c(servers, load):
    """Return the probability of waiting by its textbook sum, independent of the package's recursion."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def one_station(name, rate, servers, prefill, decode, law, m, spread_km=0.0):
    """Return the records of m Poisson requests at one site in the middle of a square."""
    rng = stream(2026, "validation", name)
    created = np.cumsum(rng.exponential(1 / rate, m))
    x, y = rng.uniform(-1, 1, (2, m)) * spread_km
    requests = Requests(created, x, y, np.zeros(m), rng.exponential(size=m))
    engine = ServingEngine(
        [[0.0, 0.0]],
        0,
        servers,
        [[prefill]],
        [decode],
        delay_coefficient=0.28,
        delay_exponent=2.5,
        law=law,
    )
    engine.run(requests, created[-1])
    engine.finish()
    return engine.records()


def assert_inside(values, expected, widest, batches=40):
    """Assert that the batch-means interval holds the expected value and is at most so wide, relatively.

    The first tenth is cut as warm-up.
    """
    values = values[len(values) // 10 :]
    means = values[: len(values) // batches * batches].reshape(batches, -1).mean(axis=1)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, batches - 1) * means.std(ddof=1) / np.sqrt(batches)
    assert half < widest * expected
    assert abs(means.mean() - expected) < half


@pytest.mark.slow
@pytest.mark.parametrize(("servers", "utilization"), [(1, 0.6), (6, 0.9), (9, 0.82), (18, 0.7)])
@pytest.mark.parametrize("spread_km", [0.0, 1.5])
def test_erlang_c(servers, utilization, spread_km):
    """Exponential services; with users spread out, the radio delay displaces arrivals, which stay Poisson."""
    occupancy = 0.8
    rate = utilization * servers / occupancy
    name = f"{servers}/{utilization}/{spread_km}"
    r = one_station(name, rate, servers, 0.3, 0.5, "exponential_mixture", 2_000_000, spread_km)
    wait = r.wait_s[np.argsort(r.arrived_s, kind="stable")]
    delayed = erlang_c(servers, utilization * servers)
    drain = servers / occupancy - rate
    assert_inside(wait, delayed / drain, widest=0.1)
    assert_inside(wait > 0, delayed, widest=0.05)
    for quantile in (0.5 / drain, 2.0 / drain):
        assert_inside(wait > quantile, delayed * math.exp(-drain * quantile), widest=0.2)
    assert abs((r.finished_s - r.started_s).mean() / occupancy - 1) < 4 / np.sqrt(len(r))


@pytest.mark.slow
def test_pollaczek_khinchine():
    """One server, prefill plus exponential decode: the mean wait is λ E[S²] / 2(1 − ρ)."""
    prefill, decode, rate = 0.4, 0.5, 0.8
    r = one_station("pk", rate, 1, prefill, decode, "prefill_plus_decode", 2_000_000)
    second_moment = (prefill + decode) ** 2 + decode**2
    assert_inside(r.wait_s, rate * second_moment / (2 * (1 - rate * (prefill + decode))), widest=0.1)


@pytest.mark.slow
def test_deterministic_service():
    """One server, constant service: half the wait of the exponential case."""
    r = one_station("md1", 0.8, 1, 0.4, 0.5, "deterministic", 1_000_000)
    assert_inside(r.wait_s, 0.8 * 0.81 / (2 * (1 - 0.72)), widest=0.1)


def ciw_waits(gaps, services, servers):
    """Return the waits that Ciw finds for given interarrival and service times."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ciw's own, not ours
        import ciw

        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Sequential([*gaps, math.inf])],
            service_distributions=[ciw.dists.Sequential(list(services))],
            number_of_servers=[servers],
        )
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_customers(len(gaps), method="Finish")
        records = sorted(simulation.get_all_records(), key=lambda record: record.arrival_date)
    return np.array([record.waiting_time for record in records])


@pytest.mark.parametrize(("servers", "load"), [(1, 0.9), (4, 0.95), (4, 1.2), (14, 0.8)])
def test_ciw_on_the_same_requests(servers, load):
    rng = stream(2026, "ciw", servers)
    m = 1500
    gaps, services = rng.exponential(1 / (load * servers), m), rng.gamma(2.0, 0.5, m)
    created = np.cumsum(gaps)
    engine = ServingEngine(
        [[0.0, 0.0]], 0, servers, [[0.0]], [1.0], delay_coefficient=0.3, delay_exponent=2.0, law="tabulated"
    )
    engine.run(Requests(created, np.zeros(m), np.zeros(m), np.zeros(m), services), created[-1])
    engine.finish()
    theirs = ciw_waits(gaps, services, servers)
    assert theirs.size == m
    np.testing.assert_allclose(engine.records().wait_s, theirs, atol=1e-8)
    assert theirs.max() > 0.5
