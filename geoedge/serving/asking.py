"""The loop of routers that look at every site and ask at the door: any policy, any number of routers, admission."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.serving.candidates import Ground, delay_power, squared_distance
from geoedge.serving.chance import mixed
from geoedge.serving.doors import OPEN, Doors, admits, nearest_site, review
from geoedge.serving.handover import see_turn, take_turn
from geoedge.serving.loop import reject, send
from geoedge.serving.routers import Routers, believed, hear, report_until
from geoedge.serving.rules import Beliefs, pick
from geoedge.serving.stations import Stations, free_releases

__all__ = ["Book", "Way", "serve_asking"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Way(NamedTuple):
    """How requests are routed."""

    rule: int
    """Code of `geoedge.policies.Rule`."""
    numbers: Floats
    """The rule's numbers."""
    listens: bool
    """Whether it heeds what sites report."""
    reach_s: float
    """Radio delay up to which sites are chosen among [s]; the nearest always counts."""
    shift: float
    """1 if requests reach sites after the radio delay, 0 if at once."""
    luck: np.uint64
    """State of the random numbers of all routers."""


class Book(NamedTuple):
    """What routers believe of sites that no report tells."""

    prefill: Floats
    """Prefill [s], shape (n, Q); infinite where a site does not serve a type."""
    hit: Floats
    """Share of the prompt's tokens that is cached, shape (n, Q)."""
    held: Floats
    """Tokens cached of all prompts, shape (n,)."""
    tokens: Floats
    """Prompt tokens, shape (Q,)."""
    blocks_each: float
    """Blocks that a request holds in the mean."""


@inlined
def _look(
    x: float,
    y: float,
    q: int,
    r: int,
    now: float,
    way: Way,
    ground: Ground,
    book: Book,
    scratch: Floats,
    routers: Routers,
    doors: Doors,
    b: Beliefs,
    free: npt.NDArray[np.bool_],
    stations: Stations,
) -> None:
    """Write down what router r believes of all sites for a request of type q at a place."""
    row = hear(r, now, routers)
    for i in range(free.size):
        free[i] = doors.state[i] == OPEN and book.prefill[i, q] < np.inf
        b.radio[i] = ground.coefficient * delay_power(squared_distance(x, y, i, ground), ground.exponent)
        b.prefill[i], b.hit[i], b.held[i] = book.prefill[i, q], book.hit[i, q], book.held[i]
        if way.listens and free[i]:
            told = believed(r, i, row, now, scratch, routers, stations)
            b.wait[i], b.sigma[i], b.there[i], b.pace[i] = told
            b.servers[i] = stations.sites[i]["concurrency"]


@inlined
def _within(reach_s: float, b: Beliefs, free: npt.NDArray[np.bool_]) -> None:
    """Let a router choose among the free sites within reach, and the nearest free one always."""
    near, nearest = np.inf, -1
    for i in range(free.size):
        b.able[i] = free[i] and b.radio[i] <= reach_s
        if free[i] and b.radio[i] < near:
            near, nearest = b.radio[i], i
    if nearest >= 0:
        b.able[nearest] = True


@kernel
def serve_asking(
    rows: Ints,
    now: Floats,
    x: Floats,
    y: Floats,
    router: Ints,
    way: Way,
    ground: Ground,
    book: Book,
    routers: Routers,
    doors: Doors,
    b: Beliefs,
    stations: Stations,
) -> None:
    """Route the requests of some rows, at times that do not fall, and let time pass at the sites they go to."""
    requests = stations.requests
    free, scratch = np.zeros(b.able.size, dtype=np.bool_), np.zeros(5)
    next_report = -np.inf
    for j in range(rows.size):
        k, at, r = rows[j], now[j], router[j]
        q = requests[k]["type"]
        if next_report <= at:
            next_report = report_until(at, routers, stations)
        _look(x[j], y[j], q, r, at, way, ground, book, scratch, routers, doors, b, free, stations)
        home, tokens = see_turn(k, q, at, book.tokens[q], b, stations, stations.warm)
        luck = mixed(mixed(way.luck, k), requests[k]["lost"])
        asked, chosen, redirects = -1, -1, 0
        while True:
            _within(way.reach_s, b, free)
            if asked < 0 and home >= 0 and free[home]:
                i = home
            else:
                i = pick(way.rule, way.numbers, b, tokens, book.blocks_each, luck, redirects)
            if i < 0:
                break
            if asked >= 0:
                doors.redirected[asked] += 1
                redirects += 1
            asked = i
            if doors.close_at == np.inf or admits(i, at, doors, stations):
                chosen = i
                break
            if redirects == doors.redirects:
                break
            free[i] = False
        requests[k]["redirects"] += redirects
        if chosen < 0:
            reject(k, asked if asked >= 0 else nearest_site(x[j], y[j], ground), doors, stations)
            continue
        take_turn(k, chosen, q, at, stations, stations.warm)
        d2, mark = squared_distance(x[j], y[j], chosen, ground), requests[k]["mark"]
        send(k, chosen, q, mark, at, redirects * doors.redirect_s, way.shift, d2, ground, stations)
        routers.sent[r, chosen] += 1.0
        if doors.close_at < np.inf:
            free_releases(chosen, at, stations)
            review(chosen, doors, stations)
