"""What routers believe sites to hold, as prefill times: by what they have heard, for what a site serves at all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from geoedge.control.catalogue import Reports

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.scenario import CatalogueConfig
    from geoedge.serving.advertising import Advert
    from geoedge.workload import Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Beliefs"]


class Beliefs:
    """Reports of what sites hold, and the prefill that follows from them.

    Parameters
    ----------
    catalogue
        How often sites report, and how late routers hear it.
    workload
        Request types and profiles.
    profile
        What sites hold at the start, shape (n,).
    start_s
        When that is [s since midnight].
    """

    def __init__(self, catalogue: CatalogueConfig, workload: Workload, profile: Ints, start_s: float) -> None:
        self.reports = Reports(profile, start_s, catalogue.period_s, catalogue.delay_s)
        self._kept: Ints | None = None
        self._prefill = np.where(workload.serves, workload.prefill_time, np.inf)
        self._all_serve_all = bool(workload.serves.all())

    def next_s(self) -> float:
        """Return when routers hear next of a change [s]; infinite if none is on its way to them."""
        return self.reports.next_s()

    @property
    def believed(self) -> Ints:
        """Profile that routers believe each site to hold, shape (n,)."""
        return self.reports.believed if self._kept is None else self._kept

    @property
    def prefill(self) -> Floats:
        """Prefill that routers believe [s], shape (n, Q); infinite where a site does not serve a type."""
        return np.asarray(self._prefill[self.believed])

    def part(self) -> None:
        """Let routers keep what they believe now, whatever sites report."""
        self._kept = self.reports.believed

    def rejoin(self) -> None:
        """Let routers know again all that has been reported, also meanwhile."""
        self._kept = None

    def forget(self, left: Ints) -> None:
        """Let routers, cut off or not, count on no more than is left of each profile.

        Parameters
        ----------
        left
            As `Reports.forget` takes it, shape (S,).
        """
        self.reports.forget(left)
        if self._kept is not None:
            self._kept = left[self._kept]

    def told(self, advert: Advert, held: Ints) -> Advert:
        """Return an advert with what routers believe, where that is not what sites hold or some serve not all.

        Parameters
        ----------
        advert
            What is advertised of waits.
        held
            What sites hold and may use, shape (n,).
        """
        if self._all_serve_all and np.array_equal(self.believed, held):
            return advert
        return replace(advert, prefill=self.prefill)
