"""Actions on caches: what admitting, replicating, demoting and migrating states moves, and how long it takes.

States come over the site's backhaul, or the site computes them itself, which takes one of its servers. What an
action does to a site's memory meanwhile, and when it takes effect, is the business of `Placement`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.scenario import WorkloadConfig
from geoedge.workload.forest import PrefixForest
from geoedge.workload.hardware import Prefill
from geoedge.workload.requests import build_forest
from geoedge.workload.verification import Stamp, stamp_of

__all__ = [
    "NEVER_BYTES",
    "REPAIRS",
    "RETURN_EPOCHS",
    "Action",
    "Change",
    "Kind",
    "admitted",
    "at_no_cost",
    "change_profile",
    "compute_times",
    "migrate",
    "transfer_bytes",
]

Kind = Literal["admit", "replicate", "demote", "migrate", "invalidate", "restore"]
REPAIRS = ("invalidate", "restore")
"""What sites do by themselves, outside of plans and their budget."""
RETURN_EPOCHS = 4
"""Epochs within which going back to a profile that was left counts as an oscillation."""


NEVER_BYTES = 1e18
"""More than any budget, for what no transfer can do [B]."""


def transfer_bytes(workload: WorkloadConfig, kv_bytes_per_token: int) -> NDArray[np.float64]:
    """Return the bytes of the states that each profile adds to each other one [B], shape (S, S), indexed ``[s, t]``.

    Only what profile t stores and profile s lacks is moved, every token once, as in Eq. (5). A profile whose
    memory the scenario states itself moves the same share of that memory. States of another tokenizer, adapter or
    position encoding are other states; between models or privacy domains sites do not change, and no budget pays for
    `NEVER_BYTES`.

    Parameters
    ----------
    workload
        Prefixes and profiles.
    kv_bytes_per_token
        Keys and values of one token κ [B/token].
    """
    forest = build_forest(workload)
    stored = [forest.indices(profile.prefixes) for profile in workload.profiles]
    stamps = [stamp_of(profile.made_with) for profile in workload.profiles]
    per_token = np.full(len(stored), float(kv_bytes_per_token))
    for t, profile in enumerate(workload.profiles):
        if profile.persistent_bytes is not None and stored[t]:
            per_token[t] = profile.persistent_bytes / forest.unique_tokens(stored[t])
    segment = _segments(forest)
    added = np.array([[segment[part].sum() for part in row] for row in _missing(stored, stamps)])
    kind = [(stamp.model, stamp.privacy_domain) for stamp in stamps]
    apart = np.array([[one != other for other in kind] for one in kind])
    return np.asarray(np.where(apart, NEVER_BYTES, added * per_token))


def _missing(stored: list[frozenset[int]], stamps: list[Stamp]) -> list[list[list[int]]]:
    """Return the vertices of profile t that profile s lacks, indexed ``[s][t]``: all of them under another stamp."""
    n = range(len(stored))
    return [[sorted(stored[t] - stored[s] if stamps[s] == stamps[t] else stored[t]) for t in n] for s in n]


def _segments(forest: PrefixForest) -> NDArray[np.int64]:
    """Return the tokens that each vertex adds to its parent [token]."""
    return np.array([forest.segment_tokens(vertex) for vertex in range(len(forest))], dtype=np.int64)


def compute_times(workload: WorkloadConfig, curve: Prefill) -> NDArray[np.float64]:
    """Return the time in which a site computes the states that each profile adds to each other one [s], shape (S, S).

    Prefixes are prefilled one after the other, each on top of its ancestors: the sum of g(ℓ_v − ℓ_parent(v)), Eq. (12).

    Parameters
    ----------
    workload
        Prefixes and profiles.
    curve
        Prefill curve g.
    """
    forest = build_forest(workload)
    stored = [forest.indices(profile.prefixes) for profile in workload.profiles]
    stamps = [stamp_of(profile.made_with) for profile in workload.profiles]
    seconds = np.asarray(curve(_segments(forest)), dtype=np.float64)
    return np.array([[seconds[part].sum() for part in row] for row in _missing(stored, stamps)])


@dataclass(frozen=True)
class Change:
    """One site's part in an action: from one profile to another, and the bytes it has to fetch for it."""

    site: int
    from_profile: int
    to_profile: int
    bytes_moved: float
    """States of the new profile that come over the backhaul [B]."""
    compute_s: float = 0.0
    """Time in which the site computes them instead, on one of its servers [s]."""


@dataclass(frozen=True)
class Action:
    """Something the controller does.

    Parameters
    ----------
    kind
        ``"replicate"``: a site gets a profile with states it lacks; ``"admit"``: it computes them itself;
        ``"demote"``: it only gives states up; ``"migrate"``: it takes up what another site gives up, in one action;
        ``"invalidate"``: it gives up what is out of date; ``"restore"``: it fetches again what it has lost.
    changes
        What happens at which site; for a migration the taker comes first.
    predicted_gain
        Gain in TTFT coverage that the predictor expects; as planners give it, over all that they plan for, in a log
        in the epoch that starts.
    reason
        Why, in words and numbers.
    horizon_gain, horizon_epochs
        In a log: gain that was expected over all epochs planned for, their mean by requests, and how many these are.
    """

    kind: Kind
    changes: tuple[Change, ...]
    predicted_gain: float = float("nan")
    reason: str = ""
    horizon_gain: float = float("nan")
    horizon_epochs: int = 1

    @property
    def bytes_moved(self) -> float:
        """Bytes moved by all changes together [B]."""
        return sum(change.bytes_moved for change in self.changes)

    @property
    def sites(self) -> tuple[int, ...]:
        """Sites that change."""
        return tuple(change.site for change in self.changes)

    def apply(self, profile: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the placement once every state has arrived, shape (n,).

        Parameters
        ----------
        profile
            Profile of each site before, shape (n,).
        """
        changed = profile.copy()
        for change in self.changes:
            changed[change.site] = change.to_profile
        return changed

    def explained(self, predicted_gain: float, reason: str) -> Action:
        """Return the same action with its predicted gain and its reason.

        Parameters
        ----------
        predicted_gain
            Gain in TTFT coverage that is expected of it.
        reason
            Why, in words and numbers.
        """
        return replace(self, predicted_gain=predicted_gain, reason=reason)


def change_profile(site: int, from_profile: int, to_profile: int, transfer_bytes: ArrayLike) -> Action:
    """Return the action that gives one site another profile: a replication if it adds states, else a demotion.

    Parameters
    ----------
    site
        Which site.
    from_profile, to_profile
        The profile it holds and the one it is to hold.
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S), indexed ``[s, t]``.

    Raises
    ------
    GeoEdgeError
        If the profiles are the same.
    """
    if from_profile == to_profile:
        msg = f"control: site {site} holds profile {from_profile} already; name another profile"
        raise GeoEdgeError(msg)
    moved = float(np.asarray(transfer_bytes)[from_profile, to_profile])
    change = Change(int(site), int(from_profile), int(to_profile), moved)
    return Action("replicate" if moved > 0.0 else "demote", (change,))


def migrate(one: int, other: int, profile: NDArray[np.int64], transfer_bytes: ArrayLike) -> Action:
    """Return the action by which one site takes up what another gives up: the two exchange profiles.

    How many sites hold each profile stays as it was. The taker is the one that fetches more, of equals the first.

    Parameters
    ----------
    one, other
        The two sites.
    profile
        The placement, shape (n,).
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S).

    Raises
    ------
    GeoEdgeError
        If both hold the same profile.
    """
    taken = change_profile(one, int(profile[one]), int(profile[other]), transfer_bytes)
    given = change_profile(other, int(profile[other]), int(profile[one]), transfer_bytes)
    if given.bytes_moved > taken.bytes_moved:
        taken, given = given, taken
    return Action("migrate", taken.changes + given.changes)


def admitted(action: Action, computed_s: ArrayLike) -> Action:
    """Return the same action with the states computed by the sites themselves instead of moved.

    Parameters
    ----------
    action
        A replication or a migration; a demotion stays what it is.
    computed_s
        Time in which a site computes what it lacks on its way from profile s to t [s], shape (S, S).
    """
    seconds = np.asarray(computed_s)
    changes = tuple(
        replace(change, bytes_moved=0.0, compute_s=float(seconds[change.from_profile, change.to_profile]))
        for change in action.changes
    )
    if not any(change.compute_s for change in changes):
        return action
    return replace(action, kind="admit" if action.kind == "replicate" else action.kind, changes=changes)


def at_no_cost(action: Action) -> Action:
    """Return the same action with its states there at once, which no bytes are moved for."""
    return replace(action, changes=tuple(replace(change, bytes_moved=0.0) for change in action.changes))
