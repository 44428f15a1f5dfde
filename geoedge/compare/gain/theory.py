"""What theory's Poisson network makes of a coverage: the density that reaches it, and the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.answers import first_reached
from geoedge.compare.gain.crossings import VALUES, nothing_said

if TYPE_CHECKING:
    from geoedge.compare.gain.curves import Ground

__all__ = ["TheoryReference"]


class TheoryReference:
    """The closed form for an infinite Poisson network of the layout's mix at one demand.

    Parameters
    ----------
    ground
        The layout in question and what it is asked.
    factor
        Demand, over the ground's.
    """

    def __init__(self, ground: Ground, factor: float) -> None:
        from geoedge.theory import solve

        self._ground, self._networks = ground, ground.networks(factor)
        self._answers = [solve(each, ground.policy, queue=ground.queue) for each in self._networks]

    def coverage(self, tau: float) -> float:
        """Return the share of requests in time at the layout's density."""
        shares = [float(answer.ttft_coverage(tau)) for answer in self._answers]
        return float(self._ground.weight @ shares)

    def row(self, tau: float, level: float) -> dict[str, Any]:
        """Return gain and shift for a target and the layout's coverage; there is no interval."""
        from geoedge.theory.density import minimum_density

        row: dict[str, Any] = {"reference": "theory", "reference_coverage": self.coverage(tau), "note": ""}
        row |= dict.fromkeys(VALUES, float("nan"))
        if said := nothing_said(level):
            return row | {"note": said}
        density = minimum_density(
            self._networks,
            level,
            tau,
            self._ground.policy,
            weights=self._ground.weight,
            queue=self._ground.queue,
        )
        later = first_reached(self.coverage, level, tau)
        if np.isfinite(density):
            row["gain"] = density / self._networks[0].site_density
        else:
            row["note"] = "no Poisson density covers as much"
        if np.isfinite(later):
            row |= {"shift_s": later - tau, "time_ratio": later / tau}
        else:
            row["note"] = "; ".join(
                filter(None, (row["note"], "Poisson theory never covers as much at any time"))
            )
        return row
