"""A plan of places in the making: a coarse field to search by, a finer one to judge by, the whole window to be sure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError
from geoedge.planning.places.field import NONE, Evaluator, Value, equipped, useful_load
from geoedge.planning.places.search import Limits, exchange, grow, useful_profiles
from geoedge.planning.window import coarser
from geoedge.study.window import window_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from geoedge.planning.places.search import Option
    from geoedge.study import Study

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["SEARCH_PLACES", "EquippedPlace", "Planner"]

SEARCH_PLACES, JUDGE_PLACES, JUDGE_PARTS = 500, 1500, 2
"""Cells of demand in the search and where a choice is judged, and parts that the window is judged in."""
CLOSE_TO_TARGET = 0.03
"""A choice is judged once its score in the search comes this near to the reliability."""


@dataclass(frozen=True)
class EquippedPlace:
    """A place in the order of building.

    Attributes
    ----------
    place
        Its number among the candidates.
    name, kind
        What the map or file calls it.
    street
        Name of the street at which it stands; empty where none is near.
    lon, lat
        Where it is [degree].
    profile
        The profile to store there.
    coverage
        Share of all requests in time once it is built.
    served_in_time
        The same if the network turns away what it cannot carry; the refused are not in time.
    admitted
        Share of the requests that are then let in.
    """

    place: int
    name: str
    kind: str
    street: str
    lon: float
    lat: float
    profile: str
    coverage: float
    served_in_time: float
    admitted: float


class Planner:
    """Searches, judges and makes sure; the arguments are those of `plan_places`, with nothing left out."""

    def __init__(
        self,
        study: Study,
        zeta: float,
        tau: float,
        sites: int | None,
        orders: int,
        tell: Callable[[str, int, int], None],
    ) -> None:
        from geoedge.planning.inputs import placement_limits
        from geoedge.study import service_queue

        self.study, self.zeta, self.tau, self.sites, self.orders = study, zeta, tau, sites, orders
        self.tell = tell
        parts, weight = window_parts(study, JUDGE_PARTS)
        (mean,), _ = window_parts(study, 1)
        self.level = useful_load(study.workload, mean.mix, tau, service_queue(study.scenario))
        self.search = Evaluator(study, [coarser(mean, SEARCH_PLACES)], np.ones(1), tau, self.level)
        self.judge = Evaluator(
            study,
            [coarser(each, JUDGE_PLACES) for each in parts],
            weight,
            tau,
            self.level,
            tells_coverage=True,
        )
        shares = placement_limits(study.scenario, study.workload)
        self.limits = Limits(shares)
        profiles = useful_profiles(self.search, shares)
        self.options = [(place, profile) for place in range(len(study.layout)) for profile in profiles]

    def choose(self) -> tuple[Ints, float, Floats]:
        """Return the choice, its coverage on the whole window, and that of greedy growth on the merged one."""
        grown = self._grow()
        greedy = self._judged([held for _, held, _ in grown])
        held, coverage = self._chosen(grown)
        return held, coverage, np.array([value.coverage for value in greedy])

    def whole(self, held: Ints) -> float:
        """Return the coverage of a choice on the whole window, epoch by epoch."""
        from geoedge.study import field_answers

        study = self.study.with_layout(equipped(self.study.layout, held))
        return field_answers(study, warm_up=False, tolerance=1e-3).ttft_coverage(self.tau)

    def _grow(self) -> list[tuple[Option, Ints, Value]]:
        """Return the steps of greedy growth, up to the number of sites asked for or the reliability."""
        most, steps = self.sites or len(self.study.layout), []
        for step in grow(self.search, self.options, self.limits):
            steps.append(step)
            self.tell("places, one by one", len(steps), most)
            near = self.sites is None and step[2].coverage >= self.zeta - CLOSE_TO_TARGET
            if len(steps) == most or (near and self._enough(step[1])):
                break
        if not steps or (self.sites is not None and len(steps) < self.sites):
            msg = (
                f"plan_places: the limits of the mix let only {len(steps)} places be equipped; raise "
                "plan.memory_budget_bytes or control.deep_cap, or lower control.fallback_floor"
            )
            raise GeoEdgeError(msg)
        return steps

    def _enough(self, held: Ints) -> bool:
        return self.judge.value(held).coverage >= self.zeta and self.whole(held) >= self.zeta

    def _judged(self, choices: Sequence[Ints]) -> list[Value]:
        found: list[Value] = []
        for held in choices:
            found.append(self.judge.value(held, found[-1] if found else None))
            self.tell("judging", len(found), len(choices))
        return found

    def _chosen(self, grown: Sequence[tuple[Option, Ints, Value]]) -> tuple[Ints, float]:
        """Return the choice and its coverage on the whole window: exchanged, and with fewer places while enough."""
        held, coverage = self._exchanged(grown[-1][1])
        present = self.study.layout.profile
        if len(grown) == len(present) and self.limits.hold(present):  # with all places, one more start
            other = self._exchanged(present)
            held, coverage = max((held, coverage), other, key=lambda found: found[1])
        while self.sites is None and coverage >= self.zeta and (held != NONE).sum() > 1:
            fewer = self._without_least(held)
            if fewer is None:
                break
            fewer, covered = self._exchanged(fewer)
            if covered < self.zeta:
                break
            held, coverage = fewer, covered
        return held, coverage

    def _exchanged(self, held: Ints) -> tuple[Ints, float]:
        """Return a choice after exchanges, if these are for the better on the whole window too."""
        size = int((held != NONE).sum())
        better, _ = exchange(
            self.search,
            held,
            self.options,
            self.limits,
            progress=lambda k: self.tell(f"exchanges, {size} places", k, 0),
        )
        asked = [(each, self.whole(each)) for each in ((held, better) if (better != held).any() else (held,))]
        return max(asked, key=lambda found: found[1])

    def _without_least(self, held: Ints) -> Ints | None:
        """Return the best choice of one place less that keeps the limits; None if there is none."""
        now, found = self.search.value(held), []
        for place in np.flatnonzero(held != NONE):
            fewer = held.copy()
            fewer[place] = NONE
            if self.limits.hold(fewer):
                found.append((self.search.value(fewer, now).score, -place, fewer))
        return max(found, key=lambda each: each[:2])[2] if found else None

    def order(self, held: Ints) -> tuple[EquippedPlace, ...]:
        """Return the chosen places in the order of building, each judged on the merged window."""
        chosen = [(int(place), int(held[place])) for place in np.flatnonzero(held != NONE)]
        steps = list(grow(self.search, chosen))
        values = self._judged([each for _, each, _ in steps])
        return tuple(self._rows([option for option, _, _ in steps], values))

    def _rows(self, order: Sequence[Option], values: Sequence[Value]) -> Iterator[EquippedPlace]:
        layout, names = self.study.layout, self.study.workload.profile_names
        lonlat, streets = self.study.city.to_lonlat(layout.xy), self.study.city.street_names.at(layout.xy)
        for (place, profile), value in zip(order, values, strict=True):
            lon, lat = map(float, lonlat[place])
            yield EquippedPlace(
                place,
                layout.name[place],
                layout.kind[place],
                streets[place],
                lon,
                lat,
                names[profile],
                value.coverage,
                value.score,
                value.admitted,
            )
