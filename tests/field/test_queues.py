"""The field with other queues: the same curve by either way, equilibria of any wait model, queues of what is served."""

from __future__ import annotations

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.field import evaluate, solve_field
from geoedge.field.queues import BACKLOG_S, NEARLY_FULL, curve_of
from geoedge.theory import (
    ErlangC,
    PhaseTypeQueue,
    RenewalQueue,
    TwoMomentQueue,
    make_law,
    queue_for,
    select,
    service_scv,
)

SCVS = np.array([0.0, 0.4, 1.0, 2.0, 4.0, 0.7])
MODELS = [TwoMomentQueue(0.3), TwoMomentQueue(SCVS), PhaseTypeQueue.of_scv(4.0), RenewalQueue(3.0)]


class PlainErlang:
    """M/M/c that nobody knows to be M/M/c."""

    mean_wait = staticmethod(ErlangC.mean_wait)
    wait_cdf = staticmethod(ErlangC.wait_cdf)
    wait_quantile = staticmethod(ErlangC.wait_quantile)
    normalised_wait_and_slope = staticmethod(ErlangC.normalised_wait_and_slope)
    offered_load_for_wait = staticmethod(ErlangC.offered_load_for_wait)


def test_the_compiled_curve_is_the_wait_models():
    compiled, plain = curve_of(ErlangC()), curve_of(PlainErlang())
    assert type(compiled) is not type(plain)
    servers = np.repeat([1, 5, 18], 7)
    load = np.tile([0.0, 1e-6, 0.4, 0.9, 0.9985, 1.0, 1.7], 3) * servers
    occupancy = np.linspace(0.3, 3.0, load.size)
    for one, other in zip(
        compiled.wait(load, servers, occupancy), plain.wait(load, servers, occupancy), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-15)
    wait = np.tile([0.0, 1e-4, 0.3, 20.0, 500.0, 4000.0, 9999.0], 3)
    guess = 0.5 * servers
    np.testing.assert_allclose(
        compiled.load(wait, servers, occupancy, guess), plain.load(wait, servers, occupancy, guess), rtol=1e-9
    )


@pytest.mark.parametrize("queue", MODELS)
def test_curve_goes_on_beyond_capacity_and_comes_back(queue):
    curve, servers, occupancy = curve_of(queue), np.array([1, 2, 4, 6, 9, 18]), np.linspace(0.4, 2.0, 6)
    for share in (0.5, 0.99, NEARLY_FULL, 1.0, 1.3):
        load = share * servers
        wait, by_load, by_occupancy = curve.wait(load, servers, occupancy)
        np.testing.assert_allclose(curve.load(wait, servers, occupancy, load), load, rtol=1e-8)
        if share > NEARLY_FULL:
            np.testing.assert_allclose(by_load, BACKLOG_S / servers)
        h = 1e-6 * (0.1 * load if share >= 1 else servers - load)
        for change, slope in ((h, by_load), (0.0, by_occupancy)):
            longer = occupancy if change is h else occupancy * (1 + 1e-6)
            above = curve.wait(load + change, servers, longer)[0]
            step = h if change is h else occupancy * 1e-6
            if share != NEARLY_FULL:
                np.testing.assert_allclose((above - wait) / step, slope, rtol=1e-3)


@pytest.mark.parametrize("queue", MODELS)
@pytest.mark.parametrize("scope", ["site", "tier"])
@pytest.mark.parametrize("utilization", [0.5, 0.8])
def test_equilibria_of_any_wait_model(make_problem, queue, scope, utilization):
    problem = make_problem(3, n_sites=6, utilization=utilization)
    answer = solve_field(problem, scope=scope, queue=queue)
    assert answer.converged
    if scope == "site":
        suffered = queue.mean_wait(answer.site_arrival_rate, answer.service_rate, problem.servers)
        assert answer.mean_wait.tolist() == suffered.tolist()
        load = queue.offered_load_for_wait(answer.advertised_wait * answer.service_rate, problem.servers)
        assert np.abs(load / problem.servers - answer.utilization).max() < 2e-4
    whole = answer.ttft_coverage(1.1)
    by_hand = 0.0
    for place in range(len(answer.entries.site)):
        i, q = answer.entries.site[place], answer.entries.type[place]
        left = 1.1 - answer.entries.radio[place] - problem.prefill_time[problem.profile[i], q]
        rate, mu = answer.site_arrival_rate[i], answer.service_rate[i]
        kept = select(queue, i).wait_cdf(left, rate, mu, problem.servers[i])
        by_hand += kept * answer.entries.share[place] * problem.rate[answer.entries.place[place], q]
        if place == 300:
            break
    index = slice(0, 301)
    assert by_hand == pytest.approx(float((answer._rate * answer._in_time(1.1))[index].sum()), rel=1e-9)
    assert 0.0 < whole < 1.0


def test_an_unknown_erlang_has_the_known_answer(make_problem):
    problem = make_problem(5, utilization=0.7)
    known, plain = (
        solve_field(problem, tolerance=1e-6),
        solve_field(problem, queue=PlainErlang(), tolerance=1e-6),
    )
    np.testing.assert_allclose(plain.advertised_wait, known.advertised_wait, rtol=1e-3, atol=1e-6)
    assert plain.ttft_coverage(1.0) == pytest.approx(known.ttft_coverage(1.0), abs=1e-5)
    assert plain.ttft_quantile(0.9) == pytest.approx(known.ttft_quantile(0.9), rel=1e-3)
    assert plain.mean_ttft == pytest.approx(known.mean_ttft, rel=1e-4)


class HalfWaits(ErlangC):
    """A queue derived from M/M/c with half its waits."""

    def mean_wait(self, arrival_rate, service_rate, concurrency):
        return 0.5 * ErlangC.mean_wait(arrival_rate, service_rate, concurrency)

    def wait_cdf(self, time, arrival_rate, service_rate, concurrency):
        return ErlangC.wait_cdf(2.0 * np.asarray(time), arrival_rate, service_rate, concurrency)

    def normalised_wait_and_slope(self, offered_load, concurrency):
        wait, slope = ErlangC.normalised_wait_and_slope(offered_load, concurrency)
        return 0.5 * wait, 0.5 * slope

    def offered_load_for_wait(self, wait, concurrency):
        return ErlangC.offered_load_for_wait(2.0 * np.asarray(wait), concurrency)


@pytest.mark.parametrize("scope", ["site", "tier"])
def test_a_queue_derived_from_erlangs_is_asked_itself(make_problem, scope):
    problem = make_problem(5, utilization=0.8)
    known, half = (solve_field(problem, scope=scope, queue=queue) for queue in (ErlangC(), HalfWaits()))
    assert half.converged
    halved = 0.5 * ErlangC.mean_wait(half.site_arrival_rate, half.service_rate, problem.servers)
    assert half.mean_wait.tolist() == halved.tolist()
    assert half.parts()["wait"] < 0.9 * known.parts()["wait"]
    assert half.ttft_coverage(1.0) > known.ttft_coverage(1.0)
    if scope == "site":  # what is advertised is what is suffered
        load = ErlangC.offered_load_for_wait(2.0 * half.advertised_wait * half.service_rate, problem.servers)
        assert np.abs(load / problem.servers - half.utilization).max() < 2e-4


@pytest.mark.parametrize("queue", [3, TwoMomentQueue, TwoMomentQueue([1.0, 2.0])])
def test_a_queue_that_does_not_fit_is_one_line(make_problem, queue):
    problem = make_problem(5, n_sites=6)
    for ask in (lambda: solve_field(problem, queue=queue), lambda: evaluate(problem, queue=queue)):
        with pytest.raises(GeoEdgeError, match="`queue`") as caught:
            ask()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("scope", ["site", "tier"])
def test_a_law_makes_the_queue_of_what_each_site_serves(make_problem, scope):
    problem, rule = make_problem(4, utilization=0.7), queue_for("prefill_plus_decode")
    answer = solve_field(problem, scope=scope, queue=rule)
    assert answer.converged
    held = problem.profile
    scv = service_scv(
        make_law("prefill_plus_decode"),
        answer.served_mix,
        problem.prefill_time[held],
        problem.occupancy_time[held],
    )
    np.testing.assert_allclose(answer.site_queue.service_scv, scv)
    assert np.ptp(scv) > 0.01
    assert answer.ttft_coverage(0.8) > solve_field(problem, scope=scope).ttft_coverage(0.8)
    if scope == "site":
        again = evaluate(problem, answer.advertised_wait, queue=answer.site_queue)
        assert again.ttft_coverage(0.8) == pytest.approx(answer.ttft_coverage(0.8))
        np.testing.assert_allclose(again.mean_wait, answer.advertised_wait, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("queue", [*MODELS[:3], queue_for("deterministic")])
def test_overload_is_answered_with_any_queue(make_problem, queue):
    answer = solve_field(make_problem(2, n_sites=6, utilization=1.6), queue=queue)
    assert answer.converged
    assert len(answer.unstable_sites)
    assert np.isinf(answer.mean_wait[answer.unstable_sites]).all()
    assert answer.ttft_coverage(1e6) == pytest.approx(1.0 - answer.unstable_share, abs=1e-9)
