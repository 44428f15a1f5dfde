"""Compiled kernels of moving users: their next stays and trips, and where they are at an instant."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.compiled import kernel

__all__ = ["AT_HOME", "BACK", "DWELL", "LEG", "OUT", "advance_users", "locate_users"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int8]
States = npt.NDArray[np.uint64]
Legs = npt.NDArray[np.void]

LEG = np.dtype([("start", np.float64), ("end", np.float64), ("place", np.int32), ("stage", np.int32)])
"""A leg of a user's day: start and end [s], destination (-1 at home), and what it is."""

AT_HOME, OUT, DWELL, BACK = range(4)
"""What a leg of a user's day is: stay at home, way out, visit, way back."""

HOUR_S = 3600.0


@kernel
def _uniform(state: States, user: int) -> float:
    """Draw the user's next number in [0, 1) (splitmix64, one stream per user)."""
    state[user] += np.uint64(0x9E3779B97F4A7C15)
    z = state[user]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return float(z >> np.uint64(11)) * 2.0**-53


@kernel
def _leave_time(now: float, hazard: float, rate: Floats) -> float:
    """Return when the integral of the hourly rate [1/s] from `now` on reaches `hazard`; inf if it never does."""
    if rate.max() <= 0.0:
        return np.inf
    hour = int(np.floor(now / HOUR_S))
    time = now
    while True:
        per_second = rate[hour % 24]
        end = (hour + 1) * HOUR_S
        if per_second * (end - time) >= hazard and per_second > 0.0:
            return float(min(time + hazard / per_second, end))
        hazard -= per_second * (end - time)
        time = end
        hour += 1


@kernel
def _pick(cumulative: Floats, share: float) -> int:
    """Return the first place whose cumulative probability exceeds `share`."""
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > share:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def _next_leg(
    user: int,
    stage: int,
    place: int,
    now: float,
    state: States,
    node: Ints,
    rate: Floats,
    cumulative: Floats,
    dwell_s: Floats,
    toward_time: Floats,
    away_time: Floats,
) -> tuple[int, float]:
    """Return destination and end of the leg of kind `stage` that begins now."""
    if stage == OUT:
        place = _pick(cumulative[int(np.floor(now / HOUR_S)) % 24], _uniform(state, user))
        return place, now + toward_time[place, node[user]]
    if stage == DWELL:
        return place, now - dwell_s[place] * np.log1p(-_uniform(state, user))
    if stage == BACK:
        return place, now + away_time[place, node[user]]
    return -1, _leave_time(now, -np.log1p(-_uniform(state, user)), rate)


@kernel
def advance_users(
    until: float,
    keep_from: float,
    offset: Ints,
    legs: Legs,
    state: States,
    node: Ints,
    rate: Floats,
    cumulative: Floats,
    dwell_s: Floats,
    toward_time: Floats,
    away_time: Floats,
) -> tuple[Ints, Legs]:
    """Continue each user's legs until one ends after `until`, and drop those that ended by `keep_from`.

    Parameters
    ----------
    until, keep_from
        Instants [s]; each user's last leg ends at `keep_from` or later.
    offset, legs
        Legs in compressed rows by user.
    state
        State of each user's random stream, changed in place, shape (N,).
    node
        Node of routes at each user's home, shape (N,).
    rate
        Departure rate by hour [1/s], shape (24,).
    cumulative
        Cumulative probability of destinations by hour, shape (24, K).
    dwell_s
        Mean stay at each destination [s], shape (K,).
    toward_time, away_time
        Way from each node to each destination and back [s], shape (K, M).
    """
    users = len(node)
    new_offset = np.zeros(users + 1, dtype=np.int64)
    new_legs = np.empty(len(legs) + 4 * users + 4, dtype=LEG)
    n = 0
    for user in range(users):
        leg = offset[user + 1] - 1
        stage, place, now = legs[leg].stage, legs[leg].place, legs[leg].end
        for leg in range(offset[user], offset[user + 1]):
            if legs[leg].end > keep_from:
                new_legs[n] = legs[leg]
                n += 1
        while now <= until:
            if n + offset[users] - offset[user + 1] + 1 >= len(new_legs):
                longer = np.empty(2 * len(new_legs), dtype=LEG)
                longer[:n] = new_legs[:n]
                new_legs = longer
            stage = (stage + 1) % 4
            begin = now
            place, now = _next_leg(
                user, stage, place, begin, state, node, rate, cumulative, dwell_s, toward_time, away_time
            )
            new_legs[n].start, new_legs[n].end = begin, now
            new_legs[n].stage, new_legs[n].place = stage, place
            n += 1
        new_offset[user + 1] = n
    return new_offset, new_legs[:n].copy()


@kernel
def locate_users(
    user: Ints,
    time: Floats,
    offset: Ints,
    legs: Legs,
    node: Ints,
    toward_time: Floats,
    toward_edge: Small,
    away_time: Floats,
    away_edge: Small,
    edge_from: Small,
    edge_to: Small,
    edge_time: Floats,
) -> tuple[Codes, Small, Small, Floats]:
    """Return stage, destination, edge (-1 off the streets) and travelled share of it at instants, each shape (m,).

    Parameters
    ----------
    user, time
        Users and instants [s], shape (m,).
    offset, legs
        Legs in compressed rows by user.
    node
        Node of routes at each user's home, shape (N,).
    toward_time, toward_edge, away_time, away_edge
        Trees of routes, shape (K, M).
    edge_from, edge_to, edge_time
        Ends and travel time [s] of the edges, shape (E,).
    """
    count = len(user)
    now_stage = np.empty(count, dtype=np.int8)
    now_place = np.empty(count, dtype=np.int32)
    now_edge = np.full(count, -1, dtype=np.int32)
    fraction = np.zeros(count)
    for i in range(count):
        low, high = offset[user[i]], offset[user[i] + 1] - 1
        while low < high:
            middle = (low + high + 1) // 2
            if legs[middle].start <= time[i]:
                low = middle
            else:
                high = middle - 1
        leg = legs[low]
        now_stage[i], now_place[i] = leg.stage, leg.place
        j, here, elapsed = leg.place, node[user[i]], time[i] - leg.start
        if leg.stage == OUT:
            left = toward_time[j, here] - elapsed
            edge = toward_edge[j, here]
            while edge >= 0:
                now_edge[i] = edge
                fraction[i] = 1.0
                ahead = edge_to[edge]
                if toward_time[j, ahead] <= left:
                    fraction[i] = (toward_time[j, here] - left) / edge_time[edge]
                    break
                here = ahead
                edge = toward_edge[j, here]
        elif leg.stage == BACK:
            edge = away_edge[j, here]
            while edge >= 0:
                now_edge[i] = edge
                behind = edge_from[edge]
                if away_time[j, behind] <= elapsed:
                    fraction[i] = (elapsed - away_time[j, behind]) / edge_time[edge]
                    break
                here = behind
                edge = away_edge[j, here]
    return now_stage, now_place, now_edge, fraction
