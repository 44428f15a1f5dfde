"""What a plan of places is measured by: places in random order, and theory's density."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from geoedge.planning.orders import steady_profiles
from geoedge.planning.places.field import NONE
from geoedge.streams import stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from geoedge.planning.places.field import Evaluator, Value
    from geoedge.study import Study

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

__all__ = ["Yardsticks"]

COUNTS = 10
"""Numbers of sites at which random orders and theory are asked."""
BAND = (0.025, 0.5, 0.975)


class _Asked(Protocol):
    """The planner, as far as yardsticks ask it."""

    study: Study
    judge: Evaluator
    zeta: float
    tau: float
    orders: int
    tell: Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Yardsticks:
    """Random orders and theory beside a plan, all with the plan's own mix of profiles.

    Attributes
    ----------
    counts
        Numbers of sites, rising, shape (K,).
    random
        2.5 %, 50 % and 97.5 % of the coverage of random orders there, shape (K, 3); on the merged window.
    random_needed
        The same of the places that the reliability takes in random order, infinite where all are not enough.
    theory
        Coverage of a Poisson network of as many sites on the city's land, shape (K,).
    theory_needed
        Sites that theory's least density for the reliability means on the city's land; infinite if none is enough.
    """

    counts: Ints
    random: Floats
    random_needed: tuple[float, float, float]
    theory: Floats
    theory_needed: float

    @classmethod
    def ask(cls, asked: _Asked, held: Ints) -> Yardsticks:
        """Return the yardsticks of a choice.

        Parameters
        ----------
        asked
            The planner.
        held
            The plan's choice, whose mix counts.
        """
        profiles = held[held != NONE]
        mix = np.bincount(profiles, minlength=len(asked.study.workload.profile_names)) / len(profiles)
        places = len(held)
        counts = np.unique(np.linspace(max(1, places // COUNTS), places, COUNTS).round().astype(np.int64))
        orders = [_random_order(asked, mix, counts, k) for k in range(asked.orders)]
        curves, needed = np.array([curve for curve, _ in orders]), [least for _, least in orders]
        low, middle, high = np.quantile(needed, BAND, method="nearest")
        theory, least = _theory(asked, mix, counts)
        band = np.quantile(curves, BAND, axis=0).T
        return cls(counts, band, (float(low), float(middle), float(high)), theory, least)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values; an infinite one as None."""
        low, middle, high = (each if np.isfinite(each) else None for each in self.random_needed)
        return {
            "random_needed": {"low": low, "median": middle, "high": high},
            "theory_needed": self.theory_needed if np.isfinite(self.theory_needed) else None,
            "curve": {
                "sites": self.counts.tolist(),
                "random_low": self.random[:, 0].tolist(),
                "random_median": self.random[:, 1].tolist(),
                "random_high": self.random[:, 2].tolist(),
                "theory": self.theory.tolist(),
            },
        }


def _random_order(asked: _Asked, mix: Floats, counts: Ints, index: int) -> tuple[Floats, float]:
    """Return the coverage of the first places of a random order, and how many of them the reliability takes."""
    judge, rng = asked.judge, stream(asked.study.scenario.seed, "random places", index)
    order, profile = rng.permutation(judge.places), steady_profiles(mix, judge.places)
    value: Value | None = None

    def covered(count: int) -> float:
        nonlocal value
        held = np.full(judge.places, NONE, dtype=np.int64)
        held[order[:count]] = profile[:count]
        value = judge.value(held, value)
        return value.coverage

    curve = np.array([covered(int(count)) for count in counts])
    least = _first(counts, curve, asked.zeta, covered)
    asked.tell("random orders", index + 1, asked.orders)
    return curve, least


def _first(counts: Ints, curve: Floats, level: float, covered: Callable[[int], float]) -> float:
    """Return the least number of sites that reaches a level.

    It lies on straight lines between what is known; below the least count known, fewer are asked by bisection.
    """
    reached = np.flatnonzero(curve >= level)
    if not reached.size:
        return float("inf")
    at = int(reached[0])
    if at == 0:
        low, high = 0, int(counts[0])
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if covered(middle) >= level else (middle, high)
        return float(high)
    part = (level - curve[at - 1]) / (curve[at] - curve[at - 1])
    return float(np.ceil(counts[at - 1] + part * (counts[at] - counts[at - 1]) - 1e-9))


def _theory(asked: _Asked, mix: Floats, counts: Ints) -> tuple[Floats, float]:
    """Return what theory covers with these numbers of sites, and how many the reliability takes."""
    from geoedge import theory
    from geoedge.study import poisson_network, service_queue
    from geoedge.theory.density import minimum_density

    study = asked.study
    policy, queue, area = study.scenario.routing.solved_as, service_queue(study.scenario), study.city.area_km2
    epochs = np.flatnonzero(study.expected_requests > 0)
    weight = study.expected_requests[epochs] / study.expected_requests[epochs].sum()
    networks = [poisson_network(study, study.demand[k]).with_placement(mix) for k in epochs]
    covered = np.zeros(len(counts))
    for k, count in enumerate(counts):
        factor = count / (networks[0].site_density * area)
        answers = [theory.solve(each.scaled(factor), policy, queue=queue) for each in networks]
        covered[k] = weight @ [float(answer.ttft_coverage(asked.tau)) for answer in answers]
    least = minimum_density(networks, asked.zeta, asked.tau, policy, weights=weight, queue=queue)
    return covered, float(least * area)
