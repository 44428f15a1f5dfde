"""Routers that look at every site against a brute-force world, for every policy and every option.

The world is plain Python, one heap of events, every site looked at for every request. It shares with the package
nothing but the recipe of the random numbers, written down again here: doors are judged at every event, reports are
made by events of their own, and policies are spelled out as their documents say.
"""

from __future__ import annotations

import itertools
import math
from collections import deque

import numpy as np
import pytest

from geoedge.policies import POLICIES
from geoedge.serving.advertising import Advert
from geoedge.serving.doors import Admission
from geoedge.serving.events import ServingEngine
from geoedge.serving.inquiring import Prompts, RoutingOptions
from geoedge.serving.records import Requests
from tests.serving.agenda import Agenda

XI, ALPHA = 0.28, 2.0
WORD = (1 << 64) - 1
PRIOR = 16.0
GOLDEN = 0.6180339887498949


def mixed(state, key):
    z = ((state ^ (key & WORD)) + 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def uniform(state, key):
    return (mixed(state, key) >> 11) * 2.0**-53


def normal(state, key):
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(state, 2 * key)))
    return radius * math.cos(2.0 * math.pi * uniform(state, 2 * key + 1))


def any_of_least(costs, draw):
    """Return a site of least cost; equals share the draw."""
    least = min(costs.values())
    if least == math.inf:
        return None
    equals = [i for i, cost in costs.items() if cost == least]
    return equals[0] if draw is None or len(equals) == 1 else equals[int(draw * len(equals))]


def by_logit(costs, scale, draw):
    best = min(costs.values())
    weights = {i: math.exp((best - cost) / scale) for i, cost in costs.items() if cost < math.inf}
    total, reached = sum(weights.values()), 0.0
    for i, weight in weights.items():
        reached += weight
        if reached > draw * total:
            return i
    return i


def choose(name, numbers, seen, tokens, blocks_each, luck, attempt):
    """Return the site that a policy chooses among those seen: site -> what is believed of it."""
    if not seen:
        return None
    draw, number = uniform(luck, 8 * attempt), numbers.get
    if name in ("nearest", "prefix_only", "load_aware", "risk_aware"):
        costs = {i: s["radio"] for i, s in seen.items()}
        if name != "nearest":
            costs = {i: cost + seen[i]["prefill"] for i, cost in costs.items()}
        if name == "load_aware":
            costs = {i: cost + seen[i]["wait"] for i, cost in costs.items()}
        if name == "risk_aware":
            costs = {i: c + (seen[i]["wait"] + number("z") * seen[i]["sigma"]) for i, c in costs.items()}
        return any_of_least(costs, None)
    if name == "softmax":
        costs = {i: s["radio"] + s["prefill"] + s["wait"] for i, s in seen.items()}
        return by_logit(costs, number("temperature_s"), draw)
    if name == "power_of_two":
        sites = list(seen)
        first = int(draw * len(sites))
        second = first
        if len(sites) > 1:
            second = int(uniform(luck, 8 * attempt + 1) * (len(sites) - 1))
            second += second >= first
        a, b = sites[first], sites[second]
        if seen[a]["count"] == seen[b]["count"]:
            return a if uniform(luck, 8 * attempt + 2) < 0.5 else b
        return min(a, b, key=lambda i: seen[i]["count"])
    loads = {i: s["count"] for i, s in seen.items()}
    most, least, match = max(loads.values()), min(loads.values()), max(s["hit"] for s in seen.values())
    if name == "dynamo_kv":
        blocks = {i: tokens * (1.0 - s["hit"]) / number("block_tokens") for i, s in seen.items()}
        costs = {i: number("overlap_score_weight") * blocks[i] + loads[i] * blocks_each for i in seen}
        if number("router_temperature") > 0:
            low, high = min(costs.values()), max(costs.values())
            costs = {i: (c - low) / (high - low) if high > low else 0.0 for i, c in costs.items()}
            return by_logit(costs, number("router_temperature"), draw)
    elif name == "sglang_cache_aware":
        if most - least > number("balance_abs_threshold") and most > number("balance_rel_threshold") * least:
            costs = loads
        elif match > number("cache_threshold"):
            costs = {i: -s["hit"] for i, s in seen.items()}
        else:
            costs = {i: s["held"] for i, s in seen.items()}
    elif name == "production_stack":
        mean = sum(loads.values()) / len(loads)
        costs = {i: number("beta") * ((loads[i] - mean) / max(1.0, mean)) - s["hit"] for i, s in seen.items()}
    elif name == "llm_d":
        queue = {i: max(s["count"] - s["servers"], 0.0) for i, s in seen.items()}
        high, low = max(queue.values()), min(queue.values())
        costs = {}
        for i, s in seen.items():
            short = (high - queue[i]) / (high - low) if high > low else 1.0
            free = 1.0 - min(s["count"] / s["servers"], 1.0)
            costs[i] = -(
                number("prefix_weight") * s["hit"]
                + number("queue_weight") * short
                + number("kv_weight") * free
            )
    elif name == "preble":
        work = {i: s["count"] * s["slope"] for i, s in seen.items()}
        holders = {i: work[i] for i, s in seen.items() if s["hit"] == match}
        if match > 0.5 and min(holders.values()) <= number("balance_ratio") * min(work.values()):
            costs = holders
        else:
            costs = {i: work[i] + s["prefill"] for i, s in seen.items()}
    return any_of_least(costs, draw)


class World(Agenda):
    """Sites, doors, routers and reports, event by event."""

    def __init__(
        self,
        sites,
        policy,
        numbers,
        *,
        shift,
        routers,
        noise,
        own,
        reach,
        close,
        reopen,
        redirects,
        seed,
        toll=0.0,
    ):
        super().__init__()
        self.__dict__.update(sites)
        self.n, self.c, self.shift = len(self.xy), list(self.concurrency), shift
        self.policy, self.numbers, self.reach = policy, numbers, reach
        self.close, self.reopen, self.redirects, self.seed = close, reopen, redirects, seed
        self.toll = toll
        self.routers, self.own = routers, own
        self.noise = math.sqrt(math.log1p(noise * noise))
        self.held = self.prefill.copy()
        self.means = [float(np.mean(row + self.decode)) for row in self.prefill]
        self.queue, self.air = [deque() for _ in range(self.n)], [set() for _ in range(self.n)]
        self.running, self.services = [{} for _ in range(self.n)], [[] for _ in range(self.n)]
        self.door, self.full = ["open"] * self.n, [False] * self.n
        self.told = [None] * self.n
        self.heard = [None] * routers
        self.sent = [[0] * self.n for _ in range(routers)]
        self.log, self.requests = {}, {}
        self.redirected, self.rejected = [0] * self.n, [0] * self.n
        self.started_at = [0] * self.n

    # -- sites -------------------------------------------------------------------------------------

    def admitted(self, i):
        return len(self.air[i]) + len(self.queue[i]) + len(self.running[i])

    def judge(self, i):
        if self.close is None or self.told[i] is not None:
            return
        if self.full[i] and self.admitted(i) <= self.reopen * self.c[i]:
            self.full[i] = False
        if not self.full[i] and self.admitted(i) >= self.close * self.c[i]:
            self.full[i] = True

    def arrive(self, time, k, life):
        if self.requests[k]["life"] != life:
            return
        i = self.log[k]["site"]
        self.air[i].discard(k)
        self.queue[i].append(k)
        self.start(time, i)

    def start(self, time, i):
        while self.told[i] is None and self.queue[i] and len(self.running[i]) < self.c[i]:
            k = self.queue[i].popleft()
            q, mark = self.requests[k]["q"], self.requests[k]["mark"]
            service = self.held[i, q] + mark * self.decode[q]
            self.running[i][k] = time + service
            self.services[i].append(service)
            self.log[k] |= {"started": time, "prefill": self.held[i, q], "finished": time + service}
            self.at(time + service, self.release, k, i, self.requests[k]["life"])

    def release(self, time, k, i, life):
        if self.running[i].get(k) != time or self.requests[k]["life"] != life:
            return
        del self.running[i][k]
        self.judge(i)
        self.start(time, i)

    def fall_silent(self, time, i):
        """Who has no first token begins again, before those that wait; nobody hears of it."""
        self.told[i] = len(self.queue[i]) + len(self.running[i])
        held = []
        for k in self.running[i]:
            if self.log[k]["started"] + self.log[k]["prefill"] > time:
                held.append((self.log[k]["arrived"], self.log[k]["started"], k))
                for name in ("started", "prefill", "finished"):
                    del self.log[k][name]
            else:
                self.log[k]["finished"] = time
        self.running[i], self.full[i] = {}, False
        self.queue[i].extendleft(k for _, _, k in sorted(held, reverse=True))

    def wake(self, time, i):
        self.told[i] = None
        self.judge(i)
        self.start(time, i)

    def fail(self, time, i):
        self.door[i], self.told[i] = "failed", None
        lost = sorted(
            [*self.air[i], *self.queue[i]]
            + [k for k in self.running[i] if self.log[k]["started"] + self.log[k]["prefill"] > time]
        )
        for k in self.running[i]:
            self.log[k]["finished"] = time
        self.air[i], self.queue[i], self.running[i], self.full[i] = set(), deque(), {}, False
        for k in lost:
            self.requests[k]["life"] += 1
            self.route(time, k)
        return len(lost)

    def reconfigure(self, time, i, concurrency, prefill):
        self.c[i], self.held[i] = concurrency, prefill
        self.means[i], self.services[i] = float(np.mean(prefill + self.decode)), []
        self.judge(i)
        self.start(time, i)

    # -- routers -----------------------------------------------------------------------------------

    def state(self, i):
        mean = (PRIOR * self.means[i] + sum(self.services[i])) / (PRIOR + len(self.services[i]))
        there = len(self.queue[i]) + len(self.running[i]) if self.told[i] is None else self.told[i]
        ahead, slope = max(there + 1 - self.c[i], 0), mean / self.c[i]
        return {
            "wait": ahead * slope,
            "sigma": math.sqrt(ahead) * slope,
            "count": float(there),
            "slope": slope,
        }

    def report(self, time, r, k):
        luck, rows = mixed(mixed(self.seed, r), k), []
        for i in range(self.n):
            row = self.state(i) | {"sent": self.sent[r][i]}
            if self.noise > 0:
                factor = math.exp(self.noise * normal(luck, i) - 0.5 * self.noise**2)
                row |= {name: row[name] * factor for name in ("wait", "sigma", "count")}
            rows.append(row)
        self.at(time + self.delay, self.hear, r, rows)
        self.at(self.phase(r) + (k + 1) * self.period, self.report, r, k + 1)

    def hear(self, time, r, rows):
        self.heard[r] = rows

    def phase(self, r):
        return r * GOLDEN % 1.0 * self.period

    def listen(self, period, delay):
        self.period, self.delay = period, delay
        for r in range(self.routers if period else 0):
            self.at(self.phase(r), self.report, r, 0)

    def believe(self, r, i):
        if not self.period:
            return self.state(i)
        if self.heard[r] is None:
            return {"wait": 0.0, "sigma": 0.0, "count": 0.0, "slope": 0.0}
        row = dict(self.heard[r][i])
        if self.own:
            count, own, c = row["count"], self.sent[r][i] - row["sent"], self.c[i]
            row["wait"] += (max(count + own + 1.0 - c, 0.0) - max(count + 1.0 - c, 0.0)) * row["slope"]
            row["count"] = count + own
        return row

    def create(self, time, k, place, q, mark, router):
        self.requests[k] = {"place": place, "q": q, "mark": mark, "router": router, "life": 0, "asked": 0}
        self.route(time, k)

    def route(self, time, k):
        about = self.requests[k]
        r, q = about["router"], about["q"]
        far = ((self.xy - about["place"]) ** 2).sum(axis=1)
        seen = {}
        for i in range(self.n):
            if self.door[i] != "open" or self.believed[i, q] == math.inf:
                continue
            seen[i] = self.believe(r, i) | {
                "radio": XI * far[i],
                "prefill": self.believed[i, q],
                "hit": self.hit[i, q],
                "held": self.cached[i],
                "servers": float(self.c[i]),
            }
        luck = mixed(mixed(self.seed, k), about["life"])
        asked, sent_on = None, 0
        while True:
            near = min(seen, key=lambda i: seen[i]["radio"]) if seen else None
            within = {i: s for i, s in seen.items() if s["radio"] <= self.reach or i == near}
            i = choose(self.policy, self.numbers, within, self.tokens[q], self.blocks_each, luck, sent_on)
            if i is None:
                break
            if asked is not None:
                self.redirected[asked] += 1
                sent_on += 1
            asked = i
            if not self.full[i]:
                break
            if sent_on == self.redirects:
                i = None
                break
            del seen[i]
        about["asked"] += sent_on
        if i is None:
            self.rejected[int(np.argmin(far)) if asked is None else asked] += 1
            self.log[k] = {"site": -1, "redirects": about["asked"]}
            return
        radio, late = XI * far[i], sent_on * self.toll
        self.log[k] = {
            "site": i,
            "radio": radio,
            "arrived": time + late + self.shift * radio,
            "redirects": about["asked"],
        }
        self.sent[r][i] += 1
        self.air[i].add(k)
        if self.shift or late:
            self.at(self.log[k]["arrived"], self.arrive, k, about["life"])
        else:
            self.arrive(time, k, about["life"])
        self.judge(i)


ROOM, TOKENS, OUTPUT = 2.0, np.array([600.0, 2000.0]), np.array([100.0, 300.0])
PLAIN = {"routers": 1, "noise": 0.0, "own": False, "close": None, "reopen": None, "redirects": 1}
CROWDED = {"routers": 3, "noise": 0.3, "own": True, "close": 2.5, "reopen": 1.5, "redirects": 2}
HEARING = {"fresh": (0.0, 0.0), "period": (0.7, 0.0), "late": (0.31, 1.7)}
PROMPTS = Prompts(TOKENS, OUTPUT, np.array([0.0, 1.0]), np.array([0.0, 2500.0]))


def draw_sites(rng, n):
    """Return the sites of a small world; a third of each type is cached somewhere, so that matches tie."""
    cached = rng.choice([0.0, 0.2, 0.6, 0.9], (n, 2))
    prefill = (1 - cached) * TOKENS / 2500.0
    hit = PROMPTS.hit_share(prefill)
    return {
        "xy": rng.uniform(0, ROOM, (n, 2)),
        "concurrency": rng.integers(1, 5, n),
        "prefill": prefill,
        "decode": rng.uniform(0.2, 0.9, 2),
        "hit": hit,
        "cached": hit @ TOKENS,
        "believed": prefill,
        "tokens": TOKENS,
    }


LOUD = ["change", "change", "fail", "fail", "recover", "recover", "recover", "close"]
QUIET = ["change", "silent", "silent", "silent", "fail", "recover", "recover", "close"]


def act(rng, engine, world, time, kinds):
    """Let a few sites change, fail, recover and close, in both worlds; return how many requests were lost."""
    lost = 0
    for i in rng.permutation(world.n)[:4].tolist():
        kind = rng.choice(kinds)
        if kind == "change":
            servers, prefill = int(rng.integers(1, 5)), rng.uniform(0.05, 0.6, 2)
            engine.reconfigure(i, concurrency=servers, prefill_row=prefill)
            world.reconfigure(time, i, servers, prefill)
        elif kind == "fail" and world.door[i] != "failed":
            lost += engine.fail(i)
            world.fail(time, i)
        elif kind == "silent" and world.door[i] != "failed" and world.told[i] is None:
            engine.fall_silent(i)
            world.fall_silent(time, i)
        elif kind == "recover" and world.told[i] is not None:
            engine.recover(i)
            world.wake(time, i)
        elif kind == "recover" and world.door[i] == "failed":
            engine.recover(i)
            world.door[i] = "open"
        elif kind == "close" and world.door[i] == "open":
            engine.close(i)
            world.door[i] = "shut"
    return lost


def both(
    seed,
    policy,
    hearing=(0.7, 0.0),
    options=CROWDED,
    *,
    numbers=None,
    shift=True,
    reach=0.4,
    n=7,
    m=400,
    kinds=LOUD,
):
    """Run engine and brute-force world over a few stretches with changes between them; return both, the sums and the lost."""
    rng = np.random.default_rng(seed)
    sites, horizon = draw_sites(rng, n), m / (n * 4.0)
    counts_radio = POLICIES[policy].counts_radio
    engine = ServingEngine(
        sites["xy"],
        0,
        sites["concurrency"],
        sites["prefill"],
        sites["decode"],
        delay_coefficient=XI,
        delay_exponent=ALPHA,
        policy=policy,
        policy_parameters=numbers,
        options=RoutingOptions(
            routers=options["routers"],
            noise=options["noise"],
            counts_own=options["own"],
            reach_s=reach,
            admission=Admission(
                options["close"], options["reopen"], options["redirects"], options.get("toll", 0.0)
            ),
            seed=seed,
        ),
        prompts=PROMPTS,
        radio_shifts_arrival=shift,
    )
    own = dict(zip(POLICIES[policy].parameters, POLICIES[policy].values(numbers), strict=True))
    world = World(
        sites, policy, own, shift=shift, reach=np.inf if counts_radio else reach, seed=seed, **options
    )
    world.blocks_each = float((TOKENS + OUTPUT).mean() / own.get("block_tokens", 1.0))
    world.listen(*hearing)
    created = np.sort(rng.uniform(0, horizon, m))
    x, y = rng.uniform(0, ROOM, (2, m))
    router = rng.integers(0, options["routers"], m)
    requests = Requests(created, x, y, rng.integers(0, 2, m), rng.exponential(size=m), router)
    for k in range(m):
        place = np.array([x[k], y[k]])
        world.at(created[k], world.create, k, place, requests.request_type[k], requests.mark[k], router[k])
    # What routers believe of caches stays as it was at first, whatever sites come to hold.
    advert = Advert(
        "state",
        telemetry_period_s=hearing[0],
        telemetry_delay_s=hearing[1],
        prefill=sites["prefill"].copy(),
    )
    sums, lost = [], 0
    for low, high in itertools.pairwise(np.linspace(0, horizon, 6)):
        if low > 0:
            lost += act(rng, engine, world, float(low), kinds)
        inside = (created >= low) & (created < high)
        names = ("created_s", "x_km", "y_km", "request_type", "mark", "router")
        sums.append(engine.run(Requests(*(getattr(requests, name)[inside] for name in names)), high, advert))
        world.run_until(high)
    return engine, world, sums, lost


def assert_same(engine, world, sums):
    records, log = engine.records(), world.log
    assert sorted(log) == list(range(len(records)))
    assert records.site.tolist() == [log[k]["site"] for k in range(len(records))]
    assert records.redirects.tolist() == [log[k]["redirects"] for k in range(len(records))]
    assert records.lost.tolist() == [world.requests[k]["life"] for k in range(len(records))]
    for mine, theirs in {
        "radio": "radio_s",
        "arrived": "arrived_s",
        "started": "started_s",
        "prefill": "prefill_s",
        "finished": "finished_s",
    }.items():
        expected = np.array([log[k].get(mine, np.nan) for k in range(len(records))])
        np.testing.assert_allclose(getattr(records, theirs), expected, rtol=1e-10, atol=1e-10, err_msg=mine)
    begun = np.flatnonzero(~np.isnan(records.started_s))
    shift = 0.0 if world.shift else records.radio_s[begun]
    first = np.array([log[k]["started"] + log[k]["prefill"] for k in begun]) + shift
    np.testing.assert_allclose(records.ttft_s[begun], first - records.created_s[begun], atol=1e-10)
    assert sum(s.rejected for s in sums).tolist() == world.rejected
    assert sum(s.redirected for s in sums).tolist() == world.redirected


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("hearing", HEARING.values(), ids=HEARING.keys())
def test_every_policy_against_brute_force(policy, hearing):
    """Three routers, noise, own counts, doors that close by load, by hand and by failure."""
    for seed in range(3):
        engine, world, sums, _ = both(seed, policy, hearing, shift=seed != 1)
        assert_same(engine, world, sums)


@pytest.mark.parametrize("policy", ["load_aware", "power_of_two", "llm_d"])
@pytest.mark.parametrize("hearing", HEARING.values(), ids=HEARING.keys())
@pytest.mark.parametrize(
    "options", [PLAIN, PLAIN | {"own": True}, CROWDED], ids=["plain", "own counts", "crowded"]
)
def test_failures_that_nobody_knows_of_against_brute_force(policy, hearing, options):
    """Sites fall silent, are found out, or come back before that."""
    for seed in range(30, 34):
        engine, world, sums, _ = both(seed, policy, hearing, options, shift=seed != 31, kinds=QUIET)
        assert_same(engine, world, sums)
        waiting = sum(len(queue) for queue in world.queue)
        assert engine.records().counts()["waiting"] == waiting == sums[-1].waiting.sum()


@pytest.mark.parametrize(
    ("policy", "numbers"),
    [
        ("dynamo_kv", {"router_temperature": 0.3, "overlap_score_weight": 2.0}),
        ("sglang_cache_aware", {"balance_abs_threshold": 2.0, "cache_threshold": 0.7}),
        ("production_stack", {"beta": 0.2}),
        ("llm_d", {"prefix_weight": 2.0, "kv_weight": 1.0}),
        ("preble", {"balance_ratio": 1.0}),
        ("softmax", {"temperature_s": 0.4}),
        ("risk_aware", {"z": 3.0}),
    ],
)
def test_other_numbers_than_a_policy_s_own(policy, numbers):
    engine, world, sums, _ = both(11, policy, numbers=numbers)
    assert_same(engine, world, sums)
    plain, _, _, _ = both(11, policy)
    assert (engine.records().site != plain.records().site).any()


@pytest.mark.parametrize("policy", ["load_aware", "nearest", "power_of_two"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"close": 1.0, "reopen": 0.0, "redirects": 0},
        {"close": 1.5, "reopen": 1.0, "redirects": 100},
        {"close": 1.0, "reopen": 0.5, "redirects": 3, "toll": 0.13},
        {"routers": 5},
        {"noise": 0.5},
        {"own": True},
    ],
    ids=[
        "one router",
        "no redirection",
        "everybody asked",
        "time lost",
        "five routers",
        "noise",
        "own counts",
    ],
)
def test_one_option_at_a_time(policy, changes):
    for seed in (20, 21):
        engine, world, sums, _ = both(seed, policy, options=PLAIN | changes)
        assert_same(engine, world, sums)


def test_reach_and_the_nearest():
    """With no reach at all the nearest open site serves everybody; with all the reach radio counts for nothing."""
    engine, world, sums, _ = both(5, "power_of_two", options=PLAIN, reach=0.0)
    assert_same(engine, world, sums)
    other, world, sums, _ = both(5, "power_of_two", options=PLAIN, reach=100.0)
    assert_same(other, world, sums)
    near, far = engine.records().distance_km, other.records().distance_km
    assert np.nanmean(near) < 0.6 * np.nanmean(far), "who finds all doors closed has no site"


def test_the_small_worlds_are_hard_enough():
    """The comparisons have teeth: doors close and open, requests are lost, redirected and rejected, ties are broken."""
    held = 0
    for seed in range(30, 34):
        engine, world, _, gone = both(seed, "power_of_two", kinds=QUIET)
        held += gone + sum(len(world.queue[i]) for i in range(world.n) if world.told[i] is not None)
        assert any(told is not None for told in world.told)
    assert held > 40
    lost = redirected = rejected = waiting = 0
    for seed in range(3):
        engine, _, sums, gone = both(seed, "production_stack")
        lost += gone
        redirected += sum(int(s.redirected.sum()) for s in sums)
        rejected += sum(int(s.rejected.sum()) for s in sums)
        waiting += sum(int(s.waiting.sum()) for s in sums)
        assert (engine.records().lost > 0).any()
    assert min(lost, redirected, rejected, waiting) > 10
