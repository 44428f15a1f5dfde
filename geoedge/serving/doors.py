"""The doors of sites: shut by hand or by a failure, and closed to new requests by the site's own load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.errors import GeoEdgeError
from geoedge.serving.candidates import Ground, squared_distance
from geoedge.serving.stations import Stations, advance, free_releases

__all__ = [
    "FAILED",
    "OPEN",
    "SHUT",
    "Admission",
    "Doors",
    "admits",
    "forget",
    "lost_rows",
    "make_doors",
    "nearest_site",
    "review",
]

Ints = npt.NDArray[np.int64]
OPEN, SHUT, FAILED = range(3)


@dataclass(frozen=True)
class Admission:
    """When a site takes no new requests, and what becomes of them.

    Parameters
    ----------
    close_threshold
        Admitted requests per server, those on the air among them, from which a site closes; None: never.
    reopen_threshold
        Admitted requests per server at which it opens again, below the other; half of it if None.
    redirects
        Closed sites that may send a request on to the next best, at most; then it is rejected.
    """

    close_threshold: float | None = None
    reopen_threshold: float | None = None
    redirects: int = 1

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.redirects < 0:
            msg = f"`redirects` must be at least 0, not {self.redirects}"
            raise GeoEdgeError(msg)
        if self.close_threshold is None:
            if self.reopen_threshold is not None:
                msg = (
                    f"`reopen_threshold` = {self.reopen_threshold} goes with `close_threshold`; give that too"
                )
                raise GeoEdgeError(msg)
        elif not 0 <= self.reopens_at < self.close_threshold:
            msg = (
                f"`reopen_threshold` must lie from 0 to below `close_threshold` = {self.close_threshold}, "
                f"not {self.reopen_threshold}"
            )
            raise GeoEdgeError(msg)

    @property
    def reopens_at(self) -> float:
        """Requests per server at which a closed site opens."""
        if self.reopen_threshold is None:
            return 0.5 * (np.inf if self.close_threshold is None else self.close_threshold)
        return self.reopen_threshold


class Doors(NamedTuple):
    """The doors of all sites, and who was sent away at them in the present stretch."""

    state: Ints
    """Open, shut by hand, or failed, shape (n,)."""
    full: npt.NDArray[np.bool_]
    """Whether the site has closed itself, shape (n,)."""
    close_at: float
    reopen_at: float
    redirects: int
    redirected: Ints
    """Requests sent on, shape (n,)."""
    rejected: Ints
    """Requests rejected, shape (n,)."""


def make_doors(n: int, admission: Admission) -> Doors:
    """Return open doors."""
    close = np.inf if admission.close_threshold is None else float(admission.close_threshold)
    return Doors(
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.bool_),
        close,
        float(admission.reopens_at),
        int(admission.redirects),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
    )


@inlined
def review(i: int, doors: Doors, stations: Stations) -> None:
    """Close or open site i by what is admitted there; time must have been let pass there, released servers noted."""
    if doors.close_at == np.inf:
        return
    site = stations.sites[i]
    there, servers = site["listed"] + site["busy"], site["concurrency"]
    if doors.full[i] and there <= doors.reopen_at * servers:
        doors.full[i] = False
    if not doors.full[i] and there >= doors.close_at * servers:
        doors.full[i] = True


@kernel
def admits(i: int, now: float, doors: Doors, stations: Stations) -> bool:
    """Return whether site i takes a new request now.

    Between two questions nobody is admitted, so that what is there can only have become less, and looking at it at
    the question alone misses no opening.
    """
    advance(i, now, stations)
    free_releases(i, now, stations)
    review(i, doors, stations)
    return bool(not doors.full[i])


@inlined
def nearest_site(x: float, y: float, ground: Ground) -> int:
    """Return the site nearest to a place, the first of equals."""
    best, winner = np.inf, -1
    for i in range(ground.site_xy.shape[0]):
        d2 = squared_distance(x, y, i, ground)
        if d2 < best:
            best, winner = d2, i
    return winner


def lost_rows(site: int, now: float, rows: npt.NDArray[np.void]) -> Ints:
    """Return the rows of the requests that a site loses by failing now: all that have not had their first token."""
    here = np.flatnonzero(rows["site"] == site)
    started, prefill = rows["started"][here], rows["prefill"][here]
    return np.asarray(here[~(started + prefill <= now)], dtype=np.int64)


def forget(site: int, now: float, stations: Stations) -> None:
    """Empty a site now: its list and its servers; who has had the first token keeps it and ends now."""
    sites, requests = stations.sites, stations.requests
    sites["head"][site] = sites["tail"][site] = -1
    sites["listed"][site] = sites["busy"][site] = 0
    sites["changed"][site] = now
    running = np.flatnonzero((requests["site"] == site) & (requests["finished"] > now))
    requests["finished"][running] = now
