"""Whom a map is owed to: words and the addresses they link to, empty for plain words."""

from __future__ import annotations

from geoedge.texts import plain_text

__all__ = ["ODBL_CREDIT", "map_credit"]

ODBL_CREDIT = (
    ("© OpenStreetMap contributors", "https://www.openstreetmap.org/copyright"),
    (", data available under the ", ""),
    ("Open Database License (ODbL) 1.0", "https://opendatacommons.org/licenses/odbl/1-0/"),
)
"""The credit that data from OpenStreetMap asks for."""


def map_credit(attribution: str, extract_date: str) -> list[tuple[str, str]]:
    """Return the credit of a city's map with the date of its extract.

    Parameters
    ----------
    attribution
        Whose data it is, as the city states it.
    extract_date
        Of when the data are; empty or ``unknown`` where nobody said.
    """
    known = extract_date not in ("", "unknown")
    date = f"; extract of {plain_text(extract_date)}" if known else "; date of extract unknown"
    if "OpenStreetMap" in attribution:
        return [*ODBL_CREDIT, (date, "")]
    return [(plain_text(attribution, 300) + date, "")]
