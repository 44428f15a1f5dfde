"""Cells of a mobile network: what makes one impossible, which technology it is, and which site it belongs to.

A cell is known by operator (mcc, net), area and cell. E-UTRA cell identities have 28 bits, of which the upper 20 are
the eNodeB (3GPP TS 36.413); NR cell identities have 36 bits, of which the upper 22 to 32 are the gNB, as the operator
pleases (TS 38.413), 24 being assumed here. GSM and UMTS cells do not name their site. Areas have 16 bits, those of NR
24; none is all zeros, nor all ones but for the last bit (TS 24.301 and 24.501, tracking area identity), and lists write
65535 where an area of 16 bits is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.sites._rows import SiteRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["RADIOS", "cell_faults", "cell_keys", "radio_name", "repeated_cells"]

RADIOS = {
    "GSM": ("GSM", "2G", "GPRS", "EDGE"),
    "CDMA": ("CDMA",),
    "UMTS": ("UMTS", "WCDMA", "3G", "HSPA"),
    "LTE": ("LTE", "4G", "NBIOT", "EUTRA"),
    "NR": ("NR", "5G"),
}
"""Technologies and what they are called, from old to new; a list such as ``"LTE 800"`` begins with its name."""

CELL_BITS = {"GSM": 16, "CDMA": 16, "UMTS": 28, "LTE": 28, "NR": 36}
AREA_BITS = {"NR": 24}
SITE_BITS = {"LTE": 8, "NR": 12}
"""Bits of a cell's identity that number the cells of one site."""
COUNTRIES = (200, 799)
INTERNATIONAL = 901
LARGEST_NETWORK = {"CDMA": 32767}


def radio_name(text: str) -> str:
    """Return a technology by the name it has here, empty for an unknown one.

    Parameters
    ----------
    text
        What is written: ``"lte"``, ``"4G"``, ``"LTE 800"``, ``"5G NR 3500"``.
    """
    words = text.upper().replace("-", "").split()
    for word in words[:2]:
        for name, known in RADIOS.items():
            if word in known:
                return name
    return ""


def radio_names(texts: Any) -> NDArray[np.object_]:
    """Return the technology of each row.

    Parameters
    ----------
    texts
        Arrow array of text, shape (n,).
    """
    coded = texts.dictionary_encode()
    names = np.array([radio_name(text) for text in coded.dictionary.to_pylist()] or [""], dtype=object)
    return names[coded.indices.to_numpy(zero_copy_only=False)] if len(coded) else np.empty(0, dtype=object)


def cell_faults(rows: SiteRows, radio: NDArray[np.object_]) -> dict[str, NDArray[np.bool_]]:
    """Return which cells cannot be, by the reason.

    Parameters
    ----------
    rows
        Rows of a cell list.
    radio
        Technology of each row, shape (n,).
    """
    mcc, net, area, cell = (rows.whole(role) for role in ("mcc", "net", "area", "cell"))
    bits, areas = _by_radio(radio, CELL_BITS, 28), 2 ** _by_radio(radio, AREA_BITS, 16)
    country = ((mcc >= COUNTRIES[0]) & (mcc <= COUNTRIES[1])) | (mcc == INTERNATIONAL)
    return {
        "bad_radio": radio == "",
        "bad_operator": ~country | (net < 0) | (net > _by_radio(radio, LARGEST_NETWORK, 999)),
        "bad_area": (area <= 0) | (area >= areas) | (area == areas - 2) | ((area == 65535) & (radio != "NR")),
        "bad_cell": (cell <= 0) | (cell >= 2**bits),
    }


def _by_radio(radio: NDArray[np.object_], values: dict[str, int], other: int) -> NDArray[np.int64]:
    """Return the value of each row's technology."""
    found = np.full(len(radio), other, dtype=np.int64)
    for name, value in values.items():
        found[radio == name] = value
    return found


def repeated_cells(
    rows: SiteRows, radio: NDArray[np.object_], chosen: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """Return which rows repeat a cell of another row, by the reason; that with most samples stays, or the first.

    Parameters
    ----------
    rows
        Rows of a cell list.
    radio
        Technology of each row, shape (n,).
    chosen
        The rows to look at.
    """
    import pandas as pd

    table = pd.DataFrame({role: rows.whole(role)[chosen] for role in ("mcc", "net", "area", "cell")})
    table["radio"] = radio[chosen]
    samples = rows.whole("samples")[chosen] if "samples" in rows.texts else np.zeros(len(chosen))
    order = np.argsort(-samples, kind="stable")
    table = table.iloc[order]
    same_cell = table.duplicated(["mcc", "net", "area", "cell"]).to_numpy()
    same_radio = table.duplicated().to_numpy()
    at = chosen[order]
    return {"duplicate": np.sort(at[same_radio]), "two_radios": np.sort(at[same_cell & ~same_radio])}


def cell_keys(
    rows: SiteRows, radio: NDArray[np.object_], chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Return a number for the site that each cell names, −1 where it names none, and how many did, by technology.

    Parameters
    ----------
    rows
        Rows of a cell list.
    radio
        Technology of each row, shape (n,).
    chosen
        The rows to look at.
    """
    import pandas as pd

    kind = radio[chosen]
    cell = rows.whole("cell")[chosen]
    names = np.isin(kind, list(SITE_BITS))
    table = pd.DataFrame(
        {
            "mcc": rows.whole("mcc")[chosen],
            "net": rows.whole("net")[chosen],
            "radio": kind,
            "site": cell >> _by_radio(kind, SITE_BITS, 0),
        }
    )
    key = table.groupby(list(table.columns), sort=False).ngroup().to_numpy(dtype=np.int64)
    counts = {name: int((kind == name).sum()) for name in RADIOS}
    return np.where(names, key, -1), {name: count for name, count in counts.items() if count}
