"""How the sites stand: how far from Poisson the layout of a run is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geoedge.errors import GeoEdgeError
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told

if TYPE_CHECKING:
    from geoedge.sites.verdicts import LayoutStatistics

__all__ = ["layout_grid", "layout_of", "same_sites"]

MOST_SITES = 400
"""Sites up to which a layout is compared with Poisson here: more would take the page longer than a few seconds."""
SIMULATIONS = 99


def layout_of(told: Told) -> tuple[LayoutStatistics | None, str]:
    """Return how far a run's sites are from Poisson on its land, or why that is not said.

    Parameters
    ----------
    told
        A run.
    """
    from geoedge.sites.verdicts import layout_statistics

    sites = told.results.sites
    if len(sites) > MOST_SITES:
        return (
            None,
            f"more than {MOST_SITES} sites; `geoedge.sites.layout_statistics` takes its time for that",
        )
    try:
        land = told.view.city.boundary
        xy = sites[["x_m", "y_m"]].to_numpy()
        return layout_statistics(xy, land, simulations=SIMULATIONS, bootstrap=0, rng=0), ""
    except GeoEdgeError as error:
        return None, str(error)


def layout_grid(found: LayoutStatistics) -> Grid:
    """Return the numbers behind the verdict.

    Parameters
    ----------
    found
        Statistics of a layout.
    """
    index, envelope, best = found.clark_evans, found.envelope, found.fits.best
    parameters = ", ".join(f"{key} = {value:.3g}" for key, value in best.parameters.items())
    rows = [
        ["sites", f"{found.sites}"],
        ["land [km²]", f"{found.area_km2:.2f}"],
        ["density [1/km²]", f"{found.density_per_km2:.2f}"],
        ["Clark-Evans index", f"{index.ratio:.2f} (z = {index.z:+.1f}, p = {index.p_value:.2g})"],
        ["largest deviation of L [m]", f"{envelope.largest_deviation:+.0f} (p = {envelope.p_value:.2g})"],
        ["nearest process", f"{best.process.replace('_', ' ')} ({parameters})"],
    ]
    note = (
        f"Against {SIMULATIONS} layouts of as many uniform sites on the same land. Clark-Evans: mean distance to the nearest "
        "site over that of Poisson sites; below 1 is clustered. L: how many sites lie within a distance of a site, as a "
        "radius; above 0 there are more than in Poisson layouts."
    )
    return Grid("The layout beside Poisson", ["", "value"], rows, note)


def same_sites(one: Told, other: Told) -> bool:
    """Return whether two runs have their sites in the same places."""
    mine, theirs = (each.results.sites[["x_m", "y_m"]].to_numpy() for each in (one, other))
    return mine.shape == theirs.shape and bool((mine == theirs).all())
