"""Profiles: memory, value, and which ones are not worth having."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

from geoedge.errors import ScenarioError
from geoedge.workload import (
    ROOT,
    CacheProfile,
    PrefillCurve,
    PrefixForest,
    dominated,
    incremental_values,
    value_score,
)

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "workload.json").read_text())["cases"]

FOREST = PrefixForest.from_edges(
    [("r", None, 3), ("a", "r", 7), ("b", "r", 5), ("c", "a", 15), ("d", "a", 11), ("x", None, 4)]
)


def test_reference_value_score():
    case = REFERENCE["value_score"]
    given_ = case["input"]
    curve = PrefillCurve(given_["a"], given_["b"])
    score = value_score(given_["p_hat"], given_["L"], given_["ell"], given_["B"], curve)
    assert score == pytest.approx(case["output"]["gamma"], rel=case["rel_tol"])


@pytest.mark.parametrize(("prompt", "depth", "stored"), [(10, 11, 5), (10, 5, 0), (10, -1, 5)])
def test_a_value_without_sense_is_refused(prompt, depth, stored):
    with pytest.raises(ScenarioError, match="cannot serve a prompt"):
        value_score(0.1, prompt, depth, stored, PrefillCurve(1e-4, 0.0))


def test_a_profile_weighs_its_unique_tokens():
    profile = CacheProfile.of("deep", FOREST, ["r", "a", "b", "c"], 131_072)
    assert profile.persistent_bytes == (15 + 2) * 131_072
    assert profile.vertices == FOREST.indices("rabc")
    assert CacheProfile.of("fallback", FOREST, [], 131_072).persistent_bytes == 0


def test_a_profile_must_be_closed():
    with pytest.raises(ScenarioError, match="add a, r"):
        CacheProfile.of("deep", FOREST, ["c"], 1)


@given(
    st.frozensets(st.integers(0, len(FOREST) - 1)),
    st.lists(st.integers(ROOT, len(FOREST) - 1), min_size=1, max_size=5),
    st.integers(0, 2**32),
)
def test_incremental_values_of_a_closed_set_add_up_to_the_prefill_time_it_saves(chosen, ends, seed):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(len(ends)))
    prompts = rng.integers(15, 60, len(ends))
    curve = PrefillCurve(*rng.uniform(0, 0.01, 3))
    closed = FOREST.closure(chosen)
    values = incremental_values(FOREST, ends, p, prompts, curve)
    hits = FOREST.hit_matrix([closed], ends)[0]
    assert sum(values[list(closed)]) == pytest.approx(float(p @ curve.saving(prompts, hits)), abs=1e-12)
    assert np.all(values >= 0)


def test_values_along_a_path_are_not_counted_twice():
    curve = PrefillCurve(1.0, 0.0)
    values = incremental_values(FOREST, [FOREST.index("c")], [1.0], [20], curve)
    assert values.tolist() == [3.0, 4.0, 0.0, 8.0, 0.0, 0.0]


SMALL = st.integers(0, 2)


@given(
    st.integers(1, 6).flatmap(
        lambda s: st.tuples(
            nps.arrays(np.int64, s, elements=SMALL),
            nps.arrays(np.int64, (s, 2), elements=SMALL),
            nps.arrays(np.int64, s, elements=SMALL),
        )
    )
)
def test_dominated_against_the_definition(case):
    memory, hits, servers = case
    for s, is_dominated in enumerate(dominated(memory, hits, servers)):
        rivals = [
            t
            for t in range(len(memory))
            if t != s and memory[t] <= memory[s] and servers[t] >= servers[s] and (hits[t] >= hits[s]).all()
        ]

        def same(t, s=s):
            return memory[t] == memory[s] and servers[t] == servers[s] and (hits[t] == hits[s]).all()

        assert is_dominated == any(not same(t) or t < s for t in rivals)


def test_of_equal_profiles_the_first_stays():
    assert dominated([1, 1, 1], [[5], [5], [5]], [3, 3, 3]).tolist() == [False, True, True]
