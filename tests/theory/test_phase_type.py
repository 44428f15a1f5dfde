"""M/PH/c against Pollaczek–Khinchine, brute-force Markov chains and matrix exponentials; quantiles of its service."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import expm
from scipy.sparse import csr_array, diags_array, lil_array
from scipy.sparse.linalg import spsolve

from geoedge.errors import GeoEdgeError
from geoedge.theory import ErlangC, PhaseType, PhaseTypeQueue, erlang_c, normalised_wait, unit_quantile

SCVS = (0.02, 0.125, 0.3, 0.5, 0.51, 0.9, 1.0, 1.01, 2.0, 10.0, 25.0)


def chain(service: PhaseType, rho: float, c: int) -> tuple[float, float]:
    """Return mean wait and probability of waiting of M/PH/c with two phases, from its truncated Markov chain."""
    start, rates = np.array(service.start), np.array(service.rates)
    done, load = -rates.sum(axis=1), rho * c
    states = [
        (n, k) for n in range(c + int(70 * max(1.0, service.scv) / (1 - rho))) for k in range(min(n, c) + 1)
    ]
    place = {state: i for i, state in enumerate(states)}
    flow = lil_array((len(states), len(states)))

    def add(here: tuple[int, int], there: tuple[int, int], rate: float) -> None:
        if there in place:
            flow[place[here], place[there]] += rate

    for n, k in states:  # k of the busy servers are in the first phase
        busy = min(n, c)
        if n < c:
            add((n, k), (n + 1, k + 1), load * start[0])
            add((n, k), (n + 1, k), load * start[1])
        else:
            add((n, k), (n + 1, k), load)
        add((n, k), (n, k - 1), k * rates[0, 1])
        add((n, k), (n, k + 1), (busy - k) * rates[1, 0])
        for phase, many in ((0, k), (1, busy - k)):
            left = k - (phase == 0)
            if many and n > c:
                add((n, k), (n - 1, left + 1), many * done[phase] * start[0])
                add((n, k), (n - 1, left), many * done[phase] * start[1])
            elif many:
                add((n, k), (n - 1, left), many * done[phase])
    whole = csr_array(flow)
    whole = whole - diags_array(whole.sum(axis=1))
    # up to its size, the solution follows from that of the empty queue being one
    rest = spsolve(whole[1:, 1:].T.tocsc(), -whole[[0], 1:].toarray().ravel())
    stay = np.append(1.0, rest) / (1.0 + rest.sum())
    number = np.array([n for n, _ in states])
    return float(np.maximum(number - c, 0) @ stay / load), float(stay[number >= c].sum())


@pytest.mark.parametrize(("scv", "rho", "c"), [(0.5, 0.6, 2), (0.7, 0.9, 3), (4.0, 0.8, 2), (9.0, 0.5, 6)])
def test_against_a_markov_chain(scv: float, rho: float, c: int) -> None:
    queue = PhaseTypeQueue.of_scv(scv)
    wait, delayed = chain(queue.service, rho, c)
    assert float(queue.mean_wait(rho * c, 1.0, c)) == pytest.approx(wait, rel=1e-7)
    assert 1.0 - float(queue.wait_cdf(0.0, rho * c, 1.0, c)) == pytest.approx(delayed, rel=1e-7)


def test_a_law_with_loops_and_three_phases() -> None:
    law = PhaseType((0.2, 0.8, 0.0), ((-3.0, 1.0, 0.5), (0.7, -2.0, 1.0), (0.0, 0.1, -0.4)))
    assert -np.array(law.start) @ np.linalg.inv(law.rates) @ np.ones(3) == pytest.approx(1.0)
    rho = np.array([0.1, 0.6, 0.97])
    np.testing.assert_allclose(
        PhaseTypeQueue(law).mean_wait(rho, 1.0, 1), (1 + law.scv) / 2 * rho / (1 - rho), rtol=1e-9
    )


@pytest.mark.parametrize("scv", [0.3, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("rho", [0.05, 0.7, 0.99])
def test_one_server_waits_for_a_phase_type_time(scv: float, rho: float) -> None:
    queue = PhaseTypeQueue.of_scv(scv)
    start, rates = np.array(queue.service.start), np.array(queue.service.rates)
    aged = -start @ np.linalg.inv(rates)
    whole = rates + rho * np.outer(-rates.sum(axis=1), aged)
    for time in (0.0, 0.3, 2.0, 15.0):
        expected = rho * float((aged @ expm(whole * time)).sum())
        found = 1.0 - float(queue.wait_cdf(time, rho, 1.0, 1))
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-14)


def test_exponential_service_is_erlangs() -> None:
    queue = PhaseTypeQueue(PhaseType((1.0,), ((-7.0,),)))
    rho, time = np.array([0.02, 0.3, 0.8, 0.95, 0.999]), np.array([0.0, 0.1, 1.0, 9.0])[:, None]
    for c in (1, 3, 18, 64):
        np.testing.assert_allclose(queue.mean_wait(rho * c, 1.0, c), normalised_wait(rho * c, c), rtol=1e-10)
        np.testing.assert_allclose(
            queue.wait_cdf(time, rho * c, 1.0, c), ErlangC().wait_cdf(time, rho * c, 1.0, c), atol=1e-9
        )


@pytest.mark.parametrize("scv", [0.5, 4.0])
def test_light_and_heavy_traffic(scv: float) -> None:
    queue, c = PhaseTypeQueue.of_scv(scv), 8
    for rest in (1e-4, 1e-8):
        wait = float(queue.normalised_wait_and_slope(c * (1.0 - rest), c)[0])
        assert wait * c * rest == pytest.approx((1.0 + scv) / 2.0, rel=20 * rest + 1e-7)
        far = float(queue.wait_cdf(wait, c * (1.0 - rest), 1.0, c))
        assert far == pytest.approx(1.0 - np.exp(-1.0), abs=2e-3)
    light = float(queue.wait_cdf(0.0, 0.1 * c, 1.0, c))
    assert 1.0 - light == pytest.approx(float(erlang_c(0.1 * c, c)), rel=0.03)


@given(st.sampled_from([0.5, 0.8, 3.0]), st.integers(1, 30), st.floats(0.05, 0.99))
@settings(max_examples=25, deadline=None)
def test_curve_is_the_solution_it_was_fitted_to(scv: float, c: int, rho: float) -> None:
    from geoedge.theory._phase import levels_of, mean_wait_at

    queue = PhaseTypeQueue.of_scv(scv)
    levels = levels_of(np.array(queue.service.start), np.array(queue.service.rates), c)
    wait = float(queue.normalised_wait_and_slope(rho * c, c)[0])
    assert wait == pytest.approx(mean_wait_at(levels, rho * c), rel=1e-9)


@pytest.mark.parametrize("scv", SCVS)
def test_the_usual_law_has_its_moments(scv: float) -> None:
    law = PhaseType.of_scv(scv)
    assert law.scv == pytest.approx(scv, rel=1e-9)
    assert len(law.start) == (2 if scv > 1.0 else max(1, int(np.ceil(1.0 / scv - 1e-9))))
    # over quantiles of equal weight, the far tail by its share
    edges = stats.expon.ppf(
        np.append(np.linspace(0.0, 1.0 - 1e-3, 200_000), 1.0 - np.logspace(-3, -14, 20_000))
    )
    weight = np.diff(-np.expm1(-edges))
    middle = unit_quantile(scv, 0.5 * (edges[1:] + edges[:-1]))
    assert weight @ middle == pytest.approx(1.0, rel=1e-4)
    assert weight @ middle**2 - 1.0 == pytest.approx(scv, rel=2e-3)


@pytest.mark.parametrize("scv", SCVS)
def test_quantiles_invert_the_law(scv: float) -> None:
    law = PhaseType.of_scv(scv)
    start, rates = np.array(law.start), np.array(law.rates)
    marks = np.array([1e-3, 0.05, 0.7, 3.0, 12.0])
    times = unit_quantile(scv, marks)
    survived = [float((start @ expm(rates * t)).sum()) for t in times]
    np.testing.assert_allclose(survived, np.exp(-marks), rtol=1e-7)
    assert unit_quantile(scv, 0.0) == 0.0
    assert (np.diff(unit_quantile(scv, np.linspace(0.0, 40.0, 2000))) > 0.0).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PhaseType.of_scv(0.0), r"`scv` must lie in \[0.02, 25\], not 0.0; .* deterministic"),
        (lambda: unit_quantile(np.nan, 1.0), "scv"),
        (lambda: PhaseType((0.5, 0.4), ((-1.0, 0.0), (0.0, -1.0))), "add up to 1"),
        (lambda: PhaseType((1.0,), ((-1.0, 0.0),)), "shape"),
        (lambda: PhaseType((1.0, 0.0), ((-1.0, 2.0), (0.0, -1.0))), "off the diagonal"),
        (lambda: PhaseType((0.5, 0.5), ((0.0, 0.0), (0.0, -1.0))), "never ends"),
        (
            lambda: PhaseTypeQueue.of_scv(0.25).mean_wait(1.0, 1.0, 20),
            r"20 servers of 4 phases have 1771 states, at most 150 are computed; use TwoMomentQueue\(0.25\)",
        ),
    ],
)
def test_bad_input_is_one_line(call, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
