"""Placement: states on their way are not there yet, memory holds at every moment, and rates may change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geoedge.control.actions import admitted, change_profile, migrate
from geoedge.control.memory import SiteMemory
from geoedge.control.placement import Placement
from geoedge.errors import GeoEdgeError

BYTES = np.array(
    [[0.0, 10.0, 40.0, 60.0], [0.0, 0.0, 30.0, 50.0], [0.0, 0.0, 0.0, 50.0], [0.0, 0.0, 30.0, 0.0]]
)
"""Fallback, shallow and two branches on top of the shallow one, of 30 and 50 B."""


def make_memory(usable=100, request=10, counted=True, concurrency=None):
    stored = np.array([0, 10, 40, 60])
    servers = (usable - stored) // request if concurrency is None else np.array(concurrency)
    return SiteMemory(usable, request, stored, BYTES, servers, np.full(4, counted), BYTES / 10.0)


def test_without_memory_states_in_transit_are_not_there_and_demotions_are_immediate():
    placement = Placement(np.array([0, 2, 2]), backhaul_bytes_per_s=10.0)
    placement.start([migrate(0, 1, placement.profile, BYTES), change_profile(2, 2, 3, BYTES)], now_s=100.0)
    assert placement.profile.tolist() == [0, 0, 2]  # the giver is empty, the taker not yet served
    assert placement.goal.tolist() == [2, 0, 3]
    assert placement.in_transit == {0, 2}
    assert placement.next_event_s() == 104.0
    assert placement.advance(103.999) == []
    assert [change.site for change in placement.advance(104.0)] == [0]
    assert placement.profile.tolist() == [2, 0, 2]
    assert [change.site for change in placement.advance(1e9)] == [2]
    assert placement.profile.tolist() == [2, 0, 3]
    assert placement.next_event_s() == np.inf


def test_a_busy_site_cannot_be_planned_again():
    placement = Placement(np.array([0, 0]), backhaul_bytes_per_s=1.0)
    placement.start([change_profile(0, 0, 2, BYTES)], 0.0)
    with pytest.raises(GeoEdgeError, match="waits for states"):
        placement.start([change_profile(0, 0, 1, BYTES)], 1.0)
    with pytest.raises(GeoEdgeError, match="cannot leave profile 3"):
        Placement(np.array([0]), 1.0).start([change_profile(0, 3, 1, BYTES)], 0.0)
    placement.fail(1, 2.0)
    assert placement.busy == {0, 1}
    with pytest.raises(GeoEdgeError, match="site 1 is down"):
        placement.start([change_profile(1, 0, 1, BYTES)], 3.0)


def test_memory_during_a_change_by_hand():
    # usable 100 B, 10 B a request: between the branches 10 + 30 + 50 B of states leave room for one request
    memory = make_memory()
    assert memory.concurrency.tolist() == [10, 9, 6, 4]
    assert memory.servers[2, 3] == memory.servers[3, 2] == 1
    assert memory.servers[0, 2] == memory.servers[1, 2] == 6
    assert memory.servers[2, 0] == 6  # giving up needs no room, and frees it only when it is done
    assert (memory.via == np.arange(4)[:, None]).all()
    assert (memory.moved_bytes == BYTES).all()


def test_states_are_given_up_first_where_both_do_not_fit():
    # 85 B: both branches take 90 B, so one goes through the shallow profile it shares with the other
    memory = make_memory(usable=85)
    assert memory.via[2, 3] == memory.via[3, 2] == 1
    assert memory.moved_bytes[2, 3] == BYTES[1, 3]
    assert memory.servers[2, 3] == (85 - 60) // 10
    placement = Placement(np.array([2]), 10.0, memory)
    placement.start([change_profile(0, 2, 3, memory.moved_bytes)], 0.0)
    assert placement.profile.tolist() == [1]
    placement.advance(5.0)
    assert placement.profile.tolist() == [3]


def test_stated_concurrency_takes_the_fewer():
    memory = make_memory(usable=0, counted=False, concurrency=(18, 14, 6, 8))
    assert memory.servers[2, 3] == 6
    assert memory.servers[0, 1] == 14


def test_a_transfer_waits_for_running_requests_and_keeps_its_room():
    asked = []

    def drained(site, servers):
        asked.append((site, servers))
        return 7.0

    placement = Placement(np.array([2]), 10.0, make_memory(), drained)
    placement.start([change_profile(0, 2, 3, BYTES)], 5.0)
    assert asked == [(0, 1)]
    assert placement.servers.tolist() == [1]  # no more may start, though five still run
    assert placement.states_bytes.tolist() == [40]
    assert placement.next_event_s() == 7.0
    assert placement.advance(7.0) == []
    assert (placement.servers.tolist(), placement.states_bytes.tolist()) == ([1], [90])
    assert placement.next_event_s() == 12.0  # 50 B at 10 B/s
    assert [change.to_profile for change in placement.advance(12.0)] == [3]
    assert (placement.servers.tolist(), placement.states_bytes.tolist()) == ([4], [60])


def test_what_is_due_happens_at_its_own_time_however_late_it_is_asked():
    placement = Placement(np.array([2]), 10.0, make_memory(), lambda site, servers: 7.0)
    placement.start([change_profile(0, 2, 3, BYTES)], 5.0)
    placement.advance(1000.0)
    assert [(e.event, e.time_s) for e in placement.journal] == [
        ("start", 5.0),
        ("drain", 5.0),
        ("move", 7.0),
        ("hold", 12.0),
    ]


def test_a_lost_backhaul_stops_a_transfer_and_a_slow_one_stretches_it():
    placement = Placement(np.array([0, 0]), 10.0, make_memory())
    placement.start([change_profile(0, 0, 2, BYTES), change_profile(1, 0, 2, BYTES)], 0.0)
    placement.set_backhaul(0.0, [0], now_s=1.0)
    assert placement.next_event_s() == 4.0
    placement.set_backhaul(5.0, now_s=2.0)
    # site 0 has 30 B left, site 1 has 20 B
    assert [change.site for change in placement.advance(7.9)] == [1]
    assert placement.journal[-1].time_s == 6.0
    assert placement.next_event_s() == 8.0
    assert placement.rate.tolist() == [5.0, 5.0]
    with pytest.raises(GeoEdgeError, match="at least 0"):
        placement.set_backhaul(-1.0, now_s=9.0)


def test_transfers_at_a_time_are_limited_and_go_in_order():
    placement = Placement(np.zeros(3, int), 10.0, make_memory(), most_transfers=1)
    placement.start([change_profile(i, 0, 2, BYTES) for i in range(3)], 0.0)
    assert placement.servers.tolist() == [6, 10, 10]  # who waits for its turn gives up nothing
    assert [change.site for change in placement.advance(12.0)] == [0, 1, 2]
    holds = [event.time_s for event in placement.journal if event.event == "hold"]
    assert holds == [4.0, 8.0, 12.0]


def test_a_site_that_fails_loses_its_cache_and_what_was_on_its_way():
    placement = Placement(np.array([1, 2]), 10.0, make_memory(), most_transfers=1)
    placement.start([change_profile(0, 1, 2, BYTES)], 0.0)
    assert placement.fail(0, 1.0) is not None
    assert placement.fail(1, 1.0) is None
    assert placement.profile.tolist() == [0, 0]
    assert placement.in_transit == set()
    assert placement.servers.tolist() == [10, 10]
    placement.recover(0, 5.0)
    placement.start([change_profile(0, 0, 2, BYTES)], 5.0)
    placement.advance(9.0)
    assert placement.profile.tolist() == [2, 0]


def test_an_admitted_state_costs_a_server_and_no_bytes():
    action = admitted(change_profile(0, 0, 2, BYTES), BYTES / 10.0)
    assert (action.kind, action.bytes_moved, action.changes[0].compute_s) == ("admit", 0.0, 4.0)
    placement = Placement(np.array([0]), 1e-3, make_memory())
    placement.start([action], 0.0)
    assert placement.servers.tolist() == [5]  # six fit beside the states, one of them computes
    assert placement.transfer_s(action) == placement.next_event_s() == 4.0
    placement.set_backhaul(0.0, now_s=1.0)  # it needs none
    placement.advance(4.0)
    assert (placement.profile.tolist(), placement.servers.tolist()) == ([2], [6])
    demotion = change_profile(0, 2, 1, BYTES)
    assert admitted(demotion, BYTES / 10.0) is demotion


def test_the_only_server_cannot_compute_states():
    with pytest.raises(GeoEdgeError, match="no second server"):
        Placement(np.array([2]), 1.0, make_memory()).start(
            [admitted(change_profile(0, 2, 3, BYTES), BYTES / 10.0)], 0.0
        )


@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=12),
    st.one_of(st.none(), st.integers(1, 3)),
    st.sampled_from([85, 100, 1000]),
)
def test_every_state_arrives_in_the_end(profile, wanted, most, usable):
    # whatever is started one site once, the placement ends where the actions say
    start = np.array(profile, dtype=np.int64)
    memory = make_memory(usable)
    goal, actions = start.copy(), []
    for site, target in wanted:
        if site < len(start) and start[site] != target and goal[site] == start[site]:
            actions.append(change_profile(site, int(start[site]), target, memory.moved_bytes))
            goal[site] = target
    placement = Placement(start, 1.0, memory, most_transfers=most)
    placement.start(actions, 0.0)
    assert placement.goal.tolist() == goal.tolist()
    while placement.in_transit:
        placement.advance(placement.next_event_s())
        assert (placement.servers * memory.request_bytes + placement.states_bytes <= usable).all()
    assert placement.profile.tolist() == goal.tolist()
    assert placement.servers.tolist() == memory.concurrency[goal].tolist()
    assert start.tolist() == profile
