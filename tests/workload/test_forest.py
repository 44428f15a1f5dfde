"""The forest against brute force over tokens, and against the reference values."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.errors import ScenarioError
from geoedge.workload import ROOT, PrefixForest

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "workload.json").read_text())["cases"]


@st.composite
def forests(draw, most=9):
    size = draw(st.integers(1, most))
    parents, depths = [], []
    for vertex in range(size):
        parent = draw(st.integers(ROOT, vertex - 1))
        parents.append(parent)
        depths.append((depths[parent] if parent != ROOT else 0) + draw(st.integers(1, 5)))
    # Children may stand before their parents.
    order = draw(st.permutations(range(size)))
    place = {old: new for new, old in enumerate(order)}
    return PrefixForest(
        tuple(f"v{old}" for old in order),
        tuple(place[parents[old]] if parents[old] != ROOT else ROOT for old in order),
        tuple(depths[old] for old in order),
    )


@st.composite
def forests_with_sets(draw):
    forest = draw(forests())
    vertices = st.frozensets(st.integers(0, len(forest) - 1))
    return forest, draw(vertices), draw(vertices)


def token_string(forest, vertex):
    """Return the prompt that ends in a vertex, one made-up token a place."""
    return tuple(
        (step, place) for step in forest.path(vertex) for place in range(forest.segment_tokens(step))
    )


def test_reference_hits_and_tokens():
    case = REFERENCE["forest_hits"]
    tree = case["input"]["forest"]
    forest = PrefixForest.from_edges(
        (name, tree["parent"][name], tree["depth"][name]) for name in tree["parent"]
    )
    stored = forest.indices(case["input"]["profile"])
    assert forest.unique_tokens(stored) == case["output"]["tokens"]
    ends = [forest.index(end) for _, _, end in case["input"]["reqs"]]
    assert forest.hit_matrix([stored], ends).tolist() == [case["output"]["hits"]]


@given(forests_with_sets())
def test_closure_is_the_smallest_closed_set_that_holds_the_vertices(case):
    forest, chosen, _ = case
    closed = forest.closure(chosen)
    assert chosen <= closed
    assert forest.is_closed(closed)
    # Smallest: every vertex that was added lies above a chosen one.
    assert all(any(vertex in forest.path(start) for start in chosen) for vertex in closed)


@given(forests_with_sets())
def test_closure_is_idempotent_monotone_and_keeps_unions(case):
    forest, first, second = case
    assert forest.closure(forest.closure(first)) == forest.closure(first)
    assert forest.closure(first) <= forest.closure(first | second)
    assert forest.closure(first | second) == forest.closure(first) | forest.closure(second)


@given(forests_with_sets())
def test_a_set_is_closed_exactly_when_it_is_its_own_closure(case):
    forest, chosen, _ = case
    assert forest.is_closed(chosen) == (forest.closure(chosen) == chosen)


@given(forests_with_sets())
def test_unique_tokens_count_every_stored_token_once(case):
    forest, chosen, _ = case
    closed = forest.closure(chosen)
    tokens = set(itertools.chain.from_iterable(token_string(forest, vertex) for vertex in closed))
    assert forest.unique_tokens(closed) == len(tokens)


@given(forests_with_sets())
def test_a_hit_is_the_longest_beginning_whose_tokens_are_all_stored(case):
    forest, chosen, _ = case
    closed = forest.closure(chosen)
    stored = set(itertools.chain.from_iterable(token_string(forest, vertex) for vertex in closed))
    for end in range(len(forest)):
        prompt = token_string(forest, end)
        longest = sum(1 for _ in itertools.takewhile(stored.__contains__, prompt))
        assert forest.hit_tokens(closed, end) == longest
        assert longest <= forest.depth_tokens[end]


@given(forests_with_sets())
def test_storing_more_never_lowers_a_hit_nor_the_memory(case):
    forest, first, second = case
    small, large = forest.closure(first), forest.closure(first | second)
    ends = [*range(len(forest)), ROOT]
    hits = forest.hit_matrix([small, large], ends)
    assert np.all(hits[1] >= hits[0])
    assert hits[:, -1].tolist() == [0, 0]
    assert forest.unique_tokens(large) >= forest.unique_tokens(small)


def test_an_empty_cache_hits_nothing():
    forest = PrefixForest.from_edges([("a", None, 4), ("b", "a", 9)])
    assert forest.hit_matrix([frozenset()], [0, 1]).tolist() == [[0, 0]]
    assert forest.unique_tokens([]) == 0


def test_a_forest_may_be_empty():
    forest = PrefixForest.from_edges([])
    assert forest.hit_matrix([frozenset(), frozenset()], [ROOT]).tolist() == [[0], [0]]


def test_an_open_set_is_refused_with_what_to_add():
    forest = PrefixForest.from_edges([("a", None, 4), ("b", "a", 9)])
    with pytest.raises(ScenarioError, match=r"not ancestor-closed; add a$"):
        forest.unique_tokens([1])


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([("a", "z", 4)], "parent 'z' of 'a' is no vertex; vertices: a"),
        ([("a", None, 4), ("b", "a", 4)], "'b' at 4 tokens must be deeper than 4 tokens"),
        ([("a", None, 0)], "'a' at 0 tokens must be deeper than 0 tokens"),
        ([("a", "b", 4), ("b", "a", 5)], "'a' at 4 tokens must be deeper than 5 tokens"),
        ([("a", None, 4), ("a", None, 5)], "`names` must differ"),
    ],
)
def test_what_is_no_forest_is_refused(edges, words):
    with pytest.raises(ScenarioError) as caught:
        PrefixForest.from_edges(edges)
    assert words in str(caught.value)


def test_a_parent_out_of_range_and_lengths_that_differ_are_refused():
    with pytest.raises(ScenarioError, match="parent 3 of 'a' is no vertex"):
        PrefixForest(("a",), (3,), (4,))
    with pytest.raises(ScenarioError, match="must have 1 entries"):
        PrefixForest(("a",), (ROOT, ROOT), (4,))


def test_an_unknown_vertex_lists_the_known_ones():
    with pytest.raises(ScenarioError, match="'x' is no vertex of the forest; vertices: a"):
        PrefixForest.from_edges([("a", None, 4)]).index("x")
