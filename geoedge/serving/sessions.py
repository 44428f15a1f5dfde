"""Warm states of sessions: what a turn leaves in a site's host memory, and what it costs to use it.

A turn leaves the keys and values of its prompt and answer in the host memory of its site, where the next turn
may use them once the turn has finished. Each site has room for so many bytes: states are dropped when they were
not used for some time, and the least recently used one goes when another needs its room. The state that a turn
is routed for is held for it until it starts, and counts. A session has one state, that of its last turn.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from geoedge.compiled import inlined, kernel

__all__ = [
    "FRESH",
    "HOST",
    "LOST",
    "MIGRATE",
    "NOBODY",
    "OUTCOMES",
    "RE_PREFILL",
    "SESSION",
    "STAY",
    "TURN",
    "Warm",
    "drop",
    "expire",
    "hold",
    "keep",
    "local_s",
    "lose_all",
    "make_room",
    "prefill_at",
    "remember",
    "retime",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

OUTCOMES = ("fresh", "stay", "migrate", "re_prefill", "lost")
"""What became of a turn's warm state: there was none before the first turn; it was used where it lay; it was
fetched; it was given up for the site's own caches; or the session's state was nowhere any more."""
FRESH, STAY, MIGRATE, RE_PREFILL, LOST = range(len(OUTCOMES))
NOBODY = -1
"""No session: the end of a list, or a request that belongs to none."""

TURN = np.dtype(
    [
        ("session", "i8"),
        ("turn", "i4"),
        ("prompt", "i4"),
        ("hit", "i4"),
        ("outcome", "i4"),
        ("held", "i8"),
        ("moved", "i8"),
        ("ready", "f8"),
        ("due", "f8"),
        ("left", "f8"),
        ("stall", "f8"),
        ("reload", "f8"),
    ],
    align=True,
)
"""One request as a turn: prompt with history and warm tokens [token], bytes held for it until it starts and bytes
fetched [B], when those are there, when they would be at the usual rate [s], bytes that were left when the fetch last
stood still [B], what the start then waits for them, and the time from host memory [s]."""

SESSION = np.dtype(
    [
        ("site", "i4"),
        ("kept", "i4"),
        ("turn", "i4"),
        ("tokens", "i4"),
        ("used", "f8"),
        ("ready", "f8"),
        ("older", "i8"),
        ("newer", "i8"),
    ],
    align=True,
)
"""One session: where its last turn was sent, whether its state is kept there, which turn that was, tokens of the
state, when it was last used and from when it may be [s], and its neighbours by use."""

HOST = np.dtype(
    [
        ("oldest", "i8"),
        ("newest", "i8"),
        ("kept", "i8"),
        ("held", "i8"),
        ("limit", "i8"),
        ("peak", "i8"),
        ("evicted", "i8"),
        ("expired", "i8"),
        ("refused", "i8"),
    ]
)
"""One site's host memory: ends of the list by use, bytes kept and bytes held for turns on their way, room and the
most that was taken [B], states evicted, expired and never taken in."""


class Warm(NamedTuple):
    """All warm states, and what using them costs."""

    turns: npt.NDArray[np.void]
    """`TURN` rows, one a request, in the order of the requests."""
    sessions: npt.NDArray[np.void]
    """`SESSION` rows."""
    hosts: npt.NDArray[np.void]
    """`HOST` rows, shape (n,)."""
    seconds: Floats
    """Prefill time of 0, 1, 2, … tokens [s]."""
    hits: Ints
    """Tokens that a site's caches save a request type [token], shape (n, Q)."""
    answer: Ints
    """Answer of each request type [token], shape (Q,)."""
    longest: Ints
    """Longest state of each request type that another turn may follow [token], shape (Q,)."""
    backhaul: Floats
    """Rate at which a site receives states now [B/s], shape (n,)."""
    usual: Floats
    """The same while nothing is lost [B/s], shape (n,)."""
    host_rate: float
    """Rate from host memory to the GPU [B/s]."""
    kv_bytes: int
    """Keys and values of a token [B]."""
    keep_s: float
    """Time for which an unused state is kept [s]."""
    rule: int
    """Which handover, an index into `geoedge.scenario.sessions.HANDOVERS`."""


@inlined
def drop(s: int, warm: Warm) -> None:
    """Take session s's state out of its site's memory."""
    sessions, hosts = warm.sessions, warm.hosts
    i, older, newer = sessions[s]["site"], sessions[s]["older"], sessions[s]["newer"]
    if older == NOBODY:
        hosts[i]["oldest"] = newer
    else:
        sessions[older]["newer"] = newer
    if newer == NOBODY:
        hosts[i]["newest"] = older
    else:
        sessions[newer]["older"] = older
    hosts[i]["kept"] -= sessions[s]["tokens"] * warm.kv_bytes
    sessions[s]["kept"] = 0


@inlined
def expire(i: int, now: float, warm: Warm) -> None:
    """Drop the states of site i that were not used for too long."""
    sessions, hosts = warm.sessions, warm.hosts
    s = hosts[i]["oldest"]
    while s != NOBODY and sessions[s]["used"] + warm.keep_s < now:
        drop(s, warm)
        hosts[i]["expired"] += 1
        s = hosts[i]["oldest"]


@kernel
def make_room(i: int, needed: int, now: float, warm: Warm) -> bool:
    """Evict the least recently used states of site i until there is room; nothing if there can be none."""
    hosts = warm.hosts
    expire(i, now, warm)
    if hosts[i]["held"] + needed > hosts[i]["limit"]:
        return False
    while hosts[i]["kept"] + hosts[i]["held"] + needed > hosts[i]["limit"]:
        drop(hosts[i]["oldest"], warm)
        hosts[i]["evicted"] += 1
    return True


@inlined
def _note_peak(i: int, warm: Warm) -> None:
    hosts = warm.hosts
    hosts[i]["peak"] = max(hosts[i]["peak"], hosts[i]["kept"] + hosts[i]["held"])


@kernel
def keep(s: int, i: int, tokens: int, now: float, ready: float, warm: Warm) -> bool:
    """Keep a state of session s at site i as the most recently used; return whether there was room."""
    sessions, hosts = warm.sessions, warm.hosts
    if not make_room(i, tokens * warm.kv_bytes, now, warm):
        hosts[i]["refused"] += 1
        return False
    newest = hosts[i]["newest"]
    sessions[s]["site"], sessions[s]["kept"], sessions[s]["tokens"] = i, 1, tokens
    sessions[s]["used"], sessions[s]["ready"] = now, ready
    sessions[s]["older"], sessions[s]["newer"] = newest, NOBODY
    if newest == NOBODY:
        hosts[i]["oldest"] = s
    else:
        sessions[newest]["newer"] = s
    hosts[i]["newest"] = s
    hosts[i]["kept"] += tokens * warm.kv_bytes
    _note_peak(i, warm)
    return True


@inlined
def hold(k: int, i: int, warm: Warm) -> None:
    """Hold the bytes of turn k's state at site i until it starts there."""
    warm.turns[k]["held"] = warm.turns[k]["hit"] * warm.kv_bytes
    warm.hosts[i]["held"] += warm.turns[k]["held"]
    _note_peak(i, warm)


@inlined
def local_s(prompt: int, hit: int, cached: int, warm: Warm) -> tuple[float, float]:
    """Return reload and prefill [s] where a state of `hit` tokens lies in host memory and `cached` are on the GPU."""
    if hit > cached:
        return (hit - cached) * warm.kv_bytes / warm.host_rate, warm.seconds[prompt - hit]
    return 0.0, warm.seconds[prompt - cached]


@kernel
def lose_all(i: int, warm: Warm) -> None:
    """Lose all that site i keeps and holds."""
    hosts = warm.hosts
    while hosts[i]["oldest"] != NOBODY:
        drop(hosts[i]["oldest"], warm)
    hosts[i]["held"] = 0


@inlined
def _call_off(k: int, i: int, now: float, warm: Warm) -> None:
    """Let turn k at site i compute again what it fetches; what has come by now is moved all the same."""
    turns, rate = warm.turns, warm.backhaul[i]
    left = (turns[k]["ready"] - now) * rate if rate > 0.0 else turns[k]["left"]
    turns[k]["moved"] = max(0, turns[k]["moved"] - int(left))
    turns[k]["outcome"], turns[k]["hit"] = RE_PREFILL, 0


@kernel
def retime(rows: Ints, i: int, now: float, rate: float, warm: Warm) -> None:
    """Let the fetches of some turns to site i go on at another rate [B/s] from now on; at 0 they stand still."""
    turns, before = warm.turns, warm.backhaul[i]
    for k in rows:
        if before > 0.0:
            turns[k]["left"] = (turns[k]["ready"] - now) * before
        turns[k]["ready"] = now + turns[k]["left"] / rate if rate > 0.0 else np.inf


@kernel
def _prefill_of_turn(k: int, i: int, q: int, start: float, plain: float, warm: Warm) -> float:
    """Return what turn k takes before its first token at site i [s], and note the parts."""
    turns = warm.turns
    if turns[k]["session"] == NOBODY:
        return plain
    warm.hosts[i]["held"] -= turns[k]["held"]
    turns[k]["held"] = 0
    if turns[k]["turn"] == 0:
        return plain
    reload, prefill = local_s(turns[k]["prompt"], turns[k]["hit"], warm.hits[i, q], warm)
    stall = max(0.0, turns[k]["ready"] - start) if reload > 0.0 else 0.0
    again = warm.seconds[turns[k]["prompt"] - warm.hits[i, q]]
    if turns[k]["ready"] > turns[k]["due"] and stall + reload + prefill > again:
        _call_off(k, i, start, warm)
        stall, reload, prefill = 0.0, 0.0, again
    turns[k]["stall"], turns[k]["reload"] = stall, reload
    return float(stall + reload + prefill)


@kernel
def _remember_turn(k: int, i: int, q: int, start: float, finish: float, warm: Warm) -> None:
    """Keep what turn k leaves at site i, unless its session has gone on meanwhile, or cannot go on."""
    s, tokens = warm.turns[k]["session"], warm.turns[k]["prompt"] + warm.answer[q]
    if s != NOBODY and tokens <= warm.longest[q] and warm.sessions[s]["turn"] == warm.turns[k]["turn"]:
        keep(s, i, tokens, start, finish, warm)


def prefill_at(k: int, i: int, q: int, start: float, plain: float, warm: Warm | None) -> float:
    """Return the time before the first token of request k that starts at site i [s]; `plain` without sessions."""
    return plain if warm is None else _prefill_of_turn(k, i, q, start, plain, warm)


@overload(prefill_at, inline="always")  # type: ignore[untyped-decorator]
def _prefill_at(k: Any, i: Any, q: Any, start: Any, plain: Any, warm: Any) -> Any:
    def without(k: Any, i: Any, q: Any, start: Any, plain: Any, warm: Any) -> Any:
        return plain

    def within(k: Any, i: Any, q: Any, start: Any, plain: Any, warm: Any) -> Any:
        return _prefill_of_turn(k, i, q, start, plain, warm)

    return without if isinstance(warm, types.NoneType) else within


def remember(k: int, i: int, q: int, start: float, finish: float, warm: Warm | None) -> None:
    """Keep what request k leaves behind at site i from its finish on; nothing without sessions."""
    if warm is not None:
        _remember_turn(k, i, q, start, finish, warm)


@overload(remember, inline="always")  # type: ignore[untyped-decorator]
def _remember(k: Any, i: Any, q: Any, start: Any, finish: Any, warm: Any) -> Any:
    def without(k: Any, i: Any, q: Any, start: Any, finish: Any, warm: Any) -> Any:
        return None

    def within(k: Any, i: Any, q: Any, start: Any, finish: Any, warm: Any) -> Any:
        return _remember_turn(k, i, q, start, finish, warm)

    return without if isinstance(warm, types.NoneType) else within
