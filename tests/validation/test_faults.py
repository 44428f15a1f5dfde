"""Random faults: whatever fails, in whatever order, nothing is lost, memory holds, and the log replays."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from geoedge.city.demand import Demand
from geoedge.control.actions import admitted
from geoedge.control.audit import audit_actions, audit_journal, audit_memory
from geoedge.control.memory import site_memory
from geoedge.control.operate import Operator, Routing
from geoedge.control.placement import Placement
from geoedge.control.planners import PLANNERS, Limits, Prediction
from geoedge.control.repair import restoration
from geoedge.scenario import HardwareConfig, PrefixConfig, ProfileConfig, RequestConfig, WorkloadConfig
from geoedge.serving.doors import Admission
from geoedge.serving.draining import drained_s
from geoedge.serving.events import ServingEngine
from geoedge.serving.inquiring import RoutingOptions
from geoedge.serving.records import Requests
from geoedge.workload import build_forest, build_workload

SITES = 5
BACKHAUL = 50.0
KV = 1
"""Bytes of a token, so that bytes are tokens."""
HARDWARE = HardwareConfig(
    prefill_linear_s=0.01,
    prefill_quadratic_s=0.0,
    prefill_constant_s=0.0,
    memory_bytes=420,
    memory_fraction=1.0,
    weights_bytes=0,
    reserve_bytes=0,
    kv_bytes_per_token=KV,
    decode_step_s=0.1,
)
STORED = {"fallback": (), "shallow": ("root",), "left": ("root", "left"), "right": ("root", "right")}
CONFIG = WorkloadConfig(
    prefixes=(
        PrefixConfig(name="root", depth_tokens=40),
        PrefixConfig(name="left", parent="root", depth_tokens=80),
        PrefixConfig(name="right", parent="root", depth_tokens=200),
    ),
    profiles=tuple(
        ProfileConfig(name=name, prefixes=held, placement_probability=0.25) for name, held in STORED.items()
    ),
    requests=(
        RequestConfig(name="a", type_probability=0.5, prompt_tokens=80, output_tokens=10, prefix="left"),
        RequestConfig(name="b", type_probability=0.5, prompt_tokens=200, output_tokens=10, prefix="right"),
    ),
)
WORKLOAD = build_workload(CONFIG, HARDWARE)
MEMORY = site_memory(CONFIG, HARDWARE, WORKLOAD)
BUDGET = 400.0
LIMITS = Limits(BUDGET, np.array([1, 0, 0, 0]), np.array([SITES, SITES, 3, 2]), 1e-6, least_hold_epochs=2)

site = st.integers(0, SITES - 1)


def test_the_case_is_one_in_which_memory_is_short():
    # the two branches do not fit beside each other and a request: states are given up first
    assert WORKLOAD.concurrency.tolist() == [2, 1, 1, 1]
    assert MEMORY.via[2, 3] == 1
    assert MEMORY.servers.min() >= 1


class Likes:
    """A predictor that wants random things of every site, the same ones under the same demand."""

    def __init__(self, demand: Demand) -> None:
        self.taste = np.random.default_rng(int(demand.request_rate * 1000)).random((SITES, 4))

    def solve(self, profile, start=None):
        one = np.ones(SITES)
        coverage = float(self.taste[np.arange(SITES), profile].mean())
        return Prediction(coverage, profile, 0.1 * one, one, one, one, one, one)

    def screen(self, profile, base):
        gain = (self.taste - self.taste[np.arange(SITES), profile][:, None]) / SITES
        return np.where(np.arange(4) == profile[:, None], -np.inf, gain)

    def judge(self, profile, wait):
        return self.solve(profile).coverage

    def coarse(self):
        return self


class Faults(RuleBasedStateMachine):
    """Engine, placement and operator of five sites, driven as a run drives them."""

    @initialize(
        seed=st.integers(0, 10_000),
        planner=st.sampled_from(["greedy", "random"]),
        most=st.sampled_from([None, 1, 2]),
        closes=st.booleans(),
    )
    def begin(self, seed, planner, most, closes):
        self.rng, self.clock, self.epoch, self.asked = np.random.default_rng(seed), 0.0, 0, 0
        self.initial = self.rng.permutation([0, 0, 1, 2, 3])
        self.most = most
        self.placement = Placement(self.initial, BACKHAUL, MEMORY, self.drained, most)
        admission = Admission(close_threshold=4.0, redirects=2) if closes else Admission()
        self.engine = ServingEngine(
            self.rng.random((SITES, 2)),
            self.initial,
            self.placement.servers,
            WORKLOAD.prefill_time[self.initial],
            WORKLOAD.decode_time,
            delay_coefficient=0.1,
            delay_exponent=2.5,
            options=RoutingOptions(admission=admission),
        )
        self.told, self.silent = (self.placement.profile, self.placement.servers), set()
        self.operator = Operator(
            Likes,
            self.placement,
            Routing(),
            transfer_bytes=MEMORY.moved_bytes,
            limits=LIMITS,
            planner=PLANNERS[planner],
        )
        self.act()

    def drained(self, site, servers):
        return drained_s(self.engine.stations, site, servers, self.clock)

    def reconfigure(self):
        (held, ran), (profile, servers) = self.told, (self.placement.profile, self.placement.servers)
        for i in np.flatnonzero((held != profile) | (ran != servers)).tolist():
            row = WORKLOAD.prefill_time[profile[i]]
            self.engine.reconfigure(i, profile=int(profile[i]), concurrency=int(servers[i]), prefill_row=row)
        self.told = profile, servers

    def act(self):
        demand = Demand(np.zeros((1, 2)), self.rng.random((1, 2)) + 0.1, 50.0)
        self.operator.act(self.clock, self.epoch, demand)
        self.epoch += 1
        self.reconfigure()

    @rule(seconds=st.floats(0.0, 12.0), rate=st.sampled_from([0.0, 1.0, 8.0]))
    def live(self, seconds, rate):
        """Let time pass, as a run does: up to each event of the placement and on."""
        end, made = self.clock + seconds, self.rng.poisson(rate * seconds)
        created = np.sort(self.rng.uniform(self.clock, end, made))
        x, y, mark = self.rng.random(made), self.rng.random(made), self.rng.exponential(size=made)
        kind = self.rng.integers(0, 2, made)
        self.asked += made
        while True:
            cut = min(end, max(self.placement.next_event_s(), self.clock))
            here = (created >= self.clock) & (created < cut) if cut < end else created >= self.clock
            self.engine.run(Requests(created[here], x[here], y[here], kind[here], mark[here]), cut)
            created[here] = -1.0
            self.clock = cut
            if self.placement.next_event_s() <= cut:
                self.operator.arrive(cut)
                self.reconfigure()
            elif cut == end:
                break

    @rule()
    def plan(self):
        self.act()

    @rule(site=site, to=st.integers(0, 3), compute=st.booleans())
    def order(self, site, to, compute):
        """Restore something by hand, as a site does that has lost it."""
        held = int(self.placement.profile[site])
        if site in self.placement.busy or to == held or self.breaks(site, to):
            return
        action = restoration(site, held, to, MEMORY.moved_bytes, "lost")
        if compute and MEMORY.servers[held, to] > 1:
            action = admitted(action, MEMORY.computed_s)
        self.operator.order(self.clock, self.epoch - 1, action)
        self.reconfigure()

    def breaks(self, site, to):
        goal = self.placement.goal
        after = np.where(np.arange(SITES) == site, to, goal)
        counts = (np.bincount(each, minlength=4) for each in (after, goal))
        return not LIMITS.allow(*counts)

    @rule(site=site)
    def fail(self, site):
        if site in self.placement.down:
            return
        self.engine.fail(site)
        self.placement.fail(site, self.clock)
        self.silent.discard(site)
        self.reconfigure()

    @rule(site=site)
    def fall_silent(self, site):
        """Let a site fail that the controller goes on planning for; `fail` finds it out."""
        if site in self.placement.down | self.silent:
            return
        self.engine.fall_silent(site)
        self.silent.add(site)

    @precondition(lambda self: self.silent)
    @rule(data=st.data())
    def come_back(self, data):
        """Let a site come back that nobody has missed, without its cache."""
        site = data.draw(st.sampled_from(sorted(self.silent)))
        self.silent.discard(site)
        self.placement.fail(site, self.clock)
        self.reconfigure()
        self.engine.recover(site)
        self.placement.recover(site, self.clock)

    @precondition(lambda self: self.placement.down)
    @rule(data=st.data())
    def recover(self, data):
        site = data.draw(st.sampled_from(sorted(self.placement.down)))
        self.engine.recover(site)
        self.placement.recover(site, self.clock)

    @rule(
        share=st.sampled_from([0.0, 0.1, 1.0, 3.0]), sites=st.one_of(st.none(), st.lists(site, unique=True))
    )
    def backhaul(self, share, sites):
        self.placement.set_backhaul(share * BACKHAUL, sites, now_s=self.clock)

    @invariant()
    def nobody_is_lost(self):
        counts = self.engine.records().counts()
        assert self.asked == sum(counts.values())
        assert self.asked == counts["served"] + counts["rejected"] + counts["waiting"] + counts["in_flight"]

    @invariant()
    def silent_sites_serve_nothing(self):
        records, silent = self.engine.records(), sorted(self.silent)
        there = np.isin(records.site, silent)
        assert not (records.finished_s[there] > self.clock).any()
        waiting = (records.engine_status == 1) & there
        assert (
            waiting.sum()
            == self.engine.stations.sites["listed"][silent].sum()
            - ((records.engine_status == 2) & there).sum()
        )

    @invariant()
    def memory_is_never_exceeded(self):
        stations = self.engine.stations
        busy = np.arange(stations.releases.shape[1]) < stations.sites["busy"][:, None]
        running = (busy & (stations.releases > self.clock)).sum(axis=1)
        assert (running * MEMORY.request_bytes + self.placement.states_bytes <= MEMORY.usable_bytes).all()
        assert (stations.sites["concurrency"] == self.placement.servers).all()

    @invariant()
    def profiles_are_ancestor_closed(self):
        forest = build_forest(CONFIG)
        assert all(
            forest.is_closed(forest.indices(CONFIG.profiles[s].prefixes)) for s in self.placement.profile
        )

    @invariant()
    def sites_serve_what_they_hold(self):
        assert (self.engine.stations.sites["profile"] == self.placement.profile).all()
        assert not self.placement.down & self.placement.in_transit
        assert (self.placement.profile[sorted(self.placement.down)] == 0).all()

    def teardown(self):
        if not hasattr(self, "engine"):
            return
        journal = self.placement.journal
        told = {"memory": MEMORY, "most_transfers": self.most, "until_s": self.clock}
        assert audit_journal(journal, self.initial, BACKHAUL, **told) == []
        rules = {"least_sites": LIMITS.least_sites, "most_sites": LIMITS.most_sites}
        found = audit_actions(
            self.operator.log,
            self.initial,
            transfer_bytes=MEMORY.moved_bytes,
            budget_bytes=BUDGET,
            least_hold_epochs=LIMITS.least_hold_epochs,
            journal=journal,
            **rules,
        )
        assert found == []
        for site in self.silent:
            self.engine.close(site)
        assert all(self.engine.fail(site) >= 0 for site in self.silent)
        self.engine.finish()
        records = self.engine.records()
        assert records.counts()["waiting"] == records.counts()["in_flight"] == 0
        ran = records.site >= 0
        held = audit_memory(
            journal, self.initial, MEMORY, records.site[ran], records.started_s[ran], records.finished_s[ran]
        )
        assert held == []


# a failing example is shown as it was found: making it smaller takes minutes
Faults.TestCase.settings = settings(
    max_examples=50,
    stateful_step_count=25,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
TestFaults = Faults.TestCase
