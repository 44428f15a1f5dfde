"""The independent check: nearest sites drawn at random, costs compared, waits drawn, Eq. (52).

Nothing here uses the integrals of `association` or `coverage`, so that agreement means something. Waits are drawn
by inverting the distribution of the queue, or by whatever sampler is given: `geoedge.serving.queue.simulate_waits`
makes them by events, so that Erlang's formula is left out as well. That twin lies in the room of the queues, whose
recursion it runs, as theory sees no queue but its formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from geoedge.errors import GeoEdgeError
from geoedge.streams import generator
from geoedge.theory.equilibrium import Equilibrium
from geoedge.theory.network import TieredNetwork
from geoedge.theory.protocols import select

__all__ = ["Sample", "WaitSampler", "mean_and_error", "nearest_distances", "sample_requests"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WaitSampler = Callable[[int, int, np.random.Generator], ArrayLike]
"""Waits [s], shape (n,), from the tier, their number n and a random generator."""


def mean_and_error(value: ArrayLike, batches: int | None = None) -> tuple[float, float]:
    """Return a mean and its standard error.

    Parameters
    ----------
    value
        Independent values, or a stationary series in its order, shape (n,).
    batches
        Number of batches of a series whose values depend on each other: the error is that of the means of so many
        runs of equal length, which must be long against the memory of the series. What is left over at the start
        is not used.

    Returns
    -------
    mean, error
        Mean and standard error; both infinite where a value is infinite.

    Raises
    ------
    GeoEdgeError
        If there are fewer than two values or batches, or a batch is empty.
    """
    series = np.asarray(value, dtype=np.float64)
    count = series.size if batches is None else batches
    if series.ndim != 1 or not 2 <= count <= series.size:
        msg = (
            f"mean_and_error: `value` of shape {series.shape} in {count} parts gives no error, but must be "
            "one row of at least two values, and of at least one a batch; take more samples or fewer batches"
        )
        raise GeoEdgeError(msg)
    if np.isinf(series).any():
        return float("inf"), float("inf")
    means = series if batches is None else series[series.size % count :].reshape(count, -1).mean(axis=1)
    return float(means.mean()), float(means.std(ddof=1) / np.sqrt(count))


@dataclass(frozen=True, eq=False)
class Sample:
    """Independent requests, each with a type, the tier that serves it, and the parts of its TTFT.

    Attributes
    ----------
    request_type, tier
        Indices q and s, shape (n,).
    distance
        Distance to the serving site [km], shape (n,).
    radio, wait, prefill
        Parts of the time to first token [s], shape (n,); the wait is infinite at overloaded tiers.
    """

    request_type: IntArray
    tier: IntArray
    distance: FloatArray
    radio: FloatArray
    wait: FloatArray
    prefill: FloatArray

    @property
    def ttft(self) -> FloatArray:
        """Time to first token, Eq. (37) [s], shape (n,)."""
        return self.radio + self.wait + self.prefill

    def mean(self, value: FloatArray) -> tuple[float, float]:
        """Return the mean over requests and its standard error.

        Parameters
        ----------
        value
            One value a request, shape (n,).
        """
        return mean_and_error(value)

    def ttft_coverage(self, tau: float) -> tuple[float, float]:
        """Return the share of requests with a first token within `tau` [s], and its standard error."""
        return self.mean((self.ttft <= tau).astype(np.float64))

    def association(self, tiers: int, types: int) -> tuple[FloatArray, FloatArray]:
        """Return the share of each type that each tier serves, shape (S, Q), and its standard error.

        Parameters
        ----------
        tiers
            Number of tiers S.
        types
            Number of request types Q.
        """
        count = np.zeros((tiers, types))
        np.add.at(count, (self.tier, self.request_type), 1.0)
        total = np.maximum(count.sum(axis=0), 1.0)
        share = count / total
        return share, np.sqrt(share * (1.0 - share) / total)

    def serving_distance(self, tiers: int, types: int) -> tuple[FloatArray, FloatArray]:
        """Return the mean distance given tier and type [km], shape (S, Q), and its standard error.

        Both are NaN where fewer than two requests of the type were served by the tier.

        Parameters
        ----------
        tiers
            Number of tiers S.
        types
            Number of request types Q.
        """
        mean, error = np.full((2, tiers, types), np.nan)
        for s, q in np.ndindex(tiers, types):
            mine = self.distance[(self.tier == s) & (self.request_type == q)]
            if mine.size >= 2:
                mean[s, q], error[s, q] = mean_and_error(mine)
        return mean, error

    def ttft_quantile(self, probability: float, confidence: float = 0.95) -> tuple[float, float, float]:
        """Return a quantile of the time to first token and the order statistics that enclose it [s].

        Parameters
        ----------
        probability
            Share ζ of requests, strictly between 0 and 1.
        confidence
            Probability, at least, that the true quantile lies within.

        Raises
        ------
        GeoEdgeError
            If either lies outside (0, 1).
        """
        for name, given in (("probability", probability), ("confidence", confidence)):
            if not 0.0 < given < 1.0:
                msg = f"Sample.ttft_quantile: `{name}` is {given}, but must be above 0 and below 1"
                raise GeoEdgeError(msg)
        ordered = np.concatenate([[0.0], np.sort(self.ttft), [np.inf]])
        count = ordered.size - 2
        # the number of samples up to the true quantile is binomial, whatever the distribution
        tails = np.asarray(binom.ppf([0.5 - 0.5 * confidence, 0.5 + 0.5 * confidence], count, probability))
        middle = int(np.ceil(probability * count))
        return float(ordered[middle]), float(ordered[int(tails[0])]), float(ordered[int(tails[1]) + 1])

    def offloading_ratio(self, network: TieredNetwork, by: str = "tokens") -> tuple[float, float]:
        """Return the share of prompt work that caches save, Eqs. (44, 45), and its standard error.

        Parameters
        ----------
        network
            The network that was sampled.
        by
            ``"tokens"`` or ``"prefill_time"``, as in `TheoryAnswer.offloading_ratio`.

        Raises
        ------
        GeoEdgeError
            If `by` is neither.
        """
        if by == "tokens":
            saved, full = network.hit_tokens.astype(np.float64), network.prompt_tokens.astype(np.float64)
        elif by == "prefill_time":
            saved, full = network.full_prefill_time - network.prefill_time, network.full_prefill_time
        else:
            msg = f'Sample.offloading_ratio: `by` is {by!r}, but must be "tokens" or "prefill_time"'
            raise GeoEdgeError(msg)
        mean, error = mean_and_error(saved[self.tier, self.request_type])
        work = float(network.type_probability @ full)
        return (mean / work, error / work) if work > 0.0 else (0.0, 0.0)


def nearest_distances(tier_density: ArrayLike, samples: int, rng: np.random.Generator | int) -> FloatArray:
    """Return distances to the nearest site of each tier [km], R = √(−ln U/(πλ)), Eq. (52), shape (samples, S).

    Parameters
    ----------
    tier_density
        Densities λ_s [1/km²], shape (S,); an empty tier is infinitely far away.
    samples
        Number of independent places.
    rng
        Random generator, or a seed.

    Raises
    ------
    GeoEdgeError
        If a density is negative or NaN.
    """
    density = np.asarray(tier_density, dtype=np.float64)
    if density.ndim != 1 or not (density >= 0.0).all():
        msg = f"nearest_distances: `tier_density` is {density.tolist()}, but must be one row of densities >= 0 per km²"
        raise GeoEdgeError(msg)
    squared = generator(rng).standard_exponential((samples, density.size))
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt(squared / (np.pi * density)))


def sample_requests(
    equilibrium: Equilibrium,
    samples: int,
    rng: np.random.Generator | int,
    *,
    draw_waits: WaitSampler | None = None,
) -> Sample:
    """Draw independent requests under the waits and the policy of an equilibrium.

    Parameters
    ----------
    equilibrium
        Advertised waits, policy and queues.
    samples
        Number of requests, at least 2.
    rng
        Random generator, or a seed.
    draw_waits
        Draws the waits at a tier that is not overloaded; by inverting its distribution if omitted.

    Raises
    ------
    GeoEdgeError
        If fewer than two samples are asked for, or the sampler returns something else than waits.
    """
    if not samples >= 2:
        msg = f"sample_requests: `samples` is {samples}, but must be at least 2"
        raise GeoEdgeError(msg)
    rng = generator(rng)
    network = equilibrium.network
    kind = rng.choice(network.types, size=samples, p=network.type_probability)
    distance = nearest_distances(network.tier_density, samples, rng)
    radio = network.delay_coefficient * distance**network.delay_exponent
    tier = np.argmin(radio + equilibrium.cost_offset.T[kind], axis=1)
    rows = np.arange(samples)
    return Sample(
        request_type=kind,
        tier=tier,
        distance=distance[rows, tier],
        radio=radio[rows, tier],
        wait=_waits(equilibrium, tier, rng, draw_waits or _by_inversion(equilibrium)),
        prefill=network.prefill_time[tier, kind],
    )


def _by_inversion(equilibrium: Equilibrium) -> WaitSampler:
    """Return a sampler that inverts the wait distribution of a tier."""

    def draw(tier: int, count: int, rng: np.random.Generator) -> FloatArray:
        return select(equilibrium.queue, tier).wait_quantile(
            rng.random(count),
            equilibrium.site_arrival_rate[tier],
            equilibrium.service_rate[tier],
            equilibrium.network.concurrency[tier],
        )

    return draw


def _waits(
    equilibrium: Equilibrium, tier: IntArray, rng: np.random.Generator, draw: WaitSampler
) -> FloatArray:
    """Draw a wait for every request, infinite at overloaded tiers."""
    wait = np.full(tier.size, np.inf)
    for s in np.flatnonzero(~equilibrium.overloaded):
        mine = np.flatnonzero(tier == s)
        drawn = np.asarray(draw(int(s), mine.size, rng), dtype=np.float64)
        if drawn.shape != mine.shape or not (drawn >= 0.0).all():
            msg = (
                f"sample_requests: `draw_waits` gave an array of shape {drawn.shape} for tier {s}, "
                f"but must give {mine.size} waits >= 0 s"
            )
            raise GeoEdgeError(msg)
        wait[mine] = drawn
    return wait
