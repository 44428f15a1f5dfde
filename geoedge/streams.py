"""Named, independent random streams from one seed."""

from __future__ import annotations

import hashlib

import numpy as np

from geoedge.errors import GeoEdgeError

__all__ = ["generator", "stream"]


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random stream of this name.

    Streams of different names are independent, and a new name never shifts an old stream,
    so that two policies run on one seed see the same arrivals.

    Parameters
    ----------
    seed
        The one seed of a run, a nonnegative integer.
    *names
        What the stream is for, for example ``"arrivals", epoch``.

    Raises
    ------
    GeoEdgeError
        If the seed is negative.
    """
    if seed < 0:
        msg = f"`seed` must be a nonnegative integer, not {seed}"
        raise GeoEdgeError(msg)
    label = "/".join(str(name) for name in names).encode()
    key = np.frombuffer(hashlib.sha256(label).digest()[:16], dtype=np.uint32)
    return np.random.Generator(
        np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=tuple(key.tolist())))
    )


def generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """Return a random generator from a seed, and a generator as it is.

    Parameters
    ----------
    rng
        Seed or generator; a fresh one if none is given.

    Raises
    ------
    GeoEdgeError
        If it is neither.
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        msg = f"`rng` must be a seed >= 0 or a numpy Generator, not {str(rng)[:80]!r}"
        raise GeoEdgeError(msg) from error
