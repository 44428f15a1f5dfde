"""The controller's log: what was decided on which numbers, what came of it, and whether it kept to the rules.

The journal of a placement holds what it was told and what followed. `replay` tells it the same once more and
must get the same; `audit` checks the rules on what is written; `oscillations` counts what was soon undone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import REPAIRS, RETURN_EPOCHS, Action, Change
from geoedge.control.placement import JOURNAL_COLUMNS, Placement, PlacementEvent

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.control.memory import SiteMemory

__all__ = [
    "Decision",
    "LogEntry",
    "Oscillation",
    "Review",
    "begun",
    "decision_frame",
    "held_over_time",
    "journal_frame",
    "journal_of",
    "oscillations",
    "outcomes",
    "replay",
]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LogEntry:
    """One action as it was taken."""

    epoch: int
    time_s: float
    action: Action
    transfer_s: float
    """Time for its bytes at the backhaul's rate when it was taken [s]."""


@dataclass(frozen=True)
class Decision:
    """What the controller knew and decided at the start of an epoch; numbers are NaN where it planned nothing."""

    epoch: int
    time_s: float
    request_rate: float
    """Requests that the plan expects in the epoch that starts [1/s]."""
    coverage_before: float
    """Coverage predicted for the placement as it was, in the epoch that starts."""
    coverage_after: float
    """Coverage predicted for that epoch once all has arrived."""
    budget_bytes: float
    actions: int
    bytes_moved: float
    busy_sites: int
    """Sites that could not be changed."""
    planner: str = ""
    """Name of the planner."""
    horizon_epochs: int = 1
    """Epochs that it planned for."""
    horizon_coverage_before: float = np.nan
    """Coverage predicted for the placement as it was, mean of these epochs by requests; what planners compare."""
    horizon_coverage_after: float = np.nan
    """The same once all has arrived."""
    looked_at: int = 0
    """Placements besides the present one that the predictor was asked for."""
    left_out: str = ""
    """The best action that was not taken, in words; `geoedge.control.left_out` says which that is."""
    left_out_gain: float = np.nan
    """Coverage that it promised, mean of the epochs planned for."""
    left_out_toll: float = np.nan
    """Coverage that it had to gain for its bytes, and for going back, beyond the least gain."""
    left_out_bytes: float = np.nan
    """Bytes that it would have moved [B]."""
    left_out_solved: bool = False
    """Whether its gain is the field's; else it is the rough one of the screening."""
    unseen_gain: float = np.nan
    """Most that any action promised at the rough look which was allowed and which the field was not solved for."""
    why: str = ""
    """Why it was not taken, in words of `geoedge.control.left_out.WHY`; or why nothing was planned."""


@dataclass(frozen=True, eq=False)
class Review:
    """What the field says of an epoch's actions in hindsight, under the demand that really came.

    Both coverages are the field's, at the prices that were, or would have been, advertised: those for the demand
    before. So the field's own error is in both, and their difference is what the actions did.
    """

    without: float
    """Coverage had none of the epoch's actions been done."""
    with_actions: float
    """Coverage with what they had brought by the end of the epoch."""
    lost: frozenset[int] = frozenset()
    """Sites that had lost by then what actions had brought them; of these changes it says nothing."""

    def judges(self, action: Action) -> bool:
        """Return whether a change of an action is among those that it is about."""
        return any(change.site not in self.lost for change in action.changes)

    @property
    def gain(self) -> float:
        """Coverage gained by the actions."""
        return self.with_actions - self.without


@dataclass(frozen=True)
class Oscillation:
    """A site that went back, within a few epochs, to a profile that it had left."""

    site: int
    profile: int
    left_epoch: int
    back_epoch: int


def begun(sites: Iterable[Sequence[int]], journal: Sequence[PlacementEvent]) -> list[tuple[int, ...]]:
    """Return where in the journal each action's changes begin.

    Parameters
    ----------
    sites
        Sites that each action changes, actions in the order in which they were started.
    journal
        The journal of the placement that they were started in.
    """
    waiting: dict[int, deque[int]] = {}
    for k, event in enumerate(journal):
        if event.event in ("start", "become"):
            waiting.setdefault(event.site, deque()).append(k)
    return [tuple(waiting[site].popleft() for site in each) for each in sites]


def outcomes(log: Sequence[LogEntry], journal: Sequence[PlacementEvent]) -> list[tuple[float, float]]:
    """Return when each action's states began to move, and when its last change took effect [s]; NaN if never.

    Parameters
    ----------
    log
        Actions in the order in which they were started.
    journal
        The journal of the placement that they were started in.
    """
    spans: dict[int, list[float]] = {}
    under_way: dict[int, int] = {}
    for k, event in enumerate(journal):
        if event.event == "start":
            under_way[event.site], spans[k] = k, [np.nan, np.nan]
        elif event.event == "become":
            spans[k] = [event.time_s, event.time_s]
        elif event.event == "cancel":
            under_way.pop(event.site)
        elif event.event == "move":
            spans[under_way[event.site]][0] = event.time_s
        elif (
            event.event == "hold"
            and event.site in under_way
            and not np.isnan(spans[under_way[event.site]][0])
        ):
            spans[under_way.pop(event.site)][1] = event.time_s
    parts = begun((entry.action.sites for entry in log), journal)
    both = [np.array([spans[k] for k in part]) for part in parts]
    return [(float(span[:, 0].max()), float(span[:, 1].max())) for span in both]


def oscillations(log: Iterable[LogEntry], within_epochs: int = RETURN_EPOCHS) -> list[Oscillation]:
    """Return where a plan took a site back to a profile that a plan had let it leave at most so many epochs before.

    Parameters
    ----------
    log
        Actions in order of time.
    within_epochs
        Epochs within which going back counts, at least 1.
    """
    left: dict[tuple[int, int], int] = {}
    found = []
    for entry in (entry for entry in log if entry.action.kind not in REPAIRS):
        for change in entry.action.changes:
            since = left.get((change.site, change.to_profile))
            if since is not None and entry.epoch - since <= within_epochs:
                found.append(Oscillation(change.site, change.to_profile, since, entry.epoch))
            left[change.site, change.from_profile] = entry.epoch
    return found


def replay(
    journal: Sequence[PlacementEvent],
    initial: Ints,
    backhaul_bytes_per_s: float,
    *,
    memory: SiteMemory | None = None,
    most_transfers: int | None = None,
    until_s: float = -np.inf,
) -> Placement:
    """Return a placement that was told all that a journal says it was told; its own journal says what followed.

    When running requests left room is taken from the journal, as no placement decides it.

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
    drains = iter([event.until_s for event in journal if event.event == "drain"])
    placement = Placement(
        initial,
        backhaul_bytes_per_s,
        memory=memory,
        drained_s=lambda site, servers: next(drains, np.inf),
        most_transfers=most_transfers,
    )
    for k, event in enumerate(journal):
        if event.event == "start":
            change = Change(
                event.site, event.from_profile, event.to_profile, event.bytes_moved, event.compute_s
            )
            placement.start([Action("replicate", (change,))], event.time_s)
        elif event.event == "backhaul":
            placement.set_backhaul(event.rate_bytes_per_s, [event.site], now_s=event.time_s)
        elif event.event == "fail":
            placement.fail(event.site, event.time_s)
        elif event.event == "become":
            goal = placement.profile.copy()
            goal[event.site] = event.to_profile
            placement.become(goal, event.time_s)
        elif event.event == "recover":
            placement.recover(event.site, event.time_s)
        elif len(placement.journal) <= k:
            placement.advance(event.time_s)
    placement.advance(until_s)
    return placement


def held_over_time(journal: Iterable[PlacementEvent], initial: Ints) -> list[tuple[float, Ints]]:
    """Return what sites hold from each time [s] on at which that changes, shape (n,); first, from −∞, the initial."""
    held = [(-np.inf, np.array(initial, dtype=np.int64))]
    for event in journal:
        if event.event == "hold":
            profile = held[-1][1].copy()
            profile[event.site] = event.to_profile
            if event.time_s == held[-1][0]:
                held.pop()
            held.append((event.time_s, profile))
    return held


def decision_frame(decisions: Iterable[Decision]) -> pd.DataFrame:
    """Return decisions as a table, one row an epoch in which the controller planned, or was to plan."""
    import pandas as pd

    kinds = {"int": "int64", "float": "float64", "str": "str", "bool": "bool"}
    types = {each.name: kinds[str(each.type)] for each in fields(Decision)}
    return pd.DataFrame([astuple(decision) for decision in decisions], columns=list(types)).astype(types)


def journal_frame(journal: Iterable[PlacementEvent]) -> pd.DataFrame:
    """Return a journal as a table, one row an event, columns `JOURNAL_COLUMNS`."""
    import pandas as pd

    kinds = {"event": "str", "site": "int64", "from_profile": "int64", "to_profile": "int64"}
    frame = pd.DataFrame([astuple(event) for event in journal], columns=list(JOURNAL_COLUMNS))
    return frame.astype({name: kinds.get(name, "float64") for name in JOURNAL_COLUMNS})


def journal_of(frame: pd.DataFrame) -> list[PlacementEvent]:
    """Return the journal that `journal_frame` made a table of."""
    rows = frame[list(JOURNAL_COLUMNS)].itertuples(index=False, name=None)
    return [PlacementEvent(*row) for row in rows]
