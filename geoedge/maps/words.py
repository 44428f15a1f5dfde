"""Words for the reader: numbers in the unit that reads best."""

from __future__ import annotations

import math

from geoedge import units

__all__ = ["byte_count", "clock", "percent", "points", "rate", "seconds"]


def seconds(value: float) -> str:
    """Return a time [s] in s or ms; "unbounded" for one that grows beyond all bounds."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "unbounded"
    if value < 1e-3:
        return "below 1 ms" if value > 0 else "0 s"
    return f"{value * 1e3:.3g} ms" if value < 0.9995 else f"{_digits(value)} s"


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def percent(value: float) -> str:
    """Return a share as a percentage."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else "–"


def points(value: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * value:+.1f} points" if math.isfinite(value) else "–"


def rate(value: float, unit: str) -> str:
    """Return a number with its unit, to three digits."""
    return f"{_digits(value)} {unit}" if math.isfinite(value) else "–"


def byte_count(value: float) -> str:
    """Return bytes in B, kB, MB or GB (powers of 1000)."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} B"


def clock(time_s: float) -> str:
    """Return the time of day of seconds since midnight; days after the first are counted."""
    days = round(time_s / 60.0) // (24 * 60)
    return units.clock(time_s) + (f" +{days} d" if days else "")
