"""Where this crowd will be: a forecast from the requests of users who have been seen before.

Routers see who asks. So an epoch tells three things about the next one: which types are asked for more in its
second half than in its first, which zones users go to between the halves, and where users were seen last. How much of
each to believe is learned from what it would have said of the epochs before, starting from none of it: persistence.

What was measured is multiplied, zone by zone. So people may be foretold to come where somebody asked in the last
epoch, but not to a place where nobody did: a square that was empty stays empty in the forecast of its first epoch,
however many are on their way to it. `control.forecast = "expected"` knows such places from the mobility model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.city.demand import Demand
from geoedge.control.measure import Seen, Sources

__all__ = ["Movement"]

ZONE_M = 300.0
"""Side of the zones between which users go [m]."""
STAY = 5.0
"""Users in each zone of whom it is assumed that they stay, beside those who were seen."""
DOUBT = 200.0
"""Weight of the assumption that nothing changes, in requests seen."""
MEMORY = 0.9
"""Weight of what an epoch taught, an epoch later."""
DAMPING = 0.7
"""Share of a change that goes on for another epoch."""
LARGEST = 3.0
"""Most by which a forecast multiplies what was measured."""
SIDE = 1 << 20
"""Zones from the origin of coordinates, at most."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _View:
    """What an epoch showed: zones, requests by zone and type, and relative changes that it hints at."""

    demand: Demand
    zones: Ints
    """Numbers of the zones that asked, rising, shape (Z,)."""
    count: Floats
    """Requests, shape (Z, Q)."""
    hints: Floats
    """Relative change by growth of types, by flow between zones, by where users were last, shape (3, Z, Q)."""


class Movement:
    """Forecasts demand from the users' own movement so far.

    Parameters
    ----------
    sources
        What it is made from; of them only how demand is measured.

    Attributes
    ----------
    trust
        How much of each hint is believed now, shape (3,): growth of types, flow between zones, where users were last.
    """

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self.trust: Floats = np.zeros(3)
        self._view: _View | None = None
        self._products, self._targets = np.zeros((3, 3)), np.zeros(3)

    def observe(self, seen: Seen) -> None:
        """Measure the epoch that is over, and learn from what was hinted about it."""
        demand = self.sources.measured(seen)
        if demand is None:
            self._view = None
            return
        view = _view(seen, demand, self.sources)
        if self._view is not None:
            self._learn(self._view, view)
        self._view = view

    def ahead(self, epoch: int, horizon: int) -> tuple[Demand, ...]:
        """Return what was measured last, changed as its own hints say; further ahead, less and less."""
        view = self._view
        if view is None:
            return ()
        at = np.searchsorted(view.zones, _zone(view.demand.xy))
        once = self.trust[2] * view.hints[2]
        lasting = np.tensordot(self.trust[:2], view.hints[:2], axes=1)
        found = []
        for step in range(horizon):
            times = sum(DAMPING**k for k in range(step + 1))
            factor = np.clip(1.0 + once + times * lasting, 0.0, LARGEST)
            found.append(Demand(view.demand.xy, view.demand.rate * factor[at], view.demand.cell_m))
        return tuple(found)

    def _learn(self, before: _View, now: _View) -> None:
        """Weigh the hints by weighted least squares of what came on what they said, held back by `DOUBT`."""
        came = np.zeros_like(before.count)
        place = np.searchsorted(before.zones, now.zones)
        known = place < len(before.zones)
        known[known] = before.zones[place[known]] == now.zones[known]
        came[place[known]] = now.count[known]
        said = (before.hints * before.count).reshape(3, -1)
        weight = 1.0 / (before.count.reshape(-1) + 2.0)
        self._products = MEMORY * self._products + (said * weight) @ said.T
        self._targets = MEMORY * self._targets + (said * weight) @ (came - before.count).reshape(-1)
        self.trust = np.asarray(np.linalg.solve(self._products + DOUBT * np.eye(3), self._targets))


def _zone(xy_m: Floats) -> Ints:
    """Return the numbers of the zones of points [m]."""
    cell = np.floor(xy_m / ZONE_M).astype(np.int64) + SIDE
    return np.asarray(cell[:, 0] * 2 * SIDE + cell[:, 1])


def _view(seen: Seen, demand: Demand, sources: Sources) -> _View:
    """Return what an epoch's requests show."""
    n_types = sources.n_types
    centre = (np.floor(seen.xy_m / sources.cell_m) + 0.5) * sources.cell_m  # a cell belongs to one zone
    zones, zone = np.unique(_zone(centre), return_inverse=True)
    zone, kind = zone.reshape(-1), np.asarray(seen.request_type, dtype=np.int64)
    user = np.unique(seen.user, return_inverse=True)[1].reshape(-1)
    late = seen.time_s >= 0.5 * (seen.start_s + seen.end_s)
    size = len(zones)
    count = np.bincount(zone * n_types + kind, minlength=size * n_types).reshape(size, n_types)
    by_half = [np.bincount(kind[half], minlength=n_types) for half in (~late, late)]
    growth = (by_half[1] + 1.0) / (by_half[0] + 1.0) - 1.0
    present = count.sum(axis=1)
    went = _flow(zone, user, late, size).T @ present
    last = np.bincount(_last_zone(seen.time_s, user, zone), np.bincount(user), size)
    hints = np.zeros((3, size, n_types))
    hints[0] = growth
    hints[1] = ((went + 1.0) / (present + 1.0) - 1.0)[:, None]
    hints[2] = ((last + 1.0) / (present + 1.0) - 1.0)[:, None]
    return _View(demand, zones, count.astype(np.float64), hints)


def _flow(zone: Ints, user: Ints, late: NDArray[np.bool_], size: int) -> Floats:
    """Return the share of a zone's users found in each other one half an epoch later, shape (Z, Z); few are let stay."""
    from scipy.sparse import csr_array

    users = int(user.max()) + 1
    halves = []
    for half in (~late, late):
        share = 1.0 / np.bincount(user[half], minlength=users)[user[half]]
        halves.append(csr_array((share, (user[half], zone[half])), shape=(users, size)))
    flow = (halves[0].T @ halves[1]).toarray() + STAY * np.eye(size)
    return np.asarray(flow / flow.sum(axis=1, keepdims=True))


def _last_zone(time_s: Floats, user: Ints, zone: Ints) -> Ints:
    """Return where each user was seen last, shape (users,)."""
    order = np.argsort(time_s, kind="stable")
    last = np.zeros(int(user.max()) + 1, dtype=np.int64)
    last[user[order]] = zone[order]  # of repeated indices the last assignment counts
    return last
