"""The event loop over all sites: requests are routed at their own instants and queue where they are sent.

Time is continuous and nothing is stepped. A request is routed by the policy on what is advertised when it
is created, from where its user is; it reaches the site after the radio delay, waits first come first served
for one of the site's servers, prefills, and holds the server for its service.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError
from geoedge.serving.advertising import Advert, make_telemetry
from geoedge.serving.candidates import NO_LISTS, CandidateLists
from geoedge.serving.checks import known, spread, table
from geoedge.serving.keeper import ListKeeper
from geoedge.serving.loop import count_arrived, serve, settle
from geoedge.serving.records import Records, Requests, SiteSums, records_of
from geoedge.serving.routing import POLICIES, checked_offset, make_ground, wrap
from geoedge.serving.stations import NONE, REQUEST, SITE, Stations, expected_wait
from geoedge.theory.services import ServiceLaw, make_law

__all__ = ["ServingEngine"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PRIOR_SERVICES = 16.0
"""Services that the given mean occupancy counts for in a site's running mean."""
FIRST_BATCH, LAST_BATCH = 1 << 12, 1 << 16
"""Requests after which the pruning of routes by advertised state is reviewed: soon at first, then seldom."""


class ServingEngine:
    """All sites' queues, carried from one stretch of time to the next.

    Parameters
    ----------
    site_xy_km
        Where the sites are [km], shape (n, 2).
    profile
        Profile each site holds, its tier, shape (n,).
    concurrency
        Servers of each site, at least 1, shape (n,).
    prefill_time
        Prefill of each request type at each site [s], shape (n, Q).
    decode_time
        Mean decode [s], shape (Q,).
    delay_coefficient, delay_exponent
        ξ [s/km^α] and α of the radio delay.
    period_km
        Sizes of the torus window [km]; ``None`` for the plane.
    policy
        A name in `POLICIES`.
    law
        How long a request holds its server: a name in `geoedge.theory.SERVICE_LAWS`, or a `ServiceLaw`.
    mean_occupancy
        Mean occupancy of each site [s], shape (n,): the mean service of ``exponential_mixture`` until
        `set_mixture_mean` or `reconfigure` gives another, and where the running mean behind ``state`` advertising
        starts. By default the plain mean over request types.
    radio_shifts_arrival
        Whether a request reaches its site after the radio delay; else at once, the delay counted in TTFT alone.
    start_s
        Where the clock starts [s].

    Raises
    ------
    GeoEdgeError
        If shapes disagree or a value is out of range.
    """

    def __init__(
        self,
        site_xy_km: npt.ArrayLike,
        profile: npt.ArrayLike,
        concurrency: npt.ArrayLike,
        prefill_time: npt.ArrayLike,
        decode_time: npt.ArrayLike,
        *,
        delay_coefficient: float,
        delay_exponent: float,
        period_km: tuple[float, float] | None = None,
        policy: str = "load_aware",
        law: str | ServiceLaw = "prefill_plus_decode",
        mean_occupancy: npt.ArrayLike | None = None,
        radio_shifts_arrival: bool = True,
        start_s: float = 0.0,
    ) -> None:
        self.ground = make_ground(site_xy_km, delay_coefficient, delay_exponent, period_km)
        self.n_sites = len(self.ground.site_xy)
        self.clock_s = float(start_s)
        self.law = make_law(law)
        self.policy = POLICIES[known("policy", policy, tuple(POLICIES))]
        self.reads_waits = bool(self.policy(np.zeros((1, 1)), np.ones(1)).any())
        self.shift = 1.0 if radio_shifts_arrival else 0.0
        prefill = table("prefill_time", prefill_time, (self.n_sites, np.size(decode_time)))
        self.decode_time = table("decode_time", decode_time, (prefill.shape[1],))
        servers = spread("concurrency", concurrency, self.n_sites).astype(np.int64)
        sites = np.zeros(self.n_sites, dtype=SITE)
        sites["head"] = sites["tail"] = NONE
        sites["changed"] = -np.inf
        self.stations = Stations(
            np.zeros(0, dtype=REQUEST),
            sites,
            np.zeros((self.n_sites, max(1, int(servers.max(initial=1))))),
            prefill,
            np.zeros(prefill.shape),
            np.zeros(prefill.shape),
        )
        occupancy = (prefill + self.decode_time).mean(axis=1) if mean_occupancy is None else mean_occupancy
        means = self._means(occupancy)
        self._mixture = means.copy()
        for i, tier in enumerate(spread("profile", profile, self.n_sites)):
            self._set(i, int(servers[i]), prefill[i], int(tier), float(means[i]))
        self.n_requests = 0
        self._heard = np.zeros(self.n_sites)
        self._advert = Advert()
        self._telemetry = make_telemetry(self._advert, self.n_sites, self.clock_s)
        self._lists = ListKeeper(slack=0.02 * float((prefill + self.decode_time).mean()))

    def run(self, requests: Requests, until_s: float, advert: Advert | None = None) -> SiteSums:
        """Serve requests and let time pass until the end of a stretch.

        Parameters
        ----------
        requests
            Requests created between the clock and the end of the stretch.
        until_s
            Where the clock will stand [s].
        advert
            How waits are advertised; by default as in the last stretch, at first as static zeros. Telemetry
            goes on from stretch to stretch as long as only the waits given differ.

        Returns
        -------
        SiteSums
            The sums of this stretch by site.

        Raises
        ------
        GeoEdgeError
            If a request lies outside the stretch, a type is unknown, or no site is open to a type.
        """
        self._check(requests, until_s)
        offset = self._advertise(advert or self._advert)
        waiting_before = self._open_window(until_s)
        start_s = self.clock_s
        self._reserve(len(requests))
        x, y = wrap(requests.x_km, self.ground.period_x), wrap(requests.y_km, self.ground.period_y)
        drawn = self.law.unit_service(requests.mark)
        low, size, lists = 0, FIRST_BATCH, NO_LISTS
        while low < len(requests):
            if low == 0 or self._lists.fell_short:
                lists = self._lists.lists_for(
                    x[low:], y[low:], self.ground, offset, self._advert.kind != "static"
                )
            self._serve_batch(requests, x, y, drawn, slice(low, low + size), offset, lists)
            low, size = low + size, min(2 * size, LAST_BATCH)
        settle(until_s, self._telemetry, self._heard, self.stations)
        self.clock_s = float(until_s)
        return self._sums(start_s, waiting_before)

    def reconfigure(
        self,
        site: int,
        *,
        concurrency: int | None = None,
        prefill_row: npt.ArrayLike | None = None,
        profile: int | None = None,
        mean_occupancy: float | None = None,
        time_s: float | None = None,
    ) -> None:
        """Change a site now, where the clock stands.

        Running requests finish as they began. Requests that wait start under the new number of servers and
        with the new prefill: what counts is what the site holds when they start. Fewer servers means that
        those which become free first are not used again; more, that the new ones are free at once.

        Parameters
        ----------
        site
            Which site.
        concurrency
            New number of servers.
        prefill_row
            New prefill time by request type [s], shape (Q,).
        profile
            New profile.
        mean_occupancy
            New mean occupancy [s]; by default the plain mean over types if the prefill changes.
        time_s
            The clock, if it should be checked [s].
        """
        if not 0 <= site < self.n_sites:
            msg = f"`site` must lie in 0..{self.n_sites - 1}, not {site}"
            raise GeoEdgeError(msg)
        if time_s is not None and time_s != self.clock_s:
            msg = f"`time_s` must be the clock, {self.clock_s} s, not {time_s}; run until then first"
            raise GeoEdgeError(msg)
        row = self.stations.sites[site]
        prefill = self.stations.prefill[site]
        if prefill_row is not None:
            prefill = table("prefill_row", prefill_row, prefill.shape)
            mean_occupancy = (
                float((prefill + self.decode_time).mean()) if mean_occupancy is None else mean_occupancy
            )
        self._set(
            site,
            int(row["concurrency"]) if concurrency is None else concurrency,
            prefill,
            int(row["profile"]) if profile is None else profile,
            mean_occupancy,
        )
        self.stations.sites["changed"][site] = self.clock_s

    def set_mixture_mean(self, mean_occupancy: npt.ArrayLike) -> None:
        """Change the mean service of the law ``exponential_mixture`` now; other laws have none and stay as they are.

        Requests that wait start with the new mean. The running mean behind ``state`` advertising goes on.

        Parameters
        ----------
        mean_occupancy
            Mean occupancy of each site [s], shape (n,), or one for all.
        """
        self._mixture = self._means(mean_occupancy)
        stations = self.stations
        parts = self.law.parts(stations.prefill, self.decode_time, self._mixture[:, None])
        stations.fixed[:], stations.scale[:] = parts

    def finish(self) -> None:
        """Serve all that is pending, with no further request; the clock runs out and no stretch may follow."""
        self._open_window(np.inf)
        settle(np.inf, self._telemetry, self._heard, self.stations)
        self.clock_s = np.inf

    @property
    def advertised_wait_s(self) -> Floats:
        """Waits as routers know them [s], shape (n,); those of the present if they read the queues themselves."""
        if self._advert.kind == "static":
            return self._advert.waits(self.n_sites)
        if self._advert.telemetry_period_s == 0:
            return np.array([expected_wait(i, self.clock_s, self.stations) for i in range(self.n_sites)])
        return self._heard.copy()

    def pending(self) -> int:
        """Return the number of requests on the air or waiting."""
        return int(self.stations.sites["listed"].sum())

    def records(self, first: int = 0) -> Records:
        """Return what happened to the requests so far, in the order in which they were given.

        Parameters
        ----------
        first
            Number of requests to leave out at the beginning.
        """
        return records_of(self.stations.requests[first : self.n_requests], self.clock_s)

    def _means(self, mean_occupancy: npt.ArrayLike) -> Floats:
        return table(
            "mean_occupancy", spread("mean_occupancy", mean_occupancy, self.n_sites), (self.n_sites,)
        )

    def _set(self, i: int, concurrency: int, prefill: Floats, profile: int, mean: float | None) -> None:
        """Write a site's row; a mean restarts its running mean."""
        if concurrency < 1:
            msg = f"`concurrency` of site {i} must be at least 1 server, not {concurrency}"
            raise GeoEdgeError(msg)
        if profile < 0:
            msg = f"`profile` of site {i} must be >= 0, not {profile}"
            raise GeoEdgeError(msg)
        width = self.stations.releases.shape[1]
        if concurrency > width:
            wider = np.pad(self.stations.releases, ((0, 0), (0, concurrency - width)))
            self.stations = self.stations._replace(releases=wider)
        sites = self.stations.sites
        sites["concurrency"][i], sites["profile"][i] = concurrency, profile
        if mean is not None:
            sites["service_sum"][i], sites["service_count"][i] = PRIOR_SERVICES * mean, PRIOR_SERVICES
            self._mixture[i] = mean
        self.stations.prefill[i] = prefill
        parts = self.law.parts(prefill, self.decode_time, self._mixture[i])
        self.stations.fixed[i], self.stations.scale[i] = parts

    def _check(self, requests: Requests, until_s: float) -> None:
        if not self.clock_s <= until_s < np.inf:
            msg = f"`until_s` must be finite and not before the clock, {self.clock_s} s, not {until_s}"
            raise GeoEdgeError(msg)
        if not len(requests):
            return
        if requests.created_s[0] < self.clock_s or requests.created_s[-1] > until_s:
            msg = (
                f"`created_s` must lie between the clock, {self.clock_s} s, and `until_s`, {until_s} s, "
                f"not in {requests.created_s[0]}..{requests.created_s[-1]}"
            )
            raise GeoEdgeError(msg)
        q = self.decode_time.size
        if requests.request_type.min() < 0 or requests.request_type.max() >= q:
            msg = f"`request_type` must lie in 0..{q - 1}"
            raise GeoEdgeError(msg)

    def _advertise(self, advert: Advert) -> Floats:
        """Take up an advert; return the offset that does not change within the stretch, shape (n, Q)."""
        prefill, zero = self.stations.prefill, np.zeros(self.n_sites)
        if advert.kind == "static" or not self.reads_waits:
            advert = Advert(wait_s=advert.wait_s) if self.reads_waits else Advert()
            self._telemetry = make_telemetry(advert, self.n_sites, self.clock_s)
            self._advert, self._heard = advert, zero
            return checked_offset(self.policy(prefill, advert.waits(self.n_sites)), self.n_sites)
        if not advert.continues(self._advert):
            self._telemetry = make_telemetry(advert, self.n_sites, self.clock_s)
            self._heard = advert.waits(self.n_sites)
            self.stations.sites["heard_wait_s"] = self.stations.sites["heard_starts"] = 0.0
        self._advert = advert
        return checked_offset(self.policy(prefill, zero), self.n_sites)

    def _open_window(self, until_s: float) -> Ints:
        """Start the sums of a stretch, with the servers that are busy already; return who waits, shape (n,)."""
        sites, releases = self.stations.sites, self.stations.releases
        for name in ("starts", "wait_s", "prefill_s", "routed", "offered_s"):
            sites[name] = 0
        sites["window_end"] = until_s
        left = np.clip(np.minimum(releases, until_s) - self.clock_s, 0.0, None)
        sites["busy_s"] = np.where(self._held(), left, 0.0).sum(axis=1)
        return count_arrived(self.clock_s, self.stations)

    def _held(self) -> npt.NDArray[np.bool_]:
        """Return which release times are in use, shape of the heaps."""
        held: npt.NDArray[np.bool_] = (
            np.arange(self.stations.releases.shape[1]) < self.stations.sites["busy"][:, None]
        )
        return held

    def _reserve(self, more: int) -> None:
        """Make room for rows, with half as much again if the rows must move."""
        needed, rows = self.n_requests + more, self.stations.requests
        if needed > rows.size:
            room = np.empty(max(needed, rows.size + rows.size // 2), dtype=REQUEST)
            room[: self.n_requests] = rows[: self.n_requests]
            self.stations = self.stations._replace(requests=room)

    def _serve_batch(
        self,
        requests: Requests,
        x: Floats,
        y: Floats,
        drawn: Floats,
        part: slice,
        offset: Floats,
        lists: CandidateLists,
    ) -> None:
        advert = self._advert
        fresh = advert.kind == "state" and advert.telemetry_period_s == 0 and advert.scope == "site"
        columns = (x[part], y[part], requests.request_type[part], drawn[part])
        scans = serve(
            self.n_requests,
            requests.created_s[part],
            *columns,
            self.shift,
            self.ground,
            offset,
            self._heard,
            self.stations if fresh else self._heard,
            lists,
            make_telemetry(Advert(), self.n_sites, self.clock_s) if fresh else self._telemetry,
            self.stations,
        )
        self.n_requests += columns[0].size
        self._lists.review(scans, columns[0].size)

    def _sums(self, start_s: float, waiting_before: Ints) -> SiteSums:
        sites = {name: np.array(self.stations.sites[name]) for name in SITE.names or ()}
        waiting = count_arrived(self.clock_s, self.stations)
        return SiteSums(
            start_s=start_s,
            end_s=self.clock_s,
            concurrency=sites["concurrency"],
            routed=sites["routed"],
            arrivals=sites["starts"] + waiting - waiting_before,
            started=sites["starts"],
            waiting=waiting,
            in_flight=sites["listed"] - waiting,
            running=(self._held() & (self.stations.releases > self.clock_s)).sum(axis=1),
            busy_s=sites["busy_s"],
            offered_s=sites["offered_s"],
            wait_s=sites["wait_s"],
            prefill_s=sites["prefill_s"],
        )
