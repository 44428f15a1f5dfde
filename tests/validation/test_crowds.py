"""A crowd that nobody foresaw: when sites without a cache absorb it, and when they do not.

A site without a cache has more servers, but makes everybody wait for a whole prefill. Two cities that differ in one
number, the memory that caches take: on Monaco's own GPUs a cache costs at most one server of five, so that giving
it up makes no room; where caches fill three fifths of the memory it makes room for the crowd. Users are as many as
keep servers equally busy in both, and crowds the same share of them. Routers read queues a second old and count what they
send, for on prices that were set before it came a crowd all runs to one site, whatever stands there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import geoedge as ge
from geoedge.simulation.model import EdgeCity
from geoedge.study import Study

START_S = 19.75 * 3600.0
GATHER_S, LASTS_S = 300.0, 900.0
SHARES = (0.0, 0.3)
SEEDS = (1, 2, 3)
LARGE_BYTES = 3_500_000_000
"""About 27,000 tokens: three of the five requests that a GPU has room for."""


@dataclass(frozen=True)
class Seen:
    """What became of a crowd, and of everybody else while it stood there."""

    crowd: float
    others: float
    utilization: float
    """Servers that all requests of the epoch need, over servers."""


def evening(city, users: int, persistent_bytes: int | None) -> Study:
    """Return Monaco at a quarter to eight, with caches of some size."""
    changes = {
        "demand.users": users,
        "control.controller": "none",
        "routing.advertise": "state",
        "routing.local_count": True,
        "simulation.start_hour": 19.5,
        "simulation.duration_s": 1800.0,
        "simulation.warm_up_s": 900.0,
        "simulation.epoch_s": 900.0,
    }
    if persistent_bytes:
        changes |= {f"workload.profiles[{s}].persistent_bytes": persistent_bytes for s in (2, 3)}
    return ge.prepare(ge.load_scenario("monaco").override(changes), city=city)


def with_fallback(study: Study, share: float) -> Study:
    """Return the study with agent and guide caches at its sites, but for a share of them that caches nothing."""
    rng, n = np.random.default_rng(5), len(study.layout)
    order = rng.permutation(n)
    profile = np.where(rng.permutation(n) < 0.6 * n, 2, 3)
    profile[order[: round(share * n)]] = 0
    return study.with_layout(replace(study.layout, profile=profile))


def crowded(study: Study, people: int, seed: int) -> Seen:
    """Let a crowd come to a place drawn by the seed, and look at the requests made once it is complete."""
    crowd = {
        "kind": "flash_crowd",
        "start_hour": START_S / 3600.0,
        "duration_s": LASTS_S,
        "gather_s": GATHER_S,
        "people": people,
        "radius_m": 150.0,
        "types": [{"name": "chat", "weight": 1.0}],
    }
    scenario = study.scenario.override({"dynamics.events": [crowd]})
    results = EdgeCity(scenario, study=study, rng=seed).run()
    made = results.records.to_pandas()
    made = made[made["created_s"].between(START_S + GATHER_S, START_S + LASTS_S)]
    mine, in_time = made["user"] >= scenario.demand.users, made["ttft_s"] <= scenario.target.ttft_target_s
    last = results.epochs[results.epochs["epoch"] == 1]
    busy = float((last["offered_load"] * last["server_s"]).sum() / last["server_s"].sum())
    return Seen(float(in_time[mine].mean()), float(in_time[~mine].mean()), busy)


def both_ways(study: Study, people: int) -> list[tuple[Seen, Seen]]:
    """Return pairs of the same evening, without a fallback and with it."""
    none, some = (with_fallback(study, share) for share in SHARES)
    return [(crowded(none, people, seed), crowded(some, people, seed)) for seed in SEEDS]


@pytest.mark.slow
def test_a_fallback_absorbs_a_crowd_where_caches_are_large_and_not_where_they_are_small():
    city = ge.load_city("monaco")
    large, small = evening(city, 3500, LARGE_BYTES), evening(city, 8000, None)
    assert large.workload.concurrency.tolist() == [5, 5, 2, 2]
    assert small.workload.concurrency.tolist() == [5, 5, 5, 4]
    room, no_room = both_ways(large, 1000), both_ways(small, 2300)
    for (without, _), (alike, _) in zip(room, no_room, strict=True):
        assert without.utilization == pytest.approx(alike.utilization, abs=0.02), "both are as busy"
    for without, there in room:
        assert there.utilization < without.utilization - 0.1
        assert there.crowd > max(0.92, without.crowd + 0.1)
        assert there.others > without.others + 0.03, "nobody queues behind the crowd any more"
    for without, there in no_room:
        assert there.utilization == pytest.approx(without.utilization, abs=0.02), "it makes no room"
        assert abs(there.crowd - without.crowd) < 0.03
        assert there.others < without.others - 0.03, "and others prefill what was cached for them"
