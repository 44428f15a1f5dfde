"""What planning asks again and again: the coverage of one or several networks that differ a little each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory.coverage import TheoryAnswer
from geoedge.theory.equilibrium import Policy, solve_equilibrium
from geoedge.theory.heterogeneity import LOAD_LAWS, LoadLaw, solve_law
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel

__all__ = ["Solver", "Window"]

FloatArray = NDArray[np.float64]


class Solver:
    """Solve networks one after the other, each from the waits of the one before.

    Parameters
    ----------
    policy, queue
        As in `solve`.
    law
        ``"mean_field"``, or ``"per_tier"`` or ``"per_site"`` for loads that differ from site to site.
    """

    def __init__(
        self,
        policy: Policy = "load_aware",
        law: LoadLaw = "mean_field",
        queue: WaitModel | QueueOfMix | None = None,
    ) -> None:
        if law not in LOAD_LAWS:
            msg = f"placement: `law` is {law!r}, but must be one of {', '.join(LOAD_LAWS)}"
            raise GeoEdgeError(msg)
        self.policy, self.law, self.queue = policy, law, queue
        self.solved = 0
        self._waits: FloatArray | None = None

    @property
    def smooth(self) -> bool:
        """Whether answers follow parameters smoothly; laws that sample cells or sites do not."""
        return self.law == "mean_field"

    def tier_answer(self, network: TieredNetwork) -> TheoryAnswer:
        """Return the mean-field answer."""
        self.solved += 1
        point = solve_equilibrium(network, self.policy, queue=self.queue, start=self._waits)
        if self.policy == "load_aware" and point.stable:
            self._waits = point.advertised_wait
        return TheoryAnswer(point)

    def answer(self, network: TieredNetwork) -> TheoryAnswer:
        """Return the answer of the law."""
        return self.tier_answer(network) if self.law == "mean_field" else self.site_answer(network)

    def site_answer(self, network: TieredNetwork) -> TheoryAnswer:
        """Return the answer of a law that lets loads differ from site to site."""
        self.solved += 1
        return solve_law(network, self.law, self.policy, queue=self.queue)

    def score(self, network: TieredNetwork, ttft_target: float) -> float:
        """Return the coverage of a stable network, and how far an unstable one is from stability, below zero.

        The two meet where a load-aware network gets unstable, so that a search finds its way back.
        """
        plain = self.tier_answer(network)
        if not plain.stable:
            return 1.0 - float(plain.utilization[network.tier_density > 0.0].max())
        answer = plain if self.law == "mean_field" else self.site_answer(network)
        return float(answer.ttft_coverage(ttft_target))


class Window:
    """One network, or several that count by weight, such as the hours of a day, asked for their mean coverage.

    Parameters
    ----------
    networks
        Networks of the same profiles and site density.
    weights
        Weight of each, such as its requests; alike if omitted.
    ttft_target
        Target τ₀ of the time to first token [s].
    solver
        Makes a solver for each network.

    Raises
    ------
    GeoEdgeError
        If there is no network, profiles differ, or weights make no sense.
    """

    def __init__(
        self,
        networks: TieredNetwork | Sequence[TieredNetwork],
        weights: ArrayLike | None,
        ttft_target: float,
        solver: Callable[[], Solver],
    ) -> None:
        self.networks = (networks,) if isinstance(networks, TieredNetwork) else tuple(networks)
        count = len(self.networks)
        if not count or len({network.tiers for network in self.networks}) != 1:
            msg = f"placement: `networks` are {count} of differing profiles, but must be one or more of the same profiles"
            raise GeoEdgeError(msg)
        given = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
        if given.shape != (count,) or not (np.isfinite(given) & (given >= 0.0)).all() or not given.any():
            msg = f"placement: `weights` are {given.tolist()}, but must be {count} numbers >= 0, not all of them 0"
            raise GeoEdgeError(msg)
        if not 0.0 < ttft_target < np.inf:
            msg = f"placement: `ttft_target` is {ttft_target}, but must be a finite time > 0 s"
            raise GeoEdgeError(msg)
        self.ttft_target = float(ttft_target)
        used = given > 0.0
        self.networks = tuple(network for network, use in zip(self.networks, used, strict=True) if use)
        self.weights = given[used] / given.sum()
        self._solvers = tuple(solver() for _ in self.networks)

    @property
    def site_density(self) -> float:
        """Density λ_b of all sites [1/km²], averaged over the window."""
        return float(self.weights @ [network.site_density for network in self.networks])

    @property
    def smooth(self) -> bool:
        """Whether answers follow parameters smoothly."""
        return self._solvers[0].smooth

    @property
    def solved(self) -> int:
        """Fixed points solved so far."""
        return sum(solver.solved for solver in self._solvers)

    def networks_with(self, shares: FloatArray | None, factor: float = 1.0) -> list[TieredNetwork]:
        """Return the networks with other shares of their sites, and that many times as many sites."""
        if shares is None:
            return [network.scaled(factor) for network in self.networks]
        return [
            replace(network, tier_density=factor * network.site_density * shares) for network in self.networks
        ]

    def score(self, shares: FloatArray | None = None, factor: float = 1.0) -> float:
        """Return the mean coverage, or below zero the farthest distance from stability.

        Parameters
        ----------
        shares
            Share of sites of each profile, shape (S,); those of the networks by default.
        factor
            Sites over those of the networks.
        """
        asked = zip(self.networks_with(shares, factor), self._solvers, strict=True)
        scores = np.array([solver.score(network, self.ttft_target) for network, solver in asked])
        return float(scores.min() if (scores < 0.0).any() else self.weights @ scores)

    def coverage(self, shares: FloatArray | None = None, factor: float = 1.0) -> float:
        """Return the mean coverage, requests at overloaded tiers being misses."""
        answers = self.answers(shares, factor)
        return float(self.weights @ [float(answer.ttft_coverage(self.ttft_target)) for answer in answers])

    def changed(self, change: Callable[[TieredNetwork, float], TieredNetwork], value: float) -> float:
        """Return the mean coverage if each network is changed by the same function and value."""
        found = [
            float(solver.answer(change(network, value)).ttft_coverage(self.ttft_target))
            for network, solver in zip(self.networks, self._solvers, strict=True)
        ]
        return float(self.weights @ found)

    def answers(self, shares: FloatArray | None = None, factor: float = 1.0) -> tuple[TheoryAnswer, ...]:
        """Return the answer of each network."""
        asked = zip(self.networks_with(shares, factor), self._solvers, strict=True)
        return tuple(solver.answer(network) for network, solver in asked)
