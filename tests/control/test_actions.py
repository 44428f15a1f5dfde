"""Actions: bytes are those of the states that are missing."""

import numpy as np
import pytest

from geoedge.control.actions import Action, change_profile, compute_times, migrate, transfer_bytes
from geoedge.errors import GeoEdgeError
from geoedge.scenario import PrefixConfig, ProfileConfig, RequestConfig, WorkloadConfig
from geoedge.workload.hardware import PrefillCurve

BYTES = np.array(
    [[0.0, 10.0, 40.0, 60.0], [0.0, 0.0, 30.0, 50.0], [0.0, 0.0, 0.0, 50.0], [0.0, 0.0, 30.0, 0.0]]
)
"""Fallback, shallow and two branches on top of the shallow one."""


def forest_workload(**overrides: int) -> WorkloadConfig:
    prefixes = (
        PrefixConfig(name="root", depth_tokens=10),
        PrefixConfig(name="left", parent="root", depth_tokens=40),
        PrefixConfig(name="right", parent="root", depth_tokens=60),
    )
    stored = {"fallback": (), "shallow": ("root",), "left": ("root", "left"), "right": ("root", "right")}
    profiles = tuple(
        ProfileConfig(
            name=name,
            prefixes=held,
            placement_probability=0.25,
            concurrency=4,
            persistent_bytes=overrides.get(name),
        )
        for name, held in stored.items()
    )
    request = RequestConfig(
        name="q", type_probability=1.0, prompt_tokens=100, output_tokens=10, prefix="left"
    )
    return WorkloadConfig(prefixes=prefixes, profiles=profiles, requests=(request,))


def test_only_tokens_that_are_missing_are_moved():
    # between the branches the shared root stays; giving up needs nothing
    moved = transfer_bytes(forest_workload(), kv_bytes_per_token=1)
    expected = [[0, 10, 40, 60], [0, 0, 30, 50], [0, 0, 0, 50], [0, 0, 30, 0]]
    assert moved.tolist() == expected
    assert (
        transfer_bytes(forest_workload(), kv_bytes_per_token=7).tolist() == (7 * np.array(expected)).tolist()
    )


def test_stated_memory_moves_its_share():
    # 400 B for 40 tokens: the 30 that the shallow profile lacks are 300 B
    moved = transfer_bytes(forest_workload(left=400), kv_bytes_per_token=1)
    assert moved[0, 2] == 400.0
    assert moved[1, 2] == 300.0
    assert moved[0, 3] == 60.0


@pytest.mark.parametrize(
    ("old", "new", "kind", "moved"),
    [(0, 2, "replicate", 40.0), (2, 0, "demote", 0.0), (2, 1, "demote", 0.0), (2, 3, "replicate", 50.0)],
)
def test_kind_follows_from_the_states(old, new, kind, moved):
    action = change_profile(5, old, new, BYTES)
    assert (action.kind, action.bytes_moved, action.sites) == (kind, moved, (5,))


def test_migration_keeps_the_mix():
    profile = np.array([0, 2, 1])
    action = migrate(0, 1, profile, BYTES)
    assert action.kind == "migrate"
    assert action.bytes_moved == 40.0  # the giver only drops
    assert action.apply(profile).tolist() == [2, 0, 1]
    assert profile.tolist() == [0, 2, 1]
    # who fetches more is the taker, whichever is named first; of equals the first
    assert migrate(1, 0, profile, BYTES) == action
    assert migrate(1, 0, np.array([2, 3]), BYTES).sites == (0, 1)
    assert migrate(1, 0, np.array([2, 3]), np.ones((4, 4))).sites == (1, 0)


def test_same_profile_is_refused():
    with pytest.raises(GeoEdgeError, match="site 3 holds profile 1 already"):
        change_profile(3, 1, 1, BYTES)


def test_computing_states_takes_their_prefixes_one_after_the_other():
    # g(n) = n²: the root of 10 tokens, then the 30 or 50 on top of it
    seconds = compute_times(forest_workload(), PrefillCurve(0.0, 1.0, 0.0))
    assert seconds.tolist() == [[0, 100, 1000, 2600], [0, 0, 900, 2500], [0, 0, 0, 2500], [0, 0, 900, 0]]


def test_explained_keeps_the_changes():
    action = change_profile(0, 0, 1, BYTES)
    told = action.explained(0.01, "why")
    assert (told.predicted_gain, told.reason, told.changes) == (0.01, "why", action.changes)
    assert isinstance(told, Action)
