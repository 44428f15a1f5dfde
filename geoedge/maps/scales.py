"""Colour scales: one object colours the map and writes its legend.

Every scale is safe for colour-blind readers: the sequential ones change in lightness from end to end, the
diverging one from orange over light grey to blue, and profiles differ in shape as well as in colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.style import PROFILE_COLOURS

__all__ = [
    "DEMAND_RAMP",
    "DIFFERENCE_RAMP",
    "LOAD_RAMP",
    "PROFILE_COLOURS",
    "REGION_OPACITY",
    "SHAPES",
    "BinnedScale",
    "CategoryScale",
    "coverage_scale",
    "demand_scale",
    "difference_scale",
    "hexadecimal",
    "oklab",
    "people_scale",
    "profile_scale",
    "ramp",
    "ttft_scale",
    "utilisation_scale",
    "wait_scale",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LOAD_RAMP = ("#fdf3c4", "#f2a541", "#c8443c", "#5a1040")
COVERAGE_RAMP = ("#1b1f52", "#2b6a99", "#6cbfb7", "#e3f3cf")
DEMAND_RAMP = ("#f3edf8", "#b79fd3", "#7b4ba3", "#341058")
DIFFERENCE_RAMP = ("#7f3300", "#e38b34", "#e4e4e4", "#5b9bd0", "#123f7a")
REGION_OPACITY = 0.42
"""Opacity of serving regions, the same on page, picture and legend."""
DARK_DEMAND_RAMP = ("#2a2138", "#5f3f85", "#a678c9", "#f0dcff")
DARK_DIFFERENCE_RAMP = ("#ffb15c", "#a85a14", "#3a4048", "#2f6fae", "#8cc8ff")
TTFT_RAMP = ("#f2f7e4", "#a8d5b0", "#4aa3a6", "#2b5f94", "#3a2469")
DARK_TTFT_RAMP = ("#152a33", "#1f5560", "#3f9a94", "#a5d59a", "#fdf6b5")
OVER_CAPACITY = "#000000"
SHAPES = ("circle", "square", "triangle", "diamond", "pentagon", "cross", "wedge", "hexagon")

# Linear sRGB to OKLab (B. Ottosson, "A perceptual color space for image processing", 2020).
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


def oklab(colours: Sequence[str]) -> Floats:
    """Return the Oklab coordinates of hexadecimal colours, shape (n, 3).

    Parameters
    ----------
    colours
        Colours as ``#rrggbb``.
    """
    rgb = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in colours]) / 255.0
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    lab: Floats = np.cbrt(linear @ _TO_LMS.T) @ _TO_LAB.T
    return lab


def hexadecimal(lab: Floats) -> tuple[str, ...]:
    """Return the hexadecimal colours of Oklab coordinates, clipped to what a screen can show.

    Parameters
    ----------
    lab
        Lightness and the two opponent axes, shape (n, 3).
    """
    lms = (lab @ np.linalg.inv(_TO_LAB).T) ** 3
    linear = np.clip(lms @ np.linalg.inv(_TO_LMS).T, 0.0, 1.0)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return tuple("#{:02x}{:02x}{:02x}".format(*row) for row in np.rint(rgb * 255).astype(int))


def ramp(anchors: Sequence[str], count: int) -> tuple[str, ...]:
    """Return `count` colours spread evenly over the anchors, in a space where equal steps look equal.

    Parameters
    ----------
    anchors
        Two or more hexadecimal colours from one end to the other.
    count
        How many colours to return, at least 1.
    """
    lab = oklab(anchors)
    at = np.linspace(0.0, len(anchors) - 1.0, count) if count > 1 else np.array([0.0])
    return hexadecimal(
        np.column_stack([np.interp(at, np.arange(len(anchors)), lab[:, axis]) for axis in range(3)])
    )


@dataclass(frozen=True)
class BinnedScale:
    """Classes of a number, each with a colour.

    Parameters
    ----------
    title
        What the number is.
    unit
        Its unit, as the legend prints it.
    edges
        Ascending limits between the classes [unit / factor], shape (k,).
    colours
        One colour a class, shape (k + 1,); class i holds edges[i-1] <= value < edges[i].
    factor
        What a value is multiplied with before it is printed: 100 for percentages.
    signed
        Print a plus before positive edges.
    dark
        Colours on a dark ground, shape (k + 1,); empty for the same.
    """

    title: str
    unit: str
    edges: tuple[float, ...]
    colours: tuple[str, ...]
    factor: float = 1.0
    signed: bool = False
    dark: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.colours) != len(self.edges) + 1 or list(self.edges) != sorted(set(self.edges)):
            msg = f"`edges` must ascend and `colours` be one more, not {self.edges} and {len(self.colours)}"
            raise ValueError(msg)

    def index(self, values: Floats) -> Ints:
        """Return the class of each value, -1 where it is not a number."""
        known = np.asarray(values, dtype=np.float64)
        found = np.searchsorted(self.edges, known, side="right").astype(np.int64)
        return np.where(np.isnan(known), np.int64(-1), found)

    def colour(self, value: float) -> str:
        """Return the colour of one value; a value that is not a number has none."""
        return self.colours[int(self.index(np.array([value]))[0])]

    def tick(self, edge: float) -> str:
        """Return an edge as the legend prints it, in the unit of the scale."""
        shown = edge * self.factor
        return f"{shown:+.4g}" if self.signed and shown else f"{shown:.4g}"

    def label(self, index: int) -> str:
        """Return the range of a class in words, with its unit."""
        if index == 0:
            return f"below {self.tick(self.edges[0])} {self.unit}".rstrip()
        if index == len(self.edges):
            return f"{self.tick(self.edges[-1])} {self.unit}".rstrip() + " or more"
        return f"{self.tick(self.edges[index - 1])} to {self.tick(self.edges[index])} {self.unit}".rstrip()

    def legend(self) -> dict[str, object]:
        """Return the legend: a bar of all classes with the edges between them."""
        return {
            "form": "bar",
            "title": self.title,
            "unit": self.unit,
            "colours": list(self.colours),
            **({"dark": list(self.dark)} if self.dark else {}),
            "ticks": [self.tick(edge) for edge in self.edges],
        }

    def described(self) -> dict[str, object]:
        """Return the classes as the page takes them, to colour with the same edges and colours."""
        dark = {"dark": list(self.dark)} if self.dark else {}
        return {"edges": list(self.edges), "colours": list(self.colours), **dark}


@dataclass(frozen=True)
class CategoryScale:
    """Names, each with a colour and a shape.

    Parameters
    ----------
    title
        What the names are.
    names
        The categories, shape (n,).
    colours
        One colour each, shape (n,).
    shapes
        One marker shape each, shape (n,); empty where areas are coloured.
    dark
        Colours on dark ground, shape (n,); empty if they are the same.
    """

    title: str
    names: tuple[str, ...]
    colours: tuple[str, ...]
    shapes: tuple[str, ...] = ()
    dark: tuple[str, ...] = ()

    def legend(self, *, form: str = "areas") -> dict[str, object]:
        """Return the legend: one row a name, as areas or (``form="shapes"``) as marker shapes."""
        return {
            "form": form,
            "title": self.title,
            "unit": "",
            "names": list(self.names),
            "colours": list(self.colours),
            "shapes": list(self.shapes),
            **({"dark": list(self.dark)} if self.dark else {}),
        }


def profile_scale(names: Sequence[str]) -> CategoryScale:
    """Return the colours and shapes of the cache profiles; beyond eight they repeat in shifted pairs."""
    count = len(PROFILE_COLOURS)
    return CategoryScale(
        "Cache profile",
        tuple(names),
        tuple(PROFILE_COLOURS[i % count] for i in range(len(names))),
        tuple(SHAPES[(i + i // count) % count] for i in range(len(names))),
    )


def utilisation_scale() -> BinnedScale:
    """Return the scale of a site's utilisation; the last class, black, is at or over capacity."""
    edges = (0.25, 0.5, 0.65, 0.8, 0.9, 1.0)
    return BinnedScale("Utilisation", "%", edges, (*ramp(LOAD_RAMP, len(edges)), OVER_CAPACITY), 100.0)


def coverage_scale(reliability: float) -> BinnedScale:
    """Return the scale of TTFT coverage, with the stated reliability as one of its edges.

    Parameters
    ----------
    reliability
        The share of requests that should be in time, in (0, 1).
    """
    edges = tuple(sorted({0.3, 0.5, 0.7, 0.8, 0.9, 0.95, round(reliability, 4)}))
    return BinnedScale("Requests in time", "%", edges, ramp(COVERAGE_RAMP, len(edges) + 1), 100.0)


def difference_scale() -> BinnedScale:
    """Return the diverging scale of coverage minus its prediction, centred on zero and the same for all runs."""
    steps = (0.02, 0.05, 0.1, 0.2)
    edges = (*(-step for step in reversed(steps)), *steps)
    colours, dark = (ramp(anchors, len(edges) + 1) for anchors in (DIFFERENCE_RAMP, DARK_DIFFERENCE_RAMP))
    return BinnedScale("Real map minus Poisson prediction", "points", edges, colours, 100.0, True, dark)


def demand_scale(values: Floats) -> BinnedScale:
    """Return a scale of request density in steps of 1, 2 and 5 that spans the given values of all epochs.

    Parameters
    ----------
    values
        Request densities [1/(s km²)] of every cell and epoch that the scale will colour.
    """
    return _density_scale("Request density", "requests/(s km²)", values)


def people_scale(values: Floats) -> BinnedScale:
    """Return a scale of people in steps of 1, 2 and 5 that spans the given values of all epochs.

    Parameters
    ----------
    values
        People per km² of every cell and epoch that the scale will colour.
    """
    return _density_scale("People who asked", "people/km²", values)


def _density_scale(title: str, unit: str, values: Floats) -> BinnedScale:
    known = values[np.isfinite(values) & (values > 0)]
    top = float(np.quantile(known, 0.98)) if known.size else 1.0
    power = int(np.floor(np.log10(top)))
    steps = np.array([step * 10.0**p for p in range(power - 3, power + 1) for step in (1, 2, 5)])
    edges = tuple(float(f"{edge:.1g}") for edge in steps[steps <= top][-7:])
    colours, dark = (ramp(anchors, len(edges) + 1) for anchors in (DEMAND_RAMP, DARK_DEMAND_RAMP))
    return BinnedScale(title, unit, edges, colours, dark=dark)


def wait_scale() -> BinnedScale:
    """Return the scale of a site's mean wait."""
    edges = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
    return BinnedScale("Mean wait", "s", edges, ramp(LOAD_RAMP, len(edges) + 1))


def ttft_scale(target_s: float) -> BinnedScale:
    """Return the scale of the mean time to the first token, with the target as one of its edges.

    Parameters
    ----------
    target_s
        Target [s].
    """
    edges = tuple(target_s * share for share in (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5))
    colours, dark = (ramp(anchors, len(edges) + 1) for anchors in (TTFT_RAMP, DARK_TTFT_RAMP))
    return BinnedScale("Mean time to first token", "s", edges, colours, dark=dark)
