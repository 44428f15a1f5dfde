"""The best set of prefixes: exhaustive search, bounds, blocks, and the profiles made of such sets."""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geoedge.errors import ScenarioError
from geoedge.workload import (
    PrefillCurve,
    PrefixForest,
    best_prefixes,
    concurrency,
    dominated,
    generate_profiles,
    greedy_prefixes,
    incremental_values,
)

CURVE = PrefillCurve(1e-4, 2e-9, 5e-3)


def random_forest(rng: np.random.Generator, size: int, longest: int = 6) -> PrefixForest:
    """Return a forest whose segments have 1 to `longest` tokens."""
    parents, depths = [], []
    for vertex in range(size):
        parent = int(rng.integers(-1, vertex)) if vertex else -1
        parents.append(parent)
        depths.append((depths[parent] if parent >= 0 else 0) + int(rng.integers(1, longest + 1)))
    return PrefixForest(tuple(map(str, range(size))), tuple(parents), tuple(depths))


@given(st.integers(0, 100_000), st.integers(1, 9), st.integers(0, 35))
@settings(max_examples=120, deadline=None)
def test_no_closed_set_is_better(seed: int, size: int, budget: int) -> None:
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, size)
    values = rng.random(size) * (rng.random(size) < 0.7)
    found = best_prefixes(forest, values, budget)
    assert forest.is_closed(found.vertices)
    assert found.tokens == forest.unique_tokens(found.vertices) <= budget
    assert found.value == pytest.approx(values[sorted(found.vertices)].sum())
    for count in range(size + 1):
        for other in combinations(range(size), count):
            if forest.is_closed(other) and forest.unique_tokens(other) <= budget:
                value = values[list(other)].sum()
                assert value <= found.value + 1e-12
                if value >= found.value - 1e-15:
                    assert forest.unique_tokens(other) >= found.tokens
    greedy = greedy_prefixes(forest, values, budget)
    assert forest.is_closed(greedy.vertices)
    assert greedy.tokens <= budget
    assert greedy.value <= found.value + 1e-12


def test_the_value_is_the_prefill_saved() -> None:
    rng = np.random.default_rng(3)
    forest = random_forest(rng, 40, 200)
    ends = [int(rng.integers(40)) for _ in range(25)]
    share, length = rng.dirichlet(np.ones(25)), np.array([forest.depth_tokens[end] + 50 for end in ends])
    values = incremental_values(forest, ends, share, length, CURVE)
    found = best_prefixes(forest, values, 1500)
    hits = forest.hit_matrix([found.vertices], ends)[0]
    assert found.value == pytest.approx(float(share @ CURVE.saving(length, hits)))


def test_a_rich_vertex_behind_a_poor_one_is_seen() -> None:
    forest = PrefixForest.from_edges([("poor", None, 10), ("rich", "poor", 20), ("fair", None, 10)])
    values = [0.1, 5.0, 1.0]
    assert best_prefixes(forest, values, 20).vertices == {0, 1}
    assert greedy_prefixes(forest, values, 20).value == pytest.approx(1.1)


def test_deep_chains_and_wide_forests_do_not_recurse() -> None:
    chain = PrefixForest(tuple(map(str, range(3000))), tuple(range(-1, 2999)), tuple(range(1, 3001)))
    assert best_prefixes(chain, np.ones(3000), 1234).tokens == 1234
    wide = PrefixForest(tuple(map(str, range(3000))), (-1,) * 3000, (5,) * 3000)
    found = best_prefixes(wide, np.arange(3000.0), 50)
    assert found.vertices == set(range(2990, 3000))


def test_blocks_are_whole() -> None:
    forest = PrefixForest.from_edges([("a", None, 17), ("b", None, 16), ("c", None, 31)])
    values = [3.0, 1.0, 2.9]
    assert best_prefixes(forest, values, 48, block_tokens=16).vertices == {0, 1}
    assert best_prefixes(forest, values, 48).vertices == {0, 2}


def test_thousands_of_vertices_take_well_under_a_second() -> None:
    rng = np.random.default_rng(1)
    forest = random_forest(rng, 4000, 40)
    values = rng.random(4000) ** 4
    started = time.process_time()
    found = best_prefixes(forest, values, 46_000, block_tokens=16)
    assert time.process_time() - started < 1.0
    assert found.tokens <= 46_000


@pytest.mark.parametrize(
    ("values", "budget", "block", "words"),
    [
        ([1.0], 5, None, "`values` must be 2"),
        ([1.0, -1.0], 5, None, "`values`"),
        ([1.0, np.nan], 5, None, "`values`"),
        ([1.0, 1.0], -1, None, "`budget_tokens` is -1"),
        ([1.0, 1.0], 5, 0, "`block_tokens` is 0"),
        ([1.0, 1.0], 10**10, None, "give `block_tokens`"),
    ],
)
def test_bad_input_is_one_line(values, budget, block, words) -> None:
    forest = PrefixForest.from_edges([("a", None, 3), ("b", None, 10**10)])
    with pytest.raises(ScenarioError, match=words) as caught:
        best_prefixes(forest, values, budget, block_tokens=block)
    assert "\n" not in str(caught.value)


def test_nothing_worth_storing() -> None:
    forest = PrefixForest.from_edges([("a", None, 3)])
    assert best_prefixes(forest, [0.0], 5).vertices == frozenset()
    assert best_prefixes(forest, [1.0], 2).vertices == frozenset()
    empty = PrefixForest((), (), ())
    assert best_prefixes(empty, [], 5).value == 0.0


def profiles_of(seed: int, **changes):
    """Return a random forest with its requests and generated profiles."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 60, 300)
    ends = [int(rng.integers(60)) for _ in range(30)]
    length = np.array([forest.depth_tokens[end] + 100 for end in ends])
    asked = {"memory_bytes": 20_000, "runtime_bytes_per_request": 2_500, "kv_bytes_per_token": 2} | changes
    made = generate_profiles(forest, ends, np.full(30, 1 / 30), length, CURVE, **asked)
    return forest, ends, asked, made


@pytest.mark.parametrize("seed", range(5))
def test_generated_profiles_are_closed_undominated_and_fit(seed: int) -> None:
    forest, ends, asked, made = profiles_of(seed)
    assert made[0].name == "fallback"
    assert made[0].persistent_bytes == 0
    assert len(made) >= 4
    assert len({profile.name for profile in made}) == len(made)
    stored = np.array([profile.persistent_bytes for profile in made])
    servers = np.array(
        [concurrency(asked["memory_bytes"], int(b), asked["runtime_bytes_per_request"]) for b in stored]
    )
    assert (np.diff(stored) > 0).all()
    assert servers.min() >= 1
    assert all(forest.is_closed(profile.vertices) for profile in made)
    hits = forest.hit_matrix([profile.vertices for profile in made], ends)
    assert not dominated(stored, hits, servers).any()


def test_one_table_serves_every_budget() -> None:
    forest, ends, asked, made = profiles_of(0, budgets_bytes=[2_000, 9_000])
    length = np.array([forest.depth_tokens[end] + 100 for end in ends])
    values = incremental_values(forest, ends, np.full(30, 1 / 30), length, CURVE)
    alone = [best_prefixes(forest, values, budget // 2).vertices for budget in (2_000, 9_000)]
    assert [profile.vertices for profile in made[1:]] == alone
    assert asked["budgets_bytes"] == [2_000, 9_000]


def test_a_site_too_small_for_one_request_is_refused() -> None:
    with pytest.raises(ScenarioError, match="must hold one request"):
        profiles_of(0, memory_bytes=2_000)
