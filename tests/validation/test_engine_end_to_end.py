"""The event engine and the field against published end-to-end coverage of the coupled system.

A 20 x 20 km torus, Poisson sites, still users spread evenly, waits advertised statically at their equilibrium.
The mean over tessellations is compared with tests/reference/end_to_end.json. The number of sites of each tier
scatters about a mean that is known exactly, so it serves as a control variate: what is compared is the value
of the regression of coverage on these numbers at their means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from geoedge.field import FieldProblem, solve_field, torus_problem
from geoedge.field.ensemble import regressed
from geoedge.serving import Advert, Requests, ServingEngine
from geoedge.streams import stream

pytestmark = pytest.mark.slow

SIDE_KM, PLACES = 20.0, 160**2
TARGET_S = 0.8
LOADS = (1.0, 3.0, 5.0)
WARM_UP_S = {1.0: 60.0, 3.0: 120.0, 5.0: 200.0}
MEASURED_S = {1.0: 400.0, 3.0: 200.0, 5.0: 200.0}

BY_EVENTS = {1.0: 36, 3.0: 16, 5.0: 16}
"""Tessellations that are run by events, by load."""
CONFIDENCE, WIDEST = 0.99, 0.01

POLICY = {
    "load_aware_per_site_waits": ("load_aware", "site"),
    "load_aware_per_tier_waits": ("load_aware", "tier"),
    "prefix_only": ("prefix_only", "site"),
    "nearest": ("nearest", "site"),
}
EVENT_CASES = [
    *((load, "load_aware_per_site_waits") for load in LOADS),
    (3.0, "nearest"),
    (5.0, "nearest"),
    (1.0, "load_aware_per_tier_waits"),
    (1.0, "prefix_only"),
]


class Town(NamedTuple):
    """One tessellation under a demand of 1 request per second and km²."""

    number: int
    problem: FieldProblem

    @classmethod
    def draw(cls, number, network):
        rng = stream(5, "end to end", "sites", number)
        return cls(number, torus_problem(network, SIDE_KM, rng, places=PLACES))

    def field(self, load, name):
        policy, scope = POLICY[name]
        answer = solve_field(self.problem.with_rate(load * self.problem.rate), policy=policy, scope=scope)
        assert answer.converged
        return answer

    def requests(self, load):
        rng = stream(5, "end to end", "requests", self.number, int(load))
        horizon = WARM_UP_S[load] + MEASURED_S[load]
        m = rng.poisson(load * SIDE_KM**2 * horizon)
        x, y = rng.uniform(0, SIDE_KM, (2, m))
        share = self.problem.rate[0] / self.problem.rate[0].sum()
        kind = (rng.random(m) >= share[0]).astype(np.int64)
        return Requests(np.sort(rng.uniform(0, horizon, m)), x, y, kind, rng.exponential(size=m))

    def events(self, answer, load, requests):
        """Return the share of requests in time, after warm-up; requests at sites beyond capacity are misses."""
        problem = self.problem
        engine = ServingEngine(
            problem.geometry.site_xy,
            problem.profile,
            problem.servers,
            problem.prefill_time[problem.profile],
            (problem.occupancy_time - problem.prefill_time)[0],
            delay_coefficient=problem.geometry.delay_coefficient,
            delay_exponent=problem.geometry.delay_exponent,
            period_km=problem.geometry.period,
            policy=answer.policy,
            law="exponential_mixture",
            mean_occupancy=1.0 / answer.service_rate,
        )
        sums = engine.run(requests, WARM_UP_S[load] + MEASURED_S[load], Advert(wait_s=answer.advertised_wait))
        engine.finish()
        records = engine.records()
        assert records.counts()["served"] == len(requests) == sums.routed.sum()
        in_time = (records.ttft_s <= TARGET_S) & (answer.utilization < 1)[records.site]
        return in_time[records.created_s > WARM_UP_S[load]].mean()


class Sample(NamedTuple):
    """Coverage by tessellation of every case, and the sites of each tier beyond their mean number."""

    excess: np.ndarray
    by_field: dict[tuple[float, str], np.ndarray]
    by_events: dict[tuple[float, str], np.ndarray]


@pytest.fixture(scope="module")
def sample(end_to_end_network):
    by_field = {case: np.empty(BY_EVENTS[case[0]]) for case in EVENT_CASES}
    by_events = {case: np.empty(BY_EVENTS[case[0]]) for case in EVENT_CASES}
    network = end_to_end_network(1.0)
    excess = np.empty((max(BY_EVENTS.values()), 3))
    for number in range(len(excess)):
        town = Town.draw(number, network)
        excess[number] = np.bincount(town.problem.profile, minlength=3) - network.tier_density * SIDE_KM**2
        for load in [load for load in LOADS if number < BY_EVENTS[load]]:
            requests = town.requests(load)
            for name in [name for at, name in EVENT_CASES if at == load]:
                answer = town.field(load, name)
                by_field[load, name][number] = answer.ttft_coverage(TARGET_S)
                by_events[load, name][number] = town.events(answer, load, requests)
    return Sample(excess, by_field, by_events)


@pytest.mark.parametrize(("load", "name"), EVENT_CASES)
def test_events(sample, end_to_end, load, name):
    """By events, request by request: the joint interval is narrow enough and holds the difference."""
    coverage, row = sample.by_events[load, name], end_to_end[load][name]
    value, error, freedom = regressed(coverage, sample.excess[: len(coverage)], layouts_per_control=5)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * np.hypot(error, row["standard_error"])
    print(f"{value:.4f} against {row['coverage']:.4f}, joint interval ±{half:.4f}")
    assert half <= WIDEST
    assert abs(value - row["coverage"]) <= half


@pytest.mark.parametrize(("load", "name"), EVENT_CASES)
def test_events_agree_with_the_field_on_every_town(sample, load, name):
    """On the same sites, events scatter about the field's coverage with no bias beyond 0.003."""
    gap = sample.by_events[load, name] - sample.by_field[load, name]
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
    print(f"events less field {gap.mean():+.4f} ± {half:.4f}")
    assert abs(gap.mean()) <= 0.003
    assert half <= 0.003
