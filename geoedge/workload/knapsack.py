"""Which prefixes a cache of given size should keep: the best ancestor-closed set, exactly, and profiles made of such.

The value of a set is the mean prefill time that it saves, Σ_q p_q [g(L_q) − g(L_q − d_q)], with d_q the deepest
stored vertex on the prompt's path. Over ancestor-closed sets it is a sum of what each vertex adds to its parent.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoedge.errors import ScenarioError
from geoedge.workload.forest import ROOT, PrefixForest
from geoedge.workload.hardware import Prefill, concurrency
from geoedge.workload.profiles import CacheProfile, dominated, incremental_values

__all__ = ["PrefixChoice", "best_prefixes", "generate_profiles", "greedy_prefixes"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_MOST_CELLS = 2_000_000_000  # of the table of decisions, one bit each


@dataclass(frozen=True)
class PrefixChoice:
    """An ancestor-closed set of prefixes.

    Attributes
    ----------
    vertices
        Vertices of the forest C.
    tokens
        Tokens that it stores, each once, Eq. (5) [token].
    value
        Mean prefill time that it saves [s].
    """

    vertices: frozenset[int]
    tokens: int
    value: float


def best_prefixes(
    forest: PrefixForest, values: npt.ArrayLike, budget_tokens: int, *, block_tokens: int | None = None
) -> PrefixChoice:
    """Return the ancestor-closed set of largest value within a memory budget, of least memory among such.

    The knapsack on a forest is solved exactly: vertices are taken in an order in which a subtree is contiguous, and
    a vertex that is left out skips its subtree. Time and memory O(V × budget / unit), where the unit is the largest
    number of tokens that divides all segments; a memory bit is one decision.

    Parameters
    ----------
    forest
        The prefix forest, V vertices.
    values
        What each vertex adds to its parent [s], shape (V,), not negative; see `incremental_values`.
    budget_tokens
        Memory [token].
    block_tokens
        Size of a block [token], if memory is given out in whole blocks to each vertex; exact to the token if omitted.

    Raises
    ------
    ScenarioError
        If values or budget make no sense, or the table would be too large.

    Examples
    --------
    >>> forest = PrefixForest.from_edges([("a", None, 4), ("ab", "a", 6), ("c", None, 3)])
    >>> sorted(best_prefixes(forest, [1.0, 5.0, 2.0], 6).vertices)
    [0, 1]
    """
    return _Knapsack(forest, values, budget_tokens, block_tokens).best(budget_tokens)


def greedy_prefixes(forest: PrefixForest, values: npt.ArrayLike, budget_tokens: int) -> PrefixChoice:
    """Return the set that grows by the vertex of largest value per token next to it, while one fits.

    It is quick and explains itself, but can miss a good part of the optimum: a poor vertex hides a rich one behind
    it, or the room left over fits nothing. `best_prefixes` misses nothing.

    Parameters
    ----------
    forest, values, budget_tokens
        As in `best_prefixes`.
    """
    gain = _checked(forest, values, budget_tokens)
    size = _segments(forest)
    below = _children(forest)
    open_ = [(-gain[v] / size[v], v) for v in below[ROOT]]
    heapq.heapify(open_)
    chosen: set[int] = set()
    left = budget_tokens
    while open_:
        _, vertex = heapq.heappop(open_)
        if size[vertex] > left or gain[vertex] <= 0.0:
            continue
        chosen.add(vertex)
        left -= int(size[vertex])
        for child in below[vertex]:
            heapq.heappush(open_, (-gain[child] / size[child], child))
    return _choice(frozenset(chosen), size, gain)


def generate_profiles(
    forest: PrefixForest,
    request_vertices: Sequence[int],
    type_probability: npt.ArrayLike,
    prompt_tokens: npt.ArrayLike,
    curve: Prefill,
    *,
    memory_bytes: int,
    runtime_bytes_per_request: int,
    kv_bytes_per_token: int,
    budgets_bytes: Sequence[int] | None = None,
    block_tokens: int | None = None,
) -> tuple[CacheProfile, ...]:
    """Return candidate profiles: the empty fallback and the best set for each budget, dominated ones left out.

    Parameters
    ----------
    forest
        The prefix forest.
    request_vertices
        Deepest vertex of each type's path, or `ROOT`, length Q.
    type_probability, prompt_tokens
        p_q [–] and L_q [token], shape (Q,).
    curve
        Prefill curve g.
    memory_bytes, runtime_bytes_per_request
        Memory of a site for caches and running requests M, and of a running request m_run [B].
    kv_bytes_per_token
        κ [B/token].
    budgets_bytes
        Memory of the caches [B]; by default one for each number of requests that may run beside them, as any
        memory between costs as many requests and stores less.
    block_tokens
        As in `best_prefixes`.

    Returns
    -------
    tuple of CacheProfile
        By memory; names are ``fallback`` and ``keeps 12345`` with the tokens stored.

    Raises
    ------
    ScenarioError
        If no request fits beside an empty cache, or a number makes no sense.
    """
    most = concurrency(memory_bytes, 0, runtime_bytes_per_request)
    if most < 1:
        msg = (
            f"generate_profiles: `memory_bytes` is {memory_bytes}, but must hold one request of "
            f"{runtime_bytes_per_request} B; take more memory or shorter prompts"
        )
        raise ScenarioError(msg)
    if budgets_bytes is None:
        budgets_bytes = [memory_bytes - count * runtime_bytes_per_request for count in range(1, most + 1)]
    values = incremental_values(forest, request_vertices, type_probability, prompt_tokens, curve)
    budgets = [budget // kv_bytes_per_token for budget in budgets_bytes]
    table = _Knapsack(forest, values, max(budgets, default=0), block_tokens)
    sets = {frozenset[int](): 0} | {choice.vertices: choice.tokens for choice in map(table.best, budgets)}
    profiles = [
        CacheProfile(f"keeps {tokens}" if tokens else "fallback", vertices, tokens * kv_bytes_per_token)
        for vertices, tokens in sorted(sets.items(), key=lambda item: item[1])
    ]
    stored = np.array([profile.persistent_bytes for profile in profiles])
    servers = np.array([concurrency(memory_bytes, int(b), runtime_bytes_per_request) for b in stored])
    hits = forest.hit_matrix([profile.vertices for profile in profiles], request_vertices)
    kept = ~dominated(stored, hits, servers) & (servers >= 1)
    return tuple(profile for profile, keep in zip(profiles, kept, strict=True) if keep)


class _Knapsack:
    """The decisions for every memory up to the largest budget; sets are read off them."""

    def __init__(
        self, forest: PrefixForest, values: npt.ArrayLike, budget_tokens: int, block_tokens: int | None
    ) -> None:
        self._gain = _checked(forest, values, budget_tokens)
        self._size = _segments(forest)
        if block_tokens is not None and block_tokens < 1:
            msg = f"best_prefixes: `block_tokens` is {block_tokens}, but must be 1 or more"
            raise ScenarioError(msg)
        self._order, self._skip = _order(forest, _worth(forest, self._gain))
        cost = self._size[self._order]
        self._unit = block_tokens or int(math.gcd(*(int(c) for c in cost)) or 1)
        self._cost = -(-cost // self._unit)
        room = min(budget_tokens // self._unit, int(self._cost.sum()))
        if self._order.size * (room + 1) > _MOST_CELLS:
            msg = (
                f"best_prefixes: {self._order.size} vertices with memory in units of {self._unit} tokens make a table of "
                f"{self._order.size * (room + 1):.3g} cells, at most {_MOST_CELLS:.3g}; give `block_tokens`, such as 16"
            )
            raise ScenarioError(msg)
        self._values, self._taken = self._solve(room)

    def _solve(self, room: int) -> tuple[Floats, npt.NDArray[np.uint8]]:
        """Return the best value for each memory and the packed decisions, from the last vertex to the first."""
        count = self._order.size
        taken = np.zeros((count, (room + 8) // 8), dtype=np.uint8)
        ahead: dict[int, Floats] = {count: np.zeros(room + 1)}
        needed = np.bincount(self._skip, minlength=count + 1) + 1
        needed[0] = 1
        for i in range(count - 1, -1, -1):
            after, beyond, cost = ahead[i + 1], ahead[self._skip[i]], int(self._cost[i])
            best = beyond.copy()
            if cost <= room:
                inside = self._gain[self._order[i]] + after[: room + 1 - cost]
                better = inside > best[cost:]
                best[cost:][better] = inside[better]
                row = np.zeros(room + 1, dtype=np.bool_)
                row[cost:] = better
                taken[i] = np.packbits(row)
            ahead[i] = best
            for used in (i + 1, int(self._skip[i])):
                needed[used] -= 1
                if needed[used] == 0:
                    del ahead[used]
        return ahead[0], taken

    def best(self, budget_tokens: int) -> PrefixChoice:
        """Return the best set within a budget, of least memory."""
        room = min(budget_tokens // self._unit, self._values.size - 1)
        left = int(np.searchsorted(self._values[: room + 1], self._values[room]))
        chosen, i = [], 0
        while i < self._order.size:
            if self._taken[i, left // 8] >> (7 - left % 8) & 1:
                chosen.append(int(self._order[i]))
                left -= int(self._cost[i])
                i += 1
            else:
                i = int(self._skip[i])
        return _choice(frozenset(chosen), self._size, self._gain)


def _choice(vertices: frozenset[int], size: Ints, gain: Floats) -> PrefixChoice:
    chosen = sorted(vertices)
    return PrefixChoice(vertices, int(size[chosen].sum()), math.fsum(gain[chosen]))


def _checked(forest: PrefixForest, values: npt.ArrayLike, budget_tokens: int) -> Floats:
    """Return the values as an array, or say in one line what is wrong with them or the budget."""
    gain = np.asarray(values, dtype=np.float64)
    if gain.shape != (len(forest),) or not (np.isfinite(gain) & (gain >= 0.0)).all():
        msg = f"best_prefixes: `values` must be {len(forest)} finite numbers >= 0, one a vertex"
        raise ScenarioError(msg)
    if budget_tokens < 0:
        msg = f"best_prefixes: `budget_tokens` is {budget_tokens}, but must be 0 or more"
        raise ScenarioError(msg)
    return gain


def _segments(forest: PrefixForest) -> Ints:
    """Return the tokens that each vertex adds to its parent, shape (V,)."""
    return np.array([forest.segment_tokens(vertex) for vertex in range(len(forest))], dtype=np.int64)


def _children(forest: PrefixForest) -> dict[int, list[int]]:
    """Return the children of each vertex and of `ROOT`."""
    below: dict[int, list[int]] = {vertex: [] for vertex in range(ROOT, len(forest))}
    for vertex, parent in enumerate(forest.parents):
        below[parent].append(vertex)
    return below


def _worth(forest: PrefixForest, gain: Floats) -> npt.NDArray[np.bool_]:
    """Return which vertices add something themselves or have a descendant that does, shape (V,)."""
    worth = gain > 0.0
    for vertex in sorted(range(len(forest)), key=forest.depth_tokens.__getitem__, reverse=True):
        parent = forest.parents[vertex]
        if parent != ROOT:
            worth[parent] |= worth[vertex]
    return worth


def _order(forest: PrefixForest, worth: npt.NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the vertices worth a look, parents first and subtrees contiguous, and where each subtree ends."""
    below, place = _children(forest), dict[int, int]()
    order: list[int] = []
    skip: list[int] = []
    stack = [(root, False) for root in reversed(below[ROOT]) if worth[root]]
    while stack:
        vertex, leaving = stack.pop()
        if leaving:
            skip[place[vertex]] = len(order)
            continue
        place[vertex] = len(order)
        order.append(vertex)
        skip.append(0)
        stack.append((vertex, True))
        stack.extend((child, False) for child in reversed(below[vertex]) if worth[child])
    return np.array(order, dtype=np.int64), np.array(skip, dtype=np.int64)
