"""What goes into the event loop and what comes out: columns of requests, and sums by site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError

__all__ = ["ENGINE_STATUS", "Records", "Requests", "SiteSums", "records_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ENGINE_STATUS = ("served", "waiting", "in_flight", "rejected")
"""Names of the codes in `Records.engine_status`. A request is served once it has started, for then all its times
are settled; it waits at its site, or is still on the air, when the clock stands before that."""


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
    """

    created_s: Floats
    x_km: Floats
    y_km: Floats
    request_type: Ints
    mark: Floats

    def __post_init__(self) -> None:
        """Make plain columns of one length and refuse what is not a number."""
        m = np.size(self.created_s)
        for field in fields(self):
            kind = np.int64 if field.name == "request_type" else np.float64
            column = np.ascontiguousarray(getattr(self, field.name), dtype=kind)
            if column.shape != (m,):
                msg = f"`{field.name}` must have the shape of `created_s`, ({m},), not {column.shape}"
                raise GeoEdgeError(msg)
            if not np.isfinite(column).all():
                msg = f"`{field.name}` must be finite numbers, but some are not"
                raise GeoEdgeError(msg)
            object.__setattr__(self, field.name, column)
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

    ``ttft_s`` is ``radio_s + wait_s + prefill_s``. If the radio delay does not shift arrivals,
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
    arrived_s: Floats
    started_s: Floats
    wait_s: Floats
    prefill_s: Floats
    first_token_s: Floats
    finished_s: Floats
    ttft_s: Floats
    engine_status: npt.NDArray[np.int8]
    """Code into `ENGINE_STATUS`."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return int(self.created_s.size)

    def columns(self) -> Mapping[str, npt.NDArray[np.generic]]:
        """Return all columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def counts(self) -> dict[str, int]:
        """Return how many requests have each status; they add up to all that were created."""
        numbers = np.bincount(self.engine_status, minlength=len(ENGINE_STATUS))
        return {name: int(number) for name, number in zip(ENGINE_STATUS, numbers, strict=True)}


@dataclass(frozen=True)
class SiteSums:
    """Sums by site over one stretch of time, each of shape (n,).

    Requests on the air or waiting at the start are served within the stretch without having been routed in
    it: ``waiting`` at the end is ``waiting`` at the start + ``arrivals`` − ``started``.
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

    @property
    def duration_s(self) -> float:
        """Length of the stretch [s]."""
        return self.end_s - self.start_s

    @property
    def utilization(self) -> Floats:
        """Share of server time used; at most 1, save while servers that were taken away finish."""
        return self.busy_s / (self.concurrency * self.duration_s)

    @property
    def offered_load(self) -> Floats:
        """Service asked for over server time; a site at 1 or above is unstable."""
        return self.offered_s / (self.concurrency * self.duration_s)

    @property
    def mean_wait_s(self) -> Floats:
        """Mean wait of the requests started [s]; NaN where none was."""
        mean: Floats = np.full(self.wait_s.shape, np.nan)
        np.divide(self.wait_s, self.started, out=mean, where=self.started > 0)
        return mean


def records_of(rows: npt.NDArray[np.void], clock_s: float) -> Records:
    """Return the records of request rows as they stand at a time [s]."""
    column = {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}
    started, radio = column["started"], column["radio"]
    wait = started - column["arrived"]
    ttft = radio + wait + column["prefill"]
    status = np.where(~np.isnan(started), 0, np.where(column["arrived"] <= clock_s, 1, 2))
    return Records(
        created_s=column["created"],
        request_type=column["type"].astype(np.int64),
        site=column["site"].astype(np.int64),
        profile=column["profile"].astype(np.int64),
        distance_km=column["distance"],
        radio_s=radio,
        arrived_s=column["arrived"],
        started_s=started,
        wait_s=wait,
        prefill_s=column["prefill"],
        first_token_s=column["created"] + ttft,
        finished_s=column["finished"],
        ttft_s=ttft,
        engine_status=status.astype(np.int8),
    )
