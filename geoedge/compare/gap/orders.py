"""Orders of effects: which are possible, and Shapley values over all of them.

A world is a set of effects that are on. Some effects make sense only after others (a real layout needs the land it
stands on), so an order is a linear extension of "comes after"; Shapley's value of an effect is its mean change over
all orders, each as likely. Orders are not listed but counted: paths through the lattice of possible worlds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeAlias

__all__ = ["World", "chain_weights", "count_orders", "marginals", "possible_worlds", "shapley_weights"]

World: TypeAlias = frozenset[str]
"""Effects that are on."""
After: TypeAlias = Mapping[str, frozenset[str]]
"""What must be on before each effect."""
Weights: TypeAlias = dict[World, float]
"""A linear combination of what worlds answer."""


def possible_worlds(after: After) -> list[World]:
    """Return all worlds that some order passes through, small ones first.

    Parameters
    ----------
    after
        What must be on before each effect.
    """
    layer: set[World] = {frozenset()}
    found: list[World] = []
    while layer:
        found += sorted(layer, key=sorted)
        layer = {world | {effect} for world in layer for effect in _next(after, world)}
    return found


def _next(after: After, world: World) -> list[str]:
    return [effect for effect, needs in after.items() if effect not in world and needs <= world]


def _paths(after: After) -> tuple[dict[World, int], dict[World, int]]:
    """Return in how many ways each world is reached from the empty one, and reaches the full one."""
    worlds = possible_worlds(after)
    reached = dict.fromkeys(worlds, 0)
    reached[frozenset()] = 1
    for world in worlds:
        for effect in _next(after, world):
            reached[world | {effect}] += reached[world]

    @cache
    def onward(world: World) -> int:
        following = _next(after, world)
        return sum(onward(world | {effect}) for effect in following) if following else 1

    return reached, {world: onward(world) for world in worlds}


def count_orders(after: After) -> int:
    """Return the number of possible orders."""
    return _paths(after)[1][frozenset()]


def chain_weights(order: Sequence[str]) -> dict[str, Weights]:
    """Return each effect's change in one order, as a combination of worlds.

    Parameters
    ----------
    order
        Effects, first to last.
    """
    worlds = [frozenset(order[:k]) for k in range(len(order) + 1)]
    return {effect: {worlds[k + 1]: 1.0, worlds[k]: -1.0} for k, effect in enumerate(order)}


def marginals(after: After, effect: str) -> list[tuple[World, World, int]]:
    """Return the worlds before and after an effect, for every place it can have, and how many orders have it there."""
    reached, onward = _paths(after)
    places = [world for world in reached if effect in _next(after, world)]
    return [(world, world | {effect}, reached[world] * onward[world | {effect}]) for world in places]


def shapley_weights(after: After) -> dict[str, Weights]:
    """Return each effect's mean change over all possible orders, as a combination of worlds.

    Parameters
    ----------
    after
        What must be on before each effect.
    """
    orders = count_orders(after)
    found: dict[str, Weights] = {}
    for effect in after:
        weights: Weights = {}
        for before, then, count in marginals(after, effect):
            weights[then] = weights.get(then, 0.0) + count / orders
            weights[before] = weights.get(before, 0.0) - count / orders
        found[effect] = weights
    return found
