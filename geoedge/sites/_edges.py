"""The window a layout is studied in: what of a site's surroundings can be seen, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._windows import uniform_points, wrapped
from geoedge.sites.layout import Layout
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from shapely import MultiPolygon, Polygon

    Sites: TypeAlias = Layout | ArrayLike
    WindowLike: TypeAlias = "StudyWindow | Polygon | MultiPolygon | tuple[float, float] | None"

__all__ = ["StudyWindow", "concave_window", "convex_window", "positions", "spacings", "study_window"]

RASTER_CELLS = 1024
"""Cells along the longer side of a window's raster, from which overlaps with its own translates are read."""

RASTER_ANGLE = 0.5
"""By how much the raster is turned against the axes [rad]: along a straight edge that is parallel to it, the cells
would all miss the edge by the same part of a cell."""

RASTER_TOLERANCE = 0.03
"""By how much the raster may miss the window's area before the window is called too thin."""

TEST_POINTS = 5000
"""Places from which the empty space to the nearest site is measured."""

LARGEST_WEIGHT = 300.0
"""A pair that the window hardly ever shows counts no more than this many pairs."""


@dataclass(frozen=True, eq=False)
class StudyWindow:
    """Where sites could have been: a polygon, or a torus that has no edge.

    Parameters
    ----------
    polygon
        Land [m], of any shape, with holes and in several parts; ``None`` on a torus.
    period_m
        Width and height of the torus [m]; ``None`` for a polygon.
    """

    polygon: Polygon | MultiPolygon | None
    period_m: tuple[float, float] | None = None

    @cached_property
    def area_m2(self) -> float:
        """Area [m²]."""
        if self.period_m is not None:
            return self.period_m[0] * self.period_m[1]
        return float(self._polygon.area)

    @property
    def area_km2(self) -> float:
        """Area [km²]."""
        return self.area_m2 / M2_PER_KM2

    @property
    def perimeter_m(self) -> float:
        """Length of the edge, holes included [m]; 0 on a torus."""
        return 0.0 if self.polygon is None else float(self.polygon.length)

    @property
    def largest_r_m(self) -> float:
        """Distance up to which pairs are worth counting [m]: a quarter of the shorter side."""
        left, bottom, right, top = self.bounds
        return 0.25 * float(min(right - left, top - bottom, np.sqrt(self.area_m2)))

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, bottom, right and top end [m]."""
        return (0.0, 0.0, *self.period_m) if self.period_m is not None else self._polygon.bounds

    @property
    def _polygon(self) -> Any:
        return self.polygon

    def contains(self, xy: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which places are in the window or on its edge, shape (n,).

        Parameters
        ----------
        xy
            Places [m], shape (n, 2).
        """
        if self.polygon is None:
            return np.ones(len(xy), dtype=np.bool_)
        import shapely

        shapely.prepare(self.polygon)
        inside: NDArray[np.bool_] = shapely.intersects_xy(self.polygon, xy[:, 0], xy[:, 1])
        if not inside.all():  # an edge that is not along an axis holds hardly any float exactly
            near = self.border_distance(xy[~inside]) <= 1e-9 * float(np.abs(self.polygon.bounds).max())
            inside[~inside] = near
        return inside

    def uniform(self, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw independent uniform places [m], shape (count, 2).

        Parameters
        ----------
        count
            How many places.
        rng
            Random generator.
        """
        window = self._polygon if self.period_m is None else self.period_m
        return uniform_points(window, count, rng)

    def border_distance(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the distance to the nearest edge [m], shape (n,); infinite on a torus.

        Parameters
        ----------
        xy
            Places [m], shape (n, 2).
        """
        if self.polygon is None:
            return np.full(len(xy), np.inf)
        import shapely

        found, distance = self._edge_index.query_nearest(
            shapely.points(xy), return_distance=True, all_matches=False
        )
        nearest = np.empty(len(xy))
        nearest[found[0]] = distance
        return nearest

    @cached_property
    def _edge_index(self) -> Any:
        """Index of the straight pieces of the edge."""
        import shapely

        corners, ring = shapely.get_coordinates(
            shapely.get_parts(shapely.boundary(shapely.get_parts(self._polygon))), return_index=True
        )
        follows = ring[1:] == ring[:-1]
        return shapely.STRtree(shapely.linestrings(np.stack((corners[:-1], corners[1:]), axis=1)[follows]))

    @cached_property
    def test_points(self) -> NDArray[np.float64]:
        """Lattice of places in the window [m], shape (m, 2)."""
        cell = np.sqrt(self.area_m2 / TEST_POINTS)
        left, bottom, right, top = self.bounds
        x, y = (
            low + (np.arange(max(int((high - low) / cell), 1)) + 0.5) * cell
            for low, high in ((left, right), (bottom, top))
        )
        lattice = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        return lattice[self.contains(lattice)]

    @cached_property
    def test_border_m(self) -> NDArray[np.float64]:
        """Distance from every test point to the edge [m], shape (m,)."""
        return self.border_distance(self.test_points)

    def overlap(self, shift_m: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much of the window its own translate covers, |W ∩ (W + h)| [m²], shape (k,).

        It is the area of places from which a neighbour at this displacement would be seen. It is read from the
        autocorrelation of a raster of `RASTER_CELLS` cells, bilinearly between lags, and is right to about 0.01 %, or
        0.1 % for a displacement along a long straight edge. On a torus it is the area.

        Parameters
        ----------
        shift_m
            Displacements h [m], shape (k, 2).
        """
        if self.period_m is not None:
            return np.full(len(shift_m), self.area_m2)
        from scipy.ndimage import map_coordinates

        table, cell = self._overlaps
        middle = (np.array(table.shape) - 1) / 2
        turned = shift_m @ _turn().T
        at = turned[:, ::-1].T / cell + middle[:, None]
        found = map_coordinates(table, at, order=1, mode="constant", cval=0.0, prefilter=False)
        return np.maximum(found, self.area_m2 / LARGEST_WEIGHT)

    @cached_property
    def _overlaps(self) -> tuple[NDArray[np.float64], float]:
        """Overlap areas [m²] by lag in y and x, no lag in the middle, and the size of a cell [m]."""
        from scipy.signal import fftconvolve

        land, cell = self._raster()
        table = fftconvolve(land, land[::-1, ::-1])
        seen = table[tuple(size - 1 for size in land.shape)]
        miss = abs(seen * cell**2 / self.area_m2 - 1.0)
        if miss > RASTER_TOLERANCE:
            msg = f"`window` is too thin for its {self.perimeter_m:.3g} m of edge: a raster misses {miss:.0%} of its area; buffer or simplify it"
            raise CityError(msg)
        return np.maximum(table, 0.0) * (self.area_m2 / seen), cell

    def _raster(self) -> tuple[NDArray[np.float64], float]:
        """Return which cells have their centre in the polygon, rows upwards, and the size of a cell [m]."""
        import shapely
        from rasterio.features import rasterize
        from rasterio.transform import Affine

        turned = shapely.transform(self.polygon, lambda xy: xy @ _turn().T)
        left, bottom, right, top = turned.bounds
        cell = max(right - left, top - bottom) / RASTER_CELLS
        rows, columns = int((top - bottom) / cell) + 1, int((right - left) / cell) + 1
        place = Affine(cell, 0.0, left, 0.0, cell, bottom)
        land = rasterize([(turned, 1)], out_shape=(rows, columns), transform=place)
        return land.astype(np.float64), cell


def _turn() -> NDArray[np.float64]:
    """Return the rotation from the axes of the map to those of the raster."""
    cos, sin = np.cos(RASTER_ANGLE), np.sin(RASTER_ANGLE)
    return np.array(((cos, -sin), (sin, cos)))


def study_window(window: WindowLike, sites: Sites | None = None) -> StudyWindow:
    """Return the window of a layout, whatever it was given as.

    Parameters
    ----------
    window
        Polygon of land [m], width and height of a torus [m], or a window made before; ``None`` for the torus that a
        `Layout` stands on.
    sites
        The layout, for its torus.

    Raises
    ------
    CityError
        If there is no window, or its area is not positive.
    """
    if isinstance(window, StudyWindow):
        return window
    if window is None:
        window = sites.period_m if isinstance(sites, Layout) else None
        if window is None:
            msg = "`window` must be given for sites on the plane: a polygon [m], for example `city.boundary` or `convex_window(sites)`"
            raise CityError(msg)
    if isinstance(window, tuple):
        width, height = (float(side) for side in window)
        if not (np.isfinite([width, height]).all() and width > 0.0 and height > 0.0):
            msg = f"`window` must be a polygon, or positive width and height of a torus [m], not {window}"
            raise CityError(msg)
        return StudyWindow(None, (width, height))
    if window.geom_type not in ("Polygon", "MultiPolygon") or not window.area > 0.0 or not window.is_valid:
        msg = f"`window` must be a valid polygon of positive area [m²], not this {window.geom_type} of {window.area:g} m²; try shapely.make_valid"
        raise CityError(msg)
    return StudyWindow(window)


def convex_window(sites: Sites) -> StudyWindow:
    """Return a window guessed from the sites alone: their convex hull, blown up.

    The hull of uniform sites is too small by about the share of them that are its corners, m of n, so it is
    scaled about its centroid by 1/√(1 − m/n) (B. D. Ripley and J.-P. Rasson, J. Appl. Prob. 14, 1977). Land that the
    sites avoid, such as a bay, then counts as land: give the real window where it is known.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).

    Raises
    ------
    CityError
        If the sites are too few or on one line.
    """
    import shapely
    from shapely.affinity import scale

    xy = np.unique(positions(sites), axis=0)
    hull = shapely.convex_hull(shapely.multipoints(xy))
    corners = len(shapely.get_coordinates(hull)) - 1
    if hull.geom_type != "Polygon" or corners >= len(xy):
        msg = f"`sites` must be at least four places of which one is inside the hull of the rest, not {len(xy)}; give `window`"
        raise CityError(msg)
    factor = 1.0 / np.sqrt(1.0 - corners / len(xy))
    return StudyWindow(scale(hull, factor, factor, origin="centroid"))


def concave_window(sites: Sites, *, ratio: float = 0.1, buffer_m: float | None = None) -> StudyWindow:
    """Return a window guessed from the sites alone: an outline that follows their bays, and some land around it.

    Where a coast or hills without sites cut into the convex hull, this leaves most of them out. How closely it follows
    is a choice, not an estimate; nothing should be read off the window's area but what hardly depends on it.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    ratio
        Longest edge of the outline between the least, 0, and that of the convex hull, 1.
    buffer_m
        Land around the outline [m]; by default the mean spacing that the sites have inside it.

    Raises
    ------
    CityError
        If the sites are too few or on one line, or a number is out of range.
    """
    import shapely

    if not 0.0 <= ratio <= 1.0 or not (buffer_m is None or 0.0 <= buffer_m < np.inf):
        msg = f"`ratio` must be 0 to 1 and `buffer_m` 0 or more metres, not {ratio} and {buffer_m}"
        raise CityError(msg)
    xy = np.unique(positions(sites), axis=0)
    outline = shapely.concave_hull(shapely.multipoints(xy), ratio=ratio)
    if outline.geom_type != "Polygon":
        msg = f"`sites` must be at least three places that are not on one line, not {len(xy)}; give `window`"
        raise CityError(msg)
    around = float(np.sqrt(outline.area / len(xy))) if buffer_m is None else buffer_m
    return StudyWindow(outline.buffer(around))


def positions(
    sites: Sites, window: StudyWindow | None = None, *, at_least: int = 1, use: str = "This"
) -> NDArray[np.float64]:
    """Return where sites are [m], shape (n, 2), checked to be in the window.

    Parameters
    ----------
    sites
        Layout, or positions [m], shape (n, 2).
    window
        Where they have to be; positions are wrapped onto a torus.
    at_least
        Fewest sites that will do.
    use
        What they are needed for, to begin the error with.

    Raises
    ------
    CityError
        If there are too few sites, or some are not finite or outside.
    """
    xy = np.asarray(sites.xy if isinstance(sites, Layout) else sites, dtype=np.float64)
    if xy.ndim != 2 or xy.shape[1] != 2 or not np.isfinite(xy).all():
        msg = f"`sites` must be a Layout or finite positions [m] of shape (n, 2), not of shape {xy.shape}"
        raise CityError(msg)
    if len(xy) < at_least:
        msg = f"{use} needs at least {at_least} sites, not {len(xy)}"
        raise CityError(msg)
    if window is None:
        return xy
    if window.period_m is not None:
        return wrapped(xy, window.period_m)
    outside = int(np.count_nonzero(~window.contains(xy)))
    if outside:
        msg = f"`window` must hold all sites, but {outside} of {len(xy)} are outside; clip the sites or widen the window"
        raise CityError(msg)
    return xy


def spacings(window: StudyWindow, count: int) -> float:
    """Return the spacing 1/√density of this many sites [m].

    Parameters
    ----------
    window
        Where they are.
    count
        How many.
    """
    return float(np.sqrt(window.area_m2 / count))
