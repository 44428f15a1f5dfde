"""How uneven a layout is: its own density, smoothed, to draw other sites from or to let demand follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._edges import positions, study_window
from geoedge.sites._windows import wrapped

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from geoedge.city.demand import Demand
    from geoedge.sites._edges import Sites, StudyWindow, WindowLike

    Floats = NDArray[np.float64]

__all__ = ["NEIGHBOURS", "SmoothedSites", "smoothed_sites"]

NEIGHBOURS = 16
"""The density of an uneven layout is smoothed over the distance to this many neighbours."""
PLACES = 10
"""Places of demand for each site; twice as many move what a real network's field covers by 0.1 points."""
MOST_PLACES = 1 << 20
"""Places of one kernel that are tried before the window is given up as too thin."""
MAX_ROUNDS = 10_000
"""Rounds of drawing places anew that fell outside the window."""
GOLDEN = np.pi * (3.0 - 5.0**0.5)


@dataclass(frozen=True, eq=False)
class SmoothedSites:
    """A density made of equal normal kernels, one a site, each renormalised over the window.

    Parameters
    ----------
    xy
        Positions of the sites [m], shape (n, 2).
    width_m
        Standard deviation of each kernel [m], shape (n,).
    window
        Where the density lives.
    neighbours
        Over how many neighbours the sites were smoothed.
    """

    xy: Floats
    width_m: Floats
    window: StudyWindow
    neighbours: int = NEIGHBOURS

    def of(self, sites: Sites) -> SmoothedSites:
        """Return the density of other sites in the same window, smoothed in the same way.

        Parameters
        ----------
        sites
            Layout, or positions [m], shape (n, 2).

        Raises
        ------
        CityError
            As `smoothed_sites`.
        """
        return smoothed_sites(sites, self.window, neighbours=self.neighbours)

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw independent places of this density [m], shape (count, 2).

        Parameters
        ----------
        count
            How many.
        rng
            Random generator.

        Raises
        ------
        CityError
            If the window is too thin to hit.
        """
        near = rng.integers(0, len(self.xy), count)
        drawn, todo = np.empty((count, 2)), np.arange(count)
        for _ in range(MAX_ROUNDS):
            place = self.xy[near[todo]] + rng.normal(size=(len(todo), 2)) * self.width_m[near[todo], None]
            place = self._wrapped(place)
            inside = self.window.contains(place)
            drawn[todo[inside]] = place[inside]
            todo = todo[~inside]
            if not len(todo):
                return drawn
        msg = f"`window` is too thin to draw sites in it within {MAX_ROUNDS} rounds; buffer it"
        raise CityError(msg)

    def demand(self, rate: ArrayLike, *, places: int = PLACES) -> Demand:
        """Return demand of this density: requests from evenly spread places of every kernel, as many from each kernel.

        There is nothing random in it: the places of a kernel lie on a spiral and stand for equal shares of it, so that
        they are dense where sites are.

        Parameters
        ----------
        rate
            Requests of each type in all [1/s], shape (Q,).
        places
            Places for each site, at least; more are tried where much of a kernel is outside the window.

        Raises
        ------
        CityError
            If `places` is not positive, or no place of a kernel is in the window.
        """
        from geoedge.city.demand import Demand

        if places < 1:
            msg = f"`places` must be at least 1 for each site, not {places}"
            raise CityError(msg)
        spread = [self._spread(site, places) for site in range(len(self.xy))]
        share = np.concatenate([np.full(len(part), 1.0 / len(part)) for part in spread]) / len(spread)
        return Demand.from_points(np.vstack(spread), share[:, None] * np.asarray(rate, dtype=np.float64))

    def _spread(self, site: int, places: int) -> Floats:
        """Return at least so many places inside the window that stand for equal shares of a kernel."""
        many = places
        while many <= MOST_PLACES:
            order = np.arange(many)
            radius = self.width_m[site] * np.sqrt(-2.0 * np.log1p(-(order + 0.5) / many))
            angle = GOLDEN * order + site  # kernels turned against each other
            offset = radius[:, None] * np.column_stack((np.cos(angle), np.sin(angle)))
            place = self._wrapped(self.xy[site] + offset)
            place = place[self.window.contains(place)]
            if len(place) >= places:
                return place
            many *= 2
        msg = f"`window` is too thin: hardly any of the kernel of site {site} is inside; buffer it"
        raise CityError(msg)

    def _wrapped(self, place: Floats) -> Floats:
        return place if self.window.period_m is None else wrapped(place, self.window.period_m)


def smoothed_sites(sites: Sites, window: WindowLike = None, *, neighbours: int = NEIGHBOURS) -> SmoothedSites:
    """Return the density of a layout, smoothed by a normal kernel at each site.

    The standard deviation of a kernel is the distance to the site's 16th neighbour. What is smoothed keeps a part of
    what is chance: about 64 sites lie under a kernel, so a Poisson layout's density is off by an eighth, and follows
    that layout better than any other.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Polygon [m], or width and height of a torus [m]; may be left out for a layout on a torus.
    neighbours
        Over how many neighbours to smooth; at most n − 1 are.

    Raises
    ------
    CityError
        If there are fewer than two sites, some are outside, or `neighbours` is not positive.
    """
    from scipy.spatial import cKDTree

    if neighbours < 1:
        msg = f"`neighbours` must be at least 1, not {neighbours}"
        raise CityError(msg)
    where = study_window(window, sites)
    xy = positions(sites, where, at_least=2, use="An uneven density")
    boxsize: Any = where.period_m
    nth = min(neighbours, len(xy) - 1) + 1
    width = np.asarray(cKDTree(xy, boxsize=boxsize).query(xy, k=[nth])[0])
    return SmoothedSites(xy, width[:, 0], where, neighbours)
