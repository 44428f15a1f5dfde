"""What a run keeps of requests and of trips: the columns, what a request is at the horizon, and whose trips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PATH_COLUMNS", "RECORD_COLUMNS", "REDIRECT", "STATUS", "evenly", "followed"]

STATUS = ("served", "in_service", "waiting", "in_flight", "rejected")
"""What a request is at the horizon; the column ``status`` holds the index."""

RECORD_COLUMNS: Mapping[str, str] = {
    "created_s": "float64",
    "user": "int32",
    "request_type": "int16",
    "activity": "int8",
    "x_m": "float64",
    "y_m": "float64",
    "epoch": "int16",
    "site": "int32",
    "profile": "int16",
    "hit_tokens": "int32",
    "distance_km": "float64",
    "radio_s": "float64",
    "arrived_s": "float64",
    "started_s": "float64",
    "wait_s": "float64",
    "prefill_s": "float64",
    "ttft_s": "float64",
    "first_token_s": "float64",
    "finished_s": "float64",
    "redirects": "int16",
    "status": "int8",
}
"""Columns of a run's records, one row a request, and their types; instants and times in seconds."""

REDIRECT = "redirect_s"
"""Column of records besides, where redirections take time: that time, part of the TTFT and not of ``wait_s`` [s]."""

PATH_COLUMNS: Mapping[str, str] = {
    "user": "int32",
    "trip": "int32",
    "mode": "str",
    "from_activity": "str",
    "to_activity": "str",
    "depart_s": "float64",
    "arrive_s": "float64",
    "length_m": "float64",
    "time_s": "float64",
    "x_m": "float64",
    "y_m": "float64",
}
"""Columns of the table ``paths``, one row a vertex of a trip, and their types; all up to the length are of the trip."""

_FOLLOWED = 100


def followed(residents: int) -> NDArray[np.int64]:
    """Return whose trips a run keeps: a hundred residents at most, evenly over all, who live in no order.

    Parameters
    ----------
    residents
        Number of residents.
    """
    return evenly(residents, _FOLLOWED)


def evenly(count: int, number: int) -> NDArray[np.int64]:
    """Return indices evenly over all, in order: all of them, or as many as are wanted.

    Parameters
    ----------
    count
        How many there are.
    number
        How many are wanted.
    """
    return np.unique(np.linspace(0, count - 1, min(number, count)).round().astype(np.int64))
