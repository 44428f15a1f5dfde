"""Actions on caches: what replicating, demoting and migrating states moves, how long it takes, what it changes.

A site that takes up another profile fetches the states it lacks over its backhaul; until the last byte is
there it keeps its old profile. States that are only given up are gone at once. Requests that are already
queued or running keep the service they were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.scenario import WorkloadConfig
from geoedge.workload.forest import PrefixForest
from geoedge.workload.requests import build_forest

__all__ = ["Action", "Change", "Kind", "Placement", "change_profile", "migrate", "transfer_bytes"]

Kind = Literal["replicate", "demote", "migrate"]


def transfer_bytes(workload: WorkloadConfig, kv_bytes_per_token: int) -> NDArray[np.float64]:
    """Return the bytes of the states that each profile adds to each other one [B], shape (S, S), indexed ``[s, t]``.

    Only what profile t stores and profile s lacks is moved, every token once, as in Eq. (5). A profile whose
    memory the scenario states itself moves the same share of that memory.

    Parameters
    ----------
    workload
        Prefixes and profiles.
    kv_bytes_per_token
        Keys and values of one token κ [B/token].
    """
    forest = build_forest(workload)
    stored = [forest.indices(profile.prefixes) for profile in workload.profiles]
    per_token = np.full(len(stored), float(kv_bytes_per_token))
    for t, profile in enumerate(workload.profiles):
        if profile.persistent_bytes is not None and stored[t]:
            per_token[t] = profile.persistent_bytes / forest.unique_tokens(stored[t])
    added = np.array([[_segments(forest, t - s) for t in stored] for s in stored], dtype=np.float64)
    return np.asarray(added * per_token)


def _segments(forest: PrefixForest, vertices: frozenset[int]) -> int:
    return sum(forest.segment_tokens(vertex) for vertex in vertices)


@dataclass(frozen=True)
class Change:
    """One site's part in an action: from one profile to another, and the bytes it has to fetch for it."""

    site: int
    from_profile: int
    to_profile: int
    bytes_moved: float
    """States of the new profile that the old one lacks [B]."""


@dataclass(frozen=True)
class Action:
    """Something the controller does.

    Parameters
    ----------
    kind
        ``"replicate"``: a site gets a profile with states it lacks; ``"demote"``: it only gives states up;
        ``"migrate"``: it takes up what another site gives up, in one action.
    changes
        What happens at which site; for a migration the taker comes first.
    predicted_gain
        Gain in TTFT coverage that the predictor expects.
    reason
        Why, in words and numbers.
    """

    kind: Kind
    changes: tuple[Change, ...]
    predicted_gain: float = float("nan")
    reason: str = ""

    @property
    def bytes_moved(self) -> float:
        """Bytes moved by all changes together [B]."""
        return sum(change.bytes_moved for change in self.changes)

    @property
    def sites(self) -> tuple[int, ...]:
        """Sites that change."""
        return tuple(change.site for change in self.changes)

    def transfer_s(self, backhaul_bytes_per_s: float) -> float:
        """Return the time until the last change has its states [s]; sites receive side by side."""
        return max(change.bytes_moved for change in self.changes) / backhaul_bytes_per_s

    def apply(self, profile: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the placement once every state has arrived, shape (n,)."""
        changed = profile.copy()
        for change in self.changes:
            changed[change.site] = change.to_profile
        return changed

    def explained(self, predicted_gain: float, reason: str) -> Action:
        """Return the same action with its predicted gain and its reason."""
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


def migrate(taker: int, giver: int, profile: NDArray[np.int64], transfer_bytes: ArrayLike) -> Action:
    """Return the action by which one site takes up what another gives up: the two exchange profiles.

    How many sites hold each profile stays as it was.

    Parameters
    ----------
    taker
        Site that takes the states.
    giver
        Site that gives them up, and takes up the taker's profile.
    profile
        The placement, shape (n,).
    transfer_bytes
        Bytes of the states of profile t that profile s lacks [B], shape (S, S).

    Raises
    ------
    GeoEdgeError
        If both hold the same profile.
    """
    taken = change_profile(taker, int(profile[taker]), int(profile[giver]), transfer_bytes)
    given = change_profile(giver, int(profile[giver]), int(profile[taker]), transfer_bytes)
    return Action("migrate", taken.changes + given.changes)


@dataclass
class Placement:
    """Which profile every site holds now, and what is on its way.

    Parameters
    ----------
    profile
        Profile that each site holds, shape (n,); never one whose states are still on the way.
    backhaul_bytes_per_s
        Rate at which a site receives states [B/s].
    """

    profile: NDArray[np.int64]
    backhaul_bytes_per_s: float
    _transit: list[tuple[float, Change]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.profile = np.array(self.profile, dtype=np.int64)

    @property
    def in_transit(self) -> frozenset[int]:
        """Sites that wait for states."""
        return frozenset(change.site for _, change in self._transit)

    def next_arrival_s(self) -> float:
        """Return when the next states arrive [s]; infinite if none are on the way."""
        return min((time for time, _ in self._transit), default=float("inf"))

    def start(self, actions: Iterable[Action], now_s: float) -> None:
        """Begin actions: demotions take effect now, everything else when its bytes have arrived.

        Raises
        ------
        GeoEdgeError
            If a site does not hold the profile it is to give up, or waits for states already.
        """
        for change in (change for action in actions for change in action.changes):
            if change.site in self.in_transit or self.profile[change.site] != change.from_profile:
                msg = (
                    f"control: site {change.site} cannot leave profile {change.from_profile}, it holds "
                    f"{self.profile[change.site]} or waits for states; plan from the placement as it is"
                )
                raise GeoEdgeError(msg)
            self._transit.append((now_s + change.bytes_moved / self.backhaul_bytes_per_s, change))
            if change.bytes_moved == 0.0:
                self.arrive(now_s)

    def arrive(self, now_s: float) -> Sequence[Change]:
        """Let everything that has arrived by now take effect, and return it in order of arrival."""
        due = sorted(
            (item for item in self._transit if item[0] <= now_s), key=lambda item: (item[0], item[1].site)
        )
        self._transit = [item for item in self._transit if item[0] > now_s]
        self.profile = self.profile.copy()
        for _, change in due:
            self.profile[change.site] = change.to_profile
        return [change for _, change in due]
