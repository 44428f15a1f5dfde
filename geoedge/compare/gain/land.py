"""The land of a layout without a city, and demand that is spread evenly over it or as its sites are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from shapely import MultiPolygon, Polygon

    from geoedge.city.demand import Demand
    from geoedge.sites import Layout, SmoothedSites, StudyWindow
    from geoedge.workload import Workload

    Land: TypeAlias = Polygon | MultiPolygon | tuple[float, float]

__all__ = ["even_demand", "land_of", "refuse_outside"]

CELLS_PER_SITE = 40
"""Cells of demand a site where it is spread evenly."""
EDGE_M = 1.0
"""Sites this near to the land stand on it [m]."""


def land_of(layout: Layout, window: StudyWindow | Land) -> Land:
    """Return a window as polygon or period, after refusing one that is not the layout's.

    Parameters
    ----------
    layout
        Sites.
    window
        Window in any of its forms.

    Raises
    ------
    GeoEdgeError
        If it is not the layout's torus, or a site stands outside.
    """
    from geoedge.sites import StudyWindow

    land: Any = window
    if isinstance(window, StudyWindow):
        land = window.polygon if window.period_m is None else window.period_m
    if isinstance(land, tuple):
        if layout.period_m != land:
            msg = f"layout_gain: `window` is a torus of {land} m, the layout's is {layout.period_m}; give the layout's"
            raise GeoEdgeError(msg)
    else:
        refuse_outside("layout_gain", layout, land)
    found: Land = land
    return found


def refuse_outside(where: str, layout: Layout, land: Polygon | MultiPolygon) -> None:
    """Say in one line why a layout does not fit its land: sites outside would count for its density.

    Parameters
    ----------
    where
        Who asks.
    layout
        Sites.
    land
        Window [m].

    Raises
    ------
    GeoEdgeError
        If the layout lies on a torus, or a site stands outside.
    """
    import shapely

    if layout.period_m is not None:
        msg = f"{where}: `layout` lies on a torus of {layout.period_m} m, its window is a polygon; give the period"
        raise GeoEdgeError(msg)
    outside = int((~shapely.contains_xy(land.buffer(EDGE_M), layout.xy)).sum())
    if outside:
        msg = (
            f"{where}: {outside} of {len(layout)} sites stand outside the window; drop them, or give the land that they "
            "stand on, in metres of the layout's CRS"
        )
        raise GeoEdgeError(msg)


def even_demand(
    layout: Layout, window: Land, workload: Workload, density: SmoothedSites | None = None
) -> Demand:
    """Return one request a second and site, spread evenly over the land, or of a density.

    Parameters
    ----------
    layout
        Sites.
    window
        Land [m].
    workload
        Request types.
    density
        Density to follow instead of an even one.

    Raises
    ------
    GeoEdgeError
        If the window is a torus.
    """
    from geoedge.city.demand import uniform_demand

    rate = len(layout) * workload.type_probability
    if density is not None:
        return density.demand(rate)
    if isinstance(window, tuple):
        msg = "layout_gain: on a torus `demand` must be given, for example by geoedge.city.demand.uniform_torus_demand"
        raise GeoEdgeError(msg)
    cell_m = float((window.area / (CELLS_PER_SITE * len(layout))) ** 0.5)
    return uniform_demand(window, rate, cell_m)
