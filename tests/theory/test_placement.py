"""Projection and placement: optimality conditions, agreement of independent searches, limits that are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from geoedge.errors import GeoEdgeError
from geoedge.theory import (
    PlacementLimits,
    TieredNetwork,
    optimal_placement,
    project_placement,
    robust_placement,
    solve,
)
from geoedge.theory.heterogeneity import solve_law

BYTES = np.array([0.0, 4.0, 12.0])
from_seed = st.integers(0, 10_000)


def random_limits(rng: np.random.Generator, tiers: int, tightness: float) -> PlacementLimits:
    """Return limits with a budget between the lightest mix (0) and that of the unhindered one (1)."""
    stored = rng.choice([rng.integers(0, 4, tiers) * 1e9, rng.random(tiers)])
    lower = rng.random(tiers) * rng.random() / tiers
    upper = np.minimum(1.0, lower + rng.random(tiers) + 1.0 / tiers)
    free = PlacementLimits(stored, np.inf, lower, upper)
    least, most = free.memory(free.lightest()), free.memory(np.maximum(upper, 0.0) / upper.sum())
    return replace(free, memory_budget_bytes=least + tightness * max(most - least, 0.0))


@given(from_seed, st.integers(1, 30), st.sampled_from([0.0, 1e-7, 0.2, 0.7, 2.0]))
@settings(max_examples=80, deadline=None)
def test_the_projection_is_the_closest_mix(seed: int, tiers: int, tightness: float) -> None:
    # z − π makes no acute angle with any step to a feasible mix; the worst step is a linear programme
    rng = np.random.default_rng(seed)
    limits = random_limits(rng, tiers, tightness)
    point = rng.normal(size=tiers) * 10.0 ** rng.uniform(-1.0, 2.0)
    mix = limits.project(point)
    assert limits.holds(mix, 1e-11)
    away = point - mix
    scale = max(float(limits.persistent_bytes.max()), 1.0)
    farthest = linprog(
        -away,
        A_ub=[limits.persistent_bytes / scale],
        b_ub=[limits.memory_budget_bytes / scale + 1e-13],
        A_eq=[np.ones(tiers)],
        b_eq=[1.0],
        bounds=list(zip(limits.least, limits.most, strict=True)),
    )
    assert farthest.status == 0
    assert -farthest.fun - away @ mix <= 2e-7 * (1.0 + np.abs(away).max())
    np.testing.assert_allclose(limits.project(mix), mix, atol=1e-12)


def test_both_limits_at_once_are_not_one_after_the_other() -> None:
    # onto the simplex, then onto the plane of the budget within the sum, then onto all: feasible, but not closest
    limits = PlacementLimits(BYTES, 3.8, [0.1, 0.0, 0.0])
    point = np.array([0.2, -0.3, 0.9])
    exact = limits.project(point)
    onto_simplex = PlacementLimits(BYTES).project(point)
    normal = BYTES - BYTES.mean()
    in_turn = np.clip(onto_simplex - max(0.0, BYTES @ onto_simplex - 3.8) / (normal @ normal) * normal, 0, 1)
    assert np.linalg.norm(exact - point) < np.linalg.norm(limits.project(in_turn) - point) - 1e-3


def test_a_budget_that_only_the_lightest_mix_keeps() -> None:
    mix = project_placement([0.0, 0.0, 1.0], [1.0, 1.0, 5.0], 1.0)
    np.testing.assert_allclose(mix, [0.5, 0.5, 0.0], atol=1e-12)
    assert project_placement([3.0], [7.0], 7.0).tolist() == [1.0]


def test_thousands_of_profiles() -> None:
    rng = np.random.default_rng(5)
    limits = PlacementLimits(rng.random(4000), 0.1)
    mix = limits.project(rng.normal(size=4000))
    assert limits.holds(mix, 1e-12)
    assert limits.binding(mix).memory


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PlacementLimits(BYTES, 3.8, 0.4), "`lower` is shares that add up to 1.2"),
        (lambda: PlacementLimits(BYTES, 3.8, 0.0, 0.3), "`upper` is shares that add up to 0.9"),
        (
            lambda: PlacementLimits(BYTES, 1.0, [0.0, 0.5, 0.0]),
            "`memory_budget_bytes` is 1, but must be at least 2",
        ),
        (
            lambda: PlacementLimits(BYTES, 3.8, [0, 0, 0.3], [1, 1, 0.2]),
            r"`lower\[2\]` is 0.3, but must be at most",
        ),
        (lambda: PlacementLimits(BYTES, float("nan")), "`memory_budget_bytes` is nan"),
        (lambda: PlacementLimits([1.0, -1.0]), "`persistent_bytes`"),
        (lambda: PlacementLimits(BYTES, 3.8, [0.1, 0.1]), "`lower`"),
        (lambda: PlacementLimits(BYTES).project([0.1, np.nan, 0.3]), "`point`"),
    ],
)
def test_what_cannot_be_kept_is_named_in_one_line(make, words: str) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", ["slsqp", "cobyqa", "spsa"])
@pytest.mark.parametrize("load", [3.0, 9.0])
def test_every_method_finds_the_best_mix_of_the_baseline(baseline, method: str, load: float) -> None:
    # by itself, without the climb by SLSQP at the end. The deep tier is worth its memory: the budget goes to it alone
    limits = PlacementLimits(BYTES, 3.8, [0.1, 0.0, 0.0])
    found = optimal_placement(baseline(load), 0.8, limits, method=method, rng=3, polish=False)
    np.testing.assert_allclose(found.placement_probability, [1 - 3.8 / 12, 0.0, 3.8 / 12], atol=1e-5)
    cold = float(solve(baseline(load, placement=found.placement_probability)).ttft_coverage(0.8))
    assert found.coverage == pytest.approx(cold, abs=1e-9)
    assert found.stable
    assert found.binding.memory
    assert found.binding.lower == (1,)
    assert found.present_coverage == pytest.approx(float(solve(baseline(load)).ttft_coverage(0.8)))


@pytest.mark.parametrize("load", [3.0, 9.0])
def test_the_lattice_is_searched_whole_and_the_last_climb_leaves_it(baseline, load: float) -> None:
    limits = PlacementLimits(BYTES, 3.8, [0.1, 0.0, 0.0])
    alone, polished = (
        optimal_placement(baseline(load), 0.8, limits, method="grid", polish=polish)
        for polish in (False, True)
    )
    shares = [np.array([20 - i - j, i, j]) / 20.0 for i in range(21) for j in range(21 - i)]
    kept = [mix for mix in shares if mix[0] >= 0.1 - 1e-12 and BYTES @ mix <= 3.8 + 1e-12]
    best = max(kept, key=lambda mix: float(solve(baseline(load, placement=mix)).ttft_coverage(0.8)))
    np.testing.assert_allclose(alone.placement_probability, best, atol=1e-12)
    assert alone.coverage < polished.coverage - 1e-3
    np.testing.assert_allclose(polished.placement_probability, [1 - 3.8 / 12, 0.0, 3.8 / 12], atol=1e-5)


def test_bounds_bind_and_no_lattice_mix_is_better(baseline) -> None:
    limits = PlacementLimits(BYTES, 5.0, [0.1, 0.0, 0.0], [1.0, 1.0, 0.2])
    found = optimal_placement(baseline(6.0), 0.8, limits)
    assert limits.holds(found.placement_probability)
    assert found.binding.upper == (2,)
    lattice = optimal_placement(baseline(6.0), 0.8, limits, method="grid", step=0.1)
    assert found.coverage >= lattice.coverage - 1e-7


def test_random_networks_are_improved_and_agree(random_network) -> None:
    for seed in range(6):
        network = random_network(seed, 0.6)
        stored = np.linspace(0.0, 3.0, network.tiers)
        limits = PlacementLimits(stored, 1.6, 0.0, 0.9 if network.tiers > 1 else 1.0)
        found = optimal_placement(network, 1.0, limits)
        assert limits.holds(found.placement_probability)
        rng = np.random.default_rng(seed)
        for _ in range(10):
            other = limits.project(rng.dirichlet(np.ones(network.tiers)))
            answer = solve(replace(network, tier_density=network.site_density * other))
            assert float(answer.ttft_coverage(1.0)) <= found.coverage + 1e-5


def test_an_overloaded_start_is_left(baseline) -> None:
    # at load 17.995 the present mix and the uniform one are beyond capacity, some others are not
    network = baseline(20.0)
    assert not solve(network).stable
    found = optimal_placement(network, 0.8, PlacementLimits(BYTES))
    assert found.stable
    assert found.present_coverage == 0.0
    assert found.coverage > 0.02


def test_where_no_mix_is_stable_it_is_said(baseline) -> None:
    found = optimal_placement(baseline(60.0), 0.8, PlacementLimits(BYTES))
    assert not found.stable
    assert found.coverage == 0.0


def test_another_policy_and_several_hours(baseline) -> None:
    limits = PlacementLimits(BYTES, 3.8)
    hours = [baseline(0.5), baseline(1.5)]
    both = optimal_placement(hours, 0.8, limits, weights=[1.0, 3.0], policy="prefix_only")
    assert both.stable
    parts = [
        float(solve(baseline(load, placement=both.placement_probability), "prefix_only").ttft_coverage(0.8))
        for load in (0.5, 1.5)
    ]
    assert both.coverage == pytest.approx(0.25 * parts[0] + 0.75 * parts[1], abs=1e-9)
    single = optimal_placement(hours, 0.8, limits, weights=[1.0, 0.0])
    alone = optimal_placement(baseline(0.5), 0.8, limits)
    assert single.coverage == pytest.approx(alone.coverage, abs=1e-9)


def test_a_robust_mix_is_best_in_what_it_was_asked_for(baseline) -> None:
    loads = [baseline(load) for load in (1.5, 9.0, 15.0)]
    limits = PlacementLimits(BYTES, 3.8, [0.1, 0.0, 0.0], [1.0, 1.0, 0.25])
    found = {
        name: robust_placement(loads, 0.8, limits, criterion=name) for name in ("mean", "worst", "regret")
    }
    for each in found.values():
        assert limits.holds(each.placement_probability)
        assert each.stable.all()
        assert (each.regret >= -1e-7).all()
    slack = 1e-6
    assert all(found["mean"].coverage.mean() >= each.coverage.mean() - slack for each in found.values())
    assert all(found["worst"].coverage.min() >= each.coverage.min() - slack for each in found.values())
    assert all(found["regret"].regret.max() <= each.regret.max() + slack for each in found.values())


def test_the_budget_of_evaluations_is_kept(baseline) -> None:
    found = optimal_placement(baseline(3.0), 0.8, method="grid", max_evaluations=7)
    assert found.evaluations == 7
    assert found.coverage >= found.present_coverage


def test_spsa_follows_its_seed(baseline) -> None:
    asked = {"method": "spsa", "max_evaluations": 30, "polish": False}
    first, again, other = (optimal_placement(baseline(3.0), 0.8, rng=seed, **asked) for seed in (1, 1, 2))
    assert first.placement_probability.tolist() == again.placement_probability.tolist()
    assert first.placement_probability.tolist() != other.placement_probability.tolist()


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("must be one of slsqp, grid, cobyqa, spsa", {"method": "annealing"}),
        ("must be one of mean_field, per_tier, per_site", {"law": "exact"}),
        ("`rng` is missing", {"method": "spsa"}),
        ("one over a whole number", {"method": "grid", "step": 0.3}),
        ("make 125,751 mixes", {"method": "grid", "step": 0.002}),
        ("`limits` are for 2 profiles, but the network has 3", {"limits": PlacementLimits([0.0, 1.0])}),
        ("`weights`", {"weights": [0.0]}),
    ],
)
def test_bad_input_is_one_line(baseline, words: str, asked) -> None:
    with pytest.raises(GeoEdgeError, match=words) as caught:
        optimal_placement(baseline(3.0), 0.8, **asked)
    assert "\n" not in str(caught.value)


def test_targets_and_cases_must_make_sense(baseline) -> None:
    with pytest.raises(GeoEdgeError, match="`ttft_target` is nan"):
        optimal_placement(baseline(3.0), float("nan"))
    with pytest.raises(GeoEdgeError, match="must be one of mean, worst, regret"):
        robust_placement([baseline(3.0)], 0.8, criterion="median")
    with pytest.raises(GeoEdgeError, match="one or more numbers"):
        robust_placement([], 0.8)
    with pytest.raises(GeoEdgeError, match="`cases` is one network"):
        robust_placement(baseline(3.0), 0.8)
    with pytest.raises(GeoEdgeError, match="`weights` are for 1 cases, but must be for 2"):
        robust_placement([baseline(3.0), baseline(3.0)], 0.8, weights=[None])
    single = TieredNetwork([0.7], [4], [1.0], [[0.2]], [[0.7]], 3.0, 0.5, 2.0, [[100]], [800], [0.25])
    with pytest.raises(GeoEdgeError, match="same profiles"):
        optimal_placement([baseline(3.0), single], 0.8)
    assert optimal_placement(single, 0.8).placement_probability.tolist() == [1.0]


@pytest.mark.parametrize("law", ["per_tier", "per_site"])
def test_a_law_of_site_loads_is_what_counts(baseline, law: str) -> None:
    limits = PlacementLimits(BYTES, 3.8, [0.1, 0.0, 0.0], [1.0, 1.0, 0.25])
    found = optimal_placement(baseline(3.0), 0.8, limits, law=law, max_evaluations=8)
    mix = found.placement_probability
    assert limits.holds(mix)
    expected = solve_law(baseline(3.0, placement=mix), law)
    assert found.coverage == pytest.approx(float(expected.ttft_coverage(0.8)), abs=1e-4)
    plain = optimal_placement(baseline(3.0), 0.8, limits)
    assert found.present_coverage < found.coverage < plain.coverage


def test_a_hopeless_case_does_not_decide(baseline) -> None:
    """No mix carries a load of 60, and that is no reason to give up coverage at 1.5."""
    limits = PlacementLimits([0.0, 4.0, 12.0], 3.8)
    found = robust_placement([baseline(1.5), baseline(60.0)], 0.8, limits)
    alone = optimal_placement(baseline(1.5), 0.8, limits)
    assert found.stable.tolist() == [True, False]
    assert found.coverage[0] == pytest.approx(alone.coverage, abs=1e-6)
    assert found.regret == pytest.approx([0.0, 0.0], abs=1e-6)
