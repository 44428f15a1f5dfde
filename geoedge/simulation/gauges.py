"""What a run shows of itself while it goes on: the numbers that reporters collect and that pages draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.trips import STREET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.control.placement import Placement
    from geoedge.scenario import Scenario
    from geoedge.serving.events import ServingEngine
    from geoedge.simulation.agents import ControllerAgent
    from geoedge.simulation.mobility import Population
    from geoedge.simulation.tables import Tally

    Floats = NDArray[np.float64]

__all__ = ["REPORTERS", "Gauges"]

REPORTERS = (
    "time_s",
    "requests",
    "coverage",
    "mean_ttft_s",
    "waiting",
    "travelling_share",
    "utilization",
    "sites_in_transit",
    "moved_bytes",
)
"""Properties of the model that `DataCollector` keeps, one number each a step."""


class Gauges:
    """Properties of a model that is under way; the model itself keeps what they are read from."""

    clock_s: float
    scenario: Scenario
    population: Population
    placement: Placement
    controller: ControllerAgent
    engine: ServingEngine
    last: Tally
    _decided: int
    _recent: tuple[float, float]
    _whereabouts: tuple[float, Floats, NDArray[np.int8]]

    @property
    def time_s(self) -> float:
        """The clock [s since midnight]."""
        return self.clock_s

    @property
    def requests(self) -> int:
        """Requests made in the last step."""
        return self.last.routed

    @property
    def coverage(self) -> float:
        """Share in time of the requests whose fate was decided in the last step."""
        return self._recent[0]

    @property
    def mean_ttft_s(self) -> float:
        """Mean TTFT of those of them that have started [s]."""
        return self._recent[1]

    @property
    def waiting(self) -> int:
        """Requests waiting at sites."""
        return int(self.last.waiting.sum())

    @property
    def utilization(self) -> float:
        """Busy servers over servers in the last step, all sites together."""
        return float(self.last.busy_s.sum() / max(self.last.server_s.sum(), 1e-12))

    @property
    def travelling_share(self) -> float:
        """Share of users on the street."""
        return float(np.mean(self.whereabouts[1] == STREET))

    @property
    def sites_in_transit(self) -> int:
        """Sites that wait for states."""
        return len(self.placement.in_transit)

    @property
    def moved_bytes(self) -> float:
        """Bytes moved so far, by plans and by what sites repair themselves [B]."""
        return self.controller.moved_bytes

    @property
    def whereabouts(self) -> tuple[Floats, NDArray[np.int8]]:
        """Where all users are now [m], shape (N, 2), and what they do, shape (N,)."""
        cached = getattr(self, "_whereabouts", None)
        if cached is None or cached[0] != self.clock_s:
            cached = (self.clock_s, *self.population.positions(self.clock_s))
            self._whereabouts = cached
        return cached[1], cached[2]

    def _decide(self) -> None:
        """Judge the requests whose fate at the TTFT target is known by now and was not a step ago."""
        target = self.scenario.target.ttft_target_s
        records = self.engine.records(self._decided)
        count = int(np.searchsorted(records.created_s, self.clock_s - target, side="right"))
        ttft = records.ttft_s[:count]
        self._decided += count
        known = ttft[np.isfinite(ttft)]
        self._recent = (
            float(np.mean(ttft <= target)) if count else float("nan"),
            float(known.mean()) if known.size else float("nan"),
        )
