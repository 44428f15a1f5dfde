"""Which places to equip first, and with which profile: chosen on the map, by the field."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.planning.places.field import NONE, equipped
from geoedge.planning.places.planner import EquippedPlace, Planner
from geoedge.planning.places.yardsticks import Yardsticks
from geoedge.planning.window import refuse_other_ground
from geoedge.streams import stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.scenario import Scenario
    from geoedge.sites import Layout
    from geoedge.study import Study
    from geoedge.style import PaperFigure

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["EquippedPlace", "PlacesPlan", "plan_places"]


@dataclass(frozen=True, eq=False)
class PlacesPlan:
    """Which places to equip first; made by `plan_places`.

    Attributes
    ----------
    study
        The study on its candidate places.
    ttft_target, reliability
        Target τ₀ [s], and share ζ of requests to be in time.
    order
        The chosen places in the order of building. Each row is judged on a merged window.
    held
        Profile at each candidate, −1 where it is not equipped, shape (N,).
    coverage
        Share of requests in time on the whole window, epoch by epoch, with all chosen places.
    reached
        Whether that is the reliability.
    asked_sites
        Number of sites that was asked for; None for as few as the reliability takes.
    greedy
        Coverage of the first n places of greedy growth, before any exchange, for n = 1, 2, …; on the merged window.
    present
        Coverage of all candidates with the profiles they hold at present, on the whole window.
    yardsticks
        Random order and theory beside it.
    useful_load
        Load per server up to which requests are let in where not all can be carried.
    solved
        Equilibria that the search has solved.
    """

    study: Study
    ttft_target: float
    reliability: float
    order: tuple[EquippedPlace, ...]
    held: Ints
    coverage: float
    reached: bool
    asked_sites: int | None
    greedy: Floats
    present: float
    yardsticks: Yardsticks
    useful_load: float
    solved: int

    @property
    def layout(self) -> Layout:
        """The chosen places with their profiles, in the order of the candidates."""
        return equipped(self.study.layout, self.held)

    def first(self, count: int) -> Layout:
        """Return the first places in the order of building with their profiles, in the order of the candidates.

        Parameters
        ----------
        count
            How many, from 1 to all of the plan.

        Raises
        ------
        GeoEdgeError
            If the plan has not so many.
        """
        chosen = [row.place for row in self._beginning(count)]
        return equipped(
            self.study.layout, np.where(np.isin(np.arange(len(self.held)), chosen), self.held, NONE)
        )

    def at_random(self, count: int, rng: int) -> Layout:
        """Return as many of the candidates at random, with the profiles of the first of the plan dealt out at random.

        What a plan is compared with: the same number of sites and the same mix, and no choice of places.

        Parameters
        ----------
        count
            How many, from 1 to all of the plan.
        rng
            Seed of the choice.

        Raises
        ------
        GeoEdgeError
            If the plan has not so many.
        """
        draw = stream(rng, "places at random")
        profiles = [int(self.held[row.place]) for row in self._beginning(count)]
        held = np.full(len(self.held), NONE, dtype=np.int64)
        held[draw.permutation(len(held))[:count]] = draw.permutation(profiles)
        return equipped(self.study.layout, held)

    def _beginning(self, count: int) -> tuple[EquippedPlace, ...]:
        if not 1 <= count <= len(self.order):
            msg = f"plan of places: `count` must be from 1 to the {len(self.order)} places of the plan, not {count}"
            raise GeoEdgeError(msg)
        return self.order[:count]

    @property
    def needed(self) -> int | None:
        """Places that the reliability needs; None if it was not reached, or a number of sites was asked for."""
        return len(self.order) if self.reached and self.asked_sites is None else None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values; what does not exist as None."""
        names = self.study.workload.profile_names
        count = np.bincount(self.held[self.held != NONE], minlength=len(names))
        return {
            "ttft_target_s": self.ttft_target,
            "reliability": self.reliability,
            "candidates": len(self.held),
            "sites": len(self.order),
            "reached": self.reached,
            "needed": self.needed,
            "coverage": self.coverage,
            "present_coverage": self.present,
            "profiles": dict(zip(names, count.tolist(), strict=True)),
            "useful_load": self.useful_load,
            "greedy_coverage": self.greedy.tolist(),
            **self.yardsticks.to_dict(),
            "order": [vars(row) for row in self.order],
        }

    def to_csv(self) -> str:
        """Return the order of building as CSV, every text in quotes."""
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
        writer.writerow(
            [
                "order",
                "place",
                "name",
                "kind",
                "street",
                "lon",
                "lat",
                "profile",
                "coverage",
                "served_in_time",
                "admitted",
            ]
        )
        for k, row in enumerate(self.order, 1):
            where = (round(row.lon, 6), round(row.lat, 6))
            values = (round(value, 6) for value in (row.coverage, row.served_in_time, row.admitted))
            writer.writerow([k, row.place, row.name, row.kind, row.street, *where, row.profile, *values])
        return text.getvalue()

    def figure(self, *, columns: int = 2) -> PaperFigure:
        """Return a picture of coverage over the number of sites: the plan, greedy growth, random orders, theory.

        Parameters
        ----------
        columns
            Columns of a paper, 1 or 2.
        """
        from geoedge.planning.places.figure import places_figure

        return places_figure(self, columns=columns)


def plan_places(
    study: Study | Scenario,
    *,
    reliability: float | None = None,
    ttft_target: float | None = None,
    sites: int | None = None,
    orders: int = 40,
    progress: Callable[[str, int, int], None] | None = None,
) -> PlacesPlan:
    """Return which of a study's sites to equip first, and with which profile, for a share of requests in time.

    All sites of the study are candidates. Places are added one after the other, each time the one that gains most;
    the choice is improved by exchanges; then as long as one place less is enough, after exchanges too, one is taken
    away. While the sites cannot carry the demand, they are scored by what they serve in time when the rest is turned
    away, as `Evaluator` says. The order of building is greedy among the places chosen. The whole choice keeps to the
    floor and cap of [control] and, if one is given, the memory budget of [plan], in whole sites.

    Parameters
    ----------
    study
        A prepared study, or a scenario with a city; ``[sites]`` names the candidates.
    reliability, ttft_target
        Share of requests to be in time, and within how long [s]; the scenario's by default.
    sites
        Choose as many places for the greatest coverage, instead of as few as the reliability takes.
    orders
        Random orders to compare with.
    progress
        Told the stage, and how much of it is done.

    Raises
    ------
    GeoEdgeError
        If a number is out of range, no place can be equipped within the limits, or the scenario's radio follows streets
        or its field has more than the city.
    """
    from geoedge.study import Study, prepare

    refuse_other_ground(study.scenario if isinstance(study, Study) else study, "a plan of places")
    if not isinstance(study, Study):
        study = prepare(study)
    asked = study.scenario.target
    zeta = asked.reliability if reliability is None else reliability
    tau = asked.ttft_target_s if ttft_target is None else ttft_target
    _check(zeta, tau, sites, orders, len(study.layout))
    planner = Planner(study, zeta, tau, sites, orders, progress or (lambda *_: None))
    held, coverage, greedy = planner.choose()
    return PlacesPlan(
        study=study,
        ttft_target=tau,
        reliability=zeta,
        order=planner.order(held),
        held=held,
        coverage=coverage,
        reached=coverage >= zeta,
        asked_sites=sites,
        greedy=greedy,
        present=planner.whole(study.layout.profile),
        yardsticks=Yardsticks.ask(planner, held),
        useful_load=planner.level,
        solved=planner.search.solved + planner.judge.solved,
    )


def _check(zeta: float, tau: float, sites: int | None, orders: int, places: int) -> None:
    for name, value, legal, allowed in (
        ("reliability", zeta, 0.0 < zeta < 1.0, "in (0, 1)"),
        ("ttft_target", tau, 0.0 < tau < math.inf, "positive seconds"),
        ("sites", sites, sites is None or 1 <= sites <= places, f"from 1 to the {places} candidates"),
        ("orders", orders, orders >= 2, "at least 2"),
    ):
        if not legal:
            msg = f"plan_places: `{name}` must be {allowed}, not {value}"
            raise GeoEdgeError(msg)
