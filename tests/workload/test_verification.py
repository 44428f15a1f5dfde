"""Verification on use: what fails is a smaller hit or a full prefill, never an error and never too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.errors import ScenarioError
from geoedge.scenario import load_scenario
from geoedge.workload import PrefixForest, build_forest, build_workload
from geoedge.workload.requests import NEVER_S
from geoedge.workload.verification import Stamp, prefix_hashes, serves, verified_hit_tokens

FOREST = PrefixForest(("system", "tools", "agent", "guide"), (-1, 0, 1, 0), (10, 30, 60, 100))
ALL = frozenset(range(4))


def test_what_agrees_is_the_plain_hit():
    for stored in (frozenset(), {0}, {0, 1}, ALL):
        for vertex in (-1, 0, 1, 2, 3):
            plain = FOREST.hit_tokens(stored, vertex)
            assert verified_hit_tokens(FOREST, stored, vertex) == plain


@pytest.mark.parametrize("field", ["model", "tokenizer", "adapter", "position_encoding"])
def test_other_states_are_no_hit(field):
    assert verified_hit_tokens(FOREST, ALL, 2, needs=Stamp(**{field: "x"})) == 0
    assert verified_hit_tokens(FOREST, ALL, 2, made_with=Stamp(**{field: "x"})) == 0
    same = Stamp(**{field: "x"})
    assert verified_hit_tokens(FOREST, ALL, 2, needs=same, made_with=same) == 60


def test_who_may_be_served_where():
    assert serves(Stamp(), Stamp())
    assert not serves(Stamp(model="a"), Stamp(model="b"))
    assert serves(Stamp(adapter="a"), Stamp())  # with a full prefill
    assert serves(Stamp(privacy_domain="bank"), Stamp())
    assert not serves(Stamp(), Stamp(privacy_domain="bank"))
    assert serves(Stamp(privacy_domain="bank"), Stamp(privacy_domain="bank"))


def test_a_private_prefix_is_a_hit_for_its_domain_alone():
    domains = ("", "bank", "", "")
    assert verified_hit_tokens(FOREST, ALL, 2, domains=domains) == 10
    assert verified_hit_tokens(FOREST, ALL, 2, needs=Stamp(privacy_domain="bank"), domains=domains) == 60
    assert verified_hit_tokens(FOREST, ALL, 3, domains=domains) == 100


def test_a_new_version_leaves_the_deepest_verified_ancestor():
    old = prefix_hashes(FOREST)
    new = prefix_hashes(FOREST, (1, 2, 1, 1))
    assert [a == b for a, b in zip(old, new, strict=True)] == [True, False, False, True]
    held = dict(enumerate(old))
    assert [verified_hit_tokens(FOREST, ALL, v, wanted=new, held=held) for v in range(4)] == [10, 10, 10, 100]
    # renewing the tools alone does not save what was computed on top of the old ones
    held[1] = new[1]
    assert verified_hit_tokens(FOREST, ALL, 2, wanted=new, held=held) == 30
    # states that are announced but not there are no hit
    assert verified_hit_tokens(FOREST, ALL, 2, wanted=new, held={0: new[0]}) == 10


def test_hashes_tell_prefixes_apart():
    assert len(set(prefix_hashes(FOREST))) == 4
    moved = PrefixForest(("system", "tools", "agent", "guide"), (-1, 0, 1, 1), (10, 30, 60, 100))
    assert prefix_hashes(moved)[3] != prefix_hashes(FOREST)[3]


@given(
    st.frozensets(st.integers(0, 3)),
    st.integers(-1, 3),
    st.dictionaries(st.integers(0, 3), st.booleans()),
    st.lists(st.sampled_from(["", "bank"]), min_size=4, max_size=4),
)
def test_a_verified_hit_is_the_depth_of_an_ancestor_and_never_more_than_announced(
    stored, vertex, true, domains
):
    stored, wanted = FOREST.closure(stored), prefix_hashes(FOREST)
    held = {v: wanted[v] if fine else "forged" for v, fine in true.items()}
    hit = verified_hit_tokens(FOREST, stored, vertex, domains=domains, wanted=wanted, held=held)
    assert hit <= FOREST.hit_tokens(stored, vertex)
    usable = [v for v in FOREST.path(vertex) if v in stored and true.get(v) and not domains[v]]
    depths = [0] + [FOREST.depth_tokens[v] for v in usable if set(FOREST.path(v)) <= set(usable)]
    assert hit == max(depths)


def test_sites_serve_requests_for_their_own_model_alone():
    scenario = load_scenario("monaco")
    plain = build_workload(scenario.workload, scenario.hardware)
    assert plain.serves.all()
    data = scenario.to_dict()
    data["workload"]["profiles"][3]["made_with"] = {"model": "large"}
    data["workload"]["profiles"].append(
        {"name": "large fallback", "placement_probability": 0.0, "made_with": {"model": "large"}}
    )
    data["workload"]["requests"][3]["needs"] = {"model": "large"}
    two = type(scenario).from_dict(data)
    made = build_workload(two.workload, two.hardware)
    assert made.serves.tolist() == [[True, True, True, False]] * 3 + [[False, False, False, True]] * 2
    assert (made.prefill_time[~made.serves] == NEVER_S).all()
    assert made.hit_tokens[3].tolist() == [0, 0, 0, 6144]
    with pytest.raises(ScenarioError, match="do not run"):
        two.override({"routing.policy": "nearest"})
    with pytest.raises(ScenarioError, match="keep theirs"):
        two.override({"control.controller": "oracle"})


def test_a_site_needs_a_fallback_of_its_own_and_every_request_a_site():
    data = load_scenario("monaco").to_dict()
    scenario = load_scenario("monaco")
    data["workload"]["profiles"][3]["made_with"] = {"model": "large"}
    with pytest.raises(ScenarioError, match="fallback of their own"):
        type(scenario).from_dict(data)
    data = scenario.to_dict()
    data["workload"]["requests"][3]["needs"] = {"model": "large"}
    with pytest.raises(ScenarioError, match="no profile with a share of the sites runs"):
        type(scenario).from_dict(data)


def test_an_adapter_costs_the_hit_and_not_the_service():
    data = load_scenario("monaco").to_dict()
    scenario = load_scenario("monaco")
    data["workload"]["requests"][3]["needs"] = {"adapter": "guide lora"}
    made = type(scenario).from_dict(data)
    workload = build_workload(made.workload, made.hardware)
    assert workload.serves.all()
    assert (workload.hit_tokens[:, 3] == 0).all()
    assert np.allclose(workload.prefill_time[:, 3], workload.full_prefill_time[3])
    plain = build_workload(scenario.workload, scenario.hardware)
    assert np.array_equal(workload.hit_tokens[:, :3], plain.hit_tokens[:, :3])
    assert len(build_forest(made.workload)) == 4
