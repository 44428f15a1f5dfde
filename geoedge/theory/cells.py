"""The cell of a typical site: its exact second moments, and a fixed sample of it.

C_q is what a site of tier s serves for type q, when all sites of a tier have one cost offset. A place y at distance
r belongs to it as long as no site of any tier t is cheaper there, that is, none lies in the disc B(y, r_t^q) with
r_t^q = [r^α + (β_s − β_t)/ξ]₊^{1/α}, Eq. (24). Sites are Poisson, so the probability of that is
exp{−Σ_t λ_t |B(y, r_t^q)|}, and for two places at once the two discs are united:

    E|C_q| = A_{s,q}/λ_s,    E|C_q||C_q'| = ∬ exp{−Σ_t λ_t |B(y, r_t^q) ∪ B(z, r_t^{q'})|} dy dz.

Moments do not make a law. The sample does: environments of the site, drawn once and for all, and the cells in them
exact but for their resolution of 64 places on each of some rings. Its weights are calibrated (Deville and Särndal,
J. Am. Stat. Assoc. 87, 1992): moved as little as makes the mean rate and the first two moments of the load exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._cells import draw_cells, pair_integrals
from geoedge.theory.association import association_per_density
from geoedge.theory.network import TieredNetwork

__all__ = ["CellSample", "cell_moments", "sample_cells"]

FloatArray = NDArray[np.float64]

_RINGS, _PAIR_RINGS, _ANGLES = 16, 24, 12
_EDGE, _PAIR_EDGE = (
    12.0,
    16.0,
)  # mean number of cheaper sites, beyond those at the origin, where a cell has ended
_CLOSEST, _FEWEST_NODES = 0.03, 4  # panels of pairs: least width in the whole, fewest nodes
_NEVER = 60.0  # mean number of cheaper sites at the origin from which a site serves nobody
_MOST_CELLS, _FEWEST_CELLS, _ALL_CELLS = 6144, 64, 80_000  # per tier at most, at least; times tiers and types
_PAIRS_WORTH = 400  # tiers² times types² up to which exact second moments cost less than the sample


@dataclass(frozen=True, eq=False)
class CellSample:
    """Cells of sites of one tier in a fixed set of random environments.

    Attributes
    ----------
    ring
        Radii [km], shape (J,).
    width
        What a whole ring stands for [km²], shape (J,).
    share
        Share of each ring that is served, shape (N, Q, J).
    weight
        Weights of the cells, adding up to one, shape (N,); a few may be slightly negative.
    """

    ring: FloatArray
    width: FloatArray
    share: FloatArray
    weight: FloatArray

    @cached_property
    def area(self) -> FloatArray:
        """Areas of the cells [km²], shape (N, Q)."""
        return np.asarray(self.share @ self.width)


def cell_moments(
    tier_density: ArrayLike,
    cost_offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    tier: int,
) -> FloatArray:
    """Return the second moments E|C_q||C_q'| of the cells of a site of one tier [km⁴].

    Parameters
    ----------
    tier_density
        Density λ_t of the sites of each profile [1/km²], shape (S,).
    cost_offset
        Offset β of the cost of a tier [s], Eq. (23), shape (S, Q).
    delay_coefficient
        Radio delay ξ at one kilometre [s/km^α].
    delay_exponent
        Exponent α of the radio delay.
    tier
        Index of the tier; if it is empty, the cells are those of a lone site.

    Returns
    -------
    FloatArray
        Moments, shape (Q, Q), accurate to 3e-4. With the mean areas of `association_per_density` they give
        the variance of a site's load, and the mean load of the site that serves a request of type q,
        Σ_q' λ_req p_q' t_{s,q'} E|C_q||C_q'| / E|C_q|.

    Raises
    ------
    GeoEdgeError
        As `association_per_density`, or if offsets have no axis of types, or there is no such tier.

    Examples
    --------
    >>> round(float(cell_moments([1.0], [[0.0]], 0.28, 2.5, 0)[0, 0]), 3)  # a Poisson-Voronoi cell: 1.2802
    1.28
    """
    offset, density = np.asarray(cost_offset, dtype=np.float64), np.asarray(tier_density, dtype=np.float64)
    if offset.ndim != 2:
        msg = f"cell_moments: `cost_offset` has shape {offset.shape}, but must have shape (S, Q)"
        raise GeoEdgeError(msg)
    area = association_per_density(density, offset, delay_coefficient, delay_exponent)
    if tier not in range(density.size):
        msg = f"cell_moments: `tier` is {tier}, but must be an index from 0 to {density.size - 1}"
        raise GeoEdgeError(msg)
    if not area[tier].any():
        return np.zeros((offset.shape[1], offset.shape[1]))
    gap = (offset[tier] - offset) / delay_coefficient
    ring, width = _radii(gap, density, delay_exponent, _PAIR_RINGS, _PAIR_EDGE, split=True)
    node, weight = np.polynomial.legendre.leggauss(_ANGLES)
    # places near each other matter most: the angle grows with the square of its node
    angle, turn = np.pi * (0.5 * (node + 1.0)) ** 2, 0.5 * np.pi * (node + 1.0) * weight
    return pair_integrals(ring, width, _reach(gap, ring, delay_exponent), density, angle, turn)


def sample_cells(
    network: TieredNetwork,
    cost_offset: FloatArray,
    tier: int,
    count: int | None = None,
    mean_area: FloatArray | None = None,
) -> CellSample:
    """Return cells of sites of one tier, weighted so that their mean rate and load are exact, and so is its variance.

    The variance is left to the sample where there are so many tiers and types that its integrals would take longer.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    cost_offset
        Offsets β of the choice [s], shape (S, Q).
    tier
        Index of the tier.
    count
        Number of cells N; by default 6144, and fewer in a network of many tiers and types.
    mean_area
        Mean areas A/λ of the tier's cells [km²], shape (Q,), if they are known.
    """
    exponent, density = network.delay_exponent, network.tier_density
    if mean_area is None:
        mean = association_per_density(density, cost_offset, network.delay_coefficient, exponent)[tier]
    else:
        mean = mean_area
    gap = (cost_offset[tier] - cost_offset) / network.delay_coefficient
    ring, width = _radii(gap, density, exponent, _RINGS, _EDGE)
    reach = _reach(gap, ring, exponent)
    cells = sample_size(network) if count is None else count
    share = draw_cells(cells, ring, reach, density)
    even = CellSample(ring, 2.0 * np.pi * ring * width, share, np.full(cells, 1.0 / cells))
    return CellSample(even.ring, even.width, share, _calibrated(network, cost_offset, tier, even, mean))


def sample_size(network: TieredNetwork) -> int:
    """Return how many cells of each tier are drawn by default."""
    wanted = _ALL_CELLS // (network.tiers * network.types)
    return min(max(wanted, _FEWEST_CELLS), _MOST_CELLS)


def _calibrated(
    network: TieredNetwork, offset: FloatArray, tier: int, sample: CellSample, mean: FloatArray
) -> FloatArray:
    """Return the weights nearest to even ones under which rate and load have their exact moments."""
    rate = network.type_probability
    work = rate * network.occupancy_time[tier]
    coefficient, exponent = network.delay_coefficient, network.delay_exponent
    load = sample.area @ work
    features, exact = [sample.area @ rate, load], [float(mean @ rate), float(mean @ work)]
    if (network.tiers * network.types) ** 2 <= _PAIRS_WORTH:
        second = cell_moments(network.tier_density, offset, coefficient, exponent, tier)
        features.append(load**2)
        exact.append(float(work @ second @ work))
    matrix, even = np.array(features).T, sample.weight
    scale = np.maximum(np.abs(exact), 1e-300)
    centred = (matrix - even @ matrix) / scale
    missing = (np.array(exact) - even @ matrix) / scale
    tilt = np.linalg.lstsq(centred.T @ (even[:, None] * centred), missing, rcond=1e-9)[0]
    return np.asarray(even * (1.0 + centred @ tilt))


def _reach(gap: FloatArray, ring: FloatArray, exponent: float) -> FloatArray:
    """Return the reach of each tier at each radius, Eq. (24) [km], shape (S, Q, J), for gaps (β_s − β_t)/ξ."""
    return np.asarray(np.maximum(ring**exponent + gap[:, :, None], 0.0) ** (1.0 / exponent))


def _radii(
    gap: FloatArray, density: FloatArray, exponent: float, count: int, edge: float, *, split: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre radii and weights up to where the cells of all types that are served have ended.

    Reaches that begin at some radius have a kink there; the radii may be split at the kinks.
    """

    def cheaper(radius: FloatArray) -> FloatArray:
        reach = np.maximum(radius**exponent + gap, 0.0) ** (2.0 / exponent)
        return np.asarray(np.pi * (density @ reach))

    at_origin = cheaper(np.zeros(gap.shape[1]))
    served = at_origin <= max(_NEVER, float(at_origin.min()))
    low, high = np.zeros(gap.shape[1]), np.full(gap.shape[1], np.sqrt(edge / (np.pi * density.sum())))
    while (cheaper(high) - at_origin < edge).any():
        high = np.where(cheaper(high) - at_origin < edge, 2.0 * high, high)
    for _ in range(30):
        middle = 0.5 * (low + high)
        inside = cheaper(middle) - at_origin < edge
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    end = float(high[served].max())
    joints = np.array([0.0, end])
    if split:
        kink = np.maximum(-gap[:, served][density > 0.0], 0.0) ** (1.0 / exponent)
        joints = _apart(np.append(kink, end), _CLOSEST * end)
    panels = [
        _panel(low, high, max(_FEWEST_NODES, round(count * (high - low) / end)))
        for low, high in pairwise(joints)
    ]
    ring, width = np.concatenate(panels, axis=1)
    return ring, width


def _apart(radius: FloatArray, least: float) -> FloatArray:
    """Return zero and those radii up to the last one that lie at least so far apart, the last one in any case."""
    end, kept = float(radius[-1]), [0.0]
    for joint in np.sort(radius):
        if kept[-1] + least <= joint <= end - least:
            kept.append(float(joint))
    return np.array([*kept, end])


def _panel(low: float, high: float, count: int) -> FloatArray:
    """Return Gauss-Legendre nodes and weights on an interval, shape (2, count)."""
    node, weight = np.polynomial.legendre.leggauss(count)
    return np.array([low + 0.5 * (high - low) * (node + 1.0), 0.5 * (high - low) * weight])
