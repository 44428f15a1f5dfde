"""Colours of figures in light and dark: greys change places, colours are lifted until dark ground lets them be seen."""

from __future__ import annotations

import numpy as np

from geoedge.maps.scales import hexadecimal, oklab

__all__ = ["in_the_dark"]

GREY = 0.035
"""Chroma below which a colour is a grey."""
TINT = 0.82
"""Lightness above which a colour is a tint that lies under others."""
GROUND, INK, DARKEST = 0.225, 0.93, 0.2
"""Lightness of white and of the darkest ink on dark ground, and of that ink on light ground."""
LEAST = 0.68
"""Least lightness of a colour on dark ground."""


def in_the_dark(colour: str) -> str:
    """Return what a colour of a figure becomes on dark ground.

    Parameters
    ----------
    colour
        As ``#rrggbb``.
    """
    lightness, a, b = oklab([colour])[0].tolist()
    chroma = float(np.hypot(a, b))
    if chroma < GREY:
        lightness = INK - (INK - GROUND) * (lightness - DARKEST) / (1.0 - DARKEST)
    elif lightness > TINT:
        lightness, a, b = 0.38, 0.7 * a, 0.7 * b
    else:
        lightness = max(lightness, LEAST)
    return hexadecimal(np.array([[np.clip(lightness, GROUND, 0.97), a, b]]))[0]
