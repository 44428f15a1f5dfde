"""The compiled event loop: one pass over requests in order of creation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.serving.advertising import Telemetry, due, listen
from geoedge.serving.candidates import CandidateLists, Ground, delay_power
from geoedge.serving.doors import Doors, nearest_site
from geoedge.serving.routing import cheapest
from geoedge.serving.stations import Stations, advance, count_at, enlist

__all__ = ["count_arrived", "reject", "send", "serve", "serve_guarded", "settle"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@inlined
def send(
    k: int,
    i: int,
    q: int,
    mark: float,
    now: float,
    late: float,
    shift: float,
    d2: float,
    ground: Ground,
    stations: Stations,
) -> None:
    """Send request k of type q to site i now, or so late [s], over a squared distance [km²], and let time pass there."""
    requests, sites = stations.requests, stations.sites
    radio = ground.coefficient * delay_power(d2, ground.exponent)
    requests[k]["arrived"] = now + late + shift * radio
    requests[k]["started"] = np.nan
    requests[k]["prefill"] = np.nan
    requests[k]["finished"] = np.nan
    requests[k]["radio"] = radio
    requests[k]["distance"] = np.sqrt(d2)
    requests[k]["site"] = i
    requests[k]["profile"] = -1
    sites[i]["routed"] += 1
    sites[i]["offered_s"] += stations.fixed[i, q] + mark * stations.scale[i, q]
    enlist(k, i, stations)
    advance(i, now, stations)


@inlined
def reject(k: int, i: int, doors: Doors, stations: Stations) -> None:
    """Reject request k at site i."""
    requests = stations.requests
    requests[k]["arrived"] = np.nan
    requests[k]["started"] = np.nan
    requests[k]["prefill"] = np.nan
    requests[k]["finished"] = np.nan
    requests[k]["radio"] = np.nan
    requests[k]["distance"] = np.nan
    requests[k]["site"] = -1
    requests[k]["profile"] = -1
    doors.rejected[i] += 1


@kernel
def serve(
    first: int,
    created: Floats,
    x: Floats,
    y: Floats,
    request_type: Ints,
    mark: Floats,
    shift: float,
    ground: Ground,
    offset: Floats,
    wait: Floats,
    source: Floats | Stations,
    lists: CandidateLists,
    telemetry: Telemetry,
    stations: Stations,
) -> int:
    """Route requests, the first of them to row `first`, and let time pass at the sites they go to.

    `wait` is what telemetry reports go to, `source` what is read: the same array, or the queues themselves.
    Returns for how many requests all sites had to be looked at.
    """
    requests, sites = stations.requests, stations.sites
    scans = 0
    next_report = due(telemetry)
    for j in range(created.size):
        now, q, k = created[j], request_type[j], first + j
        if next_report <= now:
            next_report = listen(now, wait, telemetry, stations)
        i, d2, scanned = cheapest(x[j], y[j], q, now, ground, offset, source, lists)
        scans += scanned
        radio = ground.coefficient * delay_power(d2, ground.exponent)
        requests[k]["created"] = now
        requests[k]["arrived"] = now + shift * radio
        requests[k]["mark"] = mark[j]
        requests[k]["started"] = np.nan
        requests[k]["prefill"] = np.nan
        requests[k]["finished"] = np.nan
        requests[k]["radio"] = radio
        requests[k]["distance"] = np.sqrt(d2)
        requests[k]["type"] = q
        requests[k]["site"] = i
        requests[k]["profile"] = -1
        sites[i]["routed"] += 1
        sites[i]["offered_s"] += stations.fixed[i, q] + mark[j] * stations.scale[i, q]
        enlist(k, i, stations)
        advance(i, now, stations)
    return scans


@kernel
def serve_guarded(
    rows: Ints,
    now: Floats,
    x: Floats,
    y: Floats,
    shift: float,
    ground: Ground,
    offset: Floats,
    wait: Floats,
    source: Floats | Stations,
    lists: CandidateLists,
    telemetry: Telemetry,
    doors: Doors,
    stations: Stations,
) -> int:
    """Route the requests of some rows, at times that do not fall, while doors may be shut to all of them.

    As `serve` but for that, and for rows that know already what is asked; a loop of its own, as the other is the
    faster for what it cannot meet.
    """
    requests = stations.requests
    scans = 0
    next_report = due(telemetry)
    for j in range(rows.size):
        k, at = rows[j], now[j]
        q, mark = requests[k]["type"], requests[k]["mark"]
        if next_report <= at:
            next_report = listen(at, wait, telemetry, stations)
        i, d2, scanned = cheapest(x[j], y[j], q, at, ground, offset, source, lists)
        scans += scanned
        if i < 0:
            reject(k, nearest_site(x[j], y[j], ground), doors, stations)
        else:
            send(k, i, q, mark, at, 0.0, shift, d2, ground, stations)
    return scans


@kernel
def settle(until: float, telemetry: Telemetry, wait: Floats, stations: Stations) -> None:
    """Let time pass at all sites, with the reports due meanwhile."""
    if telemetry.period > 0 and until < np.inf:
        listen(until, wait, telemetry, stations)
    for i in range(stations.sites.size):
        advance(i, until, stations)


@kernel
def count_arrived(until: float, stations: Stations) -> Ints:
    """Return how many requests wait at each site at a time, those on the air left out, shape (n,).

    Those on the air end a site's list, so that the walk is as long as they are many, however long the queue.
    """
    waiting = np.zeros(stations.sites.size, dtype=np.int64)
    for i in range(waiting.size):
        waiting[i] = count_at(i, until, stations)
    return waiting
