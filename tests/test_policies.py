"""The table of policies: names, numbers, sources, and what stands for each in theory and field."""

from __future__ import annotations

import typing

import numpy as np
import pytest

from geoedge.errors import GeoEdgeError, ScenarioError
from geoedge.policies import CLOSED_FORMS, POLICIES, known_policy, solved_as
from geoedge.scenario import PolicyConfig, RoutingConfig, load_scenario


def test_scenarios_know_every_policy_and_every_number():
    names = typing.get_args(RoutingConfig.model_fields["policy"].annotation)
    assert set(names) == set(POLICIES)
    numbers = {name for policy in POLICIES.values() for name in policy.parameters}
    assert numbers == set(PolicyConfig.model_fields)


def test_closed_forms_stand_for_themselves_and_for_the_others():
    assert {p.name for p in POLICIES.values() if p.has_closed_form} == set(CLOSED_FORMS)
    assert all(p.solved_as in CLOSED_FORMS and p.source for p in POLICIES.values())
    prefill, wait = np.array([[0.1, 0.2]]), np.array([1.0])
    for policy in POLICIES.values():
        np.testing.assert_array_equal(
            policy(prefill, wait), POLICIES[policy.solved_as](prefill, wait), err_msg=policy.name
        )
    assert solved_as("sglang_cache_aware") == "prefix_only"


def test_published_defaults():
    """As their documents have them."""
    assert POLICIES["dynamo_kv"].values() == (1.0, 0.0, 16.0)
    assert POLICIES["sglang_cache_aware"].values() == (0.3, 64.0, 1.5)
    assert POLICIES["production_stack"].values() == (1.0,)
    assert POLICIES["llm_d"].values() == (3.0, 2.0, 2.0)
    assert POLICIES["llm_d"].values({"kv_weight": 1.0}) == (3.0, 2.0, 1.0)


def test_unknown_policies_and_numbers_are_named():
    with pytest.raises(GeoEdgeError, match="'best'"):
        known_policy("best")
    with pytest.raises(GeoEdgeError, match="beta"):
        POLICIES["llm_d"].values({"beta": 1.0})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"routing.policy": "llm_d"}, "advertise"),
        ({"routing.policy": "llm_d", "routing.advertise": "state", "routing.scope": "tier"}, "scope"),
        ({"routing.policy": "risk_aware", "routing.advertise": "measured"}, "risk_aware"),
        ({"routing.local_count": True}, "local_count"),
        ({"routing.policy_parameters.beta": 1.0}, "beta"),
        ({"routing.policy": "risk_aware", "routing.policy_parameters.z": 99.0}, "z"),
        ({"admission.reopen_threshold": 1.0}, "close_threshold"),
        ({"admission.close_threshold": 1.0, "admission.reopen_threshold": 2.0}, "reopen_threshold"),
    ],
)
def test_scenarios_refuse_what_cannot_be_asked_in_one_line(changes, words):
    with pytest.raises(ScenarioError, match=words) as caught:
        load_scenario("monaco").override(changes)
    assert "\n" not in str(caught.value)
