"""The independent check: nearest sites drawn at random, costs compared, waits drawn, Eq. (52).

Nothing here uses the integrals of `association` or `coverage`, so that agreement means something.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory.equilibrium import Equilibrium

__all__ = ["Sample", "nearest_distances", "sample_requests"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        """Return the mean over requests of a value each, shape (n,), and its standard error."""
        return float(value.mean()), float(value.std(ddof=1) / np.sqrt(value.size))

    def ttft_coverage(self, tau: float) -> tuple[float, float]:
        """Return the share of requests with a first token within `tau` [s], and its standard error."""
        return self.mean((self.ttft <= tau).astype(np.float64))

    def association(self, tiers: int, types: int) -> tuple[FloatArray, FloatArray]:
        """Return the share of each type that each tier serves, shape (S, Q), and its standard error."""
        count = np.zeros((tiers, types))
        np.add.at(count, (self.tier, self.request_type), 1.0)
        total = np.maximum(count.sum(axis=0), 1.0)
        share = count / total
        return share, np.sqrt(share * (1.0 - share) / total)


def nearest_distances(tier_density: FloatArray, samples: int, rng: np.random.Generator) -> FloatArray:
    """Return distances to the nearest site of each tier [km], R = √(−ln U/(πλ)), Eq. (52), shape (samples, S).

    Parameters
    ----------
    tier_density
        Densities λ_s [1/km²], shape (S,); an empty tier is infinitely far away.
    samples
        Number of independent places.
    rng
        Random generator.
    """
    squared = rng.standard_exponential((samples, tier_density.size))
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt(squared / (np.pi * tier_density)))


def sample_requests(equilibrium: Equilibrium, samples: int, rng: np.random.Generator) -> Sample:
    """Draw independent requests under the waits and the policy of an equilibrium.

    Parameters
    ----------
    equilibrium
        Advertised waits, policy and queues.
    samples
        Number of requests, at least 2.
    rng
        Random generator.

    Raises
    ------
    GeoEdgeError
        If fewer than two samples are asked for.
    """
    if samples < 2:
        msg = f"sample_requests: `samples` is {samples}, but must be at least 2"
        raise GeoEdgeError(msg)
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
        wait=_waits(equilibrium, tier, rng),
        prefill=network.prefill_time[tier, kind],
    )


def _waits(equilibrium: Equilibrium, tier: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw a wait for every request by inverting the distribution of its tier."""
    level, wait = rng.random(tier.size), np.full(tier.size, np.inf)
    for s in np.flatnonzero(~equilibrium.overloaded):
        mine = tier == s
        wait[mine] = equilibrium.queue.wait_quantile(
            level[mine],
            equilibrium.site_arrival_rate[s],
            equilibrium.service_rate[s],
            equilibrium.network.concurrency[s],
        )
    return wait
