"""What happened in a run besides an ordinary day, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.units import GB, clock

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["happenings"]

MOST_TOLD = 3
"""Events of one kind that get a sentence each; of more, their sums and means are told."""
MOST_NUMBERS = 6
"""Sites that are named by their numbers; more are counted."""
BRIEF_S = 600.0
"""An event shorter than this [s] is told to the second, unless it keeps to whole minutes."""
_NAMES = {
    "flash_crowd": ("flash crowd", "flash crowds"),
    "site_failure": ("site failure", "site failures"),
    "backhaul_loss": ("loss of backhaul", "losses of backhaul"),
    "catalogue_partition": ("catalogue partition", "catalogue partitions"),
    "controller_down": ("absence of the controller", "absences of the controller"),
    "popularity_drift": ("drift of popularity", "drifts of popularity"),
    "prefix_update": ("new version of a prefix", "new versions of prefixes"),
}


def happenings(events: pd.DataFrame, sites: int | None = None, horizon_s: float = np.inf) -> Iterator[str]:
    """Yield what the table of events of a run says, a sentence each, in plain text without names from maps.

    Parameters
    ----------
    events
        Table ``events`` of a run.
    sites
        Number of sites of the run, so that an event of all of them can be told as such.
    horizon_s
        End of the run, so that what would be known only later can be told as such [s since midnight].
    """
    if not len(events):
        return
    for kind, rows in events.groupby("kind", sort=False):
        if len(rows) > MOST_TOLD:
            yield _many(str(kind), rows)
        else:
            yield from (_one(str(kind), row, sites, horizon_s) for row in rows.itertuples())
    yield (
        "Of all this theory and field know announced crowds and stated drifts alone; what else they say is of an "
        "ordinary day."
    )


def _one(kind: str, row: Any, sites: int | None, horizon_s: float) -> str:
    crowd = kind == "flash_crowd"
    told = f" ({row.detail})" if kind in ("backhaul_loss", "prefix_update") and row.detail else ""
    opening = f"{_NAMES[kind][0].capitalize()}, {_when(row)}{_sites(str(row.sites), sites)}{told}"
    if crowd:
        parts = [
            f"{_count(row.people, 'person', 'people')} within {row.radius_m:g} m of {row.lat:.4f}, {row.lon:.4f} asked "
            f"{_asked(row.requests, row.coverage)}"
        ]
    else:
        parts = [*_known(row, horizon_s), *_repairs(row)]
    if np.isfinite(row.coverage_of_others):
        whose = "all other requests" if crowd else "the requests"
        parts.append(f"{row.coverage_of_others:.1%} of {whose} meanwhile were in time")
    return _sentence(opening, parts)


def _known(row: Any, horizon_s: float) -> list[str]:
    """Return when a failure was known that was not at once."""
    known_s = getattr(row, "known_s", np.nan)
    if not np.isfinite(known_s):
        return []
    if known_s >= horizon_s:
        return ["not known within the run"]
    if known_s >= row.end_s:
        return ["not known before it was over"]
    after = known_s - row.start_s
    return [f"known after {after:,.0f} s" if after >= 100.0 else f"known after {after:.3g} s"]


def _many(kind: str, rows: pd.DataFrame) -> str:
    opening = (
        f"{len(rows)} {_NAMES[kind][1]} begun from {clock(rows.start_s.min())} to {clock(rows.start_s.max())}"
    )
    parts = []
    if kind == "flash_crowd":
        asked = int(rows.requests.sum())
        coverage = (rows.requests * rows.coverage.fillna(0.0)).sum() / max(asked, 1)
        parts = [f"{_count(rows.people.sum(), 'person', 'people')} asked {_asked(asked, coverage)}"]
    parts += _repairs(rows[["rerouted", "restored_bytes", "not_restored"]].sum())
    others = rows.coverage_of_others.dropna()
    if len(others):
        whose = "all other requests" if kind == "flash_crowd" else "the requests"
        parts.append(
            f"{others.mean():.1%} of {whose} meanwhile were in time, the mean over the events, and {others.min():.1%} during "
            "the worst"
        )
    return _sentence(opening, parts)


def _sentence(opening: str, parts: list[str]) -> str:
    return f"{opening}{': ' * bool(parts)}{'; '.join(parts)}."


def _when(row: Any) -> str:
    """Return when an event was: a time of day, or from one to another."""
    if row.end_s <= row.start_s:
        return clock(row.start_s)
    brief = row.end_s - row.start_s < BRIEF_S and (row.start_s % 60.0 or row.end_s % 60.0)
    return " to ".join(clock(t) if not brief else _to_the_second(t) for t in (row.start_s, row.end_s))


def _to_the_second(time_s: float) -> str:
    seconds = round(time_s)
    return f"{clock(seconds - seconds % 60)}:{seconds % 60:02d}"


def _sites(numbers: str, sites: int | None) -> str:
    """Return which sites an event is about, by number if they are few."""
    each = numbers.split()
    if not each:
        return ""
    if sites is not None and len(each) == sites:
        return f", all {sites} sites" if sites > 1 else ", the only site"
    if len(each) > MOST_NUMBERS:
        return f", {len(each)} sites"
    return f", site{'s' * (len(each) > 1)} {', '.join(each)}"


def _asked(requests: int, coverage: float) -> str:
    if not requests:
        return "nothing"
    return f"{_count(requests, 'request', 'requests')}, {coverage:.1%} of them in time"


def _repairs(row: Any) -> list[str]:
    """Return what was sent again and fetched again, and what was not."""
    parts = []
    if row.rerouted:
        parts.append(f"{_count(row.rerouted, 'request was', 'requests were')} sent again")
    if row.restored_bytes:
        parts.append(f"sites fetched {_bytes(row.restored_bytes)} again")
    if row.not_restored:
        held = "it" if row.not_restored == 1 else "they"
        parts.append(
            f"{_count(row.not_restored, 'site', 'sites')} stayed empty, as plans had given what {held} held to others"
        )
    return parts


def _bytes(count: float) -> str:
    return f"{count / GB:.2f} GB" if count >= 0.01 * GB else f"{1000.0 * count / GB:.2g} MB"


def _count(number: float, one: str, many: str) -> str:
    return f"{number:,.0f} {one if number == 1 else many}"
