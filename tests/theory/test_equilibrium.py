"""The fixed point: residuals, capacity, baselines, and what happens where nothing is stable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.errors import GeoEdgeError
from geoedge.theory import (
    ErlangC,
    TieredNetwork,
    advertise,
    capacity,
    evaluate,
    mean_wait,
    normalised_wait,
    queue_for,
    solve,
    solve_equilibrium,
)
from geoedge.theory._capacity import Filled
from geoedge.theory._fixed_point import FixedPointSolver

from_seed = st.integers(0, 10_000)


def assert_solved(point) -> None:
    """Assert that waits and loads cause each other, computed afresh from the parts."""
    network = point.network
    again = mean_wait(point.site_arrival_rate, point.service_rate, network.concurrency)
    np.testing.assert_allclose(point.mean_wait, again, rtol=1e-8, atol=1e-300)
    assert point.converged
    assert point.stable
    assert point.residual_utilization < 1e-8
    # all requests are served, and all work is somewhere
    arrivals = network.tier_density @ point.site_arrival_rate
    assert arrivals == pytest.approx(network.request_intensity, rel=1e-9)
    work = (point.association * network.occupancy_time) @ network.type_probability
    busy = network.tier_density * network.concurrency * point.utilization
    np.testing.assert_allclose(busy, network.request_intensity * work, rtol=1e-9)


@pytest.mark.parametrize("load", [0.0, 0.01, 1.0, 3.0, 5.0, 8.0, 12.0, 16.0, 17.0, 17.9, 17.97, 17.99])
def test_baseline_converges_up_to_its_capacity(baseline, load: float) -> None:
    point = solve_equilibrium(baseline(load))
    assert_solved(point)
    assert point.residual_s < 1e-3
    assert point.iterations < 30


@given(from_seed, st.sampled_from([0.3, 0.75, 0.9, 0.97]))
@settings(max_examples=40, deadline=None)
def test_below_the_sufficient_bound_a_stable_point_is_found(random_network, seed: int, fill: float) -> None:
    assert_solved(solve_equilibrium(random_network(seed, fill)))


@given(from_seed, st.sampled_from([1.0, 1.2, 5.0]))
@settings(max_examples=20, deadline=None)
def test_from_the_necessary_bound_on_nothing_is_stable(random_network, seed: int, excess: float) -> None:
    network = random_network(seed, 0.5)
    point = solve_equilibrium(network.with_intensity(excess * network.necessary_intensity))
    assert not point.stable
    assert point.converged
    assert point.overloaded.all()
    assert np.isinf(point.mean_wait).all()
    # the advertised differences fill all tiers alike
    assert np.ptp(point.utilization) < 1e-6 * point.utilization.max() or point.utilization.min() == 1.0


def test_capacity_is_found_to_many_digits(baseline) -> None:
    critical = solve_equilibrium(baseline(18.0)).critical_intensity
    assert critical == pytest.approx(17.99483, abs=1e-4)
    network = baseline()
    assert network.sufficient_intensity < critical < network.necessary_intensity
    assert solve_equilibrium(baseline(critical * (1 - 1e-4))).stable
    assert not solve_equilibrium(baseline(critical * (1 + 1e-6))).stable
    # waits grow as one over what capacity is left
    near, nearer = (solve_equilibrium(baseline(critical - gap)).mean_wait for gap in (0.02, 0.01))
    np.testing.assert_allclose(nearer / near, 2.0, rtol=0.02)


@pytest.mark.parametrize("seed", range(12))
def test_up_to_its_capacity_a_random_network_is_stable(random_network, seed: int) -> None:
    network = random_network(seed)
    beyond = solve_equilibrium(network.with_intensity(network.necessary_intensity))
    assert beyond.beyond_capacity
    critical = beyond.critical_intensity
    assert network.sufficient_intensity * (1 - 1e-9) <= critical <= network.necessary_intensity * (1 + 1e-9)
    assert_solved(solve_equilibrium(network.with_intensity(0.995 * critical)))
    assert not solve_equilibrium(network.with_intensity(1.001 * critical)).stable


def nasty(seed: int) -> TieredNetwork:
    """Return a network of up to 12 tiers with rare ones, radio delays down to 1e-5 s/km^α and up to 200 servers."""
    rng = np.random.default_rng(seed)
    tiers, types = int(rng.integers(2, 13)), int(rng.integers(2, 9))
    full = rng.uniform(0.05, 1.5, types)
    prefill = full * np.where(rng.random((tiers, types)) < 0.7, rng.random((tiers, types)), 1.0)
    density = rng.uniform(0.05, 2.0, tiers)
    if seed % 3 == 0:
        density[rng.integers(tiers)] = 10.0 ** rng.uniform(-7.0, -2.0)
    return TieredNetwork(
        density,
        np.maximum(1, 10.0 ** rng.uniform(0.0, 2.3, tiers)).astype(int),
        rng.dirichlet(np.ones(types)),
        prefill,
        prefill + 10.0 ** rng.uniform(-1.0, 0.7),
        1.0,
        10.0 ** rng.uniform(*((-1.5, 0.0) if seed % 2 else (-5.0, -1.5))),
        float(rng.choice([1.2, 1.7, 2.0, 2.2, 2.5, 3.0, 4.0, 5.0])),
        np.zeros((tiers, types)),
        np.full(types, 1000),
        full,
    )


@pytest.mark.parametrize("seed", range(24))
def test_every_nasty_network_is_solved_up_to_its_capacity(seed: int) -> None:
    network = nasty(seed)
    room = capacity(network)
    assert room.exact
    np.testing.assert_allclose(room.utilization, 1.0, atol=1e-7)
    assert room.sufficient * (1 - 1e-9) <= room.intensity <= room.necessary
    for fill in (0.5, 0.9, 0.99):
        point = solve_equilibrium(network.with_intensity(fill * room.intensity))
        assert point.converged
        assert point.stable
        assert point.residual_utilization < 1e-7
    assert not solve_equilibrium(network.with_intensity(1.0001 * room.intensity)).stable


def test_capacity_does_not_ask_how_busy_the_network_is(baseline) -> None:
    idle, busy = capacity(baseline(0.0)), capacity(baseline(30.0))
    assert idle.intensity == busy.intensity == pytest.approx(17.99483, abs=1e-4)
    assert (idle.sufficient, idle.necessary) == (
        baseline(3.0).sufficient_intensity,
        baseline(3.0).necessary_intensity,
    )
    assert solve_equilibrium(baseline(20.0)).critical_intensity == pytest.approx(idle.intensity, rel=1e-12)
    np.testing.assert_allclose(
        capacity(baseline(1.0, placement=(0.6, 0.0, 0.4))).utilization, [1.0, 0.0, 1.0]
    )


def test_verdicts_name_what_is_to_blame(baseline) -> None:
    beyond = solve_equilibrium(baseline(20.0)).verdict()
    assert beyond.startswith("no stable point: request intensity 20 /(s km²) is not below 17.99")
    assert beyond.endswith("at which all tiers are full together")
    blind = solve_equilibrium(baseline(4.0), "prefix_only").verdict()
    assert blind.startswith("no stable point under prefix_only")
    assert "tier 2 (utilisation 1.1" in blind
    assert "tier 1" not in blind
    calm = solve_equilibrium(baseline(3.0)).verdict()
    assert calm.startswith("stable: the fullest tier is tier 2, with utilisation 0.")
    named = solve_equilibrium(baseline(4.0), "prefix_only").verdict(("fallback", "shallow", "deep"))
    assert named == blind.replace("tier 2", "deep")
    given_up = replace(solve_equilibrium(baseline(3.0)), residual_utilization=0.1)
    assert given_up.verdict().startswith("no point found")
    assert not any("\n" in text for text in (beyond, blind, calm, given_up.verdict()))


def test_the_bound_alone_is_not_said_to_fill_all_tiers(baseline, monkeypatch) -> None:
    # where the search for tiers that fill alike fails, only the necessary bound is known
    network = baseline(20.0)
    assert solve_equilibrium(network).critical_exact
    bound = Filled(np.zeros(3), network.necessary_intensity, False)
    monkeypatch.setattr("geoedge.theory._fixed_point.fill_alike", lambda *_: bound)
    point = solve_equilibrium(network.with_intensity(1.1 * network.necessary_intensity))
    assert point.beyond_capacity
    assert not point.critical_exact
    assert "together" not in point.verdict()
    assert point.verdict().endswith("which nothing can carry")
    mixed = solve_equilibrium(point.network, queue=queue_for("deterministic"))
    assert not mixed.critical_exact


STARTS, NETWORKS = 12, 40


@pytest.mark.slow
def test_newton_from_anywhere_finds_one_point() -> None:
    # uniqueness is proved for occupancies that do not depend on the type alone; here they do, strongly: of 12 random
    # starts on each of 40 networks of two and three tiers and types, those that arrive anywhere find no second point
    arrived = 0
    for seed in range(NETWORKS):
        rng = np.random.default_rng(seed)
        size = 2 + seed % 2
        network = TieredNetwork(
            rng.uniform(0.2, 2.0, size),
            rng.integers(1, 20, size),
            rng.dirichlet(np.ones(size)),
            rng.uniform(0.0, 1.0, (size, size)),
            10.0 ** rng.uniform(-1.0, 1.0, (size, size)),
            1.0,
            10.0 ** rng.uniform(-2.0, 0.0),
            float(rng.choice([1.5, 2.0, 2.5, 3.5])),
            np.zeros((size, size)),
            np.full(size, 1000),
            np.ones(size),
        )
        network = network.with_intensity(rng.uniform(0.5, 0.95) * capacity(network).intensity)
        known = solve_equilibrium(network)
        assert known.converged
        solver = FixedPointSolver(network, ErlangC(), 1e-11, 2000)
        for _ in range(STARTS):
            # not `solve_equilibrium`, which would turn to another start where this one leads nowhere
            state = solver._newton(
                solver._warm(network.request_intensity, 10.0 ** rng.uniform(-4.0, 2.0, size)), 60
            )
            if state is not None:
                arrived += 1
                np.testing.assert_allclose(state.believed / network.concurrency, known.utilization, atol=1e-7)
                np.testing.assert_allclose(state.wait, known.mean_wait, rtol=1e-5, atol=1e-9)
    assert arrived >= 0.75 * STARTS * NETWORKS


def test_an_overload_at_zero_wait_is_no_obstacle(baseline) -> None:
    free = solve_equilibrium(baseline(4.0), "prefix_only")
    assert free.utilization[2] > 1.0
    assert free.overloaded.tolist() == [False, False, True]
    assert np.isinf(free.mean_wait[2])
    assert_solved(solve_equilibrium(baseline(4.0)))


def test_one_tier_is_one_queue(baseline) -> None:
    point = solve_equilibrium(baseline(3.0, placement=(1.0, 0.0, 0.0)))
    rate = 3.0 / 1.2
    mean = point.network.occupancy_time[0] @ point.network.type_probability
    assert point.mean_wait[0] == pytest.approx(float(mean_wait(rate, 1.0 / mean, 18)), rel=1e-9)


def test_nearest_shares_by_density(baseline) -> None:
    point = solve_equilibrium(baseline(3.0), "nearest")
    np.testing.assert_allclose(point.association, np.outer([0.45, 0.35, 0.2], [1.0, 1.0]), rtol=1e-13)
    np.testing.assert_allclose(point.site_arrival_rate, 2.5, rtol=1e-13)
    assert point.advertised_wait.tolist() == [0.0, 0.0, 0.0]


def test_light_load_makes_policies_agree(baseline) -> None:
    aware, blind = (solve_equilibrium(baseline(1e-3), policy) for policy in ("load_aware", "prefix_only"))
    np.testing.assert_allclose(aware.association, blind.association, atol=1e-9)


def test_an_empty_tier_changes_nobody_and_gets_its_limit(baseline) -> None:
    full = baseline(3.0, placement=(0.6, 0.0, 0.4))
    point = solve_equilibrium(full)
    assert_solved(point)
    without = replace(
        full,
        **{
            name: getattr(full, name)[[0, 2]]
            for name in ("tier_density", "concurrency", "prefill_time", "occupancy_time", "hit_tokens")
        },
    )
    np.testing.assert_allclose(solve_equilibrium(without).mean_wait, point.mean_wait[[0, 2]], rtol=1e-9)
    rare = solve_equilibrium(full.with_placement([0.6, 1e-10, 0.4 - 1e-10]))
    assert point.site_arrival_rate[1] == pytest.approx(rare.site_arrival_rate[1], rel=1e-7)
    assert point.mean_wait[1] == pytest.approx(rare.mean_wait[1], rel=1e-6)


def test_warm_start_finds_the_same_point_sooner(baseline) -> None:
    cold = solve_equilibrium(baseline(16.1))
    warm = solve_equilibrium(baseline(16.1), start=solve_equilibrium(baseline(16.0)).advertised_wait)
    np.testing.assert_allclose(warm.mean_wait, cold.mean_wait, rtol=1e-8)
    assert warm.iterations < cold.iterations
    # a start that is the solution is recognised as such
    assert (
        solve_equilibrium(baseline(16.0), start=solve_equilibrium(baseline(16.0)).advertised_wait).iterations
        <= 1
    )


@given(from_seed, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
@settings(max_examples=25, deadline=None)
def test_waits_grow_with_load(random_network, seed: int, one: float, two: float) -> None:
    # with service times that depend on nothing but the tier the equilibrium is monotone
    network = random_network(seed, 0.5)
    network = replace(network, occupancy_time=np.ones_like(network.occupancy_time))
    low, high = (network.with_intensity(x * 0.9 * network.sufficient_intensity) for x in sorted((one, two)))
    lower, higher = solve_equilibrium(low).mean_wait, solve_equilibrium(high).mean_wait
    assert (higher >= lower * (1 - 1e-7) - 1e-12).all()


@given(from_seed, st.floats(0.05, 20.0))
@settings(max_examples=25, deadline=None)
def test_scale_invariance(random_network, seed: int, k: float) -> None:
    network = random_network(seed, 0.8)
    scaled = replace(
        network,
        tier_density=k * network.tier_density,
        request_intensity=k * network.request_intensity,
        delay_coefficient=k ** (network.delay_exponent / 2) * network.delay_coefficient,
    )
    one, other = solve_equilibrium(network), solve_equilibrium(scaled)
    np.testing.assert_allclose(other.utilization, one.utilization, atol=1e-8)
    np.testing.assert_allclose(other.association, one.association, atol=1e-8)


class SingleFastServer(ErlangC):
    """M/M/1 with c times the speed: a wait model of another shape, h = a/(c (c − a))."""

    @staticmethod
    def normalised_wait_and_slope(offered_load, concurrency):
        load, c = np.asarray(offered_load, float), np.asarray(concurrency, float)
        return load / (c * (c - load)), 1.0 / (c - load) ** 2

    @staticmethod
    def offered_load_for_wait(wait, concurrency):
        w, c = np.asarray(wait, float), np.asarray(concurrency, float)
        return w * c * c / (1.0 + w * c)


class Renamed(ErlangC):
    """M/M/c itself, but not by its class: what the general path makes of the queue that the compiled one knows."""


@pytest.mark.parametrize("load", [0.5, 6.0, 17.9])
def test_the_compiled_queue_changes_nothing(baseline, load: float) -> None:
    compiled, general = solve_equilibrium(baseline(load)), solve_equilibrium(baseline(load), queue=Renamed())
    np.testing.assert_allclose(compiled.mean_wait, general.mean_wait, rtol=1e-8)


class Slower:
    """A rule of the mixture: Erlang's wait times one plus the share of the first type."""

    def for_mix(self, served_mix, prefill_time, occupancy_time):
        return Stretched(1.0 + np.asarray(served_mix)[:, 0])


class Stretched(ErlangC):
    """Erlang's queue with its waits multiplied by a factor of each tier."""

    def __init__(self, factor: np.ndarray) -> None:
        object.__setattr__(self, "factor", factor)

    def normalised_wait_and_slope(self, offered_load, concurrency):
        wait, slope = ErlangC.normalised_wait_and_slope(offered_load, concurrency)
        return self.factor * wait, self.factor * slope

    def offered_load_for_wait(self, wait, concurrency):
        return ErlangC.offered_load_for_wait(np.asarray(wait) / self.factor, concurrency)


@pytest.mark.parametrize("load", [3.0, 10.0])
def test_a_queue_may_depend_on_the_mixture_that_it_serves(baseline, load: float) -> None:
    point = solve_equilibrium(baseline(load), queue=Slower())
    assert point.converged
    np.testing.assert_allclose(point.queue.factor, 1.0 + point.served_mix[:, 0], rtol=1e-9)
    plain = mean_wait(point.site_arrival_rate, point.service_rate, point.network.concurrency)
    np.testing.assert_allclose(point.advertised_wait, point.queue.factor * plain, rtol=1e-7, atol=1e-250)


@pytest.mark.parametrize("load", [1.0, 6.0, 14.0])
def test_another_wait_model_fits_the_socket(baseline, load: float) -> None:
    model = SingleFastServer()
    point = solve_equilibrium(baseline(load), queue=model)
    assert point.converged
    loads = point.utilization * point.network.concurrency
    expected = model.normalised_wait_and_slope(loads, point.network.concurrency)[0] / point.service_rate
    np.testing.assert_allclose(point.advertised_wait, expected, rtol=1e-8)
    assert (point.mean_wait > normalised_wait(loads, point.network.concurrency) / point.service_rate).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"policy": "random"}, "`policy` is 'random', but must be one of load_aware, prefix_only, nearest"),
        ({"start": [0.0, 0.0]}, "`start` must be 3 finite waits"),
        ({"start": [0.0, -1.0, 0.0]}, "`start`"),
    ],
)
def test_bad_input_is_one_line(baseline, arguments, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        solve_equilibrium(baseline(), **arguments)
    assert "\n" not in str(caught.value)


def test_waits_that_are_not_those_they_cause(baseline) -> None:
    """At the fixed point nothing is left over; elsewhere the residual says how far off the waits are."""
    network = baseline(3.0)
    solved = solve_equilibrium(network)
    again = advertise(network, solved.advertised_wait)
    assert again.residual_s <= 1e-12
    assert again.mean_wait == pytest.approx(solved.mean_wait, rel=1e-9)
    off = advertise(network, solved.advertised_wait + np.array([0.0, 0.0, 0.1]))
    assert off.residual_s == pytest.approx(float(off.advertised_wait[2] - off.mean_wait[2]))
    assert off.mean_wait[2] < solved.mean_wait[2]
    assert float(evaluate(network, solved.advertised_wait).ttft_coverage(0.8)) == pytest.approx(
        float(solve(network).ttft_coverage(0.8)), abs=1e-12
    )
    with pytest.raises(GeoEdgeError, match="advertise: `waits` must be 3 finite waits"):
        advertise(network, [0.1, np.nan, 0.0])
