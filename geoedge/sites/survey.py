"""What a file of sites holds, what is wrong with it, and how far its sites are from Poisson."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._rows import to_degrees
from geoedge.sites.cleaning import Cleaned
from geoedge.sites.layout import Layout
from geoedge.sites.towers import clean_file, make_sites, site_operators
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City
    from geoedge.sites.verdicts import LayoutStatistics

__all__ = ["SiteSurvey", "survey_sites"]

MANY_SITES = 20_000
"""Layouts of more sites are not tested against Poisson by a survey."""
FAIR_PART = 0.2
"""From this share of the mean spacing on, a merge distance makes sites look regular."""


@dataclass(frozen=True, eq=False)
class SiteSurvey:
    """A file of sites: what was read, what was dropped and why, and how the sites stand.

    Parameters
    ----------
    layout
        The sites; its report says what was read, merged and dropped.
    cleaned
        The rows, sorted out.
    operator
        Operator of each site, empty where unknown, length n.
    radio
        Technologies of each site from old to new, with commas between, length n.
    rows
        How many rows make each site, shape (n,).
    window
        Land the sites are looked at in [m], a shapely (multi)polygon; None if there are too few for a hull.
    window_name
        What that is, in words.
    statistics
        How far the sites are from Poisson; None where that cannot be said.
    why_no_statistics
        Why not; empty if it can.
    """

    layout: Layout
    cleaned: Cleaned
    operator: tuple[str, ...]
    radio: tuple[str, ...]
    rows: NDArray[np.int64]
    window: Any
    window_name: str
    statistics: LayoutStatistics | None
    why_no_statistics: str

    @property
    def report(self) -> dict[str, Any]:
        """What was read, merged and dropped, in plain values."""
        return self.layout.report

    @property
    def lonlat(self) -> NDArray[np.float64]:
        """Longitude and latitude of the sites [degree], shape (n, 2)."""
        return self.to_lonlat(np.asarray(self.layout.xy))

    def to_lonlat(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return longitude and latitude of points [degree], shape (n, 2).

        Parameters
        ----------
        xy
            Points in the CRS of the layout [m], shape (n, 2).
        """
        return to_degrees(np.asarray(xy, dtype=np.float64), self.layout.crs)

    @property
    def area_km2(self) -> float | None:
        """Area of the window [km²]."""
        return None if self.window is None else float(self.window.area) / M2_PER_KM2

    def to_dict(self) -> dict[str, Any]:
        """Return the report and the statistics in plain values."""
        return {
            **self.report,
            "window": {"name": self.window_name, "area_km2": self.area_km2},
            "density_per_km2": None if self.area_km2 is None else len(self.layout) / self.area_km2,
            "statistics": None if self.statistics is None else self.statistics.as_row(),
            "why_no_statistics": self.why_no_statistics,
        }


def survey_sites(
    path: str | Path,
    city: City | None = None,
    *,
    merge_distance_m: float = 50.0,
    operator: str | None = None,
    radio: str | None = None,
    columns: Mapping[str, str] | str | None = None,
    crs: str | None = None,
    quarantine: str | Path | None = None,
    simulations: int = 99,
    rng: np.random.Generator | int = 0,
) -> SiteSurvey:
    """Read a file of sites and say what is in it, what is wrong with it, and how far the sites are from Poisson.

    Parameters
    ----------
    path
        The file, as for `read_sites`.
    city
        The city they stand in; without one, sites are looked at in their own hull.
    merge_distance_m
        Sites of one operator within this distance are one [m].
    operator, radio, columns, crs, quarantine
        As for `read_sites`.
    simulations
        Poisson layouts to compare with.
    rng
        Random generator, or a seed for one.

    Raises
    ------
    CityError
        If the file is missing, cannot be read, or leaves no site.
    """
    path, cleaned = clean_file(path, city, operator, radio, columns, crs, quarantine)
    layout, made = make_sites(path, cleaned, city, merge_distance_m, ())
    operators, radios = site_operators(cleaned, made)
    window, name, trouble = _window(layout, city)
    if window is not None and (said := _regular_by_merging(layout, window)):
        layout.report["notes"] = [*layout.report.get("notes", ()), said]
    statistics = None
    if window is not None:
        statistics, trouble = _statistics(layout, window, simulations, rng)
    rows = np.bincount(made.group, minlength=len(layout)).astype(np.int64)
    return SiteSurvey(layout, cleaned, operators, radios, rows, window, name, statistics, trouble)


def _window(layout: Layout, city: City | None) -> tuple[Any, str, str]:
    """Return the land the sites are looked at in, what it is, and why there is none."""
    from geoedge.sites._edges import convex_window

    if city is not None:
        return city.boundary, city.name, ""
    try:
        return convex_window(layout).polygon, "the sites' own hull", ""
    except CityError:
        return None, "none", "too few sites, or all on one line; name the city"


def _regular_by_merging(layout: Layout, window: Any) -> str:
    """Return a warning where merging alone keeps sites a fair part of their spacing apart; empty if not."""
    report = layout.report
    spacing = float(np.sqrt(window.area / len(layout)))
    if report["objects"] == report["sites"] or report["merge_distance_m"] < FAIR_PART * spacing:
        return ""
    return (
        f"sites within {report['merge_distance_m']:g} m were merged, a fair part of their mean spacing of {spacing:.0f} m: "
        "they read as more regular for that alone; compare with merge distance 0"
    )


def _statistics(
    layout: Layout, window: Any, simulations: int, rng: np.random.Generator | int
) -> tuple[LayoutStatistics | None, str]:
    """Return how far a layout is from Poisson, or why that cannot be said."""
    from geoedge.sites.verdicts import layout_statistics

    if len(layout) > MANY_SITES:
        return None, f"more than {MANY_SITES} sites; choose an operator, or a part"
    try:
        return layout_statistics(layout, window, simulations=simulations, bootstrap=0, rng=rng), ""
    except CityError as error:
        return None, str(error)
