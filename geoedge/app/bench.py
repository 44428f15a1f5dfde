"""The workbench of the app: one city, and the studies on it that sliders ask for, the last few kept."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING

from geoedge.app.choices import Choices, kept_sites
from geoedge.errors import GeoEdgeError, ScenarioError
from geoedge.study import prepare

if TYPE_CHECKING:
    from geoedge.city.city import City
    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.study import Study

__all__ = ["Bench"]

KEPT_STUDIES = 6
"""Studies that going back to earlier choices finds again."""


class Bench:
    """One scenario and its city, from which models are made by choice; several browsers may share it.

    Parameters
    ----------
    scenario
        What the sliders start from.
    city, layout
        City and sites, if they exist already.

    Raises
    ------
    ScenarioError
        If the scenario has no city.
    """

    def __init__(self, scenario: Scenario, *, city: City | None = None, layout: Layout | None = None) -> None:
        if scenario.city is None:
            msg = "app: the scenario has no [city] to watch; add one, or ask theory alone: `geoedge solve`"
            raise ScenarioError(msg)
        self.scenario = scenario
        self._city, self._layout = city, layout
        self._base: Study | None = None
        self._known: deque[Study] = deque(maxlen=KEPT_STUDIES)
        self._lock = Lock()

    def base(self) -> Study:
        """Return the study of the scenario as it is."""
        if self._base is None:
            self._base = self._prepared(self.scenario)
        return self._base

    def study(self, choices: Choices) -> Study:
        """Return the study of what has been chosen.

        Parameters
        ----------
        choices
            What the sliders say.

        Raises
        ------
        GeoEdgeError
            If it does not fit together, in one line.
        """
        base = self.base()
        density = len(base.layout) / base.city.area_km2
        study = self._prepared(choices.applied(self.scenario, density))
        if not choices.thins(self.scenario):
            return study
        return study.with_sites(kept_sites(len(study.layout), choices.sites, self.scenario.seed))

    def _prepared(self, scenario: Scenario) -> Study:
        """Return a scenario's study, one at a time, since two browsers often want the same."""
        with self._lock:
            known = self._found(scenario)
            if known is None:
                given = self._layout if scenario.sites == self.scenario.sites else None
                known = prepare(scenario, city=self._city, layout=given)
                self._city = known.city
                self._known.append(known)
            return known

    def _found(self, scenario: Scenario) -> Study | None:
        for study in (*self._known, *([] if self._base is None else [self._base])):
            try:
                return study.with_scenario(scenario)
            except GeoEdgeError:
                continue  # made from something else
        return None
