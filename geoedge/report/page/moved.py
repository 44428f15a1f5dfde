"""What the controller moved: totals, epoch by epoch, and move by move."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from geoedge.control.actions import REPAIRS
from geoedge.report._text import number
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told
from geoedge.texts import plain_text
from geoedge.units import GIB, clock

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["epochs_grid", "ledger_grid", "moved_words", "repairs_of", "totals_grid"]

LISTED = 60
"""Moves listed."""


def planned_moves(told: Told) -> pd.DataFrame:
    """Return the moves that a controller planned."""
    actions = told.results.actions
    return actions[~actions["action"].isin(REPAIRS)] if len(actions) else actions


def repairs_of(told: Told) -> int:
    """Return how many actions sites took by themselves."""
    return len(told.results.actions) - len(planned_moves(told))


def moved_words(told: Told) -> str:
    """Return in a sentence what the controller moved and what that changed.

    Parameters
    ----------
    told
        A run.
    """
    name, moves = str(told.meta.get("controller", "none")).replace("_", "-"), planned_moves(told)
    if name == "none":
        return "No controller: caches stay where they are."
    if not len(moves):
        return f"The {name} controller moved nothing."
    earned = _earned(told)
    return (
        f"The {name} controller made {len(moves)} moves of {moves['bytes_moved'].sum() / GIB:.1f} GiB in all in the run "
        f"whose records are kept{earned}."
    )


def _earned(told: Told) -> str:
    if told.earned is None:
        return ""
    change, half = told.earned
    spread = "one run, no interval" if math.isnan(half) else f"± {100 * half:.2f}, paired runs"
    return f"; over all runs coverage changed by {100 * change:+.2f} points ({spread})"


def totals_grid(runs: Sequence[Told]) -> Grid:
    """Return what was moved in all, one column a run.

    Parameters
    ----------
    runs
        The runs.
    """
    columns = [_totals(each) for each in runs]
    rows = [[name, *(each[name] for each in columns)] for name in columns[0]]
    return Grid("The controller's ledger", ["", *(each.name for each in runs)], rows)


def _totals(told: Told) -> dict[str, str]:
    moves = planned_moves(told)
    return {
        "controller": str(told.meta.get("controller", "none")).replace("_", "-"),
        "moves": f"{len(moves)}",
        "moved [GiB]": f"{moves['bytes_moved'].sum() / GIB:.1f}" if len(moves) else "0",
        "predicted gain, all moves": _gain(float(moves["predicted_gain"].sum()) if len(moves) else None),
        "in hindsight, all moves": _gain(
            float(moves["realised_gain"].sum(min_count=1)) if len(moves) else None
        ),
        "change of coverage, paired runs": _gain(None if told.earned is None else told.earned[0]),
    }


def _gain(value: float | None) -> str:
    return number(value) if value is None or math.isnan(value) else f"{value:+.4f}"


def ledger_grid(told: Told) -> Grid | None:
    """Return the controller's moves one by one; None if there are none.

    Parameters
    ----------
    told
        A run.
    """
    moves = planned_moves(told)
    if not len(moves):
        return None
    sites = {
        int(site): plain_text(name)
        for site, name in told.results.sites[["site", "name"]].itertuples(index=False)
    }
    rows = [_move(told, row, sites) for row in moves.head(LISTED).to_dict("records")]
    heads = ["time", "action", "site", "from → to", "moved [GiB]", "predicted gain", "in hindsight"]
    more = f"{len(moves) - LISTED} more in actions.parquet. " if len(moves) > LISTED else ""
    note = (
        f"{more}Gains are shares of requests in time; in hindsight: the field's, under the demand that came, unknown where "
        "sites report waits themselves."
    )
    return Grid("Move by move, first run", heads, rows, note, left=4)


def _move(told: Told, row: Mapping[Hashable, Any], sites: dict[int, str]) -> list[str]:
    site, partner = int(row["site"]), int(row.get("partner_site", -1))
    there = sites.get(site) or f"site {site}"
    if partner >= 0:
        there += f" ⇄ {sites.get(partner) or f'site {partner}'}"
    names = told.profiles
    return [
        clock(row["time_s"]),
        str(row["action"]).replace("_", " "),
        there,
        f"{names[int(row['from_profile'])]} → {names[int(row['to_profile'])]}",
        f"{row['bytes_moved'] / GIB:.2f}",
        _gain(float(row["predicted_gain"])),
        _gain(float(row["realised_gain"])),
    ]


def epochs_grid(told: Told) -> Grid | None:
    """Return what the moves promised and brought, epoch by epoch; None if the run did not pair that.

    Parameters
    ----------
    told
        A run.
    """
    table = told.results.tables.get("control_epochs")
    if table is None:
        return None
    heads = [
        "epoch from",
        "moves",
        "moved [GiB]",
        "still",
        "with controller",
        "predicted so far",
        "realised so far",
    ]
    note = (
        "Mean of the runs. Coverage without and with controller; gains of all moves so far, as predicted when they were "
        "made and as paired runs show."
    )
    return Grid("What the moves promised and brought", heads, list(_epochs(table)), note)


def _epochs(table: pd.DataFrame) -> Iterator[list[str]]:
    for row in table.to_dict("records"):
        half = (row["high"] - row["low"]) / 2
        yield [
            clock(row["start_s"]),
            f"{row['moves']:.1f}",
            f"{row['bytes_moved'] / GIB:.2f}",
            number(row["still"]),
            number(row["still"] + row["change"]),
            f"{row['predicted_gain']:+.4f}",
            f"{row['change']:+.4f}" + ("" if math.isnan(half) else f" ± {half:.4f}"),
        ]
