"""The only conversions between the metres of maps and the kilometres of theory, and their like."""

from __future__ import annotations

__all__ = ["GIB", "KM", "M2_PER_KM2"]

KM = 1000.0
"""Metres in a kilometre."""

M2_PER_KM2 = 1e6
"""Square metres in a square kilometre."""

GIB = 2**30
"""Bytes in a gibibyte."""
