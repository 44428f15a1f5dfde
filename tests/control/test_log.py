"""The log: replaying it gives the same placement, and an audit finds what was done against the rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geoedge.control.actions import Action, Change, admitted, change_profile, migrate
from geoedge.control.audit import audit_actions, audit_journal, audit_memory
from geoedge.control.log import (
    LogEntry,
    held_over_time,
    journal_frame,
    journal_of,
    oscillations,
    outcomes,
    replay,
)
from geoedge.control.memory import SiteMemory
from geoedge.control.placement import Placement

BYTES = np.array([[0.0, 10.0, 40.0], [0.0, 0.0, 30.0], [0.0, 0.0, 0.0]])
MEMORY = SiteMemory(
    100, 10, np.array([0, 10, 40]), BYTES, np.array([10, 9, 6]), np.ones(3, bool), BYTES / 10.0
)
INITIAL = np.array([0, 2, 1, 0])
LIMITS = {"least_sites": np.array([1, 0, 0]), "most_sites": np.array([4, 4, 2]), "transfer_bytes": BYTES}


def entry(epoch, action, time_s=None):
    return LogEntry(epoch, 100.0 * epoch if time_s is None else time_s, action, action.bytes_moved / 10.0)


@pytest.fixture
def eventful():
    """Two epochs with an exchange, a transfer that waits, a stretched one, a failure, and an admitted state."""
    placement = Placement(INITIAL, 10.0, MEMORY, lambda site, servers: 102.5, most_transfers=2)
    first = [migrate(0, 1, INITIAL, BYTES), change_profile(2, 1, 2, BYTES)]
    placement.start(first, 100.0)
    placement.advance(103.0)
    placement.set_backhaul(5.0, [0], now_s=103.0)
    placement.fail(2, 104.0)
    placement.advance(200.0)
    placement.recover(2, 200.0)
    second = [admitted(change_profile(3, 0, 1, BYTES), BYTES / 10.0)]
    placement.start(second, 200.0)
    placement.advance(300.0)
    return placement, [entry(1, action) for action in first] + [entry(2, action) for action in second]


def test_replaying_a_journal_gives_the_same_placement(eventful):
    placement, _ = eventful
    told = journal_of(journal_frame(placement.journal))
    again = replay(told, INITIAL, 10.0, memory=MEMORY, most_transfers=2)
    assert journal_frame(again.journal).equals(journal_frame(placement.journal))
    assert again.profile.tolist() == placement.profile.tolist() == [2, 0, 0, 1]
    assert audit_journal(told, INITIAL, 10.0, memory=MEMORY, most_transfers=2, until_s=300.0) == []


def test_a_forged_journal_is_found_out(eventful):
    placement, _ = eventful
    journal = placement.journal
    k = next(i for i, event in enumerate(journal) if event.event == "hold" and event.to_profile == 2)
    earlier = [*journal[:k], replace(journal[k], time_s=journal[k].time_s - 1.0), *journal[k + 1 :]]
    assert "replaying gives" in audit_journal(earlier, INITIAL, 10.0, memory=MEMORY, most_transfers=2)[0]
    lost = [*journal[:k], *journal[k + 1 :]]
    assert len(audit_journal(lost, INITIAL, 10.0, memory=MEMORY, most_transfers=2)) == 1
    ends_early = audit_journal(journal[:-1], INITIAL, 10.0, memory=MEMORY, most_transfers=2, until_s=300.0)
    assert "is None, replaying gives" in ends_early[0]
    other = [replace(event, from_profile=1) if event.event == "start" else event for event in journal]
    (refused,) = audit_journal(other, INITIAL, 10.0, memory=MEMORY, most_transfers=2)
    assert refused.startswith("the journal cannot be replayed: control: site 0 cannot leave profile 1")
    # the limit on transfers at a time was 2; under a limit of 1 the same journal is a breach
    assert audit_journal(journal, INITIAL, 10.0, memory=MEMORY, most_transfers=1) != []


def test_what_is_held_over_time(eventful):
    placement, _ = eventful
    held = held_over_time(placement.journal, INITIAL)
    assert [(time, profile.tolist()) for time, profile in held] == [
        (-np.inf, [0, 2, 1, 0]),
        (102.5, [0, 0, 1, 0]),  # the giver, too, lets running requests finish
        (104.0, [0, 0, 0, 0]),
        (110.0, [2, 0, 0, 0]),  # 40 B from 102.5 s on: 5 B by 103 s, 35 B at half the rate
        (201.0, [2, 0, 0, 1]),
    ]


def test_outcomes_tell_when_states_moved_and_arrived(eventful):
    placement, log = eventful
    moved, lost, admitted_one = outcomes(log, placement.journal)
    assert moved == (102.5, 110.0)
    assert lost[0] == 102.5
    assert np.isnan(lost[1])
    assert admitted_one == (200.0, 201.0)


def test_oscillations_are_returns_within_some_epochs():
    there, back = change_profile(0, 0, 2, BYTES), change_profile(0, 2, 0, BYTES)
    log = [entry(1, there), entry(4, back), entry(9, there)]
    (found,) = oscillations(log, within_epochs=4)
    assert (found.site, found.profile, found.left_epoch, found.back_epoch) == (0, 0, 1, 4)
    assert len(oscillations(log, within_epochs=5)) == 2
    assert oscillations(log, within_epochs=2) == []
    assert oscillations([entry(1, there), entry(2, change_profile(0, 2, 1, BYTES))]) == []


def test_a_log_by_the_rules_passes(eventful):
    placement, log = eventful
    assert audit_actions(log, INITIAL, budget_bytes=80.0, journal=placement.journal, **LIMITS) == []


@pytest.mark.parametrize(
    ("log", "rules", "words"),
    [
        ([entry(1, change_profile(0, 0, 2, BYTES))], {"budget_bytes": 39.0}, "budget is 39 B"),
        ([entry(1, change_profile(0, 0, 2, BYTES))], {"budget_bytes": {2: 99.0}}, "budget is 0 B"),
        ([entry(1, change_profile(0, 1, 2, BYTES))], {}, "holds profile 0, not 1"),
        ([entry(1, Action("replicate", (Change(0, 0, 2, 39.0),)))], {}, "its states are 40 B"),
        (
            [entry(1, change_profile(0, 0, 1, BYTES)), entry(1, change_profile(0, 1, 2, BYTES))],
            {},
            "changed 0 epochs before",
        ),
        (
            [entry(1, change_profile(0, 0, 1, BYTES)), entry(3, change_profile(0, 1, 2, BYTES))],
            {"least_hold_epochs": 3},
            "changed 2 epochs before",
        ),
        (
            [entry(1, change_profile(0, 0, 1, BYTES)), entry(1, change_profile(3, 0, 1, BYTES))],
            {},
            "0 sites are left with profile 0, allowed are 1 to 4",
        ),
        (
            [entry(1, change_profile(0, 0, 2, BYTES)), entry(2, change_profile(2, 1, 2, BYTES))],
            {},
            "3 sites are left with profile 2",
        ),
    ],
)
def test_an_audit_finds_each_breach(log, rules, words):
    found = audit_actions(log, INITIAL, **(LIMITS | rules))
    assert len(found) == 1
    assert words in found[0]


def test_memory_is_audited_on_the_requests_that_really_ran(eventful):
    placement, _ = eventful
    site = np.zeros(11, dtype=np.int64)
    started = np.full(11, 50.0)
    finished = np.array([60.0] * 4 + [102.5] * 7)
    args = (placement.journal, INITIAL, MEMORY)
    # ten requests fill the fallback's memory, an eleventh has no room
    assert audit_memory(*args, site[1:], started[1:], finished[1:]) == []
    assert "site 0" in audit_memory(*args, site, started, finished)[0]
    # from 102.5 s on states arrive: six requests fit, a seventh does not
    assert audit_memory(*args, site[4:10], started[4:10], finished[4:10] + 50.0) == []
    assert "110 B" in audit_memory(*args, site[4:], started[4:], finished[4:] + 50.0)[0]
