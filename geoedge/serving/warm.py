"""Sessions as the engine is given them and gives them back: rules, turns, and what became of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError
from geoedge.scenario.sessions import HANDOVERS
from geoedge.serving.checks import known, spread
from geoedge.serving.sessions import HOST, NOBODY, SESSION, TURN, Warm, retime

__all__ = [
    "SessionRules",
    "TurnRecords",
    "Turns",
    "change_backhaul",
    "make_warm",
    "turn_records_of",
    "write_turns",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Turns:
    """Which turn of which session each request is.

    Parameters
    ----------
    session
        Number of the session, from 0; -1 for a request that belongs to none, shape (m,).
    turn
        Number of the turn in it, from 0, increasing within a session, shape (m,).
    prompt_tokens
        Prompt with all its history [token], shape (m,).
    """

    session: Ints
    turn: Ints
    prompt_tokens: Ints

    def __post_init__(self) -> None:
        """Make plain columns of one length."""
        for each in fields(self):
            column = np.ascontiguousarray(getattr(self, each.name), dtype=np.int64)
            least = NOBODY if each.name == "session" else 0
            if column.shape != np.shape(self.session) or (column < least).any():
                msg = f"`{each.name}` must be whole numbers >= {least} in the shape of `session`, {np.shape(self.session)}"
                raise GeoEdgeError(msg)
            object.__setattr__(self, each.name, column)

    def __len__(self) -> int:
        """Return the number of turns."""
        return int(self.session.size)

    def part(self, chosen: slice | Ints) -> Turns:
        """Return some of the turns."""
        return Turns(self.session[chosen], self.turn[chosen], self.prompt_tokens[chosen])

    def with_single(self, count: int) -> Turns:
        """Return the turns followed by so many requests that belong to no session."""
        none = np.zeros(count, dtype=np.int64)
        columns = ((self.session, none + NOBODY), (self.turn, none), (self.prompt_tokens, none))
        return Turns(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True, eq=False)
class SessionRules:
    """What warm states cost, where they find room, and which handover is allowed.

    Parameters
    ----------
    prefill_s
        Prefill time of 0, 1, 2, … tokens up to the longest prompt [s].
    hit_tokens
        Tokens that a site's caches save a request type at the start [token], shape (n, Q).
    answer_tokens
        Answer of each request type [token], shape (Q,).
    kv_bytes_per_token
        Keys and values of a token κ [B].
    handover
        A name in `geoedge.scenario.sessions.HANDOVERS`.
    host_memory_bytes
        Room for warm states [B], one or shape (n,).
    host_bytes_per_s
        Rate from host memory to the GPU [B/s].
    backhaul_bytes_per_s
        Rate at which a site receives a state [B/s], one or shape (n,). Fetches do not wait for each other.
    keep_s
        Time for which an unused state is kept [s].
    longest_tokens
        Longest state of each request type that another turn may follow, none longer being kept [token], shape (Q,);
        None: any.

    Raises
    ------
    GeoEdgeError
        If a value is out of its range.
    """

    prefill_s: Floats
    hit_tokens: Ints
    answer_tokens: Ints
    kv_bytes_per_token: int
    handover: str
    host_memory_bytes: npt.ArrayLike
    host_bytes_per_s: float
    backhaul_bytes_per_s: npt.ArrayLike
    keep_s: float
    longest_tokens: Ints | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        known("handover", self.handover, HANDOVERS)
        for name in ("kv_bytes_per_token", "host_bytes_per_s", "backhaul_bytes_per_s", "keep_s"):
            if not (np.asarray(getattr(self, name)) > 0).all():
                msg = f"`{name}` must be above 0, not {getattr(self, name)}"
                raise GeoEdgeError(msg)
        if np.shape(self.hit_tokens)[1:] != (np.size(self.answer_tokens),):
            msg = (
                f"`hit_tokens` must have a column for each of {np.size(self.answer_tokens)} request types, not shape "
                f"{np.shape(self.hit_tokens)}"
            )
            raise GeoEdgeError(msg)


@dataclass(frozen=True, eq=False)
class TurnRecords:
    """What became of every request as a turn, in the order of the requests."""

    session: Ints
    turn: Ints
    prompt_tokens: Ints
    """Prompt with all its history [token]."""
    warm_tokens: Ints
    """Tokens of the warm state that was used [token]."""
    outcome: npt.NDArray[np.int8]
    """Code into `geoedge.serving.sessions.OUTCOMES`."""
    moved_bytes: Ints
    """Bytes fetched over the backhaul [B]."""
    stall_s: Floats
    """Time that the start waited for a fetched state, a part of the prefill [s]."""
    reload_s: Floats
    """Time from host memory to the GPU, a part of the prefill [s]."""

    def columns(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """Return all columns by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def make_warm(rules: SessionRules, n: int) -> Warm:
    """Return empty host memories under some rules.

    Parameters
    ----------
    rules
        The rules.
    n
        Number of sites.

    Raises
    ------
    GeoEdgeError
        If the rules are for another number of sites.
    """
    if len(rules.hit_tokens) != n:
        msg = f"`hit_tokens` must have one row for each of {n} sites, not {len(rules.hit_tokens)}"
        raise GeoEdgeError(msg)
    answer = np.ascontiguousarray(rules.answer_tokens, dtype=np.int64)
    hosts = np.zeros(n, dtype=HOST)
    hosts["oldest"] = hosts["newest"] = NOBODY
    hosts["limit"] = spread("host_memory_bytes", rules.host_memory_bytes, n)
    return Warm(
        np.zeros(0, dtype=TURN),
        np.zeros(0, dtype=SESSION),
        hosts,
        np.ascontiguousarray(rules.prefill_s, dtype=np.float64),
        np.array(rules.hit_tokens, dtype=np.int64),
        answer,
        np.full(answer.shape, np.iinfo(np.int64).max)
        if rules.longest_tokens is None
        else rules.longest_tokens,
        np.array(spread("backhaul_bytes_per_s", rules.backhaul_bytes_per_s, n), dtype=np.float64),
        np.array(spread("backhaul_bytes_per_s", rules.backhaul_bytes_per_s, n), dtype=np.float64),
        float(rules.host_bytes_per_s),
        int(rules.kv_bytes_per_token),
        float(rules.keep_s),
        HANDOVERS.index(rules.handover),
    )


def write_turns(warm: Warm, first: int, rows: int, turns: Turns | None, count: int) -> Warm:
    """Return the warm states with the turns of new requests, in rows that begin at `first`.

    Parameters
    ----------
    warm
        The warm states.
    first
        Row of the first new request.
    rows
        Rows that there are for requests.
    turns
        The new turns; requests that belong to no session if omitted.
    count
        Number of new requests.

    Raises
    ------
    GeoEdgeError
        If there is not one turn a request, or a prompt is longer than its prefill time is known for.
    """
    if turns is not None and len(turns) != count:
        msg = f"`turns` must have one row for each of {count} requests, not {len(turns)}"
        raise GeoEdgeError(msg)
    if turns is not None and turns.prompt_tokens.max(initial=0) >= warm.seconds.size:
        msg = (
            f"`prompt_tokens` of a turn is {turns.prompt_tokens.max()}, but prefill times are known up to "
            f"{warm.seconds.size - 1} tokens only"
        )
        raise GeoEdgeError(msg)
    warm = _grown(warm, rows, 0 if turns is None else int(turns.session.max(initial=-1)) + 1)
    part = warm.turns[first : first + count]
    part[:] = np.zeros(1, dtype=TURN)
    part["session"] = NOBODY
    if turns is not None:
        part["session"], part["turn"], part["prompt"] = turns.session, turns.turn, turns.prompt_tokens
    return warm


def _grown(warm: Warm, rows: int, sessions: int) -> Warm:
    """Return the warm states with room for so many requests, and for sessions half as many again as are there."""
    if rows > warm.turns.size:
        room = np.zeros(rows, dtype=TURN)
        room[: warm.turns.size] = warm.turns
        warm = warm._replace(turns=room)
    if sessions > warm.sessions.size:
        room = np.zeros(max(sessions, warm.sessions.size * 3 // 2), dtype=SESSION)
        room["site"] = room["turn"] = room["older"] = room["newer"] = NOBODY
        room[: warm.sessions.size] = warm.sessions
        warm = warm._replace(sessions=room)
    return warm


def turn_records_of(rows: npt.NDArray[np.void]) -> TurnRecords:
    """Return the records of `TURN` rows."""
    return TurnRecords(
        session=rows["session"].copy(),
        turn=rows["turn"].astype(np.int64),
        prompt_tokens=rows["prompt"].astype(np.int64),
        warm_tokens=rows["hit"].astype(np.int64),
        outcome=rows["outcome"].astype(np.int8),
        moved_bytes=rows["moved"].copy(),
        stall_s=rows["stall"].copy(),
        reload_s=rows["reload"].copy(),
    )


def change_backhaul(
    rates: Mapping[int, float], now: float, requests: npt.NDArray[np.void], warm: Warm
) -> None:
    """Let sites receive warm states at other rates [B/s] from now on [s].

    Parameters
    ----------
    rates
        New rate by site; at 0 nothing comes.
    now
        The clock.
    requests
        Rows of all requests so far, `geoedge.serving.stations.REQUEST`; those that have not started may be fetching.
    warm
        Warm states.
    """
    fetching = np.flatnonzero(np.isnan(requests["started"]) & (warm.turns["ready"][: requests.size] > now))
    for site, rate in rates.items():
        if rate != warm.backhaul[site]:
            retime(fetching[requests["site"][fetching] == site], site, now, rate, warm)
            warm.backhaul[site] = rate
