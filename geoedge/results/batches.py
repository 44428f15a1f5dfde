"""An interval from one stationary run alone."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import GeoEdgeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.results.results import Results

__all__ = ["batch_interval"]


def batch_interval(
    results: Results, metric: Callable[[NDArray[np.float64]], float], *, batches: int = 20
) -> tuple[float, float, float]:
    """Return a mean of TTFT batches and its 95 % interval, for one stationary run.

    Batch means serve stationary runs only; a run whose demand shifts takes paired replications.

    Parameters
    ----------
    results
        The run.
    metric
        A mean over the TTFT [s] of a batch, for example ``lambda ttft: (ttft <= 0.8).mean()``.
    batches
        Batches of equal length in time, at least 10.

    Raises
    ------
    GeoEdgeError
        If there are fewer than 10 batches.
    """
    from scipy.stats import t as student

    if batches < 10:
        msg = f"`batches` must be at least 10, not {batches}: fewer give no trustworthy interval"
        raise GeoEdgeError(msg)
    created, ttft = results.column("created_s"), results.column("ttft_s")
    edges = np.linspace(results.measured_from_s, results.meta["horizon_s"], batches + 1)
    cuts = np.searchsorted(created, edges)
    means = np.array([metric(ttft[a:b]) for a, b in pairwise(cuts) if b > a])
    half = float(student.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means)))
    centre = float(means.mean())
    return centre, centre - half, centre + half
