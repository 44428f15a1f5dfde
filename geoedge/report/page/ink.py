"""Colours of figures in light and dark: greys change places, colours are lifted until dark ground lets them be seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_the_dark"]

Floats = NDArray[np.float64]

# Linear sRGB to OKLab and back (B. Ottosson, "A perceptual color space for image processing", 2020).
_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
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
    lightness, a, b = _lab(colour)
    chroma = float(np.hypot(a, b))
    if chroma < GREY:
        lightness = INK - (INK - GROUND) * (lightness - DARKEST) / (1.0 - DARKEST)
    elif lightness > TINT:
        lightness, a, b = 0.38, 0.7 * a, 0.7 * b
    else:
        lightness = max(lightness, LEAST)
    return _hex(np.array([np.clip(lightness, GROUND, 0.97), a, b]))


def _lab(colour: str) -> tuple[float, float, float]:
    values = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    lightness, a, b = _TO_LAB @ np.cbrt(_TO_LMS @ linear)
    return float(lightness), float(a), float(b)


def _hex(lab: Floats) -> str:
    linear = np.linalg.solve(_TO_LMS, np.linalg.solve(_TO_LAB, lab) ** 3)
    linear = np.clip(linear, 0.0, 1.0)
    values = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * float(value)):02x}" for value in values)
