"""The queues of all sites, as the event loop holds them.

Every site keeps one list of the requests that were sent to it and have not started, in order of arrival,
those still on the air included, and one heap with the times at which its running requests release their
servers. Starts are written down only when time has reached them (`advance`), so that whatever changes a
site between two runs, its number of servers or what it holds, acts on the requests that wait there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from geoedge.compiled import inlined, kernel
from geoedge.serving.queue import pop_root, push, replace_root
from geoedge.serving.sessions import Warm, prefill_at, remember

__all__ = [
    "NONE",
    "REQUEST",
    "SITE",
    "Stations",
    "advance",
    "count_at",
    "count_present",
    "enlist",
    "expected_wait",
    "free_releases",
    "has_free_server",
    "labels_of",
    "make_stations",
    "wait_at",
]

Floats = npt.NDArray[np.float64]

NONE = -1
"""No request: the end of a list."""

REQUEST = np.dtype(
    [
        ("created", "f8"),
        ("arrived", "f8"),
        ("mark", "f8"),
        ("started", "f8"),
        ("prefill", "f8"),
        ("finished", "f8"),
        ("radio", "f8"),
        ("distance", "f8"),
        ("before", "i8"),
        ("after", "i8"),
        ("type", "i2"),
        ("lost", "i2"),
        ("site", "i4"),
        ("profile", "i4"),
        ("redirects", "i4"),
    ],
    align=True,
)
"""One request: times [s], distance [km], neighbours in its site's list; ``started`` is NaN until it starts, ``site``
is -1 if it was rejected, ``lost`` counts failures of sites that it was sent to, ``redirects`` closed sites that sent
it on, both from 0 as new rows are all zeros."""

LABELS = ("type", "lost", "site", "profile", "redirects")
"""The last columns of a row, read in one go by `labels_of`."""


def labels_of(rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the whole numbers of rows as a table of their own: rows are wide, and every pass over them costs."""
    fields: Any = REQUEST.fields
    first, names = fields[LABELS[0]][1], [(name, REQUEST[name]) for name in LABELS]
    tail = np.dtype({"names": ["tail"], "formats": [names], "offsets": [first], "itemsize": REQUEST.itemsize})
    return np.ascontiguousarray(rows.view(tail)["tail"])


SITE = np.dtype(
    [
        ("head", "i8"),
        ("tail", "i8"),
        ("listed", "i8"),
        ("concurrency", "i8"),
        ("busy", "i8"),
        ("profile", "i8"),
        ("changed", "f8"),
        ("service_sum", "f8"),
        ("service_count", "f8"),
        ("window_end", "f8"),
        ("starts", "i8"),
        ("busy_s", "f8"),
        ("wait_s", "f8"),
        ("prefill_s", "f8"),
        ("routed", "i8"),
        ("offered_s", "f8"),
        ("heard_wait_s", "f8"),
        ("heard_starts", "f8"),
        ("silent", "i8"),
        ("told", "i8"),
    ]
)
"""One site: its list, servers and last change, the mean of its services, the sums of the present run, and
the waits begun since telemetry last asked. ``busy`` counts servers that are not known to be free: a release
that nobody waits for is noticed later. ``silent`` is 1 while the site has failed and nobody knows; all its servers
are then held for ever, and it is believed to have ``told`` requests."""


class Stations(NamedTuple):
    """All requests and all sites; a service takes ``fixed + mark * scale``."""

    requests: npt.NDArray[np.void]
    """`REQUEST` rows, in order of creation."""
    sites: npt.NDArray[np.void]
    """`SITE` rows, shape (n,)."""
    releases: Floats
    """Heap of server release times by site [s], shape (n, at least the most servers)."""
    prefill: Floats
    """Prefill time [s], shape (n, Q)."""
    fixed: Floats
    """Part of the service that is certain [s], shape (n, Q)."""
    scale: Floats
    """Factor of the unit mark [s], shape (n, Q)."""
    warm: Warm | None = None
    """Warm states of sessions, if there are sessions; their prefill takes the place of the tabulated one."""


def make_stations(prefill: Floats, servers: int, warm: Warm | None) -> Stations:
    """Return empty sites with room for so many servers each, by their prefill [s], shape (n, Q); no request yet."""
    n = len(prefill)
    sites = np.zeros(n, dtype=SITE)
    sites["head"] = sites["tail"] = NONE
    sites["changed"] = -np.inf
    room = np.zeros((n, max(1, servers)))
    requests = np.zeros(0, dtype=REQUEST)
    return Stations(requests, sites, room, prefill, np.zeros(prefill.shape), np.zeros(prefill.shape), warm)


@inlined
def advance(i: int, until: float, stations: Stations) -> None:
    """Write down every start at site i up to a time, which no later request can precede."""
    sites, requests, releases = stations.sites, stations.requests, stations.releases
    concurrency, busy = sites[i]["concurrency"], sites[i]["busy"]
    while busy > concurrency and releases[i, 0] <= until:
        pop_root(releases, i, busy)
        busy -= 1
    k = sites[i]["head"]
    while k != NONE and requests[k]["arrived"] <= until:
        q = requests[k]["type"]
        start = max(requests[k]["arrived"], sites[i]["changed"])
        plain = stations.prefill[i, q]
        service = stations.fixed[i, q] + requests[k]["mark"] * stations.scale[i, q]
        if busy < concurrency:
            prefill = prefill_at(k, i, q, start, plain, stations.warm)
            service += prefill - plain
            push(releases, i, busy, start + service)
            busy += 1
        elif busy == concurrency and releases[i, 0] <= until:
            start = max(start, releases[i, 0])
            prefill = prefill_at(k, i, q, start, plain, stations.warm)
            service += prefill - plain
            replace_root(releases, i, busy, start + service)
        else:
            break
        remember(k, i, q, start, start + service, stations.warm)
        wait = start - requests[k]["arrived"]
        requests[k]["started"] = start
        requests[k]["finished"] = start + service
        requests[k]["prefill"] = prefill
        requests[k]["profile"] = sites[i]["profile"]
        sites[i]["starts"] += 1
        sites[i]["busy_s"] += min(start + service, sites[i]["window_end"]) - start
        sites[i]["wait_s"] += wait
        sites[i]["prefill_s"] += prefill
        sites[i]["heard_wait_s"] += wait
        sites[i]["heard_starts"] += 1.0
        sites[i]["service_sum"] += service
        sites[i]["service_count"] += 1.0
        sites[i]["listed"] -= 1
        k = requests[k]["after"]
    sites[i]["head"] = k
    sites[i]["busy"] = busy
    if k == NONE:
        sites[i]["tail"] = NONE
    else:
        requests[k]["before"] = NONE


@inlined
def enlist(k: int, i: int, stations: Stations) -> None:
    """Put request k into the list of site i by its time of arrival, after those that arrive with it."""
    sites, requests = stations.sites, stations.requests
    left, right = sites[i]["tail"], NONE
    while left != NONE and requests[left]["arrived"] > requests[k]["arrived"]:
        right = left
        left = requests[left]["before"]
    requests[k]["before"] = left
    requests[k]["after"] = right
    if left == NONE:
        sites[i]["head"] = k
    else:
        requests[left]["after"] = k
    if right == NONE:
        sites[i]["tail"] = k
    else:
        requests[right]["before"] = k
    sites[i]["listed"] += 1


@inlined
def count_at(i: int, now: float, stations: Stations) -> int:
    """Return how many of the requests that are listed at site i have reached it by now."""
    sites, requests = stations.sites, stations.requests
    waiting, k = sites[i]["listed"], sites[i]["tail"]
    while k != NONE and requests[k]["arrived"] > now:
        waiting -= 1
        k = requests[k]["before"]
    return int(waiting)


@kernel
def count_present(i: int, now: float, stations: Stations) -> int:
    """Return how many requests are at site i now, waiting or running; those on the air to it are not there yet.

    Of a silent site it is what it last said.
    """
    if stations.sites[i]["silent"]:
        return int(stations.sites[i]["told"])
    advance(i, now, stations)
    free_releases(i, now, stations)
    return count_at(i, now, stations) + int(stations.sites[i]["busy"])


@inlined
def free_releases(i: int, now: float, stations: Stations) -> None:
    """Note the servers of site i that have been released by now; `advance` must have been there."""
    busy = stations.sites[i]["busy"]
    while busy > 0 and stations.releases[i, 0] <= now:
        pop_root(stations.releases, i, busy)
        busy -= 1
    stations.sites[i]["busy"] = busy


@inlined
def has_free_server(i: int, now: float, stations: Stations) -> bool:
    """Return whether a request that arrives at site i now would start at once; `advance` must have been there."""
    concurrency, busy = stations.sites[i]["concurrency"], stations.sites[i]["busy"]
    return bool(busy < concurrency or (busy == concurrency and stations.releases[i, 0] <= now))


@kernel
def expected_wait(i: int, now: float, stations: Stations) -> float:
    """Return the expected wait [s] of a request that arrives at site i now, from the queue it would find.

    Zero if a server is free; else the requests ahead that must leave first, times the mean service of the
    site's requests so far, over its servers. Of a silent site it is what it last said.
    """
    advance(i, now, stations)
    if has_free_server(i, now, stations):
        return 0.0
    sites = stations.sites
    concurrency = sites[i]["concurrency"]
    there = sites[i]["told"] if sites[i]["silent"] else count_at(i, now, stations) + sites[i]["busy"]
    mean = sites[i]["service_sum"] / sites[i]["service_count"]
    return float(max(there - concurrency + 1, 0) * mean / concurrency)


def wait_at(source: Floats | Stations, i: int, now: float) -> float:
    """Return the wait [s] that site i advertises now: from a table, or from the queue itself."""
    return expected_wait(i, now, source) if isinstance(source, Stations) else float(source[i])


@overload(wait_at)  # type: ignore[untyped-decorator]
def _wait_at(source: Any, i: Any, now: Any) -> Any:
    def look_up(source: Any, i: Any, now: Any) -> Any:
        return source[i]

    def ask(source: Any, i: Any, now: Any) -> Any:
        return expected_wait(i, now, source)

    return look_up if isinstance(source, types.Array) else ask
