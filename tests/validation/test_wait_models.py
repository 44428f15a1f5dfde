"""Every wait model against the exact engine and Ciw, and fields with other queues against the engine's own law."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import stats

from geoedge.field import solve_field, torus_problem
from geoedge.serving import Advert, Requests, ServingEngine, fcfs_starts
from geoedge.streams import stream
from geoedge.theory import (
    PhaseTypeQueue,
    RenewalQueue,
    TabulatedQueue,
    TieredNetwork,
    TwoMomentQueue,
    make_law,
    mean_and_error,
    queue_for,
    solve_equilibrium,
    unit_quantile,
)

CONFIDENCE = 0.999


def assert_inside(values, expected, widest, batches=40):
    """Assert that the batch-means interval holds the expected value and is at most so wide, relatively.

    The first tenth is cut as warm-up.
    """
    values = values[len(values) // 10 :]
    means = values[: len(values) // batches * batches].reshape(batches, -1).mean(axis=1)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, batches - 1) * means.std(ddof=1) / np.sqrt(batches)
    assert half < widest * expected
    assert abs(means.mean() - expected) < half


def gaps_and_services(name, arrival_scv, service, m):
    """Return arrival times at unit rate, renewal with this squared coefficient of variation, and unit services."""
    rng = stream(2026, "wait models", name)
    marks = rng.exponential(size=m)
    gaps = np.ones(m) if arrival_scv == 0.0 else unit_quantile(arrival_scv, marks)
    return np.cumsum(gaps), service(rng.exponential(size=m))


def waits_by_engine(arrived, services, servers):
    """Return the waits at one site of the event engine, whatever the arrivals."""
    m = arrived.size
    engine = ServingEngine(
        [[0.0, 0.0]], 0, servers, [[0.0]], [1.0], delay_coefficient=0.3, delay_exponent=2.0, law="tabulated"
    )
    engine.run(Requests(arrived, np.zeros(m), np.zeros(m), np.zeros(m), services), arrived[-1])
    engine.finish()
    return engine.records().wait_s


EXACT = {
    "M/D/18": (1.0, np.ones_like, TwoMomentQueue(0.0), 18, 0.9),
    "M/E2/6": (1.0, lambda m: unit_quantile(0.5, m), PhaseTypeQueue.of_scv(0.5), 6, 0.85),
    "M/E8/2": (1.0, lambda m: unit_quantile(0.125, m), PhaseTypeQueue.of_scv(0.125), 2, 0.8),
    "M/H2/14": (1.0, lambda m: unit_quantile(2.5, m), PhaseTypeQueue.of_scv(2.5), 14, 0.85),
    "H2/M/6": (4.0, np.copy, RenewalQueue(4.0), 6, 0.7),
    "D/M/4": (0.0, np.copy, RenewalQueue(0.0), 4, 0.9),
}
"""Arrivals, service of a mark, the queue that should be exact for them, servers and utilisation."""


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_exact_wait_models(name):
    """Mean, probability of waiting and two points of the distribution, each inside its batch-means interval."""
    scv, service, queue, servers, rho = EXACT[name]
    arrived, services = gaps_and_services(name, scv, service, 1_800_000)
    wait = waits_by_engine(arrived / (rho * servers), services, servers)
    mean = float(queue.mean_wait(rho * servers, 1.0, servers))
    assert_inside(wait, mean, widest=0.12)
    if not (isinstance(queue, TwoMomentQueue)):  # which is exact for the mean of constant service alone
        delayed = 1.0 - float(queue.wait_cdf(0.0, rho * servers, 1.0, servers))
        assert_inside(wait > 1e-9, delayed, widest=0.05)
        for time in (0.5 * mean / delayed, 2.0 * mean / delayed):
            assert_inside(
                wait > time, 1.0 - float(queue.wait_cdf(time, rho * servers, 1.0, servers)), widest=0.15
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("servers", "rho", "name"), [(5, 0.8, "prefill_plus_decode"), (14, 0.85, "deterministic")]
)
def test_the_queue_of_a_law_at_one_site(servers, rho, name):
    """Types mixed at one site, by the engine: two moments are within 4 % in the mean and 0.014 in the distribution."""
    prefill, decode, mix = np.array([[0.1, 0.9]]), np.array([1.2, 0.7]), np.array([0.6, 0.4])
    occupancy = float(mix @ (prefill[0] + decode))
    rate, m = rho * servers / occupancy, 1_500_000
    rng = stream(2026, "law", name)
    created = np.cumsum(rng.exponential(1 / rate, m))
    kind = (rng.random(m) >= mix[0]).astype(np.int64)
    engine = ServingEngine(
        [[0.0, 0.0]], 0, servers, prefill, decode, delay_coefficient=0.28, delay_exponent=2.5, law=name
    )
    engine.run(Requests(created, np.zeros(m), np.zeros(m), kind, rng.exponential(size=m)), created[-1])
    engine.finish()
    wait = engine.records().wait_s[m // 10 :]
    queue = queue_for(name).for_mix([mix], prefill, prefill + decode)
    assert wait.mean() == pytest.approx(float(queue.mean_wait(rate, 1 / occupancy, servers)[0]), rel=0.04)
    for time in (0.0, 0.3, 1.0):
        kept = float(queue.wait_cdf(time, rate, 1 / occupancy, servers)[0])
        assert (wait <= time + 1e-12).mean() == pytest.approx(kept, abs=0.014)


@pytest.mark.parametrize(("arrival_scv", "service_scv"), [(2.0, 0.5), (4.0, 0.25), (4.0, 2.0), (4.0, 4.0)])
def test_bursts_by_two_moments_are_as_good_as_they_say(arrival_scv, service_scv):
    """Mean waits of GI/G/c: within 5 % at a utilisation of 0.85 and 20 % at 0.6, beyond the error of the simulation."""
    queue, gaps = TwoMomentQueue(service_scv, arrival_scv), []
    arrived, services = gaps_and_services(
        f"bursts {arrival_scv} {service_scv}", arrival_scv, lambda m: unit_quantile(service_scv, m), 1_000_000
    )
    for rho, most in ((0.6, 0.2), (0.85, 0.05)):
        for servers in (1, 6, 18):
            created = arrived / (rho * servers)
            wait = (fcfs_starts(created, services, servers) - created)[100_000:]
            mean, error = mean_and_error(wait, batches=40)
            gaps.append(float(queue.mean_wait(rho * servers, 1.0, servers)) / mean - 1.0)
            assert abs(gaps[-1]) < most + 3.0 * error / mean
    assert np.abs(gaps).max() > 0.02  # a rule, no exact queue


@pytest.mark.slow
def test_a_table_of_simulated_waits_is_the_queue_it_came_from():
    servers, samples = 6, {}
    for rho in (0.5, 0.7, 0.85, 0.93):
        arrived, services = gaps_and_services(f"table {rho}", 1.0, lambda m: unit_quantile(3.0, m), 1_000_000)
        arrived = arrived / (rho * servers)
        samples[servers, rho] = (fcfs_starts(arrived, services, servers) - arrived)[100_000:]
    table, exact = TabulatedQueue.from_samples(samples), PhaseTypeQueue.of_scv(3.0)
    for rho in (0.6, 0.8, 0.9):  # between the rows
        load = rho * servers
        assert float(table.mean_wait(load, 1.0, servers)) == pytest.approx(
            float(exact.mean_wait(load, 1.0, servers)), rel=0.08
        )
        gap = table.wait_cdf(np.linspace(0, 4, 30), load, 1.0, servers) - exact.wait_cdf(
            np.linspace(0, 4, 30), load, 1.0, servers
        )
        assert np.abs(gap).max() < 0.015


@pytest.mark.parametrize(("scv", "servers", "rho"), [(0.5, 3, 0.8), (2.0, 5, 0.6)])
def test_ciw_agrees_on_the_phase_type_queue(scv, servers, rho):
    """Ciw draws the law by its own sampler; a loose interval, as it is slow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ciw's own, not ours
        import ciw

        law = PhaseTypeQueue.of_scv(scv).service
        done = -np.array(law.rates).sum(axis=1)
        matrix = [[*row, float(out)] for row, out in zip(law.rates, done, strict=True)]
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Exponential(rho * servers)],
            service_distributions=[ciw.dists.PhaseType([*law.start, 0.0], [*matrix, [0.0] * len(matrix[0])])],
            number_of_servers=[servers],
        )
        ciw.seed(4)
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_customers(40_000, method="Finish")
        records = sorted(simulation.get_all_records(), key=lambda record: record.arrival_date)
    wait = np.array([record.waiting_time for record in records])
    queue = PhaseTypeQueue.of_scv(scv)
    assert_inside(wait, float(queue.mean_wait(rho * servers, 1.0, servers)), widest=0.5, batches=25)
    assert_inside(
        wait > 1e-9, 1.0 - float(queue.wait_cdf(0.0, rho * servers, 1.0, servers)), widest=0.15, batches=25
    )


def town():
    """Return a network of two tiers and its sites and demand on a torus."""
    prefill = np.array([[0.1, 0.6], [0.05, 0.3]])
    network = TieredNetwork(
        [0.7, 0.5], [6, 4], [0.5, 0.5], prefill, prefill + 0.5, 6.3, 0.28, 2.5,
        [[0, 0], [512, 2048]], [1024, 4096], [0.1, 0.6],
    )  # fmt: skip
    problem = torus_problem(network, 5.0, stream(9, "town"), places=80**2)
    return network, problem


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "queue", "close"),
    [
        (make_law("phase_type", 3.0), queue_for("phase_type", 3.0), 0.007),
        (make_law("prefill_plus_decode"), queue_for("prefill_plus_decode"), 0.005),
    ],
    ids=["phase type", "prefill plus decode"],
)
def test_field_and_engine_with_one_service_law(law, queue, close):
    """Waits advertised as the field has them: coverage agrees, and would not with M/M/c in its place."""
    _, problem = town()
    answer = solve_field(problem, queue=queue, tolerance=1e-5)
    assert answer.converged
    assert answer.stable
    side, rng, m = 5.0, stream(9, "town", "requests"), 800_000
    created = np.sort(rng.uniform(0.0, m / problem.request_rate, m))
    share = problem.rate.sum(axis=0) / problem.request_rate
    kind = (rng.random(m) >= share[0]).astype(np.int64)
    place = rng.integers(0, len(problem.geometry.point_xy), m)
    x, y = (problem.geometry.point_xy[place] + rng.uniform(-0.5, 0.5, (m, 2)) * side / 80).T
    engine = ServingEngine(
        problem.geometry.site_xy,
        problem.profile,
        problem.servers,
        problem.prefill_time[problem.profile],
        (problem.occupancy_time - problem.prefill_time)[0],
        delay_coefficient=0.28,
        delay_exponent=2.5,
        period_km=(side, side),
        law=law,
    )
    engine.run(
        Requests(created, x, y, kind, rng.exponential(size=m)),
        created[-1],
        Advert(wait_s=answer.advertised_wait),
    )
    engine.finish()
    ttft = engine.records().ttft_s[m // 10 :]
    erlang = solve_field(problem, tolerance=1e-5)
    taus = (0.4, 0.7, 1.0, 1.5)
    seen = np.array([(ttft <= tau).mean() for tau in taus])
    own, other = (np.array([a.ttft_coverage(tau) for tau in taus]) for a in (answer, erlang))
    assert np.abs(own - seen).max() < close
    assert np.abs(other - seen).max() > 2 * close


def test_phase_type_theory_and_its_two_moments_agree_end_to_end():
    network, _ = town()
    exact = solve_equilibrium(network, queue=PhaseTypeQueue.of_scv(3.0))
    rule = solve_equilibrium(network, queue=TwoMomentQueue(3.0))
    np.testing.assert_allclose(rule.mean_wait, exact.mean_wait, rtol=0.03)
