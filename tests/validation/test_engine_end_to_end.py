"""The event engine and the field against published end-to-end coverage of the coupled system.

A 20 x 20 km torus, Poisson sites, still users spread evenly, waits advertised statically at their equilibrium.
The mean over tessellations is compared with tests/reference/end_to_end.json. The number of sites of each tier
scatters about a mean that is known exactly, so it serves as a control variate: what is compared is the value
of the regression of coverage on these numbers at their means.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from geoedge.field.equilibrium import solve_field
from geoedge.field.problem import FieldProblem, Geometry
from geoedge.serving import Advert, Requests, ServingEngine
from geoedge.streams import stream

pytestmark = pytest.mark.slow

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "end_to_end.json").read_text())
CONFIG = REFERENCE["config"]
ROWS = {row["request_intensity"]: row for row in REFERENCE["rows"]}

SIDE_KM, CELL_KM = 20.0, 0.125
PROMPT, HITS = np.array(CONFIG["L"]), np.array(CONFIG["d"])
TYPE_PROBABILITY, PLACEMENT = np.array(CONFIG["p"]), np.array(CONFIG["pi"])
SERVERS = np.array(CONFIG["c"])
TARGET = CONFIG["tau0"]
LOADS = (1.0, 3.0, 5.0)
WARM_UP_S = {1.0: 60.0, 3.0: 120.0, 5.0: 200.0}
MEASURED_S = {1.0: 400.0, 3.0: 200.0, 5.0: 200.0}

TESSELLATIONS = 36
BY_EVENTS = {1.0: 36, 3.0: 16, 5.0: 16}
"""Tessellations that are also run by events, by load."""
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
FIELD_CASES = [(load, name) for load in LOADS for name in POLICY if name in ROWS[load]]


def prefill(tokens):
    """Return g of the reference's configuration [s]."""
    return CONFIG["a"] * tokens + CONFIG["b"] * tokens**2


PREFILL = prefill(PROMPT - HITS)


class Town(NamedTuple):
    """Sites of one tessellation, and the geometry of even demand around them."""

    number: int
    xy: np.ndarray
    profile: np.ndarray
    geometry: Geometry

    @classmethod
    def draw(cls, number):
        rng = stream(5, "end to end", "sites", number)
        n = rng.poisson(CONFIG["lam_b"] * SIDE_KM**2)
        xy, profile = rng.uniform(0, SIDE_KM, (n, 2)), rng.choice(3, n, p=PLACEMENT)
        centres = (np.arange(round(SIDE_KM / CELL_KM)) + 0.5) * CELL_KM
        places = np.stack(np.meshgrid(centres, centres), axis=-1).reshape(-1, 2)
        period = (SIDE_KM, SIDE_KM)
        geometry = Geometry(places, xy, CONFIG["xi"], CONFIG["alpha"], CELL_KM * 1000, period)
        return cls(number, xy, profile, geometry)

    @property
    def excess(self):
        """Relative excess of sites over their expected number, by tier."""
        return np.bincount(self.profile, minlength=3) / (CONFIG["lam_b"] * SIDE_KM**2 * PLACEMENT) - 1

    def field(self, load, name):
        policy, scope = POLICY[name]
        problem = FieldProblem(
            geometry=self.geometry,
            rate=np.outer(np.full(len(self.geometry.point_xy), load * CELL_KM**2), TYPE_PROBABILITY),
            profile=self.profile,
            prefill_time=PREFILL,
            occupancy_time=PREFILL + CONFIG["D"],
            concurrency=SERVERS,
            hit_tokens=HITS,
            prompt_tokens=PROMPT,
            full_prefill_time=prefill(PROMPT),
        )
        answer = solve_field(problem, policy=policy, scope=scope)
        assert answer.converged
        return answer

    def requests(self, load):
        rng = stream(5, "end to end", "requests", self.number, int(load))
        horizon = WARM_UP_S[load] + MEASURED_S[load]
        m = rng.poisson(load * SIDE_KM**2 * horizon)
        x, y = rng.uniform(0, SIDE_KM, (2, m))
        kind = (rng.random(m) >= TYPE_PROBABILITY[0]).astype(np.int64)
        return Requests(np.sort(rng.uniform(0, horizon, m)), x, y, kind, rng.exponential(size=m))

    def events(self, answer, load, requests):
        """Return the share of requests in time, after warm-up; requests at sites beyond capacity are misses."""
        engine = ServingEngine(
            self.xy,
            self.profile,
            SERVERS[self.profile],
            PREFILL[self.profile],
            np.full(2, CONFIG["D"]),
            delay_coefficient=CONFIG["xi"],
            delay_exponent=CONFIG["alpha"],
            period_km=(SIDE_KM, SIDE_KM),
            policy=answer.policy,
            law="exponential_mixture",
            mean_occupancy=1.0 / answer.service_rate,
        )
        sums = engine.run(requests, WARM_UP_S[load] + MEASURED_S[load], Advert(wait_s=answer.advertised_wait))
        engine.finish()
        records = engine.records()
        assert records.counts()["served"] == len(requests) == sums.routed.sum()
        in_time = (records.ttft_s <= TARGET) & (answer.utilization < 1)[records.site]
        return in_time[records.created_s > WARM_UP_S[load]].mean()


class Sample(NamedTuple):
    """Coverage by tessellation of every case, and the control variates."""

    excess: np.ndarray
    by_field: dict[tuple[float, str], np.ndarray]
    by_events: dict[tuple[float, str], np.ndarray]


@pytest.fixture(scope="module")
def sample():
    by_field = {case: np.empty(TESSELLATIONS) for case in FIELD_CASES}
    by_events = {(load, name): np.empty(BY_EVENTS[load]) for load, name in EVENT_CASES}
    excess = np.empty((TESSELLATIONS, 3))
    for number in range(TESSELLATIONS):
        town = Town.draw(number)
        excess[number] = town.excess
        for load in LOADS:
            requests = town.requests(load) if number < BY_EVENTS[load] else None
            for name in [name for at, name in FIELD_CASES if at == load]:
                answer = town.field(load, name)
                by_field[load, name][number] = answer.ttft_coverage(TARGET)
                if requests is not None and (load, name) in by_events:
                    by_events[load, name][number] = town.events(answer, load, requests)
    return Sample(excess, by_field, by_events)


def assert_agrees(coverage, excess, row):
    """Assert that the joint interval is narrow enough and holds the difference from the reference."""
    design = np.column_stack((np.ones(len(coverage)), excess))
    value, *_ = np.linalg.lstsq(design, coverage)
    freedom = len(coverage) - design.shape[1]
    variance = np.sum((coverage - design @ value) ** 2) / freedom * np.linalg.inv(design.T @ design)[0, 0]
    half = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * np.hypot(np.sqrt(variance), row["standard_error"])
    print(f"{value[0]:.4f} against {row['coverage']:.4f}, joint interval ±{half:.4f}")
    assert half <= WIDEST
    assert abs(value[0] - row["coverage"]) <= half


@pytest.mark.parametrize(("load", "name"), EVENT_CASES)
def test_events(sample, load, name):
    """By events, request by request."""
    assert_agrees(sample.by_events[load, name], sample.excess[: BY_EVENTS[load]], ROWS[load][name])


@pytest.mark.parametrize(("load", "name"), FIELD_CASES)
def test_sites_at_their_own_rates(sample, load, name):
    """Each site scored at its own rate, sites beyond capacity as misses, as the reference defines it."""
    assert_agrees(sample.by_field[load, name], sample.excess, ROWS[load][name])


@pytest.mark.parametrize(("load", "name"), EVENT_CASES)
def test_events_agree_with_the_field_on_every_town(sample, load, name):
    """On the same sites, events scatter about the field's coverage with no bias beyond 0.003."""
    gap = sample.by_events[load, name] - sample.by_field[load, name][: BY_EVENTS[load]]
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(gap) - 1) * gap.std(ddof=1) / np.sqrt(len(gap))
    print(f"events less field {gap.mean():+.4f} ± {half:.4f}")
    assert abs(gap.mean()) <= 0.003
    assert half <= 0.003
