"""A round piece of land in Monaco without anything on it, and rows of files of sites in their publishers' layouts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import shapely

from geoedge.city import City, PlaceTable
from geoedge.city.city import BuildingTable

CENTRE = np.array([373_000.0, 4_844_000.0])  # Monaco, UTM 32N
DATA = Path(__file__).parents[3] / "shared" / "data" / "sites"
CELL_HEADER = "radio,mcc,net,area,cell,unit,lon,lat,range,samples,changeable,created,updated,averageSignal"


def city() -> City:
    nothing = np.empty(0)
    buildings = BuildingTable(np.empty((0, 2)), nothing, nothing, nothing.astype(int), nothing.astype(bool))
    places = PlaceTable(np.empty((0, 2)), np.empty(0, dtype=object), np.empty(0, dtype=object))
    land = shapely.Point(*CENTRE).buffer(2000.0)
    return City("testville", "EPSG:32632", "", "", "2020-01-01", land, {}, buildings, places)


def lonlat(x: float, y: float) -> tuple[float, float]:
    """Return longitude and latitude of a place x m east and y m north of the middle."""
    lon, lat = city().to_lonlat([np.add(CENTRE, (x, y))])[0]
    return float(lon), float(lat)


def cell_row(
    x: float = 0.0,
    y: float = 0.0,
    *,
    radio: str = "LTE",
    mcc: int = 212,
    net: int = 10,
    area: int = 17,
    cell: int = 300 * 256 + 1,
    samples: int = 10,
) -> str:
    """Return a row in the layout of OpenCelliD and the Mozilla Location Service."""
    lon, lat = lonlat(x, y)
    return f"{radio},{mcc},{net},{area},{cell},0,{lon:.7f},{lat:.7f},1000,{samples},1,1459813819,1459813819,0"


def write(path: Path, lines: list[str], encoding: str = "utf-8") -> Path:
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


def placed(sites) -> np.ndarray:
    """Return positions of a layout from the middle [m]."""
    return np.asarray(sites.xy) - CENTRE
