"""The catalogue: what every site says of itself, from when it is, and how routers come to hear it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from geoedge.errors import GeoEdgeError
from geoedge.serving.advertising import Advert

__all__ = ["ADVERTISING", "Advertise", "Catalogue", "Scope"]

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
    profile
        Profile of each site, shape (n,); states on their way are not in it.
    wait
        Waits [s], shape (n,); infinite where there is no stable one.
    epoch
        Epoch in which it was made.
    time_s
        When it was made [s since midnight].
    telemetry_period_s, telemetry_delay_s
        Time between reports, and until they are heard [s]; of no use for prices.

    Raises
    ------
    GeoEdgeError
        If the kind is unknown or lengths disagree.
    """

    advertise: Advertise
    scope: Scope
    profile: NDArray[np.int64]
    wait: NDArray[np.float64]
    epoch: int
    time_s: float
    telemetry_period_s: float = 1.0
    telemetry_delay_s: float = 0.0

    def __post_init__(self) -> None:
        if self.advertise not in ADVERTISING:
            msg = f"routing.advertise = {self.advertise!r}: must be one of {', '.join(ADVERTISING)}"
            raise GeoEdgeError(msg)
        if len(self.profile) != len(self.wait):
            msg = (
                f"catalogue: {len(self.profile)} profiles and {len(self.wait)} waits; give one of each a site"
            )
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
