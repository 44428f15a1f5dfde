"""Draining: when enough of the requests that run at a site will have finished."""

from __future__ import annotations

import numpy as np

from geoedge.serving.stations import Stations, count_present

__all__ = ["drained_s"]


def drained_s(stations: Stations, site: int, servers: int, now_s: float) -> float:
    """Return when at most so many of the requests that run at a site now still run, if none starts [s].

    Parameters
    ----------
    stations
        The queues, settled up to now.
    site
        Which site.
    servers
        Requests that may go on, at least 0.
    now_s
        Now [s]; the answer if no more than that run already.
    """
    # a site that was given more servers just now may start requests on them
    count_present(site, now_s, stations)
    busy = int(stations.sites["busy"][site])
    releases = np.sort(stations.releases[site, :busy])
    running = releases[releases > now_s]
    return now_s if running.size <= servers else float(running[running.size - servers - 1])
