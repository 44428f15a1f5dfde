"""What the field answers: the same questions as theory, for every site and place of a map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.field._served import ServedField
from geoedge.theory.protocols import select
from geoedge.theory.queueing import ErlangC

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["FieldAnswer"]

LONGEST_TTFT_S = 1e7
"""A quantile beyond this is infinite [s]."""
QUANTILE_STEPS = 100
"""Most bisections of a quantile."""


@dataclass(frozen=True, eq=False)
class FieldAnswer(ServedField):
    """Association on a map, with every site's own queue.

    Where a ring around the city takes part, its sites are the last ones. They load and are loaded as the others are, and
    values by site include them; shares and means over requests are about the city's requests, whoever serves them, and
    `stable`, `unstable_sites` and `mean_utilization` about the city's own sites.

    Parameters
    ----------
    problem
        Demand, sites, workload.
    policy
        Routing policy.
    scope
        Who advertises a wait, ``"site"`` or ``"tier"``.
    advertised_wait
        Wait that requests were routed by [s], shape (n,).
    residual
        Largest miss of the equilibrium, in utilisation.
    iterations
        Responses of demand computed.
    converged
        Whether the residual is within the tolerance asked for.
    solved
        Whether the waits are an equilibrium, not merely given.
    queue
        Wait model of the sites, or a rule that makes one of what they serve.
    """

    def __repr__(self) -> str:
        unstable = f", {len(self.unstable_sites)} sites beyond capacity" if not self.stable else ""
        return (
            f"FieldAnswer({self.policy}, {self.problem.n_sites} sites, mean utilisation "
            f"{self.utilization[self._own].mean():.2f}, residual {self.residual:.0e}{unstable})"
        )

    # ------------------------------------------------------------------ time to first token

    @cached_property
    def _before_queue(self) -> Floats:
        """Radio delay and prefill of every entry [s]."""
        entries = self.entries
        return entries.radio + self._prefill[entries.site, entries.type]

    def _in_time(self, tau: float) -> Floats:
        """Return the probability that an entry's first token comes within `tau` [s]: F_W(τ − ξ r^α − T_pf)."""
        left, site = tau - self._before_queue, self.entries.site
        if type(self.site_queue) is not ErlangC:
            return self._kept(left)
        waiting, fall = self._erlang
        inside = 1.0 - waiting[site] * np.exp(-fall[site] * np.maximum(left, 0.0))
        return np.where((left >= 0) & (fall[site] > 0), inside, 0.0)

    def _kept(self, left: Floats) -> Floats:
        """Return the probability of every entry to wait no longer than this [s], site by site."""
        arrivals, service, servers = self.site_arrival_rate, self.service_rate, self.problem.servers
        kept = np.zeros(left.shape)
        for i, mine in enumerate(self._entries_of_site):
            queue = select(self.site_queue, i)
            kept[mine] = queue.wait_cdf(left[mine], arrivals[i], service[i], servers[i])
        return kept

    @cached_property
    def _entries_of_site(self) -> list[Ints]:
        """The entries that every site serves."""
        order = np.argsort(self.entries.site, kind="stable")
        edges = np.searchsorted(self.entries.site[order], np.arange(1, self.problem.n_sites))
        return np.split(order, edges)

    def ttft_coverage(self, tau: float) -> float:
        """Return the share of requests with their first token within `tau`, Eq. (39), site by site.

        Parameters
        ----------
        tau
            Target of the time to first token [s].
        """
        return self._mean(self._in_time(tau))

    def site_coverage(self, tau: float) -> Floats:
        """Return the share of each site's requests with their first token within `tau`, shape (n,); NaN if none.

        Parameters
        ----------
        tau
            Target of the time to first token [s].
        """
        served = self.site_arrival_rate
        good = np.bincount(self.entries.site, self._rate * self._in_time(tau), self.problem.n_sites)
        return np.where(served > 0, good / np.where(served > 0, served, 1.0), np.nan)

    def local_coverage(self, tau: float) -> Floats:
        """Return the probability of a first token within `tau` at every place, by its own mix, shape (n_points,).

        NaN where nobody asks.

        Parameters
        ----------
        tau
            Target of the time to first token [s].
        """
        rate = self.problem.rate
        total = rate.sum(axis=1)
        good = (self.local_coverage_by_type(tau) * rate).sum(axis=1)
        return np.where(total > 0, good / np.where(total > 0, total, 1.0), np.nan)

    def local_coverage_by_type(self, tau: float) -> Floats:
        """Return the probability of a first token within `tau` at every place, shape (n_points, Q).

        Parameters
        ----------
        tau
            Target of the time to first token [s].
        """
        shape = self.problem.rate.shape
        index = self.entries.place * shape[1] + self.entries.type
        weight = self.entries.share * self._in_time(tau)
        return np.asarray(np.bincount(index, weight, shape[0] * shape[1]).reshape(shape), dtype=np.float64)

    def ttft_quantile(self, probability: float) -> float:
        """Return the least time within which this share of requests has its first token, Eq. (43) [s].

        Infinite where sites beyond capacity take too many requests.

        Parameters
        ----------
        probability
            ζ, in [0, 1).

        Raises
        ------
        GeoEdgeError
            If the probability is out of range.
        """
        if not 0.0 <= probability < 1.0:
            msg = f"`probability` must lie in [0, 1), not {probability}"
            raise GeoEdgeError(msg)
        high = 1.0
        while self.ttft_coverage(high) < probability:
            high *= 2.0
            if high > LONGEST_TTFT_S:
                return float("inf")
        low = 0.0
        for _ in range(QUANTILE_STEPS):
            if high - low <= 1e-9 * high:
                break
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.ttft_coverage(middle) >= probability else (middle, high)
        return high

    def parts(self) -> dict[str, float]:
        """Mean radio, wait and prefill of a request [s]; together the mean time to first token."""
        entries, served = self.entries, self._counted_site_rate.sum(axis=1)
        wait = np.where(served > 0, self.mean_wait, 0.0)
        return {
            "radio": self._mean(entries.radio),
            "wait": float(served @ wait / served.sum()) if served.sum() > 0 else float("nan"),
            "prefill": self._mean(self._prefill[entries.site, entries.type]),
        }

    @property
    def mean_ttft(self) -> float:
        """Mean time to first token, Eq. (42) [s]; infinite if any request goes to a site beyond capacity."""
        return float(sum(self.parts().values()))
