"""Repair: what a site does by itself when its cache is lost or out of date, with no planner asked.

A site that comes back holds the fallback; a site whose prefix has a new version gives up the old one with all
that extends it. In both cases it then fetches over its backhaul what it is meant to hold. These bytes count as
moved, though in no planner's budget.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.control.actions import Action, Change
from geoedge.workload.requests import build_forest
from geoedge.workload.verification import prefix_hashes, verified_hit_tokens

if TYPE_CHECKING:
    from geoedge.control.planners.base import Limits
    from geoedge.scenario import WorkloadConfig

__all__ = ["invalidation", "may_restore", "restoration", "still_valid"]

Ints = NDArray[np.int64]


def still_valid(workload: WorkloadConfig, prefix: str) -> Ints:
    """Return the profile that is left of each one when a prefix gets a new version, shape (S,).

    What extends the prefix is out of date with it, as verification by hash finds. What is left of a profile is the one that stores most of the
    states that are not; the fallback stores nothing and always may stay.

    Parameters
    ----------
    workload
        Prefixes and profiles.
    prefix
        The prefix.
    """
    forest = build_forest(workload)
    changed = forest.index(prefix)
    made = prefix_hashes(forest)
    wanted = prefix_hashes(forest, [2 if vertex == changed else 1 for vertex in range(len(forest))])
    stored = [forest.indices(profile.prefixes) for profile in workload.profiles]
    left = np.arange(len(stored))
    for s, states in enumerate(stored):
        held = {vertex: made[vertex] for vertex in states}
        hits = {v: verified_hit_tokens(forest, states, v, wanted=wanted, held=held) for v in states}
        valid = {v for v in states if hits[v] == forest.depth_tokens[v]}
        if valid != states:
            tokens = [forest.unique_tokens(other) if other <= valid else -1 for other in stored]
            left[s] = int(np.argmax(tokens))
    return left


def invalidation(site: int, from_profile: int, to_profile: int, prefix: str) -> Action:
    """Return the action by which a site gives up what is out of date."""
    change = Change(int(site), int(from_profile), int(to_profile), 0.0)
    return Action("invalidate", (change,), 0.0, f"{prefix} has a new version")


def restoration(site: int, from_profile: int, to_profile: int, transfer_bytes: ArrayLike, why: str) -> Action:
    """Return the action by which a site fetches again what it is meant to hold.

    Parameters
    ----------
    site
        Which site.
    from_profile, to_profile
        The profile that is left, and the one it is meant to hold.
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S).
    why
        What it has lost them by.
    """
    moved = float(np.asarray(transfer_bytes)[from_profile, to_profile])
    return Action("restore", (Change(int(site), int(from_profile), int(to_profile), moved),), 0.0, why)


def may_restore(before: Ints, goal: Ints, site: int, to_profile: int, limits: Limits | None) -> bool:
    """Return whether a site may go back to its profile under the floor and the cap of plans made meanwhile.

    It may if that leaves each profile on no fewer sites than the floor and no more than the cap, or no further
    from them than before the loss.

    Parameters
    ----------
    before
        Profile that each site was meant to hold before the loss, shape (n,).
    goal
        Profile of each site once all that is under way has arrived, shape (n,).
    site
        The site.
    to_profile
        The profile it is meant to hold.
    limits
        What plans must keep to; None if there are none.
    """
    if limits is None:
        return True
    after = np.where(np.arange(len(goal)) == site, to_profile, goal)
    size = len(limits.least_sites)
    return limits.allow(np.bincount(after, minlength=size), np.bincount(before, minlength=size))
