"""A page of a plan of places: which to equip, in which order, and what each step brings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from geoedge.maps.credit import map_credit
from geoedge.maps.layers import land_layer, street_layer
from geoedge.maps.page import LIMIT_BYTES, MapLayer, MapPage
from geoedge.maps.samples import lattice
from geoedge.maps.scales import demand_scale, profile_scale
from geoedge.maps.wire import encode_point, encode_polygons
from geoedge.maps.words import percent
from geoedge.texts import plain_text
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.planning import PlacesPlan

    Floats = NDArray[np.float64]

__all__ = ["places_map"]

STREETS_M, LAND_M = 5.0, 10.0
"""How far a street and the edge of the land may lie from where they are drawn [m]."""
CELLS = 900
"""Squares of demand, at most."""
FEW = 60
"""Places up to which each carries its number."""


def places_map(plan: PlacesPlan, *, limit_bytes: int = LIMIT_BYTES) -> MapPage:
    """Draw a plan of places as a page that opens without network and steps through the building.

    Parameters
    ----------
    plan
        As `geoedge.plan_places` gives it.
    limit_bytes
        What the page may weigh [B].

    Raises
    ------
    OutputError
        When the page is written, if it is over its limit.
    """
    city = plan.study.city
    page = MapPage(
        f"Which places first? {plain_text(plan.study.scenario.title)}",
        lines=[_line(plan)],
        bounds=city.bounds_lonlat,
        epochs=list(_steps(plan)),
        first_epoch=len(plan.order) - 1,
        attribution=map_credit(city.attribution, city.extract_date),
        limit_bytes=limit_bytes,
    )
    land = shapely.make_valid(shapely.simplify(city.boundary, LAND_M))
    for layer in (
        _demand_layer(plan, land),
        _candidate_layer(plan),
        _order_layer(plan),
        street_layer(city, STREETS_M),
        land_layer(land, city.to_lonlat),
    ):
        page.add_child(layer)
    for note in _notes(plan):
        page.note(note)
    return page


def _steps(plan: PlacesPlan) -> Iterator[str]:
    """Yield what each step of building comes to."""
    for k, row in enumerate(plan.order, 1):
        built = "1 place" if k == 1 else f"{k} places"
        yield f"{built}: {percent(row.coverage)} in time" if _carried(row) else f"{built}: overloaded"


def _carried(row: Any) -> bool:
    """Return whether the network does best when it turns nobody away."""
    return bool(row.admitted >= 1.0)


# -- layers -----------------------------------------------------------------------------------------


def _demand_layer(plan: PlacesPlan, land: Any) -> MapLayer:
    """Return where requests come from on average over the window, on squares of the demand's cells."""
    from geoedge.study.window import window_parts

    (mean,), _ = window_parts(plan.study, 1)
    centre, density, side = _squares(
        mean.xy, mean.rate.sum(axis=1), float(plan.study.scenario.demand.cell_m), land
    )
    scale = demand_scale(density)
    level = np.searchsorted(scale.edges, density, side="right")
    boxes = shapely.box(*(centre - side / 2).T, *(centre + side / 2).T)
    to_lonlat = plan.study.city.to_lonlat
    areas = {
        int(k): shapely.intersection(shapely.union_all(boxes[level == k]), land) for k in np.unique(level)
    }
    features: list[list[Any]] = [
        ["polygon", encode_polygons(area, to_lonlat), k, None, {}]
        for k, area in areas.items()
        if area.area > 0
    ]
    return MapLayer(
        "demand",
        "Where do requests come from?",
        features,
        role="surface",
        style={"stroke": False, "fillOpacity": 0.75},
        styles=[{"fillColor": colour} for colour in scale.colours],
        dark_styles=[{"fillColor": colour} for colour in scale.dark],
        legends=[scale.legend()],
        show=True,
    )


def _squares(xy: Floats, rate: Floats, cell_m: float, land: Any) -> tuple[Floats, Floats, float]:
    """Return centres of few squares of whole cells [m], requests of each [1/(s km²)], and their side [m].

    Requests are counted by the area of the cells that a square has on the land, as at the edge it is not full of them.
    """
    corner, times = xy.min(axis=0) - cell_m / 2, 1
    while len(np.unique(np.column_stack(lattice(xy, corner, times * cell_m)), axis=0)) > CELLS:
        times += 1
    side = times * cell_m
    square, ground = (lattice(places, corner, side) for places in (xy, _ground(xy, cell_m, land)))
    shape = square[0].max() + 1, square[1].max() + 1
    requests, cells = np.zeros(shape), np.zeros(shape)
    np.add.at(requests, square, rate)
    np.add.at(cells, ground, 1.0)
    asked = np.nonzero(requests)
    centre = corner + (np.column_stack(asked[::-1]) + 0.5) * side
    return centre, requests[asked] * M2_PER_KM2 / (cells[asked] * cell_m**2), side


def _ground(xy: Floats, cell_m: float, land: Any) -> Floats:
    """Return the centres of all cells within the bounds of some that are among them or stand on the land [m]."""
    row, column = lattice(xy, xy.min(axis=0) - cell_m / 2, cell_m)
    taken = np.zeros((row.max() + 1, column.max() + 1), dtype=np.bool_)
    centres = xy.min(axis=0) + np.indices(taken.shape)[::-1].reshape(2, -1).T * cell_m
    shapely.prepare(land)
    taken.ravel()[:] = shapely.contains_xy(land, *centres.T)
    taken[row, column] = True
    return np.asarray(centres[taken.ravel()])


def _candidate_layer(plan: PlacesPlan) -> MapLayer:
    left = np.flatnonzero(plan.held < 0).tolist()
    layout, lonlat = plan.study.layout, plan.study.city.to_lonlat(plan.study.layout.xy)
    streets = plan.study.city.street_names.at(layout.xy)
    return MapLayer(
        "candidates",
        "Which places are left out?",
        [
            [
                "point",
                encode_point(lonlat[i]),
                0,
                [_name(layout.name[i], i), plain_text(streets[i]), plain_text(layout.kind[i])],
                {},
            ]
            for i in left
        ],
        pane="sites",
        fields=("Street", "Kind"),
        style={"weight": 1.6, "radius": 5.0, "shape": "circle", "fillOpacity": 0.6},
        styles=[{"color": "#5d6977", "fillColor": "#ffffff"}],
        dark_styles=[{"color": "#a9b4c0", "fillColor": "#1c232c"}],
        show=True,
    )


def _order_layer(plan: PlacesPlan) -> MapLayer:
    """Return the places of the plan, each there from its step on."""
    names = plan.study.workload.profile_names
    scale, few = profile_scale([plain_text(name) for name in names]), len(plan.order) <= FEW
    features = [
        [
            "point",
            encode_point(np.array((row.lon, row.lat))),
            names.index(row.profile),
            _tip(row, k),
            {"from": k - 1, "value": plain_text(row.profile)} | ({"badge": str(k)} if few else {}),
        ]
        for k, row in enumerate(plan.order, 1)
    ]
    return MapLayer(
        "order",
        "Which places are equipped, and with which cache?",
        features,
        pane="sites",
        fields=(
            "Built as number",
            "Street",
            "Kind",
            "Profile",
            "In time, once it is built",
            "Turned away, and then in time",
        ),
        style={"color": "#10151b", "weight": 1, "fillOpacity": 1, "radius": 10.0 if few else 6.0},
        styles=[
            {"fillColor": colour, "shape": shape}
            for colour, shape in zip(scale.colours, scale.shapes, strict=True)
        ],
        legends=[scale.legend(form="shapes") | {"filled": True}],
        show=True,
        more={"steps": "Order of building"},
    )


def _tip(row: Any, number: int) -> list[str]:
    refused = "" if _carried(row) else f"{percent(1.0 - row.admitted)}, {percent(row.served_in_time)}"
    words = (plain_text(text) for text in (row.street, row.kind, row.profile))
    return [_name(row.name, row.place), str(number), *words, percent(row.coverage), refused]


def _name(name: str, place: int) -> str:
    return plain_text(name) or f"Place {place}"


# -- words ------------------------------------------------------------------------------------------


def _line(plan: PlacesPlan) -> str:
    return (
        f"{len(plan.order)} of {len(plan.held)} candidates: {percent(plan.coverage)} of requests with their first token "
        f"within {plan.ttft_target:g} s, by the field · all candidates as they are: {percent(plan.present)}"
    )


def _notes(plan: PlacesPlan) -> Iterator[str]:
    yield f"Candidates: {plain_text(plan.study.layout.label)}."
    if plan.asked_sites is None:
        reached = "reaches" if plan.reached else "does NOT reach"
        yield f"Asked for: {percent(plan.reliability)} in time. The plan {reached} it."
    yield (
        "Requests in time are the field's: of the whole plan epoch by epoch, of its steps on the mean demand of the window "
        "in two parts, which may differ in the last digit. A simulation of the plan says what is left of it."
    )
    if not all(_carried(row) for row in plan.order):
        yield (
            "Where places are too few to carry all requests nobody is in time for long; their order is by what they serve in "
            "time if the rest is turned away."
        )
    yield f"Simplified for the page: streets by up to {STREETS_M:g} m, the edge of the land by {LAND_M:g} m."
