"""Verification on use: what of a cache a request may really use.

A state is keys and values that one model made of one text. It is used only where model, tokenizer, adapter,
position encoding and privacy domain agree and the prefix is the same, token by token, in the version that the
request begins with. What fails is a smaller hit, down to a full prefill; it is never an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geoedge.workload.forest import ROOT, PrefixForest

if TYPE_CHECKING:
    from geoedge.scenario import StateConfig, WorkloadConfig

__all__ = [
    "Stamp",
    "prefix_hashes",
    "served_types",
    "serves",
    "stamp_of",
    "verified_hit_tokens",
    "verified_hits",
]


@dataclass(frozen=True)
class Stamp:
    """What states were made with, or what a request needs; empty text is the default of the city."""

    model: str = ""
    tokenizer: str = ""
    adapter: str = ""
    position_encoding: str = ""
    privacy_domain: str = ""


def stamp_of(config: StateConfig | None) -> Stamp:
    """Return the stamp that a scenario states; what it leaves out is the city's default."""
    return Stamp() if config is None else Stamp(**config.model_dump(exclude_none=True))


def serves(needs: Stamp, made_with: Stamp) -> bool:
    """Return whether a site is a candidate for a request at all: it runs the model, and its domain lets it in.

    Parameters
    ----------
    needs
        What the request needs.
    made_with
        What runs at the site; a site without a privacy domain is open to all.
    """
    return needs.model == made_with.model and made_with.privacy_domain in ("", needs.privacy_domain)


def prefix_hashes(forest: PrefixForest, versions: Sequence[int] | None = None) -> tuple[str, ...]:
    """Return a hash of each prefix, of its whole text from the root on, length V.

    A state depends on all that stands before it, so a new version of a prefix changes the hashes of all that extend it.

    Parameters
    ----------
    forest
        The prefix forest.
    versions
        Version of each prefix's own part, length V; all 1 by default.
    """
    version = [1] * len(forest) if versions is None else list(versions)
    found: dict[int, str] = {ROOT: ""}
    for vertex in sorted(range(len(forest)), key=lambda v: forest.depth_tokens[v]):
        text = f"{found[forest.parents[vertex]]}|{forest.names[vertex]}|{forest.depth_tokens[vertex]}|{version[vertex]}"
        found[vertex] = sha256(text.encode()).hexdigest()
    return tuple(found[vertex] for vertex in range(len(forest)))


def verified_hit_tokens(
    forest: PrefixForest,
    stored: Collection[int],
    vertex: int,
    *,
    needs: Stamp = Stamp(),
    made_with: Stamp = Stamp(),
    domains: Sequence[str] | None = None,
    wanted: Sequence[str] | None = None,
    held: Mapping[int, str] | None = None,
) -> int:
    """Return the hit of a prompt that stands up to verification: that of the deepest verified ancestor, or 0 [token].

    Parameters
    ----------
    forest
        The prefix forest.
    stored
        Vertices C_s that the site says it stores.
    vertex
        Deepest vertex of the prompt's path P_q, or `ROOT`.
    needs, made_with
        What the request needs, and what the states were made with.
    domains
        Privacy domain of each prefix, length V; "" for those that everybody may use. All by default.
    wanted
        Hash of each prefix as requests begin with it now, length V; not checked if omitted.
    held
        Hashes of the states that the site really holds, by vertex; those of `wanted` if omitted.
    """
    same = (
        serves(needs, made_with)
        and needs.tokenizer == made_with.tokenizer
        and needs.adapter == made_with.adapter
        and needs.position_encoding == made_with.position_encoding
    )
    hit = 0
    for v in forest.path(vertex) if same else ():
        mine = domains is None or domains[v] in ("", needs.privacy_domain)
        true = held is None or wanted is None or held.get(v) == wanted[v]
        if v not in stored or not mine or not true:
            break
        hit = forest.depth_tokens[v]
    return hit


def verified_hits(config: WorkloadConfig, forest: PrefixForest) -> npt.NDArray[np.int64]:
    """Return the hits d of every profile for every request type that stand up to verification [token], shape (S, Q).

    Parameters
    ----------
    config
        Prefixes, profiles and requests.
    forest
        Their prefix forest.
    """
    domains = [prefix.privacy_domain or "" for prefix in config.prefixes]
    rows = [
        [
            verified_hit_tokens(
                forest,
                forest.indices(profile.prefixes),
                forest.index(request.prefix) if request.prefix else ROOT,
                needs=stamp_of(request.needs),
                made_with=stamp_of(profile.made_with),
                domains=domains,
            )
            for request in config.requests
        ]
        for profile in config.profiles
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(config.requests))


def served_types(config: WorkloadConfig) -> npt.NDArray[np.bool_]:
    """Return which request types a site of each profile is a candidate for, shape (S, Q)."""
    return np.array(
        [
            [serves(stamp_of(request.needs), stamp_of(profile.made_with)) for request in config.requests]
            for profile in config.profiles
        ],
        dtype=np.bool_,
    )
