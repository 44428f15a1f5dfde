"""For how long a run was outside of the bounds on profiles: its layout breaks them, or failures led out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from geoedge.control.placement import PlacementEvent
from geoedge.control.planners.limits import Limits

__all__ = ["outside_s"]

Ints = NDArray[np.int64]


def outside_s(
    journal: Sequence[PlacementEvent], initial: Ints, limits: Limits, start_s: float, end_s: float
) -> dict[str, float]:
    """Return for how long sites held what breaks each bound on profiles [s], by its key; none that was kept.

    What is held breaks a bound in passing, too, while the states of a plan that keeps it arrive one after the
    other. That does not count: a stretch counts from where what is meant to be held breaks the bound as well, and
    then until what is held keeps it.

    Parameters
    ----------
    journal
        Events in order.
    initial
        Profile of each site at the start, shape (n,).
    limits
        The bounds.
    start_s, end_s
        The time that counts [s].
    """
    found: dict[str, float] = {}
    counting: set[str] = set()
    since = start_s
    for time_s, held, meant in chain(_over_time(journal, initial), [(end_s, initial, initial)]):
        until = min(max(time_s, since), end_s)
        for key in counting if until > since else ():
            found[key] = found.get(key, 0.0) + until - since
        since, size = until, len(limits.least_sites)
        broken = set(limits.broken(np.bincount(held, minlength=size)))
        counting = broken & (counting | set(limits.broken(np.bincount(meant, minlength=size))))
    return found


def _over_time(journal: Sequence[PlacementEvent], initial: Ints) -> Iterator[tuple[float, Ints, Ints]]:
    """Yield what sites hold and are meant to hold, shape (n,), at first and after each event [s]; the same arrays."""
    held, meant = np.array(initial, dtype=np.int64), np.array(initial, dtype=np.int64)
    yield -np.inf, held, meant
    for event in journal:
        if event.event in ("start", "become"):
            meant[event.site] = event.to_profile
        elif event.event == "fail":
            meant[event.site] = held[event.site]
        elif event.event == "hold":
            held[event.site] = meant[event.site] = event.to_profile
        else:
            continue
        yield event.time_s, held, meant
