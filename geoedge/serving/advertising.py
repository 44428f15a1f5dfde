"""What sites say about their waits, how often, and how late it is heard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import kernel
from geoedge.errors import GeoEdgeError
from geoedge.serving.stations import Stations, advance, expected_wait, has_free_server

__all__ = ["Advert", "Telemetry", "due", "listen", "make_telemetry", "skip_reports"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

KINDS = ("static", "state", "measured")
SCOPES = ("site", "tier")


@dataclass(frozen=True)
class Advert:
    """How waits are advertised.

    Parameters
    ----------
    kind
        ``static``: the waits given, until others are given (so `equilibrium` prices are advertised);
        ``state``: the expected wait of a new arrival from the site's present queue; ``measured``: the
        exponentially smoothed mean of the waits that ended with a start in a period. A period without a start
        counts as a mean of zero if a server is free at its end, else not at all: otherwise a site once thought busy
        would never be asked again, and so never heard to be idle.
    wait_s
        Waits [s], one or shape (n,): those advertised (``static``), or those before the first report.
    scope
        Each ``site`` says its own, or all sites of a ``tier`` the mean of the tier (``state``: of its sites'
        waits; ``measured``: of its requests'). Static waits are advertised as given.
    telemetry_period_s
        Time between reports [s]; 0: the state at the very instant of each request.
    telemetry_delay_s
        Time from a report until routers know it [s].
    smoothing
        Weight of the last period's mean in a measured wait, above 0 and at most 1.
    prefill
        Prefill that routers believe sites to need [s], shape (n, Q), infinite where a site does not serve a type;
        None: what sites hold. Services follow what a site really holds when they start.
    """

    kind: Literal["static", "state", "measured"] = "static"
    wait_s: float | Floats = 0.0
    scope: Literal["site", "tier"] = "site"
    telemetry_period_s: float = 1.0
    telemetry_delay_s: float = 0.0
    smoothing: float = 0.5
    prefill: Floats | None = None

    def __post_init__(self) -> None:
        """Refuse what has no meaning."""
        if self.kind not in KINDS:
            msg = f"`kind` must be one of {KINDS}, not {self.kind!r}"
            raise GeoEdgeError(msg)
        if self.scope not in SCOPES:
            msg = f"`scope` must be one of {SCOPES}, not {self.scope!r}"
            raise GeoEdgeError(msg)
        if not (0 <= self.telemetry_period_s < np.inf and 0 <= self.telemetry_delay_s < np.inf):
            msg = (
                "`telemetry_period_s` and `telemetry_delay_s` must be finite and >= 0, "
                f"not {self.telemetry_period_s} and {self.telemetry_delay_s}"
            )
            raise GeoEdgeError(msg)
        if self.telemetry_period_s == 0 and (self.telemetry_delay_s > 0 or self.kind == "measured"):
            msg = "`telemetry_period_s` = 0 goes with kind 'state' and no delay only; give a period above 0"
            raise GeoEdgeError(msg)
        if not 0 < self.smoothing <= 1:
            msg = f"`smoothing` must be above 0 and at most 1, not {self.smoothing}"
            raise GeoEdgeError(msg)

    def waits(self, n_sites: int) -> Floats:
        """Return the waits given [s], shape (n,).

        Parameters
        ----------
        n_sites
            Number of sites n.

        Raises
        ------
        GeoEdgeError
            If waits are negative, NaN, infinite before the first report, or not as many as sites.
        """
        if np.shape(self.wait_s) not in ((), (n_sites,)):
            msg = f"`wait_s` must be one wait or one for each of {n_sites} sites, not of shape {np.shape(self.wait_s)}"
            raise GeoEdgeError(msg)
        wait = np.array(np.broadcast_to(self.wait_s, n_sites), dtype=np.float64)
        if np.isnan(wait).any() or (wait < 0).any():
            msg = "`wait_s` must be waits >= 0 in s (inf closes a site), not negative or NaN"
            raise GeoEdgeError(msg)
        if self.kind != "static" and np.isinf(wait).any():
            msg = f"`wait_s` before the first report must be finite under kind {self.kind!r}; inf closes a static site only"
            raise GeoEdgeError(msg)
        return wait

    def believed_prefill(self, held: Floats) -> Floats:
        """Return the prefill that routers believe [s], shape (n, Q).

        Parameters
        ----------
        held
            What sites need by what they hold [s], shape (n, Q).

        Raises
        ------
        GeoEdgeError
            If what was given has another shape or is negative.
        """
        if self.prefill is None:
            return held
        prefill = np.ascontiguousarray(self.prefill, dtype=np.float64)
        if prefill.shape != held.shape or not (prefill >= 0).all():
            msg = f"`prefill` must be times >= 0 in s of shape {held.shape} (inf where a site serves no such request)"
            raise GeoEdgeError(msg)
        return prefill

    def continues(self, other: Advert | None) -> bool:
        """Return whether reports go on as under another advert; the waits given may differ.

        Parameters
        ----------
        other
            The advert before; None if there was none.
        """
        return other is not None and all(
            getattr(self, name) == getattr(other, name)
            for name in ("kind", "scope", "telemetry_period_s", "telemetry_delay_s", "smoothing")
        )


class Telemetry(NamedTuple):
    """Reports on their way from sites to routers."""

    start: float
    period: float
    delay: float
    measured: bool
    by_tier: bool
    smoothing: float
    reports: Ints
    """Reports made and reports heard, shape (2,)."""
    report: Floats
    """The reports on their way [s], the k-th in row k modulo their greatest number, shape (·, n)."""
    smoothed: Floats
    """Smoothed waits [s], shape (n,)."""


def make_telemetry(advert: Advert, n_sites: int, start_s: float) -> Telemetry:
    """Return telemetry that makes its first report at a time [s]; static waits never report."""
    period = np.inf if advert.kind == "static" else advert.telemetry_period_s
    room = 2 + (int(advert.telemetry_delay_s / period) if period > 0 else 0)
    return Telemetry(
        np.inf if advert.kind == "static" else float(start_s),
        float(period),
        float(advert.telemetry_delay_s),
        advert.kind == "measured",
        advert.scope == "tier",
        float(advert.smoothing),
        np.zeros(2, dtype=np.int64),
        np.zeros((room, n_sites)),
        advert.waits(n_sites),
    )


def skip_reports(now: float, telemetry: Telemetry) -> None:
    """Leave out the reports that are on their way or were due before now [s]; the next is made when it always was."""
    if 0.0 < telemetry.period < np.inf:
        due_by_now = int(np.ceil((now - telemetry.start) / telemetry.period))
        telemetry.reports[:] = max(int(telemetry.reports[0]), due_by_now)


@kernel
def _share_by_tier(values: Floats, weights: Floats, stations: Stations) -> None:
    """Replace values and weights by their sums over the sites of one profile."""
    sites = stations.sites
    tiers = 0
    for i in range(values.size):
        tiers = max(tiers, sites[i]["profile"] + 1)
    value_sum, weight_sum = np.zeros(tiers), np.zeros(tiers)
    for i in range(values.size):
        value_sum[sites[i]["profile"]] += values[i]
        weight_sum[sites[i]["profile"]] += weights[i]
    for i in range(values.size):
        values[i], weights[i] = value_sum[sites[i]["profile"]], weight_sum[sites[i]["profile"]]


@kernel
def _make_report(now: float, report: Floats, telemetry: Telemetry, stations: Stations) -> None:
    sites = stations.sites
    weight, full, one = np.empty(report.size), np.zeros(report.size), np.ones(report.size)
    for i in range(report.size):
        weight[i] = 1.0
        if telemetry.measured:
            advance(i, now, stations)
            full[i] = 0.0 if has_free_server(i, now, stations) else 1.0
            report[i], weight[i] = sites[i]["heard_wait_s"], sites[i]["heard_starts"]
            sites[i]["heard_wait_s"], sites[i]["heard_starts"] = 0.0, 0.0
        else:
            report[i] = expected_wait(i, now, stations)
    if telemetry.by_tier:
        _share_by_tier(report, weight, stations)
        _share_by_tier(full, one, stations)
    for i in range(report.size):
        if telemetry.measured:
            if weight[i] > 0 or full[i] == 0:
                mean = report[i] / max(weight[i], 1.0)
                telemetry.smoothed[i] += telemetry.smoothing * (mean - telemetry.smoothed[i])
            report[i] = telemetry.smoothed[i]
        else:
            report[i] /= weight[i]


@kernel
def due(telemetry: Telemetry) -> float:
    """Return when the next report is made or heard [s]."""
    made = telemetry.start + telemetry.reports[0] * telemetry.period if telemetry.start < np.inf else np.inf
    if telemetry.reports[1] == telemetry.reports[0]:
        return made
    return float(min(made, telemetry.start + telemetry.reports[1] * telemetry.period + telemetry.delay))


@kernel
def listen(now: float, wait: Floats, telemetry: Telemetry, stations: Stations) -> float:
    """Make and hear all reports due by now, into the waits advertised [s]; return when the next is due [s]."""
    reports, room = telemetry.reports, telemetry.report.shape[0]
    if telemetry.period == 0:
        _make_report(now, wait, telemetry, stations)
        return now
    while due(telemetry) <= now:
        made = telemetry.start + reports[0] * telemetry.period
        heard = telemetry.start + reports[1] * telemetry.period + telemetry.delay
        if reports[1] < reports[0] and heard <= made:
            for i in range(wait.size):
                wait[i] = telemetry.report[reports[1] % room, i]
            reports[1] += 1
        else:
            _make_report(made, telemetry.report[reports[0] % room], telemetry, stations)
            reports[0] += 1
    return due(telemetry)
