"""Parts of the page in HTML: the facts above the map, its legend and its credit; every text is escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from geoedge.app.svg import Drawing, marker_path
from geoedge.app.townmap import Colouring, people_shown, scale_of, shapes_of
from geoedge.city.trips import ACTIVITIES
from geoedge.maps.credit import map_credit
from geoedge.maps.words import percent
from geoedge.texts import plain_text
from geoedge.units import GB, clock

if TYPE_CHECKING:
    from geoedge.app.model import CityModel
    from geoedge.city.city import City

__all__ = ["credit", "facts", "in_seconds", "legend"]

ACTIVITY_WORDS = dict(zip(ACTIVITIES, ("at home", "at work", "at leisure", "on the way"), strict=True))
SAMPLE = 16.0


def facts(model: CityModel) -> str:
    """Return the time of day and the numbers that matter most."""
    city = model.city
    assert city is not None
    epochs = city.study.epochs
    warm = city.clock_s < epochs[0][0] + city.scenario.simulation.warm_up_s
    state = ", over" if not city.running else ", warm-up" if warm else ""
    recent = model.recent
    return _markup(
        _fact(f"time{state}", clock(city.clock_s), f"epoch {city.epoch + 1} of {len(epochs)}"),
        _fact("in time", percent(recent.coverage), "of the last 5 min"),
        _fact("p95 TTFT", in_seconds(recent.p95_ttft_s), f"target {city.scenario.target.ttft_target_s:g} s"),
        _fact("servers busy", percent(model.utilization), f"busiest {percent(model.busiest)}"),
        _fact("waiting", f"{city.waiting}", f"at {len(city.sites)} sites"),
        _fact("moved", f"{model.moved_bytes / GB:.3g} GB", "by the controller"),
    )


def _fact(name: str, value: str, more: str) -> Element:
    return _element(
        "div", "fact", _element("b", "", value), _element("span", "", name), _element("i", "", more)
    )


def legend(model: CityModel, colouring: Colouring) -> str:
    """Return what colours, shapes and dots of the map mean.

    Parameters
    ----------
    model
        A model without a problem.
    colouring
        What the colour of a site tells.
    """
    city = model.city
    assert city is not None
    scale, shapes = scale_of(colouring), shapes_of(city)
    bar = _element("div", "bar")
    ticks = ["", *(scale.tick(edge) for edge in scale.edges)]
    for colour, tick in zip(scale.colours, ticks, strict=True):
        bar.append(_element("span", "", _element("i", "", tick), style=f"background:{colour}"))
    held = _element("div", "kinds")
    for name, shape in zip(shapes.names, shapes.shapes, strict=True):
        held.append(_element("span", "kind", _sample(shape), plain_text(name, 40)))
    people = _element("div", "kinds")
    for name in ACTIVITIES:
        people.append(_element("span", "kind", _element("i", f"person {name}", " "), ACTIVITY_WORDS[name]))
    drawn, everybody = people_shown(city)
    return _markup(
        _element("p", "", f"{scale.title} [{scale.unit}]"),
        bar,
        _element("p", "", "Sites by the cache that they hold"),
        held,
        _element("p", "", f"People, {drawn:,} of {everybody:,} drawn"),
        people,
    )


def _sample(shape: str) -> Element:
    drawing = Drawing(SAMPLE, SAMPLE, style_class="ge-sample")
    drawing.add("path", "site", d=marker_path(shape, SAMPLE / 2, SAMPLE / 2, SAMPLE / 3))
    return drawing.root


def credit(city: City) -> str:
    """Return whose data the map is made from, with the links that they ask for."""
    line = _element("span", "")
    for words, address in map_credit(city.attribution, city.extract_date):
        link = _element("a", "", words, href=address, target="_blank", rel="noopener")
        line.append(link if address else _element("span", "", words))
    return _markup(line)


def _element(tag: str, style_class: str, *children: Element | str, **attributes: str) -> Element:
    """Return an element; a word among the children follows the element before it."""
    given = {"class": style_class} if style_class else {}
    element = Element(tag, given | attributes)
    for child in children:
        if isinstance(child, Element):
            element.append(child)
        elif len(element):
            element[-1].tail = child
        else:
            element.text = child
    return element


def _markup(*elements: Element) -> str:
    return "".join(ElementTree.tostring(each, encoding="unicode", method="html") for each in elements)


def in_seconds(value: float) -> str:
    """Return a time [s] in words; "–" where it is not known."""
    if np.isnan(value):
        return "–"
    return f"{value:.3g} s" if np.isfinite(value) else "unbounded"
