"""Why nothing was moved in an epoch: the controller's decisions to do nothing, counted and one by one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from geoedge.control.left_out import WHY
from geoedge.sites._rows import counted

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.results import Results

__all__ = ["reasons", "still_epochs", "still_words", "with_names"]


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
    whys = ", ".join(
        f"{count} {str(why).replace(', ', ' and ')}"
        for why, count in still["why"].value_counts(sort=True).items()
    )
    return f"{counted(len(still), 'epoch')} of {len(results.tables['decisions'])} without a move: {whys}"


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
