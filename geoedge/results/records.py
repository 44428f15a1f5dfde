"""What a run keeps of every request: the columns of its records, and what a request is at the horizon."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["RECORD_COLUMNS", "STATUS"]

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
