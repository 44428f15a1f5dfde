"""Checks of what is given to the engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.errors import GeoEdgeError

__all__ = ["known", "spread", "table"]

Floats = npt.NDArray[np.float64]


def known(name: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return a name that is one of those allowed."""
    if value not in allowed:
        msg = f"`{name}` must be one of {allowed}, not {value!r}"
        raise GeoEdgeError(msg)
    return value


def spread(name: str, values: npt.ArrayLike, n: int) -> npt.NDArray[np.generic]:
    """Return one value or one for each site as a column of all sites."""
    if np.shape(values) not in ((), (n,)):
        msg = f"`{name}` must be one value or one for each of {n} sites, not of shape {np.shape(values)}"
        raise GeoEdgeError(msg)
    return np.array(np.broadcast_to(values, n))


def table(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a table of nonnegative numbers of a given shape."""
    found = np.array(values, dtype=np.float64)
    if found.shape != shape:
        msg = f"`{name}` must have shape {shape}, not {found.shape}"
        raise GeoEdgeError(msg)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        msg = f"`{name}` must be finite numbers >= 0"
        raise GeoEdgeError(msg)
    return found
