"""The books of a run: its tables of actions and decisions held against the journal of its placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.control.actions import REPAIRS, Action, Change
from geoedge.control.left_out import WHY
from geoedge.control.log import LogEntry, begun, outcomes

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from geoedge.control.placement import PlacementEvent
    from geoedge.scenario import Scenario

__all__ = ["action_log", "check_actions", "check_decisions", "check_known", "check_redirects"]

Row = dict[str, Any]

_UNPLANNED = ("absent", "no demand")
"""Why there was no plan in an epoch, so that nothing was predicted."""


def action_log(actions: pd.DataFrame, journal: list[PlacementEvent]) -> list[LogEntry] | None:
    """Return the log of actions, with what changed and its bytes from the journal; None if they do not pair up.

    Parameters
    ----------
    actions
        Table of actions.
    journal
        The journal of the placement.
    """
    rows: list[Row] = actions.to_dict("records")  # type: ignore[assignment]
    both = [(int(row["site"]), int(row["partner_site"])) for row in rows]
    sites = [each if each[1] >= 0 else each[:1] for each in both]
    started = Counter(event.site for event in journal if event.event in ("start", "become"))
    if started != Counter(site for each in sites for site in each):
        return None
    log = []
    for row, starts in zip(rows, begun(sites, journal), strict=True):
        told = [journal[k] for k in starts]
        changes = tuple(
            Change(e.site, e.from_profile, e.to_profile, e.bytes_moved, e.compute_s) for e in told
        )
        gains = row["predicted_gain"], row["reason"], row["horizon_gain"], row["horizon_epochs"]
        action = Action(row["action"], changes, *gains)
        log.append(LogEntry(row["epoch"], told[0].time_s, action, _transfer_s(told)))
    return log


def _transfer_s(told: list[PlacementEvent]) -> float:
    """Return the time that the bytes of changes take at the rates at which they were begun [s]."""
    seconds = [event.compute_s for event in told]
    for k, event in enumerate(told):
        if event.bytes_moved > 0.0:
            rate = event.rate_bytes_per_s
            seconds[k] += event.bytes_moved / rate if rate > 0.0 else np.inf
    return max(seconds)


def check_actions(
    actions: pd.DataFrame,
    log: list[LogEntry],
    journal: list[PlacementEvent],
    moved_bytes: NDArray[np.float64],
    epochs: list[tuple[float, float]],
) -> Iterator[str]:
    """Say where the table of actions does not say what the journal says.

    Parameters
    ----------
    actions
        Table of actions.
    log
        The same, with changes from the journal.
    journal
        The journal of the placement.
    moved_bytes
        Bytes from profile s to t [B], shape (S, S).
    epochs
        Start and end of each epoch [s since midnight].
    """
    rows: list[Row] = actions.to_dict("records")  # type: ignore[assignment]
    for row, entry, (moving, effective) in zip(rows, log, outcomes(log, journal), strict=True):
        first, changes = entry.action.changes[0], entry.action.changes
        told = {
            "time_s": entry.time_s,
            "action": _kind(entry.action, moved_bytes),
            "from_profile": first.from_profile,
            "to_profile": first.to_profile,
            "bytes_moved": entry.action.bytes_moved,
            "compute_s": max(change.compute_s for change in changes),
            "transfer_s": entry.transfer_s,
            "moving_s": moving,
            "effective_s": effective,
        }
        where = f"epoch {entry.epoch}, {entry.action.kind} at site {first.site}"
        yield from _differences(where, row, told, "the journal")
        start, end = epochs[entry.epoch] if 0 <= entry.epoch < len(epochs) else (np.inf, np.inf)
        if not start <= entry.time_s <= end:
            yield f"{where}: the journal has it at {entry.time_s:g} s, in another epoch"
        if entry.action.kind not in REPAIRS:
            continue
        yield from _differences(where, row, {"horizon_epochs": 1}, "what sites do themselves")
        if not _had_lost(first.site, entry, log, journal):
            yield f"{where}: the site had nothing to repair"


def _kind(action: Action, moved_bytes: NDArray[np.float64]) -> str:
    """Return what an action is by its changes; a repair is what it says, as its bytes do not tell."""
    if action.kind in REPAIRS:
        return action.kind
    first, *others = action.changes
    if others:
        return "migrate"
    if first.compute_s:
        return "admit"
    return "replicate" if moved_bytes[first.from_profile, first.to_profile] else "demote"


def _had_lost(site: int, entry: LogEntry, log: list[LogEntry], journal: list[PlacementEvent]) -> bool:
    """Return whether a site had failed or given up what was out of date before it restored something."""
    if entry.action.kind == "invalidate":
        return True
    failed = any(e.event == "fail" and e.site == site and e.time_s <= entry.time_s for e in journal)
    earlier = (other for other in log if other.time_s <= entry.time_s and site in other.action.sites)
    return failed or any(other.action.kind == "invalidate" for other in earlier)


def check_decisions(
    decisions: pd.DataFrame,
    log: list[LogEntry],
    budget_bytes: float,
    epochs: list[tuple[float, float]],
    away: list[tuple[float, float]],
    *,
    plans: bool,
) -> Iterator[str]:
    """Say where the table of decisions does not agree with the actions, or with the budget that there was.

    What was forecast is taken as it is written down: no other table knows it.

    Parameters
    ----------
    decisions
        Table of decisions.
    log
        Actions, with their changes from the journal.
    budget_bytes
        Bytes that plans of the scenario may move in an epoch [B].
    epochs
        Start and end of each epoch [s since midnight].
    away
        From when to when the controller was down [s since midnight].
    plans
        Whether the controller plans, so that every epoch but the first has a decision.
    """
    planned: dict[int, list[Action]] = {}
    for entry in log:
        if entry.action.kind not in REPAIRS:
            planned.setdefault(int(entry.epoch), []).append(entry.action)
    for row in decisions.to_dict("records"):
        epoch = int(row["epoch"])
        actions = planned.pop(epoch, [])
        told = {
            "time_s": epochs[epoch][0] if 0 <= epoch < len(epochs) else np.nan,
            "budget_bytes": budget_bytes,
            "actions": len(actions),
            "bytes_moved": sum(action.bytes_moved for action in actions),
        }
        yield from _differences(f"the decision of epoch {epoch}", row, told, "the run")
        down = epoch > 0 and any(start <= row["time_s"] < end for start, end in away)
        if (row["why"] == "absent") != down:
            yield f"the decision of epoch {epoch}: why is {row['why']!r}, by the events the controller was down or not"
        yield from _unheard_of(epoch, row)
        if row["why"] in _UNPLANNED:
            continue
        for action in actions:
            if action.horizon_epochs != row["horizon_epochs"]:
                yield (
                    f"epoch {epoch}, {action.kind} at site {action.sites[0]}: horizon_epochs is {action.horizon_epochs}, "
                    f"by the decision {row['horizon_epochs']}"
                )
        for name, promised in (
            ("coverage", sum(action.predicted_gain for action in actions)),
            ("horizon_coverage", sum(action.horizon_gain for action in actions)),
        ):
            gain = row[f"{name}_after"] - row[f"{name}_before"]
            if not np.isclose(gain, promised, rtol=0.0, atol=1e-6):
                yield f"the decision of epoch {epoch}: its actions promise {promised:.6f} {name}, it says {gain:.6f}"
    for epoch in planned:
        yield f"epoch {epoch}: a plan acted that is not among the decisions"
    missing = set(range(1, len(epochs))) - set(decisions["epoch"]) if plans else ()
    for epoch in sorted(missing):
        yield f"epoch {epoch}: nothing was decided, and nothing says why"


def _unheard_of(epoch: int, row: Any) -> Iterator[str]:
    """Say what a decision tells that none can have told."""
    if not set(str(row["why"]).split(", ")) <= set(WHY):
        yield f"the decision of epoch {epoch}: why is {row['why']!r}; known are {', '.join(WHY)}"
    if not row["looked_at"] >= 0:
        yield f"the decision of epoch {epoch}: looked_at is {row['looked_at']}, which is no number of placements"


def check_redirects(
    redirects: NDArray[np.int64], scenario: Scenario, events: pd.DataFrame | None
) -> Iterator[str]:
    """Say where requests were sent on more often than admission allows.

    Each time that its site fails a request is sent anew, and may be sent on as often again.

    Parameters
    ----------
    redirects
        How often each request was sent on, shape (m,).
    scenario
        The scenario.
    events
        Table of events; None if nothing happened.
    """
    closes = scenario.admission.close_threshold is not None
    failures = 0 if events is None else int((events["kind"] == "site_failure").sum())
    most = scenario.admission.redirects * (1 + failures) if closes else 0
    wrong = np.flatnonzero(~((redirects >= 0) & (redirects <= most)))
    if wrong.size:
        yield (
            f"{wrong.size} requests were sent on a number of times that admission does not allow, the first "
            f"{redirects[wrong[0]]} times; allowed are 0 to {most}"
        )


def check_known(events: pd.DataFrame | None) -> Iterator[str]:
    """Say which failures were known before they began, or only after they were over.

    Parameters
    ----------
    events
        Table of events; None if nothing happened.
    """
    if events is None or "known_s" not in events:
        return
    for row in events.to_dict("records"):
        known = float(row["known_s"])
        if not np.isnan(known) and not row["start_s"] <= known <= row["end_s"]:
            yield (
                f"event {row['event']}, {row['kind']}: known at {known:g} s, but it lasts from {row['start_s']:g} to "
                f"{row['end_s']:g} s"
            )


def _differences(where: str, row: Any, told: Row, source: str) -> Iterator[str]:
    """Say what a row of a table has otherwise than it is known from elsewhere."""
    for name, known in told.items():
        same = (
            row[name] == known
            if isinstance(known, str)
            else np.isclose(row[name], known, rtol=1e-12, atol=1e-9, equal_nan=True)
        )
        if not same:
            yield f"{where}: {name} is {row[name]}, by {source} {known}"
