"""Ways to search the mixes that keep their limits for the one with the highest score, behind `placement`.

Every way sees the score of a mix alone. Gradients come from differences, and those of the score beyond the simplex
too: more or fewer sites in all are as good a network as any, so that no step has to be cut short there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, minimize

from geoedge.errors import GeoEdgeError
from geoedge.theory._mixes import PlacementLimits

__all__ = ["METHODS", "Search", "lattice"]

FloatArray = NDArray[np.float64]

_MOST_LATTICE_POINTS = 20_000
_DIFFERENCE, _WIDE_DIFFERENCE = 1e-5, 1e-2  # share of sites, for scores that are smooth to 1e-10 and to 1e-5
_SAME = 1e-12  # shares closer than this are one mix
_DISTINCT = 0.02  # starts closer than this, in every share, are one start
_LEAN, _LEANING_STARTS = (
    0.6,
    2,
)  # how far towards one profile a start lies from the uniform mix, and how many do


class _Spent(Exception):
    """The evaluations are used up."""


class Search:
    """Keep the best mix of all that were scored, each scored once.

    Parameters
    ----------
    scores
        Scores of nonnegative shares, shape (S,), that need not add up to one; shape (K,), the least one counts.
    limits
        The mixes that may be returned.
    max_evaluations
        Scores after which a search is ended.
    smooth
        Whether scores are smooth; if not, slopes are taken over wider differences.
    """

    def __init__(
        self,
        scores: Callable[[FloatArray], FloatArray],
        limits: PlacementLimits,
        max_evaluations: int = 100_000,
        *,
        smooth: bool = True,
    ) -> None:
        self.limits = limits
        self.evaluations = 0
        self.best_score = -math.inf
        self.best_mix = limits.project(np.full(limits.tiers, 1.0 / limits.tiers))
        self.difference, self.accuracy = (_DIFFERENCE, 1e-9) if smooth else (_WIDE_DIFFERENCE, 1e-5)
        self._scores = scores
        self._left = max_evaluations
        self._known: dict[bytes, FloatArray] = {}

    def run(
        self,
        method: str,
        starts: Sequence[FloatArray],
        *,
        step: float = 0.05,
        rng: np.random.Generator | None = None,
        polish: bool = True,
    ) -> None:
        """Search by one of `METHODS` from some starts, and improve the best by SLSQP at the end if asked to."""
        try:
            for start in starts:
                self(self.limits.project(start))
            METHODS[method](self, starts, step, rng)
            if polish and method != "slsqp":
                climb(self, self.best_mix)
        except _Spent:
            pass

    def __call__(self, mix: FloatArray) -> float:
        """Return the score of a mix that keeps the limits, and remember the best."""
        score = float(self.beyond(mix).min())
        if score > self.best_score:
            self.best_score, self.best_mix = score, mix
        return score

    def beyond(self, shares: FloatArray) -> FloatArray:
        """Return the scores of shares that need not keep the limits, shape (K,)."""
        shares = np.maximum(shares, 0.0)
        key = np.rint(shares / _SAME).tobytes()
        if key not in self._known:
            if self._left <= 0:
                raise _Spent
            self._left -= 1
            self.evaluations += 1
            self._known[key] = np.atleast_1d(self._scores(shares))
        return self._known[key]


def climb(search: Search, start: FloatArray) -> None:
    """Go uphill from a start by sequential quadratic programming.

    The least of several scores has edges; it is raised as a variable of its own that no score may fall below.
    """
    limits, start = search.limits, search.limits.project(start)
    tiers, level = limits.tiers, search(start)
    rules = [_rule("eq", np.ones(tiers), 1.0)]
    if np.isfinite(limits.memory_budget_bytes) and limits.persistent_bytes.any():
        scale = float(limits.persistent_bytes.max())
        rules.append(_rule("ineq", -limits.persistent_bytes / scale, -limits.memory_budget_bytes / scale))
    how: dict[str, Any] = {
        "method": "SLSQP",
        "options": {"eps": search.difference, "ftol": search.accuracy, "maxiter": 100},
        "bounds": Bounds(limits.least, limits.most),
        "constraints": rules,
    }
    if search.beyond(start).size == 1:
        found = _least(lambda x: -float(search.beyond(x)[0]), start, **how)
    else:
        rules.append({"type": "ineq", "fun": lambda x: search.beyond(x[:tiers]) - x[tiers]})
        how["bounds"] = Bounds(np.append(limits.least, -np.inf), np.append(limits.most, np.inf))
        found = _least(lambda x: -float(x[tiers]), np.append(start, level), **how)[:tiers]
    if np.isfinite(found).all():
        search(_tidy(limits, found))


def _least(function: Callable[[FloatArray], float], start: FloatArray, **how: Any) -> FloatArray:
    """Return where a search by scipy ends."""
    found: Any = minimize(function, start, **how)
    return np.asarray(found.x, dtype=np.float64)


def _rule(kind: str, weights: FloatArray, level: float) -> dict[str, Any]:
    """Return the linear constraint weights·π − level = 0, or ≥ 0, in the words of SLSQP."""
    size = weights.size
    return {
        "type": kind,
        "fun": lambda x: weights @ x[:size] - level,
        "jac": lambda x: np.append(weights, np.zeros(x.size - size)),
    }


def _tidy(limits: PlacementLimits, shares: FloatArray) -> FloatArray:
    """Return the mix next to these shares, with those at their bounds to rounding set there."""
    shares = np.where(shares <= limits.least + 1e-9, limits.least, shares)
    return limits.project(np.where(shares >= limits.most - 1e-9, limits.most, shares))


def lattice(limits: PlacementLimits, step: float) -> Iterator[FloatArray]:
    """Yield the mixes whose shares are whole multiples of a step and keep the limits.

    Raises
    ------
    GeoEdgeError
        If the step does not divide one, or the lattice is too large to search.
    """
    parts = round(1.0 / step) if step > 0.0 else 0
    if parts < 1 or abs(parts * step - 1.0) > 1e-9:
        msg = f"grid search: `step` is {step}, but must be one over a whole number, such as 0.05"
        raise GeoEdgeError(msg)
    tiers = limits.tiers
    size = math.comb(parts + tiers - 1, tiers - 1)
    if size > _MOST_LATTICE_POINTS:
        msg = (
            f"grid search: {tiers} profiles at step {step:g} make {size:,} mixes, at most {_MOST_LATTICE_POINTS:,} are "
            'searched; take a larger step or method "slsqp"'
        )
        raise GeoEdgeError(msg)
    for bars in combinations(range(parts + tiers - 1), tiers - 1):
        counts = np.diff([-1, *bars, parts + tiers - 1]) - 1
        mix = counts / parts
        if limits.holds(mix):
            yield mix


def _grid(search: Search, starts: Sequence[FloatArray], step: float, rng: np.random.Generator | None) -> None:
    """Score every mix of a lattice."""
    for mix in lattice(search.limits, step):
        search(mix)


def _slsqp(
    search: Search, starts: Sequence[FloatArray], step: float, rng: np.random.Generator | None
) -> None:
    """Go uphill from each start and from the best mixes that lean to one profile: optima lie at different edges."""
    limits = search.limits
    uniform = np.full(limits.tiers, 1.0 / limits.tiers)
    leaning = [limits.project((1.0 - _LEAN) * uniform + _LEAN * corner) for corner in np.eye(limits.tiers)]
    leaning.sort(key=search, reverse=True)
    seen: list[FloatArray] = []
    for start in (*(limits.project(each) for each in starts), *leaning[:_LEANING_STARTS]):
        if all(np.abs(start - other).max() > _DISTINCT for other in seen):
            seen.append(start)
            climb(search, start)


def _cobyqa(
    search: Search, starts: Sequence[FloatArray], step: float, rng: np.random.Generator | None
) -> None:
    """Follow quadratic models without derivatives, in a trust region that the limits cut."""
    limits = search.limits
    rows, low, high = [np.ones(limits.tiers)], [1.0], [1.0]
    if np.isfinite(limits.memory_budget_bytes) and limits.persistent_bytes.any():
        scale = float(limits.persistent_bytes.max())
        rows.append(limits.persistent_bytes / scale)
        low.append(-np.inf)
        high.append(limits.memory_budget_bytes / scale)
    for start in starts:
        found = _least(
            lambda shares: -float(search.beyond(shares).min()),
            limits.project(start),
            method="COBYQA",
            bounds=Bounds(limits.least, limits.most),
            constraints=LinearConstraint(np.array(rows), np.array(low), np.array(high)),
            options={"initial_tr_radius": 0.1, "final_tr_radius": 1e-5},
        )
        search(_tidy(limits, found))


def _spsa(search: Search, starts: Sequence[FloatArray], step: float, rng: np.random.Generator | None) -> None:
    """Move along random directions, two scores a step, projected onto the limits, with gains that die down."""
    if rng is None:
        msg = 'method "spsa": `rng` is missing; give a random generator or a seed'
        raise GeoEdgeError(msg)
    limits = search.limits
    mix, gain = max((limits.project(start) for start in starts), key=search), 0.0
    for count in range(60 + 10 * limits.tiers):
        width = step / (count + 1.0) ** 0.101
        direction = rng.choice([-1.0, 1.0], limits.tiers)
        direction -= direction.mean()
        ahead, behind = limits.project(mix + width * direction), limits.project(mix - width * direction)
        slope = (search(ahead) - search(behind)) / (2.0 * width) * direction
        if gain == 0.0 and slope.any():
            gain = 2.0 * step / float(np.abs(slope).max())
        mix = limits.project(mix + gain * (11.0 / (count + 11.0)) ** 0.602 * slope)
    search(mix)


METHODS: dict[str, Callable[[Search, Sequence[FloatArray], float, np.random.Generator | None], None]] = {
    "slsqp": _slsqp,
    "grid": _grid,
    "cobyqa": _cobyqa,
    "spsa": _spsa,
}
