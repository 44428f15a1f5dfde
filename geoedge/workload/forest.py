"""The prefix forest: which token prefixes exist and how one extends another."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from geoedge.errors import ScenarioError

__all__ = ["ROOT", "PrefixForest"]

ROOT = -1
"""Parent of a vertex that extends no other."""


@dataclass(frozen=True)
class PrefixForest:
    """A forest of token prefixes; a vertex is a prefix, its depth the tokens up to its end.

    Parameters
    ----------
    names
        Names of the vertices, V of them, each its own.
    parents
        Index of the vertex that each one extends, `ROOT` for none, length V.
    depth_tokens
        Depth ℓ_v [token], length V; deeper than the parent's, which also rules out cycles.

    Raises
    ------
    ScenarioError
        If names repeat, a parent does not exist, or a vertex is not deeper than its parent.
    """

    names: tuple[str, ...]
    parents: tuple[int, ...]
    depth_tokens: tuple[int, ...]

    def __post_init__(self) -> None:
        size = len(self.names)
        if len(self.parents) != size or len(self.depth_tokens) != size:
            msg = f"`parents` and `depth_tokens` must have {size} entries like `names`"
            raise ScenarioError(msg)
        if len(set(self.names)) != size:
            msg = f"`names` must differ, not {list(self.names)}"
            raise ScenarioError(msg)
        for vertex, parent in enumerate(self.parents):
            self._check_vertex(vertex, parent)

    def _check_vertex(self, vertex: int, parent: int) -> None:
        if not ROOT <= parent < len(self.names):
            msg = f"parent {parent} of {self.names[vertex]!r} is no vertex; use 0 to {len(self.names) - 1} or ROOT"
            raise ScenarioError(msg)
        start = self.depth_tokens[parent] if parent != ROOT else 0
        if self.depth_tokens[vertex] <= start:
            msg = f"{self.names[vertex]!r} at {self.depth_tokens[vertex]} tokens must be deeper than {start} tokens"
            raise ScenarioError(msg)

    @classmethod
    def from_edges(cls, edges: Iterable[tuple[str, str | None, int]]) -> PrefixForest:
        """Build a forest from ``(name, name of the parent or None, depth in tokens)``.

        Parents may come after their children.

        Parameters
        ----------
        edges
            Name of each vertex, of its parent, and its depth [token].

        Raises
        ------
        ScenarioError
            If a parent is not among the names.
        """
        rows = list(edges)
        position = {name: index for index, (name, _, _) in enumerate(rows)}
        for name, parent, _ in rows:
            if parent and parent not in position:
                msg = f"parent {parent!r} of {name!r} is no vertex; vertices: {', '.join(position)}"
                raise ScenarioError(msg)
        parents = tuple(position[parent] if parent else ROOT for _, parent, _ in rows)
        return cls(tuple(row[0] for row in rows), parents, tuple(int(row[2]) for row in rows))

    @cached_property
    def _position(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Return the index of a vertex.

        Parameters
        ----------
        name
            Its name.

        Raises
        ------
        ScenarioError
            If there is none of this name.
        """
        try:
            return self._position[name]
        except KeyError:
            msg = f"{name!r} is no vertex of the forest; vertices: {', '.join(self.names)}"
            raise ScenarioError(msg) from None

    def indices(self, names: Iterable[str]) -> frozenset[int]:
        """Return the indices of some vertices.

        Parameters
        ----------
        names
            Their names.

        Raises
        ------
        ScenarioError
            If there is none of a name.
        """
        return frozenset(self.index(name) for name in names)

    def path(self, vertex: int) -> tuple[int, ...]:
        """Return the vertices from the root to this one, P_q of a prompt that ends in it; empty for `ROOT`.

        Parameters
        ----------
        vertex
            Index of the vertex.
        """
        upward: list[int] = []
        while vertex != ROOT:
            upward.append(vertex)
            vertex = self.parents[vertex]
        return tuple(reversed(upward))

    def closure(self, vertices: Iterable[int]) -> frozenset[int]:
        """Return the vertices with all their ancestors, the smallest ancestor-closed set that holds them.

        Parameters
        ----------
        vertices
            Indices of the vertices.
        """
        closed: set[int] = set()
        for start in vertices:
            vertex = start
            while vertex != ROOT and vertex not in closed:
                closed.add(vertex)
                vertex = self.parents[vertex]
        return frozenset(closed)

    def is_closed(self, vertices: Collection[int]) -> bool:
        """Return whether each vertex's parent is in the set too.

        Parameters
        ----------
        vertices
            Indices of the vertices.
        """
        chosen = set(vertices)
        return all(self.parents[vertex] == ROOT or self.parents[vertex] in chosen for vertex in chosen)

    def segment_tokens(self, vertex: int) -> int:
        """Return the tokens that a vertex adds to its parent, ℓ_v − ℓ_parent(v) [token].

        Parameters
        ----------
        vertex
            Index of the vertex.
        """
        parent = self.parents[vertex]
        return self.depth_tokens[vertex] - (self.depth_tokens[parent] if parent != ROOT else 0)

    def unique_tokens(self, vertices: Iterable[int]) -> int:
        """Return the tokens that an ancestor-closed set stores, each once, Eq. (5) [token].

        Parameters
        ----------
        vertices
            Indices of the vertices.

        Raises
        ------
        ScenarioError
            If the set is not ancestor-closed; a prefix without its beginning is of no use.
        """
        chosen = frozenset(vertices)
        if not self.is_closed(chosen):
            missing = sorted(self.names[vertex] for vertex in self.closure(chosen) - chosen)
            msg = f"the set is not ancestor-closed; add {', '.join(missing)}"
            raise ScenarioError(msg)
        return sum(self.segment_tokens(vertex) for vertex in chosen)

    def hit_tokens(self, stored: Collection[int], vertex: int) -> int:
        """Return the hit of a prompt, max{ℓ_v : v ∈ C_s ∩ P_q}, 0 where they share nothing, Eq. (4) [token].

        Parameters
        ----------
        stored
            Vertices C_s of the cache.
        vertex
            Deepest vertex of the prompt's path P_q, or `ROOT`.
        """
        return max((self.depth_tokens[v] for v in self.path(vertex) if v in stored), default=0)

    def hit_matrix(
        self, profiles: Iterable[Collection[int]], vertices: Iterable[int]
    ) -> npt.NDArray[np.int64]:
        """Return the hits d of every profile for every prompt [token], shape (S, Q).

        Parameters
        ----------
        profiles
            What each profile stores, as indices of vertices.
        vertices
            Where each prompt ends in the forest.
        """
        ends = list(vertices)
        rows = [[self.hit_tokens(stored, vertex) for vertex in ends] for stored in profiles]
        return np.array(rows, dtype=np.int64).reshape(len(rows), len(ends))
