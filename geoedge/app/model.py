"""EdgeCity as Mesa's page wants it: made from flat keywords, stepped a minute at a time, and never raising."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import mesa
import numpy as np

from geoedge.app.choices import Choices
from geoedge.control.actions import REPAIRS
from geoedge.errors import GeoEdgeError
from geoedge.simulation import EdgeCity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.app.bench import Bench

    Floats = NDArray[np.float64]

__all__ = ["REPORTERS", "WINDOW_S", "CityModel", "Recent"]

WINDOW_S = 300.0
"""Coverage, p95 and waits are those of the requests of so many last seconds [s]."""
REPORTERS = ("time_s", "coverage", "p95_ttft_s", "utilization", "busiest", "waiting", "moved_bytes")
"""Properties of the model that are collected at every step, one number each."""


@dataclass(frozen=True)
class Recent:
    """What became of the requests of the last minutes whose fate at the TTFT target is known.

    Parameters
    ----------
    coverage
        Share of them in time [–]; NaN without requests.
    p95_ttft_s
        TTFT that 95 % of them keep to [s], in which those that still wait count with the wait so far; infinite
        where more are rejected.
    wait_s
        Mean wait of those that have started, by site [s], shape (n,); NaN where there are none.
    """

    coverage: float
    p95_ttft_s: float
    wait_s: Floats

    @classmethod
    def none(cls, sites: int) -> Recent:
        """Return what is known before anybody has asked."""
        return cls(float("nan"), float("nan"), np.full(sites, np.nan))


class CityModel(mesa.Model):  # type: ignore[misc]  # Mesa is untyped
    """A city under study, as a page shows it.

    What does not fit together is a `problem` in one line instead of an error, and the model then stands still.

    Parameters
    ----------
    bench
        Where studies come from.
    **kwargs
        Choices by name, as `Choices.flat` gives them.

    Attributes
    ----------
    city
        The `EdgeCity`, if there is no problem.
    problem
        One line on what is wrong, empty if nothing is.
    recent
        What became of the last minutes' requests.
    """

    def __init__(self, bench: Bench, **kwargs: Any) -> None:
        super().__init__(rng=bench.scenario.seed)
        self.bench = bench
        self.city: EdgeCity | None = None
        self.problem = ""
        self._first = 0
        try:
            self.choices = Choices.from_flat(kwargs)
            study = bench.study(self.choices)
            self.city = EdgeCity(study.scenario, study=study)
        except GeoEdgeError as error:
            self._stop(str(error))
        self.recent = Recent.none(0 if self.city is None else len(self.city.sites))
        self.datacollector = mesa.DataCollector(model_reporters={name: name for name in REPORTERS})

    def step(self) -> None:
        """Let a minute pass, or what is left of the epoch; standing still counts as no step."""
        if self.city is None or not self.city.running:
            self.running = False
            self.steps -= 1  # Mesa counts before it asks
            return
        try:
            self.city.step()
        except GeoEdgeError as error:
            self._stop(str(error))
            return
        self.recent = self._look_back()
        self.datacollector.collect(self)
        self.running = self.city.running

    def forget(self) -> None:
        """Let go of what Mesa keeps of every model for ever."""
        for model in (self, self.city):
            mesa.Agent._ids.pop(model, None)

    def _stop(self, problem: str) -> None:
        self.problem, self.running = problem, False

    def _look_back(self) -> Recent:
        """Return what is known of the requests of the last minutes."""
        city = self.city
        assert city is not None
        target = city.scenario.target.ttft_target_s
        records = city.engine.records(self._first)
        begin = int(np.searchsorted(records.created_s, city.clock_s - WINDOW_S))
        end = int(np.searchsorted(records.created_s, city.clock_s - target, side="right"))
        self._first += begin
        if begin >= end:
            return Recent.none(len(city.sites))
        known = slice(begin, end)
        ttft, site, wait = records.ttft_s[known], records.site[known], records.wait_s[known]
        so_far = np.where(np.isnan(ttft), city.clock_s - records.created_s[known], ttft)
        started = np.isfinite(wait) & (site >= 0)
        count, total = (
            np.bincount(site[started], weights=weights, minlength=len(city.sites))
            for weights in (None, wait[started])
        )
        return Recent(
            coverage=float(np.mean(so_far <= target)),
            p95_ttft_s=float(np.quantile(so_far, 0.95, method="higher")),
            wait_s=np.divide(total, count, out=np.full(len(city.sites), np.nan), where=count > 0),
        )

    # -- what is collected ---------------------------------------------------------------------------

    @property
    def time_s(self) -> float:
        """The clock [s since midnight]."""
        return float("nan") if self.city is None else self.city.clock_s

    @property
    def coverage(self) -> float:
        """Share in time of the last minutes' requests."""
        return self.recent.coverage

    @property
    def p95_ttft_s(self) -> float:
        """TTFT that 95 % of them keep to [s]."""
        return self.recent.p95_ttft_s

    @property
    def utilization(self) -> float:
        """Busy servers over servers in the last step, all sites together."""
        begun = self.city is not None and self.city.last.duration_s > 0
        return self.city.utilization if begun and self.city is not None else float("nan")

    @property
    def busiest(self) -> float:
        """Utilisation of the busiest site in the last step."""
        return float("nan") if self.city is None else float(self.site_utilization.max())

    @property
    def site_utilization(self) -> Floats:
        """Utilisation of each site in the last step, shape (n,); NaN before the first."""
        if self.city is None:
            return np.zeros(0)
        last = self.city.last
        return last.utilization if last.duration_s > 0 else np.full(last.n, np.nan)

    @cached_property
    def site_streets(self) -> list[str]:
        """Name of the street at which each site stands; empty where none is near."""
        if self.city is None:
            return []
        study = self.city.study
        return study.city.street_names.at(study.layout.xy)

    @property
    def waiting(self) -> int:
        """Requests waiting at sites."""
        return 0 if self.city is None else self.city.waiting

    @property
    def moved_bytes(self) -> float:
        """Bytes moved by the controller so far [B], without what sites fetch by themselves to repair their caches."""
        return float(np.nansum(self.epoch_bytes()))

    def epoch_bytes(self) -> Floats:
        """Return the bytes that the controller moved in each epoch [B], shape (E,); NaN for those to come."""
        if self.city is None:
            return np.zeros(0)
        log = [entry for entry in self.city.operator.log if entry.action.kind not in REPAIRS]
        epochs = len(self.city.study.epochs)
        moved = np.bincount(
            [entry.epoch for entry in log],
            weights=[entry.action.bytes_moved for entry in log],
            minlength=epochs,
        )
        return np.where(np.arange(epochs) <= self.city.epoch, moved, np.nan)
