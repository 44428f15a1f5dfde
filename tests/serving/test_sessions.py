"""Warm states against plain Python: what is kept, where turns go, what each costs; and what follows from it."""

from __future__ import annotations

import itertools
from collections import OrderedDict, deque

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.scenario.sessions import HANDOVERS
from geoedge.serving import Advert, Requests, ServingEngine
from geoedge.serving.handover import option
from geoedge.serving.sessions import NOBODY, OUTCOMES, SESSION, drop, expire, keep, lose_all, make_room
from geoedge.serving.warm import SessionRules, Turns, make_warm
from tests.serving.agenda import Agenda

XI, ALPHA, KV = 0.28, 2.5, 1000
FRESH, STAY, MIGRATE, RE_PREFILL, LOST = range(5)


def seconds(tokens):
    tokens = np.asarray(tokens, dtype=float)
    return np.where(tokens > 0, 0.005 + tokens * (1e-4 + 4e-9 * tokens), 0.0)


def make_rules(hits, answer, **changes):
    given = {
        "prefill_s": seconds(np.arange(40_000)),
        "kv_bytes_per_token": KV,
        "handover": "by_cost",
        "host_memory_bytes": 10**12,
        "host_bytes_per_s": 2e8,
        "backhaul_bytes_per_s": 2e7,
        "keep_s": 1e6,
    }
    return SessionRules(hit_tokens=np.asarray(hits), answer_tokens=np.asarray(answer), **given | changes)


# -- memory ----------------------------------------------------------------------------------------------


class Shelf:
    """One host memory as an ordered dictionary, least recently used first."""

    def __init__(self, room, keep_s):
        self.room, self.keep_s, self.held = room, keep_s, 0
        self.states = OrderedDict()

    def taken(self):
        return self.held + sum(tokens for tokens, _ in self.states.values()) * KV

    def expire(self, now):
        for s in [s for s, (_, used) in self.states.items() if used + self.keep_s < now]:
            del self.states[s]

    def make_room(self, tokens, now):
        self.expire(now)
        if self.held + tokens * KV > self.room:
            return False
        while self.taken() + tokens * KV > self.room:
            self.states.popitem(last=False)
        return True

    def put(self, s, tokens, now):
        if self.make_room(tokens, now):
            self.states[s] = (tokens, now)

    def pop(self, s):
        return self.states.pop(s, None)


@pytest.mark.parametrize("seed", range(5))
def test_the_memory_is_an_ordered_dictionary(seed):
    rng = np.random.default_rng(seed)
    warm = make_warm(make_rules(np.zeros((2, 1)), [10], host_memory_bytes=60 * KV, keep_s=25.0), 2)
    rows = np.zeros(40, dtype=SESSION)
    rows["site"] = rows["older"] = rows["newer"] = NOBODY
    warm = warm._replace(sessions=rows)
    shelves = [Shelf(60 * KV, 25.0), Shelf(60 * KV, 25.0)]
    now = 0.0
    for _ in range(4000):
        now += rng.exponential(1.0)
        i, s, tokens = int(rng.integers(2)), int(rng.integers(40)), int(rng.integers(1, 25))
        shelf = shelves[i]
        if warm.sessions[s]["kept"]:
            shelves[warm.sessions[s]["site"]].pop(s)
            drop(s, warm)
        action = rng.integers(4)
        if action < 2:
            assert keep(s, i, tokens, now, now, warm) == shelf.make_room(tokens, now)
            shelf.put(s, tokens, now)
        elif action == 2:
            held = int(rng.integers(-5, 6)) * KV
            if shelf.held + held >= 0 and (held <= 0 or make_room(i, held, now, warm)):
                assert held <= 0 or shelf.make_room(held // KV, now)
                shelf.held += held
                warm.hosts[i]["held"] += held
        else:
            expire(i, now, warm)
            shelf.expire(now)
        for j, each in enumerate(shelves):
            chain, at = [], warm.hosts[j]["oldest"]
            while at != NOBODY:
                chain.append(at)
                at = warm.sessions[at]["newer"]
            assert chain == list(each.states)
            assert warm.hosts[j]["kept"] + warm.hosts[j]["held"] == each.taken() <= 60 * KV
    assert warm.hosts["evicted"].sum() > 100
    assert warm.hosts["expired"].sum() > 30
    assert warm.hosts["refused"].sum() > 0
    lose_all(0, warm)
    assert warm.hosts["kept"][0] == warm.hosts["held"][0] == 0
    assert warm.hosts["oldest"][0] == warm.hosts["newest"][0] == NOBODY


# -- the event loop ----------------------------------------------------------------------------------------


class Reference(Agenda):
    """Sites, servers, shelves and sessions, event by event; waits are advertised as given."""

    def __init__(self, town, rules, policy):
        super().__init__()
        self.town, self.rules, self.policy = town, rules, policy
        n = len(town.xy)
        self.queue, self.running = [deque() for _ in range(n)], [0] * n
        self.shelf = [Shelf(rules.host_memory_bytes, rules.keep_s) for _ in range(n)]
        self.latest, self.where, self.ready = {}, {}, {}
        self.log = {}

    def reload(self, tokens):
        return max(tokens, 0) * KV / self.rules.host_bytes_per_s

    def fetch(self, tokens):
        return max(tokens, 0) * KV / self.rules.backhaul_bytes_per_s

    def ways(self, i, home, hit, prompt, q):
        """Return every way to serve a turn at site i that the rule allows, as (seconds, preference, outcome)."""
        cached, rule = self.rules.hit_tokens[i, q], self.rules.handover
        again = (float(seconds(prompt - cached)), 1, RE_PREFILL)
        if home is None:
            return [(again[0], 1, LOST)]
        warm = self.reload(hit - cached) + float(seconds(prompt - max(hit, cached)))
        if i == home:
            used = (warm, 0, STAY)
            return [used, again] if rule == "by_cost" else [used]
        if rule in ("stay", "re_prefill") or hit <= cached:
            return [again]
        used = (warm + self.fetch(hit - cached), 0, MIGRATE)
        return [used, again] if rule == "by_cost" else [used]

    def create(self, now, k, place, q, mark, s, turn, prompt):
        town, rules = self.town, self.rules
        radio = XI * np.hypot(*(town.xy - place).T) ** ALPHA
        counted = radio + (town.wait if self.policy == "load_aware" else 0.0)
        home, hit = self.where.get(s), 0
        if home is not None:
            self.shelf[home].expire(now)
            state = self.shelf[home].states.get(s)
            if state is None or self.ready[s] > now:
                home = None
            else:
                hit = state[0]
        weighs = self.policy != "nearest"

        def cost(i):
            if turn == 0:
                return counted[i] + weighs * town.prefill[i, q]
            blind = rules.handover != "by_cost"
            return counted[i] + weighs * min(self.ways(i, None if blind else home, hit, prompt, q))[0]

        costs = np.array([cost(i) for i in range(len(town.xy))])
        i = home if rules.handover == "stay" and home is not None else int(np.argmin(costs))
        outcome = min(self.ways(i, home, hit, prompt, q))[2] if turn else FRESH
        if self.where.get(s) is not None:
            self.shelf[self.where[s]].pop(s)
        if outcome == MIGRATE and not self.shelf[i].make_room(hit, now):
            outcome = RE_PREFILL
        if outcome not in (STAY, MIGRATE):
            hit = 0
        self.shelf[i].held += hit * KV
        moved = hit - rules.hit_tokens[i, q] if outcome == MIGRATE else 0
        self.latest[s], self.where[s] = turn, None
        self.log[k] = {"site": i, "outcome": outcome, "moved": moved * KV, "hit": hit, "cost": costs}
        self.log[k]["there"] = now + self.fetch(moved) if moved else 0.0
        self.log[k]["arrived"] = now + radio[i]
        self.at(now + radio[i], self.arrive, k, i, q, mark, s, turn, prompt)

    def arrive(self, now, k, i, *what):
        self.queue[i].append((k, *what))
        self.start(now, i)

    def start(self, now, i):
        while self.queue[i] and self.running[i] < self.town.servers[i]:
            k, q, mark, s, turn, prompt = self.queue[i].popleft()
            row, cached = self.log[k], self.rules.hit_tokens[i, q]
            prefill = self.town.prefill[i, q]
            if turn:
                stall = max(0.0, row["there"] - now)
                prefill = stall + self.reload(row["hit"] - cached) + seconds(prompt - max(row["hit"], cached))
            self.shelf[i].held -= row["hit"] * KV
            finish = now + prefill + mark * self.town.decode[q]
            if self.latest[s] == turn:
                self.shelf[i].put(s, prompt + self.rules.answer_tokens[q], now)
                self.where[s], self.ready[s] = i, finish
            assert self.shelf[i].taken() <= self.shelf[i].room
            row |= {"started": now, "prefill": prefill, "finished": finish}
            self.running[i] += 1
            self.at(finish, self.release, i)

    def release(self, now, i):
        self.running[i] -= 1
        self.start(now, i)


class Town:
    """Sites, caches and people who ask several times, moving between turns."""

    def __init__(self, seed=0, sites=6, sessions=130, over_s=360.0, step_km=0.6, think_s=20.0, alike=False):
        rng = np.random.default_rng(seed)
        self.xy, self.servers = rng.random((sites, 2)) * 2.0, rng.integers(2, 5, sites)
        self.hits = np.array([[0, 0], [256, 1024], [256, 256]])[rng.integers(0, 3, sites) * (not alike)]
        self.first, self.answer = np.array([512, 2048]), np.array([60, 100])
        self.prefill, self.decode = seconds(self.first - self.hits), np.array([1.0, 2.0])
        self.wait = rng.random(sites) * 0.2
        count = rng.geometric(0.3, sessions)
        session = np.repeat(np.arange(sessions), count)
        turn = np.arange(len(session)) - np.repeat(np.cumsum(count) - count, count)
        gap = np.where(turn == 0, 0.0, 2.0 + rng.exponential(think_s, len(turn)))
        since = np.cumsum(gap)
        created = np.sort(rng.random(sessions) * over_s)[session] + since - since[turn == 0][session]
        kind = rng.integers(0, 2, sessions)[session]
        place = rng.random((sessions, 2))[session] * 2.0 + step_km * turn[:, None] * rng.normal(
            size=(len(turn), 2)
        )
        order = np.argsort(created)
        self.turns = Turns(
            *(c[order] for c in (session, turn, self.first[kind] + turn * (self.answer[kind] + 90)))
        )
        self.kind, self.place, self.created = kind[order], place[order], created[order]
        self.mark = rng.standard_exponential(len(order))

    def requests(self):
        return Requests(
            self.created, self.place[:, 0], self.place[:, 1], self.kind, self.mark, turns=self.turns
        )

    def engine(self, rules, policy="load_aware"):
        return ServingEngine(
            self.xy,
            np.arange(len(self.xy)),
            self.servers,
            self.prefill,
            self.decode,
            delay_coefficient=XI,
            delay_exponent=ALPHA,
            policy=policy,
            sessions=rules,
        )

    def run(self, rules, policy="load_aware", pieces=1, advert=None):
        engine, requests = self.engine(rules, policy), self.requests()
        edges = np.linspace(0.0, self.created[-1] + 1.0, pieces + 1)
        for low, high in itertools.pairwise(edges):
            part = slice(*np.searchsorted(self.created, (low, high)).tolist())
            some = Requests(
                *(
                    getattr(requests, name)[part]
                    for name in ("created_s", "x_km", "y_km", "request_type", "mark")
                ),
                turns=self.turns.part(part),
            )
            engine.run(some, high, advert or Advert(wait_s=self.wait))
        engine.finish()
        return engine, engine.records(), engine.turn_records()


@pytest.mark.parametrize("handover", HANDOVERS)
@pytest.mark.parametrize("policy", ["load_aware", "prefix_only", "nearest"])
@pytest.mark.parametrize(
    ("room", "keep_s"), [(10**12, 1e6), (20_000 * KV, 1e6), (60_000 * KV, 30.0), (0, 1e6)]
)
def test_every_turn_is_served_as_by_the_reference(handover, policy, room, keep_s):
    town = Town(seed=len(handover) + 7 * len(policy) + int(keep_s) % 5)
    rules = make_rules(town.hits, town.answer, handover=handover, host_memory_bytes=room, keep_s=keep_s)
    reference = Reference(town, rules, policy)
    columns = (
        town.place,
        town.kind,
        town.mark,
        town.turns.session,
        town.turns.turn,
        town.turns.prompt_tokens,
    )
    for k, row in enumerate(zip(town.created, *columns, strict=True)):
        reference.at(row[0], reference.create, k, *row[1:])
    reference.run_until()
    _, records, turns = town.run(rules, policy, pieces=3)
    expected = {
        name: np.array([reference.log[k][name] for k in range(len(records))]) for name in reference.log[0]
    }
    assert (records.site == expected["site"]).all()
    assert (turns.outcome == expected["outcome"]).all()
    assert (turns.moved_bytes == expected["moved"]).all()
    assert np.allclose(records.started_s, expected["started"], rtol=0, atol=1e-9)
    assert np.allclose(records.prefill_s, expected["prefill"], rtol=0, atol=1e-9)
    assert np.allclose(records.finished_s, expected["finished"], rtol=0, atol=1e-9)
    if room == 0:
        assert set(turns.outcome) == {FRESH, LOST}
    if room > 0 and handover == "by_cost":
        assert {FRESH, STAY, LOST} <= set(turns.outcome)


def test_the_least_cost_is_taken_and_no_rule_promises_less():
    town = Town(seed=3)
    promised = {}
    for handover in HANDOVERS:
        rules = make_rules(town.hits, town.answer, handover=handover)
        # so few requests that none waits, and every rule finds the same states at the same time
        reference = Reference(town, rules, "load_aware")
        reference.town.servers[:] = 10**6
        k = 40
        reference.where, reference.ready, reference.latest = {0: 2}, {0: 0.0}, {0: 0}
        reference.shelf[2].put(0, 900, 0.0)
        reference.create(1.0, k, town.place[0], 1, 1.0, 0, 1, 2300)
        row = reference.log[k]
        i, cached = row["site"], town.hits[row["site"], 1]
        outcome, takes = option(i, 2, 900, 2300, cached, make_warm(rules, len(town.xy)))
        assert outcome == row["outcome"]
        assert takes == pytest.approx(min(reference.ways(i, 2, 900, 2300, 1))[0])
        begins = XI * np.hypot(*(town.xy[i] - town.place[0])) ** ALPHA + town.wait[i]
        promised[handover] = begins + takes
    assert promised["by_cost"] == min(promised.values())


def test_parts_add_up_and_nothing_is_lost():
    town = Town(seed=1)
    engine, records, turns = town.run(make_rules(town.hits, town.answer))
    assert engine.pending() == 0
    assert sum(records.counts().values()) == records.counts()["served"] == len(town.kind)
    assert np.allclose(records.ttft_s, records.radio_s + records.wait_s + records.prefill_s)
    cached = town.hits[records.site, town.kind]
    covered = np.maximum(cached, turns.warm_tokens)
    computed = seconds(turns.prompt_tokens - covered)
    assert np.allclose(records.prefill_s, turns.stall_s + turns.reload_s + computed)
    assert np.allclose(turns.reload_s, np.maximum(turns.warm_tokens - cached, 0) * KV / 2e8)
    moved = turns.outcome == MIGRATE
    assert (turns.moved_bytes[moved] == ((turns.warm_tokens - cached) * KV)[moved]).all()
    assert not turns.moved_bytes[~moved].any()
    assert not turns.stall_s[~moved].any()
    assert ((turns.outcome == FRESH) == (turns.turn == 0)).all()
    assert (engine.host_memory["peak"] <= engine.host_memory["limit"]).all()


def test_stretches_do_not_matter():
    town = Town(seed=4)
    rules = make_rules(town.hits, town.answer, host_memory_bytes=30_000 * KV, keep_s=100.0)
    (_, once, turns), (_, often, parts) = town.run(rules), town.run(rules, pieces=57)
    for name, column in once.columns().items():
        assert np.array_equal(column, often.columns()[name], equal_nan=True), name
    for name, column in turns.columns().items():
        assert np.array_equal(column, parts.columns()[name]), name


@pytest.mark.parametrize("handover", HANDOVERS)
def test_who_stands_still_finds_a_warm_state(handover):
    town = Town(seed=5, step_km=0.0, over_s=40_000.0, alike=True)
    _, records, turns = town.run(make_rules(town.hits, town.answer, handover=handover), "load_aware")
    later = turns.turn > 0
    finished = {}
    early = np.zeros(len(later), dtype=bool)
    for k in range(len(later)):
        early[k] = finished.get(turns.session[k], -np.inf) > records.created_s[k]
        finished[turns.session[k]] = records.finished_s[k]
    assert early.sum() < 0.1 * later.sum()
    settled = np.flatnonzero(later & ~early)
    if handover in ("by_cost", "stay"):
        assert (turns.outcome[settled] == STAY).all()
    assert (turns.outcome[early] == LOST).all()
    same = {}
    for k in range(len(later)):
        if handover == "stay" and k in settled:
            assert records.site[k] == same[turns.session[k]]
        same[turns.session[k]] = records.site[k]


def test_little_memory_evicts_and_a_queue_may_argue_otherwise():
    town = Town(seed=5, step_km=0.0, over_s=40_000.0)
    tight, _, turns = town.run(make_rules(town.hits, town.answer, host_memory_bytes=4_000 * KV))
    assert tight.host_memory["evicted"].sum() > 0
    assert (turns.outcome == LOST).sum() > 0
    crowded = Town(seed=5, step_km=0.0, over_s=120.0)
    queues = Advert(kind="state", telemetry_period_s=0.0)
    _, _, turns = crowded.run(make_rules(crowded.hits, crowded.answer), advert=queues)
    assert np.isin(turns.outcome, (MIGRATE, RE_PREFILL)).sum() > 10


def test_a_faster_backhaul_fetches_more_and_computes_less():
    town = Town(seed=6, step_km=1.5, sessions=600, over_s=30_000.0)
    shares = []
    for rate in (1e5, 3e6, 1e7, 1e8):
        rules = make_rules(town.hits, town.answer, backhaul_bytes_per_s=rate, host_bytes_per_s=1e9)
        _, records, turns = town.run(rules, "nearest")
        shares.append(
            (*(np.bincount(turns.outcome, minlength=5) / len(turns.outcome)), records.ttft_s.mean())
        )
    share = np.array(shares)
    assert (np.diff(share[:, MIGRATE]) >= 0).all()
    assert (np.diff(share[:, RE_PREFILL]) <= 0).all()
    assert share[-1, MIGRATE] > share[0, MIGRATE] + 0.1
    assert share[-1, -1] < share[0, -1]


def fetching(*rates, busy_s=20.0, backhaul=1e5):
    """Return a turn that fetches 970 kB to a site with one server, busy for a while, as the backhaul changes.

    `rates` are pairs of a time [s] and a rate [B/s]. A fetch begins at 11 s and would usually end at 20.7 s.
    """
    rules = make_rules(np.zeros((2, 1)), [10], handover="migrate", backhaul_bytes_per_s=backhaul)
    engine = ServingEngine(
        [[0.0, 0.0], [9.0, 0.0]],
        0,
        1,
        np.full((2, 1), seconds(960)),
        [1.0],
        delay_coefficient=XI,
        delay_exponent=ALPHA,
        policy="nearest",
        sessions=rules,
    )
    turns = Turns(np.array([0, -1, 0]), np.array([0, 0, 1]), np.array([960, 960, 1300]))
    mark = np.array([1.0, busy_s, 1.0])
    x, times = np.array([0.0, 9.0, 9.0]), np.array([0.0, 10.0, 11.0])
    engine.run(Requests(times, x, np.zeros(3), np.zeros(3, dtype=int), mark, turns=turns), 11.0)
    for time, rate in rates:
        engine.run(Requests.none(), time)
        engine.set_backhaul(rate, [1])
    engine.finish()
    return engine.records(), engine.turn_records()


def test_what_is_being_fetched_goes_on_at_the_new_rate():
    begin, moved = 11.0, 970 * KV
    free = 10.0 + float(seconds(960)) + 20.0
    for rates, there in [
        ([], begin + moved / 1e5),
        ([(15.0, 5e4)], 15.0 + (moved - 4e5) / 5e4),
        ([(15.0, 0.0), (22.0, 1e5)], 22.0 + (moved - 4e5) / 1e5),
        ([(12.0, 0.0), (20.0, 0.0), (29.9, 4e6), (30.0, 2.5e6)], 30.0 + (moved - 1e5 - 4e5) / 2.5e6),
    ]:
        records, turns = fetching(*rates)
        assert turns.outcome[2] == MIGRATE
        assert turns.moved_bytes[2] == moved
        assert records.started_s[2] == pytest.approx(free)
        assert turns.stall_s[2] == pytest.approx(max(0.0, there - free), abs=1e-9)
    assert turns.stall_s[2] > 0.05


def test_a_fetch_that_has_become_too_slow_is_called_off_and_what_has_come_is_counted():
    for rates, came in [
        ([(15.0, 0.0)], 4e5),
        ([(15.0, 1e3)], 4e5 + 1e3 * (30.0 + float(seconds(960)) - 15.0)),
    ]:
        records, turns = fetching(*rates)
        assert turns.outcome[2] == RE_PREFILL
        assert turns.warm_tokens[2] == 0
        assert turns.stall_s[2] == turns.reload_s[2] == 0.0
        assert records.prefill_s[2] == pytest.approx(float(seconds(1300)))
        assert turns.moved_bytes[2] == pytest.approx(came, abs=2.0)
    # As ever, one that is as slow as it always was is waited for.
    _, turns = fetching(backhaul=3e4)
    assert turns.outcome[2] == MIGRATE
    assert turns.stall_s[2] > 10.0


def talking(x_km):
    """Return an engine of two sites on the clock of 11 s; the second turn is about to be asked at a place."""
    rules = make_rules(np.zeros((2, 1)), [10], handover="migrate", backhaul_bytes_per_s=1e5)
    engine = ServingEngine(
        [[0.0, 0.0], [9.0, 0.0]],
        0,
        1,
        np.full((2, 1), seconds(960)),
        [1.0],
        delay_coefficient=0.001,
        delay_exponent=ALPHA,
        policy="nearest",
        sessions=rules,
    )
    here = Requests([0.0], [0.0], [0.0], [0], [1.0], turns=Turns([0], [0], [960]))
    engine.run(here, 11.0)
    return engine, Requests([11.0], [x_km], [0.0], [0], [1.0], turns=Turns([0], [1], [1300]))


def test_a_silent_site_is_believed_to_keep_states_and_sends_none():
    engine, second = talking(9.0)
    engine.fall_silent(0)
    engine.run(second, 11.0)
    engine.finish()
    records, turns = engine.records(), engine.turn_records()
    assert records.site.tolist() == [0, 1]
    assert turns.outcome.tolist() == [FRESH, LOST]
    assert turns.moved_bytes[1] == 0
    assert records.prefill_s[1] == pytest.approx(float(seconds(1300)))


@pytest.mark.parametrize("x_km", [0.0, 9.0])
def test_a_silent_site_that_comes_back_has_lost_the_states_of_the_turns_it_holds(x_km):
    """A turn that stays, and one whose state has come for three seconds of nine."""
    engine, second = talking(x_km)
    site = int(x_km > 0)
    engine.run(second, 11.0)
    assert engine.turn_records().outcome[1] == (MIGRATE if site else STAY)
    engine.fall_silent(site)
    engine.run(Requests.none(), 14.0)
    engine.recover(site)
    engine.finish()
    records, turns = engine.records(), engine.turn_records()
    assert records.site[1] == site
    assert records.started_s[1] == 14.0
    assert turns.outcome[1] == LOST
    assert turns.moved_bytes[1] == pytest.approx(3e5 if site else 0, abs=2)
    assert records.prefill_s[1] == pytest.approx(float(seconds(1300)))
    assert not engine.host_memory["held"].any()


def test_nothing_is_fetched_over_a_backhaul_that_is_lost():
    for handover in ("by_cost", "migrate"):
        town = Town(seed=6, step_km=1.5)
        engine = town.engine(make_rules(town.hits, town.answer, handover=handover))
        engine.set_backhaul(0.0, range(engine.n_sites))
        engine.run(town.requests(), float(town.created[-1]), Advert(wait_s=town.wait))
        engine.finish()
        turns = engine.turn_records()
        assert not (turns.outcome == MIGRATE).any()
        assert (turns.outcome == RE_PREFILL).any()


def test_requests_without_sessions_are_served_as_before():
    town = Town(seed=7)
    plain = Requests(town.created, town.place[:, 0], town.place[:, 1], town.kind, town.mark)
    rows = []
    for rules in (None, make_rules(town.hits, town.answer)):
        engine = town.engine(rules)
        engine.run(plain, town.created[-1] + 1.0, Advert(wait_s=town.wait))
        engine.finish()
        rows.append(engine.records().columns())
    for name, column in rows[0].items():
        assert np.array_equal(column, rows[1][name], equal_nan=True), name


def test_bad_rules_are_refused_in_one_line():
    town = Town()
    with pytest.raises(GeoEdgeError, match="handover"):
        make_rules(town.hits, town.answer, handover="fly")
    with pytest.raises(GeoEdgeError, match="keep_s"):
        make_rules(town.hits, town.answer, keep_s=0.0)
    with pytest.raises(GeoEdgeError, match="whole numbers"):
        Turns([0, 1], [0], [5, 5])
    engine = town.engine(make_rules(town.hits, town.answer, prefill_s=seconds(np.arange(600))))
    with pytest.raises(GeoEdgeError, match="known up to 599"):
        engine.run(town.requests(), 1e6)
    with pytest.raises(GeoEdgeError, match="hit_tokens"):
        make_rules(5, town.answer)


@pytest.mark.parametrize(
    ("site", "given", "words"),
    [
        (-1, {"hit_row": [9, 9]}, "site"),
        (6, {"hit_row": [9, 9]}, "site"),
        (0, {"hit_row": [9, 9], "time_s": 5.0}, "time_s"),
        (0, {"hit_row": [9]}, "hit_row"),
        (0, {"hit_row": [9, -9]}, "hit_row"),
    ],
)
def test_a_change_that_is_refused_changes_no_caches(site, given, words):
    town = Town()
    engine = town.engine(make_rules(town.hits, town.answer))
    with pytest.raises(GeoEdgeError, match=words):
        engine.reconfigure(site, **given)
    assert (engine.stations.warm.hits == town.hits).all()


def test_outcomes_are_numbered_as_they_are_named():
    assert OUTCOMES == ("fresh", "stay", "migrate", "re_prefill", "lost")
