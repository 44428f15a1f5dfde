"""Actions: bytes are those of the states that are missing, and states on their way are not there yet."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.control.actions import Action, Placement, change_profile, migrate, transfer_bytes
from geoedge.errors import GeoEdgeError
from geoedge.scenario import PrefixConfig, ProfileConfig, RequestConfig, WorkloadConfig

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
    assert action.transfer_s(8.0) == 5.0


def test_same_profile_is_refused():
    with pytest.raises(GeoEdgeError, match="site 3 holds profile 1 already"):
        change_profile(3, 1, 1, BYTES)


def test_states_in_transit_are_not_there_and_demotions_are_immediate():
    placement = Placement(np.array([0, 2, 2]), backhaul_bytes_per_s=10.0)
    placement.start([migrate(0, 1, placement.profile, BYTES), change_profile(2, 2, 3, BYTES)], now_s=100.0)
    assert placement.profile.tolist() == [0, 0, 2]  # the giver is empty, the taker not yet served
    assert placement.in_transit == {0, 2}
    assert placement.next_arrival_s() == 104.0
    assert placement.arrive(103.999) == []
    assert [change.site for change in placement.arrive(104.0)] == [0]
    assert placement.profile.tolist() == [2, 0, 2]
    assert [change.site for change in placement.arrive(1e9)] == [2]
    assert placement.profile.tolist() == [2, 0, 3]
    assert placement.next_arrival_s() == np.inf


def test_a_site_in_transit_cannot_be_planned_again():
    placement = Placement(np.array([0]), backhaul_bytes_per_s=1.0)
    placement.start([change_profile(0, 0, 2, BYTES)], 0.0)
    with pytest.raises(GeoEdgeError, match="waits for states"):
        placement.start([change_profile(0, 0, 1, BYTES)], 1.0)
    with pytest.raises(GeoEdgeError, match="cannot leave profile 3"):
        Placement(np.array([0]), 1.0).start([change_profile(0, 3, 1, BYTES)], 0.0)


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=12),
)
def test_every_state_arrives_in_the_end(profile, wanted):
    # whatever is started one site once, the placement ends where the actions say
    start = np.array(profile, dtype=np.int64)
    goal, actions = start.copy(), []
    for site, target in wanted:
        if site < len(start) and start[site] != target and goal[site] == start[site]:
            actions.append(change_profile(site, int(start[site]), target, BYTES))
            goal[site] = target
    placement = Placement(start, backhaul_bytes_per_s=1.0)
    placement.start(actions, 0.0)
    while placement.in_transit:
        placement.arrive(placement.next_arrival_s())
    assert placement.profile.tolist() == goal.tolist()
    assert start.tolist() == profile


def test_explained_keeps_the_changes():
    action = change_profile(0, 0, 1, BYTES)
    told = action.explained(0.01, "why")
    assert (told.predicted_gain, told.reason, told.changes) == (0.01, "why", action.changes)
    assert isinstance(told, Action)
