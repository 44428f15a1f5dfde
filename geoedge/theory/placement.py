"""Which mix of cache profiles covers most requests in time, Eqs. (49, 50), under one load or under several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.streams import generator
from geoedge.theory._asked import Solver, Window
from geoedge.theory._mixes import Binding, PlacementLimits, project_placement
from geoedge.theory._search import METHODS, Search
from geoedge.theory.equilibrium import Policy
from geoedge.theory.heterogeneity import LoadLaw
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import QueueOfMix, WaitModel

__all__ = [
    "Binding",
    "Method",
    "Placement",
    "PlacementLimits",
    "RobustPlacement",
    "optimal_placement",
    "project_placement",
    "robust_placement",
]

FloatArray = NDArray[np.float64]
Method = Literal["slsqp", "grid", "cobyqa", "spsa"]
Criterion = Literal["mean", "worst", "regret"]
Case = TieredNetwork | Sequence[TieredNetwork]


@dataclass(frozen=True, eq=False)
class Placement:
    """The best mix found, beside the uniform and the present one.

    Attributes
    ----------
    placement_probability
        The mix π, shape (S,).
    coverage
        Its coverage; requests at overloaded tiers are misses.
    stable
        Whether its fixed point is stable; if not, no stable mix was found and this one is closest to stability.
    binding
        Limits that it reaches.
    evaluations
        Mixes whose fixed points were solved.
    method, limits
        How it was found and what it keeps to.
    answers
        The answer of each network at this mix.
    uniform, uniform_coverage
        The same share of every profile, shape (S,), whether it keeps the limits or not, and its coverage.
    present, present_coverage
        The mix of the (first) network as given, and its coverage.
    """

    placement_probability: FloatArray
    coverage: float
    stable: bool
    binding: Binding
    evaluations: int
    method: str
    limits: PlacementLimits
    answers: tuple[Any, ...]
    uniform: FloatArray
    uniform_coverage: float
    present: FloatArray
    present_coverage: float


@dataclass(frozen=True, eq=False)
class RobustPlacement:
    """One mix for several cases, with what it gives up in each.

    Attributes
    ----------
    placement_probability
        The mix π, shape (S,).
    criterion
        What was made as large as possible.
    coverage
        Coverage of the mix in each case, shape (K,).
    stable
        Whether it is stable in each case, shape (K,).
    best
        The best mix of each case alone, length K.
    regret
        Coverage of each case's own best mix minus that of this one, shape (K,).
    evaluations
        Mixes scored, those of the single cases included.
    """

    placement_probability: FloatArray
    criterion: str
    coverage: FloatArray
    stable: NDArray[np.bool_]
    best: tuple[Placement, ...]
    regret: FloatArray
    evaluations: int


def optimal_placement(
    networks: Case,
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
    polish: bool = True,
    starts: Sequence[ArrayLike] = (),
    max_evaluations: int = 100_000,
) -> Placement:
    """Return the mix of profiles that covers most requests in time within its limits, Eq. (49).

    The number of sites, the demand, and what each profile holds stay as they are. A mix counts by the coverage at
    its own fixed point, and only if that is stable.

    Parameters
    ----------
    networks
        The network, or several of the same sites that count by weight, as the hours of a day do.
    ttft_target
        Target τ₀ of the time to first token [s].
    limits
        What a mix must keep to; any mix if omitted.
    weights
        Weight of each network; alike if omitted.
    method
        ``"slsqp"``: uphill from several starts (fast, for any number of profiles). ``"grid"``: every mix on a
        lattice of `step`, for few profiles. ``"cobyqa"``: derivative-free trust region. ``"spsa"``: projected
        random directions of width `step`, with `rng`.
    policy, queue
        As in `solve`.
    law
        The coverage that counts: ``"mean_field"``, ``"per_tier"`` or ``"per_site"``.
    step
        Step of the lattice, or width of a random step, in shares of sites.
    rng
        Random generator or seed, for ``"spsa"`` alone.
    polish
        Whether a method other than ``"slsqp"`` ends with one climb as that method does, from the best mix found; without
        it methods can be compared.
    starts
        Mixes to start from besides the uniform and the present one.
    max_evaluations
        Mixes scored at most; the best so far is returned.

    Raises
    ------
    GeoEdgeError
        If the method or law is unknown, limits fit no mix or another number of profiles, or the lattice is too large.

    Examples
    --------
    >>> net = TieredNetwork(  # the second profile is as good and holds more of every prompt
    ...     [0.5, 0.5], [4, 4], [1.0], [[0.5], [0.2]], [[1.0], [0.7]], 1.0, 0.1, 2.0, [[0], [50]], [100], [0.5])
    >>> optimal_placement(net, 0.8).placement_probability.round(3).tolist()
    [0.0, 1.0]
    """
    window = Window(networks, weights, ttft_target, lambda: Solver(policy, law, queue))
    limits = fitting(limits, window)
    uniform, present = np.full(limits.tiers, 1.0 / limits.tiers), present_mix(window)
    search = Search(
        lambda shares: np.array([window.score(shares)]), limits, max_evaluations, smooth=window.smooth
    )
    search.run(
        known_method(method),
        [uniform, present, *_mixes(starts)],
        step=step,
        rng=None if rng is None else generator(rng),
        polish=polish,
    )
    mix = search.best_mix
    return Placement(
        placement_probability=mix,
        coverage=window.coverage(mix),
        stable=search.best_score >= 0.0,
        binding=limits.binding(mix),
        evaluations=search.evaluations,
        method=method,
        limits=limits,
        answers=window.answers(mix),
        uniform=uniform,
        uniform_coverage=window.coverage(uniform),
        present=present,
        present_coverage=window.coverage(),
    )


def robust_placement(
    cases: Sequence[Case],
    ttft_target: float,
    limits: PlacementLimits | None = None,
    *,
    criterion: Criterion = "regret",
    case_weights: ArrayLike | None = None,
    weights: Sequence[ArrayLike] | None = None,
    method: Method = "slsqp",
    policy: Policy = "load_aware",
    law: LoadLaw = "mean_field",
    queue: WaitModel | QueueOfMix | None = None,
    step: float = 0.05,
    rng: np.random.Generator | int | None = None,
    polish: bool = True,
) -> RobustPlacement:
    """Return one mix for several cases, such as loads, and what it gives up in each.

    A case in which no mix is stable does not count, unless there is none else: nothing is to be had there.

    Parameters
    ----------
    cases
        The cases, K of them: a network each, or several networks that count by weight.
    ttft_target, limits, method, policy, law, queue, step, rng, polish
        As in `optimal_placement`.
    criterion
        ``"mean"``: the largest mean coverage. ``"worst"``: the largest coverage of the worst case, which is the
        busiest one. ``"regret"``: the least of the largest loss against the best mix of a case alone.
    case_weights
        Weight of each case in the mean, shape (K,); alike if omitted.
    weights
        Weights inside each case, as in `optimal_placement`.

    Raises
    ------
    GeoEdgeError
        As in `optimal_placement`, or if the criterion is unknown, or `cases` is no sequence or not as long as its weights.
    """
    _check_cases(cases, criterion, weights)
    inside = [None] * len(cases) if weights is None else list(weights)
    share = _case_weights(case_weights, len(cases))
    windows = [
        Window(case, each, ttft_target, lambda: Solver(policy, law, queue))
        for case, each in zip(cases, inside, strict=True)
    ]
    how: dict[str, Any] = {
        "method": method,
        "step": step,
        "rng": None if rng is None else generator(rng),
        "polish": polish,
    }
    best_of = partial(
        optimal_placement, ttft_target=ttft_target, limits=limits, policy=policy, law=law, queue=queue
    )
    alone = tuple(best_of(case, weights=each, **how) for case, each in zip(cases, inside, strict=True))
    best = np.array([each.coverage for each in alone])
    there = np.array([each.stable for each in alone])
    counted = np.flatnonzero(there if there.any() else ~there)
    scores = _robust_scores([windows[k] for k in counted], criterion, share[counted], best[counted])
    search = Search(scores, fitting(limits, windows[0]), smooth=windows[0].smooth)
    starts = [*(each.placement_probability for each in alone), alone[0].present, alone[0].uniform]
    search.run(starts=starts, **how)
    return _robust(search, windows, criterion, alone, best)


def _robust(
    search: Search, windows: Sequence[Window], criterion: str, alone: tuple[Placement, ...], best: FloatArray
) -> RobustPlacement:
    """Return what a finished search has found."""
    mix = search.best_mix
    coverage = np.array([window.coverage(mix) for window in windows])
    return RobustPlacement(
        placement_probability=mix,
        criterion=criterion,
        coverage=coverage,
        stable=np.array([window.score(mix) for window in windows]) >= 0.0,
        best=alone,
        regret=best - coverage,
        evaluations=search.evaluations + sum(each.evaluations for each in alone),
    )


def _check_cases(cases: Sequence[Case], criterion: str, weights: Sequence[ArrayLike] | None) -> None:
    """Say in one line which argument of a robust placement makes no sense."""
    given = ""
    if criterion not in get_args(Criterion):
        given = f"`criterion` is {criterion!r}, but must be one of {', '.join(get_args(Criterion))}"
    elif isinstance(cases, TieredNetwork):
        given = "`cases` is one network, but must be a sequence of cases; give [network], or use `optimal_placement`"
    elif weights is not None and len(weights) != len(cases):
        given = (
            f"`weights` are for {len(weights)} cases, but must be for {len(cases)}, weights or none for each"
        )
    if given:
        msg = f"robust_placement: {given}"
        raise GeoEdgeError(msg)


def _robust_scores(
    windows: Sequence[Window], criterion: str, share: FloatArray, best: FloatArray
) -> Callable[[FloatArray], FloatArray]:
    """Return the scores of a mix of which the least counts."""

    def scores(mix: FloatArray) -> FloatArray:
        found = np.array([window.score(mix) for window in windows])
        if criterion == "mean":
            return np.array([share @ found])
        return found if criterion == "worst" else found - best

    return scores


def _case_weights(given: ArrayLike | None, count: int) -> FloatArray:
    """Return the weights of the cases, adding up to one."""
    share = np.ones(count) if given is None else np.asarray(given, dtype=np.float64)
    if not count or share.shape != (count,) or not (share >= 0.0).all() or not share.sum() > 0.0:
        msg = f"robust_placement: `case_weights` are {share.tolist()}, but must be {count or 'one or more'} numbers >= 0"
        raise GeoEdgeError(msg)
    return np.asarray(share / share.sum())


def present_mix(window: Window) -> FloatArray:
    """Return the mix of the first network as it is."""
    network = window.networks[0]
    return np.asarray(network.tier_density / network.site_density)


def fitting(limits: PlacementLimits | None, window: Window) -> PlacementLimits:
    """Return limits for as many profiles as there are."""
    tiers = window.networks[0].tiers
    if limits is None:
        return PlacementLimits(np.zeros(tiers))
    if limits.tiers != tiers:
        msg = f"placement: `limits` are for {limits.tiers} profiles, but the network has {tiers}"
        raise GeoEdgeError(msg)
    return limits


def _mixes(starts: Sequence[ArrayLike]) -> list[FloatArray]:
    return [np.asarray(start, dtype=np.float64) for start in starts]


def known_method(method: str) -> str:
    """Return the name of a method, or say which there are."""
    if method not in METHODS:
        msg = f"placement: `method` is {method!r}, but must be one of {', '.join(METHODS)}"
        raise GeoEdgeError(msg)
    return method
