"""Who serves whom on a Poisson network: association probabilities and serving distances, Eqs. (23)–(32).

All integrals run over the cost level y, not over distance. With Λ(y) = π Σ_t λ_t ((y − β_t)₊/ξ)^{2/α}, the mean
number of sites whose cost is below y, a tier's share per unit of its density is D_s = ∫₀^∞ w(x) e^{−Λ(β_s+x)} dx
with w(x) = π (2/α) ξ^{−2/α} x^{2/α−1}, and A_s = λ_s D_s. One pass over y serves every tier of a request type.
Λ has a kink at each offset β_t, of infinite slope for α > 2, and offsets are often almost equal: the pass is split
at the offsets (`geoedge.theory._panels`). Equal offsets, a single tier and α = 2 are in closed form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from geoedge.errors import GeoEdgeError
from geoedge.theory._panels import tables
from geoedge.theory._rules import emit_rule
from geoedge.theory._shares import all_shares, attracted
from geoedge.theory.network import TieredNetwork

__all__ = [
    "Attraction",
    "CostRule",
    "association_per_density",
    "association_probability",
    "attracted_load",
    "cost_rule",
    "mean_serving_distance",
    "serving_distance_pdf",
]

FloatArray = NDArray[np.float64]


class Attraction(NamedTuple):
    """What one site of each tier attracts, for each request of unit intensity."""

    area: FloatArray
    """Served area A/λ [km²], shape (S, Q)."""
    requests: FloatArray
    """Requests Σ_q p_q A/λ [km²], shape (S,)."""
    work: FloatArray
    """Server time Σ_q p_q t_{s,q} A/λ [s km²], shape (S,)."""
    work_slope: FloatArray
    """Derivatives ∂work_s/∂W_t [km²], shape (S, S)."""
    request_slope: FloatArray
    """Derivatives ∂requests_s/∂W_t [km²/s], shape (S, S)."""


class CostRule(NamedTuple):
    """A quadrature rule: E[f(s, ξ R_s^α); served by s] ≈ λ_s Σ weight f(tier, delay), summed by request type."""

    kind: NDArray[np.int64]
    """Index of the request type, shape (n,)."""
    tier: NDArray[np.int64]
    """Index of the serving tier, shape (n,)."""
    delay: FloatArray
    """Radio delay ξ r^α [s], shape (n,)."""
    weight: FloatArray
    """Weight per unit of tier density [km²], shape (n,)."""


def association_probability(
    tier_density: ArrayLike, cost_offset: ArrayLike, delay_coefficient: float, delay_exponent: float
) -> FloatArray:
    """Return the probability A that a request is served by each tier, Eq. (25).

    Parameters
    ----------
    tier_density
        Density λ_s of the sites of each profile [1/km²], shape (S,).
    cost_offset
        Offset β of the cost of a tier [s], Eq. (23), shape (S,) or (S, Q).
    delay_coefficient
        Radio delay ξ at one kilometre [s/km^α].
    delay_exponent
        Exponent α of the radio delay.

    Returns
    -------
    FloatArray
        Probabilities, of the shape of `cost_offset`, accurate to 1e-10; each column sums to one, Eq. (28).

    Raises
    ------
    GeoEdgeError
        If a density is negative, none is positive, an offset is not finite, or shapes do not fit.

    Examples
    --------
    >>> association_probability([0.5, 0.3, 0.2], [0.4, 0.4, 0.4], 0.28, 2.5).round(6).tolist()
    [0.5, 0.3, 0.2]
    """
    share = association_per_density(tier_density, cost_offset, delay_coefficient, delay_exponent)
    density = np.asarray(tier_density, dtype=np.float64)
    return density.reshape((-1,) + (1,) * (share.ndim - 1)) * share


def association_per_density(
    tier_density: ArrayLike, cost_offset: ArrayLike, delay_coefficient: float, delay_exponent: float
) -> FloatArray:
    """Return A/λ [km²], the mean area that one site of each tier serves.

    It stays finite where a tier is empty: then it is what a single site of it, added to the others, would serve.

    Parameters
    ----------
    tier_density, cost_offset, delay_coefficient, delay_exponent
        As in `association_probability`.

    Raises
    ------
    GeoEdgeError
        As `association_probability`.
    """
    density, offset = _checked(tier_density, cost_offset, delay_coefficient, delay_exponent)
    mass, scale = 2.0 / delay_exponent, _scale(delay_coefficient, delay_exponent)
    share = all_shares(offset, density, scale, mass, tables(delay_exponent))
    return share.reshape(np.shape(cost_offset))


def attracted_load(
    network: TieredNetwork, wait: FloatArray, *, slopes: bool = False, blur: float = 1.0
) -> Attraction:
    """Return what one site of each tier attracts at given waits, per unit of request intensity.

    Parameters
    ----------
    network
        Tiers, requests and their times.
    wait
        Advertised waits [s], shape (S,).
    slopes
        Whether to compute the derivatives by the waits; they are zero otherwise. They are infinite at an exact tie
        when α ≥ 4, and merely large here.
    blur
        Factor on the radio delay.
    """
    coefficient, exponent = blur * network.delay_coefficient, network.delay_exponent
    return Attraction(
        *attracted(
            wait,
            network.prefill_time,
            network.occupancy_time,
            network.type_probability,
            network.tier_density,
            _scale(coefficient, exponent),
            2.0 / exponent,
            tables(exponent),
            slopes,
        )
    )


def cost_rule(
    density: FloatArray,
    offset: FloatArray,
    delay_coefficient: float,
    delay_exponent: float,
    *,
    delay_limit: FloatArray | None = None,
    layer: FloatArray | None = None,
) -> CostRule:
    """Return nodes and weights over the radio delay of the serving site, for some request types.

    Parameters
    ----------
    density
        Tier densities λ_s [1/km²], shape (S,).
    offset
        Offsets β [s], shape (S, Q).
    delay_coefficient, delay_exponent
        As in `association_probability`.
    delay_limit
        Largest radio delay that counts [s], shape (S, Q), the ξ r_max^α of Eq. (38); all delays count without it.
    layer
        Width in which the function saturates just below the limit [s], shape (S,), infinite where it does not: the
        nodes are finer there.
    """
    limits = np.full(offset.shape, np.inf) if delay_limit is None else np.maximum(delay_limit, 0.0)
    layers = np.full(density.shape, np.inf) if layer is None else layer
    scale, rule = _scale(delay_coefficient, delay_exponent), tables(delay_exponent)
    # one memory layout, for which the kernel is compiled once
    offset, limits = np.ascontiguousarray(offset), np.ascontiguousarray(limits)
    return CostRule(*emit_rule(offset, density, scale, 2.0 / delay_exponent, limits, layers, rule))


def _scale(delay_coefficient: float, delay_exponent: float) -> float:
    """Return π ξ^{−2/α}, the mean number of sites per density whose radio delay is below one second."""
    return float(np.pi * delay_coefficient ** (-2.0 / delay_exponent))


def serving_distance_pdf(
    distance: ArrayLike,
    tier: int,
    tier_density: ArrayLike,
    cost_offset: ArrayLike,
    delay_coefficient: float,
    delay_exponent: float,
    *,
    conditional: bool = True,
) -> FloatArray:
    """Return the density of the serving distance of one tier and type [1/km], Eqs. (26, 27).

    Parameters
    ----------
    distance
        Distances r [km], any shape; the density is zero below zero.
    tier
        Index of the serving tier.
    tier_density, cost_offset, delay_coefficient, delay_exponent
        As in `association_probability`, the offsets of one type, shape (S,).
    conditional
        True for the density given that this tier serves, Eq. (27); False for f_sel itself, which integrates to A.

    Raises
    ------
    GeoEdgeError
        As `association_probability`, or if a distance is NaN, there is no such tier, or the conditional density is
        asked of one that serves nobody.
    """
    density, offset = _checked(tier_density, cost_offset, delay_coefficient, delay_exponent)
    if tier not in range(density.size):
        msg = f"serving_distance_pdf: `tier` is {tier}, but must be an index from 0 to {density.size - 1}"
        raise GeoEdgeError(msg)
    if offset.shape[1] != 1 or tier not in range(density.size):
        msg = (
            f"serving_distance_pdf: `tier` is {tier} and `cost_offset` has shape {np.shape(cost_offset)}, but must be "
            f"an index below {density.size} and shape ({density.size},), the offsets of one type"
        )
        raise GeoEdgeError(msg)
    radius = np.maximum(_numbers("distance", distance), 0.0)
    if np.isnan(radius).any():
        msg = "serving_distance_pdf: `distance` is nan, but must hold numbers of km"
        raise GeoEdgeError(msg)
    gaps = (offset[tier, 0] - offset[:, 0]) / delay_coefficient
    reach = np.maximum(radius[..., None] ** delay_exponent + gaps, 0.0) ** (2.0 / delay_exponent)
    pdf = 2.0 * np.pi * density[tier] * radius * np.exp(-np.pi * (reach @ density))
    if not conditional:
        return np.asarray(pdf)
    total = association_probability(density, offset[:, 0], delay_coefficient, delay_exponent)[tier]
    if total == 0.0:
        msg = f"serving_distance_pdf: tier {tier} serves nobody; use `conditional=False` or another tier"
        raise GeoEdgeError(msg)
    return np.asarray(pdf / total)


def mean_serving_distance(
    tier_density: ArrayLike, cost_offset: ArrayLike, delay_coefficient: float, delay_exponent: float
) -> FloatArray:
    """Return the mean distance to the serving site, given the tier and type [km], Eq. (32).

    Parameters
    ----------
    tier_density, cost_offset, delay_coefficient, delay_exponent
        As in `association_probability`.

    Returns
    -------
    FloatArray
        Mean distances R̄ [km], of the shape of `cost_offset`; for an empty tier the limit of ever fewer sites, and
        NaN where even that serves nobody.

    Raises
    ------
    GeoEdgeError
        As `association_probability`.
    """
    density, offset = _checked(tier_density, cost_offset, delay_coefficient, delay_exponent)
    mean = np.empty_like(offset)
    for q in range(offset.shape[1]):
        rule = cost_rule(density, offset[:, [q]], delay_coefficient, delay_exponent)
        radius = (rule.delay / delay_coefficient) ** (1.0 / delay_exponent)
        moment = np.bincount(rule.tier, rule.weight * radius, density.size)
        share = np.bincount(rule.tier, rule.weight, density.size)
        mean[:, q] = np.divide(moment, share, out=np.full_like(share, np.nan), where=share > 0.0)
    return mean.reshape(np.shape(cost_offset))


def _checked(
    tier_density: ArrayLike, cost_offset: ArrayLike, delay_coefficient: float, delay_exponent: float
) -> tuple[FloatArray, FloatArray]:
    """Return densities (S,) and offsets (S, Q), or say in one line what is wrong with them."""
    density, offset = _numbers("tier_density", tier_density), _numbers("cost_offset", cost_offset)
    if density.ndim != 1 or offset.ndim not in (1, 2) or offset.shape[0] != density.size:
        msg = (
            f"association: `tier_density` {density.shape} and `cost_offset` {offset.shape} "
            "must have shapes (S,) and (S,) or (S, Q)"
        )
        raise GeoEdgeError(msg)
    if not ((density >= 0.0).all() and np.isfinite(density).all() and density.sum() > 0.0):
        msg = f"association: `tier_density` must be nonnegative with one above 0, not {density.tolist()}"
        raise GeoEdgeError(msg)
    if not np.isfinite(offset).all():
        bad = float(offset[~np.isfinite(offset)][0])
        msg = f"association: `cost_offset` must be finite seconds, not {bad}; leave out tiers that no request may choose"
        raise GeoEdgeError(msg)
    if not (0.0 < delay_coefficient < np.inf and 0.0 < delay_exponent <= 16.0):
        msg = (
            f"association: `delay_coefficient` {delay_coefficient} and `delay_exponent` {delay_exponent} "
            "must be positive, the exponent at most 16"
        )
        raise GeoEdgeError(msg)
    return density, np.ascontiguousarray(offset.reshape(density.size, -1))


def _numbers(name: str, value: ArrayLike) -> FloatArray:
    """Return an array of real numbers, or say in one line that it is none."""
    try:
        array = np.asarray(value)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        msg = f"association: `{name}` must be real numbers in rows of one length, not {' '.join(repr(value).split())[:60]}"
        raise GeoEdgeError(msg)
    return array.astype(np.float64)
