"""The paper's baseline and random networks, for the tests of theory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from geoedge.theory import TieredNetwork


def prefill(tokens: np.ndarray) -> np.ndarray:
    """Return the baseline's prefill time [s], Eq. (11)."""
    return 1.6e-4 * tokens + 1.8e-8 * tokens**2


def build(density, concurrency, probability, length, hit, decode, intensity, coefficient, exponent):
    """Return a network with the baseline's prefill curve."""
    length, hit = np.asarray(length), np.asarray(hit)
    residual = prefill(length - hit)
    return TieredNetwork(
        density,
        concurrency,
        probability,
        residual,
        residual + decode,
        intensity,
        coefficient,
        exponent,
        hit,
        length,
        prefill(length),
    )


@pytest.fixture(scope="session")
def baseline() -> Callable[..., TieredNetwork]:
    """Return a maker of the baseline at a given load."""

    def make(load: float = 3.0, density: float = 1.2, placement=(0.45, 0.35, 0.2)) -> TieredNetwork:
        return build(
            density * np.array(placement),
            [18, 14, 6],
            [0.4, 0.6],
            [1024, 4096],
            [[0, 0], [512, 512], [1024, 2048]],
            0.4,
            load,
            0.28,
            2.5,
        )

    return make


@pytest.fixture(scope="session")
def random_network() -> Callable[..., TieredNetwork]:
    """Return a maker of random networks, loaded to a share of what is known to be carried."""

    def make(seed: int, fill: float = 0.7, exponent: float | None = None) -> TieredNetwork:
        rng = np.random.default_rng(seed)
        tiers, types = int(rng.integers(1, 7)), int(rng.integers(1, 6))
        length = np.sort(rng.integers(300, 8000, types))
        hit = np.minimum(rng.integers(0, 4000, (tiers, types)) * (rng.random((tiers, types)) < 0.7), length)
        network = build(
            rng.uniform(0.05, 2.0, tiers),
            rng.integers(1, 30, tiers),
            rng.dirichlet(np.ones(types)),
            length,
            hit,
            10.0 ** rng.uniform(-1.0, 0.7),
            1.0,
            10.0 ** rng.uniform(-1.5, 0.0),
            float(rng.choice([2.0, 2.2, 2.5, 3.0, 4.0])) if exponent is None else exponent,
        )
        return network.with_intensity(fill * network.sufficient_intensity)

    return make


@pytest.fixture(scope="session")
def graded() -> Callable[..., np.ndarray]:
    """Return A/λ weighed by a function of tier and delay, by brute force: panels that halve towards every kink."""
    node, share = np.polynomial.legendre.leggauss(20)
    node, share = 0.5 * (node + 1.0), 0.5 * share

    def integral(density, offset, coefficient, exponent, limits=None, weigh=None) -> np.ndarray:
        mass = 2.0 / exponent
        scale, found = np.pi * coefficient**-mass, np.zeros(len(density))
        for s in range(len(density)):
            gap = offset - offset[s]
            top = (60.0 / (scale * (density[s] or density.max()))) ** (1.0 / mass)
            end = max(top, *(gap + top)) if limits is None else limits[s]
            kinks = np.unique(np.concatenate([[0.0], gap[(gap > 0.0) & (gap < end)], [end]]))
            for low, high in pairwise(kinks[kinks <= end]):
                halves = (high - low) * 2.0 ** np.arange(-1.0, -170.0 if exponent <= 6.0 else -960.0, -1.0)
                ends = np.concatenate([[0.0], halves[::-1], (high - low) - halves[1:45], [high - low]])
                width = np.repeat(np.diff(ends), 6) / 6.0
                start = (ends[:-1, None] + np.diff(ends)[:, None] * np.arange(6) / 6.0).ravel()
                beyond = start[:, None] + width[:, None] * node
                rise = np.zeros_like(beyond)
                for t in range(len(density)):
                    # a kink's own distance keeps all digits
                    above = beyond if gap[t] == low else np.maximum(low + beyond - gap[t], 0.0)
                    rise += density[t] * above**mass
                value = scale * mass * (low + beyond) ** (mass - 1.0) * np.exp(-scale * rise)
                value *= 1.0 if weigh is None else weigh(s, low + beyond)
                found[s] += (value * width[:, None] * share).sum()
        return found

    return integral
