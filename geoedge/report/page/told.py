"""A run as the report sees it: its name, its tables by what they are, its scenario and its city."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.compare.columns import STEERED
from geoedge.errors import CityError, GeoEdgeError
from geoedge.maps.view import RunView
from geoedge.results import Results
from geoedge.texts import plain_text
from geoedge.units import clock

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from geoedge.city import City
    from geoedge.scenario import Scenario

__all__ = ["Told", "heads", "share_people", "told_runs"]

MOST_RUNS = 8
"""Runs that one page lays side by side."""
PEOPLE = ("created_s", "user", "request_type", "x_m", "y_m")
"""Columns of the records that people decide, whoever serves them."""


@dataclass(frozen=True, eq=False)
class Told:
    """A run that is reported.

    Parameters
    ----------
    name
        What it is called on the page.
    results
        The run.
    given_city
        Its city, if it was given.
    """

    name: str
    results: Results
    given_city: City | None = None

    @property
    def meta(self) -> dict[str, Any]:
        """The run's facts."""
        return self.results.meta

    @property
    def target_s(self) -> float:
        """TTFT target τ₀ [s]."""
        return float(self.meta["ttft_target_s"])

    @property
    def window(self) -> str:
        """The counted part of the day."""
        return f"{clock(self.results.measured_from_s)}–{clock(self.meta['horizon_s'])}"

    @property
    def profiles(self) -> list[str]:
        """Names of the profiles."""
        return [plain_text(name) for name in self.meta["profile_names"]]

    @property
    def scenario(self) -> Scenario | None:
        """The run's scenario; None where the run has none that can be read."""
        return self._read_scenario[0]

    @property
    def scenario_trouble(self) -> str:
        """Why the run's scenario cannot be read; empty if it can."""
        return self._read_scenario[1]

    @cached_property
    def _read_scenario(self) -> tuple[Scenario | None, str]:
        import tomllib

        from geoedge.scenario import Scenario

        if not self.results.scenario_toml:
            return None, "the run kept none"
        try:
            found = tomllib.loads(self.results.scenario_toml)
            return Scenario.from_dict(found, source="scenario of the run"), ""
        except (tomllib.TOMLDecodeError, GeoEdgeError) as error:
            return None, str(error)

    @property
    def reliability(self) -> float | None:
        """Share of requests that is wanted in time ζ; None if nobody said."""
        wanted = self.meta.get("reliability")
        if wanted is None and self.scenario is not None:
            wanted = self.scenario.target.reliability
        return None if wanted is None else float(wanted)

    @cached_property
    def view(self) -> RunView:
        """The run on its city.

        Raises
        ------
        GeoEdgeError
            If the run has no city, or another one than is given.
        """
        if not self.results.scenario_toml:
            msg = "the run has no scenario, which names its city"
            raise CityError(msg)
        return RunView.of(self.results, self.given_city)

    # -- the table of answers ---------------------------------------------------------------------------

    @cached_property
    def answers(self) -> pd.DataFrame | None:
        """The three answers, one row a metric and column; None if the run has none."""
        return self.results.tables.get("answers")

    @property
    def columns(self) -> list[str]:
        """Columns of the table of answers."""
        return [] if self.answers is None else list(dict.fromkeys(self.answers["column"]))

    def column(self, kind: str) -> str | None:
        """Return the column of theory, field or Poisson layouts, which may bear the name of another policy."""
        return next((name for name in self.columns if name == kind or name.startswith(f"{kind}: ")), None)

    @property
    def own(self) -> str | None:
        """The simulation with caches that stay, which routes as the scenario says."""
        simulated = [name for name in self.columns if name.startswith("simulation")]
        named = f"simulation: {self.meta.get('advertise')}"
        return named if named in simulated else next(iter(simulated), None)

    @property
    def as_it_is(self) -> str | None:
        """The simulation of the scenario as it is."""
        return STEERED if STEERED in self.columns else self.own

    def answer(self, kind: str) -> str | None:
        """Return the column of an answer, whatever it is called in this run; "simulation" is that with caches that stay."""
        return self.own if kind == "simulation" else self.column(kind)

    def value(self, metric: str, column: str | None) -> tuple[float, float, float]:
        """Return a metric with its interval; NaN where it is not known."""
        if self.answers is None or column is None:
            return (np.nan, np.nan, np.nan)
        found = self.answers[(self.answers["metric"] == metric) & (self.answers["column"] == column)]
        if found.empty:
            return (np.nan, np.nan, np.nan)
        row = found.iloc[0]
        return tuple(float(row.get(name, np.nan)) for name in ("value", "low", "high"))  # type: ignore[return-value]

    def layouts(self, count: str) -> NDArray[np.float64]:
        """Return the coverage of each Poisson layout with a "Poisson" or "fixed" number of sites."""
        table = self.results.tables.get("ensemble")
        if table is None or table.empty:
            return np.empty(0)
        return table.loc[table["count"] == count, "coverage"].to_numpy(dtype=np.float64)

    def replications(self, column: str | None, metric: str) -> pd.Series | None:
        """Return a metric of each replication of a simulation by seed; None where the run did not keep them."""
        table = self.results.tables.get("replications")
        if table is None or column is None:
            return None
        rows = table[(table["column"] == column) & (table["metric"] == metric)]
        return rows.set_index("seed")["value"] if len(rows) else None

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Epochs and sites after the warm-up."""
        return self.results.measured_epochs

    @cached_property
    def earned(self) -> tuple[float, float] | None:
        """What the controller changes in coverage over paired runs, and half of the 95 % interval; None if unknown."""
        table = self.results.tables.get("control")
        rows = None if table is None else table[table["metric"] == "coverage"]
        if rows is None or rows.empty:
            return None
        change, low, high = (float(rows[name].iloc[0]) for name in ("change", "low", "high"))
        return change, (high - low) / 2

    @cached_property
    def labelled(self) -> Results:
        """The run under the name that it has on the page."""
        return replace(self.results, label=self.name)


def told_runs(runs: Sequence[Results | str | Path], city: City | None) -> list[Told]:
    """Return runs with names of their own; one alone needs none.

    Parameters
    ----------
    runs
        Run folders, or results.
    city
        Their city, where their scenarios do not name it.

    Raises
    ------
    GeoEdgeError
        If there are none or too many, something is no run, a folder is none, or the city is none.
    """
    if not 1 <= len(runs) <= MOST_RUNS:
        msg = f"report: {len(runs)} runs; a page takes 1 to {MOST_RUNS}: name so many run folders"
        raise GeoEdgeError(msg)
    _checked(runs, city)
    read = [each if isinstance(each, Results) else Results.load(each) for each in runs]
    if len(read) == 1:
        return [Told("this run", read[0], city)]
    names = [_name(each, results) for each, results in zip(runs, read, strict=True)]
    own = [
        name if name and names.count(name) == 1 else f"{name or 'run'} ({k + 1})"
        for k, name in enumerate(names)
    ]
    return [Told(name, results, city) for name, results in zip(own, read, strict=True)]


def _checked(runs: Sequence[object], city: object) -> None:
    """Refuse what is no run and what is no city.

    Raises
    ------
    GeoEdgeError
        If something else was given.
    """
    from geoedge.city import City

    for run in runs:
        if not isinstance(run, Results | str | Path):
            msg = (
                f"report: takes run folders or runs (Results), not {type(run).__name__}; give each by itself"
            )
            raise GeoEdgeError(msg)
    if city is not None and not isinstance(city, City):
        msg = (
            f"report: `city` must be a City, not {type(city).__name__}; load it with `geoedge.load_city`, or leave it to the "
            "runs' scenarios"
        )
        raise GeoEdgeError(msg)


def _name(given: Results | str | Path, results: Results) -> str:
    return plain_text(results.label if isinstance(given, Results) else Path(given).absolute().name)


def heads(runs: Sequence[Told], alone: str = "value") -> list[str]:
    """Return the heads of a table's columns, one a run.

    Parameters
    ----------
    runs
        The runs.
    alone
        Head of the only column.
    """
    return [each.name for each in runs] if len(runs) > 1 else [alone]


def share_people(one: Told, other: Told) -> str:
    """Return why two runs cannot be paired; empty if the same people make the same requests in both.

    Parameters
    ----------
    one, other
        Two runs.
    """
    if one.meta.get("seed") != other.meta.get("seed"):
        return f"seeds differ ({one.meta.get('seed')} and {other.meta.get('seed')})"
    if one.meta["checksums"].get("city") != other.meta["checksums"].get("city"):
        return "the cities differ"
    for name in PEOPLE:
        mine, theirs = (each.results.records.column(name).to_numpy() for each in (one, other))
        if not np.array_equal(mine, theirs):
            return "other people or requests: seed and city are the same, demand or window are not"
    return ""
