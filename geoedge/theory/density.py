"""How many sites are enough, Eq. (51): with the mix as it is, or with the best mix at each density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar

from geoedge.errors import GeoEdgeError
from geoedge.streams import generator
from geoedge.theory._asked import Solver, Window
from geoedge.theory._mixes import PlacementLimits
from geoedge.theory._search import Search, climb
from geoedge.theory.equilibrium import Policy
from geoedge.theory.heterogeneity import LoadLaw
from geoedge.theory.network import TieredNetwork
from geoedge.theory.placement import Case, Method, fitting, known_method, present_mix
from geoedge.theory.protocols import QueueOfMix, WaitModel

__all__ = ["DensityAndMix", "minimum_density", "minimum_density_and_mix"]

FloatArray = NDArray[np.float64]

_FARTHEST = 60.0 * math.log(2.0)  # how far the density is raised before none is called enough
_EXACT, _ROUGH = 1e-13, 1e-6  # relative width of the bracket of a density, smooth coverage or not
_FINE, _COARSE = math.log(2.0) / 16.0, math.log(2.0) / 4.0  # logs between densities of a scan, smooth or not
_BOUND_STEPS, _BOUND_DIGITS = (
    50,
    1e-9,
)  # Newton steps for the bound of a density, and what rounding may take off it
_MANY = 1e3  # times as many sites, where prefill alone decides which mix can reach a target
_ROUNDS = 20


class DensityAndMix(NamedTuple):
    """The least density, the mix that needs no more, and what it took to find them.

    Attributes
    ----------
    site_density
        Density λ_b [1/km²]; infinite where none is enough with any mix found.
    placement_probability
        The mix π, shape (S,).
    solved
        Fixed points solved.
    """

    site_density: float
    placement_probability: FloatArray
    solved: int


def minimum_density(
    networks: Case,
    reliability: float,
    ttft_target: float,
    policy: Policy = "load_aware",
    *,
    weights: ArrayLike | None = None,
    law: LoadLaw = "mean_field",
    queue: WaitModel | QueueOfMix | None = None,
) -> float:
    """Return the least site density that covers a share of requests in time [1/km²], Eq. (51).

    The placement and the spatial demand stay as they are; only the number of sites changes. Coverage need not rise
    with it: load-aware and prefix-only routing send more requests to busy tiers when these come closer. So a density
    that is enough is found first, by Brent's method on its logarithm, and all below it are scanned, 16 an octave (4 for
    laws that sample cells), down to where radio, prefill and servers make the target impossible, or a load-aware
    network is unstable, which it is taken to remain below (the critical intensity rose about in proportion to the
    sites in all of 333 random networks). The lowest crossing is found by Brent's method again. A peak between two
    densities of the scan is looked for where the slopes beside it may take it to the level, but not for laws that
    sample cells; a narrower one is missed. With load-aware routing all networks must be stable; otherwise requests
    at overloaded tiers are misses.

    Cost: about ten solutions (more at a jump), and those of the scan, each fixed point from the waits of the last.

    Parameters
    ----------
    networks
        The network whose density is scaled, or several of the same sites that count by weight.
    reliability
        Share ζ of requests to cover, in (0, 1).
    ttft_target
        Target τ₀ of the time to first token [s].
    weights
        Weight of each network; alike if omitted.
    policy, queue
        As in `solve`.
    law
        The coverage that counts, as in `optimal_placement`.

    Returns
    -------
    float
        Density λ_b [1/km²]; infinite where no density is enough, as when prefill alone takes longer.

    Raises
    ------
    GeoEdgeError
        If the reliability lies outside (0, 1).
    """
    _check_reliability("minimum_density", reliability)
    window = Window(networks, weights, ttft_target, lambda: Solver(policy, law, queue))
    return _least_factor(window, None, reliability, policy) * window.site_density


def minimum_density_and_mix(
    networks: Case,
    reliability: float,
    ttft_target: float,
    limits: PlacementLimits | None = None,
    *,
    weights: ArrayLike | None = None,
    method: Method = "slsqp",
    policy: Policy = "load_aware",
    law: LoadLaw = "mean_field",
    queue: WaitModel | QueueOfMix | None = None,
    step: float = 0.05,
    rng: np.random.Generator | int | None = None,
) -> DensityAndMix:
    """Return the least site density over all mixes that keep the limits, and its mix.

    The best mix at a density reaches the target with fewer sites; at that density the mix is improved, and so on.
    Near the end neither step changes the other's answer to first order, so that few rounds are enough. The density is
    the least of its mix, as `minimum_density` finds it; that no other mix needs less is as sure as the search is to
    find the best mix at that density, and no density far below is searched.

    Parameters
    ----------
    networks, reliability, ttft_target, weights, policy, law, queue
        As in `minimum_density`.
    limits, method, step, rng
        As in `optimal_placement`; the first search is by `method`, later ones climb from the mix before.

    Raises
    ------
    GeoEdgeError
        If the reliability lies outside (0, 1), or as in `optimal_placement`.
    """
    _check_reliability("minimum_density_and_mix", reliability)
    window = Window(networks, weights, ttft_target, lambda: Solver(policy, law, queue))
    limits, present = fitting(limits, window), present_mix(window)
    random = None if rng is None else generator(rng)

    def needed(mix: FloatArray, guess: float = 1.0) -> float:
        return _least_factor(window, mix, reliability, policy, guess)

    mix, factor = present, math.inf
    for sites in (1.0, _MANY):
        search = _search(window, limits, sites, policy)
        search.run(known_method(method), [present], step=step, rng=random)
        mix, factor = search.best_mix, needed(search.best_mix)
        if factor < math.inf:
            break
    if limits.holds(present) and (as_it_is := needed(present)) < factor:
        mix, factor = present, as_it_is
    for _ in range(_ROUNDS if factor < math.inf else 0):
        search = _search(window, limits, factor, policy)
        climb(search, mix)
        fewer = needed(search.best_mix, factor)
        if not fewer < factor * (1.0 - 1e-9):
            break
        mix, factor = search.best_mix, fewer
    return DensityAndMix(factor * window.site_density, mix, window.solved)


def _search(window: Window, limits: PlacementLimits, factor: float, policy: Policy) -> Search:
    """Return a search of the best mix at that many times as many sites."""
    ask = _asked_of(window, policy)
    return Search(lambda shares: np.array([ask(shares, factor)]), limits, smooth=window.smooth)


def _asked_of(window: Window, policy: Policy) -> Callable[[FloatArray | None, float], float]:
    """Return the coverage that counts: only a load-aware one is zero where stability ends, and carried on below."""
    return window.score if policy == "load_aware" else window.coverage


def _check_reliability(where: str, reliability: float) -> None:
    if not 0.0 < reliability < 1.0:
        msg = f"{where}: `reliability` must lie in (0, 1), not {reliability}"
        raise GeoEdgeError(msg)


def _least_factor(
    window: Window, shares: FloatArray | None, reliability: float, policy: Policy, guess: float = 1.0
) -> float:
    """Return the least number of times as many sites with which the coverage is reached; may be infinite."""
    floor = _impossible_below(window, shares, reliability, policy)
    if floor == math.inf:
        return floor
    ask = _asked_of(window, policy)
    return _LeastArgument(lambda factor: ask(shares, factor), reliability, floor, smooth=window.smooth).find(
        guess
    )


def _impossible_below(window: Window, shares: FloatArray | None, reliability: float, policy: Policy) -> float:
    """Return a number of times as many sites that certainly does not reach the coverage; infinite if none does.

    A request in time has a site within the way that its prefill leaves, and a server that is not overloaded.
    """
    networks = window.networks_with(shares)
    part = np.concatenate([w * n.type_probability for w, n in zip(window.weights, networks, strict=True)])
    sites = np.concatenate([_sites_in_reach(network, window.ttft_target) for network in networks])
    if part[sites > 0.0].sum() <= reliability:
        return math.inf
    factor = 0.0
    for _ in range(_BOUND_STEPS):  # from the left of the root of a concave function, and so never beyond it
        lacking = reliability + part @ np.expm1(-factor * sites)
        if lacking <= 0.0:
            break
        factor += float(lacking / (part * sites @ np.exp(-factor * sites)))
    if policy == "load_aware":  # all are to be stable
        full = max(network.request_intensity / network.necessary_intensity for network in networks)
    else:
        full = reliability * min(_least_fill(network) for network in networks)
    return max(factor, full) * (1.0 - _BOUND_DIGITS)


def _sites_in_reach(network: TieredNetwork, ttft_target: float) -> FloatArray:
    """Return the mean number of sites from which radio delay and prefill alone are in time, shape (Q,)."""
    left = np.maximum(ttft_target - network.prefill_time, 0.0) / network.delay_coefficient
    return np.asarray(math.pi * network.tier_density @ left ** (2.0 / network.delay_exponent))


def _least_fill(network: TieredNetwork) -> float:
    """Return how full all tiers together are if every request is the quickest there is."""
    there = network.tier_density > 0.0
    work = network.request_intensity * float(network.occupancy_time[there].min())
    return work / float(network.tier_density @ network.concurrency)


class _LeastArgument:
    """Find the least argument at which a function that need not rise reaches a level, on a logarithmic scale.

    Parameters
    ----------
    function
        Function of positive arguments, below zero where it is not to be followed any further down.
    level
        The level, above zero.
    floor
        Argument below which the level is certainly not reached.
    smooth
        Whether the function is smooth enough for a fine scan and for its peaks to be looked for.
    """

    def __init__(
        self, function: Callable[[float], float], level: float, floor: float, *, smooth: bool
    ) -> None:
        self._function, self._level = function, level
        self._floor, self._smooth = math.log(floor) if floor > 0.0 else -_FARTHEST, smooth
        self._known: dict[float, float] = {}

    def find(self, guess: float) -> float:
        """Return the least argument found; infinite if none is."""
        self._bracket(max(math.log(guess), self._floor))
        if not any(self._reached(log) for log in self._known):
            return math.inf
        self._polish()
        scanned = self._scan(self._least())
        if self._smooth:
            self._climb_peaks(scanned)
        self._polish()
        return math.exp(self._least())

    def _at(self, log: float) -> float:
        if log not in self._known:
            self._known[log] = self._function(math.exp(log))
        return self._known[log]

    def _reached(self, log: float) -> bool:
        return self._at(log) >= self._level

    def _least(self) -> float:
        """Return the least argument known to reach the level."""
        return min(log for log in self._known if self._reached(log))

    def _bracket(self, start: float) -> None:
        """Ask ever farther up until the level is reached, or ever farther down until it is not."""
        log, step, down = start, 0.25, self._reached(start)
        while (
            self._reached(log) is down and abs(log - start) <= _FARTHEST and not (down and log <= self._floor)
        ):
            log = max(log - step, self._floor) if down else log + step
            step *= 2.0

    def _polish(self) -> None:
        """Narrow the lowest crossing between what is known."""
        high, width = self._least(), _EXACT if self._smooth else _ROUGH
        low = max((log for log in self._known if log < high), default=high)
        if high - low > width:
            rounding = 4.0 * float(np.finfo(np.float64).eps)
            brentq(lambda log: self._at(log) - self._level, low, high, xtol=width, rtol=rounding)

    def _scan(self, top: float) -> list[float]:
        """Ask at even steps down from the top, closer ones first, and return where, rising.

        A fall that a steep rise to the top hides is seen next to the top alone.
        """
        step = _FINE if self._smooth else _COARSE
        asked, width = [top], step / 8.0
        while asked[-1] > self._floor and self._at(asked[-1]) >= 0.0:
            asked.append(max(asked[-1] - width, self._floor))
            width = min(2.0 * width, step)
        return asked[::-1]

    def _climb_peaks(self, asked: list[float]) -> None:
        """Look between arguments for peaks that reach the level, if that is not beyond the slopes beside them."""
        for before, here, after in zip(asked, asked[1:], asked[2:], strict=False):
            rise, fall = self._at(here) - self._at(before), self._at(here) - self._at(after)
            left, right = here - before, after - here
            ahead = max(rise * right / left, fall * left / right)
            if min(rise, fall) > 0.0 and 0.0 < self._level - self._at(here) <= ahead:
                minimize_scalar(
                    lambda log: -self._at(float(log)),
                    bracket=(before, here, after),
                    method="brent",
                    options={"xtol": 1e-4, "maxiter": 20},
                )
                if self._least() < after:
                    return
