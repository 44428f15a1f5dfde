"""Orders of effects: Shapley's axioms, and the counts against a list of all orders."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from geoedge.compare.gap.effects import RUN_EFFECTS, after, chain_of
from geoedge.compare.gap.orders import (
    chain_weights,
    count_orders,
    marginals,
    possible_worlds,
    shapley_weights,
)

FREE = {effect: frozenset() for effect in "abcd"}
TIED = {"a": frozenset(), "b": frozenset("a"), "c": frozenset("b"), "d": frozenset("a"), "e": frozenset()}


def listed(needs):
    """Return all orders in which everything comes after what it needs."""
    return [
        order
        for order in permutations(needs)
        if all(needs[effect] <= set(order[:k]) for k, effect in enumerate(order))
    ]


def game(needs, seed=0):
    """Return a random value of every possible world."""
    rng = np.random.default_rng(seed)
    return {world: float(rng.normal()) for world in possible_worlds(needs)}


def worth(weights, values):
    return sum(weight * values[world] for world, weight in weights.items())


@pytest.mark.parametrize("needs", [FREE, TIED])
def test_shapley_is_the_mean_over_all_orders(needs) -> None:
    values, orders = game(needs), listed(needs)
    assert count_orders(needs) == len(orders)
    for effect, weights in shapley_weights(needs).items():
        by_list = [worth(chain_weights(order)[effect], values) for order in orders]
        assert worth(weights, values) == pytest.approx(np.mean(by_list), abs=1e-12)
        changes = [values[then] - values[before] for before, then, _ in marginals(needs, effect)]
        assert (min(changes), max(changes)) == pytest.approx((min(by_list), max(by_list)))


@pytest.mark.parametrize("needs", [FREE, TIED, after(chain_of(given_density=False))])
def test_shares_add_up_to_the_whole(needs) -> None:
    values = game(needs)
    whole = values[frozenset(needs)] - values[frozenset()]
    shares = [worth(weights, values) for weights in shapley_weights(needs).values()]
    assert sum(shares) == pytest.approx(whole, abs=1e-12)
    # the chain telescopes too
    chain = listed(TIED)[0] if needs is TIED else list(needs)
    assert sum(worth(w, values) for w in chain_weights(chain).values()) == pytest.approx(whole, abs=1e-12)


def test_where_effects_only_add_every_order_says_the_same() -> None:
    parts = {"a": 0.5, "b": -2.0, "c": 0.25, "d": 8.0, "e": 0.0}
    values = {world: sum(parts[effect] for effect in world) for world in possible_worlds(TIED)}
    for effect, weights in shapley_weights(TIED).items():
        assert worth(weights, values) == pytest.approx(parts[effect], abs=1e-12)


def test_equals_get_equal_shares_of_what_they_do_together() -> None:
    values = {world: float({"a", "b"} <= world) for world in possible_worlds(FREE)}
    shares = {effect: worth(weights, values) for effect, weights in shapley_weights(FREE).items()}
    assert shares == pytest.approx({"a": 0.5, "b": 0.5, "c": 0.0, "d": 0.0})


def test_a_simulation_comes_after_the_map_and_a_layout_after_the_land() -> None:
    needs = after(chain_of(given_density=False))
    worlds = possible_worlds(needs)
    assert len(worlds) == 16 + 8
    assert count_orders(needs) == 18 * 6
    assert all({"count", "window"} <= world for world in worlds if world & {"layout", "demand"})
    assert all({"load", "placement", "demand"} <= world for world in worlds if "movement" in world)
    # what a scenario lacks is not waited for
    assert after(["window", "layout", "movement"])["movement"] == {"window", "layout"}


def test_given_a_density_sites_stand_only_after_random_ones_were_as_uneven_and_as_well_fitted() -> None:
    chain = [effect for effect in chain_of(given_density=True) if effect not in RUN_EFFECTS]
    assert chain == ["load", "count", "window", "unevenness", "fit", "arrangement", "placement"]
    needs = after(chain)
    assert count_orders(needs) == 7  # all follow each other but load, which may come anywhere
    worlds = possible_worlds(needs)
    assert len(worlds) == 14
    assert all({"unevenness", "fit"} <= world for world in worlds if "arrangement" in world)
    # where requests are given place by place, no density is fitted, but sites are still uneven first
    assert after([effect for effect in chain if effect != "fit"])["arrangement"] == {"unevenness"}
