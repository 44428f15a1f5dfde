"""The catalogue: what waits are advertised, what sites report to hold, and when routers come to hear it.

`Catalogue` has the wait of each site, and the utilisation that the field predicts beside it; routers are told the wait,
and a site's own load closes its door (`geoedge.serving.doors.Admission`). `Reports` has the profile of each site, as it was
when it reported last. No epoch is reported: whether a state is of the version that a prompt begins with is verified when
it is used (`geoedge.workload.verification`), and routers learn of a new version from the prompts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from geoedge.errors import GeoEdgeError
from geoedge.serving.advertising import Advert

__all__ = ["ADVERTISING", "Advertise", "Catalogue", "Reports", "Scope", "worthwhile"]

Advertise = Literal["equilibrium", "state", "measured"]
Scope = Literal["site", "tier"]

ADVERTISING = ("equilibrium", "state", "measured")
CLOSED_WAIT_S = 3600.0
"""Longest wait advertised [s], also by a site without a stable wait: any site is better than none."""


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What sites advertise from a moment on, until the next one.

    Parameters
    ----------
    advertise
        ``"equilibrium"``: the waits below are prices that stay; ``"state"`` and ``"measured"``: sites report
        on their own, and the waits below hold until the first report.
    scope
        Whether every site speaks for itself or all sites of a tier as one.
    wait
        Waits [s], shape (n,); infinite where there is no stable one.
    utilization
        What the field predicts of each site at these waits, shape (n,); for the books and the map, no router reads it.
    telemetry_period_s, telemetry_delay_s
        Time between reports, and until they are heard [s]; of no use for prices.

    Raises
    ------
    GeoEdgeError
        If the kind is unknown or lengths disagree.
    """

    advertise: Advertise
    scope: Scope
    wait: NDArray[np.float64]
    utilization: NDArray[np.float64]
    telemetry_period_s: float = 1.0
    telemetry_delay_s: float = 0.0

    def __post_init__(self) -> None:
        if self.advertise not in ADVERTISING:
            msg = f"routing.advertise = {self.advertise!r}: must be one of {', '.join(ADVERTISING)}"
            raise GeoEdgeError(msg)
        if len(self.utilization) != len(self.wait):
            msg = f"catalogue: {len(self.wait)} waits and {len(self.utilization)} utilisations; give one of each a site"
            raise GeoEdgeError(msg)

    @property
    def prices(self) -> NDArray[np.float64]:
        """The waits with a finite one for every site [s], shape (n,)."""
        return np.where(np.isfinite(self.wait), np.minimum(self.wait, CLOSED_WAIT_S), CLOSED_WAIT_S)

    def advert(self) -> Advert:
        """Return the same as the event loop takes it."""
        if self.advertise == "equilibrium":
            return Advert(wait_s=self.prices)
        return Advert(
            self.advertise,
            self.prices,
            scope=self.scope,
            telemetry_period_s=self.telemetry_period_s,
            telemetry_delay_s=self.telemetry_delay_s,
        )


class Reports:
    """What routers believe sites to hold, from reports that are made now and then and heard later.

    Parameters
    ----------
    profile
        What sites hold at the start, shape (n,); routers know it.
    start_s
        When that is, and when the first report is made [s].
    period_s
        Time from one report to the next [s]; 0: whenever a site changes.
    delay_s
        Time from a report until routers have heard it [s].

    Attributes
    ----------
    believed
        What routers believe now, shape (n,).
    """

    believed: NDArray[np.int64]

    def __init__(
        self, profile: NDArray[np.int64], start_s: float, period_s: float = 0.0, delay_s: float = 0.0
    ) -> None:
        if not (0.0 <= period_s < np.inf and 0.0 <= delay_s < np.inf):
            msg = f"catalogue: period {period_s} s and delay {delay_s} s must be finite and at least 0"
            raise GeoEdgeError(msg)
        self.believed, self._noted = profile, profile
        self._start, self._period, self._delay = start_s, period_s, delay_s
        self._on_their_way: list[tuple[float, NDArray[np.int64]]] = []

    def note(self, now_s: float, profile: NDArray[np.int64]) -> None:
        """Let sites hold other profiles from now on [s]; the next report says so."""
        if np.array_equal(profile, self._noted):
            return
        self._noted, heard = profile, self._next_report_s(now_s) + self._delay
        if self._on_their_way and self._on_their_way[-1][0] == heard:
            self._on_their_way.pop()
        self._on_their_way.append((heard, profile))
        self.hear(now_s)

    def _next_report_s(self, now_s: float) -> float:
        if self._period == 0.0:
            return now_s
        count = np.ceil((now_s - self._start) / self._period)
        return float(max(now_s, self._start + count * self._period))

    def next_s(self) -> float:
        """Return when routers hear next of a change [s]; infinite if none is on its way to them."""
        return self._on_their_way[0][0] if self._on_their_way else np.inf

    def hear(self, now_s: float) -> None:
        """Let routers hear everything that has reached them by now [s]."""
        while self._on_their_way and self._on_their_way[0][0] <= now_s:
            self.believed = self._on_their_way.pop(0)[1]

    def forget(self, left: NDArray[np.int64]) -> None:
        """Let routers, and reports on their way, count on no more than is left of each profile.

        Parameters
        ----------
        left
            Profile whose states all stand up to verification still, for each one, shape (S,). Routers see
            it by the prompts, which begin with the new version.
        """
        self.believed = left[self.believed]
        self._on_their_way = [(heard, left[profile]) for heard, profile in self._on_their_way]


def worthwhile(
    hit_tokens: NDArray[np.int64],
    concurrency: NDArray[np.int64],
    stored_bytes: NDArray[np.int64],
    moved_bytes: NDArray[np.float64],
    unlimited: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Return which profiles are worth giving to a site that holds another, shape (S, S), indexed ``[s, t]``.

    A target is dominated, and never worth it, where another one stores no more, hits no less for any type, serves
    no fewer at once and moves no more from the site as it is. Of targets equal in all, the first is kept; what a site
    holds is kept always.

    Parameters
    ----------
    hit_tokens
        Hits d [token], shape (S, Q).
    concurrency
        c_s, shape (S,).
    stored_bytes
        B_s [B], shape (S,).
    moved_bytes
        Bytes from s to t [B], shape (S, S).
    unlimited
        Profiles that any number of sites may hold, shape (S,), all if omitted; only these dominate, as the others may
        have run out.
    """
    n = len(concurrency)
    worth = np.ones((n, n), dtype=np.bool_)
    for s in range(n):
        no_worse = (stored_bytes[:, None] <= stored_bytes) & (moved_bytes[s][:, None] <= moved_bytes[s])
        no_worse &= (concurrency[:, None] >= concurrency) & (hit_tokens[:, None] >= hit_tokens).all(axis=2)
        if unlimited is not None:
            no_worse &= unlimited[:, None]
        first = np.arange(n)[:, None] < np.arange(n)
        worth[s] = ~((no_worse & (~no_worse.T | first)).any(axis=0))
        worth[s, s] = True
    return worth
