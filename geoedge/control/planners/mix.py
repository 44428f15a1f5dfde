"""The mix from theory, the places from the field."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from geoedge.control.actions import Action
from geoedge.control.planners.base import Plan, Prediction, Situation
from geoedge.control.planners.limits import Limits
from geoedge.control.planners.mending import mended, next_epoch
from geoedge.control.planners.search import LEAST_GAIN, Search, reason
from geoedge.errors import GeoEdgeError

__all__ = ["theory_mix", "whole_sites"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@mended(next_epoch)
def theory_mix(situation: Situation) -> Plan:
    """Go towards the mix that theory recommends for the coming demand, at the places where the field gains most.

    Only changes that bring the mix nearer to theory's, and exchanges, which leave it as it is, are looked at. Where the
    field expects a loss of the last steps, they are not taken. Where the budget keeps out a step, steps are also
    taken by what they gain per byte, and the way that ends with more coverage is kept, whatever its tolls.

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
    mix = situation.mix_of(situation.forecast[0])
    target = whole_sites(mix, situation.limits, len(situation.profile))
    search = Search(situation, next_epoch(situation), situation.last)
    plan = _gone(search, situation, target)
    if not search.short:
        return plan
    frugal = Search(situation, next_epoch(situation), plan.before, per_byte=True)
    other = _gone(frugal, situation, target)
    return other if other.after.coverage > plan.after.coverage else plan


def _gone(search: Search, situation: Situation, target: Ints) -> Plan:
    """Return the steps of a search towards a mix, up to where the field expects most."""
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
    while limits.outside(count) and (nearer := limits.nearer(count)).any():
        gives, gets = divmod(int(np.where(nearer, _missed(wanted - count), -np.inf).argmax()), len(count))
        count[[gives, gets]] += (-1, 1)
    return count


def _missed(missing: Floats) -> Floats:
    """Return how much nearer to what is wanted a site brings a mix by going from one profile to another, shape (S, S)."""
    return missing[None, :] - missing[:, None]
