"""Planners by name: who decides which caches move, and by which forecast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geoedge.control.planners.ahead import look_ahead, multi_period
from geoedge.control.planners.base import Plan, Prediction, Predictor, Situation, no_plan
from geoedge.control.planners.greedy import greedy
from geoedge.control.planners.limits import Limits, make_limits
from geoedge.control.planners.mix import theory_mix
from geoedge.control.planners.yardsticks import best_placement, random_moves

if TYPE_CHECKING:
    from geoedge.scenario import ControlConfig

__all__ = [
    "PLANNERS",
    "Limits",
    "Plan",
    "Planner",
    "Prediction",
    "Predictor",
    "Situation",
    "make_limits",
    "starts_best",
]


@dataclass(frozen=True)
class Planner:
    """One way to decide which caches move.

    Parameters
    ----------
    plan
        What it does with a situation.
    meaning
        The same in words.
    moves
        Whether it ever moves anything.
    knows_future
        Whether its forecast is what will really be asked, whatever forecast the scenario names.
    looks_ahead
        Whether it uses more of the forecast than the epoch that starts.
    starts_best
        Whether sites hold, before anything is served, what is best for the window's expected demand.
    at_once
        Whether its moves take no time and no budget, in the first epoch too; it is a yardstick then and no controller.
    """

    plan: Callable[[Situation], Plan]
    meaning: str
    moves: bool = True
    knows_future: bool = False
    looks_ahead: bool = False
    starts_best: bool = False
    at_once: bool = False


PLANNERS = {
    "none": Planner(no_plan, "nothing is moved", moves=False),
    "random": Planner(
        random_moves, "random sites get random profiles, as many as budget and most_actions allow"
    ),
    "greedy": Planner(greedy, "best predicted gain in the epoch that starts, one action after the other"),
    "look_ahead": Planner(look_ahead, "the same by gain over all epochs of the forecast", looks_ahead=True),
    "multi_period": Planner(
        multi_period,
        "best sequence of placements over the forecast less the price of migration",
        looks_ahead=True,
    ),
    "theory_mix": Planner(theory_mix, "theory's mix for the epoch that starts, at the field's places"),
    "static": Planner(
        no_plan,
        "best placement for the window's expected demand from the start, and no moves",
        moves=False,
        starts_best=True,
    ),
    "oracle": Planner(
        best_placement,
        "best placement for what will really be asked, at once and at no cost",
        knows_future=True,
        starts_best=True,
        at_once=True,
    ),
}
"""Planners by name."""


def starts_best(control: ControlConfig) -> bool:
    """Return whether sites hold, before anything is served, what is best for the window's expected demand.

    Parameters
    ----------
    control
        How a scenario is controlled.
    """
    return PLANNERS[control.controller].starts_best or control.start == "best"
