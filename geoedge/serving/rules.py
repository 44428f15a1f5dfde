"""The rules by which routers choose, on what they believe: one cost for each site, and one way to pick.

Costs are the less the better. Policies of our own are in seconds; the published ones keep the units of their
documents, and their prefix knowledge is the hit of the profile that a site advertises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.policies import Rule
from geoedge.serving.chance import uniform

__all__ = ["Beliefs", "make_beliefs", "pick"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

SECONDS, SOFTMAX, TWO_CHOICES = int(Rule.SECONDS), int(Rule.SOFTMAX), int(Rule.TWO_CHOICES)
DYNAMO, SGLANG, STACK = int(Rule.DYNAMO), int(Rule.SGLANG), int(Rule.STACK)
LLM_D, PREBLE = int(Rule.LLM_D), int(Rule.PREBLE)
DRAWS = 8
"""Random numbers that a choice may use; more would run into those of the next."""


class Beliefs(NamedTuple):
    """What a router believes of all sites when it looks at one request, each of shape (n,)."""

    able: Flags
    """Whether the site may be chosen at all."""
    radio: Floats
    """Radio delay [s]."""
    prefill: Floats
    """Residual prefill of the request [s]."""
    hit: Floats
    """Share of the prompt's tokens that is cached."""
    wait: Floats
    """Advertised wait [s]."""
    sigma: Floats
    """Its standard deviation [s]."""
    there: Floats
    """Requests in the system."""
    servers: Floats
    pace: Floats
    """Mean service over servers: the wait that one more request ahead means [s]."""
    held: Floats
    """Tokens that the site caches of all prompts."""
    cost: Floats
    """What the rule makes of it, the less the better."""


def make_beliefs(n: int) -> Beliefs:
    """Return room for the beliefs of n sites."""
    beliefs = Beliefs(np.zeros(n, dtype=np.bool_), *(np.zeros(n) for _ in Beliefs._fields[1:]))
    beliefs.servers[:] = 1.0
    return beliefs


@inlined
def _seconds(b: Beliefs, weights: Floats) -> None:
    """Radio delay, prefill, wait and margin, each as often as the policy counts it, Eqs. (21, 53, 54)."""
    for i in range(b.cost.size):
        b.cost[i] = b.radio[i] + weights[0] * b.prefill[i]
        if weights[1] > 0:
            b.cost[i] += weights[1] * b.wait[i] + weights[2] * b.sigma[i]


@inlined
def _dynamo(b: Beliefs, weight: float, block: float, tokens: float, blocks_each: float) -> None:
    """Blocks to prefill, weighted, and blocks in use for decoding."""
    for i in range(b.cost.size):
        b.cost[i] = weight * (tokens * (1.0 - b.hit[i]) / block) + b.there[i] * blocks_each


@inlined
def _sglang(b: Beliefs, threshold: float, absolute: float, relative: float) -> None:
    """Shortest queue if loads are out of balance; else the longest match, or the emptiest cache if none is long."""
    most, least, match = -np.inf, np.inf, 0.0
    for i in range(b.cost.size):
        if b.able[i]:
            most, least, match = max(most, b.there[i]), min(least, b.there[i]), max(match, b.hit[i])
    for i in range(b.cost.size):
        if most - least > absolute and most > relative * least:
            b.cost[i] = b.there[i]
        elif match > threshold:
            b.cost[i] = -b.hit[i]
        else:
            b.cost[i] = b.held[i]


@inlined
def _stack(b: Beliefs, beta: float) -> None:
    """Load over the mean load, weighted, less the share of the prompt that is cached."""
    total, sites = 0.0, 0
    for i in range(b.cost.size):
        if b.able[i]:
            total, sites = total + b.there[i], sites + 1
    mean = total / max(sites, 1)
    for i in range(b.cost.size):
        b.cost[i] = beta * ((b.there[i] - mean) / max(1.0, mean)) - b.hit[i]


@inlined
def _llm_d(b: Beliefs, prefix: float, queue: float, memory: float) -> None:
    """Weighted scores of cached share, of queue between the longest and the shortest, and of free KV memory."""
    most, least = -np.inf, np.inf
    for i in range(b.cost.size):
        if b.able[i]:
            waiting = max(b.there[i] - b.servers[i], 0.0)
            most, least = max(most, waiting), min(least, waiting)
    for i in range(b.cost.size):
        waiting = max(b.there[i] - b.servers[i], 0.0)
        short = (most - waiting) / (most - least) if most > least else 1.0
        free = 1.0 - min(b.there[i] / b.servers[i], 1.0)
        b.cost[i] = -(prefix * b.hit[i] + queue * short + memory * free)


@inlined
def _preble(b: Beliefs, ratio: float) -> None:
    """Exploit the longest match if it is more than half of the prompt, unless its sites are too busy; else explore.

    Exploiting takes the site of least load among those of the longest match; exploring counts load and the prefill
    of what is not cached, both in seconds. States are pinned here, so that nothing is evicted for a request.
    """
    match, busy, idle = 0.0, np.inf, np.inf
    for i in range(b.cost.size):
        if b.able[i]:
            match = max(match, b.hit[i])
    for i in range(b.cost.size):
        load = b.there[i] * b.pace[i]
        b.cost[i] = load + b.prefill[i]
        if b.able[i]:
            idle = min(idle, load)
            if b.hit[i] == match:
                busy = min(busy, load)
    if match > 0.5 and busy <= ratio * idle:
        for i in range(b.cost.size):
            b.cost[i] = b.there[i] * b.pace[i] if b.hit[i] == match else np.inf


@inlined
def _least(b: Beliefs, draw: float) -> int:
    """Return the site of least cost: the first, or any of equals by a number from 0 to below 1 if it is not negative."""
    best, winner, equals = np.inf, -1, 0
    for i in range(b.cost.size):
        if b.able[i] and b.cost[i] < best:
            best, winner, equals = b.cost[i], i, 1
        elif b.able[i] and b.cost[i] == best:
            equals += 1
    if winner < 0 or draw < 0.0 or equals < 2:
        return winner
    left = int(draw * equals)
    for i in range(winner, b.cost.size):
        if b.able[i] and b.cost[i] == best:
            if left == 0:
                return i
            left -= 1
    return winner


@inlined
def _soft(b: Beliefs, scale: float, draw: float) -> int:
    """Return a site with probability proportional to exp(-cost / scale)."""
    best, total = np.inf, 0.0
    for i in range(b.cost.size):
        if b.able[i]:
            best = min(best, b.cost[i])
    for i in range(b.cost.size):
        if b.able[i] and b.cost[i] < np.inf:
            total += np.exp((best - b.cost[i]) / scale)
    reached, last = 0.0, -1
    for i in range(b.cost.size):
        if b.able[i] and b.cost[i] < np.inf:
            reached, last = reached + np.exp((best - b.cost[i]) / scale), i
            if reached > draw * total:
                return i
    return last


@inlined
def _normalised(b: Beliefs) -> None:
    """Stretch the costs of the able sites over 0..1."""
    most, least = -np.inf, np.inf
    for i in range(b.cost.size):
        if b.able[i]:
            most, least = max(most, b.cost[i]), min(least, b.cost[i])
    for i in range(b.cost.size):
        b.cost[i] = (b.cost[i] - least) / (most - least) if most > least else 0.0


@inlined
def _two(b: Beliefs, first: float, second: float, tie: float) -> int:
    """Return the one with fewer requests of two able sites drawn at random."""
    able = 0
    for i in range(b.cost.size):
        able += b.able[i]
    if able == 0:
        return -1
    one = int(first * able)
    other = int(second * (able - 1)) if able > 1 else one
    other += able > 1 and other >= one
    place, a, z = 0, -1, -1
    for i in range(b.cost.size):
        if b.able[i]:
            a, z = (i if place == one else a), (i if place == other else z)
            place += 1
    if b.there[a] == b.there[z]:
        return a if tie < 0.5 else z
    return a if b.there[a] < b.there[z] else z


@kernel
def pick(
    rule: int, numbers: Floats, b: Beliefs, tokens: float, blocks_each: float, luck: np.uint64, attempt: int
) -> int:
    """Return the site that a rule chooses of the able ones, -1 if there is none.

    Parameters
    ----------
    rule
        Code of `geoedge.policies.Rule`.
    numbers
        The rule's numbers; of `Rule.SECONDS` and `Rule.SOFTMAX` first how often prefill, wait and margin count.
    b
        What is believed; its costs are filled in.
    tokens
        Tokens of the prompt.
    blocks_each
        Blocks that a request holds in the mean.
    luck
        State of the random numbers of this request.
    attempt
        Closed sites that it has asked before.
    """
    draw = uniform(luck, DRAWS * attempt)
    if rule == SECONDS:
        _seconds(b, numbers)
        return _least(b, -1.0)
    if rule == SOFTMAX:
        _seconds(b, numbers)
        return _soft(b, numbers[3], draw)
    if rule == TWO_CHOICES:
        return _two(b, draw, uniform(luck, DRAWS * attempt + 1), uniform(luck, DRAWS * attempt + 2))
    if rule == DYNAMO:
        _dynamo(b, numbers[0], numbers[2], tokens, blocks_each)
        if numbers[1] > 0.0:
            _normalised(b)
            return _soft(b, numbers[1], draw)
    elif rule == SGLANG:
        _sglang(b, numbers[0], numbers[1], numbers[2])
    elif rule == STACK:
        _stack(b, numbers[0])
    elif rule == LLM_D:
        _llm_d(b, numbers[0], numbers[1], numbers[2])
    else:
        _preble(b, numbers[0])
    return _least(b, draw)
