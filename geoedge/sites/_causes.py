"""Why a row is not where the sites are: what somebody may have done to its coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._rows import to_degrees

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.city.city import City

__all__ = ["CAUSES", "Ground", "check_spread", "explain", "is_null", "legal"]

CAUSES: dict[str, str] = {
    "missing": "no coordinates, or text that is no number",
    "malformed": "another number of fields than the header has; an unquoted delimiter, a lost or a surplus field",
    "null_island": "longitude 0, latitude 0: the place of what could not be located",
    "out_of_range": "no longitude within ±180 and latitude within ±90 degrees",
    "swapped": "longitude and latitude in each other's place",
    "sign_lost": "a minus sign is missing or too many: east for west, or north for south",
    "scaled_e6": "degrees times 1,000,000, written as whole numbers",
    "scaled_e7": "degrees times 10,000,000, written as whole numbers",
    "point_lost": "the decimal point is missing",
    "projected": "eastings and northings of a projection where degrees are wanted; state it as the CRS",
    "far_away": "more than 20 times as far from the middle as three in four rows; another region, or a slip",
    "outside": "a place outside of the city",
    "bad_radio": "a radio technology that does not exist",
    "bad_operator": "a country code outside of 200 to 799 and 901, or a network code above 999",
    "bad_area": "area 0, 65534, 65535 or beyond (0, 16777214 or beyond 24 bits for NR), which no operator may use",
    "bad_cell": "cell 0, or more than the technology has bits for",
    "two_radios": "the same cell under another technology with more samples, or earlier in the file",
    "duplicate": "the same cell again with fewer samples, or the same line again",
}
"""Why a row is not used, and the likely cause in words."""

PROJECTIONS = (
    *("EPSG:3857", "EPSG:2154", "EPSG:27700", "EPSG:31370", "EPSG:28992", "EPSG:2056", "EPSG:21781"),
    *("EPSG:2169", "EPSG:3035", "EPSG:25832", "EPSG:31467", "EPSG:3067", "EPSG:3006", "EPSG:2193"),
)
"""Projections that eastings and northings are tried in, besides the city's and its UTM zone."""

DIGITS = range(1, 9)
MARGIN_DEG = 0.02
LEAST_SPREAD_DEG = 0.05
FAR, MOST = 20.0, 0.75
"""How many times farther than most rows, and what share is most, a row may lie where no city is given."""
NULL_DEG = 1e-4
EARTH_KM = 6371.0
WIDEST_KM = 1000.0
"""How far apart sites may be that one projection measures [km]."""
NEAR_M = 500.0
"""What is called near the city's edge [m]; `MARGIN_DEG` is more."""

Move = Callable[["NDArray[np.float64]"], "NDArray[np.float64]"]


def legal(lonlat: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows are longitude and latitude at all, shape (n,).

    Parameters
    ----------
    lonlat
        Longitude and latitude [degree], shape (n, 2).
    """
    with np.errstate(invalid="ignore"):
        found: NDArray[np.bool_] = (np.abs(lonlat[:, 0]) <= 180.0) & (np.abs(lonlat[:, 1]) <= 90.0)
    return found


def utm_zone(lon: float, lat: float) -> str:
    """Return the UTM zone of a place.

    Parameters
    ----------
    lon, lat
        Longitude and latitude [degree].
    """
    return f"EPSG:{(32600 if lat >= 0 else 32700) + min(int((lon + 180.0) % 360.0 // 6.0), 59) + 1}"


def check_spread(path: Path, lonlat: NDArray[np.float64]) -> None:
    """Refuse sites that one zone of a projection cannot measure.

    Parameters
    ----------
    path
        The file they are from.
    lonlat
        Longitude and latitude of the rows used [degree], shape (n, 2).

    Raises
    ------
    CityError
        If they are more than `WIDEST_KM` apart, or on both sides of the antimeridian.
    """
    lon, lat = np.radians(lonlat.T)
    place = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    end = place[np.argmin(place @ place[0])]  # from the end of the file's sites, the other end is farthest
    across = 2.0 * EARTH_KM * float(np.arcsin(min(1.0, np.linalg.norm(place - end, axis=1).max() / 2.0)))
    if across > WIDEST_KM:
        msg = (
            f"{path}: sites up to {across:,.0f} km apart, more than the {WIDEST_KM:,.0f} km that one projection "
            "measures; name the city (--city), or cut the file to one region"
        )
        raise CityError(msg)
    if np.ptp(lonlat[:, 0]) > 180.0:
        msg = (
            f"{path}: sites on both sides of the antimeridian (longitude 180 and -180), where a map has its edge; "
            "cut the file to one side of it"
        )
        raise CityError(msg)


def is_null(lonlat: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which rows are at longitude 0, latitude 0, shape (n,).

    Parameters
    ----------
    lonlat
        Longitude and latitude [degree], shape (n, 2).
    """
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(lonlat) < NULL_DEG).all(axis=1))


@dataclass(frozen=True, eq=False)
class Ground:
    """Where sites are expected: on the land of a city, or where most rows of the file are.

    Parameters
    ----------
    box
        West, south, east and north [degree].
    city
        The city; None for the box.
    """

    box: tuple[float, float, float, float]
    city: City | None = None

    @classmethod
    def of_city(cls, city: City) -> Ground:
        """Return the ground of a city."""
        west, south, east, north = city.bounds_lonlat
        return cls((west - MARGIN_DEG, south - MARGIN_DEG, east + MARGIN_DEG, north + MARGIN_DEG), city)

    @classmethod
    def of_rows(cls, lonlat: NDArray[np.float64]) -> Ground | None:
        """Return where most of the rows are; None if there is none.

        Parameters
        ----------
        lonlat
            Rows that are longitude and latitude [degree], shape (n, 2).
        """
        if not len(lonlat):
            return None
        middle = np.median(lonlat, axis=0)
        spread = np.quantile(np.abs(lonlat - middle), MOST, axis=0)
        low, high = (middle + sign * FAR * np.maximum(spread, LEAST_SPREAD_DEG) for sign in (-1.0, 1.0))
        return cls((float(low[0]), float(low[1]), float(high[0]), float(high[1])))

    def holds(self, lonlat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which rows are here, shape (n,).

        Parameters
        ----------
        lonlat
            Longitude and latitude [degree], shape (n, 2).
        """
        west, south, east, north = self.box
        lon, lat = lonlat.T
        with np.errstate(invalid="ignore"):
            here = legal(lonlat) & (lon >= west) & (lon <= east) & (lat >= south) & (lat <= north)
        if self.city is not None and here.any():
            here[here] = self.city.contains(self.city.from_lonlat(lonlat[here]))
        return np.asarray(here)

    def near(self, lonlat: NDArray[np.float64]) -> int:
        """Return how many rows are within `NEAR_M` of a city's land, on it or not.

        Parameters
        ----------
        lonlat
            Longitude and latitude [degree], shape (n, 2).
        """
        import shapely

        if self.city is None:
            return 0
        west, south, east, north = self.box
        lon, lat = lonlat.T
        around = (lon >= west) & (lon <= east) & (lat >= south) & (lat <= north)
        xy = self.city.from_lonlat(lonlat[around])
        wide = shapely.buffer(self.city.boundary, NEAR_M, quad_segs=4)
        shapely.prepare(wide)
        return int(shapely.intersects_xy(wide, xy[:, 0], xy[:, 1]).sum())

    def moves(self, *, degrees: bool) -> Iterator[tuple[str, str, Move]]:
        """Yield what may have been done to coordinates, a detail, and how to undo it; the likeliest first.

        Parameters
        ----------
        degrees
            Whether the coordinates are what the file wrote, so that they may be something else than degrees.
        """
        yield "swapped", "", lambda xy: xy[:, ::-1]
        if not degrees:
            return
        yield "sign_lost", "longitude", lambda xy: xy * (-1.0, 1.0)
        yield "sign_lost", "latitude", lambda xy: xy * (1.0, -1.0)
        yield "sign_lost", "both", lambda xy: -xy
        for digits in (6, 7):
            yield f"scaled_e{digits}", "", lambda xy, digits=digits: _whole(xy) / 10.0**digits  # type: ignore[misc]
        yield "point_lost", "", self._with_point
        for crs in dict.fromkeys((*self._own_crs(), *PROJECTIONS)):
            yield "projected", crs, lambda xy, crs=crs: _unprojected(xy, crs)  # type: ignore[misc]

    def _own_crs(self) -> Iterator[str]:
        if self.city is not None:
            yield self.city.crs
        west, south, east, north = self.box
        yield utm_zone((west + east) / 2, (south + north) / 2)

    def _with_point(self, xy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return whole numbers divided by the power of ten that brings them here, NaN if none does."""
        found = xy.copy()
        for axis in (0, 1):
            low, high = self.box[axis], self.box[axis + 2]
            strange = (xy[:, axis] < low) | (xy[:, axis] > high)
            found[strange, axis] = np.nan
            for digits in DIGITS:
                value = np.where(strange, _whole(xy[:, axis]) / 10.0**digits, np.nan)
                fits = (value >= low) & (value <= high)
                found[fits, axis] = value[fits]
        return found


def _whole(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(values == np.rint(values), values, np.nan)


def _unprojected(xy: NDArray[np.float64], crs: str) -> NDArray[np.float64]:
    """Return the place of metres in degrees; small numbers are no metres of a map."""
    found = np.full(xy.shape, np.nan)
    metres = (np.abs(xy) > 1000.0).all(axis=1)
    if metres.any():
        found[metres] = to_degrees(xy[metres], crs)
    return found


def explain(
    lonlat: NDArray[np.float64], ground: Ground | None, *, degrees: bool
) -> tuple[NDArray[np.object_], dict[str, str]]:
    """Return a likely cause for each row that is not where sites are, and a detail of some causes.

    Parameters
    ----------
    lonlat
        Rows that are not there, finite, shape (n, 2).
    ground
        Where sites are expected; None if nothing tells.
    degrees
        Whether the coordinates are what the file wrote.
    """
    valid = legal(lonlat)
    why = np.where(valid, "outside" if ground and ground.city else "far_away", "out_of_range").astype(object)
    details: dict[str, Counter[str]] = {}
    left = np.arange(len(lonlat))
    for cause, detail, move in ground.moves(degrees=degrees) if ground else ():
        if not left.size:
            break
        with np.errstate(invalid="ignore", over="ignore"):
            hit = ground.holds(move(lonlat[left])) if ground else np.zeros(len(left), dtype=bool)
        why[left[hit]] = cause
        details.setdefault(cause, Counter())[detail] += int(hit.sum())
        left = left[~hit]
    if ground is None:  # not one row is a place on Earth, but some are the other way round
        why[legal(lonlat[:, ::-1])] = "swapped"
    why[is_null(lonlat)] = "null_island"
    words = {cause: found.most_common(1)[0][0] for cause, found in details.items() if sum(found.values())}
    if ground is not None and (near := ground.near(lonlat[why == "outside"])):
        words["outside"] = f"{near} of them within {NEAR_M:.0f} m of its edge"
    return why, words
