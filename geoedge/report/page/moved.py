"""What the controller moved: totals, epoch by epoch, and move by move."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from geoedge.compare.tables import horizon_of, planned
from geoedge.control.actions import REPAIRS
from geoedge.report._text import number
from geoedge.report.decided import reasons, still_epochs, still_words, with_names
from geoedge.report.page.blocks import Grid
from geoedge.report.page.told import Told
from geoedge.texts import plain_text
from geoedge.units import GB, clock

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "epochs_grid",
    "hindsight_words",
    "ledger_grid",
    "moved_words",
    "repairs_of",
    "still_grid",
    "totals_grid",
]

LISTED = 60
"""Moves listed."""


def repairs_of(told: Told) -> int:
    """Return how many actions sites took by themselves."""
    return len(told.results.actions) - len(planned(told.results.actions))


def moved_words(told: Told) -> str:
    """Return in a sentence what the controller moved and what that changed.

    Parameters
    ----------
    told
        A run.
    """
    name, moves = str(told.meta.get("controller", "none")).replace("_", "-"), planned(told.results.actions)
    if name == "none":
        return "No controller: caches stay where they are."
    if not len(moves):
        return f"The {name} controller moved nothing."
    earned = _earned(told)
    return (
        f"The {name} controller made {len(moves)} moves of {moves['bytes_moved'].sum() / GB:.1f} GB in all in the run "
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
    if all(horizon_of(each.results.actions) == 1 for each in runs):
        columns = [{name: value for name, value in each.items() if name != _FURTHER} for each in columns]
    rows = [[name, *(each[name] for each in columns)] for name in columns[0]]
    unjudged = [(each, hindsight_words(each)) for each in runs]
    notes = [f"{each.name}: {words}" if len(runs) > 1 else words for each, words in unjudged if words]
    return Grid("The controller's ledger", ["", *(each.name for each in runs)], rows, " ".join(notes))


_FURTHER = "mean over the horizon, all moves"


def _totals(told: Told) -> dict[str, str]:
    moves, horizon = planned(told.results.actions), horizon_of(told.results.actions)
    judged = moves[moves["realised_gain"].notna()]
    return {
        "controller": str(told.meta.get("controller", "none")).replace("_", "-"),
        "moves": f"{len(moves)}",
        "moved [GB]": f"{moves['bytes_moved'].sum() / GB:.1f}",
        "predicted gain, all moves": _sum(moves["predicted_gain"]),
        _FURTHER: f"{_sum(moves['horizon_gain'])} ({horizon} epochs)" if horizon > 1 else "–",
        "judged in hindsight": f"{len(judged)} of {len(moves)}" if len(moves) else "–",
        "predicted gain, moves that were judged": _sum(judged["predicted_gain"]),
        "in hindsight, moves that were judged": _sum(judged["realised_gain"]),
        "change of coverage, paired runs": _gain(None if told.earned is None else told.earned[0]),
    }


def _sum(gains: pd.Series) -> str:
    return _gain(float(gains.sum()) if len(gains) else None)


def _gain(value: float | None) -> str:
    return number(value) if value is None or math.isnan(value) else f"{value:+.4f}"


def hindsight_words(told: Told) -> str:
    """Return which moves nobody can judge in hindsight, and why; empty if all were judged.

    Parameters
    ----------
    told
        A run.
    """
    moves = planned(told.results.actions)
    unjudged = moves[moves["realised_gain"].isna()]
    if unjudged.empty:
        return ""
    if told.meta.get("advertise") != "equilibrium":
        return "No move is judged in hindsight: the field says nothing of waits that sites report themselves."
    lost = list(dict.fromkeys(pair for row in unjudged.to_dict("records") for pair in _lost(told, row)))
    names = _site_names(told)
    named = ", ".join(f"{names[site]} ({why})" for site, why in lost)
    why = f" Not judged: moves at sites that lost meanwhile what they held: {named}." if lost else ""
    return f"{len(moves) - len(unjudged)} of {len(moves)} judged in hindsight.{why}"


def _lost(told: Told, move: Mapping[Hashable, Any]) -> Iterator[tuple[int, str]]:
    """Yield which sites of a move lost their states before its epoch was over, and by what."""
    results, mine = told.results, {int(move["site"]), int(move.get("partner_site", -1))}
    ends = results.epochs.loc[results.epochs["epoch"] == move["epoch"], "end_s"]
    end = float(ends.max()) if len(ends) else math.inf
    failed, events = set[int](), results.tables.get("events")
    if events is not None:
        failures = events[(events["kind"] == "site_failure") & events["start_s"].between(move["time_s"], end)]
        failed = {int(site) for sites in failures["sites"] for site in str(sites).split()}
        yield from ((site, "failed") for site in sorted(mine & failed))
    actions = results.actions
    repairs = actions[actions["action"].isin(REPAIRS) & (actions["epoch"] == move["epoch"])]
    for site in sorted(mine & set(repairs["site"].astype(int)) - failed):
        kinds = set(repairs.loc[repairs["site"] == site, "action"])
        yield site, "out of date" if "invalidate" in kinds else "restored"


def _site_names(told: Told) -> dict[int, str]:
    pairs = told.results.sites[["site", "name"]].itertuples(index=False)
    return {int(site): plain_text(name) or f"site {site}" for site, name in pairs}


def ledger_grid(told: Told) -> Grid | None:
    """Return the controller's moves one by one; None if there are none.

    Parameters
    ----------
    told
        A run.
    """
    moves = planned(told.results.actions)
    if not len(moves):
        return None
    sites = _site_names(told)
    horizon = horizon_of(told.results.actions)
    rows = [_move(told, row, sites, further=horizon > 1) for row in moves.head(LISTED).to_dict("records")]
    heads = ["time", "action", "site", "from → to", "moved [GB]", "predicted gain", "in hindsight"]
    heads += [f"mean of {horizon} epochs"] if horizon > 1 else []
    more = f"{len(moves) - LISTED} more in actions.parquet. " if len(moves) > LISTED else ""
    further = (
        f"Both are of the epoch that started; moves were chosen by the predicted mean over {horizon} epochs ahead. "
        if horizon > 1
        else ""
    )
    note = (
        f"{more}Gains are shares of requests in time; in hindsight: the field's, under the demand that came. "
        f"{further}{hindsight_words(told)}"
    )
    return Grid("Move by move, first run", heads, rows, note.rstrip(), left=4)


def _move(told: Told, row: Mapping[Hashable, Any], sites: dict[int, str], *, further: bool) -> list[str]:
    site, partner = int(row["site"]), int(row.get("partner_site", -1))
    there = sites[site] if partner < 0 else f"{sites[site]} ⇄ {sites[partner]}"
    names = told.profiles
    return [
        clock(row["time_s"]),
        str(row["action"]).replace("_", " "),
        there,
        f"{names[int(row['from_profile'])]} → {names[int(row['to_profile'])]}",
        f"{row['bytes_moved'] / GB:.2f}",
        _gain(float(row["predicted_gain"])),
        _gain(float(row["realised_gain"])),
        *([_gain(float(row["horizon_gain"]))] if further else []),
    ]


def still_grid(told: Told) -> Grid | None:
    """Return the epochs without a move, each with the best action that was left out; None if there are none.

    Parameters
    ----------
    told
        A run.
    """
    still = still_epochs(told.results)
    if still is None or still.empty:
        return None
    sites = _site_names(told)
    rows = [
        [
            clock(row["time_s"]),
            plain_text(with_names(row["left_out"], sites), 200) or "–",
            reasons(row["why"]),
            _gain(float(row["left_out_gain"])) + ("" if row["left_out_solved"] else " (rough)"),
            f"{row['looked_at']}",
            _gain(float(row["unseen_gain"])),
        ]
        for row in still.head(LISTED).to_dict("records")
    ]
    heads = ["time", "best left out", "why", "promised", "looked at", "others promised"]
    more = f" {len(still) - LISTED} more in decisions.parquet." if len(still) > LISTED else ""
    horizon = int(still["horizon_epochs"].max())
    over = f", mean of the {horizon} epochs ahead" if horizon > 1 else ""
    note = (
        f"{still_words(told.results)}. Promised: predicted gain in coverage{over}; rough where only the screening on "
        "coarse cells tells. Looked at: placements for which the field was solved; others promised: the most at the "
        f"rough look, of those that were not.{more}"
    )
    return Grid("Epochs without a move, first run", heads, rows, note, left=3)


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
        "moved [GB]",
        "still",
        "with controller",
        "predicted so far",
        "realised so far",
    ]
    whole, horizon = told.meta.get("replications", 1) == 1, horizon_of(told.results.actions)
    further = horizon > 1 and "horizon_gain" in table
    heads += [f"mean of {horizon} epochs so far"] if further else []
    note = (
        f"{'One pair of runs' if whole else 'Mean of the paired runs'}. Coverage without and with controller; gains of all moves so far, as predicted when they were "
        f"made, {'each for the epoch that started, ' if further else ''}and as paired runs show."
    )
    rows = list(_epochs(table, whole=whole, further=further))
    return Grid("What the moves promised and brought", heads, rows, note)


def _epochs(table: pd.DataFrame, *, whole: bool, further: bool) -> Iterator[list[str]]:
    """Yield the row of each epoch; `whole` says that moves were counted and not averaged."""
    for row in table.to_dict("records"):
        half = (row["high"] - row["low"]) / 2
        yield [
            clock(row["start_s"]),
            f"{row['moves']:.{0 if whole else 1}f}",
            f"{row['bytes_moved'] / GB:.2f}",
            number(row["still"]),
            number(row["still"] + row["change"]),
            f"{row['predicted_gain']:+.4f}",
            f"{row['change']:+.4f}" + ("" if math.isnan(half) else f" ± {half:.4f}"),
            *([f"{row['horizon_gain']:+.4f}"] if further else []),
        ]
