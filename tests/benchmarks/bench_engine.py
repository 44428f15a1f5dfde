"""Speed of the event engine beside Ciw and SimPy, in one run on one core: ``python tests/benchmarks/bench_engine.py``.

Only the ratios travel from machine to machine. Kernels are compiled before the clock starts.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable

import numpy as np
import simpy

from geoedge.serving.advertising import Advert
from geoedge.serving.events import ServingEngine
from geoedge.serving.queue import fcfs_starts
from geoedge.serving.records import Requests

SERVERS, OCCUPANCY, UTILIZATION = 18, 0.9, 0.8
REQUESTS_WANTED, SECONDS_ALLOWED, SIMPY_RATIO = 1_000_000, 10.0, 100.0


def best_of(times: int, call: Callable[[], object]) -> float:
    """Return the least wall-clock time of some calls [s]."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def ciw_station(m: int) -> float:
    """Return seconds per customer of Ciw at one M/M/c station."""
    import ciw

    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(UTILIZATION * SERVERS / OCCUPANCY)],
        service_distributions=[ciw.dists.Exponential(1 / OCCUPANCY)],
        number_of_servers=[SERVERS],
    )
    return best_of(2, lambda: ciw.Simulation(network).simulate_until_max_customers(m)) / m


def simpy_stations(m: int, stations: int) -> float:
    """Return seconds per customer of SimPy at M/M/c stations chosen at random."""

    def customer(env, station, waits):
        arrived = env.now
        with station.request() as turn:
            yield turn
            waits.append(env.now - arrived)
            yield env.timeout(random.expovariate(1 / OCCUPANCY))

    def source(env, places, waits):
        rate = stations * UTILIZATION * SERVERS / OCCUPANCY
        for _ in range(m):
            yield env.timeout(random.expovariate(rate))
            env.process(customer(env, places[random.randrange(stations)], waits))

    def run():
        env, waits = simpy.Environment(), []
        places = [simpy.Resource(env, SERVERS) for _ in range(stations)]
        env.process(source(env, places, waits))
        env.run()
        assert len(waits) == m

    return best_of(2, run) / m


def queue_kernel(m: int) -> float:
    """Return seconds per request of our queue at one M/M/c station, random numbers included."""

    def run():
        rng = np.random.default_rng(0)
        arrival = np.cumsum(rng.exponential(OCCUPANCY / (UTILIZATION * SERVERS), m))
        return fcfs_starts(arrival, rng.exponential(OCCUPANCY, m), SERVERS) - arrival

    run()
    return best_of(5, run) / m


def engine_run(m: int, n: int, advert: Advert, policy: str = "load_aware") -> float:
    """Return seconds per request of the whole simulation: draws, routing, queues, sums and records."""
    rng = np.random.default_rng(n)
    side = float(np.sqrt(n / 1.2))
    profile = rng.choice(3, n, p=[0.45, 0.35, 0.20])
    hits = np.array([[0, 0], [512, 512], [1024, 2048]])
    residual = np.array([1024, 4096]) - hits
    prefill = (1.6e-4 * residual + 1.8e-8 * residual**2)[profile]
    sites = rng.uniform(0, side, (n, 2))
    servers = np.array([18, 14, 6])[profile]

    def run():
        draw = np.random.default_rng(1)
        created = np.cumsum(draw.exponential(1 / (3.0 * side**2), m))
        x, y = draw.uniform(0, side, (2, m))
        requests = Requests(created, x, y, (draw.random(m) < 0.6).astype(np.int64), draw.exponential(size=m))
        engine = ServingEngine(
            sites,
            profile,
            servers,
            prefill,
            [0.4, 0.4],
            delay_coefficient=0.28,
            delay_exponent=2.5,
            period_km=(side, side),
            policy=policy,
        )
        sums = engine.run(requests, float(created[-1]), advert)
        counts = engine.records().counts()
        assert sum(counts.values()) == m
        assert counts["served"] == sums.started.sum()

    run()
    return best_of(3, run) / m


def main() -> None:
    """Print the table."""
    ours = queue_kernel(1_000_000)
    peers = {
        "Ciw, one station": ciw_station(10_000),
        "SimPy, one station": simpy_stations(30_000, 1),
        "SimPy, 1,000 stations": simpy_stations(30_000, 1000),
    }
    print(f"{'one M/M/18 queue at 0.8':44}{'ns/request':>12}{'ratio to ours':>16}")
    print(f"{'geoedge queue kernel, draws included':44}{ours * 1e9:12,.0f}{1:16.0f}")
    for name, each in peers.items():
        print(f"{name:44}{each * 1e9:12,.0f}{each / ours:16,.0f}")
    ratio = peers["SimPy, one station"] / ours
    print(
        f"goal: at least {SIMPY_RATIO:.0f} x SimPy: {'met' if ratio >= SIMPY_RATIO else 'MISSED'} ({ratio:,.0f} x)\n"
    )

    print(f"{'whole simulation, draws and records included':44}{'ns/request':>12}{'requests in 10 s':>18}")
    adverts = {
        "static waits": Advert(wait_s=0.02),
        "state, fresh at every request": Advert("state", telemetry_period_s=0.0),
        "state, every second": Advert("state", telemetry_period_s=1.0),
        "measured, every minute": Advert("measured", telemetry_period_s=60.0),
    }
    for n, (name, advert) in itertools.product((100, 1000, 10_000), adverts.items()):
        each = engine_run(REQUESTS_WANTED, n, advert)
        print(f"{f'{n:,} sites, {name}':44}{each * 1e9:12,.0f}{SECONDS_ALLOWED / each:18,.0f}")
        if n == 1000:
            met = SECONDS_ALLOWED / each >= REQUESTS_WANTED
            print(
                f"  goal: at least {REQUESTS_WANTED:,} in {SECONDS_ALLOWED:.0f} s: {'met' if met else 'MISSED'}"
            )


if __name__ == "__main__":
    main()
