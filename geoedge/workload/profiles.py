"""Cache profiles: ancestor-closed sets of prefixes, what they weigh and what they are worth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geoedge.errors import ScenarioError
from geoedge.workload.forest import PrefixForest
from geoedge.workload.hardware import Prefill

__all__ = ["CacheProfile", "dominated", "incremental_values", "value_score"]


@dataclass(frozen=True)
class CacheProfile:
    """What a site keeps.

    Parameters
    ----------
    name
        Name of the profile.
    vertices
        Stored vertices of the forest C_s, ancestor-closed.
    persistent_bytes
        Memory that they take B_s [B].
    """

    name: str
    vertices: frozenset[int]
    persistent_bytes: int

    @classmethod
    def of(
        cls, name: str, forest: PrefixForest, prefixes: Iterable[str], kv_bytes_per_token: int
    ) -> CacheProfile:
        """Return the profile that stores these prefixes, B_s = κ × unique tokens, Eq. (5).

        Parameters
        ----------
        name
            Its name.
        forest
            The forest that prefixes are from.
        prefixes
            Names of the prefixes, with all their ancestors.
        kv_bytes_per_token
            Keys and values κ of one token [B/token].

        Raises
        ------
        ScenarioError
            If a prefix is unknown or the set is not ancestor-closed.
        """
        vertices = forest.indices(prefixes)
        return cls(name, vertices, forest.unique_tokens(vertices) * kv_bytes_per_token)


def value_score(
    popularity: float, prompt_tokens: int, depth_tokens: int, stored_bytes: int, curve: Prefill
) -> float:
    """Return the prefill time that a stored byte saves, Γ_v = p̂_v [g(L) − g(L − ℓ_v)]/B_v, Eq. (48) [s/B].

    It ranks vertices one by one; along a path the gains of nested vertices overlap, so choose sets
    by `incremental_values`.

    Parameters
    ----------
    popularity
        Share of requests whose prompt starts with the vertex p̂_v [–].
    prompt_tokens, depth_tokens
        Prompt length L and depth of the vertex ℓ_v ≤ L [token].
    stored_bytes
        Memory of the vertex B_v [B], positive.
    curve
        Prefill curve g.

    Raises
    ------
    ScenarioError
        If the vertex is deeper than the prompt or takes no memory.
    """
    if not 0 <= depth_tokens <= prompt_tokens or stored_bytes <= 0:
        msg = (
            f"a vertex of {depth_tokens} tokens and {stored_bytes} B cannot serve a prompt of {prompt_tokens} tokens; "
            "depth must lie in 0 to the prompt length and bytes be positive"
        )
        raise ScenarioError(msg)
    return popularity * float(curve.saving(prompt_tokens, depth_tokens)) / stored_bytes


def incremental_values(
    forest: PrefixForest,
    request_vertices: Sequence[int],
    type_probability: npt.ArrayLike,
    prompt_tokens: npt.ArrayLike,
    curve: Prefill,
) -> npt.NDArray[np.float64]:
    """Return what each vertex adds to its parent, Σ_q p_q [g(L_q − ℓ_parent) − g(L_q − ℓ_v)] [s], shape (V,).

    The sum over an ancestor-closed set is the mean prefill time that the set saves, nothing counted twice.

    Parameters
    ----------
    forest
        The prefix forest, V vertices.
    request_vertices
        Deepest vertex of each type's path, or `ROOT`, length Q.
    type_probability
        p_q [–], shape (Q,).
    prompt_tokens
        L_q [token], shape (Q,).
    curve
        Prefill curve g.
    """
    p = np.asarray(type_probability, dtype=np.float64)
    length = np.asarray(prompt_tokens, dtype=np.float64)
    values = np.zeros(len(forest))
    for q, end in enumerate(request_vertices):
        depth = 0
        for vertex in forest.path(end):
            gain = curve(length[q] - depth) - curve(length[q] - forest.depth_tokens[vertex])
            values[vertex] += p[q] * float(gain)
            depth = forest.depth_tokens[vertex]
    return values


def dominated(
    persistent_bytes: npt.ArrayLike, hit_tokens: npt.ArrayLike, concurrency: npt.ArrayLike
) -> npt.NDArray[np.bool_]:
    """Return which profiles another one beats or equals in memory, every hit and concurrency, shape (S,).

    Of profiles that equal each other in all, the first is kept.

    Parameters
    ----------
    persistent_bytes
        B_s [B], shape (S,).
    hit_tokens
        d [token], shape (S, Q).
    concurrency
        c_s [–], shape (S,).
    """
    memory = np.asarray(persistent_bytes)
    hits = np.asarray(hit_tokens)
    servers = np.asarray(concurrency)
    no_worse = (memory[:, None] <= memory) & (servers[:, None] >= servers)
    no_worse &= (hits[:, None, :] >= hits[None, :, :]).all(axis=2)
    earlier = np.arange(memory.size)[:, None] < np.arange(memory.size)
    beats = no_worse & (~no_worse.T | earlier)
    return np.asarray(beats.any(axis=0))
