"""Auditing a run: its log is replayed, and what its tables say is held against the rules and each other."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.audit import audit_actions, audit_journal, audit_memory
from geoedge.control.bounds import outside_s
from geoedge.control.log import LogEntry, Oscillation, held_over_time, journal_of, oscillations
from geoedge.control.memory import SiteMemory, site_memory
from geoedge.control.planners import PLANNERS
from geoedge.control.planners.limits import limits_of
from geoedge.errors import GeoEdgeError
from geoedge.scenario import Scenario
from geoedge.simulation.ledger import (
    action_log,
    check_actions,
    check_decisions,
    check_known,
    check_redirects,
)
from geoedge.workload import build_workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.control.placement import PlacementEvent
    from geoedge.results import Results
    from geoedge.scenario import ControlConfig
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    _History = tuple[Floats, Ints]

__all__ = ["RunAudit", "audit_run", "bounds_told", "damage_told"]


@dataclass(frozen=True)
class RunAudit:
    """What an audit of a run found."""

    requests: dict[str, int]
    """Requests by what they were at the horizon."""
    actions: int
    events: int
    """Events in the placement's journal, all of which were replayed."""
    bytes_moved: float
    oscillations: list[Oscillation]
    """Sites that went back within four epochs."""
    outside_s: dict[str, float]
    """For how long sites held what breaks a bound on profiles [s], by its key, for bounds that were broken."""
    violations: list[str]
    """What breaks a rule or does not agree, one line each."""


def audit_run(results: Results) -> RunAudit:
    """Replay the controller's log of a run and check all of its tables against it.

    Parameters
    ----------
    results
        A run of this version.

    Raises
    ------
    GeoEdgeError
        If the run is of a version that did not write what is held against each other, or its tables name sites,
        profiles or events that do not exist.
    """
    lacking = list(_lacking(results))
    if lacking:
        msg = (
            f"`run` {results.label!r} was made by an older version: it has no {', '.join(lacking)}; run it again with "
            "this version"
        )
        raise GeoEdgeError(msg)
    with damage_told(results.label):
        return _audited(results)


@contextmanager
def damage_told(label: str) -> Iterator[None]:
    """Say in one line that tables do not belong together where reading them goes wrong.

    Parameters
    ----------
    label
        What the run is called.

    Raises
    ------
    GeoEdgeError
        If it does.
    """
    try:
        yield
    except GeoEdgeError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        msg = f"{label}: its tables do not belong together ({what}); something was changed or damaged, run again"
        raise GeoEdgeError(msg) from error


_BOOKS = {
    "placement": (),
    "actions": ("horizon_gain", "horizon_epochs"),
    "decisions": ("horizon_epochs", "horizon_coverage_before", "horizon_coverage_after", "looked_at", "why"),
}
"""Tables that the books of a run are, and columns of them that older versions did not write."""


def _lacking(results: Results) -> Iterator[str]:
    """Say which tables and columns a run lacks that its books are kept in by now."""
    tables = {"actions": results.actions} | results.tables
    for name, columns in _BOOKS.items():
        if name not in tables:
            yield f"{name}.parquet"
            continue
        yield from (f"{name}.{column}" for column in columns if column not in tables[name])


def _audited(results: Results) -> RunAudit:
    journal = journal_of(results.tables["placement"])
    log = action_log(results.actions, journal)
    found = list(_violations(results, journal, log))
    return RunAudit(
        results.status_counts(),
        len(results.actions),
        len(journal),
        float(sum(event.bytes_moved for event in journal if event.event == "start")),
        oscillations(log or ()),
        _outside(results, journal)[0],
        found,
    )


def _violations(results: Results, journal: list[PlacementEvent], log: list[LogEntry] | None) -> Iterator[str]:
    scenario = Scenario.from_dict(tomllib.loads(results.scenario_toml), source="scenario.toml")
    control, workload = scenario.control, build_workload(scenario.workload, scenario.hardware)
    _refuse_unknown(results, len(workload.profile_names))
    memory = site_memory(scenario.workload, scenario.hardware, workload)
    initial = results.sites["profile"].to_numpy().astype(np.int64)
    broken = audit_journal(
        journal,
        initial,
        control.backhaul_bytes_per_s,
        memory=memory,
        most_transfers=control.most_transfers,
        until_s=results.meta["horizon_s"],
    )
    yield from broken
    if log is None:
        yield "the table of actions and the journal do not have the same changes"
    else:
        yield from _books(results, control, workload, journal, log, memory, initial, told=not broken)
    history = _history(journal, initial)
    counted = None if PLANNERS[control.controller].at_once else memory
    yield from _requests(results, history, journal, initial, counted)
    events, redirects = results.tables.get("events"), results.records.column("redirects").to_numpy()
    yield from check_redirects(redirects, scenario, events)
    yield from check_known(events)
    yield from _epochs(results, history)


def bounds_told(results: Results) -> list[str]:
    """Return which bounds on profiles were broken in a run, and for how long, a sentence each.

    Parameters
    ----------
    results
        A run; of one without a log of its placement nothing is told.
    """
    if "placement" not in results.tables:
        return []
    with damage_told(results.label):
        outside, control = _outside(results, journal_of(results.tables["placement"]))
        length = float(results.epochs["end_s"].max() - results.epochs["start_s"].min())
    return [
        f"control.{key} = {getattr(control, key):g} was not kept for {seconds:,.0f} of {length:,.0f} s: the layout or a "
        "failure led beyond it, and only a controller that moves caches leads back."
        for key, seconds in outside.items()
    ]


def _outside(results: Results, journal: list[PlacementEvent]) -> tuple[dict[str, float], ControlConfig]:
    """Return for how long sites held what breaks each bound on profiles [s], and the section that sets the bounds."""
    scenario = Scenario.from_dict(tomllib.loads(results.scenario_toml), source="scenario.toml")
    initial = results.sites["profile"].to_numpy().astype(np.int64)
    hits = build_workload(scenario.workload, scenario.hardware).hit_tokens
    _refuse_unknown(results, len(hits))
    limits = limits_of(scenario.control, hits, len(initial))
    times = results.epochs["start_s"].min(), results.epochs["end_s"].max()
    return outside_s(journal, initial, limits, float(times[0]), float(times[1])), scenario.control


def _refuse_unknown(results: Results, profiles: int) -> None:
    """Refuse tables that name sites or profiles that there are not, before anything is counted by them."""
    placement, n = results.tables["placement"], len(results.sites)
    for table, frame, column, least, end in (
        ("sites", results.sites, "profile", 0, profiles),
        ("placement", placement, "site", 0, n),
        ("placement", placement, "from_profile", -1, profiles),
        ("placement", placement, "to_profile", -1, profiles),
        ("epochs", results.epochs, "site", 0, n),
    ):
        wrong = frame[column][~frame[column].isin(range(least, end))]
        if len(wrong):
            msg = f"{column} = {wrong.iloc[0]} in {table}.parquet, known are {least} to {end - 1}"
            raise LookupError(msg)


def _books(
    results: Results,
    control: ControlConfig,
    workload: Workload,
    journal: list[PlacementEvent],
    log: list[LogEntry],
    memory: SiteMemory,
    initial: Ints,
    *,
    told: bool,
) -> Iterator[str]:
    """Say where actions and decisions break rules, or do not agree with the journal, unless that is broken itself."""
    at_once = PLANNERS[control.controller].at_once
    limits = limits_of(control, workload.hit_tokens, len(initial))
    budget = np.inf if at_once else limits.budget_bytes
    yield from audit_actions(
        log,
        initial,
        least_sites=limits.least_sites,
        most_sites=limits.most_sites,
        deep=limits.deep,
        most_deep=limits.most_deep,
        most_actions=None if at_once else limits.rounds,
        transfer_bytes=memory.moved_bytes,
        budget_bytes=budget,
        least_hold_epochs=control.least_hold_epochs,
        journal=journal,
        at_once=at_once,
    )
    for event in journal:
        if event.event == "become" and not at_once:
            yield f"{event.time_s:g} s: site {event.site} holds another profile at once, as no planner lets it"
    times = results.epochs.groupby("epoch")[["start_s", "end_s"]].first()
    epochs = [(float(start), float(end)) for start, end in times.to_numpy()]
    if told:
        yield from check_actions(results.actions, log, journal, memory.moved_bytes, epochs)
    yield from check_decisions(
        results.tables["decisions"],
        log,
        budget,
        epochs,
        _away(results),
        plans=PLANNERS[control.controller].moves,
    )


def _away(results: Results) -> list[tuple[float, float]]:
    """Return from when to when the controller was down [s since midnight]."""
    events = results.tables.get("events")
    if events is None:
        return []
    down = events.loc[events["kind"] == "controller_down", ["start_s", "end_s"]]
    return [(float(start), float(end)) for start, end in down.to_numpy()]


def _requests(
    results: Results,
    history: _History,
    journal: list[PlacementEvent],
    initial: Ints,
    memory: SiteMemory | None,
) -> Iterator[str]:
    """Say what requests do not agree with: themselves, what sites held, and the memory there is, if it is counted."""
    column = {name: results.records.column(name).to_numpy() for name in _REQUEST_COLUMNS}
    ran = column["site"] >= 0
    site, started, finished = (column[name][ran] for name in ("site", "started_s", "finished_s"))
    times = [column[name][ran] for name in ("created_s", "arrived_s", "started_s", "first_token_s")]
    for k, (early, late) in enumerate(pairwise(times)):
        for row in np.flatnonzero(~(early <= late))[:1]:
            yield f"a request is {('created', 'there', 'started')[k]} at {early[row]} s and goes on at {late[row]} s"
    held = _held_at(history, site, started)
    wrong = np.flatnonzero(held != column["profile"][ran])
    if wrong.size:
        k = wrong[0]
        yield (
            f"{wrong.size} requests were served by a profile that their site did not hold, the first at site "
            f"{site[k]}, {started[k]:.3f} s: profile {column['profile'][ran][k]}, not {held[k]}"
        )
    if memory is not None:
        yield from audit_memory(journal, initial, memory, site, started, finished)


_REQUEST_COLUMNS = (
    "site",
    "profile",
    "created_s",
    "arrived_s",
    "started_s",
    "first_token_s",
    "finished_s",
)


def _history(journal: list[PlacementEvent], initial: Ints) -> _History:
    """Return from when on [s] sites hold something else, shape (k,), and what, shape (k, n)."""
    since, profiles = zip(*held_over_time(journal, initial), strict=True)
    return np.array(since), np.stack(profiles)


def _held_at(history: _History, site: Ints, time_s: Floats) -> Ints:
    """Return what sites held at some times, shape (m,); a change counts from its very instant on."""
    since, profiles = history
    return np.asarray(profiles[np.searchsorted(since, time_s, side="right") - 1, site])


def _epochs(results: Results, history: _History) -> Iterator[str]:
    """Say where the table of epochs does not end with what the journal says; at the very end both may be."""
    for epoch, rows in results.epochs.groupby("epoch"):
        site, ends = rows["site"].to_numpy(), rows["end_s"].to_numpy()
        before = _held_at(history, site, np.nextafter(ends, -np.inf))
        after, told = _held_at(history, site, ends), rows["profile_at_end"].to_numpy()
        wrong = np.flatnonzero((told != before) & (told != after))
        if wrong.size:
            yield f"epoch {epoch}: site {site[wrong[0]]} ends it with another profile than the journal says"
