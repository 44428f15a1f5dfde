"""How many sites are enough, Eq. (51): with the mix as it is, or with the best mix at each density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from geoedge.errors import GeoEdgeError
from geoedge.theory._asked import Solver, Window
from geoedge.theory._mixes import MixLimits
from geoedge.theory._search import Search, climb
from geoedge.theory.equilibrium import Policy
from geoedge.theory.placement import Case, Method, fitting, generator, known_method, present_mix
from geoedge.theory.protocols import QueueOfMix, WaitModel

if TYPE_CHECKING:
    from geoedge.theory.heterogeneity import Law

__all__ = ["DensityAndMix", "minimum_density", "minimum_density_and_mix"]

FloatArray = NDArray[np.float64]

_FARTHEST = 60.0 * math.log(2.0)  # how far the density is raised before none is called enough
_EXACT, _ROUGH = 1e-13, 1e-6  # relative width of the bracket of a density, smooth coverage or not
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
    law: Law = "mean_field",
    queue: WaitModel | QueueOfMix | None = None,
) -> float:
    """Return the least site density that covers a share of requests in time [1/km²], Eq. (51).

    The placement and the spatial demand stay as they are; only the number of sites changes. Brent's method on the
    logarithm of the density, each fixed point from the waits of the last: about ten solutions, more at a jump.

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
    limits: MixLimits | None = None,
    *,
    weights: ArrayLike | None = None,
    method: Method = "slsqp",
    policy: Policy = "load_aware",
    law: Law = "mean_field",
    queue: WaitModel | QueueOfMix | None = None,
    step: float = 0.05,
    rng: np.random.Generator | int | None = None,
) -> DensityAndMix:
    """Return the least site density over all mixes that keep the limits, and its mix.

    The best mix at a density reaches the target with fewer sites; at that density the mix is improved, and so on.
    Near the end neither step changes the other's answer to first order, so that few rounds are enough.

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
    limits, random = fitting(limits, window), generator(rng)
    factor = math.inf
    for sites in (1.0, _MANY):
        search = _search(window, limits, sites)
        search.run(known_method(method), [present_mix(window)], step=step, rng=random)
        mix = search.best_mix
        factor = _least_factor(window, mix, reliability, policy)
        if factor < math.inf:
            break
    for _ in range(_ROUNDS if factor < math.inf else 0):
        search = _search(window, limits, factor)
        climb(search, mix)
        fewer = _least_factor(window, search.best_mix, reliability, policy, factor)
        if not fewer < factor * (1.0 - 1e-9):
            break
        mix, factor = search.best_mix, fewer
    return DensityAndMix(factor * window.site_density, mix, window.solved)


def _search(window: Window, limits: MixLimits, factor: float) -> Search:
    """Return a search of the best mix at that many times as many sites."""
    return Search(lambda shares: np.array([window.score(shares, factor)]), limits, smooth=window.smooth)


def _check_reliability(where: str, reliability: float) -> None:
    if not 0.0 < reliability < 1.0:
        msg = f"{where}: `reliability` must lie in (0, 1), not {reliability}"
        raise GeoEdgeError(msg)


def _least_factor(
    window: Window, shares: FloatArray | None, reliability: float, policy: Policy, guess: float = 1.0
) -> float:
    """Return the least number of times as many sites with which the coverage is reached; may be infinite."""
    # only a load-aware coverage goes to zero where stability ends and is carried on below by the score
    ask = window.score if policy == "load_aware" else window.coverage
    width = _EXACT if window.smooth else _ROUGH
    return _first_reached(lambda factor: ask(shares, factor) - reliability, guess, width)


def _first_reached(rising: Callable[[float], float], guess: float, width: float) -> float:
    """Return the least positive argument at which a rising function is not negative; infinite if it never is."""
    known: dict[float, float] = {}

    def surplus(log: float) -> float:
        if log not in known:
            known[log] = rising(math.exp(log))
        return known[log]

    start = end = math.log(guess)
    down = -1.0 if surplus(start) >= 0.0 else 1.0
    step = 0.25
    while (surplus(end) >= 0.0) == (down < 0.0):
        if abs(end - start) > _FARTHEST:
            return math.inf if down > 0.0 else math.exp(end)
        start, end, step = end, end + down * step, 2.0 * step
    brentq(surplus, start, end, xtol=width, rtol=4.0 * float(np.finfo(np.float64).eps))
    return math.exp(min(log for log, value in known.items() if value >= 0.0))
