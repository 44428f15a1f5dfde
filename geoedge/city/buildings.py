"""Buildings as columns: use, storeys from tags or a newer map, and a guess for the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from geoedge.city.city import BUILDING_KINDS, LEVEL_SOURCES, BuildingTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["building_kind", "building_table", "impute_levels", "match_footprints", "tagged_levels"]

_KIND_VALUES = {
    "residential": "residential apartments house houses detached semidetached_house terrace bungalow dormitory cabin "
    "villa static_caravan farm allotment_house",
    "office": "office commercial government",
    "retail": "retail supermarket kiosk shop store restaurant mall market",
    "industrial": "industrial warehouse manufacture works hangar storage_tank depot",
    "public": "public school kindergarten university college hospital clinic civic church cathedral chapel synagogue "
    "mosque temple monastery museum theatre townhall train_station station transportation fire_station police "
    "stadium sports_hall sports_centre grandstand palace castle library",
    "hotel": "hotel hostel guest_house",
    "minor": "garage garages carport shed hut roof greenhouse ruins ruin collapsed construction barn farm_auxiliary "
    "stable sty cowshed service bunker container tent boathouse water_tower tower city_gate chimney silo "
    "transformer_tower allotment gasometer digester pavilion toilets wall bridge parking",
}
_KIND_OF = {
    value: BUILDING_KINDS.index(kind) for kind, values in _KIND_VALUES.items() for value in values.split()
}
_AMENITY_KIND = {
    "public": "school kindergarten university college hospital clinic place_of_worship townhall police fire_station "
    "library theatre cinema community_centre courthouse post_office arts_centre",
    "retail": "restaurant cafe fast_food bar pub bank pharmacy marketplace nightclub casino fuel car_wash",
    "minor": "parking shelter toilets",
}
_KIND_OF_AMENITY = {value: kind for kind, values in _AMENITY_KIND.items() for value in values.split()}

_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")
_STOREY_M = 3.2
_MOST_LEVELS = 170.0
_NEIGHBOURS = 9
_NEIGHBOUR_M = 300.0
_DOUBLING_M = 100.0
_SIZE_STEPS_M2 = (40.0, 200.0, 500.0)  # one storey below the first, four above the last
_OVERLAP = 0.5


def building_kind(tags: dict[str, str]) -> int:
    """Return the use of a building as an index into `BUILDING_KINDS`.

    Parameters
    ----------
    tags
        Tags of the building; other uses count where `building` says only yes.
    """
    own = _KIND_OF.get(tags.get("building", ""))
    if own is not None:
        return own
    if "office" in tags:
        kind = "office"
    elif "shop" in tags:
        kind = "retail"
    elif tags.get("tourism") in ("hotel", "hostel", "guest_house"):
        kind = "hotel"
    else:
        kind = _KIND_OF_AMENITY.get(tags.get("amenity", ""), "unspecified")
    return BUILDING_KINDS.index(kind)


def tagged_levels(tags: dict[str, str]) -> float:
    """Return the storeys that the tags of a building state, by number or by height; NaN where they state none.

    Parameters
    ----------
    tags
        Tags of the building.
    """
    for key, unit in (
        ("building:levels", 1.0),
        ("levels", 1.0),
        ("height", _STOREY_M),
        ("building:height", _STOREY_M),
    ):
        number = _NUMBER.search(tags.get(key, ""))
        if number:
            levels = float(number[0].replace(",", ".")) / unit
            levels = levels if unit == 1.0 else float(np.ceil(levels - 0.5))
            if 0.0 < levels <= _MOST_LEVELS:
                return max(levels, 1.0)
    return float("nan")


def building_table(polygons: NDArray[Any], tags: list[dict[str, str]]) -> BuildingTable:
    """Return buildings as a table, with NaN levels where no tag states them.

    Parameters
    ----------
    polygons
        Footprints [m], shape (B,).
    tags
        Tags of each, B of them.
    """
    levels = np.array([tagged_levels(item) for item in tags], dtype=np.float64)
    return BuildingTable(
        xy=shapely.get_coordinates(shapely.centroid(polygons)),
        footprint_m2=np.asarray(shapely.area(polygons), dtype=np.float64),
        levels=levels,
        kind=np.array([building_kind(item) for item in tags], dtype=np.int64),
        levels_imputed=np.isnan(levels),
    )


def match_footprints(polygons: NDArray[Any], others: NDArray[Any]) -> NDArray[np.int64]:
    """Return for each footprint the one of another map that covers at least half of it, or -1, shape (B,).

    Parameters
    ----------
    polygons, others
        Footprints of both maps [m].
    """
    match = np.full(len(polygons), -1, dtype=np.int64)
    if not len(polygons) or not len(others):
        return match
    left, right = shapely.STRtree(others).query(polygons, predicate="intersects")
    share = shapely.area(shapely.intersection(polygons[left], others[right])) / shapely.area(polygons[left])
    order = np.argsort(share, kind="stable")
    order = order[share[order] >= _OVERLAP]
    match[left[order]] = right[order]
    return match


def enrich(table: BuildingTable, match: NDArray[np.int64], other: BuildingTable) -> BuildingTable:
    """Return a table with levels and uses from matched buildings of another map where its own tags have none.

    Parameters
    ----------
    table
        Buildings, some with NaN levels.
    match
        Matching building of `other` or -1, shape (B,).
    other
        Buildings of the other map.
    """
    found = np.where(match >= 0, other.levels[match] if len(other) else np.nan, np.nan)
    take = np.isnan(table.levels) & ~np.isnan(found)
    unspecified = BUILDING_KINDS.index("unspecified")
    use = (match >= 0) & (table.kind == unspecified)
    levels = np.where(take, found, table.levels)
    return BuildingTable(
        xy=table.xy,
        footprint_m2=table.footprint_m2,
        levels=levels,
        kind=np.where(use, other.kind[match], table.kind) if len(other) else table.kind,
        levels_imputed=np.isnan(levels),
        levels_source=np.select([take, np.isnan(levels)], [1, 2], 0),
    )


def impute_levels(table: BuildingTable) -> tuple[BuildingTable, dict[str, float | None]]:
    """Return a table whose missing levels are guessed, and how good the guesses are.

    A building takes the median of up to nine known ones that are near in place and size: within 300 m, where a
    doubling of the footprint counts as 100 m. Where fewer than three are that near, it takes a typical number for
    its use and size. Garages, sheds and the like have one storey. The report states the share of guesses from
    neighbours, and the mean absolute error of such guesses at buildings whose levels are known.

    Parameters
    ----------
    table
        Buildings, some with NaN levels.
    """
    missing, minor = np.isnan(table.levels), table.is_kind("minor")
    known = np.flatnonzero(~missing & ~minor)
    guess = _neighbours_median(table, known)
    far = np.isnan(guess)
    guess = np.where(minor, 1.0, np.where(far, _typical_levels(table), guess))
    error = np.abs(guess - table.levels)[known[~far[known]]]
    open_ = missing & ~minor
    report = {
        "neighbours_share": round(float(np.mean(~far[open_])), 6) if open_.any() else 0.0,
        "mean_abs_error": round(float(error.mean()), 4) if len(error) else None,
    }
    levels = np.where(missing, guess, table.levels)
    source = np.where(missing, LEVEL_SOURCES.index("imputed"), table.levels_source)
    return BuildingTable(table.xy, table.footprint_m2, levels, table.kind, missing, source), report


def _neighbours_median(table: BuildingTable, known: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the median levels of known buildings near each in place and size, never itself; NaN with under three."""
    from scipy.spatial import cKDTree

    if len(known) < 3:
        return np.full(len(table), np.nan)
    where = np.column_stack([table.xy, _DOUBLING_M * np.log2(np.maximum(table.footprint_m2, 1.0))])
    near = min(_NEIGHBOURS + 1, len(known))
    distance, index = cKDTree(where[known]).query(where, k=near, distance_upper_bound=_NEIGHBOUR_M)
    found = np.isfinite(distance)
    index = known[np.where(found, index, 0)]
    found &= index != np.arange(len(table))[:, None]
    found &= np.cumsum(found, axis=1) <= _NEIGHBOURS
    enough = found.sum(axis=1) >= 3
    values = np.where(found, table.levels[index], np.nan)
    median = np.full(len(table), np.nan)
    median[enough] = np.nanmedian(values[enough], axis=1) if enough.any() else 0.0
    return median


def _typical_levels(table: BuildingTable) -> NDArray[np.float64]:
    """Return a typical number of storeys by use and footprint."""
    by_size = 1.0 + np.searchsorted(_SIZE_STEPS_M2, table.footprint_m2, side="right")
    return np.where(table.is_kind("industrial", "retail"), 1.0, by_size)
