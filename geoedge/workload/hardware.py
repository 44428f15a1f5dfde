"""A site's GPU: how long a prefill takes, what a token weighs, how many requests fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from geoedge.errors import ScenarioError
from geoedge.scenario.checks import prefill_table_problem
from geoedge.scenario.memory import concurrency, runtime_bytes, usable_kv_bytes

__all__ = [
    "Prefill",
    "PrefillCurve",
    "PrefillFunction",
    "PrefillTable",
    "concurrency",
    "kv_bytes",
    "runtime_bytes",
    "usable_kv_bytes",
]

Floats = npt.NDArray[np.float64]


def kv_bytes(layers: int, kv_heads: int, head_dim: int, bytes_per_number: int, tokens: int) -> int:
    """Return the bytes of the keys and values of a sequence, 2 N_L N_H d_H b_e L, Eq. (1) [B].

    Parameters
    ----------
    layers, kv_heads, head_dim
        Layers, key-value heads of a layer, and numbers of a head of the model [–].
    bytes_per_number
        2 for bf16 [B].
    tokens
        Length of the sequence [token].

    Examples
    --------
    One token of Llama-3.1-8B:

    >>> kv_bytes(32, 8, 128, 2, 1)
    131072
    """
    return 2 * layers * kv_heads * head_dim * bytes_per_number * tokens


class Prefill(ABC):
    """A prefill time g: nondecreasing in the tokens to compute, and g(0) = 0, Eq. (11)."""

    @abstractmethod
    def __call__(self, tokens: npt.ArrayLike) -> Floats:
        """Return g(n) [s] for numbers of tokens to compute, any shape."""

    def residual(self, prompt_tokens: npt.ArrayLike, hit_tokens: npt.ArrayLike) -> Floats:
        """Return the residual prefill time T_pf = g(L − d), Eq. (12) [s]; shapes broadcast.

        Parameters
        ----------
        prompt_tokens
            Length L of the prompt [token].
        hit_tokens
            Tokens d that a cache saves [token].
        """
        return self(np.asarray(prompt_tokens, dtype=np.float64) - np.asarray(hit_tokens, dtype=np.float64))

    def saving(self, prompt_tokens: npt.ArrayLike, hit_tokens: npt.ArrayLike) -> Floats:
        """Return the prefill time saved by a hit, Δ = g(L) − g(L − d), Eq. (6) [s]; shapes broadcast.

        Parameters
        ----------
        prompt_tokens
            Length L of the prompt [token].
        hit_tokens
            Tokens d that a cache saves [token].
        """
        return np.asarray(self(prompt_tokens) - self.residual(prompt_tokens, hit_tokens))


@dataclass(frozen=True)
class PrefillCurve(Prefill):
    """Prefill time g(n) = c0 + a n + b n² for n > 0 and g(0) = 0, Eq. (11); never decreasing.

    Parameters
    ----------
    linear_s
        a [s/token], not negative.
    quadratic_s
        b [s/token²], not negative.
    constant_s
        c0, the floor of loading the weights once [s], not negative.
    """

    linear_s: float
    quadratic_s: float
    constant_s: float = 0.0

    def __call__(self, tokens: npt.ArrayLike) -> Floats:
        """Return g(n) [s] for numbers of tokens to compute, any shape."""
        n = np.asarray(tokens, dtype=np.float64)
        time = n * (self.linear_s + self.quadratic_s * n)
        return np.asarray(np.where(n > 0, self.constant_s + time, 0.0))


@dataclass(frozen=True)
class PrefillTable(Prefill):
    """Measured prefill times: through every point, and monotone between them (Fritsch and Carlson's cubics).

    Below the first point the curve comes from g(0) = 0: measure a length of 1 if there is a floor. Beyond the last
    point it goes on along a straight line, as steep as between the last two points; a curve that bends upwards is
    underestimated there, so measure up to the longest prompt.

    Parameters
    ----------
    tokens
        Lengths measured [token], two or more, increasing, at least 1.
    seconds
        Their prefill times [s], never decreasing.

    Raises
    ------
    ScenarioError
        If the points are no nondecreasing curve.

    Examples
    --------
    >>> table = PrefillTable((1000, 2000), (0.1, 0.25))
    >>> table([0, 1000, 2000, 3000]).tolist()
    [0.0, 0.1, 0.25, 0.4]
    """

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]

    def __post_init__(self) -> None:
        """Say in one line what is no curve."""
        problem = prefill_table_problem(self.tokens, self.seconds)
        if problem is None and not (
            self.tokens[0] >= 1 and 0.0 <= self.seconds[0] <= self.seconds[-1] < np.inf
        ):
            problem = (
                f"prefill_table_tokens[0] = {self.tokens[0]} in {self.seconds[0]} s, last {self.seconds[-1]} s: "
                "must be tokens from 1 and finite seconds from 0 on; 0 tokens take no time and need no point"
            )
        if problem is not None:
            raise ScenarioError(problem)

    @classmethod
    def of(cls, curve: Callable[[Floats], npt.ArrayLike], tokens: Iterable[int]) -> PrefillTable:
        """Return a curve measured at these lengths, so that a scenario and its run folder can hold it.

        Parameters
        ----------
        curve
            Prefill time [s] by length [token].
        tokens
            Lengths to measure [token].
        """
        lengths = tuple(int(n) for n in tokens)
        times = np.asarray(curve(np.array(lengths, dtype=np.float64)), dtype=np.float64)
        return cls(lengths, tuple(times.tolist()))

    def overrides(self) -> dict[str, Any]:
        """Return the changes that put the table into a scenario, for `Scenario.override`."""
        coefficients = ("linear", "quadratic", "constant")
        return {f"hardware.prefill_{name}_s": 0.0 for name in coefficients} | {
            "hardware.prefill_table_tokens": list(self.tokens),
            "hardware.prefill_table_s": list(self.seconds),
        }

    def __call__(self, tokens: npt.ArrayLike) -> Floats:
        """Return g(n) [s] for numbers of tokens to compute, any shape."""
        n = np.asarray(tokens, dtype=np.float64)
        last, slope = self.tokens[-1], np.diff(self.seconds[-2:])[0] / np.diff(self.tokens[-2:])[0]
        return np.asarray(self._between(np.clip(n, 0.0, last)) + slope * np.maximum(n - last, 0.0))

    @cached_property
    def _between(self) -> Callable[[Floats], Floats]:
        from scipy.interpolate import PchipInterpolator

        with np.errstate(over="ignore"):  # the inverse of a slope next to nothing
            return PchipInterpolator([0.0, *self.tokens], [0.0, *self.seconds])


@dataclass(frozen=True)
class PrefillFunction(Prefill):
    """Any nondecreasing function as a prefill time; what it returns is checked whenever it is asked.

    Parameters
    ----------
    function
        g(n) [s] of an array of tokens, of the same shape.

    Examples
    --------
    >>> PrefillFunction(lambda n: 1e-4 * np.ceil(n / 512) * 512)([0, 100, 513]).tolist()
    [0.0, 0.0512, 0.1024]
    """

    function: Callable[[Floats], npt.ArrayLike]

    def __call__(self, tokens: npt.ArrayLike) -> Floats:
        """Return g(n) [s] for numbers of tokens to compute, any shape.

        Raises
        ------
        ScenarioError
            If the function is no prefill time at these lengths.
        """
        n = np.asarray(tokens, dtype=np.float64)
        lengths, where = np.unique(np.append(n, 0.0), return_inverse=True)
        times = np.asarray(self.function(lengths), dtype=np.float64)
        if times.shape != lengths.shape or not np.isfinite(times).all():
            msg = f"prefill function: gave {times.shape} values for {lengths.shape} lengths; must be one finite time each"
            raise ScenarioError(msg)
        falls = np.flatnonzero(np.diff(times) < 0.0)
        if falls.size:
            one, other = (f"{times[k]:g} s for {lengths[k]:g} tokens" for k in (falls[0], falls[0] + 1))
            msg = (
                f"prefill function: gave {one} and {other}; must never decrease, so take its running maximum"
            )
            raise ScenarioError(msg)
        if times[0] != 0.0:
            msg = f"prefill function: gave {times[0]:g} s for 0 tokens; must be 0, as nothing is computed"
            raise ScenarioError(msg)
        return np.asarray(times[where[:-1]].reshape(n.shape))
