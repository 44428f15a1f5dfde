"""What routers do to each other: herds on stale reports, what relieves and what cures them, and the hotspot of prefixes."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.serving.advertising import Advert
from geoedge.serving.events import ServingEngine
from geoedge.serving.inquiring import RoutingOptions
from geoedge.serving.queue import fcfs_starts
from geoedge.serving.records import Requests

N, SERVERS, DECODE = 12, 4, 0.9


def waits(policy, advert, seed, *, m=12_000, load=0.8, prefill=None, numbers=None, **options):
    """Return the mean wait [s] and requests by site of a city so small that radio hardly counts."""
    rng = np.random.default_rng(seed)
    table = np.full((N, 1), 0.1) if prefill is None else prefill
    engine = ServingEngine(
        rng.uniform(0, 0.3, (N, 2)),
        0,
        SERVERS,
        table,
        [DECODE],
        delay_coefficient=0.01,
        delay_exponent=2.0,
        policy=policy,
        policy_parameters=numbers,
        options=RoutingOptions(seed=seed, **options),
    )
    created = np.cumsum(rng.exponential((0.1 + DECODE) / (load * N * SERVERS), m))
    x, y = rng.uniform(0, 0.3, (2, m))
    router = rng.integers(0, options.get("routers", 1), m)
    marks = rng.exponential(size=m)
    engine.run(Requests(created, x, y, np.zeros(m), marks, router), created[-1], advert)
    engine.finish()
    records = engine.records()
    return float(records.wait_s.mean()), np.bincount(records.site, minlength=N)


def test_two_choices_beat_chance_on_stale_reports():
    """Of reports a second old, the lesser of two is better than any at random, and than the least of all."""
    old = Advert("state", telemetry_period_s=1.0)
    for seed in range(2):
        two, _ = waits("power_of_two", old, seed)
        everybody, _ = waits("load_aware", old, seed)
        assert two < 0.6 * random_wait(np.random.default_rng(seed))
        assert two < 0.6 * everybody


def random_wait(rng, m=12_000, load=0.8):
    """Return the mean wait where every request goes to a site at random: independent queues M/G/c."""
    created = np.cumsum(rng.exponential((0.1 + DECODE) / (load * N * SERVERS), m))
    site, service = rng.integers(0, N, m), 0.1 + DECODE * rng.exponential(size=m)
    return np.mean(
        np.concatenate(
            [
                fcfs_starts(created[site == i], service[site == i], SERVERS) - created[site == i]
                for i in range(N)
            ]
        )
    )


def mean_wait(policy, advert, seeds=(5, 6, 7), **options):
    """Return the mean wait [s] over some seeds."""
    return np.mean([waits(policy, advert, seed, **options)[0] for seed in seeds])


def test_the_herd_and_what_relieves_it():
    """All who hear one old report run to one site. Own phases, two choices, chance: less of a herd, and no cure.

    With reports of four seconds a site is sent thirteen requests between two of them, of which forty routers know one
    in forty. The best of what they can do then is half of what requests wait that go to a site at random, and
    that is ten times and more what they wait if every report is fresh.
    """
    old, fresh = Advert("state", telemetry_period_s=4.0), Advert("state", telemetry_period_s=0.0)
    ideal = mean_wait("load_aware", fresh)
    blind = np.mean([random_wait(np.random.default_rng(seed)) for seed in (5, 6, 7)])
    herd = mean_wait("load_aware", old)
    phased = mean_wait("load_aware", old, routers=40)
    two = mean_wait("power_of_two", old, routers=40, counts_own=True)
    at_ease = mean_wait("softmax", old, numbers={"temperature_s": 1.0}, routers=40, counts_own=True)
    assert herd > 100 * ideal
    assert herd > 3 * blind
    assert phased < 0.4 * herd
    for relieved in (two, at_ease):
        assert 10 * ideal < relieved < 0.75 * phased
        assert relieved < 0.7 * blind


def test_short_reports_cure_many_routers():
    """What counts is how many requests a site is sent between two reports: at one in six forty routers are no herd."""
    seeds = (5, 6)
    ideal = mean_wait("load_aware", Advert("state", telemetry_period_s=0.0), seeds)
    found = {
        period: mean_wait("load_aware", Advert("state", telemetry_period_s=period), seeds, routers=40)
        for period in (0.02, 0.05, 0.2, 1.0)
    }
    assert found[0.02] < 4 * ideal
    assert found[0.05] < 6 * ideal
    assert found[0.02] < found[0.05] < found[0.2] < found[1.0]
    assert found[1.0] > 10 * ideal, "a second is no short report where a service lasts one"
    spread = mean_wait(
        "softmax", Advert("state", telemetry_period_s=0.05), seeds, routers=40, counts_own=True
    )
    assert spread < 0.95 * found[0.05]
    assert spread < 5 * ideal


def test_own_counts_cure_one_router_and_not_forty():
    """A router that counts what it sends knows enough if it is alone, and a fortieth of it if it is not.

    Alone it is near the ideal with reports of a fifth of a second, and far better than blind with old ones.
    """
    old, young = Advert("state", telemetry_period_s=4.0), Advert("state", telemetry_period_s=0.2)
    ideal = mean_wait("load_aware", Advert("state", telemetry_period_s=0.0))
    blind = mean_wait("load_aware", young)
    assert mean_wait("load_aware", young, counts_own=True) < 4 * ideal
    assert blind > 7 * ideal
    alone, crowd = (mean_wait("load_aware", old, routers=n, counts_own=True) for n in (1, 40))
    assert alone < 0.4 * crowd
    assert crowd < 1.2 * mean_wait("load_aware", old, routers=40)


@pytest.mark.parametrize("noise", [0.5])
def test_noise_costs_little_where_reports_are_fresh(noise):
    """Errors that routers do not share spread requests; they are no herd."""
    new = Advert("state", telemetry_period_s=0.05)
    exact, _ = waits("load_aware", new, 7, routers=8)
    noisy, _ = waits("load_aware", new, 7, routers=8, noise=noise)
    herd, _ = waits("load_aware", Advert("state", telemetry_period_s=3.0), 7, routers=8)
    assert exact < herd
    assert noisy < herd


def test_the_hotspot_of_prefixes():
    """One site holds the popular prefix: counting prefixes alone sends it everybody, counting waits spreads them."""
    prefill = np.full((N, 1), 0.1)
    prefill[3] = 0.02
    blind, by_site = waits("prefix_only", Advert(), 8, m=4000, prefill=prefill)
    aware, spread = waits("load_aware", Advert("state", telemetry_period_s=0.0), 8, m=4000, prefill=prefill)
    assert by_site[3] == 4000
    assert spread.max() < 800
    assert blind > 100 * aware


@pytest.mark.parametrize("scope", ["site", "tier"])
@pytest.mark.parametrize("policy", ["load_aware", "softmax"])
def test_a_site_that_nobody_asks_any_more_is_heard_to_be_idle(policy, scope):
    """Measured waits: without a start there is none to measure, and a free server says that there is none to wait."""
    engine = ServingEngine(
        [[0.0, 0.0]],
        0,
        1,
        [[0.5]],
        [0.5],
        delay_coefficient=0.01,
        delay_exponent=2.0,
        policy=policy,
        law="deterministic",
    )
    advert = Advert("measured", scope=scope, telemetry_period_s=10.0, smoothing=0.5)

    def heard(until, *created):
        """Let time pass; return the wait heard at its end."""
        zero = np.zeros(len(created))
        engine.run(Requests(np.array(created), zero, zero, zero, zero + 1.0), until, advert)
        return engine.advertised_wait_s[0]

    # five at once, a second each: they wait 0, 1, 2, 3 and 4 s
    assert heard(10.5, *[1.0] * 5) == pytest.approx(1.0)
    assert heard(20.5) == pytest.approx(0.5)
    assert heard(30.5) == pytest.approx(0.25)
    # an hour's service: its start counts; afterwards the server is busy and says nothing
    engine.reconfigure(0, prefill_row=[3600.0])
    assert heard(40.5, 31.0) == pytest.approx(0.125)
    assert heard(60.5) == pytest.approx(0.125)


@pytest.mark.parametrize("policy", ["load_aware", "softmax"])
def test_measured_waits_swing_but_shut_no_site_out(policy):
    """All run to one site after another; each is asked again once it is idle, and at moderate load nobody queues up."""
    found, by_site = waits(policy, Advert("measured", telemetry_period_s=1.0), 9, load=0.5)
    assert by_site.min() > 0.3 * by_site.mean()
    assert found < 60.0
