"""What `pairwise` and `selection` accept, and how they say no."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError

__all__ = [
    "check_plane",
    "check_radio",
    "coordinates",
    "finite_gap",
    "increasing",
    "nonnegative",
    "offset_gap",
    "refuse",
]

FloatArray = NDArray[np.float64]


def offset_gap(
    offset: ArrayLike, rival: ArrayLike, coefficient: float, *, rival_name: str = "rival_offset"
) -> FloatArray:
    """Return (β_s − β_t)/ξ, infinite where one site is overloaded."""
    one, other = np.asarray(offset, dtype=np.float64), np.asarray(rival, dtype=np.float64)
    for name, value in (("offset", one), (rival_name, other)):
        _all_fine(name, value, value > -np.inf, "seconds, infinite for an overloaded site; NaN is none")
    if (np.isinf(one) & np.isinf(other)).any():
        refuse(rival_name, "inf where `offset` is", "finite there; compare with a site that serves")
    return np.asarray((one - other) / coefficient)


def finite_gap(offset: float, rival_offset: float, coefficient: float) -> FloatArray:
    """Return (β_s − β_t)/ξ of two offsets that must be finite."""
    for name, value in (("offset", offset), ("rival_offset", rival_offset)):
        if not np.isfinite(value):
            refuse(name, value, "finite seconds; an overloaded site has no region to draw")
    return offset_gap(offset, rival_offset, coefficient)


def nonnegative(name: str, value: ArrayLike) -> FloatArray:
    """Return distances as an array, none negative or NaN."""
    array = np.asarray(value, dtype=np.float64)
    _all_fine(name, array, (array >= 0.0) & np.isfinite(array), "finite and nonnegative km")
    return array


def coordinates(name: str, value: ArrayLike) -> FloatArray:
    """Return places as an array (..., 2), all finite."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 2:
        refuse(name, f"of shape {array.shape}", "of shape (..., 2), x and y in km")
    _all_fine(name, array, np.isfinite(array), "finite km; leave out places that are not known")
    return array


def increasing(name: str, value: ArrayLike) -> FloatArray:
    """Return the coordinates of a grid, increasing and finite."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 1 or array.size < 2 or not (np.isfinite(array).all() and (np.diff(array) > 0.0).all()):
        refuse(name, f"of shape {array.shape}", "two or more increasing km in one row")
    return array


def _all_fine(name: str, value: FloatArray, fine: NDArray[np.bool_], allowed: str) -> None:
    """Refuse an array by its first value that is not fine."""
    if not np.all(fine):
        refuse(name, float(value[~np.asarray(fine)][0]), allowed)


def check_radio(coefficient: float, exponent: float) -> None:
    """Refuse a radio delay that is none."""
    if not 0.0 < coefficient < np.inf:
        refuse("delay_coefficient", coefficient, "a positive number of s/km^α")
    if not 0.0 < exponent <= 16.0:
        refuse("delay_exponent", exponent, "above 0 and at most 16")


def check_plane(coefficient: float, exponent: float, size: float, name: str) -> None:
    """Refuse what would make no boundary that this module can draw."""
    check_radio(coefficient, exponent)
    if exponent < 1.0:
        refuse(
            "delay_exponent", exponent, "at least 1 for a boundary in the plane; use `selection_owner` below"
        )
    if not 0.0 < size < np.inf:
        refuse(name, size, "a positive number of km")


def refuse(name: str, given: object, allowed: str) -> None:
    """Raise the one line of an error: where, what was given, what is allowed."""
    msg = f"two sites: `{name}` is {given}, but must be {allowed}"
    raise GeoEdgeError(msg)
