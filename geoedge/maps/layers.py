"""One layer a question about the network: who serves whom, how loaded, who fails, what the controller did.

Every function takes tables or geometry in one projected CRS and returns folium layers. Colours come from the
scales that also write the legends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from geoedge.city.names import RANKS
from geoedge.maps.outlines import named_lines, street_lines
from geoedge.maps.page import MapLayer
from geoedge.maps.scales import CategoryScale, coverage_scale, utilisation_scale, wait_scale
from geoedge.maps.trips import MODES
from geoedge.maps.wire import ToLonLat, encode_lines, encode_point, encode_polygons
from geoedge.texts import plain_text
from geoedge.workload import ACTIVITIES

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.city import City

__all__ = [
    "HOT_SITES",
    "action_layer",
    "event_layer",
    "hot_site_layer",
    "land_layer",
    "people_layer",
    "place_layer",
    "site_layer",
    "street_layer",
]

HOT_SITES = 10
"""How many sites the ranking of hot sites names."""
LANDMARKS = (
    "amenity=townhall",
    "amenity=casino",
    "amenity=hospital",
    "amenity=university",
    "amenity=ferry_terminal",
    "amenity=bus_station",
    "amenity=theatre",
    "amenity=courthouse",
    "amenity=marketplace",
    "amenity=library",
    "amenity=cinema",
)
"""Kinds of places whose names stand on the map at every zoom, the first ones first."""
NAMED_PLACES = 500
"""How many names of places a page brings along."""
STREET_NAMES = 2000
"""How many names of streets a page brings along, if not told otherwise."""
LONGEST_NAME = 60
"""Characters of a street's name on the map."""
PEOPLE_COLOURS = ("#0072b2", "#d55e00", "#b0508a", "#4d5966")
"""At home, at work, at leisure, on the street."""
DARK_PEOPLE_COLOURS = ("#56b4e9", "#ff9a4d", "#e79bc7", "#a9b5c1")
STREET_STYLES: tuple[Mapping[str, Any], ...] = (
    {"color": "#9aa5b1", "weight": 0.6, "opacity": 0.6},
    {"color": "#8793a1", "weight": 1.0, "opacity": 0.75},
    {"color": "#66727f", "weight": 1.8, "opacity": 0.85},
)
"""As they are drawn one over the other, the weightiest last."""
DARK_STREETS: tuple[Mapping[str, Any], ...] = (
    {"color": "#4a5562", "weight": 0.6, "opacity": 0.7},
    {"color": "#5d6977", "weight": 1.0, "opacity": 0.8},
    {"color": "#8793a1", "weight": 1.8, "opacity": 0.85},
)


# -- the base ---------------------------------------------------------------------------------------


def street_layer(city: City, tolerance_m: float, names: int = STREET_NAMES) -> MapLayer:
    """Return the streets of a city, one bundle of lines a class, and their names.

    Parameters
    ----------
    city
        The city.
    tolerance_m
        How far a line may lie from the street [m].
    names
        How many names a page brings along at most, main roads first.
    """
    drawn = street_lines(city.streets, tolerance_m)
    bundles = [encode_lines(lines, city.to_lonlat) for lines in drawn]
    colours = tuple(str(style["color"]) for style in STREET_STYLES)
    legend = CategoryScale("Streets", tuple(name.capitalize() for name in reversed(RANKS)), colours)
    return MapLayer(
        "streets",
        "Streets",
        [["line", lines, level, None, {}] for level, lines in enumerate(bundles) if lines],
        pane="streets",
        styles=STREET_STYLES,
        dark_styles=DARK_STREETS,
        legends=[legend.legend(form="lines")],
        show=True,
        more={
            "base": True,
            "named": [
                [plain_text(name, LONGEST_NAME), rank, encode_lines(lines, city.to_lonlat)]
                for name, rank, lines in named_lines(city.street_names, tolerance_m, names)
            ],
        },
    )


def land_layer(boundary: Any, to_lonlat: ToLonLat) -> MapLayer:
    """Return the land where people are.

    Parameters
    ----------
    boundary
        Shapely (multi)polygon [m].
    to_lonlat
        From points [m], shape (n, 2), to longitude and latitude [degree].
    """
    return MapLayer(
        "land",
        "Land",
        [["polygon", encode_polygons(boundary, to_lonlat), 0, None, {}]],
        pane="land",
        style={"color": "#7b8794", "weight": 1, "opacity": 0.8, "fillOpacity": 1},
        styles=[{"fillColor": "#ffffff"}],
        dark_styles=[{"fillColor": "#1c232c"}],
        show=True,
        more={"base": True},
    )


def place_layer(city: City) -> MapLayer:
    """Return the places of a city that have names, for orientation; the page writes as many as there is room for.

    Parameters
    ----------
    city
        The city.
    """
    rank = {kind: i for i, kind in enumerate(LANDMARKS)}
    places = [
        (rank.get(str(kind), len(LANDMARKS)), plain_text(name, 40), str(kind), i)
        for i, (name, kind) in enumerate(zip(city.places.name, city.places.kind, strict=True))
    ]
    named = sorted(place for place in places if place[1])[:NAMED_PLACES]
    lonlat = city.to_lonlat(city.places.xy[[place[3] for place in named]].reshape(-1, 2))
    words = [plain_text(kind.partition("=")[2].replace("_", " "), 40) for _, _, kind, _ in named]
    return MapLayer(
        "places",
        "Names",
        pane="places",
        kind="places",
        show=True,
        more={
            "base": True,
            "name": [name for _, name, _, _ in named],
            "sort": words,
            "at": [encode_point(place) for place in lonlat],
            "landmarks": sum(place[0] < len(LANDMARKS) for place in named),
        },
    )


# -- sites ------------------------------------------------------------------------------------------


def site_layer(sites: pd.DataFrame, profiles: CategoryScale, reliability: float) -> MapLayer:
    """Return the sites: colour by load, wait, share in time or cache; shape by profile.

    Parameters
    ----------
    sites
        One row a site.
    profiles
        Names, colours and shapes of the profiles.
    reliability
        Share of requests that should be in time; one of the edges of its scale.
    """
    radius = 7.0 if len(sites) <= 150 else 5.0 if len(sites) <= 600 else 3.5
    scales = {"load": utilisation_scale(), "wait": wait_scale(), "in_time": coverage_scale(reliability)}
    labels = {
        "load": ("How busy is each site?", "load"),
        "wait": ("How long is the wait at each site?", "mean wait"),
        "in_time": ("Which sites answer in time?", "requests in time"),
    }
    colourings: list[dict[str, Any]] = [
        {
            "key": key,
            "question": labels[key][0],
            "label": labels[key][1],
            "legend": scale.legend(),
            **scale.described(),
        }
        for key, scale in scales.items()
    ]
    shapes = profiles.legend(form="shapes")
    colourings.append(
        {
            "key": "profile",
            "question": "What is cached where?",
            "label": "what is cached",
            "colours": list(profiles.colours),
            "legend": shapes | {"filled": True},
        }
    )
    return MapLayer(
        "sites",
        "Sites",
        pane="sites",
        kind="sites",
        style={"color": "#10151b", "weight": 1.4, "fillOpacity": 1, "radius": radius},
        legends=[shapes],
        show=True,
        more={"colourings": colourings},
    )


# -- where it hurts, what was done, who was where ------------------------------------------------------


def hot_site_layer() -> MapLayer:
    """Return the sites with the largest shares of all missed requests of each epoch, ranked."""
    more = {"ranking": "Hottest sites, share of all misses", "count": HOT_SITES}
    return MapLayer(
        "hot_sites", "Where are most requests late?", pane="ranks", kind="ranks", show=True, more=more
    )


def action_layer() -> MapLayer:
    """Return what the controller did in each epoch."""
    return MapLayer(
        "actions",
        "What moved?",
        pane="actions",
        kind="actions",
        explanation="A ring: the cache changes. Arrows: two sites exchange. The colour is that of what comes.",
        show=True,
    )


def event_layer() -> MapLayer:
    """Return what happened besides an ordinary day: crowds, failures, losses."""
    return MapLayer("events", "What happened?", pane="actions", kind="events", show=True)


def people_layer(*, trips: bool) -> MapLayer:
    """Return where some people are, by what they do, and the streets that some take, by where they lead.

    Parameters
    ----------
    trips
        Whether the run keeps any trips.
    """
    names = tuple(activity.capitalize() for activity in ACTIVITIES)
    doing = CategoryScale("People, a sample", names, PEOPLE_COLOURS, ("circle",) * 4, DARK_PEOPLE_COLOURS)
    aims = CategoryScale(
        "Trips, a sample, to", names[:-1], PEOPLE_COLOURS[:-1], dark=DARK_PEOPLE_COLOURS[:-1]
    )
    return MapLayer(
        "people",
        "Where do people go?",
        pane="people",
        kind="people",
        legends=[
            doing.legend(form="shapes") | {"filled": True},
            *([aims.legend(form="lines")] if trips else []),
        ],
        more={"scale": doing.legend(), "activities": list(ACTIVITIES), "modes": list(MODES.values())},
    )
