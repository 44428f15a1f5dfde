"""Every wait model obeys the protocol; two moments and renewal arrivals against closed forms and Markov chains."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson

from geoedge.errors import GeoEdgeError
from geoedge.theory import (
    ErlangC,
    PerSite,
    PhaseTypeQueue,
    RenewalQueue,
    TabulatedQueue,
    TwoMomentQueue,
    WaitModel,
    erlang_c,
    normalised_wait,
    select,
    wait_cdf,
)

SERVERS = (1, 2, 6, 18)


def table_of(
    queue: WaitModel, servers=SERVERS, levels=(0.3, 0.6, 0.8, 0.9, 0.97, 0.99, 0.999, 0.9999)
) -> TabulatedQueue:
    """Return the table of a queue at a few utilisations."""
    c, rho = (x.ravel() for x in np.meshgrid(servers, [0.2, 0.5, 0.7, 0.8, 0.9, 0.95]))
    wait, _ = queue.normalised_wait_and_slope(c * rho, c)
    quantiles = np.array(
        [queue.wait_quantile(np.array(levels), r * k, 1.0, k) for k, r in zip(c, rho, strict=True)]
    )
    return TabulatedQueue.from_rows(
        c, rho, wait, 1.0 - queue.wait_cdf(0.0, c * rho, 1.0, c), levels=levels, quantiles=quantiles
    )


MODELS = {
    "M/G/c, constant": TwoMomentQueue(0.0),
    "M/G/c, regular": TwoMomentQueue(0.3),
    "M/G/c, variable": TwoMomentQueue(4.0),
    "GI/G/c": TwoMomentQueue(0.5, 3.0),
    "D/M/c": RenewalQueue(0.0),
    "gamma/M/c": RenewalQueue(0.4),
    "H2/M/c": RenewalQueue(6.0),
    "bursty gamma/M/c": RenewalQueue(3.0, "gamma"),
    "M/E2/c": PhaseTypeQueue.of_scv(0.5),
    "M/H2/c": PhaseTypeQueue.of_scv(5.0),
    "table": table_of(TwoMomentQueue(2.0)),
}
models = pytest.mark.parametrize("queue", MODELS.values(), ids=MODELS.keys())


@models
def test_is_a_wait_model(queue: WaitModel) -> None:
    assert isinstance(queue, WaitModel)
    wait, slope = queue.normalised_wait_and_slope([0.0, 3.0, 6.0, 9.0], 6)
    assert wait[0] == 0.0
    assert wait[2:].tolist() == slope[2:].tolist() == [np.inf, np.inf]
    assert queue.mean_wait([3.0, 6.0], 1.0, 6)[1] == np.inf
    assert queue.wait_cdf([-1.0, 0.0, 9.0], 0.0, 1.0, 2).tolist() == [0.0, 1.0, 1.0]
    assert queue.wait_cdf([0.0, 1e9], 7.0, 1.0, 6).tolist() == [0.0, 0.0]
    assert queue.wait_cdf(np.inf, 5.0, 1.0, 6) == 1.0
    assert queue.wait_quantile([0.0, 0.5, 1.0], 7.0, 1.0, 6).tolist() == [0.0, np.inf, np.inf]
    assert queue.wait_quantile([0.0, 1.0], 5.0, 1.0, 6).tolist() == [0.0, np.inf]


@models
@given(st.sampled_from(SERVERS), st.floats(0.15, 0.995), st.floats(0.01, 50.0))
@settings(max_examples=15, deadline=None)
def test_inverse_slope_and_scale(queue: WaitModel, c: int, rho: float, mu: float) -> None:
    load = rho * c
    wait, slope = (float(x) for x in queue.normalised_wait_and_slope(load, c))
    assert float(queue.offered_load_for_wait(wait, c)) == pytest.approx(load, rel=1e-9)
    assert float(queue.mean_wait(load * mu, mu, c)) * mu == pytest.approx(wait, rel=1e-9)
    h = 1e-5 * (c - load) * rho
    above, below = (float(queue.normalised_wait_and_slope(load + x, c)[0]) for x in (h, -h))
    assert below < wait < above
    if not isinstance(queue, TabulatedQueue):  # whose slope jumps at its rows
        assert slope == pytest.approx((above - below) / (2 * h), rel=1e-4)


@models
@given(st.sampled_from(SERVERS), st.floats(0.3, 0.97), st.floats(0.0, 0.9999))
@settings(max_examples=15, deadline=None)
def test_quantile_inverts_the_distribution(queue: WaitModel, c: int, rho: float, level: float) -> None:
    mu = 0.3
    wait = float(queue.wait_quantile(level, rho * c * mu, mu, c))
    reached = float(queue.wait_cdf(wait, rho * c * mu, mu, c))
    assert reached == pytest.approx(level, abs=1e-8) if wait > 0.0 else reached >= level


@models
@pytest.mark.parametrize(("c", "rho"), [(1, 0.5), (6, 0.8), (18, 0.9)])
def test_mean_is_the_integral_of_the_tail(queue: WaitModel, c: int, rho: float) -> None:
    mean = float(queue.normalised_wait_and_slope(rho * c, c)[0])
    delayed = 1.0 - float(queue.wait_cdf(0.0, rho * c, 1.0, c))

    time = 80.0 * np.linspace(0.0, 1.0, 100_001) ** 3 * mean / delayed
    area = float(np.trapezoid(1.0 - queue.wait_cdf(time, rho * c, 1.0, c), time))
    # few quantiles leave the shape of a table open
    assert area == pytest.approx(mean, rel=0.03 if isinstance(queue, TabulatedQueue) else 2e-5)


@models
def test_broadcasts_and_travels(queue: WaitModel) -> None:
    again = pickle.loads(pickle.dumps(queue))
    c = np.array([[1], [6], [18]])
    load = c * np.array([0.3, 0.8])
    wait, _ = again.normalised_wait_and_slope(load, c)
    assert wait.shape == again.offered_load_for_wait(wait, c).shape == (3, 2)
    cdf = again.wait_cdf(np.array([0.0, 0.7]), load, 1.0, c)
    for i in range(3):
        for j in range(2):
            one = queue.wait_cdf([0.0, 0.7][j], load[i, j], 1.0, int(c[i, 0]))
            assert cdf[i, j] == pytest.approx(float(one), abs=1e-12)


def test_two_moments_are_exact_where_known() -> None:
    rho = np.array([0.05, 0.4, 0.9, 0.999])
    for scv in (0.0, 0.5, 1.0, 3.0):  # one server: Pollaczek–Khinchine
        np.testing.assert_allclose(
            TwoMomentQueue(scv).mean_wait(rho, 1.0, 1), (1 + scv) / 2 * rho / (1 - rho), rtol=1e-12
        )
    for c in (2, 6, 64, 300):
        queue = TwoMomentQueue(1.0)
        np.testing.assert_allclose(queue.mean_wait(rho * c, 1.0, c), normalised_wait(rho * c, c), rtol=1e-12)
        time = np.linspace(0.0, 3.0, 7)[:, None]
        np.testing.assert_allclose(
            queue.wait_cdf(time, rho * c, 1.0, c), wait_cdf(time, rho * c, 1.0, c), atol=1e-12
        )


def deterministic_numbers(rho: float, c: int) -> np.ndarray:
    """Return how many are present in M/D/c, from its chain at multiples of a service: N' = (N − c)⁺ + Poisson."""
    size = c + int(40 / (1 - rho))
    arrivals = poisson.pmf(np.arange(size), rho * c)
    step = np.array([np.roll(arrivals, max(n - c, 0)) * (np.arange(size) >= n - c) for n in range(size)])
    step[:, -1] += 1.0 - step.sum(axis=1)
    return np.linalg.solve((np.eye(size) - step + 1.0).T, np.ones(size))


def deterministic_wait(rho: float, c: int) -> float:
    """Return the mean wait of M/D/c by Little's law."""
    stay = deterministic_numbers(rho, c)
    return float((stay @ np.arange(stay.size) - rho * c) / (rho * c))


def deterministic_cdf(time: np.ndarray, rho: float, c: int) -> np.ndarray:
    """Return the distribution of the wait in M/D/c, a finite sum over those in the queue.

    Franx, G. J. (2001). A simple solution for the M/D/c waiting time distribution. Operations Research Letters 29.
    """
    at_most = np.cumsum(deterministic_numbers(rho, c))[c:]  # in the queue
    found = []
    for t in time:
        k = int(t) + 1
        j = np.arange(k * c)
        found.append(poisson.pmf(j, rho * c * (k - t)) @ at_most[np.minimum(j[::-1], at_most.size - 1)])
    return np.array(found)


@pytest.mark.parametrize(("c", "rho"), [(2, 0.3), (2, 0.9), (5, 0.6), (16, 0.8), (16, 0.93), (64, 0.9)])
def test_constant_service_is_exact(c: int, rho: float) -> None:
    wait = float(TwoMomentQueue(0.0).mean_wait(rho * c, 1.0, c))
    assert wait == pytest.approx(deterministic_wait(rho, c), rel=1e-6)
    assert float(TwoMomentQueue(0.0).wait_cdf(0.0, rho * c, 1.0, c)) == pytest.approx(
        float(deterministic_cdf(np.zeros(1), rho, c)[0]), abs=1e-6
    )


def test_the_distribution_of_constant_service_is_as_good_as_it_says() -> None:
    worst = 0.0
    for c in (1, 4, 64):
        for rho in (0.3, 0.6, 0.8, 0.9, 0.95):
            queue = TwoMomentQueue(0.0)
            delayed = 1.0 - float(queue.wait_cdf(0.0, rho * c, 1.0, c))
            time = np.linspace(0.0, 6.0, 61) * float(queue.mean_wait(rho * c, 1.0, c)) / max(delayed, 1e-12)
            gap = queue.wait_cdf(time, rho * c, 1.0, c) - deterministic_cdf(time, rho, c)
            worst = max(worst, float(np.abs(gap).max()))
    assert 0.02 < worst < 0.025


def test_many_servers_with_constant_service() -> None:
    ratio = TwoMomentQueue(0.0).mean_wait(np.array([110.0, 190.0, 199.9]), 1.0, 200)
    ratio /= normalised_wait(np.array([110.0, 190.0, 199.9]), 200)
    assert ratio[0] > 0.9  # many servers, hardly loaded: the next of c residual times of either law
    assert ratio[2] == pytest.approx(0.5, abs=0.005)  # heavy traffic


@pytest.mark.parametrize(
    ("scv", "servers", "means", "tails"),
    [
        (0.25, (1, 2, 4, 7), 0.04, 0.015),  # more have too many states
        (0.5, (1, 2, 4, 9, 18, 64), 0.04, 0.015),
        (2.0, (1, 2, 4, 9, 18, 64), 0.04, 0.015),
        (4.0, (1, 2, 4, 9, 18, 64), 0.08, 0.026),
    ],
)
def test_two_moments_are_as_good_as_they_say(
    scv: float, servers: tuple[int, ...], means: float, tails: float
) -> None:
    exact, rule = PhaseTypeQueue.of_scv(scv), TwoMomentQueue(scv)
    c, rho = (x.ravel() for x in np.meshgrid(servers, [0.3, 0.6, 0.8, 0.9, 0.95]))
    true, _ = exact.normalised_wait_and_slope(c * rho, c)
    found, _ = rule.normalised_wait_and_slope(c * rho, c)
    felt = true > 0.01
    assert np.abs(found / true - 1.0)[felt].max() < means
    time = np.linspace(0.0, 6.0, 61)[:, None] * true / (1.0 - exact.wait_cdf(0.0, c * rho, 1.0, c))
    gap = exact.wait_cdf(time, c * rho, 1.0, c) - rule.wait_cdf(time, c * rho, 1.0, c)
    assert np.abs(gap).max() < tails
    assert np.abs(gap).max() > tails / 4  # the promise is no idle one


def test_one_scv_for_each_tier() -> None:
    queue = TwoMomentQueue(np.array([0.5, 1.0, 4.0]))
    assert isinstance(queue, PerSite)
    c, load = np.array([18, 14, 6]), np.array([15.0, 11.0, 5.0])
    together = queue.mean_wait(load, 1.0, c)
    for i, scv in enumerate((0.5, 1.0, 4.0)):
        alone = TwoMomentQueue(scv)
        assert together[i] == alone.mean_wait(load[i], 1.0, c[i])
        assert select(queue, i).wait_cdf(0.3, load[i], 1.0, c[i]) == alone.wait_cdf(0.3, load[i], 1.0, c[i])
    np.testing.assert_allclose(queue.offered_load_for_wait(together, c), load, rtol=1e-10)
    assert select(alone, 2) is alone
    assert isinstance(select(ErlangC(), 2), ErlangC)


def renewal_chain(start: np.ndarray, moves: np.ndarray, c: int) -> tuple[float, float]:
    """Return mean wait and probability of waiting of PH/M/c from a chain over arrival phase and number present.

    Arrivals begin in a phase of `start` and go by the subgenerator `moves`; service has rate 1.
    """
    leave, phases = -moves.sum(axis=1), start.size
    left = np.linalg.solve(-moves, np.ones(phases))
    rate = 1.0 / float(start @ left)
    spread = 2.0 * float(start @ np.linalg.solve(-moves, left)) * rate**2  # 1 + scv
    size = c + int(60 * spread / (1 - rate / c))
    move = np.zeros((phases, size, phases, size))
    for n in range(size):
        for phase in range(phases):
            move[phase, n, :, n] += moves[phase] * (np.arange(phases) != phase)
            move[phase, n, :, min(n + 1, size - 1)] += leave[phase] * start
            if n:
                move[phase, n, phase, n - 1] += min(n, c)
    flow = move.reshape(phases * size, phases * size)
    np.fill_diagonal(flow, 0.0)
    flow -= np.diag(flow.sum(axis=1))
    flow[:, 0] = 1.0
    stay = np.linalg.solve(flow.T, np.eye(phases * size)[0]).reshape(phases, size)
    seen = leave @ stay / rate  # by arrivals
    queue = np.maximum(np.arange(size) - c, 0) @ stay.sum(axis=0)
    return float(queue / rate), float(seen[c:].sum())


def hyperexponential(scv: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return start and subgenerator of H2 with balanced means."""
    fast = 0.5 * (1 + np.sqrt((scv - 1) / (scv + 1)))
    return np.array([fast, 1 - fast]), -2 * rate * np.diag([fast, 1 - fast])


def erlang(phases: int, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return start and subgenerator of Erlang's law of so many phases, of squared variation one over that."""
    return np.eye(phases)[0], phases * rate * (np.eye(phases, k=1) - np.eye(phases))


def assert_is_chain(
    queue: RenewalQueue, arrivals: tuple[np.ndarray, np.ndarray], load: float, c: int
) -> None:
    """Assert that mean wait and probability of waiting are those of the chain."""
    wait, delayed = renewal_chain(*arrivals, c)
    assert float(queue.mean_wait(load, 1.0, c)) == pytest.approx(wait, rel=1e-8)
    assert 1.0 - float(queue.wait_cdf(0.0, load, 1.0, c)) == pytest.approx(delayed, rel=1e-8)


@pytest.mark.parametrize(("scv", "rho", "c"), [(2.0, 0.5, 1), (2.0, 0.8, 3), (8.0, 0.6, 6), (4.0, 0.4, 12)])
def test_bursty_arrivals_against_a_markov_chain(scv: float, rho: float, c: int) -> None:
    assert_is_chain(RenewalQueue(scv), hyperexponential(scv, rho * c), rho * c, c)


@pytest.mark.parametrize(("phases", "rho", "c"), [(2, 0.5, 1), (2, 0.8, 3), (2, 0.9, 6), (3, 0.7, 4)])
def test_regular_arrivals_against_a_markov_chain(phases: int, rho: float, c: int) -> None:
    assert_is_chain(RenewalQueue(1.0 / phases), erlang(phases, rho * c), rho * c, c)


def test_poisson_arrivals_are_erlangs() -> None:
    rho = np.array([0.01, 0.3, 0.9, 1.0 - 1e-9])
    for c in (1, 2, 9, 64):
        for family in (None, "gamma", "hyperexponential"):
            queue = RenewalQueue(1.0, family)
            np.testing.assert_allclose(
                queue.mean_wait(rho * c, 1.0, c), normalised_wait(rho * c, c), rtol=1e-6
            )
            np.testing.assert_allclose(
                queue.mean_wait(rho[:3] * c, 1.0, c), normalised_wait(rho[:3] * c, c), rtol=1e-12
            )
            np.testing.assert_allclose(
                1.0 - queue.wait_cdf(0.0, rho * c, 1.0, c), erlang_c(rho * c, c), rtol=1e-7, atol=1e-14
            )


def test_a_clock_at_half_load() -> None:
    # D/M/1: σ = e^{−2(1−σ)} is 0.2031878699799799
    sigma = 0.2031878699799799
    queue = RenewalQueue(0.0)
    assert 1.0 - float(queue.wait_cdf(0.0, 0.5, 1.0, 1)) == pytest.approx(sigma, rel=1e-12)
    assert float(queue.mean_wait(0.5, 1.0, 1)) == pytest.approx(sigma / (1.0 - sigma), rel=1e-12)
    assert float(queue.wait_cdf(1.5, 0.5, 1.0, 1)) == pytest.approx(
        1.0 - sigma * np.exp(-1.5 * (1.0 - sigma))
    )


@pytest.mark.parametrize("scv", [0.0, 0.5, 4.0])
def test_heavy_traffic_of_arrivals(scv: float) -> None:
    c, rest = 6, 1e-6
    wait = float(RenewalQueue(scv).normalised_wait_and_slope(c * (1.0 - rest), c)[0])
    assert wait * c * rest == pytest.approx((1.0 + scv) / 2.0, rel=1e-4)


def test_takacs_terms_that_vanish_together() -> None:
    # c(1 − σ) passes the whole number 3 on the way: the wait must not notice
    queue, c = RenewalQueue(0.5), 6
    load = np.linspace(3.0, 5.8, 4001)
    logs = np.log(queue.normalised_wait_and_slope(load, c)[0])
    assert np.abs(np.diff(logs, 3)).max() < 1e-7


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TwoMomentQueue(-0.1), r"TwoMomentQueue: `service_scv` must lie in \[0, 100\], not -0.1"),
        (lambda: TwoMomentQueue(np.array([1.0, np.nan])), "service_scv"),
        (lambda: TwoMomentQueue(1.0, 0.5), r"`arrival_scv` must lie in \[1, 100\]"),
        (lambda: RenewalQueue(-1.0), "arrival_scv"),
        (lambda: RenewalQueue(0.5, "hyperexponential"), 'use "gamma"'),
        (lambda: RenewalQueue(2.0, "pareto"), "family"),
        (lambda: TwoMomentQueue(2.0).mean_wait(-1.0, 1.0, 2), "arrival_rate"),
        (lambda: TwoMomentQueue(2.0).mean_wait(1.0, 1.0, 0), "concurrency"),
        (lambda: TwoMomentQueue(2.0).wait_cdf(np.nan, 1.0, 1.0, 2), "NaN"),
        (lambda: TwoMomentQueue(2.0).wait_quantile(1.5, 1.0, 1.0, 2), "probability"),
        (lambda: RenewalQueue(2.0).offered_load_for_wait(-1.0, 2), "`wait`"),
    ],
)
def test_bad_input_is_one_line(call, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
