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
    redirect_s
        Time that a request loses at each site that sends it on [s]. All doors are asked as they stand when it is
        made.
    """

    close_threshold: float | None = None
    reopen_threshold: float | None = None
    redirects: int = 1
    redirect_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.redirects < 0:
            msg = f"`redirects` must be at least 0, not {self.redirects}"
            raise GeoEdgeError(msg)
        if not 0 <= self.redirect_s < np.inf:
            msg = f"`redirect_s` must be finite and not negative, not {self.redirect_s}"
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
    redirect_s: float
    """Time lost at each site that sends a request on [s]."""
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
        float(admission.redirect_s),
        np.zeros(n, dtype=np.int64),
        np.zeros(n, dtype=np.int64),
    )


@inlined
def review(i: int, doors: Doors, stations: Stations) -> None:
    """Close or open site i by what is admitted there; time must have been let pass there, released servers noted."""
    site = stations.sites[i]
    if doors.close_at == np.inf or site["silent"]:
        return
    there, servers = site["listed"] + site["busy"], site["concurrency"]
    if doors.full[i] and there <= doors.reopen_at * servers:
        doors.full[i] = False
    if not doors.full[i] and there >= doors.close_at * servers:
        doors.full[i] = True


@kernel
def admits(i: int, now: float, doors: Doors, stations: Stations) -> bool:
    """Return whether site i takes a new request now; one that is silent turns nobody away.

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
