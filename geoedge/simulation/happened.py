"""The table of what happened in a run besides an ordinary day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from geoedge.scenario.toml import one_line
from geoedge.simulation.dynamics import Occurrence

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from geoedge.study import Study

__all__ = ["EVENT_COLUMNS", "Toll", "event_table"]

EVENT_COLUMNS = {
    "event": "int64",
    "number": "int64",
    "kind": "str",
    "start_s": "float64",
    "end_s": "float64",
    "lon": "float64",
    "lat": "float64",
    "x_m": "float64",
    "y_m": "float64",
    "radius_m": "float64",
    "sites": "str",
    "people": "int64",
    "requests": "int64",
    "coverage": "float64",
    "coverage_of_others": "float64",
    "rerouted": "int64",
    "restored_bytes": "float64",
    "not_restored": "int64",
    "detail": "str",
}
"""Columns of the table ``events``, one row for each thing that happened."""
KNOWN = {"known_s": "float64"}
"""Column of a run in which a failure is not known at once: when it was, NaN where it has been from the start."""
_TOLD = ("place", "detection_s", "rate_left", "prefix", "sd_per_hour", "announced")


@dataclass
class Toll:
    """What one occurrence has cost sites.

    Parameters
    ----------
    rerouted
        Requests that failed sites lost and that were sent elsewhere.
    restored_bytes
        What sites fetched again [B].
    given_up
        Sites whose profile plans had given to others meanwhile, up to the floor or the cap.
    """

    rerouted: int = 0
    restored_bytes: float = 0.0
    given_up: int = 0


def event_table(
    study: Study,
    happening: Sequence[Occurrence],
    first_of_crowd: Mapping[int, int],
    tolls: Mapping[Occurrence, Toll],
    records: pa.Table,
    tau: float,
) -> pd.DataFrame:
    """Return one row for each thing that happened, in order of its beginning.

    ``coverage`` is that of a crowd's own requests, ``coverage_of_others`` that of all others made while the event
    lasted; ``rerouted``, ``restored_bytes`` and ``not_restored`` are the numbers of its `Toll`.

    Parameters
    ----------
    study
        The study.
    happening
        What happened.
    first_of_crowd
        Number of the first person of each crowd, by the row of its occurrence.
    tolls
        What each has cost.
    records
        Records of the run.
    tau
        TTFT target [s].
    """
    created, user, ttft = (records.column(name).to_numpy() for name in ("created_s", "user", "ttft_s"))
    late = any(one.detection_s > 0.0 for one in happening)
    rows = [
        _row(study, one, first_of_crowd.get(k, -1), tolls.get(one, Toll()), created, user, ttft <= tau)
        | ({"known_s": one.known_s if one.detection_s > 0.0 else np.nan} if late else {})
        for k, one in enumerate(happening)
    ]
    columns = EVENT_COLUMNS | (KNOWN if late else {})
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def _row(
    study: Study,
    one: Occurrence,
    first: int,
    toll: Toll,
    created: NDArray[Any],
    user: NDArray[Any],
    in_time: NDArray[Any],
) -> dict[str, Any]:
    nowhere = np.full((1, 2), np.nan)
    xy = nowhere if one.xy is None else one.xy[None]
    lonlat = nowhere if one.xy is None else study.city.to_lonlat(xy)
    people = one.crowd.people if one.crowd is not None else 0
    mine = (user >= first) & (user < first + people)
    during = (created >= one.start_s) & (created < one.end_s)
    return {
        "event": one.event,
        "number": one.number,
        "kind": one.kind,
        "start_s": one.start_s,
        "end_s": one.end_s,
        "lon": lonlat[0, 0],
        "lat": lonlat[0, 1],
        "x_m": xy[0, 0],
        "y_m": xy[0, 1],
        "radius_m": one.radius_m,
        "sites": " ".join(str(site) for site in one.sites),
        "people": people,
        "requests": int(mine.sum()),
        "coverage": _mean(in_time[mine]),
        "coverage_of_others": _mean(in_time[during & ~mine]),
        "rerouted": toll.rerouted,
        "restored_bytes": toll.restored_bytes,
        "not_restored": toll.given_up,
        "detail": _detail(study, one),
    }


def _detail(study: Study, one: Occurrence) -> str:
    """Return what there is to say beyond the columns."""
    event = study.scenario.dynamics.events[one.event]
    given = {key: value for key, value in event.given().items() if key in _TOLD}
    if event.types is not None:
        given["types"] = " ".join(f"{each.name} {each.weight:g}" for each in event.types)
    return one_line(", ".join(f"{key} = {value}" for key, value in given.items()))


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if values.size else float("nan")
