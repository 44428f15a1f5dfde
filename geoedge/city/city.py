"""A city as arrays in one projected CRS: land, streets, buildings and places."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.city.names import StreetNames
from geoedge.errors import CityError
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from shapely import MultiPolygon, Polygon

    from geoedge.city.streets import StreetGraph

__all__ = ["ATTRIBUTION", "BUILDING_KINDS", "LEVEL_SOURCES", "BuildingTable", "City", "PlaceTable"]

ATTRIBUTION = (
    "© OpenStreetMap contributors, data available under the Open Database License (ODbL) 1.0, "
    "https://www.openstreetmap.org/copyright"
)
"""The notice that everything made from OpenStreetMap data must carry."""

BUILDING_KINDS = ("unspecified", "residential", "office", "retail", "industrial", "public", "hotel", "minor")
"""What buildings are used for; ``"minor"`` ones (garages, sheds, roofs, ruins) hold nobody."""

LEVEL_SOURCES = ("tagged", "enriched", "imputed")
"""Where a building's levels come from: its own tags, a newer file's, or its neighbours."""


@dataclass(frozen=True, eq=False)
class BuildingTable:
    """Buildings as columns.

    Parameters
    ----------
    xy
        Centroids [m], shape (B, 2).
    footprint_m2
        Ground area without courtyards [m²], shape (B,).
    levels
        Storeys above ground, shape (B,).
    kind
        Use, an index into `BUILDING_KINDS`, shape (B,).
    levels_imputed
        Whether the levels are a guess from neighbours, shape (B,).
    levels_source
        Where the levels come from, an index into `LEVEL_SOURCES`, shape (B,); by default tagged or imputed.
    """

    xy: NDArray[np.float64]
    footprint_m2: NDArray[np.float64]
    levels: NDArray[np.float64]
    kind: NDArray[np.int64]
    levels_imputed: NDArray[np.bool_]
    levels_source: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if len(self.levels_source) == 0:
            imputed = LEVEL_SOURCES.index("imputed")
            object.__setattr__(self, "levels_source", np.where(self.levels_imputed, imputed, 0))
        _agree(
            "buildings",
            self.xy,
            self.footprint_m2,
            self.levels,
            self.kind,
            self.levels_imputed,
            self.levels_source,
        )

    def __len__(self) -> int:
        return len(self.xy)

    @property
    def floor_m2(self) -> NDArray[np.float64]:
        """Floor area, footprint times levels [m²], shape (B,)."""
        return self.footprint_m2 * self.levels

    def is_kind(self, *names: str) -> NDArray[np.bool_]:
        """Return which buildings are of these kinds, shape (B,).

        Parameters
        ----------
        *names
            Members of `BUILDING_KINDS`.

        Raises
        ------
        CityError
            If a name is none of them.
        """
        unknown = [name for name in names if name not in BUILDING_KINDS]
        if unknown:
            msg = f"`names` has {unknown[0]!r}; building kinds are {', '.join(BUILDING_KINDS)}"
            raise CityError(msg)
        return np.isin(self.kind, [BUILDING_KINDS.index(name) for name in names])


@dataclass(frozen=True, eq=False)
class PlaceTable:
    """Places that people visit or equipment stands at, as columns.

    Parameters
    ----------
    xy
        Positions [m], shape (P, 2).
    kind
        The tag that makes it a place, for example ``"amenity=post_office"``, shape (P,).
    name
        Its name, text that anybody may have written and that must be escaped where it is shown, shape (P,).
    """

    xy: NDArray[np.float64]
    kind: NDArray[np.object_]
    name: NDArray[np.object_]

    def __post_init__(self) -> None:
        _agree("places", self.xy, self.kind, self.name)

    def __len__(self) -> int:
        return len(self.xy)

    def is_kind(self, *kinds: str) -> NDArray[np.bool_]:
        """Return which places are of these kinds, shape (P,).

        Parameters
        ----------
        *kinds
            ``"key=value"`` for one kind, ``"key"`` or ``"key="`` for all kinds of a key.
        """
        exact = {kind for kind in kinds if kind.partition("=")[2]}
        keys = {kind.partition("=")[0] for kind in kinds if not kind.partition("=")[2]}
        found = [kind in exact or kind.partition("=")[0] in keys for kind in self.kind.tolist()]
        return np.array(found, dtype=bool)


def _agree(what: str, *columns: Any) -> None:
    """Refuse columns of unequal length."""
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        msg = f"{what}: columns must be of one length, not {', '.join(map(str, lengths))}"
        raise CityError(msg)


@dataclass(frozen=True, eq=False)
class City:
    """A city in one projected CRS.

    Parameters
    ----------
    name
        What it is called.
    crs
        The projected CRS, in metres, for example ``"EPSG:32632"``.
    checksum
        sha256 of the source.
    attribution
        The notice to show with anything made from it.
    extract_date
        When the map data was taken, ISO date, or ``"unknown"``.
    boundary
        Land where people are [m].
    streets
        Streets by mode, ``"walk"`` and ``"drive"``.
    buildings, places
        Tables of buildings and places.
    report
        What was read, dropped, guessed and how sensitive the boundary is; plain numbers and strings.
    street_names
        Named streets, for the eye alone: no way is found by them.
    """

    name: str
    crs: str
    checksum: str
    attribution: str
    extract_date: str
    boundary: Polygon | MultiPolygon
    streets: dict[str, StreetGraph]
    buildings: BuildingTable
    places: PlaceTable
    report: dict[str, Any] = field(default_factory=dict)
    street_names: StreetNames = field(default_factory=StreetNames.none)

    def __repr__(self) -> str:
        return (
            f"City({self.name}: {self.area_km2:.2f} km², {len(self.buildings)} buildings, {len(self.places)} places, "
            f"streets {', '.join(sorted(self.streets))}, {self.crs})"
        )

    @property
    def area_km2(self) -> float:
        """Area of the boundary [km²]."""
        return float(self.boundary.area) / M2_PER_KM2

    @property
    def bounds_lonlat(self) -> tuple[float, float, float, float]:
        """West, south, east and north of the boundary [degree]."""
        west, south, east, north = self.boundary.bounds
        corners = self.to_lonlat([(west, south), (west, north), (east, south), (east, north)])
        low, high = corners.min(axis=0), corners.max(axis=0)
        return float(low[0]), float(low[1]), float(high[0]), float(high[1])

    def contains(self, xy: ArrayLike) -> NDArray[np.bool_]:
        """Return which points lie within the boundary, shape (n,).

        Parameters
        ----------
        xy
            Points in the city's CRS [m], shape (n, 2).
        """
        import shapely

        points = np.asarray(xy, dtype=np.float64).reshape(-1, 2)
        shapely.prepare(self.boundary)
        return np.asarray(shapely.intersects_xy(self.boundary, points[:, 0], points[:, 1]), dtype=bool)

    def to_lonlat(self, xy: ArrayLike) -> NDArray[np.float64]:
        """Return longitude and latitude of points [degree], shape (n, 2).

        Parameters
        ----------
        xy
            Points in the city's CRS [m], shape (n, 2).
        """
        return _transform(self.crs, "EPSG:4326", xy)

    def from_lonlat(self, lonlat: ArrayLike) -> NDArray[np.float64]:
        """Return points in the city's CRS [m], shape (n, 2).

        Parameters
        ----------
        lonlat
            Longitude and latitude [degree], shape (n, 2).
        """
        return _transform("EPSG:4326", self.crs, lonlat)


@lru_cache(maxsize=16)
def _transformer(source: str, target: str) -> Any:
    from pyproj import Transformer

    return Transformer.from_crs(source, target, always_xy=True)


def _transform(source: str, target: str, points: ArrayLike) -> NDArray[np.float64]:
    points = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    return np.column_stack(_transformer(source, target).transform(points[:, 0], points[:, 1]))
