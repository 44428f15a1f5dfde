"""What several uncoordinated routers have heard: each asks for reports at its own phase and counts what it sends.

The counterpart of `advertising` for routers that are many, hear numbers of requests, hear them with noise, or count
for themselves. Reports are made exactly at their instants, whichever router's request comes next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.serving.advertising import Advert
from geoedge.serving.chance import mixed, normal
from geoedge.serving.stations import Stations, advance, count_present

__all__ = [
    "Routers",
    "believed",
    "continued",
    "cut_off",
    "hear",
    "joined_again",
    "make_routers",
    "report_until",
    "settle_routers",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WAIT, SIGMA, COUNT, SLOPE, SENT = range(5)
"""Columns of a report: wait and its s.d. [s], requests there, wait that one more adds [s], requests this router had
sent."""
GOLDEN = 0.6180339887498949
"""Phases of routers are multiples of this share of the period: spread evenly, and the same whatever their number."""
STATIC, STATE, MEASURED = range(3)
KIND = {"static": STATIC, "state": STATE, "measured": MEASURED}


class Routers(NamedTuple):
    """All routers' ears."""

    start: float
    period: float
    """Time between reports [s]; 0 if every request sees the present, infinite if waits stay as they are given."""
    delay: float
    kind: int
    by_tier: bool
    smoothing: float
    noise: float
    """Standard deviation of the logarithm of a factor of mean 1 on reported numbers."""
    counts_own: bool
    """Whether a router adds what it has sent since the last report."""
    luck: np.uint64
    phase: Floats
    """Time of each router's first report after the start [s], shape (R,)."""
    made: Ints
    """Reports made for each router, shape (R,)."""
    heard: Ints
    """Reports heard by each router, shape (R,)."""
    reports: Floats
    """Reports, the k-th in row k modulo all rows but the last, which holds what was given at first, shape
    (R, ·, n, 5)."""
    begun: Floats
    """Waits begun at each site, their sum [s] and number, up to each router's last report, and the smoothed wait [s],
    shape (R, n, 3)."""
    sent: Floats
    """Requests sent by each router, shape (R, n)."""


def make_routers(
    advert: Advert, n: int, start_s: float, *, routers: int, noise: float, counts_own: bool, seed: int
) -> Routers:
    """Return routers that have heard nothing but the waits given."""
    period = np.inf if advert.kind == "static" else advert.telemetry_period_s
    room = 3 + (int(advert.telemetry_delay_s / period) if period > 0 else 0)
    reports = np.zeros((routers, room + 1, n, 5))
    reports[:, -1, :, WAIT] = advert.waits(n)
    begun = np.zeros((routers, n, 3))
    begun[:, :, 2] = advert.waits(n)
    share = np.arange(routers, dtype=np.float64) * GOLDEN % 1.0
    phase = np.asarray(share * (period if np.isfinite(period) else 0.0), dtype=np.float64)
    return Routers(
        np.inf if advert.kind == "static" else float(start_s),
        float(period),
        float(advert.telemetry_delay_s),
        KIND[advert.kind],
        advert.scope == "tier",
        float(advert.smoothing),
        float(np.sqrt(np.log1p(noise * noise))),
        bool(counts_own),
        np.uint64(seed),
        phase,
        np.zeros(routers, dtype=np.int64),
        np.zeros(routers, dtype=np.int64),
        reports,
        begun,
        np.zeros((routers, n)),
    )


def continued(routers: Routers, advert: Advert) -> Routers:
    """Return routers that go on, with the waits given in an advert where none has been reported yet."""
    n = routers.sent.shape[1]
    routers.reports[:, -1, :, WAIT] = advert.waits(n)
    return routers


@inlined
def _state_of(i: int, now: float, row: Floats, stations: Stations) -> None:
    """Write what site i says of its present queue."""
    site = stations.sites[i]
    there = count_present(i, now, stations)
    slope = site["service_sum"] / site["service_count"] / site["concurrency"]
    ahead = max(there + 1 - site["concurrency"], 0)
    row[WAIT], row[SIGMA] = ahead * slope, np.sqrt(float(ahead)) * slope
    row[COUNT], row[SLOPE] = there, slope


@kernel
def _note_state(i: int, now: float, row: Floats, stations: Stations) -> None:
    """Write what site i says of its present queue, for callers that are not compiled."""
    _state_of(i, now, row, stations)


@inlined
def _measured_of(
    i: int, now: float, r: int, row: Floats, routers: Routers, stations: Stations
) -> tuple[float, float]:
    """Write the sum of the waits begun at site i since router r's last report; return their number, and 1 if it is full.

    One that is silent counts as full, so that nobody hears it to be idle.
    """
    site, begun = stations.sites[i], routers.begun
    there = count_present(i, now, stations)
    slope = site["service_sum"] / site["service_count"] / site["concurrency"]
    row[WAIT], number = site["heard_wait_s"] - begun[r, i, 0], site["heard_starts"] - begun[r, i, 1]
    begun[r, i, 0], begun[r, i, 1] = site["heard_wait_s"], site["heard_starts"]
    row[SIGMA], row[COUNT], row[SLOPE] = 0.0, there, slope
    return float(number), 1.0 if site["silent"] or there >= site["concurrency"] else 0.0


@kernel
def _tier_means(report: Floats, number: Floats, full: Floats, stations: Stations) -> None:
    """Replace waits, deviations, numbers and full sites by their sums over the sites of one profile."""
    tiers = 0
    for i in range(number.size):
        tiers = max(tiers, stations.sites[i]["profile"] + 1)
    sums = np.zeros((tiers, 4))
    for i in range(number.size):
        s = stations.sites[i]["profile"]
        sums[s, 0] += report[i, WAIT]
        sums[s, 1] += report[i, SIGMA]
        sums[s, 2] += number[i]
        sums[s, 3] += full[i]
    for i in range(number.size):
        s = stations.sites[i]["profile"]
        report[i, WAIT], report[i, SIGMA], number[i], full[i] = sums[s]


@kernel
def _make(r: int, now: float, routers: Routers, stations: Stations) -> None:
    """Make router r's next report."""
    n, k = stations.sites.size, routers.made[r]
    report = routers.reports[r, k % (routers.reports.shape[1] - 1)]
    number, full = np.ones(n), np.zeros(n)
    for i in range(n):
        if routers.kind == MEASURED:
            number[i], full[i] = _measured_of(i, now, r, report[i], routers, stations)
        else:
            _state_of(i, now, report[i], stations)
        report[i, SENT] = routers.sent[r, i]
    if routers.by_tier:
        _tier_means(report, number, full, stations)
    luck = mixed(mixed(routers.luck, r), k)
    for i in range(n):
        if routers.kind == MEASURED:
            if number[i] > 0 or full[i] == 0:
                mean = report[i, WAIT] / max(number[i], 1.0)
                routers.begun[r, i, 2] += routers.smoothing * (mean - routers.begun[r, i, 2])
            report[i, WAIT] = routers.begun[r, i, 2]
        else:
            report[i, WAIT] /= number[i]
            report[i, SIGMA] /= number[i]
        if routers.noise > 0.0:
            factor = np.exp(routers.noise * normal(luck, i) - 0.5 * routers.noise**2)
            report[i, WAIT] *= factor
            report[i, SIGMA] *= factor
            report[i, COUNT] *= factor
    routers.made[r] = k + 1


@kernel
def report_until(now: float, routers: Routers, stations: Stations) -> float:
    """Make all reports due by now, in order of time; return when the next is due [s]."""
    if not 0.0 < routers.period < np.inf:
        return np.inf
    while True:
        first, due = 0, np.inf
        for r in range(routers.made.size):
            at = routers.start + routers.phase[r] + routers.made[r] * routers.period
            if at < due:
                first, due = r, at
        if due > now:
            return due
        _make(first, due, routers, stations)


@inlined
def hear(r: int, now: float, routers: Routers) -> int:
    """Return the row of the last report that router r has heard by now."""
    heard = routers.heard[r]
    while heard < routers.made[r] and (
        routers.start + routers.phase[r] + heard * routers.period + routers.delay <= now
    ):
        heard += 1
    routers.heard[r] = heard
    rows = routers.reports.shape[1] - 1
    return int(rows if heard == 0 else (heard - 1) % rows)


def cut_off(now: float, routers: Routers, stations: Stations) -> Routers:
    """Return routers that keep what each has heard by now [s] and hear nothing more.

    Those that see the present keep what they see now. All go on counting for themselves.
    """
    for r in range(routers.made.size):
        if routers.period == 0.0:
            for i in range(stations.sites.size):
                _note_state(i, now, routers.reports[r, 0, i], stations)
            routers.reports[r, 0, :, SENT] = routers.sent[r]
            routers.made[r] = routers.heard[r] = 1
        hear(r, now, routers)
    return routers._replace(period=np.inf)


def joined_again(now: float, period: float, routers: Routers) -> Routers:
    """Return routers that hear again what is reported from now on [s], at the instants at which it always was.

    Reports that were on their way when the routers were cut off, or fell due meanwhile, are lost.
    """
    rows = routers.reports.shape[1] - 1
    for r in range(routers.made.size if 0.0 < period < np.inf else 0):
        first = int(np.ceil((now - routers.start - routers.phase[r]) / period))
        number = max(int(routers.made[r]), first, 0)
        known = routers.reports[r, hear(r, -np.inf, routers)].copy()
        if routers.heard[r] == 0:
            known[:, SENT] = routers.sent[r]
        if number:
            routers.reports[r, (number - 1) % rows] = known
        routers.made[r] = routers.heard[r] = number
    return routers._replace(period=period)


@inlined
def believed(
    r: int, i: int, row: int, now: float, scratch: Floats, routers: Routers, stations: Stations
) -> tuple[float, float, float, float]:
    """Return wait, its s.d. [s], number of requests, and wait of one more ahead [s], as router r believes of site i."""
    if routers.period == 0.0:
        _state_of(i, now, scratch, stations)
        return scratch[WAIT], scratch[SIGMA], scratch[COUNT], scratch[SLOPE]
    report = routers.reports[r, row, i]
    wait, count = report[WAIT], report[COUNT]
    if routers.counts_own and routers.heard[r] > 0:
        own, c = routers.sent[r, i] - report[SENT], stations.sites[i]["concurrency"]
        more = max(count + own + 1.0 - c, 0.0) - max(count + 1.0 - c, 0.0)
        return wait + more * report[SLOPE], report[SIGMA], count + own, report[SLOPE]
    return wait, report[SIGMA], count, report[SLOPE]


@kernel
def settle_routers(until: float, routers: Routers, stations: Stations) -> None:
    """Let time pass at all sites, with the reports due meanwhile."""
    if until < np.inf:
        report_until(until, routers, stations)
    for i in range(stations.sites.size):
        advance(i, until, stations)
