"""The only conversions between the metres of maps and the kilometres of theory, and their like."""

from __future__ import annotations

__all__ = ["GB", "GIB", "KM", "M2_PER_KM2", "clock"]

KM = 1000.0
"""Metres in a kilometre."""

M2_PER_KM2 = 1e6
"""Square metres in a square kilometre."""

GIB = 2**30
"""Bytes in a gibibyte."""

GB = 1e9
"""Bytes in a gigabyte."""


def clock(time_s: float) -> str:
    """Return a time as hours and minutes of its day.

    Parameters
    ----------
    time_s
        The time [s since midnight].
    """
    minutes = round(time_s / 60.0)
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
