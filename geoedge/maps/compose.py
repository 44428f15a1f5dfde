"""From a run to its map: which layers, in which order, at which detail, with which words around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.maps import layers, rundata, samples, surfaces
from geoedge.maps.page import LIMIT_BYTES, MapLayer, MapPage, RunData
from geoedge.maps.tiles import Tiles
from geoedge.maps.trips import trips
from geoedge.maps.view import RunView
from geoedge.maps.wire import encode_polygons
from geoedge.simulation.paths import TOLERANCE_M
from geoedge.texts import plain_text

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.city import City
    from geoedge.results import Results

__all__ = ["DETAILS", "Detail", "city_map"]


@dataclass(frozen=True)
class Detail:
    """How finely a page draws.

    Parameters
    ----------
    streets_m
        How far a street may lie from where it is drawn [m].
    land_m
        The same for the edge of the land [m].
    cell_m
        Values by place are kept on cells of about this size, if those of the run are smaller [m]; 0 keeps those.
    people, travellers
        How many people are shown where they asked, and how many residents' trips at most.
    street_names
        How many names of streets are brought along at most, main roads first.
    """

    streets_m: float
    land_m: float
    cell_m: float
    people: int
    travellers: int
    street_names: int


DETAILS = (
    Detail(1.0, 10.0, 0.0, 300, 100, 4000),
    Detail(3.0, 15.0, 100.0, 300, 100, 3000),
    Detail(6.0, 20.0, 150.0, 200, 60, 1500),
    Detail(10.0, 30.0, 200.0, 150, 30, 500),
    Detail(20.0, 40.0, 400.0, 0, 0, 200),
)
"""From fine to coarse; a page takes the first that fits its limit."""


def city_map(
    results: Results,
    city: City | None = None,
    *,
    limit_bytes: int = LIMIT_BYTES,
    tiles: str | None = None,
    tiles_credit: str | None = None,
) -> MapPage:
    """Draw a run as an interactive page that opens without network.

    Parameters
    ----------
    results
        The run.
    city
        Its city; by default the one that the run's scenario names.
    limit_bytes
        What the page may weigh [B]; streets and cells become as coarse as that takes, and the page says so.
        A page that is over the limit even at its coarsest cannot be saved.
    tiles
        Address of map tiles that the page loads while it is open, such as
        ``https://tile.openstreetmap.org/{z}/{x}/{y}.png``; by default the page loads nothing. Without network the
        page does without them. A provider may want to know which page asks; one that is opened from a file cannot say.
    tiles_credit
        Words that their provider asks for; may be left out for ``tile.openstreetmap.org``.

    Raises
    ------
    CityError
        If the run has no city, or the given one does not fit it.
    OutputError
        If `tiles` is not such an address, or nobody is credited.
    """
    ground = None if tiles is None else Tiles.of(tiles, tiles_credit)
    composer = _Composer(RunView.of(results, city), ground)
    for detail in DETAILS:
        page = composer.page(detail, limit_bytes)
        if page.size_bytes <= limit_bytes:
            break
    return page


class _Composer:
    """What all details of one page share."""

    def __init__(self, view: RunView, tiles: Tiles | None) -> None:
        self.view, self.tiles = view, tiles
        self.cells = None if view.cells is None else samples.with_people(view.cells, view.results)
        self.epochs = view.epochs.sort_values(["epoch", "site"], kind="stable")
        self.events = view.results.tables.get("events")
        self.fixed = self._fixed()

    def page(self, detail: Detail, limit_bytes: int) -> MapPage:
        """Return the page at one detail."""
        view, meta = self.view, self.view.results.meta
        page = MapPage(
            str(meta.get("title") or view.results.label),
            lines=view.lines(),
            bounds=view.city.bounds_lonlat,
            epochs=view.epoch_names,
            types=list(meta["type_names"]),
            first_epoch=view.first_epoch,
            attribution=self._credit(),
            limit_bytes=limit_bytes,
        )
        if self.tiles:
            page.load_from(self.tiles.source)
        data = self._data(detail)
        page.add_child(RunData(data))
        for layer in self._layers(detail, data):
            page.add_child(layer)
        for note in self._notes(detail, data):
            page.note(note)
        return page

    def _fixed(self) -> dict[str, Any]:
        """Return what does not depend on the detail."""
        view, sites = self.view, self.view.results.sites
        results, profiles, radio = view.results, view.profiles, view.scenario.radio
        names = rundata.site_names(sites)
        prefixes = [profile.prefixes for profile in view.scenario.workload.profiles]
        return {
            "spans": [list(span) for span in view.spans],
            "reliability": view.scenario.target.reliability,
            "sites": {
                "name": names,
                "kind": [plain_text(kind) for kind in sites["kind"]],
                "street": [plain_text(street) for street in results.streets],
                "place": rundata.site_places(sites),
                "x": np.round(sites["x_m"].to_numpy(), 1).tolist(),
                "y": np.round(sites["y_m"].to_numpy(), 1).tolist(),
            },
            "profiles": {
                "names": [plain_text(name) for name in profiles.names],
                "colours": list(profiles.colours),
                "shapes": list(profiles.shapes),
                "holds": rundata.profile_contents(view.workload, prefixes),
            },
            "profile": rundata.profiles_held(self.epochs),
            "columns": rundata.site_columns(self.epochs),
            "association": rundata.association(
                view.policy, view.workload.prefill_time, radio.delay_coefficient, radio.delay_exponent
            ),
            "ground": rundata.ground(view.city),
            "day": rundata.day_totals(self.epochs, results.actions),
            "actions": rundata.moves(results.actions),
            "events": rundata.event_rows(self.events, names, view.spans[-1][1]),
            "waits": samples.waits(results),
            "mix": samples.mix(results),
        }

    def _credit(self) -> list[tuple[str, str]]:
        own = self.view.credit()
        return [*own, ("; tiles: ", ""), *self.tiles.credit] if self.tiles else own

    def _data(self, detail: Detail) -> dict[str, Any]:
        view = self.view
        found = dict(self.fixed)
        found["land"] = encode_polygons(view.land(detail.land_m), view.city.to_lonlat)
        found["people"] = samples.people(view.results, view.city, detail.people)
        found["trips"] = trips(view.results, view.city, detail.travellers)
        found["cells"] = None if self.cells is None else self._cells(self.cells, detail)
        return found

    def _cells(self, cells: pd.DataFrame, detail: Detail) -> dict[str, Any]:
        cell = float(cells["cell_m"].iloc[0])
        times = max(1, round(detail.cell_m / cell))
        coarse = cells if times == 1 else surfaces.on_larger_cells(cells, cell, times)
        return surfaces.encode_cells(coarse, cell * times)

    def _layers(self, detail: Detail, data: dict[str, Any]) -> Iterator[MapLayer]:
        """Yield all layers, in the order in which the panel lists them."""
        view = self.view
        target = view.scenario.target
        yield surfaces.region_layer(view.profiles)
        yield surfaces.ttft_layer(target.ttft_target_s, mixed=data["mix"] is not None)
        if self.cells is not None:
            yield from surfaces.cell_layers(self.cells, target.reliability)
        yield layers.site_layer(view.results.sites, view.profiles, target.reliability)
        yield layers.hot_site_layer()
        if data["actions"]:
            yield layers.action_layer()
        if data["events"]:
            yield layers.event_layer()
        if self.cells is not None:
            yield surfaces.hot_place_layer(target.reliability)
        if data["people"] or data["trips"]:
            yield layers.people_layer(trips=data["trips"] is not None)
        yield layers.place_layer(view.city)
        yield layers.street_layer(view.city, detail.streets_m, detail.street_names)
        yield layers.land_layer(view.land(detail.land_m), view.city.to_lonlat)
        if self.tiles:
            yield self.tiles.layer

    # -- words -----------------------------------------------------------------------------------------

    def _notes(self, detail: Detail, data: dict[str, Any]) -> Iterator[str]:
        """Yield what the reader should know about the run and the drawing."""
        meta = self.view.results.meta
        yield from (plain_text(line, 400) for line in meta.get("findings", ()) if line.startswith("UN"))
        yield (
            f"Simplified for the page: streets by up to {detail.streets_m:g} m, the edge of the land by "
            f"{detail.land_m:g} m. Numbers are kept to three digits."
        )
        yield (
            "Regions and times to the first token are worked out here, from the caches, the waits that sites advertised "
            "and the routing rule of this run; a time is a mean, with the mean wait of the site."
        )
        if data["mix"]:
            yield "All types: weighted by what was asked in the whole city in this epoch, the same mix everywhere."
        yield from self._cell_notes(data)
        yield from self._people_notes(data)
        if any(event["kind"] == "site_failure" for event in data["events"]):
            yield "A site that fails is crossed out; regions and times to the first token are those without the failure."
        yield "A black site was asked for more service than it has: its queue grows as long as that lasts."
        policy = self.view.policy
        if not policy.has_closed_form:
            yield (
                f"Serving regions and coverage by place are those of {policy.solved_as.replace('_', '-')} routing, which "
                f"stands for {policy.name.replace('_', '-')} on the map."
            )
        if policy.reads == "wait" and meta["advertise"] != "equilibrium":
            yield "Sites advertised what they measured; the regions drawn are the field's, around which those of the run move."

    def _people_notes(self, data: dict[str, Any]) -> Iterator[str]:
        if data["people"]:
            yield f"{len(data['people']['activity'][0])} people are shown, each where it asked last in an epoch."
        if data["trips"]:
            yield (
                f"Trips are those of {len(set(data['trips']['user']))} residents, along the streets that they took, to within "
                f"{TOLERANCE_M:g} m; people of crowds make none."
            )
        elif "paths" not in self.view.results.tables:
            yield "This run has no table of paths, so that no trips are drawn; run the scenario again to have them."

    def _cell_notes(self, data: dict[str, Any]) -> Iterator[str]:
        if self.cells is None or data["cells"] is None:
            yield "This run has no table of cells: demand, coverage and the prediction's error are not drawn."
            return
        own, drawn = float(self.cells["cell_m"].iloc[0]), float(data["cells"]["cell_m"])
        if surfaces.PEOPLE in self.cells:
            yield (
                f"People are counted where they asked last, and spread over about {samples.SMOOTH_M:g} m around it; who "
                "did not ask in an epoch is not counted."
            )
        merged = f", kept here on cells of {drawn:g} m to keep the page small" if drawn > own else ""
        yield (
            f"Demand and coverage are known on cells of {own:g} m{merged}, and read between the centres of the cells. "
            "Single places without requests show what their neighbours do; larger ones are left blank."
        )
        yield "Coverage by place is the field's, under the caches and waits of this run, not a count of requests."
        yield (
            "Real map minus Poisson prediction: coverage by place as above, minus what theory predicts in a random "
            "network for the mix of requests from that same place."
        )
