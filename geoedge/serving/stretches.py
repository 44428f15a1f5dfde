"""A stretch of time at all sites: what is asked in it, the sums that begin with it, and what they come to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError
from geoedge.serving.doors import FAILED, Doors
from geoedge.serving.loop import count_arrived
from geoedge.serving.records import Requests, SiteSums
from geoedge.serving.stations import SITE, Stations

__all__ = ["check_stretch", "open_stretch", "stretch_sums"]

SUMS = ("starts", "wait_s", "prefill_s", "routed", "offered_s")
"""Sums of a site that start anew in every stretch."""


def check_stretch(requests: Requests, clock_s: float, until_s: float, types: int) -> None:
    """Refuse requests of unknown types, or outside a stretch from the clock on [s]."""
    if not clock_s <= until_s < np.inf:
        msg = f"`until_s` must be finite and not before the clock, {clock_s} s, not {until_s}"
        raise GeoEdgeError(msg)
    if not len(requests):
        return
    if requests.created_s[0] < clock_s or requests.created_s[-1] > until_s:
        msg = (
            f"`created_s` must lie between the clock, {clock_s} s, and `until_s`, {until_s} s, "
            f"not in {requests.created_s[0]}..{requests.created_s[-1]}"
        )
        raise GeoEdgeError(msg)
    if requests.request_type.min() < 0 or requests.request_type.max() >= types:
        msg = f"`request_type` must lie in 0..{types - 1}"
        raise GeoEdgeError(msg)


def open_stretch(clock_s: float, until_s: float, stations: Stations) -> None:
    """Begin a stretch from the clock on [s], with the servers that are busy already."""
    stations.sites["window_end"] = until_s
    left = np.clip(np.minimum(stations.releases, until_s) - clock_s, 0.0, None)
    stations.sites["busy_s"] = np.where(_held(stations), left, 0.0).sum(axis=1)


def stretch_sums(
    start_s: float, end_s: float, waiting_before: npt.NDArray[np.int64], doors: Doors, stations: Stations
) -> SiteSums:
    """Return the sums of a stretch [s] at whose start so many waited at each site, and let those of the next begin."""
    sites = {name: np.array(stations.sites[name]) for name in SITE.names or ()}
    waiting = count_arrived(end_s, stations)
    redirected, rejected = doors.redirected.copy(), doors.rejected.copy()
    doors.redirected[:] = doors.rejected[:] = 0
    for name in SUMS:
        stations.sites[name] = 0
    return SiteSums(
        start_s=start_s,
        end_s=end_s,
        concurrency=np.where((doors.state == FAILED) | (sites["silent"] > 0), 0, sites["concurrency"]),
        routed=sites["routed"],
        arrivals=sites["starts"] + waiting - waiting_before,
        started=sites["starts"],
        waiting=waiting,
        in_flight=sites["listed"] - waiting,
        running=(_held(stations) & (stations.releases > end_s)).sum(axis=1),
        busy_s=sites["busy_s"],
        offered_s=sites["offered_s"],
        wait_s=sites["wait_s"],
        prefill_s=sites["prefill_s"],
        redirected=redirected,
        rejected=rejected,
    )


def _held(stations: Stations) -> npt.NDArray[np.bool_]:
    """Return which release times are in use, shape of the heaps; at silent sites none is."""
    busy = np.where(stations.sites["silent"], 0, stations.sites["busy"])
    held: npt.NDArray[np.bool_] = np.arange(stations.releases.shape[1]) < busy[:, None]
    return held
