"""From a run to its map: which layers, in which order, at which detail, with which words around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from geoedge.errors import CityError, OutputError
from geoedge.maps import layers, surfaces
from geoedge.maps.page import LIMIT_BYTES, ODBL_CREDIT, MapLayer, MapPage
from geoedge.maps.scales import CategoryScale, profile_scale
from geoedge.maps.words import clock, percent, plain_text

if TYPE_CHECKING:
    import geopandas
    import pandas as pd

    from geoedge.city import City
    from geoedge.results import Results
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout

__all__ = ["DETAILS", "Detail", "RunView", "city_map"]

Floats = NDArray[np.float64]

REGION_CELLS = 40_000
"""Cells on which serving regions are found."""
CELL_COLUMNS = ("x_m", "y_m", "cell_m", "epoch", "demand_per_km2_s", "local_coverage", "ppp_coverage")


@dataclass(frozen=True)
class Detail:
    """How finely a page draws.

    Parameters
    ----------
    streets_m
        How far a street may lie from where it is drawn [m].
    land_m
        The same for the edge of the land [m].
    regions
        Side of the square details that vanish from serving regions, in cells they are found on.
    cells
        The same for demand and coverage, in the cells they are drawn on; 0 draws every cell as it is.
    demand_m
        Demand is drawn on cells of about this size, if those of the run are smaller [m].
    """

    streets_m: float
    land_m: float
    regions: float
    cells: float
    demand_m: float


DETAILS = (
    Detail(1.0, 10.0, 2.5, 0.0, 100.0),
    Detail(3.0, 15.0, 3.5, 1.0, 100.0),
    Detail(8.0, 20.0, 5.0, 2.5, 150.0),
    Detail(20.0, 40.0, 8.0, 4.0, 200.0),
)
"""From fine to coarse; a page takes the first that fits its limit."""


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
    def _spans(self) -> list[tuple[float, float]]:
        first = (rows.iloc[0] for _, rows in layers.by_epoch(self.epochs))
        return [(float(row["start_s"]), float(row["end_s"])) for row in first]

    @property
    def _measured_from_s(self) -> float:
        return float(self.results.meta["start_s"] + self.results.meta["warm_up_s"])

    @property
    def epoch_names(self) -> list[str]:
        """What the epoch switch offers."""
        return [
            f"{clock(start)}–{clock(end)}" + (" (warm-up)" if end <= self._measured_from_s else "")
            for start, end in self._spans
        ]

    @property
    def first_epoch(self) -> int:
        """The first epoch after the warm-up, with which the page opens."""
        return next((i for i, (_, end) in enumerate(self._spans) if end > self._measured_from_s), 0)

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
    ) -> Iterator[layers.Region]:
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
        for at, rows in layers.by_epoch(self.epochs):
            if epoch in (None, at):
                yield from self._regions_at(at, rows.sort_values("site"), land, smoothing, request_type)

    def _regions_at(
        self, epoch: int, state: pd.DataFrame, land: Any, smoothing: float, only: int | None
    ) -> Iterator[layers.Region]:
        """Yield the regions of one epoch, whose rows are given in the order of the sites."""
        from geoedge.serving.routing import POLICIES

        profile = state["profile"].to_numpy(dtype=np.int64)
        wait = state["advertised_wait_s"].to_numpy(dtype=np.float64)
        prefill = self._prefill_time[profile]
        offset = POLICIES[self.results.meta["policy"]](prefill, wait)
        for kind in np.flatnonzero(np.isfinite(offset).any(axis=0)).tolist():
            if only in (None, kind):
                for row in layers.each(self._served(land, offset, kind, smoothing)):
                    site = int(row.site)
                    times = float(wait[site]), float(prefill[site, kind])
                    yield layers.Region(epoch, kind, site, int(profile[site]), row.geometry, *times)

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
    def _prefill_time(self) -> Floats:
        """Prefill time of every profile and request type [s], shape (S, Q)."""
        from geoedge.workload import build_workload

        return build_workload(self.scenario.workload, self.scenario.hardware).prefill_time

    def demand_cells(self, detail: Detail) -> int:
        """Return how many of the run's cells side by side make one on which demand is drawn.

        Parameters
        ----------
        detail
            How finely to draw.
        """
        cells = self.cells
        return 1 if cells is None else max(1, round(detail.demand_m / float(cells["cell_m"].iloc[0])))

    @property
    def region_cell_m(self) -> float:
        """Cell on which serving regions are found [m]."""
        return max(10.0, float(np.sqrt(self.city.boundary.area / REGION_CELLS)))

    # -- layers --------------------------------------------------------------------------------------

    def layers(self, detail: Detail) -> Iterator[MapLayer]:
        """Yield all layers, in the order in which the panel lists them.

        Parameters
        ----------
        detail
            How finely to draw.
        """
        results, to_lonlat, land = self.results, self.city.to_lonlat, self.land(detail.land_m)
        names = self.profiles.names
        yield from layers.region_layers(
            self.regions(land, detail.regions), results.sites, self.profiles, to_lonlat
        )
        if self.cells is not None:
            cell = float(self.cells["cell_m"].iloc[0])
            canvas = surfaces.Canvas(cell, detail.cells * cell, to_lonlat, land)
            reliability = self.scenario.target.reliability
            yield from surfaces.coverage_layers(self.cells, canvas, reliability)
            yield from surfaces.difference_layers(self.cells, canvas)
            times = self.demand_cells(detail)
            coarse = surfaces.demand_on_larger_cells(self.cells, cell, times)
            canvas_of_demand = surfaces.Canvas(cell * times, detail.cells * cell * times, to_lonlat, land)
            yield from surfaces.demand_layers(coarse, canvas_of_demand)
        yield from layers.site_layers(results.sites, self.epochs, self.profiles)
        yield from layers.hot_site_layers(results.sites, self.epochs)
        yield from layers.action_layers(results.sites, results.actions, names)
        if self.cells is not None:
            yield from surfaces.hot_place_layers(self.cells, canvas, reliability)
        yield layers.street_layer(self.city, detail.streets_m)
        yield layers.land_layer(land, to_lonlat)

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
        found = [f"{plain_text(row.column)} {percent(row.value)}" for row in layers.each(rows)]
        target = f"{self.results.meta['ttft_target_s']:g} s"
        return f"First token within {target}: " + " · ".join(found) if found else ""

    def credit(self) -> list[tuple[str, str]]:
        """Return the credit on the map: words and where they link to."""
        known = self.city.extract_date not in ("", "unknown")
        date = f"; extract of {plain_text(self.city.extract_date)}" if known else "; date of extract unknown"
        if "OpenStreetMap" in self.city.attribution:
            return [*ODBL_CREDIT, (date, "")]
        return [(plain_text(self.city.attribution, 300) + date, "")]

    def notes(self, detail: Detail) -> Iterator[str]:
        """Yield what the reader should know about the run and the drawing."""
        yield from (
            plain_text(line, 400) for line in self.results.meta.get("findings", ()) if line.startswith("UN")
        )
        yield (
            f"Simplified for the page: streets by up to {detail.streets_m:g} m, the edge of the land by "
            f"{detail.land_m:g} m; serving regions are found on cells of {self.region_cell_m:.0f} m."
        )
        if self.cells is None:
            yield "This run has no table of cells: demand, coverage and the prediction's error are not drawn."
        else:
            cell = float(self.cells["cell_m"].iloc[0])
            smoothed = f" and steps smaller than {detail.cells:g} cells smoothed" if detail.cells else ""
            yield (
                f"Demand and coverage are known on cells of {cell:g} m, and demand is drawn on cells of "
                f"{cell * self.demand_cells(detail):g} m; cells of one class are merged{smoothed}. "
                "Cells without requests are left blank."
            )
            yield "Coverage by place is the field's, under the caches and waits of this run, not a count of requests."
            yield (
                "Real map minus Poisson prediction: coverage by place as above, minus what theory predicts in a random "
                "network for the mix of requests from that same place."
            )
        yield "A black site was asked for more service than it has: its queue grows as long as that lasts."
        if self.results.meta["policy"] == "load_aware" and self.results.meta["advertise"] != "equilibrium":
            yield "Sites advertised what they measured; the regions drawn are the field's, around which those of the run move."


def _scenario_of(results: Results) -> Scenario:
    import tomllib

    from geoedge.scenario import Scenario

    try:
        data = tomllib.loads(results.scenario_toml)
    except tomllib.TOMLDecodeError as error:
        msg = f"map: scenario.toml of the run is damaged ({error}); run the scenario again"
        raise OutputError(msg) from None
    return Scenario.from_dict(data, source="scenario of the run")


def city_map(results: Results, city: City | None = None, *, limit_bytes: int = LIMIT_BYTES) -> MapPage:
    """Draw a run as an interactive page that opens without network.

    Parameters
    ----------
    results
        The run.
    city
        Its city; by default the one that the run's scenario names.
    limit_bytes
        What the page may weigh [B]; streets and areas are simplified as far as that takes, and the page says so.
        A page that is over the limit even at its coarsest cannot be saved.

    Raises
    ------
    CityError
        If the run has no city, or the given one does not fit it.
    """
    view = RunView.of(results, city)
    for detail in DETAILS:
        page = _page(view, detail, limit_bytes)
        if page.size_bytes <= limit_bytes:
            break
    return page


def _page(view: RunView, detail: Detail, limit_bytes: int) -> MapPage:
    results = view.results
    page = MapPage(
        str(results.meta.get("title") or results.label),
        lines=view.lines(),
        bounds=view.city.bounds_lonlat,
        epochs=view.epoch_names,
        types=list(results.meta["type_names"]),
        first_epoch=view.first_epoch,
        attribution=view.credit(),
        limit_bytes=limit_bytes,
    )
    for layer in view.layers(detail):
        page.add_child(layer)
    for note in view.notes(detail):
        page.note(note)
    return page
