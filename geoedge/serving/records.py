"""What goes into the event loop and what comes out: columns of requests, and sums by site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError
from geoedge.serving.stations import LABELS, labels_of
from geoedge.serving.warm import Turns

__all__ = ["ENGINE_STATUS", "Records", "Requests", "SiteSums", "records_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

TIMES = ("created", "arrived", "started", "prefill", "finished", "radio", "distance")
"""Columns of a row that records show as they are."""

ENGINE_STATUS = ("served", "waiting", "in_flight", "rejected")
"""Names of the codes in `Records.engine_status`. A request is served once it has started, for then all its times
are settled, unless its site fails before its first token; it waits at its site, or is still on the air, when the
clock stands before that; it is rejected when every site that it could ask was closed."""


@dataclass(frozen=True)
class Requests:
    """Requests to be served, all that chance decides already drawn, so that policies share it.

    Parameters
    ----------
    created_s
        Instants of creation [s], nondecreasing, shape (m,).
    x_km, y_km
        Where the user is at that instant [km], shape (m,).
    request_type
        Request type, 0..Q-1, shape (m,).
    mark
        Service mark, shape (m,): a unit exponential variate, or the service itself [s] under the law
        ``tabulated``.
    router
        Router that each asks, 0..R-1, shape (m,); the first if omitted.
    turns
        Which turn of which session each is, for an engine with sessions.
    """

    created_s: Floats
    x_km: Floats
    y_km: Floats
    request_type: Ints
    mark: Floats
    router: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    turns: Turns | None = None

    def __post_init__(self) -> None:
        """Make plain columns of one length and refuse what is not a number."""
        m = np.size(self.created_s)
        if not np.size(self.router):
            object.__setattr__(self, "router", np.zeros(m, dtype=np.int64))
        for each in fields(self)[:-1]:
            kind = np.int64 if each.name in ("request_type", "router") else np.float64
            column = np.ascontiguousarray(getattr(self, each.name), dtype=kind)
            if column.shape != (m,):
                msg = f"`{each.name}` must have the shape of `created_s`, ({m},), not {column.shape}"
                raise GeoEdgeError(msg)
            if kind is np.float64 and not np.isfinite(column).all():
                msg = f"`{each.name}` must be finite numbers, but some are not"
                raise GeoEdgeError(msg)
            object.__setattr__(self, each.name, column)
        if (np.diff(self.created_s) < 0).any():
            msg = "`created_s` must be nondecreasing; sort the requests by time of creation"
            raise GeoEdgeError(msg)
        if (self.mark < 0).any():
            msg = "`mark` must be >= 0"
            raise GeoEdgeError(msg)

    def __len__(self) -> int:
        """Return the number of requests."""
        return int(self.created_s.size)

    @classmethod
    def none(cls) -> Requests:
        """Return no requests."""
        empty = np.zeros(0)
        return cls(empty, empty, empty, np.zeros(0, dtype=np.int64), empty)


@dataclass(frozen=True)
class Records:
    """What happened to every request, in order of creation; times [s] are NaN where they are not settled.

    ``ttft_s`` is ``radio_s + redirect_s + wait_s + prefill_s``. A rejected request has no site (-1), no times and an infinite
    TTFT. Of a request whose site failed, site and times are those of the last site that it was sent to, and the
    time lost before, redirections included, is part of ``wait_s``; of all others that is the wait in the queue of their
    site. If the radio delay does not shift arrivals,
    ``arrived_s`` equals ``created_s`` and the radio delay comes on top of the other two all the same.
    Under the laws other than ``prefill_plus_decode`` and ``deterministic`` the server may be released
    (``finished_s``) before the first token.
    """

    created_s: Floats
    request_type: Ints
    site: Ints
    profile: Ints
    """Profile the site held when the request started; -1 if it has not."""
    distance_km: Floats
    radio_s: Floats
    redirect_s: Floats
    """Time that redirections took; 0 if its site failed."""
    arrived_s: Floats
    started_s: Floats
    wait_s: Floats
    prefill_s: Floats
    first_token_s: Floats
    finished_s: Floats
    ttft_s: Floats
    engine_status: npt.NDArray[np.int8]
    """Code into `ENGINE_STATUS`."""
    rejected: npt.NDArray[np.bool_]
    redirects: Ints
    """Closed sites that sent the request on."""
    lost: Ints
    """Failures of sites that it was sent to."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return int(self.created_s.size)

    def columns(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """Return all columns by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def counts(self) -> dict[str, int]:
        """Return how many requests have each status; they add up to all that were created."""
        numbers = np.bincount(self.engine_status, minlength=len(ENGINE_STATUS))
        return {name: int(number) for name, number in zip(ENGINE_STATUS, numbers, strict=True)}


@dataclass(frozen=True)
class SiteSums:
    """Sums by site over one stretch of time, each of shape (n,).

    Requests on the air or waiting at the start are served within the stretch without having been routed in
    it: ``waiting`` at the end is ``waiting`` at the start + ``arrivals`` − ``started``, less what a site lost that
    failed at the start, plus those that ran at a site that fell silent then: they begin again and count as started
    twice. Requests that are routed again after a failure count in the stretch that follows it.
    """

    start_s: float
    end_s: float
    concurrency: Ints
    """Servers during the stretch."""
    routed: Ints
    """Requests sent to the site."""
    arrivals: Ints
    """Requests that reached it."""
    started: Ints
    waiting: Ints
    """Requests waiting at the end."""
    in_flight: Ints
    """Requests on the air to it at the end."""
    running: Ints
    """Requests holding a server at the end."""
    busy_s: Floats
    """Server time used within the stretch [s]."""
    offered_s: Floats
    """Service asked for by the requests sent [s]."""
    wait_s: Floats
    """Waits of the requests started, summed [s]."""
    prefill_s: Floats
    """Prefill of the requests started, summed [s]."""
    redirected: Ints
    """Requests that the site, closed, sent on."""
    rejected: Ints
    """Requests rejected at the site: the last of the closed ones they asked, or the nearest if none could be asked."""

    @property
    def duration_s(self) -> float:
        """Length of the stretch [s]."""
        return self.end_s - self.start_s

    @property
    def utilization(self) -> Floats:
        """Share of server time used; at most 1, save while servers that were taken away finish."""
        return self._over_servers(self.busy_s)

    @property
    def offered_load(self) -> Floats:
        """Service asked for over server time; a site at 1 or above is unstable."""
        return self._over_servers(self.offered_s)

    def _over_servers(self, seconds: Floats) -> Floats:
        """Return seconds over those of all servers, 0 where there are none, shape (n,)."""
        server_s = self.concurrency * self.duration_s
        share: Floats = np.zeros(server_s.shape)
        np.divide(seconds, server_s, out=share, where=server_s > 0)
        return share

    @property
    def mean_wait_s(self) -> Floats:
        """Mean wait of the requests started [s]; NaN where none was."""
        mean: Floats = np.full(self.wait_s.shape, np.nan)
        np.divide(self.wait_s, self.started, out=mean, where=self.started > 0)
        return mean


def records_of(
    rows: npt.NDArray[np.void], clock_s: float, shift: float = 1.0, redirect_s: float = 0.0
) -> Records:
    """Return the records of request rows as they stand at a time [s].

    Parameters
    ----------
    rows
        `geoedge.serving.stations.REQUEST` rows.
    clock_s
        The time [s].
    shift
        1 if requests reach their sites after the radio delay, 0 if at once.
    redirect_s
        Time that was lost at each site that sent a request on [s].
    """
    column = {name: np.ascontiguousarray(rows[name]) for name in TIMES}
    labels = labels_of(rows)
    column |= {name: labels[name].astype(np.int64) for name in LABELS}
    started, radio, rejected = column["started"], column["radio"], column["site"] < 0
    wait = started - column["arrived"]
    again = np.flatnonzero(column["lost"])
    wait[again] = started[again] - (column["created"][again] + shift * radio[again])
    redirecting = np.zeros(len(rows))
    if redirect_s > 0.0:
        redirecting = redirect_s * column["redirects"]
        redirecting[again] = 0.0
        redirecting[rejected] = np.nan
    ttft = radio + wait + column["prefill"] + redirecting
    ttft[rejected] = np.inf
    status = np.where(~np.isnan(started), 0, np.where(column["arrived"] <= clock_s, 1, 2))
    status[rejected] = ENGINE_STATUS.index("rejected")
    return Records(
        created_s=column["created"],
        request_type=column["type"],
        site=column["site"],
        profile=column["profile"],
        distance_km=column["distance"],
        radio_s=radio,
        redirect_s=redirecting,
        arrived_s=column["arrived"],
        started_s=started,
        wait_s=wait,
        prefill_s=column["prefill"],
        first_token_s=column["created"] + ttft,
        finished_s=column["finished"],
        ttft_s=ttft,
        engine_status=status.astype(np.int8),
        rejected=rejected,
        redirects=column["redirects"],
        lost=column["lost"],
    )
