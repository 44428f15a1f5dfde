"""A run as its page takes it: columns of sites and epochs as little text, from which the page draws every epoch itself."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from geoedge.maps.levels import LevelScale, encode_digits
from geoedge.maps.wire import encode_point
from geoedge.maps.words import byte_count, clock, percent
from geoedge.texts import plain_text

if TYPE_CHECKING:
    from geoedge.city import City
    from geoedge.policies import Policy
    from geoedge.workload import Workload

__all__ = [
    "association",
    "by_epoch",
    "by_site",
    "day_totals",
    "each",
    "event_rows",
    "ground",
    "moves",
    "profile_contents",
    "profiles_held",
    "site_columns",
    "site_load",
    "site_names",
    "site_places",
]

Floats = NDArray[np.float64]

SHARES = ("utilization",)
COUNTS = ("requests", "missed")
TIMES = ("offered_load", "mean_wait_s", "advertised_wait_s", "prefill_s_per_s")
EVENT_WORDS = {
    "flash_crowd": "Crowd",
    "site_failure": "Sites fail",
    "backhaul_loss": "Backhaul loss",
    "catalogue_partition": "Catalogue cut off",
    "controller_down": "Controller down",
    "popularity_drift": "Popularity drifts",
    "prefix_update": "New prefix version",
}
LONGEST_REASON = 600
"""Characters of a move's reason that are shown."""


def site_names(sites: pd.DataFrame) -> list[str]:
    """Return what each site is called, shape (n,)."""
    pairs = zip(sites["name"], sites["site"], strict=True)
    return [plain_text(name) or f"Site {site}" for name, site in pairs]


def site_places(sites: pd.DataFrame) -> list[list[int]]:
    """Return where each site is, as `wire` encodes places."""
    return [encode_point(place) for place in sites[["lon", "lat"]].to_numpy(dtype=np.float64)]


def by_epoch(table: pd.DataFrame) -> Iterator[tuple[int, pd.DataFrame]]:
    """Yield the epochs of a table in order, and the rows of each."""
    for epoch in sorted(set(table["epoch"].tolist())):
        yield int(epoch), table[table["epoch"] == epoch]


def each(rows: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a table as named tuples."""
    return iter(rows.itertuples(index=False))


def by_site(epochs: pd.DataFrame, name: str) -> Floats:
    """Return a column of the table of epochs, shape (epochs, n)."""
    ordered = epochs.sort_values(["epoch", "site"], kind="stable")
    values = ordered[name].to_numpy(dtype=np.float64)
    return values.reshape(ordered["epoch"].nunique(), -1)


def site_columns(epochs: pd.DataFrame) -> dict[str, Any]:
    """Return what is known of every site and epoch, as the page takes it.

    Parameters
    ----------
    epochs
        One row an epoch and site: epoch, site, profile, requests, missed, utilization, offered_load, mean_wait_s,
        advertised_wait_s, prefill_s_per_s.
    """
    columns = {}
    for name in (*SHARES, *COUNTS, *TIMES):
        values = by_site(epochs, name)
        if name in TIMES:
            scale = LevelScale.times(values)
        else:
            scale = LevelScale.counts(values) if name in COUNTS else LevelScale.shares()
            values = np.clip(values, 0.0, 1.0) if name in SHARES else values
        columns[name] = {"scale": scale.described(), "epochs": [scale.encode(row) for row in values]}
    return columns


def site_load(rows: pd.DataFrame) -> NDArray[np.float64]:
    """Return the load that colours each site: its utilisation, or what is asked of it where that is beyond capacity.

    Parameters
    ----------
    rows
        One row a site: utilization, offered_load; a site that has neither counts as idle.
    """
    offered = rows["offered_load"].to_numpy(dtype=np.float64)
    used = rows["utilization"].to_numpy(dtype=np.float64)
    return np.nan_to_num(np.where(offered >= 1, offered, used), posinf=np.inf)


def profiles_held(epochs: pd.DataFrame) -> list[str]:
    """Return the profile of every site in every epoch, one text an epoch."""
    return [encode_digits(row.astype(np.int64)) for row in by_site(epochs, "profile")]


def profile_contents(workload: Workload, prefixes: Sequence[Sequence[str]]) -> list[str]:
    """Return in words what each profile keeps.

    Parameters
    ----------
    workload
        The workload, for the memory.
    prefixes
        Names of the prefixes of each profile.
    """
    sizes = workload.persistent_bytes.tolist()
    return [
        f"{' + '.join(plain_text(name, 30) for name in names)}, {byte_count(size)}" if names else "no prefix"
        for names, size in zip(prefixes, sizes, strict=True)
    ]


def association(
    policy: Policy, prefill_s: Floats, radio_coefficient: float, radio_exponent: float
) -> dict[str, Any]:
    """Return the rule by which the page finds who serves a place.

    Parameters
    ----------
    policy
        Routing policy; what stands for it in closed form counts prefill, wait, both or neither.
    prefill_s
        Prefill time of every profile and request type [s], shape (S, Q).
    radio_coefficient, radio_exponent
        Radio delay ξ [s/km^α] and α of the distance.
    """
    one, none = np.ones((1, 1)), np.zeros((1, 1))
    return {
        "counts_prefill": bool(policy(one, none[0])[0, 0]),
        "counts_wait": bool(policy(none, one[0])[0, 0]),
        "prefill_s": [[round(t, 6) if np.isfinite(t) else None for t in row] for row in prefill_s.tolist()],
        "radio_coefficient": radio_coefficient,
        "radio_exponent": radio_exponent,
    }


def ground(city: City) -> dict[str, Any]:
    """Return the polynomial of second degree that takes longitude and latitude [degree] to the city's metres.

    Over a city it is exact to well below a metre.

    Parameters
    ----------
    city
        The city.
    """
    west, south, east, north = city.bounds_lonlat
    centre = np.array([(west + east) / 2, (south + north) / 2])
    half = np.array([(east - west) / 2, (north - south) / 2]) * 1.2
    u, v = (axis.ravel() for axis in np.meshgrid(*(np.linspace(-h, h, 9) for h in half)))
    terms = np.column_stack([np.ones_like(u), u, v, u * u, u * v, v * v])
    xy = city.from_lonlat(np.column_stack([u, v]) + centre)
    found = np.linalg.lstsq(terms, xy, rcond=None)[0]
    return {"centre": centre.tolist(), "x": found[:, 0].tolist(), "y": found[:, 1].tolist()}


def day_totals(epochs: pd.DataFrame, actions: pd.DataFrame) -> dict[str, Any]:
    """Return requests, share in time and number of moves of every epoch.

    Parameters
    ----------
    epochs
        One row an epoch and site: epoch, requests, missed.
    actions
        One row an action: epoch.
    """
    requests, missed = (by_site(epochs, name).sum(axis=1) for name in ("requests", "missed"))
    count = len(requests)
    done = actions["epoch"].to_numpy(dtype=np.int64) if len(actions) else np.zeros(0, dtype=np.int64)
    return {
        "requests": requests.astype(int).tolist(),
        "coverage": [round(1 - m / r, 4) if r else None for m, r in zip(missed, requests, strict=True)],
        "moves": np.bincount(done, minlength=count)[:count].tolist(),
    }


def moves(actions: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what the controller did, with the numbers behind it.

    Parameters
    ----------
    actions
        The controller's log: epoch, action, site, partner_site (-1 for none), from_profile, to_profile,
        bytes_moved, effective_s, predicted_gain, realised_gain; and, if known, time_s, reason, horizon_gain and
        horizon_epochs.
    """
    return [
        {
            "epoch": int(row["epoch"]),
            "kind": plain_text(row["action"], 30),
            "site": int(row["site"]),
            "partner": int(row["partner_site"]),
            "from": int(row["from_profile"]),
            "to": int(row["to_profile"]),
            "bytes": float(row["bytes_moved"]),
            "time_s": _known(row.get("time_s", row["effective_s"])),
            "effective_s": _known(row["effective_s"]),
            "predicted": _known(row["predicted_gain"]),
            "realised": _known(row["realised_gain"]),
            "reason": plain_text(row.get("reason", ""), LONGEST_REASON),
            **_further(row),
        }
        for row in actions.to_dict("records")
    ]


def _further(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Return the gain by which an action was chosen, where that is not the one in the epoch that started."""
    gain = _known(row.get("horizon_gain", np.nan))
    if gain is None or gain == _known(row["predicted_gain"]):
        return {}
    return {"horizon_gain": gain, "horizon_epochs": int(row["horizon_epochs"])}


def _known(value: object) -> float | None:
    number = float(value)  # type: ignore[arg-type]
    return round(number, 6) if np.isfinite(number) else None


def event_rows(events: pd.DataFrame | None, names: Sequence[str], end_s: float) -> list[dict[str, Any]]:
    """Return what happened besides an ordinary day.

    Parameters
    ----------
    events
        One row an event: kind, start_s, end_s, lon, lat, radius_m, sites (their numbers, with blanks between), people,
        requests, coverage, detail; None if the run has no such table.
    names
        What the sites are called.
    end_s
        End of the run [s]; an event may last longer.
    """
    if events is None:
        return []
    return [_event(row, names, end_s) for row in events.to_dict("records")]


def _event(row: Mapping[Any, Any], names: Sequence[str], end_s: float) -> dict[str, Any]:
    kind = str(row["kind"])
    sites = [int(site) for site in str(row["sites"]).split()]
    start, end = float(row["start_s"]), float(row["end_s"])
    placed = np.isfinite(row["lon"]) and np.isfinite(row["lat"])
    told = [
        ["From", clock(start)],
        ["Until", clock(end) if end <= end_s else "after the run"],
        ["Sites", plain_text(", ".join(names[site] for site in sites), 200)],
        ["People", f"{int(row['people']):,}" if row["people"] else ""],
        ["Requests of theirs", f"{int(row['requests']):,}" if row["requests"] else ""],
        ["Of those in time", percent(float(row["coverage"])) if row["requests"] else ""],
        ["More", plain_text(row["detail"], 200)],
    ]
    return {
        "kind": plain_text(kind, 30),
        "title": EVENT_WORDS.get(kind, plain_text(kind.replace("_", " "), 30)),
        "start_s": start,
        "end_s": min(end, end_s),
        "place": encode_point(np.array([row["lon"], row["lat"]])) if placed else None,
        "radius_m": float(row["radius_m"]) if np.isfinite(row["radius_m"]) else 0.0,
        "sites": sites,
        "rows": told,
    }
