"""Auditing a controller's log: every rule it must have kept, checked on what is written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import REPAIRS
from geoedge.control.log import LogEntry, begun, replay
from geoedge.control.memory import SiteMemory
from geoedge.control.placement import PlacementEvent
from geoedge.control.planners.limits import Limits
from geoedge.errors import GeoEdgeError

__all__ = ["audit_actions", "audit_journal", "audit_memory"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def audit_actions(
    log: Sequence[LogEntry],
    initial: Ints,
    *,
    least_sites: Ints,
    most_sites: Ints,
    deep: NDArray[np.bool_] | None = None,
    most_deep: int | None = None,
    most_actions: int | None = None,
    transfer_bytes: Floats,
    budget_bytes: dict[int, float] | float = np.inf,
    least_hold_epochs: int = 1,
    journal: Sequence[PlacementEvent] = (),
    at_once: bool = False,
) -> list[str]:
    """Return what a log of actions breaks, one line each; empty if it keeps to all rules.

    Bytes are those of the states that are missing, and none are moved for a site that computes them. What is
    moved in an epoch keeps to the budget, and as many actions are taken as are allowed. A site is changed once an
    epoch at most, and held for as many epochs as asked; repairs are free of all three. An action leaves each profile
    on no fewer sites than the floor and no more than the cap, and deep profiles together on no more than theirs, or no
    further from them than it found it.

    Parameters
    ----------
    log
        Actions in order.
    initial
        Profile of each site at the start, shape (n,).
    least_sites, most_sites
        Sites that hold each profile, at least and at most, shape (S,).
    deep, most_deep
        Which profiles are deep, shape (S,), and how many sites may hold them, all together; any number if omitted.
    most_actions
        Actions in an epoch, at most; any number if omitted.
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S).
    budget_bytes
        Bytes moved in an epoch, at most [B]; one for all, or by epoch.
    least_hold_epochs
        Epochs from one change of a site to the next, at least.
    journal
        The journal of the placement, for failures, after which a site holds the fallback.
    at_once
        Whether what is planned moves no bytes, as for a yardstick.
    """
    found = [*_budget(log, budget_bytes), *_number(log, most_actions)]
    limits = Limits(np.inf, least_sites, most_sites, 0.0, deep=deep, most_deep=most_deep)
    goal = np.array(initial, dtype=np.int64)
    failures = [k for k, e in enumerate(journal) if e.event == "fail"]
    starts = begun((entry.action.sites for entry in log), journal) if journal else [(0,)] * len(log)
    changed: dict[int, int] = {}
    for entry, (at, *_) in zip(log, starts, strict=True):
        while failures and failures[0] < at:
            _lose(goal, journal, failures.pop(0))
        where = f"epoch {entry.epoch}, {entry.action.kind} at site {entry.action.sites[0]}"
        bytes_due = transfer_bytes * (not at_once or entry.action.kind in REPAIRS)
        found += [f"{where}: {words}" for words in _changes(entry, goal, bytes_due)]
        for site in () if entry.action.kind in REPAIRS else entry.action.sites:
            held = entry.epoch - changed.get(site, -least_hold_epochs)
            if held < least_hold_epochs:
                found.append(f"{where}: site {site} was changed {held} epochs before")
            changed[site] = entry.epoch
        after = entry.action.apply(goal)
        if entry.action.kind != "invalidate":
            found += [f"{where}: {words}" for words in _counts(goal, after, limits)]
        goal = after
    return found


def _lose(goal: Ints, journal: Sequence[PlacementEvent], at: int) -> None:
    """Let a site that fails hold what it is left with."""
    failed = journal[at]
    after = (
        e
        for e in journal[at + 1 : at + 3]
        if (e.event, e.site, e.time_s) == ("hold", failed.site, failed.time_s)
    )
    left = next(after, None)
    goal[failed.site] = failed.from_profile if left is None else left.to_profile


def _budget(log: Sequence[LogEntry], budget_bytes: dict[int, float] | float) -> Iterator[str]:
    spent: dict[int, float] = {}
    for entry in (entry for entry in log if entry.action.kind not in REPAIRS):
        spent[entry.epoch] = spent.get(entry.epoch, 0.0) + entry.action.bytes_moved
    for epoch, moved in spent.items():
        budget = budget_bytes.get(epoch, 0.0) if isinstance(budget_bytes, dict) else budget_bytes
        if moved > budget:
            yield f"epoch {epoch}: {moved:.0f} B moved, the budget is {budget:.0f} B"


def _changes(entry: LogEntry, goal: Ints, transfer_bytes: Floats) -> Iterator[str]:
    for change in entry.action.changes:
        if goal[change.site] != change.from_profile:
            yield f"site {change.site} holds profile {goal[change.site]}, not {change.from_profile}"
        due = 0.0 if change.compute_s else float(transfer_bytes[change.from_profile, change.to_profile])
        if change.bytes_moved != due:
            yield f"site {change.site} moves {change.bytes_moved:.0f} B, its states are {due:.0f} B"


def _number(log: Sequence[LogEntry], most: int | None) -> Iterator[str]:
    taken = Counter(entry.epoch for entry in log if entry.action.kind not in REPAIRS)
    for epoch, count in taken.items():
        if most is not None and count > most:
            yield f"epoch {epoch}: {count} actions, allowed are {most}"


def _counts(before: Ints, after: Ints, limits: Limits) -> Iterator[str]:
    least, most = limits.least_sites, limits.most_sites
    was, now = np.bincount(before, minlength=len(least)), np.bincount(after, minlength=len(least))
    for s in np.flatnonzero((now < np.minimum(least, was)) | (now > np.maximum(most, was))):
        yield f"{now[s]} sites are left with profile {s}, allowed are {least[s]} to {most[s]}"
    if limits.deep is not None and limits.most_deep is not None:
        deep, had = int(now[limits.deep].sum()), int(was[limits.deep].sum())
        if deep > max(limits.most_deep, had):
            yield f"{deep} sites are left with deep profiles, allowed are {limits.most_deep}"


def audit_journal(
    journal: Sequence[PlacementEvent],
    initial: Ints,
    backhaul_bytes_per_s: float,
    *,
    memory: SiteMemory | None = None,
    most_transfers: int | None = None,
    until_s: float = -np.inf,
) -> list[str]:
    """Return where a journal is not what its own commands lead to, or too much moves at a time; empty if all is well.

    Parameters
    ----------
    journal
        Events in order.
    initial
        Profile of each site at the start, shape (n,).
    backhaul_bytes_per_s
        Rate at which a site receives states at the start [B/s].
    memory, most_transfers
        As of the placement that wrote the journal.
    until_s
        Until when it was kept [s]; the last event by default.
    """
    try:
        again = replay(
            journal,
            initial,
            backhaul_bytes_per_s,
            memory=memory,
            most_transfers=most_transfers,
            until_s=until_s,
        ).journal
    except GeoEdgeError as refused:
        return [f"the journal cannot be replayed: {refused}"]
    found = []
    for k, (one, other) in enumerate(zip_longest(journal, again)):
        if one is None or other is None or not _same(one, other):
            found.append(f"event {k} is {one}, replaying gives {other}")
            break
    return found + list(_at_a_time(journal, most_transfers))


def _same(one: PlacementEvent, other: PlacementEvent) -> bool:
    """Return whether two events are equal; what is not known of both is."""
    pairs = zip(astuple(one), astuple(other), strict=True)
    return all(a == b or (a != a and b != b) for a, b in pairs)


def _at_a_time(journal: Sequence[PlacementEvent], most: int | None) -> Iterator[str]:
    receiving: set[int] = set()
    for event in journal:
        if event.event == "drain" and event.bytes_moved > 0.0:
            receiving.add(event.site)
        elif event.event in ("hold", "cancel") and event.site in receiving:
            receiving.discard(event.site)
        if most is not None and len(receiving) > most:
            yield f"{event.time_s:g} s: {len(receiving)} sites receive states, allowed are {most}"


def audit_memory(
    journal: Sequence[PlacementEvent],
    initial: Ints,
    memory: SiteMemory,
    site: Ints,
    started_s: Floats,
    finished_s: Floats,
) -> list[str]:
    """Return at which sites running requests and states took more memory than there is; empty if nowhere.

    Parameters
    ----------
    journal
        Events in order.
    initial
        Profile of each site at the start, shape (n,).
    memory
        Memory of the sites.
    site, started_s, finished_s
        Where each request ran, from when and until when [s], shape (m,); those that never ran are left out.
    """
    found = []
    held = _states_over_time(journal, initial, memory)
    order = np.argsort(site, kind="stable")
    parts = np.split(order, np.searchsorted(site[order], np.arange(1, len(initial))))
    for i, rows in enumerate(parts):
        times, states, counted = held[i]
        begun, ended = np.sort(started_s[rows]), np.sort(finished_s[rows])
        at = np.concatenate((begun, times))
        running = np.searchsorted(begun, at, side="right") - np.searchsorted(ended, at, side="right")
        stretch = np.searchsorted(times, at, side="right") - 1
        taken = np.where(counted[stretch], running * memory.request_bytes + states[stretch], 0)
        if rows.size and (worst := int(np.argmax(taken))) >= 0 and taken[worst] > memory.usable_bytes:
            found.append(
                f"site {i} at {at[worst]:.3f} s: {running[worst]} requests and {states[stretch][worst]} B of states "
                f"take {taken[worst]} B, there are {memory.usable_bytes} B"
            )
    return found


def _states_over_time(
    journal: Sequence[PlacementEvent], initial: Ints, memory: SiteMemory
) -> list[tuple[Floats, Ints, NDArray[np.bool_]]]:
    """Return for each site from when on [s] its states take how many bytes, and whether memory is what limits it."""
    rows = [[(-np.inf, int(memory.stored_bytes[s]), bool(memory.counted[s]))] for s in initial]
    profile = np.array(initial, dtype=np.int64)
    for event in journal:
        site = event.site
        if event.event == "hold":
            profile[site] = event.to_profile
        if event.event in ("hold", "move", "fail"):
            held, on_its_way = profile[site], event.to_profile if event.event == "move" else profile[site]
            counted = bool(memory.counted[held] and memory.counted[on_its_way])
            rows[site].append((event.time_s, int(memory.union_bytes[held, on_its_way]), counted))
    columns = [tuple(zip(*row, strict=True)) for row in rows]
    return [(np.array(t, dtype=np.float64), np.array(b), np.array(c)) for t, b, c in columns]
