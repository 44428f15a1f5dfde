"""The event loop over all sites: requests are routed at their own instants and queue where they are sent.

Time is continuous and nothing is stepped. A request is routed by the policy on what is advertised when it
is created, from where its user is; it reaches the site after the radio delay, waits first come first served
for one of the site's servers, prefills, and holds the server for its service.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError
from geoedge.policies import known_policy
from geoedge.serving.advertising import Advert
from geoedge.serving.checks import spread, table
from geoedge.serving.doors import admits, make_doors, review
from geoedge.serving.failing import Fallible, hold_servers
from geoedge.serving.inquiring import InquiringRouting, Prompts, RoutingOptions
from geoedge.serving.places import Places
from geoedge.serving.plain import PlainRouting
from geoedge.serving.records import Records, Requests, SiteSums, records_of
from geoedge.serving.routing import make_ground, wrap
from geoedge.serving.stations import REQUEST, make_stations
from geoedge.serving.stretches import check_stretch, open_stretch, stretch_sums
from geoedge.serving.warm import (
    SessionRules,
    TurnRecords,
    make_warm,
    turn_records_of,
    write_turns,
)
from geoedge.theory.services import ServiceLaw, make_law

__all__ = ["ServingEngine"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PRIOR_SERVICES = 16.0
"""Services that the given mean occupancy counts for in a site's running mean."""


class ServingEngine(Fallible):
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
        A name in `geoedge.policies.POLICIES`.
    policy_parameters
        Numbers of the policy by name, in place of its own defaults.
    options
        Routers, what they hear, and when sites take no new requests.
    prompts
        What routers know of prompts, for policies that count tokens or blocks.
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
    sessions
        What warm states cost and where they find room; with them the law must hold the prefill itself
        (``prefill_plus_decode``, ``deterministic``), and routers look at every site.

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
        policy_parameters: Mapping[str, float] | None = None,
        options: RoutingOptions | None = None,
        prompts: Prompts | None = None,
        law: str | ServiceLaw = "prefill_plus_decode",
        mean_occupancy: npt.ArrayLike | None = None,
        radio_shifts_arrival: bool = True,
        start_s: float = 0.0,
        sessions: SessionRules | None = None,
    ) -> None:
        self.ground = make_ground(site_xy_km, delay_coefficient, delay_exponent, period_km)
        self.n_sites = len(self.ground.site_xy)
        self.clock_s = float(start_s)
        self.law = make_law(law)
        self.policy, self.options = known_policy(policy), options or RoutingOptions()
        self.shift = 1.0 if radio_shifts_arrival else 0.0
        prefill = table("prefill_time", prefill_time, (self.n_sites, np.size(decode_time)))
        self.decode_time = table("decode_time", decode_time, (prefill.shape[1],))
        servers = spread("concurrency", concurrency, self.n_sites).astype(np.int64)
        warm = None if sessions is None else make_warm(sessions, self.n_sites)
        self.stations = make_stations(prefill, int(servers.max(initial=1)), warm)
        occupancy = (prefill + self.decode_time).mean(axis=1) if mean_occupancy is None else mean_occupancy
        means = self._means(occupancy)
        self._mixture = means.copy()
        for i, tier in enumerate(spread("profile", profile, self.n_sites)):
            self._set(i, int(servers[i]), prefill[i], int(tier), float(means[i]))
        self.n_requests = 0
        self.doors = make_doors(self.n_sites, self.options.admission)
        self.routing = self._make_routing(self.policy.values(policy_parameters), prompts)
        self._places = Places()
        self._waiting = np.zeros(self.n_sites, dtype=np.int64)

    def _make_routing(
        self, numbers: tuple[float, ...], prompts: Prompts | None
    ) -> PlainRouting | InquiringRouting:
        """Return the quick way to route if it is enough, else the one that looks at every site."""
        if self.policy.has_closed_form and self.options.plain and self.stations.warm is None:
            slack = 0.02 * float((self.stations.prefill + self.decode_time).mean())
            return PlainRouting(self.policy, self.ground, self.shift, slack, self.clock_s)
        return InquiringRouting(
            self.policy, numbers, self.options, self.ground, self.shift, prompts, self.clock_s
        )

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
        check_stretch(requests, self.clock_s, until_s, self.decode_time.size)
        self.routing.take_up(advert or self.routing.advert, self.clock_s, self.doors, self.stations)
        open_stretch(self.clock_s, until_s, self.stations)
        start_s = self.clock_s
        self._reserve(requests)
        x, y = wrap(requests.x_km, self.ground.period_x), wrap(requests.y_km, self.ground.period_y)
        self._places.add(self.n_requests, x, y, requests.router)
        drawn = self.law.unit_service(requests.mark)
        self.routing.serve(self.n_requests, requests, x, y, drawn, self.doors, self.stations)
        self.n_requests += len(requests)
        self.routing.settle(until_s, self.stations)
        self.clock_s = float(until_s)
        sums = stretch_sums(start_s, self.clock_s, self._waiting, self.doors, self.stations)
        self._waiting = sums.waiting.copy()
        return sums

    def reconfigure(
        self,
        site: int,
        *,
        concurrency: int | None = None,
        prefill_row: npt.ArrayLike | None = None,
        profile: int | None = None,
        mean_occupancy: float | None = None,
        time_s: float | None = None,
        hit_row: npt.ArrayLike | None = None,
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
        hit_row
            New tokens that the site's caches save by request type [token], shape (Q,), for an engine with sessions.

        Raises
        ------
        GeoEdgeError
            If the clock stands elsewhere, or the site is none of the engine.
        """
        self._checked_site(site)
        if time_s is not None and time_s != self.clock_s:
            msg = f"`time_s` must be the clock, {self.clock_s} s, not {time_s}; run until then first"
            raise GeoEdgeError(msg)
        if hit_row is not None and self.stations.warm is not None:
            self.stations.warm.hits[site] = table("hit_row", hit_row, self.decode_time.shape)
        if self.doors.close_at < np.inf:
            admits(site, self.clock_s, self.doors, self.stations)
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
        if self.stations.sites["silent"][site]:
            hold_servers(site, self.stations)
        review(site, self.doors, self.stations)

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
        """Serve all that is pending, with no further request; the clock runs out and no stretch may follow.

        What silent sites hold stays unserved.
        """
        open_stretch(self.clock_s, np.inf, self.stations)
        self.routing.settle(np.inf, self.stations)
        self.clock_s = np.inf

    @property
    def advertised_wait_s(self) -> Floats:
        """Waits as routers know them [s], shape (n,); those of the present if they read the queues themselves."""
        return self.routing.waits(self.clock_s, self.stations)

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
        rows = self.stations.requests[first : self.n_requests]
        return records_of(rows, self.clock_s, self.shift, self.doors.redirect_s)

    def turn_records(self, first: int = 0) -> TurnRecords | None:
        """Return what became of the requests as turns, in the order in which they were given; None without sessions.

        Parameters
        ----------
        first
            Number of requests to leave out at the beginning.
        """
        warm = self.stations.warm
        return None if warm is None else turn_records_of(warm.turns[first : self.n_requests])

    @property
    def host_memory(self) -> npt.NDArray[np.void] | None:
        """Rows of `geoedge.serving.sessions.HOST`, shape (n,); None without sessions."""
        return None if self.stations.warm is None else self.stations.warm.hosts

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

    def _reserve(self, requests: Requests) -> None:
        """Make room for rows, with half as much again if the rows must move, and write down turns."""
        needed, rows = self.n_requests + len(requests), self.stations.requests
        if needed > rows.size:
            room = np.zeros(max(needed, rows.size + rows.size // 2), dtype=REQUEST)
            room[: self.n_requests] = rows[: self.n_requests]
            self.stations = self.stations._replace(requests=room)
        if self.stations.warm is not None:
            size = self.stations.requests.size
            warm = write_turns(self.stations.warm, self.n_requests, size, requests.turns, len(requests))
            self.stations = self.stations._replace(warm=warm)
