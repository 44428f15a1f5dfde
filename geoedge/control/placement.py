"""Placement: which profile every site holds at every moment, what is on its way, and what that does to its memory.

A change of a site goes through stages. It is *queued* while too many transfers are under way; it *drains* the
site, which starts no more requests than will fit beside old and new states, until enough running requests have
finished; then the states *move*; with the last byte the site holds its new profile and gives up what was in the
old one alone. Requests that run keep the service they were given. A site that fails loses its cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.control.actions import NEVER_BYTES, Action, Change
from geoedge.control.memory import SiteMemory
from geoedge.errors import GeoEdgeError

__all__ = ["FALLBACK", "JOURNAL_COLUMNS", "Placement", "PlacementEvent"]

FALLBACK = 0
"""The profile that stores nothing."""
JOURNAL_COLUMNS = (
    "time_s",
    "event",
    "site",
    "from_profile",
    "to_profile",
    "bytes_moved",
    "compute_s",
    "until_s",
    "rate_bytes_per_s",
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PlacementEvent:
    """One line of the journal.

    What it was told: ``start`` of a change, ``backhaul`` (a new rate), ``fail``, ``recover``, ``become`` (another
    profile at once). What it found out: ``drain`` (until when running requests are in the way). What follows:
    ``move`` (states begin to arrive), ``hold`` (a site holds another profile), ``cancel``.
    """

    time_s: float
    event: str
    site: int
    from_profile: int = -1
    to_profile: int = -1
    bytes_moved: float = 0.0
    compute_s: float = 0.0
    until_s: float = np.nan
    rate_bytes_per_s: float = np.nan


@dataclass
class _Move:
    """A change under way."""

    change: Change
    servers: int | None = None
    """Requests at once meanwhile; None while it is queued."""
    ready_s: float = np.inf
    """When running requests leave room."""
    left_bytes: float = 0.0
    since_s: float = np.nan
    """When so many bytes were left; NaN before the states move."""
    end_s: float = np.inf

    @property
    def due_s(self) -> float:
        """When it goes on [s]."""
        return self.end_s if self.moving else self.ready_s

    @property
    def moving(self) -> bool:
        return not np.isnan(self.since_s)

    @property
    def occupies_backhaul(self) -> bool:
        return self.change.bytes_moved > 0.0 and self.servers is not None


@dataclass(eq=False)
class Placement:
    """Which profile every site holds now, and what is on its way.

    Parameters
    ----------
    profile
        Profile that each site holds, shape (n,); never one whose states are still on the way.
    backhaul_bytes_per_s
        Rate at which a site receives states [B/s], one for all or shape (n,).
    memory
        Memory of the sites; None counts none: changes wait for nothing, and `servers` is not known.
    drained_s
        Tells when at most so many of the requests that run at a site now will still run, if none starts
        [s]; by default nothing runs.
    most_transfers
        Sites that receive states at a time, at most; None for any number.

    Attributes
    ----------
    journal
        All that it was told and all that followed, in order.
    down
        Sites that have failed.
    """

    profile: Ints
    backhaul_bytes_per_s: float | Floats
    memory: SiteMemory | None = None
    drained_s: Callable[[int, int], float] = lambda site, servers: -np.inf
    most_transfers: int | None = None
    journal: list[PlacementEvent] = field(default_factory=list, init=False)
    down: frozenset[int] = field(default=frozenset(), init=False)
    _moves: dict[int, _Move] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.profile = np.array(self.profile, dtype=np.int64)
        self._rate = np.array(
            np.broadcast_to(self.backhaul_bytes_per_s, self.profile.shape), dtype=np.float64
        )
        _check_rate(self._rate)

    # -- what is so now ----------------------------------------------------------------------------------

    @property
    def in_transit(self) -> frozenset[int]:
        """Sites that wait for states, or for room for them."""
        return frozenset(self._moves)

    @property
    def busy(self) -> frozenset[int]:
        """Sites that cannot be changed now: in transit or down."""
        return self.in_transit | self.down

    @property
    def rate(self) -> Floats:
        """Rate at which each site receives states [B/s], shape (n,)."""
        return self._rate.copy()

    @property
    def servers(self) -> Ints:
        """Requests that each site may run at once, shape (n,).

        Raises
        ------
        GeoEdgeError
            If the memory of the sites is not known.
        """
        servers = self._memory.concurrency[self.profile]
        for site, move in self._moves.items():
            if move.servers is not None:
                servers[site] = move.servers
        return servers

    @property
    def states_bytes(self) -> Ints:
        """Memory taken by states held and by states that arrive, in full from their first byte [B], shape (n,)."""
        memory = self._memory
        taken = memory.stored_bytes[self.profile]
        for site, move in self._moves.items():
            if move.moving:
                taken[site] = memory.union_bytes[self.profile[site], move.change.to_profile]
        return taken

    @property
    def moved_bytes(self) -> Floats:
        """Bytes that a site fetches on its way from profile s to t [B], shape (S, S)."""
        return self._memory.moved_bytes

    @property
    def goal(self) -> Ints:
        """Profile of each site once all has arrived, shape (n,)."""
        goal = self.profile.copy()
        for site, move in self._moves.items():
            goal[site] = move.change.to_profile
        return goal

    def transfer_s(self, action: Action) -> float:
        """Return the time until the last change of an action has its states [s], at the present rates.

        Parameters
        ----------
        action
            An action that has not begun.
        """
        return max(
            _end(change.compute_s, change.bytes_moved, self._rate[change.site]) for change in action.changes
        )

    @property
    def _memory(self) -> SiteMemory:
        if self.memory is None:
            msg = "control: the placement does not know the memory of its sites; give `memory`"
            raise GeoEdgeError(msg)
        return self.memory

    # -- what it is told ---------------------------------------------------------------------------------

    def start(self, actions: Iterable[Action], now_s: float) -> None:
        """Begin actions: what needs neither bytes nor room takes effect now, everything else in time.

        Parameters
        ----------
        actions
            What to begin.
        now_s
            The present [s].

        Raises
        ------
        GeoEdgeError
            If a site is down, does not hold the profile it is to give up, waits for states already, or has no
            second server for computing them.
        """
        for change in (change for action in actions for change in action.changes):
            self._refuse(change)
            self._moves[change.site] = _Move(change)
            self._note(now_s, "start", change)
            self._launch(now_s)

    def set_backhaul(
        self, bytes_per_s: ArrayLike, sites: Iterable[int] | None = None, *, now_s: float
    ) -> None:
        """Change the rate at which sites receive states, also of those that receive some now.

        Parameters
        ----------
        bytes_per_s
            New rate [B/s], one or one for each of the sites; 0 stops everything.
        sites
            Which sites; all if None.
        now_s
            Now [s].

        Raises
        ------
        GeoEdgeError
            If a rate is negative or not finite.
        """
        chosen = np.arange(len(self.profile)) if sites is None else np.array(list(sites), dtype=np.int64)
        rates = np.broadcast_to(np.asarray(bytes_per_s, dtype=np.float64), chosen.shape)
        _check_rate(rates)
        for site, rate in zip(chosen.tolist(), rates.tolist(), strict=True):
            move = self._moves.get(site)
            if move is not None and move.moving and move.change.bytes_moved > 0.0:
                arrived = (now_s - move.since_s) * self._rate[site]
                move.left_bytes, move.since_s = max(0.0, move.left_bytes - arrived), now_s
                move.end_s = _end(now_s, move.left_bytes, rate)
            self._rate[site] = rate
            self.journal.append(PlacementEvent(now_s, "backhaul", site, rate_bytes_per_s=rate))

    def fail(self, site: int, now_s: float) -> Change | None:
        """Let a site fail: its cache is lost, and what was on its way to it is called off and returned.

        Parameters
        ----------
        site
            Which site.
        now_s
            The present [s].
        """
        move = self._moves.pop(site, None)
        self.journal.append(PlacementEvent(now_s, "fail", site, int(self.profile[site])))
        if move is not None:
            self._note(now_s, "cancel", move.change)
        self.down |= {site}
        held = int(self.profile[site])
        self._hold(now_s, site, FALLBACK if self.memory is None else int(self.memory.empty[held]))
        self._launch(now_s)
        return None if move is None else move.change

    def become(self, profile: ArrayLike, now_s: float) -> None:
        """Hold another placement at once, as no real site can; for yardsticks. Busy sites stay as they are.

        Parameters
        ----------
        profile
            Profile of each site, shape (n,).
        now_s
            The present [s].
        """
        wanted = np.asarray(profile, dtype=np.int64)
        for site in np.flatnonzero(wanted != self.profile).tolist():
            if site not in self.busy:
                to = int(wanted[site])
                self.journal.append(PlacementEvent(now_s, "become", site, int(self.profile[site]), to))
                self._hold(now_s, site, to)

    def recover(self, site: int, now_s: float) -> None:
        """Let a site that failed come back, with the fallback.

        Parameters
        ----------
        site
            Which site.
        now_s
            The present [s].
        """
        self.journal.append(PlacementEvent(now_s, "recover", site))
        self.down -= {site}

    # -- time --------------------------------------------------------------------------------------------

    def next_event_s(self) -> float:
        """Return when the next stage of a change is due [s]; infinite if nothing is under way."""
        return min((move.due_s for move in self._moves.values()), default=np.inf)

    def advance(self, now_s: float) -> list[Change]:
        """Let everything due by now happen, each at its own time; return the changes that took effect, in order.

        Parameters
        ----------
        now_s
            The present [s].
        """
        done = []
        while self.next_event_s() <= now_s:
            site = min(self._moves, key=lambda i: (self._moves[i].due_s, i))
            move = self._moves[site]
            if not move.moving:
                self._begin(move, move.ready_s)
            else:
                done.append(move.change)
                self._finish(move, move.end_s)
        return done

    def _refuse(self, change: Change) -> None:
        site = change.site
        if site in self.down:
            msg = f"control: site {site} is down and takes up nothing; wait until it has recovered"
            raise GeoEdgeError(msg)
        if site in self._moves or self.profile[site] != change.from_profile:
            msg = (
                f"control: site {site} cannot leave profile {change.from_profile}, it holds "
                f"{self.profile[site]} or waits for states; plan from the placement as it is"
            )
            raise GeoEdgeError(msg)
        if change.bytes_moved >= NEVER_BYTES:
            msg = f"control: site {site} keeps its model and privacy domain; profile {change.to_profile} has another"
            raise GeoEdgeError(msg)
        if self.memory is not None and self._servers_for(change) < 1:
            msg = f"control: site {site} has no second server to compute states on; let it fetch them"
            raise GeoEdgeError(msg)

    def _servers_for(self, change: Change) -> int:
        """Return the requests at once during a change; a site that computes states does so on one of its servers."""
        servers = int(self._memory.servers[change.from_profile, change.to_profile])
        return servers - (1 if change.compute_s > 0.0 else 0)

    def _launch(self, now_s: float) -> None:
        """Let queued changes begin, first come first served, as far as transfers at a time are allowed."""
        most = np.inf if self.most_transfers is None else self.most_transfers
        for move in list(self._moves.values()):
            if move.servers is not None:
                continue
            under_way = sum(other.occupies_backhaul for other in self._moves.values())
            if move.change.bytes_moved == 0.0 or under_way < most:
                self._drain(move, now_s)

    def _drain(self, move: _Move, now_s: float) -> None:
        change = move.change
        if self.memory is None:
            move.servers, move.ready_s = 0, now_s
        else:
            self._hold(now_s, change.site, int(self.memory.via[change.from_profile, change.to_profile]))
            move.servers = self._servers_for(change)
            move.ready_s = max(now_s, self.drained_s(change.site, move.servers))
        self._note(now_s, "drain", change, until_s=move.ready_s)
        if move.ready_s <= now_s:
            self._begin(move, now_s)

    def _begin(self, move: _Move, now_s: float) -> None:
        """Let states begin to arrive."""
        change = move.change
        move.left_bytes, move.since_s = change.bytes_moved, now_s
        move.end_s = max(now_s + change.compute_s, _end(now_s, change.bytes_moved, self._rate[change.site]))
        self._note(now_s, "move", change, until_s=move.end_s)
        if move.end_s <= now_s:
            self._finish(move, now_s)

    def _finish(self, move: _Move, now_s: float) -> None:
        del self._moves[move.change.site]
        self._hold(now_s, move.change.site, move.change.to_profile)
        self._launch(now_s)

    def _hold(self, now_s: float, site: int, profile: int) -> None:
        before = int(self.profile[site])
        if profile == before:
            return
        self.profile = self.profile.copy()
        self.profile[site] = profile
        self.journal.append(PlacementEvent(now_s, "hold", site, before, profile))

    def _note(self, now_s: float, event: str, change: Change, until_s: float = np.nan) -> None:
        parts = (change.site, change.from_profile, change.to_profile, change.bytes_moved, change.compute_s)
        rate = float(self._rate[change.site])
        self.journal.append(PlacementEvent(now_s, event, *parts, until_s=until_s, rate_bytes_per_s=rate))


def _end(now_s: float, left_bytes: float, rate: float) -> float:
    if left_bytes == 0.0:
        return now_s
    return now_s + left_bytes / rate if rate > 0.0 else np.inf


def _check_rate(rate: Floats) -> None:
    if not (np.isfinite(rate).all() and (rate >= 0.0).all()):
        msg = f"control: a backhaul of {rate.tolist()} B/s; rates are finite and at least 0"
        raise GeoEdgeError(msg)
