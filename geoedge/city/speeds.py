"""How fast one moves on a street: a table by highway class and mode, and what `maxspeed` says."""

from __future__ import annotations

import re

__all__ = ["MODES", "overpass_filter", "parse_maxspeed", "speed_kmh", "street_usable"]

MODES = ("walk", "drive")
"""Ways to move."""

_WALK_KMH = 4.86  # 1.35 m/s
_STEPS_KMH = 2.5

# Typical speeds where nothing is signed, between an urban limit and what traffic leaves of it.
_DRIVE_KMH = {
    "motorway": 110.0,
    "trunk": 80.0,
    "primary": 50.0,
    "secondary": 50.0,
    "tertiary": 45.0,
    "motorway_link": 60.0,
    "trunk_link": 50.0,
    "primary_link": 45.0,
    "secondary_link": 45.0,
    "tertiary_link": 40.0,
    "unclassified": 40.0,
    "residential": 30.0,
    "living_street": 10.0,
    "road": 30.0,
}
_WALK_ONLY = ("pedestrian", "footway", "path", "steps", "service", "track", "corridor", "bridleway")
_NOT_ON_FOOT = ("motorway", "motorway_link", "trunk", "trunk_link")

_CLASSES = {
    "drive": frozenset(_DRIVE_KMH),
    "walk": frozenset(_DRIVE_KMH).difference(_NOT_ON_FOOT).union(_WALK_ONLY),
}
_FOOT_KEYS = ("foot",)
_CAR_KEYS = ("motorcar", "motor_vehicle", "vehicle")
_ALLOWED = frozenset({"yes", "designated", "permissive", "destination", "official", "public", "customers"})
_FORBIDDEN = frozenset({"no", "private"})

_WORDS = {
    "walk": 6.0,
    "none": 130.0,
    "urban": 50.0,
    "rural": 80.0,
    "trunk": 110.0,
    "motorway": 130.0,
    "living_street": 10.0,
    "bicycle_road": 30.0,
}
_UNITS_KMH = {"": 1.0, "km/h": 1.0, "kmh": 1.0, "kph": 1.0, "mph": 1.609344, "knots": 1.852}
_NUMBER = re.compile(r"(\d{1,3}(?:[.,]\d+)?)\s*(km/h|kmh|kph|mph|knots|)")
_ZONE = re.compile(r"(?:[a-z]{2}:)?(?:zone:?)?(\d{1,3})")
_FASTEST_KMH = 200.0


def _one_speed(text: str) -> float | None:
    """Return one speed [km/h], or None where the text is none."""
    number = _NUMBER.fullmatch(text)
    if number:
        value = float(number[1].replace(",", ".")) * _UNITS_KMH[number[2]]
    else:
        zone = _ZONE.fullmatch(text)
        value = float(zone[1]) if zone else _WORDS.get(text.rpartition(":")[2], 0.0)
    return value if 0.0 < value <= _FASTEST_KMH else None


def parse_maxspeed(text: str | None) -> float | None:
    """Return the speed limit that a `maxspeed` tag states [km/h], or None where it states none.

    Understands numbers (``"50"``, ``"30 mph"``, ``"50 km/h"``), words (``"walk"``, ``"none"``), national
    defaults (``"FR:urban"``, ``"DE:zone:30"``) and lists (``"50;30"``), of which the lowest counts.

    Parameters
    ----------
    text
        Value of the tag.
    """
    if not text:
        return None
    speeds = [_one_speed(part.strip()) for part in re.split(r"[;|]", text.lower())]
    known = [speed for speed in speeds if speed is not None]
    return min(known) if known else None


def speed_kmh(mode: str, tags: dict[str, str]) -> tuple[float, bool]:
    """Return the speed of a mode on a street [km/h], and whether it is imputed from the highway class.

    Parameters
    ----------
    mode
        ``"walk"`` or ``"drive"``.
    tags
        Tags of the street.
    """
    if mode == "walk":
        return (_STEPS_KMH if tags.get("highway") == "steps" else _WALK_KMH), False
    signed = parse_maxspeed(tags.get("maxspeed"))
    if signed is not None:
        return signed, False
    return _DRIVE_KMH.get(tags.get("highway", ""), 30.0), True


def street_usable(mode: str, tags: dict[str, str]) -> bool:
    """Return whether a mode may use a street.

    Parameters
    ----------
    mode
        ``"walk"`` or ``"drive"``.
    tags
        Tags of the street.
    """
    highway = tags.get("highway")
    if tags.get("area") == "yes":
        return False
    keys = _FOOT_KEYS if mode == "walk" else _CAR_KEYS
    own = next((tags[key] for key in keys if key in tags), None)
    if own in _FORBIDDEN:
        return False
    if own is None and tags.get("access") in _FORBIDDEN:
        return False
    if mode == "walk" and highway == "cycleway":
        return own in _ALLOWED
    return highway in _CLASSES[mode]


def overpass_filter() -> str:
    """Return the Overpass filter of the streets that any mode may use."""
    classes = "|".join(sorted(_CLASSES["drive"] | _CLASSES["walk"] | {"cycleway"}))
    return f'["highway"~"^({classes})$"]["area"!~"^yes$"]'
