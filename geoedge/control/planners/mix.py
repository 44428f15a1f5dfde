"""The mix from theory, the places from the field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import Action
from geoedge.control.planners.base import Limits, Plan, Prediction, Situation
from geoedge.control.planners.greedy import LEAST_GAIN, Search, reason
from geoedge.errors import GeoEdgeError

__all__ = ["theory_mix", "whole_sites"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def theory_mix(situation: Situation) -> Plan:
    """Go towards the mix that theory recommends for the coming demand, at the places where the field gains most.

    Only changes that bring the mix nearer to theory's, and exchanges, which leave it as it is, are looked at. Where the
    field expects a loss of the last steps, they are not taken.

    Parameters
    ----------
    situation
        What is known.

    Raises
    ------
    GeoEdgeError
        If theory was not to be asked.
    """
    if situation.mix_of is None:
        msg = "control: the planner theory_mix needs theory's mix; give the situation `mix_of`"
        raise GeoEdgeError(msg)
    demand = situation.forecast[0]
    search = Search(situation, situation.predictor_of(demand), situation.last)
    target = whole_sites(situation.mix_of(demand), situation.limits, len(situation.profile))
    before, steps = search.now, list[tuple[Action, Prediction]]()
    while len(steps) < situation.limits.rounds:
        search.tighten(_towards(situation.limits, search.profile, target))
        action = search.best()
        if action is None:
            break
        search.accept(action)
        steps.append((action, search.now))
    coverage = [before.coverage, *(after.coverage for _, after in steps)]
    steps = steps[: int(np.argmax(coverage))]
    actions, now, profile = [], before, situation.profile
    for action, after in steps:
        words = f"theory's mix {target.tolist()}; {reason(action, now, after, situation.names)}"
        actions.append(action.explained(after.coverage - now.coverage, words))
        now, profile = after, action.apply(profile)
    return Plan(tuple(actions), before, now, profile)


def _towards(limits: Limits, profile: Ints, target: Ints) -> Limits:
    """Return limits that let every profile's number of sites only come nearer to the target, at a loss if need be."""
    count = np.bincount(profile, minlength=len(target))
    return replace(
        limits,
        least_sites=np.minimum(count, target),
        most_sites=np.maximum(count, target),
        min_gain=max(limits.min_gain, LEAST_GAIN) if (count == target).all() else -np.inf,
    )


def whole_sites(mix: Floats, limits: Limits, n_sites: int) -> Ints:
    """Return shares of sites in whole sites by largest remainders, within the limits, shape (S,).

    Parameters
    ----------
    mix
        Share of sites for each profile, shape (S,).
    limits
        Least and most sites of each profile.
    n_sites
        Number of sites n.
    """
    wanted = np.asarray(mix, dtype=np.float64) * n_sites
    count = np.clip(np.floor(wanted + 1e-9).astype(np.int64), limits.least_sites, limits.most_sites)
    while count.sum() != n_sites:
        step = 1 if count.sum() < n_sites else -1
        free = count < limits.most_sites if step > 0 else count > limits.least_sites
        if not free.any():
            break
        count[np.where(free, step * (wanted - count), -np.inf).argmax()] += step
    return count
