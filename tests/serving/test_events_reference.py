"""The event loop against an independent simulation: plain Python, one heap of events, numpy for distances."""

from __future__ import annotations

import heapq
import itertools
from collections import deque

import numpy as np
import pytest

from geoedge.policies import CLOSED_FORMS, POLICIES
from geoedge.serving import events, keeper, plain
from geoedge.serving.advertising import Advert
from geoedge.serving.events import ServingEngine
from geoedge.serving.records import Requests
from geoedge.theory import SERVICE_LAWS, make_law
from tests.serving.agenda import Agenda

XI, ALPHA = 0.28, 2.5
ROOM = 2.0
SCV = 3.0


def hyperexponential(mark):
    """Return the balanced H2 service of unit mean that is exceeded with probability e^-mark, by bisection."""
    fast = 0.5 * (1 + np.sqrt((SCV - 1) / (SCV + 1)))
    low, high = 0.0, 100.0 * (1.0 + mark)
    for _ in range(200):
        middle = (low + high) / 2
        longer = fast * np.exp(-2 * fast * middle) + (1 - fast) * np.exp(-2 * (1 - fast) * middle)
        low, high = (middle, high) if longer > np.exp(-mark) else (low, middle)
    return high


class Reference(Agenda):
    """Sites, servers and reports, event by event."""

    def __init__(self, xy, profile, concurrency, prefill, decode, law, means, shift, policy, period):
        super().__init__()
        self.xy, self.profile, self.c = xy, np.array(profile), list(concurrency)
        self.prefill, self.decode, self.law, self.means = prefill.copy(), decode, law, list(means)
        self.shift, self.policy, self.period = shift, policy, period
        n = len(xy)
        self.queue, self.running = [deque() for _ in range(n)], [0] * n
        self.services = [[] for _ in range(n)]
        self.begun = [[] for _ in range(n)]
        self.heard = np.zeros(n)
        self.smoothed = np.zeros(n)
        self.log = {}
        self.advert = Advert()

    def state_wait(self, i):
        if self.running[i] < self.c[i]:
            return 0.0
        prior = events.PRIOR_SERVICES
        mean = (prior * self.means[i] + sum(self.services[i])) / (prior + len(self.services[i]))
        return (len(self.queue[i]) + self.running[i] - self.c[i] + 1) * mean / self.c[i]

    def report_values(self):
        n = len(self.xy)
        groups = [np.array([i]) for i in range(n)]
        if self.advert.scope == "tier":
            groups = [np.flatnonzero(self.profile == self.profile[i]) for i in range(n)]
        if self.advert.kind == "state":
            return np.array([np.mean([self.state_wait(j) for j in group]) for group in groups])
        for i, group in enumerate(groups):
            waits = [w for j in group for w in self.begun[j]]
            if not waits and all(self.running[j] < self.c[j] for j in group):
                waits = [0.0]
            if waits:
                self.smoothed[i] += self.advert.smoothing * (np.mean(waits) - self.smoothed[i])
        self.begun = [[] for _ in range(n)]
        return self.smoothed.copy()

    def report(self, time, k, start):
        a = self.advert
        self.at(time + a.telemetry_delay_s, self.hear, self.report_values())
        self.at(start + (k + 1) * a.telemetry_period_s, self.report, k + 1, start)

    def hear(self, time, values):
        self.heard = values

    def create(self, time, k, place, q, mark):
        wait = self.heard
        if self.advert.kind == "state" and self.advert.telemetry_period_s == 0:
            wait = self.report_values()
        gap = np.abs(self.xy - place)
        if self.period:
            gap = np.minimum(gap, np.array(self.period) - gap)
        radio = XI * np.hypot(*gap.T) ** ALPHA
        i = int(np.argmin(radio + POLICIES[self.policy](self.prefill, wait)[:, q]))
        self.log[k] = {"site": i, "radio": radio[i], "arrived": time + self.shift * radio[i]}
        self.at(self.log[k]["arrived"], self.arrive, k, i, q, mark)

    def arrive(self, time, k, i, q, mark):
        self.queue[i].append((k, time, q, mark))
        self.start(time, i)

    def start(self, time, i):
        while self.queue[i] and self.running[i] < self.c[i]:
            k, arrived, q, mark = self.queue[i].popleft()
            prefill, occupancy = self.prefill[i, q], self.prefill[i, q] + self.decode[q]
            service = {
                "prefill_plus_decode": prefill + mark * self.decode[q],
                "exponential_mixture": mark * self.means[i],
                "exponential_type": mark * occupancy,
                "deterministic": occupancy,
                "tabulated": mark,
                "phase_type": hyperexponential(mark) * occupancy,
            }[self.law]
            self.running[i] += 1
            self.services[i].append(service)
            self.begun[i].append(time - arrived)
            self.log[k] |= {"started": time, "prefill": prefill, "finished": time + service}
            self.log[k] |= {"profile": self.profile[i]}
            self.at(time + service, self.release, i)

    def release(self, time, i):
        self.running[i] -= 1
        self.start(time, i)

    def reconfigure(self, time, i, concurrency, prefill, profile):
        self.c[i], self.prefill[i], self.profile[i] = concurrency, prefill, profile
        self.means[i] = (prefill + self.decode).mean()
        self.services[i] = []
        self.start(time, i)


def draw(rng, m, n, horizon, q_count=2):
    """Return sites and requests of a small world."""
    sites = {
        "xy": rng.uniform(0, ROOM, (n, 2)),
        "profile": rng.integers(0, 3, n),
        "concurrency": rng.integers(1, 4, n),
        "prefill": rng.uniform(0.05, 0.6, (n, q_count)),
        "decode": rng.uniform(0.2, 0.9, q_count),
    }
    created = np.sort(rng.uniform(0, horizon, m))
    x, y = rng.uniform(0, ROOM, (2, m))
    return sites, Requests(created, x, y, rng.integers(0, q_count, m), rng.exponential(size=m))


def part(requests, low, high):
    inside = (requests.created_s >= low) & (requests.created_s < high)
    return Requests(
        *(getattr(requests, name)[inside] for name in ("created_s", "x_km", "y_km", "request_type", "mark"))
    )


def both(
    seed,
    advert,
    *,
    law="prefill_plus_decode",
    policy="load_aware",
    shift=True,
    torus=False,
    m=250,
    n=5,
    epochs=3,
):
    """Run engine and reference over some epochs with changes between them; return both and the sums."""
    rng = np.random.default_rng(seed)
    horizon = m / (n * 2.2)
    sites, requests = draw(rng, m, n, horizon)
    means = (sites["prefill"] + sites["decode"]).mean(axis=1)
    period = (ROOM, ROOM) if torus else None
    engine = ServingEngine(
        sites["xy"],
        sites["profile"],
        sites["concurrency"],
        sites["prefill"],
        sites["decode"],
        delay_coefficient=XI,
        delay_exponent=ALPHA,
        period_km=period,
        policy=policy,
        law=make_law(law, SCV if law == "phase_type" else None),
        radio_shifts_arrival=shift,
    )
    twin = Reference(*sites.values(), law, means, float(shift), policy, period)
    twin.advert = advert
    if advert.kind != "static" and advert.telemetry_period_s > 0:
        twin.at(0.0, twin.report, 0, 0.0)
    for k in range(m):
        place = np.array([requests.x_km[k], requests.y_km[k]])
        twin.at(requests.created_s[k], twin.create, k, place, requests.request_type[k], requests.mark[k])
    edges = np.linspace(0, horizon, epochs + 1)
    sums = []
    for low, high in itertools.pairwise(edges):
        if advert.kind == "static":
            advert = Advert(wait_s=rng.exponential(0.2, n))
            twin.heard = advert.waits(n)
        for i in rng.permutation(n)[: n // 2] if low > 0 else []:
            change = (int(rng.integers(1, 5)), rng.uniform(0.05, 0.6, 2), int(rng.integers(0, 3)))
            engine.reconfigure(int(i), concurrency=change[0], prefill_row=change[1], profile=change[2])
            twin.reconfigure(low, i, *change)
        sums.append(engine.run(part(requests, low, high), high, advert))
        twin.run_until(high)
    return engine, twin, sums


def assert_same(engine, twin, digits=1e-11):
    records = engine.records()
    names = {
        "site": "site",
        "radio": "radio_s",
        "arrived": "arrived_s",
        "started": "started_s",
        "prefill": "prefill_s",
        "finished": "finished_s",
        "profile": "profile",
    }
    assert sorted(twin.log) == list(range(len(records)))
    for mine, theirs in names.items():
        missing = -1 if mine == "profile" else np.nan
        expected = np.array([twin.log[k].get(mine, missing) for k in range(len(records))])
        np.testing.assert_allclose(getattr(records, theirs), expected, rtol=digits, atol=digits, err_msg=mine)


ADVERTS = {
    "static": Advert(),
    "fresh state": Advert("state", telemetry_period_s=0.0),
    "fresh state of tiers": Advert("state", telemetry_period_s=0.0, scope="tier"),
    "state": Advert("state", telemetry_period_s=0.7),
    "late state": Advert("state", telemetry_period_s=0.31, telemetry_delay_s=1.7),
    "state of tiers": Advert("state", telemetry_period_s=0.7, telemetry_delay_s=0.1, scope="tier"),
    "measured": Advert("measured", telemetry_period_s=1.3, smoothing=0.3),
    "late measured of tiers": Advert("measured", telemetry_period_s=0.9, telemetry_delay_s=2.0, scope="tier"),
}


@pytest.mark.parametrize("advert", ADVERTS.values(), ids=ADVERTS.keys())
@pytest.mark.parametrize("seed", range(6))
def test_every_advert(advert, seed):
    """Requests overtake each other on the air, sites change while requests wait, epochs cut through all."""
    engine, twin, _ = both(seed, advert, shift=seed % 3 != 0, torus=seed % 2 == 0)
    assert_same(engine, twin)
    engine.finish()
    twin.advert = Advert()
    twin.agenda = [event for event in twin.agenda if event[2] not in (twin.report, twin.hear)]
    heapq.heapify(twin.agenda)
    twin.run_until(np.inf)
    assert_same(engine, twin)
    assert engine.pending() == 0


@pytest.mark.parametrize("law", SERVICE_LAWS)
@pytest.mark.parametrize("policy", CLOSED_FORMS)
def test_every_law_and_policy(law, policy):
    for seed in (10, 11):
        assert_same(
            *both(
                seed, ADVERTS["late state"] if policy == "load_aware" else Advert(), law=law, policy=policy
            )[:2],
            digits=1e-8 if law == "phase_type" else 1e-11,
        )


@pytest.mark.parametrize("advert", ADVERTS.values(), ids=ADVERTS.keys())
def test_with_candidate_lists(advert, monkeypatch):
    """Force lists on, with so little slack that they must grow."""
    monkeypatch.setattr(keeper, "LISTS_FROM_SITES", 1)
    monkeypatch.setattr(keeper, "LISTS_FROM_POINTS", 1)
    monkeypatch.setattr(plain, "FIRST_BATCH", 16)
    engine, twin, _ = both(5, advert, m=1200, n=24)
    assert_same(engine, twin)
    assert engine.routing._lists._lists.columns > 0


def test_the_small_worlds_are_hard_enough():
    """The comparison above has teeth: overtaking on the air, and queues when sites change."""
    overtaken = waiting = 0
    for seed in range(6):
        engine, _, sums = both(seed, ADVERTS["state"])
        r = engine.records()
        waiting += sum(s.waiting.sum() for s in sums)
        overtaken += sum((np.diff(r.arrived_s[r.site == i]) < 0).sum() for i in range(5))
    assert waiting > 30
    assert overtaken > 30


def test_sums_add_up():
    """Sums by site from the records, over each stretch."""
    engine, _, sums = both(3, ADVERTS["state"], m=600)
    engine.finish()
    r = engine.records()
    waiting = np.zeros(5, dtype=int)
    for s in sums:
        for i in range(5):
            here = r.site == i
            routed = here & (r.created_s >= s.start_s) & (r.created_s < s.end_s)
            started = here & (r.started_s > s.start_s) & (r.started_s <= s.end_s)
            # A change at the end of a stretch lets requests start at that instant, in the next stretch.
            started &= ~((r.started_s == s.end_s) & (r.arrived_s < r.started_s))
            started |= here & (r.started_s == s.start_s) & (r.arrived_s < r.started_s)
            arrived = here & (r.arrived_s > s.start_s) & (r.arrived_s <= s.end_s)
            used = np.clip(np.minimum(r.finished_s, s.end_s) - np.maximum(r.started_s, s.start_s), 0, None)
            assert s.routed[i] == routed.sum()
            assert s.arrivals[i] == arrived.sum()
            assert s.started[i] == started.sum()
            assert s.waiting[i] == waiting[i] + s.arrivals[i] - s.started[i]
            assert s.in_flight[i] == (here & (r.created_s < s.end_s) & (r.arrived_s > s.end_s)).sum()
            assert s.running[i] == (here & (r.started_s < s.end_s) & (r.finished_s > s.end_s)).sum()
            np.testing.assert_allclose(s.busy_s[i], used[here].sum(), atol=1e-9)
            np.testing.assert_allclose(s.wait_s[i], r.wait_s[started].sum(), atol=1e-9)
            np.testing.assert_allclose(s.prefill_s[i], r.prefill_s[started].sum(), atol=1e-9)
            waiting[i] = s.waiting[i]
