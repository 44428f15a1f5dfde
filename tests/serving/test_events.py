"""What the engine promises: conservation, common requests, equal bytes, changes of sites, clear errors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.serving.advertising import Advert
from geoedge.serving.events import ServingEngine
from geoedge.serving.records import ENGINE_STATUS, Requests


def world(seed=0, m=4000, n=20, **options):
    """Return an engine, and requests that load it to about 0.8."""
    rng = np.random.default_rng(seed)
    prefill = rng.uniform(0.1, 0.5, (n, 2))
    engine = ServingEngine(
        rng.uniform(0, 4, (n, 2)),
        rng.integers(0, 3, n),
        rng.integers(2, 6, n),
        prefill,
        [0.5, 0.9],
        delay_coefficient=0.28,
        delay_exponent=2.5,
        **options,
    )
    created = np.cumsum(rng.exponential(1 / (2.6 * n), m))
    x, y = rng.uniform(0, 4, (2, m))
    return engine, Requests(created, x, y, rng.integers(0, 2, m), rng.exponential(size=m))


def one_site(concurrency, prefill=1.0, decode=2.0):
    """Return an engine of one site at the origin with known services."""
    return ServingEngine(
        [[0.0, 0.0]],
        0,
        concurrency,
        [[prefill]],
        [decode],
        delay_coefficient=0.28,
        delay_exponent=2.0,
        law="deterministic",
    )


def at_origin(*created):
    m = len(created)
    return Requests(np.array(created), np.zeros(m), np.zeros(m), np.zeros(m), np.ones(m))


@given(seed=st.integers(0, 1000), cuts=st.lists(st.floats(0, 1), max_size=4))
@settings(max_examples=25, deadline=None)
def test_nothing_is_lost_and_cuts_change_nothing(seed, cuts):
    """However a run is cut into stretches, requests are conserved at every cut and fare the same."""
    whole, requests = world(seed, m=600)
    end = requests.created_s[-1]
    whole.run(requests, end)
    pieces, _ = world(seed, m=600)
    low = 0
    for cut in [*sorted(c * end for c in cuts), end]:
        high = int(np.searchsorted(requests.created_s, cut, side="right"))
        columns = {name: c for name, c in dataclasses.asdict(requests).items() if c is not None}
        sums = pieces.run(Requests(**{name: column[low:high] for name, column in columns.items()}), cut)
        counts = pieces.records().counts()
        assert sum(counts.values()) == high
        assert counts["rejected"] == 0
        assert counts["waiting"] == sums.waiting.sum()
        assert counts["in_flight"] == sums.in_flight.sum()
        assert pieces.pending() == counts["waiting"] + counts["in_flight"]
        low = high
    for name, column in whole.records().columns().items():
        np.testing.assert_array_equal(column, pieces.records().columns()[name], err_msg=name)


def test_policies_see_the_same_requests():
    results = {}
    for policy in ("nearest", "prefix_only", "load_aware"):
        engine, requests = world(3, policy=policy)
        engine.run(requests, requests.created_s[-1], Advert("state"))
        engine.finish()
        results[policy] = engine.records()
    nearest, aware = results["nearest"], results["load_aware"]
    assert (nearest.created_s == aware.created_s).all()
    assert (nearest.request_type == aware.request_type).all()
    assert (nearest.site != aware.site).any()
    assert (nearest.distance_km <= aware.distance_km + 1e-12).all()
    # Marks are shared too: decode depends on nothing but type and mark.
    decode = [r.finished_s - r.started_s - r.prefill_s for r in results.values()]
    np.testing.assert_allclose(decode[0], decode[1], atol=1e-9)
    np.testing.assert_allclose(decode[0], decode[2], atol=1e-9)
    assert aware.ttft_s.mean() < results["prefix_only"].ttft_s.mean()


@pytest.mark.parametrize("kind", ["static", "state", "measured"])
def test_same_input_same_bytes(kind):
    digests = []
    for _ in range(2):
        engine, requests = world(4)
        engine.run(requests, requests.created_s[-1], Advert(kind, wait_s=0.1))
        digests.append(b"".join(column.tobytes() for column in engine.records().columns().values()))
    assert digests[0] == digests[1]


def test_times_are_consistent():
    engine, requests = world(5)
    engine.run(requests, requests.created_s[-1])
    engine.finish()
    r = engine.records()
    np.testing.assert_allclose(r.radio_s, 0.28 * r.distance_km**2.5, rtol=1e-12)
    np.testing.assert_allclose(r.arrived_s, r.created_s + r.radio_s)
    np.testing.assert_allclose(r.ttft_s, r.first_token_s - r.created_s, atol=1e-9)
    assert (r.wait_s >= 0).all()
    assert (r.started_s <= r.first_token_s + 1e-9).all()
    assert (r.first_token_s <= r.finished_s + 1e-9).all()
    assert set(np.unique(r.engine_status)) == {ENGINE_STATUS.index("served")}


def test_radio_delay_may_leave_arrivals_alone():
    engine, requests = world(5, radio_shifts_arrival=False)
    engine.run(requests, requests.created_s[-1])
    engine.finish()
    r = engine.records()
    assert (r.arrived_s == requests.created_s).all()
    np.testing.assert_allclose(r.first_token_s, r.started_s + r.prefill_s + r.radio_s, rtol=1e-12)


def test_a_server_more_starts_who_waits_at_once():
    engine = one_site(1)
    sums = engine.run(at_origin(0.0, 0.1, 0.2), 1.0)
    assert (sums.waiting.item(), sums.running.item(), sums.busy_s.item()) == (2, 1, 1.0)
    engine.reconfigure(0, concurrency=2, time_s=1.0)
    sums = engine.run(Requests.none(), 10.0)
    np.testing.assert_allclose(engine.records().started_s, [0.0, 1.0, 3.0])
    assert sums.started.item() == 2
    np.testing.assert_allclose(sums.busy_s, 2.0 + 3.0 + 3.0)


def test_a_server_less_is_not_used_again():
    engine = one_site(3)
    engine.run(at_origin(0.0, 1.0, 2.0, 2.1, 2.2), 2.5)
    engine.reconfigure(0, concurrency=1)
    engine.run(Requests.none(), 30.0)
    # Releases at 3 and 4 go with the two servers; the third, at 5, serves on.
    np.testing.assert_allclose(engine.records().started_s, [0.0, 1.0, 2.0, 5.0, 8.0])


def test_servers_taken_and_given_back_are_not_doubled():
    """Three requests run; two servers go and come back while they run: still three servers, not five."""
    engine = one_site(3)
    engine.run(at_origin(0.0, 0.0, 0.0, 0.5, 0.5), 1.0)
    engine.reconfigure(0, concurrency=1)
    engine.reconfigure(0, concurrency=3)
    engine.run(Requests.none(), 30.0)
    np.testing.assert_allclose(engine.records().started_s, [0.0, 0.0, 0.0, 3.0, 3.0])


def test_hits_are_what_the_site_holds_at_the_start():
    engine = one_site(1)
    engine.run(at_origin(0.0, 0.0, 0.0), 1.0)
    engine.reconfigure(0, prefill_row=[0.25], profile=2)
    engine.run(Requests.none(), 30.0)
    r = engine.records()
    assert r.prefill_s.tolist() == [1.0, 0.25, 0.25]
    assert r.profile.tolist() == [0, 2, 2]
    np.testing.assert_allclose(r.started_s, [0.0, 3.0, 5.25])


def test_a_new_mixture_mean_holds_for_who_waits_and_leaves_the_running_mean():
    options = {"delay_coefficient": 0.28, "delay_exponent": 2.0}
    engine = ServingEngine([[0.0, 0.0]], 0, 1, [[1.0]], [2.0], law="exponential_mixture", **options)
    engine.run(at_origin(0.0, 0.0, 0.0, 0.0), 1.0, Advert("state", telemetry_period_s=0.0))
    assert engine.advertised_wait_s == pytest.approx(4 * 3.0)
    engine.set_mixture_mean(5.0)
    assert engine.advertised_wait_s == pytest.approx(4 * 3.0)
    engine.run(Requests.none(), 30.0)
    np.testing.assert_allclose(engine.records().started_s, [0.0, 3.0, 8.0, 13.0])
    other = one_site(1)
    other.set_mixture_mean(5.0)
    other.run(at_origin(0.0, 0.0), 10.0)
    np.testing.assert_allclose(other.records().started_s, [0.0, 3.0])


def test_statuses():
    engine = one_site(1)
    far = Requests(np.array([0.0, 0.1, 0.2]), np.array([0.0, 0.0, 9.0]), np.zeros(3), np.zeros(3), np.ones(3))
    engine.run(far, 1.0)
    r = engine.records()
    assert [ENGINE_STATUS[code] for code in r.engine_status] == ["served", "waiting", "in_flight"]
    assert np.isnan(r.ttft_s).tolist() == [False, True, True]
    assert r.counts() == {"served": 1, "waiting": 1, "in_flight": 1, "rejected": 0}


def test_an_unstable_queue_grows():
    """At ρ = 1.3 the queue grows by λ − cμ, within five standard deviations, and the sums say so."""
    rng = np.random.default_rng(8)
    rate, horizon, servers = 3.9, 5000.0, 3
    created = np.cumsum(rng.exponential(1 / rate, 30_000))
    created = created[created < horizon]
    m = created.size
    engine = ServingEngine(
        [[0.0, 0.0]],
        0,
        servers,
        [[0.4]],
        [0.6],
        delay_coefficient=0.28,
        delay_exponent=2.0,
        law="exponential_type",
    )
    requests = Requests(created, np.zeros(m), np.zeros(m), np.zeros(m), rng.exponential(size=m))
    sums = engine.run(requests, horizon)
    assert abs(sums.waiting.item() - 0.9 * horizon) < 5 * np.sqrt((rate + servers) * horizon)
    assert abs(sums.offered_load.item() - 1.3) < 5 * 1.3 * np.sqrt(2 / m)
    assert sums.utilization.item() > 0.999
    assert sums.mean_wait_s.item() > 100


def test_waits_close_a_site():
    engine, requests = world(6)
    wait = np.where(np.arange(20) < 10, np.inf, 0.0)
    sums = engine.run(requests, requests.created_s[-1], Advert(wait_s=wait))
    assert (sums.routed[:10] == 0).all()
    assert sums.routed.sum() == len(requests)
    assert (engine.advertised_wait_s == wait).all()


def test_fresh_state_beats_old_state():
    """Telemetry that is older serves worse: the herd runs to yesterday's best site."""
    ttft = []
    for period in (0.0, 1.0, 20.0):
        engine, requests = world(7, m=8000)
        engine.run(requests, requests.created_s[-1], Advert("state", telemetry_period_s=period))
        engine.finish()
        ttft.append(engine.records().ttft_s.mean())
    assert ttft[0] < ttft[1] < ttft[2]


def test_telemetry_goes_on_from_stretch_to_stretch():
    engine, requests = world(9, m=400)
    end = requests.created_s[-1]
    engine.run(requests, end, Advert("state", telemetry_period_s=2.0))
    before = engine.advertised_wait_s
    engine.run(Requests.none(), end + 0.5)
    assert (engine.advertised_wait_s == before).all() == (int(end / 2.0) == int((end + 0.5) / 2.0))
    engine.run(Requests.none(), end + 100.0)
    assert (engine.advertised_wait_s == 0).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e, r: e.run(r, r.created_s[-1] / 2), "created_s"),
        (lambda e, r: e.run(Requests.none(), -1.0), "until_s"),
        (lambda e, r: e.run(Requests.none(), np.inf), "until_s"),
        (lambda e, r: e.run(dataclasses.replace(r, request_type=r.request_type + 1), 1e9), "request_type"),
        (lambda e, r: e.run(dataclasses.replace(r, mark=r.mark[1:]), 1e9), "mark"),
        (lambda e, r: dataclasses.replace(r, mark=-r.mark), "mark"),
        (lambda e, r: dataclasses.replace(r, created_s=r.created_s[::-1]), "nondecreasing"),
        (lambda e, r: e.run(dataclasses.replace(r, x_km=r.x_km * np.nan), 1e9), "x_km"),
        (lambda e, r: e.run(r, 1e9, Advert(wait_s=-1.0)), "wait_s"),
        (lambda e, r: e.run(r, 1e9, Advert(wait_s=np.inf)), "open"),
        (lambda e, r: e.run(r, 1e9, Advert("state", wait_s=np.inf)), "wait_s"),
        (lambda e, r: e.run(r, 1e9, Advert(wait_s=np.zeros(3))), "wait_s"),
        (lambda e, r: e.set_mixture_mean([1.0, 2.0]), "mean_occupancy"),
        (lambda e, r: e.set_mixture_mean(-1.0), "mean_occupancy"),
        (lambda e, r: e.reconfigure(20), "site"),
        (lambda e, r: e.reconfigure(0, concurrency=0), "concurrency"),
        (lambda e, r: e.reconfigure(0, prefill_row=[1.0]), "prefill_row"),
        (lambda e, r: e.reconfigure(0, profile=-1), "profile"),
        (lambda e, r: e.reconfigure(0, time_s=3.0), "time_s"),
        (lambda e, r: world(policy="best"), "policy"),
        (lambda e, r: world(law="erlang"), "law"),
        (lambda e, r: world(mean_occupancy=np.zeros(3)), "mean_occupancy"),
        (lambda e, r: Advert("guess"), "kind"),
        (lambda e, r: Advert(scope="city"), "scope"),
        (lambda e, r: Advert("state", telemetry_period_s=-1.0), "telemetry_period_s"),
        (lambda e, r: Advert("measured", telemetry_period_s=0.0), "telemetry_period_s"),
        (lambda e, r: Advert("state", telemetry_period_s=0.0, telemetry_delay_s=1.0), "telemetry_period_s"),
        (lambda e, r: Advert("measured", smoothing=0.0), "smoothing"),
    ],
)
def test_wrong_input_is_named(call, words):
    engine, requests = world(0, m=50)
    with pytest.raises(ValueError, match=words):
        call(engine, requests)
