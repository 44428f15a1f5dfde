"""Why nothing was moved in an epoch: the controller's decisions to do nothing, counted and one by one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from geoedge.control.left_out import WHY
from geoedge.sites._rows import counted
from geoedge.texts import plain_text

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.results import Results

__all__ = ["reasons", "still_epochs", "still_words", "with_names"]

RULES = {
    "busy": "states on their way or a site down",
    "hold": "the least hold",
    "floor": "the fallback floor",
    "cap": "the cap on deep profiles",
    "budget": "the budget",
    "most actions": "the limit on actions",
}
"""What kept back a change that would have paid, by the words of the table of decisions."""
SHORT = {
    "absent": "the controller was down",
    "no demand": "nothing was asked before",
    "no candidate": "no change to look at",
    "nothing to gain": "no change looked at promised a gain",
    "least gain": "the best promised less than the least gain",
    "toll": "the best did not pay for its bytes or for going back",
    "not looked at": "the best was not looked at",
    "not chosen": "the planner chose by more than one gain",
}
"""Why nothing was done where no rule forbade it, by the same words."""


def still_epochs(results: Results) -> pd.DataFrame | None:
    """Return the decisions by which nothing was moved; None if the run does not tell why.

    Parameters
    ----------
    results
        A run, perhaps of a version that did not tell.
    """
    decisions = results.tables.get("decisions")
    if decisions is None or "why" not in decisions:
        return None
    return decisions[decisions["actions"] == 0]


def still_words(results: Results) -> str:
    """Return how many epochs went by without a move, and why; empty if there were none or the run does not tell.

    Parameters
    ----------
    results
        A run.
    """
    still = still_epochs(results)
    if still is None or still.empty:
        return ""
    whys = "; ".join(
        f"{_in_short(str(why))}, {count}×" for why, count in still["why"].value_counts(sort=True).items()
    )
    return f"{counted(len(still), 'epoch')} of {len(results.tables['decisions'])} without a move: {whys}"


def _in_short(why: str) -> str:
    """Return in few words why nothing was done."""
    words = why.split(", ")
    rules = [RULES[each] for each in words if each in RULES]
    others = [SHORT.get(each, plain_text(each)) for each in words if each not in RULES]
    kept = [f"{' and '.join(rules)} kept back what would have gained"] if rules else []
    return " and ".join(others + kept)


def reasons(why: str) -> str:
    """Return in words why an action was left out.

    Parameters
    ----------
    why
        As in the table of decisions.
    """
    return "; ".join(WHY.get(each, each) for each in str(why).split(", "))


def with_names(action: str, names: dict[int, str]) -> str:
    """Return an action of the table of decisions with its sites by name.

    Parameters
    ----------
    action
        As in the table of decisions.
    names
        What the sites are called, by number.
    """
    named = re.sub(r"\bsite (\d+)", lambda found: names.get(int(found[1]), found[0]), action)
    return named.replace(" -> ", " → ")
