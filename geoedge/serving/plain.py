"""Routing in closed form by one router that finds the cheapest site without looking at all of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.policies import Policy
from geoedge.serving.advertising import Advert, Telemetry, listen, make_telemetry, skip_reports
from geoedge.serving.candidates import NO_LISTS, CandidateLists, Ground
from geoedge.serving.doors import OPEN, Doors
from geoedge.serving.keeper import ListKeeper
from geoedge.serving.loop import serve, serve_guarded, settle
from geoedge.serving.records import Requests
from geoedge.serving.routing import checked_offset
from geoedge.serving.stations import Stations, expected_wait

__all__ = ["PlainRouting"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FIRST_BATCH, LAST_BATCH = 1 << 12, 1 << 16
"""Requests after which the pruning of routes by advertised state is reviewed: soon at first, then seldom."""


class PlainRouting:
    """One router with a policy that theory and field know too.

    Parameters
    ----------
    policy
        The policy.
    ground
        Where the sites are and what distance costs.
    shift
        1 if requests reach sites after the radio delay, 0 if at once.
    slack
        Slack of the first candidate lists [s].
    start_s
        Where the clock starts [s].
    """

    def __init__(self, policy: Policy, ground: Ground, shift: float, slack: float, start_s: float) -> None:
        self.policy, self.ground, self.shift = policy, ground, shift
        self.n_sites = len(ground.site_xy)
        self.advert = Advert()
        self._heard = np.zeros(self.n_sites)
        self._telemetry = make_telemetry(self.advert, self.n_sites, start_s)
        self._silence = make_telemetry(Advert(), self.n_sites, 0.0)
        self._parted = False
        self._lists = ListKeeper(slack=slack)
        self._offset: Floats = np.zeros((self.n_sites, 1))
        self._open_offset, self._guarded = self._offset, False

    def take_up(self, advert: Advert, clock_s: float, doors: Doors, stations: Stations) -> None:
        """Hear an advert: find what sites cost, at least, for as long as nothing else is advertised."""
        prefill, zero = advert.believed_prefill(stations.prefill), np.zeros(self.n_sites)
        if advert.kind == "static" or self.policy.reads != "wait":
            heeded = advert if self.policy.reads == "wait" else Advert()
            self.advert = Advert(wait_s=heeded.wait_s, prefill=advert.prefill)
            self._telemetry = make_telemetry(self.advert, self.n_sites, clock_s)
            self._heard = zero
            offset = self.policy(prefill, heeded.waits(self.n_sites))
        else:
            if not advert.continues(self.advert):
                self._telemetry = make_telemetry(advert, self.n_sites, clock_s)
                self._heard = advert.waits(self.n_sites)
                stations.sites["heard_wait_s"] = stations.sites["heard_starts"] = 0.0
            self.advert = advert
            offset = self.policy(prefill, zero)
        self._offset = checked_offset(np.where(np.isfinite(prefill), offset, np.inf), self.n_sites)
        self.mind(doors)

    def mind(self, doors: Doors) -> None:
        """Take note of which doors are open."""
        self._open_offset = self._offset
        self._guarded = bool((doors.state != OPEN).any())
        if self._guarded:
            self._open_offset = np.where((doors.state == OPEN)[:, None], self._offset, np.inf)

    def serve(
        self,
        first: int,
        requests: Requests,
        x: Floats,
        y: Floats,
        drawn: Floats,
        doors: Doors,
        stations: Stations,
    ) -> None:
        """Route requests, the first of them to row `first`; places in the window [km], services drawn."""
        new = stations.requests[first : first + len(requests)]
        if self._guarded:
            new["created"], new["mark"], new["type"] = requests.created_s, drawn, requests.request_type
        low, size, lists = 0, FIRST_BATCH, NO_LISTS
        while low < len(requests):
            if low == 0 or self._lists.fell_short:
                rising = self.advert.kind != "static"
                lists = self._lists.lists_for(x[low:], y[low:], self.ground, self._open_offset, rising)
            part = slice(low, low + size)
            if self._guarded:
                rows = np.arange(first + low, first + min(low + size, len(requests)))
                scans = self._guard(rows, requests.created_s[part], x[part], y[part], lists, doors, stations)
            else:
                columns = (x[part], y[part], requests.request_type[part], drawn[part])
                scans = serve(
                    first + low,
                    requests.created_s[part],
                    *columns,
                    self.shift,
                    self.ground,
                    self._open_offset,
                    *self._ears(stations, lists),
                    stations,
                )
            self._lists.review(scans, len(new[part]))
            low, size = low + size, min(2 * size, LAST_BATCH)

    def again(
        self, rows: Ints, x: Floats, y: Floats, router: Ints, now: float, doors: Doors, stations: Stations
    ) -> None:
        """Route the requests of some rows once more, now and from where they were made [km]."""
        self._guard(rows, np.full(rows.size, now), x, y, NO_LISTS, doors, stations)

    def _guard(
        self,
        rows: Ints,
        now: Floats,
        x: Floats,
        y: Floats,
        lists: CandidateLists,
        doors: Doors,
        stations: Stations,
    ) -> int:
        ears = self._ears(stations, lists)
        return serve_guarded(
            rows, now, x, y, self.shift, self.ground, self._open_offset, *ears, doors, stations
        )

    def _ears(
        self, stations: Stations, lists: CandidateLists
    ) -> tuple[Floats, Floats | Stations, CandidateLists, Telemetry]:
        """Return what reports go to, what is read, where to look for it first, and the reports."""
        if self._sees_queues:
            return self._heard, stations, lists, self._silence
        return self._heard, self._heard, lists, self._reports

    def part(self, clock_s: float, stations: Stations) -> None:
        """Let the router keep what it has heard by now, or sees now, and hear no more reports."""
        if self._telemetry.period == 0.0:
            listen(clock_s, self._heard, self._telemetry, stations)
        self._parted = True

    def rejoin(self, clock_s: float) -> None:
        """Let the router hear reports again from now on."""
        skip_reports(clock_s, self._telemetry)
        self._parted = False

    def settle(self, until_s: float, stations: Stations) -> None:
        """Let time pass at all sites, with the reports due meanwhile."""
        settle(until_s, self._reports, self._heard, stations)

    def waits(self, clock_s: float, stations: Stations) -> Floats:
        """Return the waits as routers know them [s], shape (n,)."""
        if self.advert.kind == "static":
            return self.advert.waits(self.n_sites)
        if self.advert.telemetry_period_s == 0 and not self._parted:
            return np.array([expected_wait(i, clock_s, stations) for i in range(self.n_sites)])
        return self._heard.copy()

    @property
    def _reports(self) -> Telemetry:
        """The reports that are made and heard now."""
        return self._silence if self._parted else self._telemetry

    @property
    def _sees_queues(self) -> bool:
        """Whether a request looks at the queues themselves at its own instant."""
        advert = self.advert
        return (
            not self._parted
            and advert.kind == "state"
            and advert.telemetry_period_s == 0
            and advert.scope == "site"
        )
