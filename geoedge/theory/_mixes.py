"""The mixes of profiles that may be deployed, and the exact projection onto them, Eq. (50)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError

__all__ = ["Binding", "PlacementLimits", "project_placement"]

FloatArray = NDArray[np.float64]

_ROUNDING = 1e-12  # by how much sums of shares may miss a limit
_DUST = 1e-15  # a share that rounding alone keeps from its bound
_BINDS = 1e-6  # share of sites, or of the budget, within which a limit counts as reached


class Binding(NamedTuple):
    """Which limits a mix reaches.

    Attributes
    ----------
    memory
        Whether the memory budget is used up.
    lower, upper
        Profiles at their least and at their largest share, by index.
    """

    memory: bool
    lower: tuple[int, ...]
    upper: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PlacementLimits:
    """The mixes π with Σ π_s = 1, Σ π_s B_s ≤ B̄ and lower ≤ π ≤ upper, the constraints of Eq. (49).

    Parameters
    ----------
    persistent_bytes
        Memory B_s of each profile [B], shape (S,); any unit, if the budget has the same.
    memory_budget_bytes
        Mean memory B̄ of a site [B]; infinite for none.
    lower, upper
        Least and largest share of sites of each profile, shape (S,) or one number for all. The fallback floor
        and the deep cap of Eq. (49) are such bounds.

    Raises
    ------
    GeoEdgeError
        If a number makes no sense, or no mix keeps all limits; the line says which limit cannot be kept.
    """

    persistent_bytes: FloatArray
    memory_budget_bytes: float = float("inf")
    lower: FloatArray | float = 0.0
    upper: FloatArray | float = 1.0

    def __post_init__(self) -> None:
        """Freeze the arrays and say in one line what cannot be kept."""
        stored = np.array(self.persistent_bytes, dtype=np.float64)
        if stored.ndim != 1 or stored.size == 0 or not (np.isfinite(stored) & (stored >= 0.0)).all():
            _refuse("persistent_bytes", stored.tolist(), "finite bytes >= 0, one number a profile")
        object.__setattr__(self, "persistent_bytes", _frozen(stored))
        for name in ("lower", "upper"):
            object.__setattr__(self, name, _frozen(_bound(name, getattr(self, name), stored.size)))
        if not float(self.memory_budget_bytes) >= 0.0:
            _refuse("memory_budget_bytes", self.memory_budget_bytes, ">= 0 B")
        self._check_some_mix_is_left()

    @property
    def least(self) -> FloatArray:
        """Least share of each profile, shape (S,)."""
        return np.asarray(self.lower)

    @property
    def most(self) -> FloatArray:
        """Largest share of each profile, shape (S,)."""
        return np.asarray(self.upper)

    @property
    def tiers(self) -> int:
        """Number S of profiles."""
        return int(self.persistent_bytes.size)

    def _check_some_mix_is_left(self) -> None:
        crossed = np.flatnonzero(self.least > self.most)
        if crossed.size:
            s = int(crossed[0])
            _refuse(f"lower[{s}]", self.least[s], f"at most upper[{s}] = {self.most[s]:g}")
        if self.least.sum() > 1.0 + _ROUNDING:
            _refuse(
                "lower", f"shares that add up to {self.least.sum():.6g}", "at most 1 in all; lower a floor"
            )
        if self.most.sum() < 1.0 - _ROUNDING:
            _refuse("upper", f"shares that add up to {self.most.sum():.6g}", "at least 1 in all; raise a cap")
        lightest = self.memory(self.lightest())
        if lightest > self.memory_budget_bytes * (1.0 + _ROUNDING):
            allowed = f"at least {lightest:.6g}, the memory of the lightest mix within the bounds; raise it or lower a floor"
            _refuse("memory_budget_bytes", f"{self.memory_budget_bytes:.6g}", allowed)

    def memory(self, placement_probability: ArrayLike) -> float:
        """Return the mean memory of a site Σ π_s B_s [B].

        Parameters
        ----------
        placement_probability
            Share π_s of the sites that hold each profile, shape (S,).
        """
        return float(np.asarray(placement_probability, dtype=np.float64) @ self.persistent_bytes)

    def lightest(self) -> FloatArray:
        """Return a mix of least memory, shape (S,)."""
        mix = self.least.copy()
        left = 1.0 - mix.sum()
        for s in np.argsort(self.persistent_bytes, kind="stable"):
            added = min(max(left, 0.0), self.most[s] - mix[s])
            mix[s] += added
            left -= added
        return mix

    def holds(self, placement_probability: ArrayLike, tolerance: float = 1e-9) -> bool:
        """Return whether a mix keeps the limits.

        Parameters
        ----------
        placement_probability
            Share π_s of the sites that hold each profile, shape (S,).
        tolerance
            Share of each limit by which it may be passed.
        """
        mix = np.asarray(placement_probability, dtype=np.float64)
        inside = (mix >= self.least - tolerance) & (mix <= self.most + tolerance)
        in_memory = self.memory(mix) <= self.memory_budget_bytes * (1.0 + tolerance)
        return bool(inside.all()) and in_memory and abs(float(mix.sum()) - 1.0) <= tolerance

    def binding(self, placement_probability: ArrayLike) -> Binding:
        """Return the limits that a mix reaches.

        Parameters
        ----------
        placement_probability
            Share π_s of the sites that hold each profile, shape (S,).
        """
        mix = np.asarray(placement_probability, dtype=np.float64)
        return Binding(
            self.memory(mix) >= self.memory_budget_bytes * (1.0 - _BINDS),
            tuple(int(s) for s in np.flatnonzero(mix <= self.least + _BINDS)),
            tuple(int(s) for s in np.flatnonzero(mix >= self.most - _BINDS)),
        )

    def project(self, point: ArrayLike) -> FloatArray:
        """Return the mix closest to a point, Eq. (50): onto all limits at once, not onto one after the other.

        The mix is clip(z − ν − μ B, lower, upper). For each multiplier μ of the budget the multiplier ν of the sum
        follows from sorted breakpoints; the memory falls with μ along straight pieces, so that Newton's method,
        kept inside a bracket, ends on the exact piece. Time O(S log S) a step.

        Parameters
        ----------
        point
            The point z, shape (S,), any finite numbers.

        Raises
        ------
        GeoEdgeError
            If the point has another shape or is not finite.
        """
        z = np.array(point, dtype=np.float64)
        if z.shape != (self.tiers,) or not np.isfinite(z).all():
            _refuse("point", z.tolist(), f"{self.tiers} finite numbers")
        z -= z.mean()
        scale = float(self.persistent_bytes.max())
        mix, _ = _within_bounds(z, self.least, self.most)
        if scale > 0.0 and self.memory(mix) > self.memory_budget_bytes:
            weight, budget = self.persistent_bytes / scale, self.memory_budget_bytes / scale
            if budget - weight @ self.lightest() <= _ROUNDING:
                mix = self._project_onto_lightest(z)
            else:
                mix = _within_budget(z, self.least, self.most, weight, budget)
        mix = np.where(mix - self.least < _DUST, self.least, mix)
        return np.where(self.most - mix < _DUST, self.most, mix)

    def _project_onto_lightest(self, z: FloatArray) -> FloatArray:
        """Return the closest mix of least memory, where lighter profiles are full and heavier ones empty."""
        lightest = self.lightest()
        used = np.flatnonzero(lightest > self.least)
        heaviest = self.persistent_bytes[used].max() if used.size else -1.0
        least = np.where(self.persistent_bytes < heaviest, self.most, self.least)
        most = np.where(self.persistent_bytes > heaviest, self.least, self.most)
        return _within_bounds(z, least, most)[0]


def project_placement(
    point: ArrayLike,
    persistent_bytes: ArrayLike,
    memory_budget_bytes: float,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = 1.0,
) -> FloatArray:
    """Return the mix closest to a point that keeps budget and bounds, Eq. (50), shape (S,).

    Parameters
    ----------
    point
        The point z, shape (S,).
    persistent_bytes
        Memory B_s of each profile [B], shape (S,).
    memory_budget_bytes
        Mean memory B̄ of a site [B]; infinite for none.
    lower, upper
        Least and largest share of each profile, shape (S,) or one number.

    Raises
    ------
    GeoEdgeError
        If no mix keeps the limits, or a number makes no sense.

    Examples
    --------
    >>> project_placement([0.5, 0.4, 0.3], [0.0, 4.0, 12.0], float("inf")).round(3).tolist()
    [0.433, 0.333, 0.233]
    """
    limits = PlacementLimits(
        np.asarray(persistent_bytes, dtype=np.float64),
        memory_budget_bytes,
        np.asarray(lower, dtype=np.float64),
        np.asarray(upper, dtype=np.float64),
    )
    return limits.project(point)


def _within_bounds(
    z: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the closest point whose shares keep their bounds and add up to one, and which of them are free.

    Σ clip(z − ν, least, most) falls in ν along straight pieces: each share is full up to z − most and at its least
    from z − least on.
    """
    breaks = np.concatenate([z - most, z - least])
    order = np.argsort(breaks, kind="stable")
    at = breaks[order]
    free = np.cumsum(np.where(order < z.size, 1, -1))
    total = most.sum() - np.concatenate([[0.0], np.cumsum(free[:-1] * np.diff(at))])
    piece = max(int(np.searchsorted(-total, -1.0, side="right")) - 1, 0)
    shift = at[piece] + (total[piece] - 1.0) / free[piece] if free[piece] > 0 else at[piece]
    inside = (z - shift > least) & (z - shift < most)
    mix = np.clip(z - shift, least, most)
    if inside.any():  # the same shift from the shares themselves, without the rounding of a long sum
        mix[inside] += (1.0 - mix.sum()) / np.count_nonzero(inside)
        mix = np.clip(mix, least, most)
    return mix, inside


def _within_budget(
    z: FloatArray, least: FloatArray, most: FloatArray, weight: FloatArray, budget: float
) -> FloatArray:
    """Return the closest point that also has the memory `weight @ mix == budget`, which binds."""
    low, high, price = 0.0, np.inf, 0.0
    for _ in range(200):
        mix, free = _within_bounds(z - price * weight, least, most)
        excess = float(weight @ mix) - budget
        if abs(excess) <= 4e-16 * max(budget, 1e-3):
            break
        low, high = (price, high) if excess > 0.0 else (low, price)
        if high < np.inf and high - low <= 2e-16 * high:
            break
        slope = _spread(weight[free])
        ahead = price + excess / slope if slope > 0.0 else np.inf
        if low < ahead < high:
            price = ahead
        else:
            price = 2.0 * price + float(np.ptp(z)) + 1.0 if high == np.inf else 0.5 * (low + high)
    slope = _spread(weight[free])
    if slope > 0.0:  # what a large price has lost to rounding, taken along the shares that are free
        mix[free] -= (float(weight @ mix) - budget) / slope * (weight[free] - weight[free].mean())
        mix = np.clip(mix, least, most)
    return mix


def _spread(weight: FloatArray) -> float:
    """Return Σ (B − mean B)², how fast memory falls with its price while the same shares are free."""
    return float(((weight - weight.mean()) ** 2).sum()) if weight.size else 0.0


def _bound(name: str, value: ArrayLike, tiers: int) -> FloatArray:
    """Return a bound for every profile."""
    given = np.asarray(value, dtype=np.float64)
    if given.shape not in ((), (tiers,)) or not ((given >= 0.0) & (given <= 1.0)).all():
        _refuse(name, given.tolist(), f"one share in [0, 1] or {tiers}")
    return np.array(np.broadcast_to(given, tiers))


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array


def _refuse(name: str, given: object, allowed: str) -> None:
    """Raise the one line of an error: where, what was given, what is allowed."""
    msg = f"PlacementLimits: `{name}` is {given}, but must be {allowed}"
    raise GeoEdgeError(msg)
