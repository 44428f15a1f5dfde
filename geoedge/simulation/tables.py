"""From columns to the tables of a run: records, epochs, steps, actions, sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from geoedge.control.actions import REPAIRS
from geoedge.control.log import outcomes
from geoedge.results import RECORD_COLUMNS, STATUS
from geoedge.serving.records import Requests
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.control.log import LogEntry, Review
    from geoedge.control.placement import PlacementEvent
    from geoedge.serving.records import Records, SiteSums
    from geoedge.serving.warm import Turns
    from geoedge.simulation.mobility import Asked
    from geoedge.sites import Layout

    Floats = NDArray[np.float64]

__all__ = [
    "Drawn",
    "Held",
    "Tally",
    "action_table",
    "epoch_frame",
    "record_table",
    "series_table",
    "site_table",
    "status_at",
]

SERVED, IN_SERVICE, WAITING, IN_FLIGHT, REJECTED = range(len(STATUS))


@dataclass(frozen=True, eq=False)
class Drawn:
    """All that chance decides about an epoch's requests: who asks what, when and where, and the service marks."""

    asked: Asked
    mark: Floats
    turns: Turns | None = None
    """Which turn of which session each request is, in a run with sessions."""

    def between(self, start_s: float, end_s: float, routers: int = 1) -> Requests:
        """Return the requests made from one time to just before another, as the event loop takes them.

        Every user has one of the routers, in turn by number.
        """
        created = self.asked.created_s
        part = slice(*np.searchsorted(created, (start_s, end_s), side="left").tolist())
        asked = self.asked
        return Requests(
            created[part],
            asked.x_m[part] / KM,
            asked.y_m[part] / KM,
            asked.request_type[part].astype(np.int64),
            self.mark[part],
            asked.user[part].astype(np.int64) % routers,
            None if self.turns is None else self.turns.part(part),
        )


@dataclass
class Held:
    """What sites held and were priced at over an epoch, by how long.

    Parameters
    ----------
    n, profiles
        Number of sites n and of profiles S.
    """

    n: int
    profiles: int
    duration_s: float = 0.0
    _profile_s: Floats = field(init=False)
    _wait: Floats = field(init=False)
    _utilization: Floats = field(init=False)

    def __post_init__(self) -> None:
        self._profile_s = np.zeros((self.n, self.profiles))
        self._wait, self._utilization = np.zeros(self.n), np.zeros(self.n)

    def add(self, duration_s: float, profile: NDArray[np.int64], wait_s: Floats, utilization: Floats) -> None:
        """Add a stretch in which nothing changed: profiles, advertised waits and predicted utilisation, shape (n,)."""
        self.duration_s += duration_s
        self._profile_s[np.arange(self.n), profile] += duration_s
        self._wait += duration_s * wait_s
        self._utilization += duration_s * utilization

    @property
    def profile(self) -> NDArray[np.int64]:
        """Profile held for most of the time, shape (n,)."""
        return np.asarray(self._profile_s.argmax(axis=1), dtype=np.int64)

    @property
    def wait_s(self) -> Floats:
        """Advertised wait, time mean [s], shape (n,)."""
        return self._wait / self.duration_s

    @property
    def utilization(self) -> Floats:
        """Predicted utilisation, time mean, shape (n,)."""
        return self._utilization / self.duration_s


@dataclass
class Tally:
    """Sums by site over an epoch or a step, stretch by stretch; ``server_s`` is ∫ servers dt [s]."""

    n: int
    busy_s: Floats = field(init=False)
    server_s: Floats = field(init=False)
    prefill_s: Floats = field(init=False)
    offered_s: Floats = field(init=False)
    duration_s: float = 0.0
    waiting: NDArray[np.int64] = field(init=False)
    running: NDArray[np.int64] = field(init=False)
    rejected: NDArray[np.int64] = field(init=False)
    routed: int = 0

    def __post_init__(self) -> None:
        for name in ("busy_s", "server_s", "prefill_s", "offered_s"):
            setattr(self, name, np.zeros(self.n))
        for name in ("waiting", "running", "rejected"):
            setattr(self, name, np.zeros(self.n, dtype=np.int64))

    def add(self, sums: SiteSums) -> None:
        """Add a stretch of the event loop."""
        self.busy_s += sums.busy_s
        self.server_s += sums.concurrency * sums.duration_s
        self.prefill_s += sums.prefill_s
        self.offered_s += sums.offered_s
        self.duration_s += sums.duration_s
        self.waiting, self.running = sums.waiting, sums.running
        self.rejected += sums.rejected
        self.routed += int(sums.routed.sum())

    @property
    def utilization(self) -> Floats:
        """Share of server time used, shape (n,)."""
        return self.busy_s / np.maximum(self.server_s, 1e-12)

    @property
    def offered_load(self) -> Floats:
        """Service asked for over server time, shape (n,); at 1 or above a site cannot keep up."""
        return self.offered_s / np.maximum(self.server_s, 1e-12)


def status_at(records: Records, horizon_s: float) -> NDArray[np.int8]:
    """Return what every request is at a time [s], as an index into `STATUS`."""
    status = np.full(len(records), SERVED, dtype=np.int8)
    status[~(records.finished_s <= horizon_s)] = IN_SERVICE
    status[~(records.started_s <= horizon_s)] = WAITING
    status[records.arrived_s > horizon_s] = IN_FLIGHT
    status[records.rejected] = REJECTED
    return status


def record_table(
    records: Records,
    drawn: Mapping[str, NDArray[Any]],
    hit_tokens: NDArray[np.int64],
    status: NDArray[np.int8],
) -> pa.Table:
    """Return one row a request.

    Parameters
    ----------
    records
        What happened to every request, all settled.
    drawn
        Columns that do not depend on service: user, activity, x_m, y_m, epoch.
    hit_tokens
        Hit that each could use [token], shape (m,).
    status
        What each was at the horizon.
    """
    columns = dict(records.columns()) | dict(drawn)
    columns["hit_tokens"] = np.where(records.rejected, 0, hit_tokens)
    columns["status"] = status
    return pa.table({name: np.asarray(columns[name]).astype(kind) for name, kind in RECORD_COLUMNS.items()})


def epoch_frame(table: pa.Table, rows: Sequence[Mapping[str, Any]], tau: float) -> pd.DataFrame:
    """Return one row an epoch and site.

    Sites may change within an epoch. Of the columns noted, ``profile`` and ``concurrency`` are what a site held
    for most of the epoch and ``profile_at_end`` what it held last; ``server_s`` is its servers integrated over
    the epoch, and ``utilization`` and ``offered_load`` are busy seconds and service asked for over that, so that
    means over sites or epochs are to be weighted with it. Among ``requests`` and ``missed`` are those ``rejected`` at
    the site. ``advertised_wait_s`` is the catalogue's price and
    ``predicted_utilization`` what the field expected, both as means over time.

    Parameters
    ----------
    table
        Records.
    rows
        What was noted of each epoch: numbers, or arrays of shape (n,).
    tau
        TTFT target [s].
    """
    n = len(rows[0]["site"])
    sent = table.column("site").to_numpy() >= 0
    epoch, site, ttft, wait = (
        table.column(name).to_numpy()[sent] for name in ("epoch", "site", "ttft_s", "wait_s")
    )
    key, size = epoch.astype(np.int64) * n + site, len(rows) * n
    requests = np.bincount(key, minlength=size).reshape(len(rows), n)
    missed = np.bincount(key, weights=ttft > tau, minlength=size)
    waits = np.bincount(key, weights=wait, minlength=size)
    frames = []
    for k, row in enumerate(rows):
        seconds, asked = row["end_s"] - row["start_s"], requests[k] + row["rejected"]
        seen = {
            "requests": asked,
            "missed": missed.reshape(len(rows), n)[k].astype(np.int64) + row["rejected"],
            "arrival_rate_per_s": asked / seconds,
            "mean_wait_s": _ratio(waits.reshape(len(rows), n)[k], requests[k]),
        }
        frames.append(pd.DataFrame({"epoch": np.full(n, k)} | dict(row) | seen))
    return pd.concat(frames, ignore_index=True)


def _ratio(total: Floats, count: NDArray[np.int64]) -> Floats:
    return np.divide(total, count, out=np.zeros(len(count)), where=count > 0)


def series_table(live: pd.DataFrame, table: pa.Table, tau: float, start_s: float) -> pd.DataFrame:
    """Return one row a step: what the model reported, with coverage and TTFT by the time of creation.

    While the run goes on, the TTFT of the latest requests is not known yet; here it is. Rejected requests are
    misses and have no part in the mean TTFT.

    Parameters
    ----------
    live
        Model reporters, one row a step; ``time_s`` is the end of the step.
    table
        Records.
    tau
        TTFT target [s].
    start_s
        Start of the first step [s].
    """
    created, ttft = table.column("created_s").to_numpy(), table.column("ttft_s").to_numpy()
    edges = np.concatenate(([start_s], live["time_s"].to_numpy()))
    step = np.clip(np.searchsorted(edges, created, side="left") - 1, 0, len(live) - 1)
    series, taken = live.copy(), np.isfinite(ttft)
    series["requests"] = np.bincount(step, minlength=len(live))
    for name, part, weights in (
        ("coverage", slice(None), (ttft <= tau).astype(float)),
        ("mean_ttft_s", taken, ttft[taken]),
    ):
        count = np.bincount(step[part], minlength=len(live))
        total = np.bincount(step[part], weights=weights, minlength=len(live))
        series[name] = np.divide(total, count, out=np.full(len(live), np.nan), where=count > 0)
    return series


def action_table(
    log: Sequence[LogEntry],
    reviews: Mapping[int, Review],
    measured_coverage: Mapping[int, float],
    journal: Sequence[PlacementEvent],
) -> pd.DataFrame:
    """Return the controller's log.

    ``predicted_gain`` is what was expected of an action in the epoch that started, which is what can be held against
    what came of it; ``horizon_gain`` is the mean over the ``horizon_epochs`` that the planner planned for, by their
    requests, which is what it chose by. The two are the same for planners that look no further.

    An epoch's realised gain is what its actions did in hindsight: the field's coverage with them less the field's
    coverage without them, both under the demand that really came and at the prices set for the demand before.
    It is shared out over the epoch's actions in the ratio of their predicted gains, or evenly where some promised
    none, so that the rows add up to it; an action whose sites have all failed meanwhile has no part in it, and NaN. How
    far the field itself is off is no part of it and has its own column: ``model_error`` is the coverage measured in the
    epoch less the field's with the actions, the same for all actions of an epoch and not shared out. Both are NaN where
    sites report waits themselves, of which the field knows nothing; there only paired runs tell. So they are for what
    sites do by themselves, which no plan has promised.

    ``transfer_s`` is the time that the bytes take at the backhaul's rate; they begin to move at ``moving_s``, when
    running requests leave room, and the last of them is there at ``effective_s``. Both are NaN if it never came to that.

    Parameters
    ----------
    log
        Actions taken.
    reviews
        What the field says afterwards, by epoch.
    measured_coverage
        Coverage of the requests of each epoch.
    journal
        The journal of the placement.
    """
    shares, rows = _shares(log, reviews), []
    for entry, share, (moving, effective) in zip(log, shares, outcomes(log, journal), strict=True):
        first, *others = entry.action.changes
        review, measured = reviews.get(entry.epoch), measured_coverage.get(entry.epoch, np.nan)
        review = None if entry.action.kind in REPAIRS else review
        rows.append(
            {
                "epoch": entry.epoch,
                "time_s": entry.time_s,
                "action": entry.action.kind,
                "site": first.site,
                "from_profile": first.from_profile,
                "to_profile": first.to_profile,
                "partner_site": others[0].site if others else -1,
                "bytes_moved": entry.action.bytes_moved,
                "transfer_s": entry.transfer_s,
                "compute_s": max(change.compute_s for change in entry.action.changes),
                "moving_s": moving,
                "effective_s": effective,
                "predicted_gain": entry.action.predicted_gain,
                "horizon_gain": entry.action.horizon_gain,
                "horizon_epochs": entry.action.horizon_epochs,
                "realised_gain": share * review.gain if review else np.nan,
                "model_error": measured - review.with_actions if review else np.nan,
                "reason": entry.action.reason,
            }
        )
    return pd.DataFrame(rows, columns=list(_ACTION_TYPES)).astype(_ACTION_TYPES)


def _shares(log: Sequence[LogEntry], reviews: Mapping[int, Review]) -> list[float]:
    """Return which part of its epoch's gain each action has; NaN for those that no review is about."""
    judged = [
        entry.action.kind not in REPAIRS
        and entry.epoch in reviews
        and reviews[entry.epoch].judges(entry.action)
        for entry in log
    ]
    promised: dict[int, list[float]] = {}
    for entry, counts in zip(log, judged, strict=True):
        if counts:
            promised.setdefault(entry.epoch, []).append(entry.action.predicted_gain)
    shares = []
    for entry, counts in zip(log, judged, strict=True):
        gains = promised.get(entry.epoch, [0.0])
        share = entry.action.predicted_gain / sum(gains) if min(gains) > 0.0 else 1.0 / len(gains)
        shares.append(share if counts else np.nan)
    return shares


_ACTION_TYPES = {
    "epoch": "int64",
    "time_s": "float64",
    "action": "str",
    "site": "int64",
    "from_profile": "int64",
    "to_profile": "int64",
    "partner_site": "int64",
    "bytes_moved": "float64",
    "transfer_s": "float64",
    "compute_s": "float64",
    "moving_s": "float64",
    "effective_s": "float64",
    "predicted_gain": "float64",
    "horizon_gain": "float64",
    "horizon_epochs": "int64",
    "realised_gain": "float64",
    "model_error": "float64",
    "reason": "str",
}


def site_table(city: City, layout: Layout) -> pd.DataFrame:
    """Return one row a site, with the street it stands at and what it holds at the start."""
    lonlat = city.to_lonlat(layout.xy)
    return pd.DataFrame(
        {
            "site": np.arange(len(layout)),
            "name": list(layout.name),
            "kind": list(layout.kind),
            "street": city.street_names.at(layout.xy),
            "lon": lonlat[:, 0],
            "lat": lonlat[:, 1],
            "x_m": layout.xy[:, 0],
            "y_m": layout.xy[:, 1],
            "profile": layout.profile,
        }
    )
