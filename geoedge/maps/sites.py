"""A small page of the sites of a file: where they stand, whose they are, in which land."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import shapely

from geoedge.errors import OutputError
from geoedge.maps.credit import ODBL_CREDIT, map_credit
from geoedge.maps.layers import land_layer, street_layer
from geoedge.maps.page import LIMIT_BYTES, MapLayer, MapPage
from geoedge.maps.scales import PROFILE_COLOURS, SHAPES, CategoryScale
from geoedge.maps.wire import encode_point
from geoedge.sites._rows import counted
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from geoedge.city import City
    from geoedge.sites import SiteSurvey

__all__ = ["sites_map"]

OTHERS = "others"
OTHERS_COLOUR = "#9aa5b1"
CROWD = 2000
"""From so many sites on, all are circles on one canvas, which a browser moves faster than shapes."""
MANY_SITES = 20_000
"""From so many sites on, a site has no text of its own."""
STREETS_M, LAND_M = 5.0, 10.0
"""How far a street and the edge of the land may lie from where they are drawn [m]."""

CREDITS = {
    "OpenCelliD list of cells without header": (("OpenCelliD, CC BY-SA 4.0", "https://opencellid.org"),),
    "list of cells as OpenCelliD and the Mozilla Location Service write it": (
        ("OpenCelliD, CC BY-SA 4.0", "https://opencellid.org"),
        (", or Mozilla Location Service, public domain", ""),
    ),
    "ACMA list of sites": (("Australian Communications and Media Authority", "https://www.acma.gov.au"),),
    "ANFR list of supports": (("ANFR, Licence Ouverte", "https://www.anfr.fr"),),
    "ANFR list of transmitters (observatoire)": (("ANFR, Licence Ouverte", "https://www.anfr.fr"),),
    "OpenStreetMap file": ODBL_CREDIT,
}
"""Whom a file of a known publisher is from: words and where they link to."""


def sites_map(survey: SiteSurvey, city: City | None = None, *, limit_bytes: int = LIMIT_BYTES) -> MapPage:
    """Draw the sites of a file as a page that opens without network.

    Parameters
    ----------
    survey
        A file of sites, surveyed.
    city
        The city it was surveyed in, for its streets.
    limit_bytes
        What the page may weigh [B].

    Raises
    ------
    OutputError
        If there are too many sites for the page.
    """
    lonlat = survey.lonlat
    page = MapPage(
        f"Sites of {plain_text(survey.report['file'])}",
        lines=_lines(survey),
        bounds=_bounds(survey, lonlat),
        attribution=_credit(survey, city),
        limit_bytes=limit_bytes,
    )
    scale, of_site = operator_scale(survey.operator)
    streets = [""] * len(lonlat) if city is None else city.street_names.at(city.from_lonlat(lonlat))
    page.add_child(_site_layer(survey, lonlat, scale, of_site, streets))
    if city is not None and city.streets:
        page.add_child(street_layer(city, STREETS_M))
    if survey.window is not None:
        land = shapely.make_valid(shapely.simplify(survey.window, LAND_M))
        page.add_child(land_layer(land, survey.to_lonlat))
    for note in _notes(survey):
        page.note(note)
    if page.size_bytes > limit_bytes:
        msg = (
            f"map: {counted(len(lonlat), 'site')} make a page of {page.size_bytes / 1e6:.1f} MB, more than its limit of "
            f"{limit_bytes / 1e6:.1f} MB; choose an operator, a technology or a city"
        )
        raise OutputError(msg)
    return page


def operator_scale(operators: Sequence[str]) -> tuple[CategoryScale, NDArray[np.int64]]:
    """Return a colour and a shape for each of the largest operators, and the category of each site.

    Parameters
    ----------
    operators
        Operator of each site, empty where unknown.
    """
    names, of_site, counts = np.unique(
        np.array(operators, dtype=object).astype(str), return_inverse=True, return_counts=True
    )
    order = np.argsort(-counts, kind="stable")
    shown = order if len(order) <= len(PROFILE_COLOURS) else order[: len(PROFILE_COLOURS) - 1]
    place = np.full(len(names), len(shown), dtype=np.int64)
    place[shown] = np.arange(len(shown))
    known = len(names) > 1 or names[0] != ""
    texts = [plain_text(names[k]) or ("not stated" if known else "Site") for k in shown]
    colours = list(PROFILE_COLOURS[: len(shown)])
    shapes = list(SHAPES[: len(shown)]) if len(operators) <= CROWD else ["circle"] * len(shown)
    if len(shown) < len(names):
        texts, colours, shapes = [*texts, OTHERS], [*colours, OTHERS_COLOUR], [*shapes, "circle"]
    title = "Operator" if known else "Sites"
    return CategoryScale(title, tuple(texts), tuple(colours), tuple(shapes)), place[of_site]


def _site_layer(
    survey: SiteSurvey,
    lonlat: NDArray[np.float64],
    scale: CategoryScale,
    of_site: NDArray[np.int64],
    streets: Sequence[str],
) -> MapLayer:
    count = len(lonlat)
    radius = 6.0 if count <= 150 else 4.5 if count <= 1000 else 3.0
    tips: list[list[str] | None] = [None] * count
    if count < MANY_SITES:
        tips = [_tip(survey, site, streets[site]) for site in range(count)]
    return MapLayer(
        "sites",
        "Sites",
        [
            ["point", encode_point(place), int(category), tip, {}]
            for place, category, tip in zip(lonlat, of_site, tips, strict=True)
        ],
        pane="sites" if count <= CROWD else "surface",
        fields=("Street", "Operator", "Technology", "Rows of the file"),
        style={"color": "#10151b", "weight": 1, "fillOpacity": 0.9, "radius": radius},
        styles=[
            {"fillColor": colour, "shape": shape}
            for colour, shape in zip(scale.colours, scale.shapes, strict=True)
        ],
        legends=[scale.legend(form="shapes") | {"filled": True}],
        show=True,
    )


def _tip(survey: SiteSurvey, site: int, street: str) -> list[str]:
    name = plain_text(survey.layout.name[site]) or f"Site {site}"
    rows = int(survey.rows[site])
    return [name, plain_text(street), plain_text(survey.operator[site]), survey.radio[site], str(rows)]


def _lines(survey: SiteSurvey) -> list[str]:
    report = survey.report
    bad = report["rows"] - report["kept"] - sum(report["filtered"].values())
    lines = [
        f"{counted(report['sites'], 'site')} of {counted(report['kept'], 'row')} · {bad:,} of "
        f"{counted(report['rows'], 'row')} not usable"
    ]
    if survey.statistics is not None:
        lines.append(_sentences(survey.statistics.verdict)[0])
    return lines


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.]) (?=[A-Z])", text)


def _bounds(survey: SiteSurvey, lonlat: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """Return west, south, east and north of the land and the sites [degree], never empty."""
    places = lonlat
    if survey.window is not None:
        west, south, east, north = survey.window.bounds
        corners = np.array([(west, south), (west, north), (east, south), (east, north)])
        places = np.concatenate([places, survey.to_lonlat(corners)])
    low, high = places.min(axis=0) - 1e-3, places.max(axis=0) + 1e-3
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def _credit(survey: SiteSurvey, city: City | None) -> list[tuple[str, str]]:
    """Return the credit: the publisher of the sites where the file tells, and the map's."""
    source = CREDITS.get(survey.report["format"])
    words = [("Sites: ", ""), *source] if source else [(f"Sites: {plain_text(survey.report['file'])}", "")]
    if city is None or source is ODBL_CREDIT:
        return words
    return [*words, ("; land and streets: ", ""), *map_credit(city.attribution, city.extract_date)]


def _notes(survey: SiteSurvey) -> list[str]:
    report = survey.report
    notes = [
        f"{counted(problem['count'], 'row')} {problem['reason'].replace('_', ' ')}: {problem['cause']}."
        + (" Drawn all the same." if problem["used"] else "")
        for problem in report["problems"]
    ]
    if survey.statistics is not None:
        notes += _sentences(survey.statistics.verdict)[1:]
    notes += [f"{note[:1].upper()}{note[1:]}." for note in report.get("notes", ())]
    if survey.window_name == "the sites' own hull":
        notes.append(
            "The land drawn is the sites' own hull, blown up by what a hull misses; no city was named."
        )
    return notes
