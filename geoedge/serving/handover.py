"""Where the next turn of a session goes, and what becomes of the state that its last turn left."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import overload

from geoedge.compiled import inlined, kernel
from geoedge.serving.rules import Beliefs
from geoedge.serving.sessions import (
    FRESH,
    LOST,
    MIGRATE,
    NOBODY,
    RE_PREFILL,
    STAY,
    Warm,
    drop,
    expire,
    hold,
    local_s,
    make_room,
)
from geoedge.serving.stations import Stations, advance

__all__ = ["BY_COST", "FETCH", "RECOMPUTE", "REMAIN", "find_state", "option", "see_turn", "take_turn"]

BY_COST, REMAIN, FETCH, RECOMPUTE = range(4)
"""Codes of `geoedge.scenario.sessions.HANDOVERS`."""


@kernel
def find_state(k: int, now: float, stations: Stations, warm: Warm) -> tuple[int, int]:
    """Return the site that keeps a usable state for turn k and its tokens; `NOBODY` and 0 if none does."""
    sessions, s = warm.sessions, warm.turns[k]["session"]
    i = sessions[s]["site"]
    if i == NOBODY or sessions[s]["turn"] >= warm.turns[k]["turn"]:
        return NOBODY, 0
    advance(i, now, stations)
    expire(i, now, warm)
    if not sessions[s]["kept"] or sessions[s]["ready"] > now:
        return NOBODY, 0
    return int(i), int(sessions[s]["tokens"])


@inlined
def option(i: int, home: int, hit: int, prompt: int, cached: int, warm: Warm) -> tuple[int, float]:
    """Return what is best done with a state at site i, and the time from start to first token [s].

    `home` keeps a state of `hit` tokens, and `cached` tokens are on site i's GPU. A fetch is counted whole, though
    what of it passes while the turn is on its way and waits costs nothing: else all sites whose waits are shorter
    than a fetch would cost the same. Over a backhaul that is lost nothing is fetched.
    """
    again = warm.seconds[prompt - cached]
    if home == NOBODY:
        return LOST, again
    if i != home and (warm.rule in (RECOMPUTE, REMAIN) or hit <= cached or warm.backhaul[i] == 0.0):
        return RE_PREFILL, again
    reload, prefill = local_s(prompt, hit, cached, warm)
    used = reload + prefill
    if i != home:
        used += (hit - cached) * warm.kv_bytes / warm.backhaul[i]
    if warm.rule == BY_COST and again < used:
        return RE_PREFILL, again
    return (STAY if i == home else MIGRATE), used


@kernel
def _see_turn(k: int, q: int, now: float, b: Beliefs, stations: Stations, warm: Warm) -> tuple[int, float]:
    """Return where turn k must go, if anywhere, and its prompt [token]; write down what sites can do for it.

    Rules that follow the user see sites as if there were no state.
    """
    turns = warm.turns
    prompt = turns[k]["prompt"]
    home, hit = find_state(k, now, stations, warm)
    seen = home if warm.rule == BY_COST else NOBODY
    for i in range(b.prefill.size):
        cached = warm.hits[i, q]
        outcome, b.prefill[i] = option(i, seen, hit, prompt, cached, warm)
        b.hit[i] = (max(hit, cached) if outcome in (STAY, MIGRATE) else cached) / prompt
    return (home if warm.rule == REMAIN else NOBODY), float(prompt)


@kernel
def _take_state(k: int, i: int, q: int, now: float, stations: Stations, warm: Warm) -> None:
    """Do with the state of turn k's session what is best at site i, to which the turn is routed now.

    A state that is used is held for the turn; any other is given up. Where there is no room for a fetched state,
    the turn computes it again; a silent site sends none. A turn that is routed again after its session has gone on
    leaves the session alone.
    """
    turns, sessions = warm.turns, warm.sessions
    s, prompt, cached = turns[k]["session"], turns[k]["prompt"], warm.hits[i, q]
    home, hit = find_state(k, now, stations, warm)
    latest = sessions[s]["turn"] <= turns[k]["turn"]
    outcome = FRESH
    if turns[k]["turn"] > 0:
        outcome, _ = option(i, home, hit, prompt, cached, warm)
    if latest and sessions[s]["kept"]:
        drop(s, warm)
    if outcome == MIGRATE and stations.sites[home]["silent"]:
        outcome = LOST
    if outcome == MIGRATE:
        advance(i, now, stations)
        if not make_room(i, hit * warm.kv_bytes, now, warm):
            outcome = RE_PREFILL
    turns[k]["outcome"] = outcome
    turns[k]["hit"] = turns[k]["held"] = turns[k]["moved"] = 0
    turns[k]["ready"] = turns[k]["due"] = turns[k]["left"] = turns[k]["stall"] = turns[k]["reload"] = 0.0
    if outcome in (STAY, MIGRATE):
        turns[k]["hit"] = hit
        hold(k, i, warm)
    if outcome == MIGRATE:
        turns[k]["moved"] = max(0, hit - cached) * warm.kv_bytes
        turns[k]["ready"] = now + turns[k]["moved"] / warm.backhaul[i]
        turns[k]["due"] = now + turns[k]["moved"] / warm.usual[i]
    if latest:
        sessions[s]["site"], sessions[s]["turn"] = i, turns[k]["turn"]


def see_turn(
    k: int,
    q: int,
    now: float,
    tokens: float,
    b: Beliefs,
    stations: Stations,
    warm: Warm | None,
) -> tuple[int, float]:
    """Return where request k must go, if anywhere, and its prompt [token]; a later turn changes what is believed.

    `NOBODY` and `tokens` without sessions, and for first turns.
    """
    if warm is None or warm.turns[k]["session"] == NOBODY or warm.turns[k]["turn"] == 0:
        return NOBODY, tokens
    return _see_turn(k, q, now, b, stations, warm)


@overload(see_turn, inline="always")  # type: ignore[untyped-decorator]
def _see_turn_of(k: Any, q: Any, now: Any, tokens: Any, b: Any, stations: Any, warm: Any) -> Any:
    def without(k: Any, q: Any, now: Any, tokens: Any, b: Any, stations: Any, warm: Any) -> Any:
        return NOBODY, tokens

    def within(k: Any, q: Any, now: Any, tokens: Any, b: Any, stations: Any, warm: Any) -> Any:
        place = NOBODY
        if warm.turns[k]["session"] != NOBODY and warm.turns[k]["turn"] > 0:
            place, tokens = _see_turn(k, q, now, b, stations, warm)
        return place, tokens

    return without if isinstance(warm, types.NoneType) else within


def take_turn(k: int, i: int, q: int, now: float, stations: Stations, warm: Warm | None) -> None:
    """Do with a warm state what is best where request k is routed to, site i; nothing without sessions."""
    if warm is not None and warm.turns[k]["session"] != NOBODY:
        _take_state(k, i, q, now, stations, warm)


@overload(take_turn, inline="always")  # type: ignore[untyped-decorator]
def _take_turn(k: Any, i: Any, q: Any, now: Any, stations: Any, warm: Any) -> Any:
    def without(k: Any, i: Any, q: Any, now: Any, stations: Any, warm: Any) -> Any:
        return None

    def within(k: Any, i: Any, q: Any, now: Any, stations: Any, warm: Any) -> Any:
        if warm.turns[k]["session"] != NOBODY:
            _take_state(k, i, q, now, stations, warm)

    return without if isinstance(warm, types.NoneType) else within
