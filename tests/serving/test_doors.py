"""Failures, doors and admission: what is conserved, what is lost, and who is turned away."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.policies import POLICIES
from geoedge.serving.advertising import Advert
from geoedge.serving.doors import Admission
from geoedge.serving.events import ServingEngine
from geoedge.serving.inquiring import Prompts, RoutingOptions
from geoedge.serving.records import Requests

PROMPTS = Prompts([1000.0, 4000.0], [100.0, 100.0], [0.0, 1.0], [0.0, 5000.0])


def world(seed=0, m=400, n=6, **options):
    """Return an engine, and requests that load it to about 1."""
    rng = np.random.default_rng(seed)
    engine = ServingEngine(
        rng.uniform(0, 2, (n, 2)),
        0,
        rng.integers(1, 4, n),
        rng.uniform(0.1, 0.8, (n, 2)),
        [0.5, 0.9],
        delay_coefficient=0.28,
        delay_exponent=2.5,
        prompts=PROMPTS,
        **options,
    )
    created = np.cumsum(rng.exponential(1 / (1.6 * n), m))
    x, y = rng.uniform(0, 2, (2, m))
    return engine, Requests(created, x, y, rng.integers(0, 2, m), rng.exponential(size=m))


def line(concurrency, m=4, **options):
    """Return an engine of sites at 0, 1 and 3 km on a line with services of 1 s prefill and 2 s decode."""
    n = len(concurrency)
    sites = np.column_stack((np.array([0.0, 1.0, 3.0])[:n], np.zeros(n)))
    return ServingEngine(
        sites,
        0,
        concurrency,
        np.ones((n, 1)),
        [2.0],
        delay_coefficient=0.01,
        delay_exponent=2.0,
        law="deterministic",
        radio_shifts_arrival=False,
        **options,
    )


def at_origin(*created):
    m = len(created)
    return Requests(np.array(created), np.zeros(m), np.zeros(m), np.zeros(m), np.ones(m))


@given(
    seed=st.integers(0, 1000),
    policy=st.sampled_from(sorted(POLICIES)),
    close=st.sampled_from([None, 1.5, 4.0]),
    acts=st.lists(
        st.tuples(
            st.sampled_from(["fail", "fall_silent", "recover", "recover", "close", "change"]),
            st.integers(0, 5),
        ),
        max_size=12,
    ),
)
@settings(max_examples=60, deadline=None)
def test_arrived_is_served_rejected_or_waiting(seed, policy, close, acts):
    """Whatever fails, closes and changes, every request is somewhere, at every moment, and sums agree with records."""
    engine, requests = world(
        seed, m=120, policy=policy, options=RoutingOptions(admission=Admission(close), seed=seed)
    )
    advert = Advert("state", telemetry_period_s=0.4)
    edges = np.linspace(0, requests.created_s[-1] + 1e-9, len(acts) + 2)
    rejected = 0
    for k, high in enumerate(edges[1:]):
        inside = (requests.created_s >= edges[k]) & (requests.created_s < high)
        names = ("created_s", "x_km", "y_km", "request_type", "mark")
        sums = engine.run(Requests(*(getattr(requests, name)[inside] for name in names)), high, advert)
        counts = engine.records().counts()
        rejected += int(sums.rejected.sum())
        assert sum(counts.values()) == (requests.created_s < high).sum()
        assert counts["rejected"] == rejected
        assert counts["waiting"] == sums.waiting.sum()
        assert counts["in_flight"] == sums.in_flight.sum()
        assert (sums.running <= np.maximum(sums.concurrency, 3)).all()
        if k < len(acts):
            act, site = acts[k]
            if act == "change":
                engine.reconfigure(site, concurrency=1 + seed % 3)
            else:
                getattr(engine, act)(site)
    for site in np.flatnonzero(engine.stations.sites["silent"]).tolist():
        engine.fail(site)
    engine.finish()
    records = engine.records()
    assert records.counts()["waiting"] == records.counts()["in_flight"] == 0
    assert (np.isinf(records.ttft_s) == records.rejected).all()
    assert (records.site[records.rejected] == -1).all()
    taken = ~records.rejected
    np.testing.assert_allclose(
        records.ttft_s[taken], (records.radio_s + records.wait_s + records.prefill_s)[taken]
    )
    assert (records.wait_s[taken] >= -1e-12).all()


def test_a_failed_site_loses_its_queue_and_what_has_no_first_token():
    """Two run at the near site, one of them with its first token; two wait. Three go to the far site, from the start."""
    engine = line([2, 9], policy="nearest")
    engine.run(at_origin(0.0, 1.5, 1.6, 1.7), 2.0)
    assert engine.records().started_s[:2].tolist() == [0.0, 1.5]
    assert engine.fail(0) == 3
    assert engine.fail(0) == 0
    engine.run(at_origin(2.5), 30.0)
    r = engine.records()
    assert r.site.tolist() == [0, 1, 1, 1, 1]
    assert r.lost.tolist() == [0, 1, 1, 1, 0]
    assert r.created_s.tolist() == [0.0, 1.5, 1.6, 1.7, 2.5]
    assert r.started_s.tolist() == [0.0, 2.0, 2.0, 2.0, 2.5]
    # The time lost is wait; the first one has its token at 1 s and ends with the site.
    np.testing.assert_allclose(r.wait_s, [0.0, 0.5, 0.4, 0.3, 0.0])
    np.testing.assert_allclose(r.ttft_s, [1.0, 1.51, 1.41, 1.31, 1.01])
    assert r.finished_s[0] == 2.0


def test_what_a_silent_site_holds_is_sent_elsewhere_when_it_is_missed():
    """Failed at 2, missed at 4: what had no token and what came meanwhile goes to the far site then."""
    engine = line([2, 9], policy="nearest")
    engine.run(at_origin(0.0, 1.5, 1.6, 1.7), 2.0)
    engine.fall_silent(0)
    sums = engine.run(at_origin(2.5, 3.5), 4.0)
    assert engine.records().counts() == {"served": 1, "waiting": 5, "in_flight": 0, "rejected": 0}
    assert (sums.routed[0], sums.arrivals[0], sums.started[0], sums.waiting[0]) == (2, 2, 0, 5)
    assert (sums.running[0], sums.concurrency[0], sums.busy_s[0]) == (0, 0, 0.0)
    assert engine.fail(0) == 5
    assert engine.fail(0) == 0
    engine.run(at_origin(4.5), 30.0)
    r = engine.records()
    assert r.site.tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert r.lost.tolist() == [0, 1, 1, 1, 1, 1, 0]
    assert r.started_s.tolist() == [0.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.5]
    np.testing.assert_allclose(r.ttft_s, [1.0, 3.51, 3.41, 3.31, 2.51, 1.51, 1.01])
    assert r.finished_s[0] == 2.0


def test_a_silent_site_that_comes_back_begins_with_what_it_holds():
    """Failed at 2, back at 4: the second request runs again from its start, before those that waited."""
    engine = line([2, 9], policy="nearest")
    engine.run(at_origin(0.0, 1.5, 1.6, 1.7), 2.0)
    engine.fall_silent(0)
    engine.fall_silent(0)
    engine.run(at_origin(3.0), 4.0)
    engine.recover(0)
    assert engine.fail(1) == 0
    sums = engine.run(at_origin(4.5), 30.0)
    r = engine.records()
    assert r.site.tolist() == [0] * 6
    assert r.lost.tolist() == [0] * 6
    assert r.started_s.tolist() == [0.0, 4.0, 4.0, 7.0, 7.0, 10.0]
    np.testing.assert_allclose(r.ttft_s, [1.0, 3.5, 3.4, 6.3, 5.0, 6.5])
    assert (sums.arrivals[0], sums.started[0]) == (1, 5)


@pytest.mark.parametrize("routers", [1, 2])
@pytest.mark.parametrize("period", [0.0, 0.5])
def test_routers_go_by_what_a_silent_site_last_said(routers, period):
    """It was idle: they send all to it, however many are held there."""
    engine = line([2, 9], policy="load_aware", options=RoutingOptions(routers=routers))
    engine.run(Requests.none(), 2.0, Advert("state", telemetry_period_s=period))
    engine.fall_silent(0)
    engine.run(at_origin(*np.linspace(2.0, 9.0, 40)), 10.0)
    assert engine.records().site.tolist() == [0] * 40
    assert engine.advertised_wait_s.tolist() == [0.0, 0.0]
    engine.recover(0)
    sums = engine.run(at_origin(*np.linspace(10.6, 11.0, 10)), 11.0)
    assert sums.routed.tolist() == [0, 10]


def test_a_silent_site_turns_nobody_away():
    admission = Admission(close_threshold=1.0, reopen_threshold=0.5)
    engine = line([1, 9], policy="nearest", options=RoutingOptions(admission=admission))
    engine.run(at_origin(0.0, 0.1), 0.2)
    engine.fall_silent(0)
    engine.run(at_origin(0.3, 0.4), 0.5)
    assert engine.records().site.tolist() == [0, 1, 0, 0]
    engine.recover(0)
    engine.run(at_origin(0.6), 0.7)
    assert engine.records().site.tolist() == [0, 1, 0, 0, 1]


def test_a_silent_site_may_be_changed_and_stays_silent():
    engine = line([1, 9], policy="nearest")
    engine.fall_silent(0)
    engine.run(at_origin(0.0, 0.1, 0.2), 1.0)
    engine.reconfigure(0, concurrency=3)
    assert engine.run(Requests.none(), 2.0).started[0] == 0
    engine.reconfigure(0, concurrency=2)
    assert engine.run(Requests.none(), 3.0).started[0] == 0
    engine.recover(0)
    assert engine.run(Requests.none(), 4.0).started[0] == 2
    engine.fall_silent(0)
    engine.finish()
    assert engine.records().counts()["waiting"] == 1, "nobody will ever serve it"


def test_a_site_recovers_empty_with_all_its_servers():
    engine = line([2, 1], policy="nearest")
    engine.run(at_origin(0.0, 0.1, 0.2), 0.5)
    engine.fail(0)
    engine.run(Requests.none(), 1.0)
    engine.recover(0)
    sums = engine.run(at_origin(1.0, 1.1, 1.2), 20.0)
    r = engine.records()
    assert r.site.tolist() == [1, 1, 1, 0, 0, 0]
    assert r.started_s[3:].tolist() == [1.0, 1.1, 4.0]
    assert sums.routed.tolist() == [3, 0]


@pytest.mark.parametrize("policy", ["load_aware", "power_of_two"])
def test_nobody_is_sent_to_a_closed_site_and_its_queue_is_served(policy):
    engine, requests = world(2, policy=policy)
    half, end = requests.created_s[200], requests.created_s[-1]
    parts = [
        Requests(*(getattr(requests, n)[part] for n in ("created_s", "x_km", "y_km", "request_type", "mark")))
        for part in (slice(0, 200), slice(200, None))
    ]
    engine.run(parts[0], half, Advert("state"))
    waiting = engine.pending()
    engine.close(1)
    sums = engine.run(parts[1], end)
    assert waiting > 0
    assert sums.routed[1] == 0 < sums.started[1]
    lost = engine.fail(1)
    engine.recover(1)
    assert engine.doors.state[1] == 0, "a site that comes back is open"
    assert engine.run(at_origin(end, end, end, end, end, end), end + 9.0).routed.sum() == 6 + lost


@pytest.mark.parametrize("routers", [1, 2])
def test_all_doors_shut_rejects(routers):
    engine = line([1, 1], policy="nearest", options=RoutingOptions(routers=routers))
    engine.run(at_origin(0.0, 0.1), 0.2, Advert("state"))
    engine.close(1)
    assert engine.fail(0) == 2
    sums = engine.run(at_origin(0.5), 1.0)
    r = engine.records()
    assert r.rejected.all()
    assert r.counts()["rejected"] == 3
    assert sums.rejected.tolist() == [3, 0]


def test_hysteresis():
    """A site of one server closes at two and opens only when it is empty again, not at one."""
    admission = Admission(close_threshold=2.0, reopen_threshold=0.0, redirects=0)
    engine = line([1], policy="nearest", options=RoutingOptions(admission=admission))
    # Served 0-3 and 3-6: closed from the second on until 6.
    sums = engine.run(at_origin(0.0, 0.5, 1.0, 4.0, 6.5), 20.0)
    r = engine.records()
    assert r.rejected.tolist() == [False, False, True, True, False]
    assert sums.rejected.tolist() == [2]
    assert sums.redirected.tolist() == [0]


def test_redirection_to_the_next_best():
    """Closed sites send requests on, in the order of cost, as often as they may."""
    for redirects, sites in ((0, [0, -1, -1]), (1, [0, 1, -1]), (2, [0, 1, 2])):
        admission = Admission(close_threshold=1.0, reopen_threshold=0.5, redirects=redirects)
        engine = line([1, 1, 1], policy="nearest", options=RoutingOptions(admission=admission))
        engine.run(at_origin(0.0, 0.1, 0.2), 1.0)
        assert engine.records().site.tolist() == sites


@pytest.mark.parametrize("shifts", [True, False])
def test_a_redirection_takes_time(shifts):
    """Two closed doors, a quarter of a second each: it is part of the TTFT, and of nobody else's, and no wait."""
    admission = Admission(close_threshold=1.0, reopen_threshold=0.5, redirects=2, redirect_s=0.25)
    engine = line([1, 1, 1], policy="nearest", options=RoutingOptions(admission=admission))
    engine.shift = float(shifts)
    engine.routing.way = engine.routing.way._replace(shift=float(shifts))
    sums = engine.run(at_origin(0.0, 0.1, 0.2), 0.5)
    assert sums.in_flight.tolist() == [0, 0, 1], "it is still on its way"
    engine.run(Requests.none(), 9.0)
    r, radio = engine.records(), np.array([0.0, 0.01, 0.09])
    assert r.redirects.tolist() == [0, 1, 2]
    np.testing.assert_allclose(r.arrived_s, [0.0, 0.35, 0.7] + shifts * radio)
    assert r.redirect_s.tolist() == [0.0, 0.25, 0.5]
    assert r.wait_s.tolist() == (r.started_s - r.arrived_s).tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(r.ttft_s - radio, [1.0, 1.25, 1.5])


def test_of_who_was_lost_all_that_was_lost_is_wait():
    """Sent on once, lost by a failure on the air and sent on again: the parts make the TTFT, no wait is negative."""
    admission = Admission(close_threshold=1.0, reopen_threshold=0.5, redirects=2, redirect_s=0.25)
    engine = line([1, 1, 1], policy="nearest", options=RoutingOptions(admission=admission))
    engine.run(at_origin(0.0, 0.1), 0.2)
    assert engine.fail(1) == 1
    engine.run(Requests.none(), 9.0)
    r = engine.records()
    assert (r.lost.tolist(), r.redirect_s.tolist()) == ([0, 1], [0.0, 0.0])
    np.testing.assert_allclose(r.ttft_s, r.radio_s + r.redirect_s + r.wait_s + r.prefill_s)
    np.testing.assert_allclose(r.first_token_s, r.started_s + r.prefill_s + r.radio_s)
    assert (r.wait_s >= 0.0).all()


def test_believed_prefill_routes_and_held_prefill_serves():
    """Routers follow a stale catalogue to a site that holds nothing any more; a type that no profile serves stays away."""
    engine = line([9, 9], policy="prefix_only")
    believed = np.array([[1.0], [0.1]])
    engine.run(at_origin(0.0), 0.5, Advert(prefill=believed))
    engine.run(at_origin(0.6), 1.0, Advert(prefill=np.array([[1.0], [np.inf]])))
    engine.run(at_origin(1.1), 9.0, Advert())
    r = engine.records()
    assert r.site.tolist() == [1, 0, 0]
    assert r.prefill_s.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="leave at least one"):
        engine.run(at_origin(9.0), 9.5, Advert(prefill=np.full((2, 1), np.inf)))


@pytest.mark.parametrize(
    "advert", [Advert("state", scope="tier", telemetry_period_s=0.0), Advert("measured")]
)
def test_a_policy_that_hears_nothing_minds_no_advert(advert):
    engine = line([1, 1], policy="nearest", options=RoutingOptions(routers=2, counts_own=True))
    engine.run(at_origin(0.0, 0.1), 1.0, advert)
    assert engine.records().site.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Admission(2.0, 2.0), "reopen_threshold"),
        (lambda: Admission(None, 2.0), "close_threshold"),
        (lambda: Admission(2.0, redirects=-1), "redirects"),
        (lambda: Admission(2.0, redirect_s=-0.1), "redirect_s"),
        (lambda: Admission(2.0, redirect_s=np.inf), "redirect_s"),
        (lambda: RoutingOptions(routers=0), "routers"),
        (lambda: RoutingOptions(noise=-1.0), "noise"),
        (lambda: line([1]).close(1), "site"),
        (lambda: line([1], policy="dynamo_kv"), "prompts"),
        (lambda: line([1], policy="power_of_two").run(at_origin(0.0), 1.0), "number of requests"),
        (lambda: line([1], policy="risk_aware").run(at_origin(0.0), 1.0, Advert("measured")), "spread"),
        (lambda: line([1], policy="softmax", policy_parameters={"z": 1.0}), "temperature_s"),
        (lambda: line([1], policy="risk_aware", policy_parameters={"z": -1.0}), "must lie in"),
        (lambda: line([1]).run(at_origin(0.0), 1.0, Advert(prefill=np.zeros((2, 1)))), "prefill"),
        (
            lambda: line([1], options=RoutingOptions(routers=2)).run(
                Requests([0.0], [0.0], [0.0], [0], [1.0], [2]), 1.0
            ),
            "router",
        ),
        (
            lambda: line([1], options=RoutingOptions(counts_own=True)).run(at_origin(0.0), 1.0),
            "count what they send",
        ),
        (
            lambda: line([1], policy="softmax").run(
                at_origin(0.0), 1.0, Advert("state", scope="tier", telemetry_period_s=0.0)
            ),
            "not the mean of its tier",
        ),
    ],
)
def test_wrong_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
