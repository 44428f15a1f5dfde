"""The map of the app: land and streets drawn once, people and sites anew at every step, all of it SVG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import shapely

from geoedge.app.svg import Drawing, fine, marker_path, polyline
from geoedge.city.trips import ACTIVITIES
from geoedge.maps.outlines import scale_bar, street_lines
from geoedge.maps.scales import BinnedScale, CategoryScale, profile_scale, utilisation_scale, wait_scale
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.app.model import CityModel
    from geoedge.city.city import City
    from geoedge.simulation import EdgeCity, SiteAgent

    Floats = NDArray[np.float64]

__all__ = ["COLOURINGS", "Colouring", "Frame", "ground", "moving", "people_shown", "scale_of", "shapes_of"]

Colouring = Literal["utilisation", "wait"]
COLOURINGS: tuple[Colouring, ...] = ("utilisation", "wait")
"""What the colour of a site can tell."""

SIDE = 1000.0
"""Width of the map's coordinates, or its height where that is larger."""
MARGIN = 0.03
"""Room around the land, as a share of the map."""
MOST_PEOPLE = 2500
"""People that are drawn at most; they are spread evenly over all."""
MARKER, LEAST_MARKER = 12.0, 4.5
"""Radius of a site's marker where there are few, and at least."""
MANY_SITES = 60
"""From so many sites on markers shrink."""
STREET_STYLES = ("path", "street", "road")
BAR_SHARE = 0.25
"""Share of the map that the scale bar takes at most."""


@dataclass(frozen=True)
class Frame:
    """From places in the city to places on the map.

    Parameters
    ----------
    west, north
        Corner of the map [m].
    width, height
        Size of the map's coordinates.
    scale
        Map units a metre.
    """

    west: float
    north: float
    width: float
    height: float
    scale: float

    @classmethod
    def of(cls, city: City) -> Self:
        """Return the frame around a city's land."""
        west, south, east, north = city.boundary.bounds
        room = MARGIN * max(east - west, north - south)
        width, height = east - west + 2 * room, north - south + 2 * room
        scale = SIDE / max(width, height)
        return cls(west - room, north + room, width * scale, height * scale, scale)

    def place(self, xy: Floats) -> Floats:
        """Return where places lie on the map, shape (k, 2), from metres."""
        return (np.asarray(xy) - (self.west, self.north)) * (self.scale, -self.scale)


def ground(city: City) -> str:
    """Return the land and its streets, which stay as they are.

    Parameters
    ----------
    city
        The city.
    """
    frame = Frame.of(city)
    drawing = Drawing(frame.width, frame.height, style_class="ge-ground")
    eye = 0.6 / frame.scale
    drawing.add("path", "land", d=_areas(frame, shapely.simplify(city.boundary, eye)), fill_rule="evenodd")
    for style_class, lines in zip(STREET_STYLES, street_lines(city.streets, eye), strict=True):
        if lines:
            drawing.add("path", style_class, d=_lines(frame, lines))
    _scale_bar(drawing, frame)
    return drawing.markup()


def _areas(frame: Frame, area: shapely.Geometry) -> str:
    rings = shapely.get_rings(shapely.get_parts(area))
    return "".join(polyline(frame.place(shapely.get_coordinates(ring)), closed=True) for ring in rings)


def _lines(frame: Frame, lines: list[shapely.LineString]) -> str:
    return "".join(polyline(frame.place(shapely.get_coordinates(line))) for line in lines)


def _scale_bar(drawing: Drawing, frame: Frame) -> None:
    metres, words = scale_bar(BAR_SHARE * frame.width / frame.scale)
    x, y, length = 22.0, frame.height - 20.0, metres * frame.scale
    drawing.add("path", "bar", d=f"M{fine(x)} {fine(y - 9)}v9h{fine(length)}v-9")
    drawing.text(words, "bar-words", x=x + length / 2, y=y - 14, text_anchor="middle")


def moving(model: CityModel, colouring: Colouring) -> str:
    """Return people and sites as they are now, to lie over `ground`.

    Parameters
    ----------
    model
        A model without a problem.
    colouring
        What the colour of a site tells.
    """
    city = _city(model)
    frame = Frame.of(city.study.city)
    about = (
        f"Map of {len(city.sites)} sites and {people_shown(city)[0]} of {people_shown(city)[1]} people; "
        f"sites coloured by {scale_of(colouring).title.lower()}"
    )
    drawing = Drawing(frame.width, frame.height, label=about, style_class="ge-moving")
    _draw_people(drawing, frame, city)
    _draw_sites(drawing, frame, model, colouring)
    return drawing.markup()


def _city(model: CityModel) -> EdgeCity:
    assert model.city is not None, "a model with a problem has nothing to draw"
    return model.city


def people_shown(city: EdgeCity) -> tuple[int, int]:
    """Return how many people the map shows, and how many there are."""
    everybody = len(city.whereabouts[1])
    return len(range(0, everybody, _stride(everybody))), everybody


def _stride(people: int) -> int:
    return max(1, -(-people // MOST_PEOPLE))


def _draw_people(drawing: Drawing, frame: Frame, city: EdgeCity) -> None:
    xy, activity = city.whereabouts
    step = _stride(len(activity))
    places, doing = frame.place(xy[::step]), activity[::step]
    for code, name in enumerate(ACTIVITIES):
        dots = "".join(f"M{fine(x)} {fine(y)}h0" for x, y in places[doing == code].tolist())
        if dots:
            drawing.add("path", f"people {name}", d=dots)


def _draw_sites(drawing: Drawing, frame: Frame, model: CityModel, colouring: Colouring) -> None:
    city = _city(model)
    shapes, scale = shapes_of(city).shapes, scale_of(colouring)
    value = model.site_utilization if colouring == "utilisation" else model.recent.wait_s
    places = frame.place(city.study.layout.xy)
    radius = float(np.clip(MARKER * np.sqrt(MANY_SITES / len(places)), LEAST_MARKER, MARKER))
    for site in city.sites:
        (x, y), known = places[site.row], float(value[site.row])
        shape = shapes[site.profile]
        drawing.add(
            "path",
            " ".join(["site", *(["down"] if site.row in city.placement.down else [])]),
            title=_told(site, model),
            d=marker_path(shape, x, y, radius),
            **({} if np.isnan(known) else {"style": f"fill:{scale.colour(known)}"}),
        )
        if site.in_transit:
            drawing.add("path", "transit", d=marker_path("circle", x, y, 1.7 * radius))


def _told(site: SiteAgent, model: CityModel) -> str:
    """Return what is said of a site where the pointer rests on it."""
    city, wait = _city(model), float(model.recent.wait_s[site.row])
    busy, street = float(model.site_utilization[site.row]), plain_text(model.site_streets[site.row])
    lines = [
        plain_text(site.name) or f"Site {site.row}",
        *([f"at {street}"] if street else []),
        f"holds {plain_text(site.profile_name)}" + (", states on their way" if site.in_transit else ""),
        f"{site.concurrency} servers"
        + ("" if np.isnan(busy) else f", {100 * busy:.0f} % busy in the last step"),
        f"{site.queue_length} waiting"
        + ("" if np.isnan(wait) else f", mean wait {wait:.2g} s in the last 5 min"),
    ]
    return "\n".join([*lines, *(["out of service"] if site.row in city.placement.down else [])])


def scale_of(colouring: Colouring) -> BinnedScale:
    """Return the scale of the colours of sites."""
    return utilisation_scale() if colouring == "utilisation" else wait_scale()


def shapes_of(city: EdgeCity) -> CategoryScale:
    """Return the shapes of sites, by the profile that each holds."""
    return profile_scale(city.study.workload.profile_names)
