"""Work underway: shares add up, are told seldom, and pass between processes through a file."""

from __future__ import annotations

import pytest

from geoedge.underway import UPDATE_S, Underway, noting


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("geoedge.underway.monotonic", lambda: now[0])
    return now


def test_shares_add_up_and_are_told_seldom(clock):
    told = []
    underway = Underway(2, lambda *each: told.append(each))
    underway.tell()
    with underway.noting(0) as note:
        note(0.25)
        clock[0] += UPDATE_S
        note(0.5)
        note(0.75)
    assert told == [(0.0, 2), (0.5, 2)]
    underway.tell()
    with underway.noting(1):
        pass
    for _ in range(2):
        underway.tell()
    assert told[2:] == [(1.0, 2), (2.0, 2)]  # that all is done is said once


def test_notes_of_others_are_read_from_the_file(tmp_path, clock):
    told = []
    underway = Underway(2, lambda *each: told.append(each))
    underway.share_through(tmp_path / "notes")
    with noting(tmp_path / "notes", 1) as note:
        note(0.5)
        assert not underway.ended(1)
        assert told == [(0.5, 2)]
    assert underway.ended(1)
    assert not underway.ended(0)


def test_what_fails_has_ended_and_is_not_done(tmp_path, clock):
    told = []
    underway = Underway(1, lambda *each: told.append(each))
    underway.share_through(tmp_path / "notes")
    with pytest.raises(ZeroDivisionError), noting(tmp_path / "notes", 0) as note:
        note(1.0 / len(told))
    assert underway.ended(0)
    underway.tell()
    assert told == [(0.0, 1)]
