"""Which column of a file of sites is what: names that publishers use, and names that a user gives.

The columns of cell lists are those that OpenCelliD and the Mozilla Location Service agreed on (ichnaea's
documentation, "Data Import / Export"); OpenCelliD's downloads leave the header out. ACMA's are those of ``site.csv``
in the register of radiocommunications licences, ANFR's those of the observatoire (``adm_lb_nom``, ``coordonnees``) and
of ``SUP_SUPPORT.txt`` (degrees, minutes and seconds in columns of their own).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from geoedge.errors import CityError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "CELL_HEADER",
    "CELL_ROLES",
    "DEGREE_PARTS",
    "LAT_NAMES",
    "LON_NAMES",
    "ROLES",
    "find_columns",
    "format_name",
    "given_columns",
    "is_cell_record",
    "plain_name",
]

CELL_HEADER = (
    *("radio", "mcc", "net", "area", "cell", "unit", "lon", "lat", "range"),
    *("samples", "changeable", "created", "updated", "averagesignal"),
)
"""The columns of a cell list in their order."""

CELL_ROLES = ("radio", "mcc", "net", "area", "cell")
"""What identifies a cell."""

LON_NAMES = ("lon", "lng", "long", "longitude", "x", "lon_deg", "wgs84_lon", "longitud", "lon_wgs84")
LAT_NAMES = ("lat", "latitude", "y", "lat_deg", "wgs84_lat", "latitud", "lat_wgs84")
EAST_NAMES = ("easting", "east", "x_coord", "coord_x", "xcoord", "point_x", "x_m", "x_lambert_93", "x_l93")
NORTH_NAMES = ("northing", "north", "y_coord", "coord_y", "ycoord", "point_y", "y_m", "y_lambert_93", "y_l93")

DEGREE_PARTS = {
    "lon": ("cor_nb_dg_lon", "cor_nb_mn_lon", "cor_nb_sc_lon", "cor_cd_ew_lon"),
    "lat": ("cor_nb_dg_lat", "cor_nb_mn_lat", "cor_nb_sc_lat", "cor_cd_ns_lat"),
}
"""ANFR's degrees, minutes, seconds and hemisphere."""

ROLES: dict[str, tuple[str, ...]] = {
    "lon": LON_NAMES,
    "lat": LAT_NAMES,
    "name": ("name", "site", "site_id", "id", "enb", "label", "site_name", "nom_site", "sup_id"),
    "profile": ("profile",),
    "operator": (
        "operator",
        "adm_lb_nom",
        "carrier",
        "provider",
        "network",
        "operateur",
        "nom_op",
        "licensee",
    ),
    "radio": ("radio", "generation", "technology", "technologie", "tech", "rat", "emr_lb_systeme", "system"),
    "id": ("site_id", "siteid", "sup_id", "enb", "enb_id", "enodeb", "enodeb_id", "gnb_id", "id_site"),
    "mcc": ("mcc",),
    "net": ("net", "mnc"),
    "area": ("area", "lac", "tac"),
    "cell": ("cell", "cid", "cellid", "cell_id", "ci", "eci", "nci"),
    "samples": ("samples",),
    "status": ("statut", "status"),
}
"""What a column may be, and the names by which it is known; a user may name it otherwise."""

PAIR_NAMES = ("coordonnees", "geo_point_2d", "geo_point", "lat_lon", "latlon", "latlong")
"""Columns that hold latitude and longitude with a comma between."""

RADIO_WORDS = ("GSM", "UMTS", "LTE", "CDMA", "NR", "WCDMA", "NBIOT")


def plain_name(text: str) -> str:
    """Return a column's name in small ASCII letters, digits and underscores.

    Parameters
    ----------
    text
        The name as it is written.
    """
    letters = unicodedata.normalize("NFKD", text.casefold())
    return re.sub(r"[^a-z0-9]+", "_", "".join(c for c in letters if not unicodedata.combining(c))).strip("_")


def given_columns(columns: Mapping[str, str] | str | None) -> dict[str, str]:
    """Return the columns that a user names, by role.

    Parameters
    ----------
    columns
        ``"lon=LONGITUDE,lat=LATITUDE"``, or the same as a mapping; a number is a position, the first being 1.

    Raises
    ------
    CityError
        If it is written otherwise, or a role is unknown.
    """
    if columns is None:
        return {}
    pairs = (
        [part.partition("=")[::2] for part in columns.split(",") if part.strip()]
        if isinstance(columns, str)
        else list(columns.items())
    )
    roles = [role.strip() for role, _ in pairs]
    if repeated := [role for role in roles if roles.count(role) > 1]:
        msg = (
            f"`columns` names {repeated[0]!r} {roles.count(repeated[0])} times; name one column for each role"
        )
        raise CityError(msg)
    found = {role.strip(): str(name).strip() for role, name in pairs}
    for role, name in found.items():
        if role not in ROLES or not name:
            msg = f"`columns` has {role!r} = {name!r}; write ROLE=COLUMN with roles among {', '.join(ROLES)}, such as lon=LONGITUDE,lat=LATITUDE"
            raise CityError(msg)
    return found


def is_cell_record(fields: Sequence[str]) -> bool:
    """Return whether these are the fields of a cell, as in a cell list without header.

    Parameters
    ----------
    fields
        The fields of the first record.
    """
    if len(fields) != len(CELL_HEADER) or fields[0].strip().upper() not in RADIO_WORDS:
        return False
    return all(re.fullmatch(r"-?\d+", field.strip()) for field in fields[1:5]) and all(
        re.fullmatch(r"-?\d+(\.\d*)?([eE][+-]?\d+)?", field.strip()) for field in fields[6:8]
    )


def find_columns(
    source: object, header: Sequence[str], given: Mapping[str, str], *, projected: bool = False
) -> dict[str, int]:
    """Return the position of each column that is known, by role; ``"pair"`` is latitude and longitude in one.

    Parameters
    ----------
    source
        Where the header is from, for the error.
    header
        Names of the columns.
    given
        Columns that the user names, by role.
    projected
        Whether coordinates are those of a projected CRS, so that eastings come before longitudes.

    Raises
    ------
    CityError
        If a column that the user names is not there, or is named for two roles.
    """
    plain = [plain_name(name) for name in header]
    names = dict(ROLES)
    for role, others in (("lon", EAST_NAMES), ("lat", NORTH_NAMES)):
        names[role] = others + names[role] if projected else names[role] + others
    found = {role: _position(source, header, name) for role, name in given.items()}
    for role, known in names.items():
        at = next((plain.index(name) for name in known if name in plain), None)
        if role not in found and at is not None:
            found[role] = at
    _check_shared(source, header, given, found)
    if not {"lon", "lat"} <= set(found):
        at = next((plain.index(name) for name in PAIR_NAMES if name in plain), None)
        if at is not None:
            found["pair"] = at
    return found


def _check_shared(
    source: object, header: Sequence[str], given: Mapping[str, str], found: Mapping[str, int]
) -> None:
    """Refuse one column for two roles of the user's, or for both coordinates; a site's id may be its name."""
    asked = [role for role in found if role in given or role in ("lon", "lat")]
    for k, role in enumerate(asked):
        for other in asked[:k]:
            chosen = role in given or other in given
            if chosen and found[role] == found[other] and {role, other} != {"name", "id"}:
                msg = f"{source}: `columns` takes {header[found[role]]!r} for {other} and {role}; name another column for one of them"
                raise CityError(msg)


def _position(source: object, header: Sequence[str], name: str) -> int:
    plain = [plain_name(each) for each in header]
    if name in header:
        return list(header).index(name)
    if plain_name(name) and plain_name(name) in plain:
        return plain.index(plain_name(name))
    if name.isdecimal() and 1 <= int(name) <= len(header):
        return int(name) - 1
    msg = f"{source}: `columns` names {name!r}, but there are {', '.join(header[:12])}; name one of them, or its number"
    raise CityError(msg)


def format_name(header: Sequence[str], *, headless: bool = False) -> str:
    """Return what a table of sites is, in words, from its header.

    Parameters
    ----------
    header
        Names of the columns.
    headless
        Whether they are not in the file.
    """
    plain = {plain_name(name) for name in header}
    if set(CELL_HEADER[:8]) <= plain:
        if headless:
            return "OpenCelliD list of cells without header"
        return "list of cells as OpenCelliD and the Mozilla Location Service write it"
    if {"site_id", "latitude", "longitude"} <= plain and plain & {
        "licensing_area_id",
        "site_precision",
        "hcis_l2",
    }:
        return "ACMA list of sites"
    if set(DEGREE_PARTS["lon"] + DEGREE_PARTS["lat"]) <= plain:
        return "ANFR list of supports"
    if "adm_lb_nom" in plain and "sup_id" in plain:
        return "ANFR list of transmitters (observatoire)"
    return "table"
