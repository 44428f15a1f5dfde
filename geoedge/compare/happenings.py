"""What happened in a run besides an ordinary day, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from geoedge.units import GB, clock

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["happenings"]

MOST_TOLD = 3
"""Events of one kind that get a sentence each; of more, only their sums are told."""
_NAMES = {
    "flash_crowd": ("flash crowd", "flash crowds"),
    "site_failure": ("site failure", "site failures"),
    "backhaul_loss": ("loss of backhaul", "losses of backhaul"),
    "catalogue_partition": ("catalogue partition", "catalogue partitions"),
    "controller_down": ("absence of the controller", "absences of the controller"),
    "popularity_drift": ("drift of popularity", "drifts of popularity"),
    "prefix_update": ("new version of a prefix", "new versions of prefixes"),
}


def happenings(events: pd.DataFrame) -> Iterator[str]:
    """Yield what the table of events of a run says, a sentence each, in plain text without names from maps.

    Parameters
    ----------
    events
        Table ``events`` of a run.
    """
    if not len(events):
        return
    for kind, rows in events.groupby("kind", sort=False):
        if len(rows) > MOST_TOLD:
            yield _many(str(kind), rows)
        else:
            yield from (_one(str(kind), row) for row in rows.itertuples())
    yield (
        "Of all this theory and field know announced crowds and stated drifts alone; what else they say is of an "
        "ordinary day."
    )


def _one(kind: str, row: Any) -> str:
    when = f"{clock(row.start_s)} to {clock(row.end_s)}" if row.end_s > row.start_s else clock(row.start_s)
    others = f"{row.coverage_of_others:.1%} of all other requests" if kind == "flash_crowd" else None
    meanwhile = f"{others or f'{row.coverage_of_others:.1%} of the requests'} meanwhile were in time"
    if kind == "flash_crowd":
        return (
            f"Flash crowd, {when}: {row.people:,} people within {row.radius_m:g} m of {row.lat:.4f}, {row.lon:.4f} asked "
            f"{row.requests:,} requests, {row.coverage:.1%} of them in time; {meanwhile}."
        )
    if row.end_s == row.start_s:
        return f"{_NAMES[kind][0].capitalize()}, {when} ({row.detail}): {_repairs(kind, row).removesuffix('; ')}."
    told = f" ({row.detail})" if kind == "backhaul_loss" else ""
    sites = f", sites {row.sites}" if kind == "site_failure" else ""
    return f"{_NAMES[kind][0].capitalize()}, {when}{sites}{told}: {_repairs(kind, row)}{meanwhile}."


def _many(kind: str, rows: pd.DataFrame) -> str:
    people = f", {rows.people.sum():,} people, {rows.requests.sum():,} requests" if rows.people.any() else ""
    total = rows[["rerouted", "restored_bytes", "not_restored"]].sum()
    first, last = clock(rows.start_s.min()), clock(rows.start_s.max())
    repairs = _repairs(kind, total).removesuffix("; ")
    return (
        f"{len(rows)} {_NAMES[kind][1]} begun from {first} to {last}{people}{': ' * bool(repairs)}{repairs}."
    )


def _repairs(kind: str, row: Any) -> str:
    """Return what was sent again and fetched again."""
    parts = [f"{row.rerouted:,.0f} requests were sent again"] if kind == "site_failure" else []
    if kind in ("site_failure", "prefix_update"):
        parts.append(f"sites fetched {row.restored_bytes / GB:.2f} GB again")
    if row.not_restored:
        parts.append(f"{row.not_restored:.0f} stayed empty, as plans had given what they held to others")
    return "; ".join(parts) + "; " * bool(parts)
