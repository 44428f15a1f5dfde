"""What routers do to each other: herds on stale reports and their cures, two choices, and the hotspot of prefixes."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.serving.advertising import Advert
from geoedge.serving.events import ServingEngine
from geoedge.serving.inquiring import RoutingOptions
from geoedge.serving.queue import fcfs_starts
from geoedge.serving.records import Requests

N, SERVERS, DECODE = 12, 4, 0.9


def waits(policy, advert, seed, *, m=12_000, load=0.8, prefill=None, **options):
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


def test_the_herd_and_its_cures():
    """All who hear one old report run to one site. Own phases, own counts, two choices and chance each help."""
    old, fresh = Advert("state", telemetry_period_s=4.0), Advert("state", telemetry_period_s=0.0)
    ideal, _ = waits("load_aware", fresh, 5)
    herd, _ = waits("load_aware", old, 5)
    phased, _ = waits("load_aware", old, 5, routers=40)
    few, _ = waits("load_aware", old, 5, routers=2, counts_own=True)
    two, _ = waits("power_of_two", old, 5, routers=40)
    soft, _ = waits("softmax", old, 5, routers=40)
    assert herd > 50 * ideal
    assert 20 * ideal < phased < 0.5 * herd
    assert few < 0.4 * phased
    assert two < 0.8 * phased
    assert soft < phased


def test_own_counts_cure_one_router_and_not_forty():
    """A router that counts what it sends knows enough if it is alone, and a fortieth of it if it is not."""
    old = Advert("state", telemetry_period_s=4.0)
    alone, _ = waits("load_aware", old, 6, counts_own=True)
    crowd, _ = waits("load_aware", old, 6, routers=40, counts_own=True)
    blind, _ = waits("load_aware", old, 6, routers=40)
    assert alone < 0.4 * crowd
    assert crowd < 1.2 * blind


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
