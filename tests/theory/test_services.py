"""Service laws: their moments, and the queues that follow from them, in theory as in the mixtures they come from."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.scenario.operation import ServiceConfig
from geoedge.theory import (
    SERVICE_LAWS,
    ErlangC,
    LawQueue,
    NamedLaw,
    PhaseTypeQueue,
    QueueOfMix,
    ServiceLaw,
    TwoMomentQueue,
    make_law,
    minimum_density,
    queue_for,
    service_scv,
    solve,
    solve_equilibrium,
)

PREFILL, DECODE = np.array([0.1, 0.6]), np.array([0.8, 0.2])
MIX = np.array([0.3, 0.7])
MEAN = float(MIX @ (PREFILL + DECODE))


def times_of(law: ServiceLaw, prefill, decode, mixture, mark) -> np.ndarray:
    """Return service times as the engine puts them together from the parts of a law."""
    fixed, scale = law.parts(prefill, decode, mixture)
    return fixed + scale * law.unit_service(mark)


def law_of(name: str) -> ServiceLaw:
    return make_law(name, 3.0 if name == "phase_type" else None)


@pytest.mark.parametrize("name", [name for name in SERVICE_LAWS if name != "tabulated"])
def test_moments_are_those_of_draws(name: str) -> None:
    law, rng = law_of(name), np.random.default_rng(4)
    assert isinstance(law, ServiceLaw)
    kind = (rng.random(2_000_000) < MIX[1]).astype(int)
    drawn = times_of(law, PREFILL[kind], DECODE[kind], MEAN, rng.exponential(size=kind.size))
    assert drawn.mean() == pytest.approx(MEAN, rel=4e-3)
    scv = float(service_scv(law, MIX, PREFILL, PREFILL + DECODE))
    assert drawn.var() / drawn.mean() ** 2 == pytest.approx(scv, rel=0.02)


def test_longer_marks_are_longer_services_under_every_law() -> None:
    marks = np.linspace(0.0, 20.0, 500)
    for name in SERVICE_LAWS:
        drawn = times_of(law_of(name), 0.2, 0.7, 0.9, marks)
        assert (np.diff(drawn) >= 0.0).all()
        assert (np.diff(drawn) > 0.0).all() != (name == "deterministic")


def test_scenarios_know_the_same_laws() -> None:
    known = get_args(ServiceConfig.model_fields["law"].annotation)
    assert {*known, "tabulated"} == set(SERVICE_LAWS)  # a scenario has no table of services


def test_variability_by_hand() -> None:
    occupancy = PREFILL + DECODE
    one = service_scv(make_law("prefill_plus_decode"), [1.0, 0.0], PREFILL, occupancy)
    assert float(one) == pytest.approx(0.8**2 / 0.9**2)
    assert float(service_scv(make_law("exponential_mixture"), MIX, PREFILL, occupancy)) == pytest.approx(1.0)
    between = float(MIX @ occupancy**2 - MEAN**2)
    constant = service_scv(make_law("deterministic"), MIX, PREFILL, occupancy)
    assert float(constant) == pytest.approx(between / MEAN**2)
    several = service_scv(make_law("exponential_type"), np.stack([MIX, MIX]), PREFILL, occupancy)
    np.testing.assert_allclose(several, 2.0 * (MIX @ occupancy**2) / MEAN**2 - 1.0)


def test_the_queue_of_a_law() -> None:
    assert isinstance(queue_for("exponential_mixture"), ErlangC)
    rule = queue_for("phase_type", 3.0)
    assert isinstance(rule, QueueOfMix)
    assert not isinstance(ErlangC(), QueueOfMix)
    queue = rule.for_mix([[1.0, 0.0], [0.0, 1.0]], [PREFILL] * 2, [PREFILL + DECODE] * 2)
    np.testing.assert_allclose(queue.service_scv, 3.0)


@pytest.mark.parametrize("policy", ["load_aware", "prefix_only", "nearest"])
@pytest.mark.parametrize("load", [1.0, 3.0, 9.0])
def test_theory_solves_for_queue_and_mixture_together(baseline, policy, load: float) -> None:
    network, rule = baseline(load), queue_for("prefill_plus_decode")
    point = solve_equilibrium(network, policy, queue=rule)
    assert point.converged
    weight = point.served_area * network.type_probability
    mix = weight / weight.sum(axis=1, keepdims=True)
    expected = service_scv(make_law("prefill_plus_decode"), mix, network.prefill_time, network.occupancy_time)
    assert isinstance(point.queue, TwoMomentQueue)
    np.testing.assert_allclose(point.queue.service_scv, expected, atol=1e-8)
    assert np.ptp(expected) > 0.02  # tiers differ
    # the same queue, given, has the same point
    again = solve_equilibrium(network, policy, queue=point.queue)
    np.testing.assert_allclose(again.mean_wait, point.mean_wait, rtol=1e-6)


def test_less_variable_service_covers_more(baseline) -> None:
    erlang, own = solve(baseline(3.0)), solve(baseline(3.0), queue=queue_for("prefill_plus_decode"))
    constant = solve(baseline(3.0), queue=queue_for("deterministic"))
    coverage = [float(answer.ttft_coverage(0.8)) for answer in (erlang, own, constant)]
    assert coverage == sorted(coverage)
    assert coverage[2] - coverage[0] > 0.01
    least = [
        minimum_density(baseline(3.0), 0.9, 0.8, queue=q) for q in (None, queue_for("prefill_plus_decode"))
    ]
    assert least[1] < 0.99 * least[0]


def test_two_moments_are_enough_for_coverage(baseline) -> None:
    for scv in (0.5, 4.0):
        exact = solve(baseline(4.0), queue=PhaseTypeQueue.of_scv(scv)).ttft_coverage(0.8)
        rule = solve(baseline(4.0), queue=TwoMomentQueue(scv)).ttft_coverage(0.8)
        assert float(rule) == pytest.approx(float(exact), abs=2e-3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: make_law("gaussian"), "`law` must be one of"),
        (lambda: make_law("phase_type"), "needs a squared coefficient"),
        (lambda: make_law("deterministic", 2.0), "takes no squared coefficient"),
        (lambda: make_law("phase_type", 90.0), r"\[0.02, 25\]"),
        (lambda: queue_for("tabulated"), "does not know its variance"),
        (lambda: LawQueue(NamedLaw("tabulated")).for_mix([[1.0]], [[0.1]], [[1.0]]), "variance"),
    ],
)
def test_bad_input_is_one_line(call, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
