"""A site's GPU: how long a prefill takes, what a token weighs, how many requests fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoedge.scenario.memory import concurrency, runtime_bytes, usable_kv_bytes

__all__ = ["PrefillCurve", "concurrency", "kv_bytes", "runtime_bytes", "usable_kv_bytes"]


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


@dataclass(frozen=True)
class PrefillCurve:
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

    def __call__(self, tokens: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return g(n) [s] for numbers of tokens to compute, any shape."""
        n = np.asarray(tokens, dtype=np.float64)
        time = n * (self.linear_s + self.quadratic_s * n)
        return np.asarray(np.where(n > 0, self.constant_s + time, 0.0))

    def residual(self, prompt_tokens: npt.ArrayLike, hit_tokens: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the residual prefill time T_pf = g(L − d), Eq. (12) [s]; shapes broadcast."""
        return self(np.asarray(prompt_tokens, dtype=np.float64) - np.asarray(hit_tokens, dtype=np.float64))

    def saving(self, prompt_tokens: npt.ArrayLike, hit_tokens: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the prefill time saved by a hit, Δ = g(L) − g(L − d), Eq. (6) [s]; shapes broadcast."""
        return np.asarray(self(prompt_tokens) - self.residual(prompt_tokens, hit_tokens))
