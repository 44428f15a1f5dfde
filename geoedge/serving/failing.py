"""What can go wrong at sites: doors that shut, failures at once or found out late, reports and links that are lost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError
from geoedge.serving.checks import table
from geoedge.serving.doors import FAILED, OPEN, SHUT, Doors, review
from geoedge.serving.places import Places
from geoedge.serving.sessions import LOST, Warm, lose_all
from geoedge.serving.stations import NONE, Stations, count_present
from geoedge.serving.warm import change_backhaul

if TYPE_CHECKING:
    from geoedge.serving.inquiring import InquiringRouting
    from geoedge.serving.plain import PlainRouting

__all__ = ["Fallible", "hold_servers"]

Ints = npt.NDArray[np.int64]


class Fallible:
    """The part of `geoedge.serving.events.ServingEngine` that things happen to; it holds what the engine has made."""

    n_sites: int
    n_requests: int
    clock_s: float
    doors: Doors
    stations: Stations
    routing: PlainRouting | InquiringRouting
    _places: Places
    _waiting: Ints

    def close(self, site: int) -> None:
        """Shut the door of a site now: no new requests are sent there; those that were are served.

        Sites that are about to fail at one instant are closed first, so that none is sent what another loses. A site
        that has failed stays failed.

        Parameters
        ----------
        site
            Which site.
        """
        self._checked_site(site)
        if self.doors.state[site] == OPEN:
            self._set_door(site, SHUT)

    def fail(self, site: int) -> int:
        """Let a site fail now; return how many requests it loses.

        It loses its queue, what is on the air to it, and the running requests that have not had their first token.
        Those are routed again at once, from where they were made, by what routers know: they stay created when they
        were, and the time lost is part of their wait. Who has had the first token keeps it and ends now. A site that
        has failed already loses nothing.

        Parameters
        ----------
        site
            Which site.
        """
        self._checked_site(site)
        if self.doors.state[site] == FAILED:
            return 0
        self._set_door(site, FAILED)
        known = self._known()
        rows = lost_rows(site, self.clock_s, known.requests)
        forget(site, self.clock_s, known)
        self._waiting[site] = 0
        self.doors.full[site] = False
        if self.stations.warm is not None:
            lose_all(site, self.stations.warm)
            self.stations.warm.turns["held"][rows] = 0
        known.requests["lost"][rows] += 1
        if rows.size:
            self.routing.again(rows, *self._places.of(rows), self.clock_s, self.doors, self.stations)
        return int(rows.size)

    def fall_silent(self, site: int) -> None:
        """Let a site fail now without anybody knowing, until `fail` finds it out or it has recovered.

        It serves nothing, reports nothing and turns nobody away. Routers go by what it last said and send requests
        there all the same. They are held, with those that wait, those on the air and those that run and have not had
        their first token.

        Parameters
        ----------
        site
            Which site; one that has failed already stays as it is.
        """
        self._checked_site(site)
        if self.doors.state[site] != FAILED and not self._is_silent(site):
            self._waiting[site] += fall_silent(site, self.clock_s, self._known())
            self.doors.full[site] = False

    def recover(self, site: int) -> None:
        """Let a site that has failed come back now; others stay as they are.

        It is open and its queue empty. A silent site, its door as it was, starts now with what it has held, from the
        beginning; what it has lost of its caches it is told by `reconfigure` before. Warm states are lost in any case.

        Parameters
        ----------
        site
            Which site.
        """
        self._checked_site(site)
        if self.doors.state[site] == FAILED:
            self.stations.sites["changed"][site] = self.clock_s
            self._set_door(site, OPEN)
        elif self._is_silent(site):
            wake(site, self.clock_s, self.doors, self.stations)
            if self.stations.warm is not None:
                rows = lost_rows(site, self.clock_s, self._known().requests)
                lose_states(site, self.clock_s, rows, self.stations.warm)

    def _is_silent(self, site: int) -> bool:
        return bool(self.stations.sites["silent"][site])

    def _known(self) -> Stations:
        """Return the queues with the rows of the requests so far and no more."""
        return self.stations._replace(requests=self.stations.requests[: self.n_requests])

    def part(self) -> None:
        """Cut routers off from reports now: each goes by what it has heard, and by what it counts itself."""
        self.routing.part(self.clock_s, self.stations)

    def rejoin(self) -> None:
        """Let routers hear reports again that are made from now on; all made since they were cut off are lost."""
        self.routing.rejoin(self.clock_s)

    def _set_door(self, site: int, state: int) -> None:
        self.doors.state[site] = state
        self.routing.mind(self.doors)

    def _checked_site(self, site: int) -> None:
        if not 0 <= site < self.n_sites:
            msg = f"`site` must lie in 0..{self.n_sites - 1}, not {site}"
            raise GeoEdgeError(msg)

    def set_backhaul(self, rate_bytes_per_s: npt.ArrayLike, sites: Iterable[int]) -> None:
        """Change the rate at which some sites receive warm states from now on; nothing without sessions.

        The rest of what turns fetch that have not started comes at the new rate. A turn whose fetch is slower than
        it would usually be computes the state again if that is sooner when it starts.

        Parameters
        ----------
        rate_bytes_per_s
            One rate, or one for each of the sites, at least 0 [B/s]; at 0 nothing comes.
        sites
            Which sites.
        """
        chosen = list(sites)
        for site in chosen:
            self._checked_site(site)
        rates = table("rate_bytes_per_s", np.broadcast_to(rate_bytes_per_s, len(chosen)), (len(chosen),))
        if self.stations.warm is not None:
            rows = self.stations.requests[: self.n_requests]
            change_backhaul(
                dict(zip(chosen, rates.tolist(), strict=True)), self.clock_s, rows, self.stations.warm
            )


def lost_rows(site: int, now: float, rows: npt.NDArray[np.void]) -> Ints:
    """Return the rows of the requests that a site loses by failing now: all that have not had their first token."""
    here = np.flatnonzero(rows["site"] == site)
    started, prefill = rows["started"][here], rows["prefill"][here]
    return np.asarray(here[~(started + prefill <= now)], dtype=np.int64)


def forget(site: int, now: float, stations: Stations) -> None:
    """Empty a site now: its list and its servers; who has had the first token keeps it and ends now."""
    sites = stations.sites
    sites["head"][site] = sites["tail"][site] = NONE
    sites["listed"][site] = sites["busy"][site] = sites["silent"][site] = 0
    sites["changed"][site] = now
    _end_running(site, now, stations.requests)


def _end_running(site: int, now: float, requests: npt.NDArray[np.void]) -> None:
    running = np.flatnonzero((requests["site"] == site) & (requests["finished"] > now))
    requests["finished"][running] = now


def fall_silent(site: int, now: float, stations: Stations) -> int:
    """Let a site serve nothing from now on though nobody knows; return how many of those that run begin again.

    Who has had the first token keeps it and ends now. The others are held at the head of the list, in order of
    arrival, before those that wait.

    Parameters
    ----------
    site
        Which site.
    now
        The clock [s].
    stations
        The queues, settled up to now, with the rows of all requests so far and no more.
    """
    requests, row = stations.requests, stations.sites[site]
    row["told"] = count_present(site, now, stations)
    here = lost_rows(site, now, requests)
    again = here[~np.isnan(requests["started"][here])]
    again = again[np.lexsort((again, requests["started"][again], requests["arrived"][again]))]
    _end_running(site, now, requests)
    for name in ("started", "prefill", "finished"):
        requests[name][again] = np.nan
    requests["profile"][again] = NONE
    for k in again[::-1].tolist():
        _put_first(k, site, stations)
    row["silent"] = 1
    hold_servers(site, stations)
    return int(again.size)


def _put_first(k: int, site: int, stations: Stations) -> None:
    """Put request k at the head of a site's list."""
    row, requests = stations.sites[site], stations.requests
    head = int(row["head"])
    requests["before"][k], requests["after"][k] = NONE, head
    if head == NONE:
        row["tail"] = k
    else:
        requests["before"][head] = k
    row["head"] = k
    row["listed"] += 1


def hold_servers(site: int, stations: Stations) -> None:
    """Let no server of a silent site ever be released: no time is at or after that which is none."""
    servers = int(stations.sites["concurrency"][site])
    stations.sites["busy"][site] = servers
    stations.releases[site, :servers] = np.nan


def wake(site: int, now: float, doors: Doors, stations: Stations) -> None:
    """Let a silent site serve again from now on, all servers free, first what was held there."""
    row = stations.sites[site]
    row["busy"] = row["silent"] = 0
    row["changed"] = now
    doors.full[site] = False
    review(site, doors, stations)


def lose_states(site: int, now: float, rows: Ints, warm: Warm) -> None:
    """Lose the warm states that a site keeps, and those for turns in some rows, which stay in its list."""
    lose_all(site, warm)
    turns, rate = warm.turns, warm.backhaul[site]
    turns["held"][rows] = 0
    using = rows[turns["hit"][rows] > 0]
    fetching = using[turns["moved"][using] > 0]
    left = (turns["ready"][fetching] - now) * rate if rate > 0 else turns["left"][fetching]
    left = np.clip(left, 0.0, turns["moved"][fetching]).astype(np.int64)
    turns["moved"][fetching] -= left
    turns["outcome"][using], turns["hit"][using] = LOST, 0
    for name in ("ready", "due", "left", "stall", "reload"):
        turns[name][using] = 0.0
