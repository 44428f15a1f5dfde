"""Which mapped things are places, and what kind: shops, offices, amenities, masts and exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.city import PlaceTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PLACE_TAGS", "is_place", "merge_places", "place_kind", "place_table"]

# Things in the street that nobody travels to.
_FURNITURE = frozenset(
    [
        "atm",
        "bbq",
        "bench",
        "bicycle_parking",
        "bicycle_rental",
        "bicycle_repair_station",
        "charging_station",
        "clock",
        "compressed_air",
        "dog_toilet",
        "drinking_water",
        "fountain",
        "grave_yard",
        "grit_bin",
        "hunting_stand",
        "loading_dock",
        "lounger",
        "motorcycle_parking",
        "parking",
        "parking_entrance",
        "parking_space",
        "payment_terminal",
        "photo_booth",
        "post_box",
        "public_bookcase",
        "recycling",
        "sanitary_dump_station",
        "shelter",
        "shower",
        "telephone",
        "toilets",
        "vending_machine",
        "waste_basket",
        "waste_disposal",
        "waste_transfer_station",
        "water_point",
        "watering_place",
        "weighbridge",
        "no",
        "yes",
        "none",
    ]
)
_GONE = frozenset({"no", "vacant", "disused", "abandoned"})
_MASTS = frozenset(
    {"mast", "communications_tower", "antenna", "MDF", "telephone_office", "telephone_exchange"}
)
_TELECOM = frozenset({"exchange", "central_office", "data_center", "data_centre", "antenna", "bts"})
PLACE_TAGS: dict[str, bool | list[str]] = {
    "amenity": True,
    "shop": True,
    "office": True,
    "man_made": sorted(_MASTS),
    "telecom": sorted(_TELECOM),
    "tower:type": ["communication"],
}
"""What to ask a map service for; `place_kind` then decides."""

_SAME_KIND_M = 50.0
_SAME_NAME_M = 100.0


def place_kind(tags: dict[str, str]) -> str | None:
    """Return the tag that makes a mapped thing a place, ``"key=value"``, or None.

    Masts and exchanges come first, then amenities, shops and offices; benches, bins and parking are no places.

    Parameters
    ----------
    tags
        Tags of the thing.
    """
    made = tags.get("man_made", "")
    if made in _MASTS:
        return f"man_made={made}"
    if tags.get("telecom") in _TELECOM:
        return f"telecom={tags['telecom']}"
    if tags.get("tower:type") == "communication":
        return "man_made=communications_tower"
    amenity = tags.get("amenity", "no")
    if amenity not in _FURNITURE:
        return f"amenity={amenity}"
    for key in ("shop", "office"):
        if tags.get(key, "no") not in _GONE:
            return f"{key}={tags[key]}"
    return None


def is_place(tags: dict[str, str]) -> bool:
    """Return whether a mapped thing is a place.

    Parameters
    ----------
    tags
        Tags of the thing.
    """
    return place_kind(tags) is not None


def place_table(xy: NDArray[np.float64], tags: list[dict[str, str]]) -> PlaceTable:
    """Return places as a table.

    Parameters
    ----------
    xy
        Positions [m], shape (P, 2).
    tags
        Tags of each, P of them.
    """
    kinds = np.array([place_kind(item) or "" for item in tags], dtype=object)
    names = np.array([item.get("name", "") for item in tags], dtype=object)
    return PlaceTable(np.asarray(xy, dtype=np.float64).reshape(-1, 2), kinds, names)


def merge_places(base: PlaceTable, other: PlaceTable) -> tuple[PlaceTable, int]:
    """Return the places of both tables, those in both once, and how many were in both.

    Two are the same place if they are of one kind within 50 m of each other, or bear one name within 100 m. Each
    place stands for at most one of the other table, the nearest.

    Parameters
    ----------
    base
        Places that stay as they are.
    other
        Places to add.
    """
    from scipy.spatial import cKDTree

    if not len(base) or not len(other):
        return (base if len(base) else other), 0
    pairs = cKDTree(base.xy).sparse_distance_matrix(cKDTree(other.xy), _SAME_NAME_M, output_type="ndarray")
    taken_base: set[int] = set()
    taken_other: set[int] = set()
    for left, right, distance in np.sort(pairs, order=["v", "i", "j"]).tolist():
        one_kind = base.kind[left] == other.kind[right] and distance <= _SAME_KIND_M
        one_name = bool(base.name[left]) and base.name[left] == other.name[right]
        if (one_kind or one_name) and left not in taken_base and right not in taken_other:
            taken_base.add(left)
            taken_other.add(right)
    fresh = np.array([index not in taken_other for index in range(len(other))], dtype=bool)
    merged = PlaceTable(
        np.concatenate([base.xy, other.xy[fresh]]),
        np.concatenate([base.kind, other.kind[fresh]]),
        np.concatenate([base.name, other.name[fresh]]),
    )
    return merged, len(taken_other)
