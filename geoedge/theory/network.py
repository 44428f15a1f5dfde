"""The network that theory answers for: tiers of sites by cache profile, and the requests that they serve."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError

__all__ = ["TieredNetwork"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SHAPES = {
    "tier_density": "S",
    "concurrency": "S",
    "type_probability": "Q",
    "prefill_time": "SQ",
    "occupancy_time": "SQ",
    "hit_tokens": "SQ",
    "prompt_tokens": "Q",
    "full_prefill_time": "Q",
}
_WHOLE = ("concurrency", "hit_tokens", "prompt_tokens")


@dataclass(frozen=True, eq=False)
class TieredNetwork:
    """A Poisson network of S tiers that serves Q request types; checked once, then read-only.

    Parameters
    ----------
    tier_density
        Density λ_s of the sites of each profile [1/km²], shape (S,); zero for an empty tier.
    concurrency
        Requests c_s that one site serves at a time, shape (S,).
    type_probability
        Probability p_q of each request type, shape (Q,), adding up to one.
    prefill_time
        Residual prefill time T_pf, Eq. (12) [s], shape (S, Q).
    occupancy_time
        Time t_{s,q} that a request holds its server, Eq. (14) [s], shape (S, Q).
    request_intensity
        Requests λ_req, Eq. (3) [1/(s km²)].
    delay_coefficient
        Radio delay ξ at one kilometre [s/km^α], Eq. (10).
    delay_exponent
        Exponent α of the radio delay.
    hit_tokens
        Cached prefix tokens d_{s,q}, Eq. (4), shape (S, Q).
    prompt_tokens
        Prompt lengths L_q, shape (Q,).
    full_prefill_time
        Prefill time g(L_q) without a cache [s], shape (Q,).

    Raises
    ------
    GeoEdgeError
        If shapes do not fit, a value is NaN, infinite or negative, probabilities do not add up to one, a hit is
        deeper than its prompt, or no tier has a site.
    """

    tier_density: FloatArray
    concurrency: IntArray
    type_probability: FloatArray
    prefill_time: FloatArray
    occupancy_time: FloatArray
    request_intensity: float
    delay_coefficient: float
    delay_exponent: float
    hit_tokens: IntArray
    prompt_tokens: IntArray
    full_prefill_time: FloatArray

    def __post_init__(self) -> None:
        """Freeze the arrays and say in one line what cannot be right."""
        sizes = {
            "S": _numbers("tier_density", self.tier_density).size,
            "Q": _numbers("type_probability", self.type_probability).size,
        }
        if sizes["S"] == 0:
            _refuse("tier_density", "no tier", "at least one tier; add a profile, an empty fallback will do")
        for name, axes in _SHAPES.items():
            shape = tuple(sizes[axis] for axis in axes)
            object.__setattr__(self, name, _frozen(name, getattr(self, name), shape, axes))
        for name in ("request_intensity", "delay_coefficient", "delay_exponent"):
            value = _number(name, getattr(self, name))
            if not (0.0 <= value < np.inf) or (value == 0.0 and name != "request_intensity"):
                _refuse(name, value, "a positive number" if "delay" in name else "a nonnegative number")
            object.__setattr__(self, name, value)
        if self.delay_exponent > 16.0:
            _refuse(
                "delay_exponent", self.delay_exponent, "at most 16; radio delay grows with a power of 2 to 6"
            )
        self._check_meaning()

    def _check_meaning(self) -> None:
        """Check what shapes and signs alone do not tell."""
        total = float(self.type_probability.sum())
        if abs(total - 1.0) > 1e-9:
            _refuse("type_probability", f"values that add up to {total:.9g}", "1; divide them by their sum")
        if not (self.tier_density > 0.0).any():
            _refuse("tier_density", "no site in any tier", "a density above 0 for at least one")
        if not (self.concurrency >= 1).all():
            _refuse("concurrency", self.concurrency.tolist(), "1 or more; give such a profile less to store")
        if not (self.occupancy_time > 0.0).all():
            _refuse("occupancy_time", self.occupancy_time.tolist(), "above 0 s")
        deep = np.argwhere(self.hit_tokens > self.prompt_tokens)
        if deep.size:
            s, q = (int(index) for index in deep[0])
            _refuse(
                f"hit_tokens[{s}, {q}]",
                int(self.hit_tokens[s, q]),
                f"at most the prompt's {int(self.prompt_tokens[q])} tokens; cap hits at the prompt length",
            )

    @property
    def tiers(self) -> int:
        """Number S of cache profiles."""
        return int(self.tier_density.size)

    @property
    def types(self) -> int:
        """Number Q of request types."""
        return int(self.type_probability.size)

    @property
    def site_density(self) -> float:
        """Density λ_b of all sites [1/km²]."""
        return float(self.tier_density.sum())

    @property
    def necessary_intensity(self) -> float:
        """Intensity λ_req at and above which no load-aware point is stable [1/(s km²)].

        It is Σ λ_s c_s / Σ_q p_q min_s t_{s,q}: every request where it is served fastest. See Eq. (35).
        """
        fastest = self.occupancy_time[self.tier_density > 0.0].min(axis=0)
        return float(self.tier_density @ self.concurrency / (self.type_probability @ fastest))

    @property
    def sufficient_intensity(self) -> float:
        """Intensity λ_req below which a stable load-aware point exists [1/(s km²)].

        It is Σ λ_s c_s / Σ_q p_q max_s t_{s,q}: every request where it is served slowest.
        """
        slowest = self.occupancy_time[self.tier_density > 0.0].max(axis=0)
        return float(self.tier_density @ self.concurrency / (self.type_probability @ slowest))

    def scaled(self, factor: float) -> TieredNetwork:
        """Return the network with all tier densities multiplied by `factor`, at the same spatial demand."""
        return replace(self, tier_density=self.tier_density * factor)

    def with_intensity(self, request_intensity: float) -> TieredNetwork:
        """Return the network under another request intensity.

        Parameters
        ----------
        request_intensity
            Requests λ_u ν [1/(s km²)].
        """
        return replace(self, request_intensity=request_intensity)

    def with_placement(self, placement_probability: ArrayLike) -> TieredNetwork:
        """Return the network with its sites spread anew over the profiles, π_s summing to one, Eq. (8).

        Parameters
        ----------
        placement_probability
            Share π_s of the sites that get each profile, shape (S,).

        Raises
        ------
        GeoEdgeError
            If they are not S shares that add up to one.
        """
        placement = np.asarray(placement_probability, dtype=np.float64)
        if placement.shape != (self.tiers,) or not abs(float(placement.sum()) - 1.0) <= 1e-9:
            _refuse("placement_probability", placement.tolist(), f"{self.tiers} values that add up to 1")
        return replace(self, tier_density=self.site_density * placement)


def _frozen(name: str, value: ArrayLike, shape: tuple[int, ...], axes: str) -> NDArray[np.generic]:
    """Return a read-only copy of the right shape and type, all values finite and nonnegative."""
    array = _numbers(name, value)
    if array.shape != shape:
        _refuse(name, f"shape {array.shape}", f"shape ({', '.join(axes)}) = {shape}")
    fine = np.isfinite(array) & (array >= 0.0)
    if not fine.all():
        _refuse(name, array[~fine].tolist()[0], "finite and nonnegative numbers")
    if name in _WHOLE:
        if not (array == np.rint(array)).all():
            _refuse(name, array[array != np.rint(array)].tolist()[0], "whole numbers")
        array = array.astype(np.int64)
    array.setflags(write=False)
    return array


def _numbers(name: str, value: ArrayLike) -> FloatArray:
    """Return a copy as an array of real numbers, or say that it is none."""
    try:
        array = np.array(value)
    except ValueError:  # rows of different lengths
        array = np.array(None)
    if array.dtype.kind not in "biuf":
        _refuse(name, " ".join(repr(value).split())[:60], "real numbers in rows of one length")
    return array.astype(np.float64)


def _number(name: str, value: float) -> float:
    """Return one number, or say that it is none."""
    array = _numbers(name, value)
    if array.ndim:
        _refuse(name, array.tolist(), "one number")
    return float(array)


def _refuse(name: str, given: object, allowed: str) -> NoReturn:
    """Raise the one line of an error: where, what was given, what is allowed."""
    msg = f"TieredNetwork: `{name}` is {given}, but must be {allowed}"
    raise GeoEdgeError(msg)
