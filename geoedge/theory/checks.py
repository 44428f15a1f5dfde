"""What several questions are given alike, and the one line that refuses it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import PerSite, QueueOfMix, WaitModel, select
from geoedge.theory.queueing import ErlangC

__all__ = ["checked_network", "checked_queue", "checked_targets", "checked_waits", "shown"]

FloatArray = NDArray[np.float64]


def shown(given: object, longest: int = 80) -> str:
    """Return a value as words of one line, cut if they are long."""
    words = " ".join(repr(given.tolist() if isinstance(given, np.ndarray) else given).split())
    return words if len(words) <= longest else words[: longest - 1] + "…"


def numbers(given: ArrayLike) -> FloatArray | None:
    """Return real numbers as an array, or None if these are none."""
    try:
        found = np.asarray(given)
    except ValueError:  # rows of different lengths
        return None
    return found.astype(np.float64) if found.dtype.kind in "biuf" else None


def checked_network(function: str, given: object) -> TieredNetwork:
    """Return a network, or say in one line that it is none.

    Parameters
    ----------
    function
        Who was asked.
    given
        What should be a network.

    Raises
    ------
    GeoEdgeError
        If it is something else, such as a scenario.
    """
    if not isinstance(given, TieredNetwork):
        msg = (
            f"{function}: `network` is a {type(given).__name__}, but must be a TieredNetwork; "
            "`geoedge.solve(scenario).network` makes one of a scenario"
        )
        raise GeoEdgeError(msg)
    return given


def checked_waits(function: str, name: str, given: ArrayLike, tiers: int) -> FloatArray:
    """Return waits of all tiers as an array, or say in one line what is wrong with them.

    Parameters
    ----------
    function, name
        Who was asked, and what for.
    given
        Waits [s], shape (S,).
    tiers
        Number of tiers S.

    Raises
    ------
    GeoEdgeError
        If they are not one finite wait >= 0 each.
    """
    waits = numbers(given)
    if waits is None or waits.shape != (tiers,) or not (np.isfinite(waits) & (waits >= 0.0)).all():
        waits_of = f"{tiers} finite wait{'s' if tiers > 1 else ''}"
        msg = f"{function}: `{name}` must be {waits_of} >= 0 s, not {shown(given)}"
        raise GeoEdgeError(msg)
    return waits


def checked_targets(function: str, given: ArrayLike) -> FloatArray:
    """Return targets of the time to first token [s] as an array of their shape.

    Parameters
    ----------
    function
        Who was asked.
    given
        Targets τ₀ [s], any shape; infinite ones are allowed.

    Raises
    ------
    GeoEdgeError
        If they are not numbers, or one is NaN.
    """
    targets = numbers(given)
    if targets is None:
        msg = f"{function}: `tau` is {shown(given)}, but must be targets in seconds"
        raise GeoEdgeError(msg)
    if np.isnan(targets).any():
        msg = f"{function}: `tau` holds NaN, but must be targets in seconds"
        raise GeoEdgeError(msg)
    return targets


def checked_queue(
    function: str, given: WaitModel | QueueOfMix | None, concurrency: NDArray[np.int64]
) -> WaitModel | QueueOfMix:
    """Return a queue that can be asked for all of these tiers or sites; M/M/c if none is given.

    Parameters
    ----------
    function
        Who was asked.
    given
        Wait model, or a rule that makes one of the mixture that each serves.
    concurrency
        Servers of each, shape (n,).

    Raises
    ------
    GeoEdgeError
        If it is neither, or has parameters of its own for another number of tiers or sites.
    """
    if given is None:
        return ErlangC()
    if type(given) is ErlangC:
        return given
    if isinstance(given, type) or not isinstance(given, WaitModel | QueueOfMix):
        msg = (
            f"{function}: `queue` is {shown(given)}, but must be a wait model as `ErlangC()`, "
            "or a rule as `queue_for` gives it"
        )
        raise GeoEdgeError(msg)
    if isinstance(given, PerSite) and isinstance(given, WaitModel) and not _fits(given, concurrency):
        msg = (
            f"{function}: `queue` has parameters of its own for another number of tiers or sites than {concurrency.size}, "
            "but must have one for each; give a single one, or as many"
        )
        raise GeoEdgeError(msg)
    return given


def _fits(queue: WaitModel, concurrency: NDArray[np.int64]) -> bool:
    """Return whether a wait model with parameters of its own answers for each of these."""
    try:
        models = select(queue, np.arange(concurrency.size)), queue
        waits = [model.normalised_wait_and_slope(0.5 * concurrency, concurrency)[0] for model in models]
    except (ValueError, IndexError):
        return False
    return all(np.shape(wait) == concurrency.shape for wait in waits)
