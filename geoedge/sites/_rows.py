"""Rows of a file of sites, whatever the file: where each is and what is written beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import CityError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SiteRows", "check_metres", "counted", "integers", "numbers", "to_degrees"]

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?$"
WHOLE = r"^\d{1,18}(\.0*)?$"


@dataclass(frozen=True, eq=False)
class SiteRows:
    """Rows of a file.

    Parameters
    ----------
    format
        What the file is, in words.
    lonlat
        Longitude and latitude [degree], NaN where there is none, shape (n, 2).
    texts
        Columns of text by role (name, profile, operator, radio, id, …), arrow arrays of length n.
    malformed
        Rows with too many fields, or too few in a format that has a fixed number, shape (n,).
    text
        Returns a row as it stands in the file.
    columns
        Which column of the file was taken for what.
    facts
        What else was recognised: delimiter, encoding, CRS.
    notes
        What is wrong with the file as a whole, or was assumed.
    stated_crs
        Whether a CRS was stated, so that coordinates are not what somebody took for degrees.
    lines
        Whether rows are lines of text, which are quick to compare.
    """

    format: str
    lonlat: NDArray[np.float64]
    texts: dict[str, Any]
    malformed: NDArray[np.bool_]
    text: Callable[[int], str]
    columns: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stated_crs: bool = False
    lines: bool = False
    _whole: dict[str, NDArray[np.int64]] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.lonlat)

    @property
    def is_cells(self) -> bool:
        """Whether rows are cells of a mobile network, several of which make a site."""
        return {"radio", "mcc", "net", "area", "cell"} <= set(self.texts)

    def whole(self, role: str) -> NDArray[np.int64]:
        """Return a column of whole numbers, −1 for what is none, shape (n,).

        Parameters
        ----------
        role
            The column.
        """
        if role not in self._whole:
            self._whole[role] = integers(self.texts[role])
        return self._whole[role]

    def take(self, role: str, rows: NDArray[np.int64]) -> list[str]:
        """Return the texts of some rows, empty where the file has no such column."""
        import pyarrow as pa

        if role not in self.texts:
            return [""] * len(rows)
        taken: list[str] = self.texts[role].take(pa.array(rows)).to_pylist()
        return taken


def check_metres(source: object, xy: NDArray[np.float64], crs: Any) -> None:
    """Refuse degrees that are said to be metres.

    Parameters
    ----------
    source
        Where they are from.
    xy
        Eastings and northings as they are written, shape (n, 2).
    crs
        The CRS that the user names.

    Raises
    ------
    CityError
        If it is projected in metres or feet, and every place could be degrees.
    """
    known = xy[np.isfinite(xy).all(axis=1)]
    if not len(known) or not crs.is_projected or crs.axis_info[0].unit_conversion_factor > 1.0:
        return
    if (np.abs(known) <= (180.0, 90.0)).all():
        msg = (
            f"{source}: `crs` = {crs.to_string()!r} counts metres, but all coordinates are within ±180 and ±90 and look like "
            "degrees; leave the CRS out, or name EPSG:4326"
        )
        raise CityError(msg)


def counted(count: int, noun: str) -> str:
    """Return a count and its noun, such as 1 row and 2 rows.

    Parameters
    ----------
    count
        How many.
    noun
        What, as one of it is called.
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def numbers(texts: Any) -> NDArray[np.float64]:
    """Return numbers written with point or comma, NaN for what is none.

    Parameters
    ----------
    texts
        Arrow array of text, shape (n,).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.replace_substring(pc.utf8_trim_whitespace(texts), ",", ".")
    plain = pc.if_else(pc.match_substring_regex(plain, NUMBER), plain, pa.scalar(None, pa.string()))
    plain = pc.replace_substring_regex(plain, r"^\+", "")
    found = np.array(pc.cast(plain, pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
    found[~np.isfinite(found)] = np.nan
    return found


def integers(texts: Any) -> NDArray[np.int64]:
    """Return whole numbers, −1 for what is none.

    Parameters
    ----------
    texts
        Arrow array of text, shape (n,).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = pc.utf8_trim_whitespace(texts)
    plain = pc.if_else(pc.match_substring_regex(plain, WHOLE), plain, "-1")
    whole = pc.replace_substring_regex(plain, r"\.0*$", "")
    return np.array(pc.cast(whole, pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)


def to_degrees(xy: NDArray[np.float64], crs: Any) -> NDArray[np.float64]:
    """Return longitude and latitude [degree] of points of a CRS, NaN where it has no such point, shape (n, 2).

    Parameters
    ----------
    xy
        Eastings and northings in the unit of the CRS, shape (n, 2).
    crs
        The CRS.
    """
    from pyproj import Transformer

    found = np.column_stack(Transformer.from_crs(crs, "EPSG:4326", always_xy=True).transform(*xy.T))
    found[~np.isfinite(found).all(axis=1)] = np.nan
    return found
