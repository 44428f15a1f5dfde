"""What figures are given: runs that can be drawn, and what each is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.style import shown, width_in
from geoedge.texts import plain_text

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from geoedge.results import Results

    Floats = NDArray[np.float64]

__all__ = ["asked", "epoch_spans", "in_time", "legend_across", "listed", "named", "ttft_of"]

LONGEST_NAME = 34
"""Characters of a run's name beside its line."""
WIDE = "mw@%&<>=+_…"
"""Letters that are as wide as capitals."""


def asked(figure: str, runs: Sequence[object]) -> None:
    """Refuse what is no run or has nothing to show.

    Parameters
    ----------
    figure
        Name of the figure, for the message.
    runs
        The runs.

    Raises
    ------
    GeoEdgeError
        If there is no run, or one that has no request after its warm-up.
    """
    from geoedge.results import Results

    if not runs:
        msg = f"{figure}: no run was given; give at least one, such as `Results.load(folder)`"
        raise GeoEdgeError(msg)
    for run in runs:
        if not isinstance(run, Results):
            msg = (
                f"{figure}: takes runs (Results), not {type(run).__name__}; load a folder with `Results.load`"
            )
            raise GeoEdgeError(msg)
        if not run.requests:
            msg = f"{figure}: run {shown(run.label)!r} has no request after its warm-up; run it for longer"
            raise GeoEdgeError(msg)


def named(figure: str, runs: Sequence[Results], names: Sequence[str] | None) -> list[str]:
    """Return what each run is called: as given, else by the first of label, title and rules that tells all apart.

    Parameters
    ----------
    figure
        Name of the figure, for the message.
    runs
        The runs.
    names
        Names that were given.

    Raises
    ------
    GeoEdgeError
        If there are not as many names as runs, or two are the same.
    """
    if names is not None:
        found = [shown(name, LONGEST_NAME) for name in listed(figure, names, len(runs), "runs")]
        twice = next((name for name in found if found.count(name) > 1), None)
        if twice is not None:
            msg = (
                f"{figure}: two of the `names` are {twice!r}; give each run one of its own, different within "
                f"{LONGEST_NAME} characters"
            )
            raise GeoEdgeError(msg)
        return found
    labels, titles = [run.label for run in runs], [run.meta.get("title") for run in runs]
    for way in (labels, titles, _rules(runs)):
        found = [shown(words, LONGEST_NAME) for words in way]
        if len(set(found)) == len(found) and all(found):
            return found
    return [f"run {number}" for number in range(1, len(runs) + 1)]


def listed(figure: str, names: object, count: int, what: str) -> list[str]:
    """Return names that were given, one each.

    Parameters
    ----------
    figure
        Name of the figure, for the message.
    names
        What was given.
    count, what
        Of what there are how many.

    Raises
    ------
    GeoEdgeError
        If they are no list of words, or not as many.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        msg = f"{figure}: `names` must be a list of names, not {plain_text(repr(names), 60)}; write {{!r}}"
        raise GeoEdgeError(msg.format([names] if isinstance(names, str) else ["first", "second"]))
    found = list(names)
    if not all(isinstance(name, str) for name in found):
        msg = f"{figure}: `names` must be words, not {plain_text(repr(found), 60)}; write each in quotes"
        raise GeoEdgeError(msg)
    if len(found) != count:
        msg = f"{figure}: {len(found)} `names` for {count} {what}; give one each"
        raise GeoEdgeError(msg)
    return found


def _rules(runs: Sequence[Results]) -> list[str]:
    """Return by what rules each run was made, as far as they differ."""
    rules = [
        (
            str(run.meta.get("policy", "")).replace("_", "-"),
            f"waits by {run.meta.get('advertise', '')}",
            "caches stay"
            if run.meta.get("controller", "none") == "none"
            else f"controller {run.meta['controller']}",
            f"seed {run.meta.get('seed', '')}",
        )
        for run in runs
    ]
    differing = [place for place in range(len(rules[0])) if len({rule[place] for rule in rules}) > 1]
    return [", ".join(rule[place] for place in differing) for rule in rules]


def legend_across(names: Sequence[str], columns: int) -> int:
    """Return how many names of a legend have room side by side.

    Parameters
    ----------
    names
        The names, as they are shown.
    columns
        Columns of a paper that the figure takes.

    Raises
    ------
    GeoEdgeError
        If it takes neither one column nor two.
    """
    width_in(columns)  # says so in one line before anything is counted by columns
    longest = max(
        len(name) + 0.8 * sum(letter in WIDE or letter.isupper() for letter in name) for name in names
    )
    return min(len(names), columns * (4 if longest <= 10 else 2 if longest <= 22 else 1))


def ttft_of(figure: str, run: Results) -> Floats:
    """Return all times to the first token of a run in order [s]; those of rejected requests are infinite.

    Parameters
    ----------
    figure
        Name of the figure, for the message.
    run
        The run.

    Raises
    ------
    GeoEdgeError
        If all requests were rejected.
    """
    found = np.sort(run.column("ttft_s").astype(np.float64))
    if not np.isfinite(found[0]):
        msg = f"{figure}: all {len(found)} requests of run {plain_text(run.label)!r} were rejected; there is no time to draw"
        raise GeoEdgeError(msg)
    return found


def epoch_spans(epochs: pd.DataFrame) -> Floats:
    """Return begin of every epoch and end of the last [h since midnight], shape (epochs + 1,).

    Parameters
    ----------
    epochs
        One row an epoch and site.
    """
    ends: Any = epochs.groupby("epoch")[["start_s", "end_s"]].first()
    return np.asarray(np.append(ends["start_s"].to_numpy(), ends["end_s"].iloc[-1]) / 3600.0)


def in_time(epochs: pd.DataFrame) -> Floats:
    """Return the share of each epoch's requests that were in time, shape (epochs,); NaN where nobody asked.

    Parameters
    ----------
    epochs
        One row an epoch and site: epoch, requests, missed.
    """
    sums: Any = epochs.groupby("epoch")[["requests", "missed"]].sum().to_numpy(dtype=np.float64)
    requests, missed = sums.T
    unknown = np.full(len(requests), np.nan)
    return np.asarray(1.0 - np.divide(missed, requests, out=unknown, where=requests > 0))
