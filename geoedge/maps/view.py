"""A run on its city, as maps and pictures of it want it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoedge.errors import CityError, OutputError
from geoedge.maps.credit import map_credit
from geoedge.maps.rundata import by_epoch, each
from geoedge.maps.scales import CategoryScale, profile_scale
from geoedge.maps.words import clock, percent
from geoedge.policies import POLICIES, Policy
from geoedge.texts import plain_text

if TYPE_CHECKING:
    import geopandas
    import pandas as pd

    from geoedge.city import City
    from geoedge.results import Results
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.workload import Workload

__all__ = ["Region", "RunView"]

Floats = NDArray[np.float64]

REGION_CELLS = 40_000
"""Cells on which serving regions of pictures are found."""
CELL_COLUMNS = ("x_m", "y_m", "cell_m", "epoch", "demand_per_km2_s", "local_coverage", "ppp_coverage")


@dataclass(frozen=True)
class Region:
    """The places that one site serves for one request type in one epoch.

    Parameters
    ----------
    epoch, type, site
        Indices of the epoch, request type and site.
    profile
        Index of the profile that the site holds then.
    geometry
        Shapely (multi)polygon [m].
    wait_s
        Wait that the site advertises [s].
    prefill_s
        Prefill time of this type there [s].
    """

    epoch: int
    type: int
    site: int
    profile: int
    geometry: Any
    wait_s: float
    prefill_s: float


@dataclass(frozen=True, eq=False)
class RunView:
    """A run on its city, as the layers want it.

    Parameters
    ----------
    results
        The run.
    city
        Its city.
    scenario
        Its scenario.
    """

    results: Results
    city: City
    scenario: Scenario

    @classmethod
    def of(cls, results: Results, city: City | None = None) -> RunView:
        """Return the view of a run, its city loaded where none is given.

        Parameters
        ----------
        results
            The run.
        city
            Its city; by default the one that the run's scenario names.

        Raises
        ------
        CityError
            If the run has no city, or was made on another one than is given.
        """
        scenario = _scenario_of(results)
        if city is None:
            if scenario.city is None:
                msg = "map: the run has no city to draw; run a scenario with a [city] section"
                raise CityError(msg)
            from geoedge.city import load_city

            city = load_city(scenario.city)
        made_on = results.meta["checksums"]["city"]
        if city.checksum != made_on:
            msg = f"map: `city` {city.name!r} is not the one of the run (checksum {made_on[:12]}…); give that city"
            raise CityError(msg)
        return cls(results, city, scenario)

    @property
    def epochs(self) -> pd.DataFrame:
        """One row an epoch and site; epochs count from 0."""
        return self.results.epochs

    @cached_property
    def spans(self) -> list[tuple[float, float]]:
        """Begin and end of every epoch [s]."""
        first = (rows.iloc[0] for _, rows in by_epoch(self.epochs))
        return [(float(row["start_s"]), float(row["end_s"])) for row in first]

    @property
    def epoch_names(self) -> list[str]:
        """What the epoch switch offers."""
        return [
            f"{clock(start)}–{clock(end)}" + (" (warm-up)" if end <= self.results.measured_from_s else "")
            for start, end in self.spans
        ]

    @property
    def first_epoch(self) -> int:
        """The first epoch after the warm-up, with which the page opens."""
        return next((i for i, (_, end) in enumerate(self.spans) if end > self.results.measured_from_s), 0)

    @property
    def cells(self) -> pd.DataFrame | None:
        """One row an epoch and cell; None if the run has no such table."""
        table = self.results.tables.get("cells")
        if table is None or not set(CELL_COLUMNS) <= set(table.columns):
            return None
        return table

    @cached_property
    def profiles(self) -> CategoryScale:
        """Colours and shapes of the profiles."""
        return profile_scale(self.results.meta["profile_names"])

    def land(self, tolerance_m: float) -> Any:
        """Return the land where people are, simplified [m]."""
        return shapely.make_valid(shapely.simplify(self.city.boundary, tolerance_m))

    # -- serving regions ---------------------------------------------------------------------------

    def regions(
        self, land: Any, smoothing: float, *, epoch: int | None = None, request_type: int | None = None
    ) -> Iterator[Region]:
        """Yield the serving regions of epochs and request types under the waits advertised in them.

        Parameters
        ----------
        land
            Land on which they are drawn, a shapely (multi)polygon [m].
        smoothing
            Side of the square details that vanish, in cells of `region_cell_m`.
        epoch, request_type
            The only ones; all by default.
        """
        for at, rows in by_epoch(self.epochs):
            if epoch in (None, at):
                yield from self._regions_at(at, rows.sort_values("site"), land, smoothing, request_type)

    def _regions_at(
        self, epoch: int, state: pd.DataFrame, land: Any, smoothing: float, only: int | None
    ) -> Iterator[Region]:
        """Yield the regions of one epoch, whose rows are given in the order of the sites."""
        profile = state["profile"].to_numpy(dtype=np.int64)
        wait = state["advertised_wait_s"].to_numpy(dtype=np.float64)
        prefill = self.workload.prefill_time[profile]
        offset = self.policy(prefill, wait)
        for kind in np.flatnonzero(np.isfinite(offset).any(axis=0)).tolist():
            if only in (None, kind):
                for row in each(self._served(land, offset, kind, smoothing)):
                    site = int(row.site)
                    times = float(wait[site]), float(prefill[site, kind])
                    yield Region(epoch, kind, site, int(profile[site]), row.geometry, *times)

    def _served(self, land: Any, offset: Floats, kind: int, smoothing: float) -> geopandas.GeoDataFrame:
        from geoedge.field import serving_regions

        radio, cell = self.scenario.radio, self.region_cell_m
        return serving_regions(
            land,
            self._layout,
            offset,
            radio.delay_coefficient,
            radio.delay_exponent,
            cell_m=cell,
            type_index=kind,
            tolerance_m=smoothing * cell,
        )

    @cached_property
    def _layout(self) -> Layout:
        from geoedge.sites import Layout

        sites = self.results.sites
        xy, profile = sites[["x_m", "y_m"]].to_numpy(dtype=np.float64), sites["profile"].to_numpy()
        return Layout(
            xy, profile, tuple(sites["name"]), tuple(sites["kind"]), "sites of a run", self.city.crs
        )

    @cached_property
    def workload(self) -> Workload:
        """What is asked and kept."""
        from geoedge.workload import build_workload

        return build_workload(self.scenario.workload, self.scenario.hardware)

    @property
    def policy(self) -> Policy:
        """The routing policy of the run."""
        return POLICIES[self.results.meta["policy"]]

    @property
    def region_cell_m(self) -> float:
        """Cell on which serving regions are found [m]."""
        return max(10.0, float(np.sqrt(self.city.boundary.area / REGION_CELLS)))

    # -- words -----------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """Return the lines under the title: the three answers, and the circumstances."""
        meta = self.results.meta
        lines = [answers] if (answers := self._answers()) else []
        parts = [
            f"drawn: first of {meta['replications']} runs" if meta.get("replications") else "",
            f"{len(self.results.sites)} sites"
            + (f" ({plain_text(meta['layout'])})" if meta.get("layout") else ""),
            f"routing {meta['policy']}".replace("_", "-"),
            f"waits advertised: {meta['advertise']}" if meta.get("advertise") else "",
            f"controller: {meta['controller']}" if meta.get("controller") else "",
        ]
        return [*lines, " · ".join(part for part in parts if part)]

    def _answers(self) -> str:
        table = self.results.tables.get("answers")
        if table is None or "metric" not in table:
            return ""
        rows = table[table["metric"] == "coverage"]
        found = [f"{plain_text(row.column)} {percent(row.value)}" for row in each(rows)]
        target = f"{self.results.meta['ttft_target_s']:g} s"
        return f"First token within {target}: " + " · ".join(found) if found else ""

    def credit(self) -> list[tuple[str, str]]:
        """Return the credit on the map: words and where they link to."""
        return map_credit(self.city.attribution, self.city.extract_date)


def _scenario_of(results: Results) -> Scenario:
    import tomllib

    from geoedge.scenario import Scenario

    try:
        data = tomllib.loads(results.scenario_toml)
    except tomllib.TOMLDecodeError as error:
        msg = f"map: scenario.toml of the run is damaged ({error}); run the scenario again"
        raise OutputError(msg) from None
    return Scenario.from_dict(data, source="scenario of the run")
