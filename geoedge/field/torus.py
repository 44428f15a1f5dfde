"""Poisson sites and even demand on a torus, large enough that nobody can be served around its back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.streams import generator
from geoedge.units import KM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from geoedge.field.problem import FieldProblem
    from geoedge.theory import TheoryAnswer, TieredNetwork

    Floats = NDArray[np.float64]

__all__ = ["torus_problem", "torus_side"]

BEYOND_REACH = 1e-4
"""Share of requests whose serving site may be farther away than a quarter of the torus."""


def torus_side(theory: TheoryAnswer, sites: float) -> float:
    """Return the side of a torus [km] with this many sites on average, wider if some choose sites far away.

    All but a few requests are served within a quarter of it, so that nobody can be served around the back.

    Parameters
    ----------
    theory
        Theory's answer for the network.
    sites
        Mean number of sites, at least.
    """
    network, offset = theory.network, theory.equilibrium.cost_offset
    there = network.tier_density > 0
    density, reach = network.tier_density[there], 0.0
    for beta in offset[there].T:
        low, high = float(beta.min()), float(beta.min()) + 1.0
        while _nobody_within(high, density, beta, network) > BEYOND_REACH:
            high = low + 2.0 * (high - low)
        for _ in range(60):
            middle = 0.5 * (low + high)
            far = _nobody_within(middle, density, beta, network) > BEYOND_REACH
            low, high = (middle, high) if far else (low, middle)
        reach = max(reach, float(_radius(high, beta, network).max()))
    return max(float(np.sqrt(sites / network.site_density)), 4.0 * reach)


def _radius(cost: float, beta: Floats, network: TieredNetwork) -> Floats:
    """Return the distance within which a tier's sites cost at most `cost` [km], Eq. (24), shape (S,)."""
    delay = np.maximum(cost - beta, 0.0)
    return np.asarray((delay / network.delay_coefficient) ** (1.0 / network.delay_exponent))


def _nobody_within(cost: float, density: Floats, beta: Floats, network: TieredNetwork) -> float:
    """Return the probability that no site costs at most `cost`."""
    return float(np.exp(-np.pi * density @ _radius(cost, beta, network) ** 2))


def torus_problem(
    network: TieredNetwork,
    side_km: float,
    rng: np.random.Generator | int,
    *,
    places: int = 10_000,
    extended: bool = True,
) -> FieldProblem:
    """Return Poisson sites and even demand on a torus.

    Parameters
    ----------
    network
        Densities, demand and workload.
    side_km
        Side of the torus [km].
    rng
        Random generator, or a seed for one.
    places
        About how many places demand is gathered at, on a square lattice.
    extended
        Whether places are cells, which share their requests between almost equal sites, or points.

    Raises
    ------
    GeoEdgeError
        If the draw has no site.
    """
    from geoedge.field.problem import FieldProblem, Geometry

    rng = generator(rng)
    count = rng.poisson(network.tier_density * side_km**2)
    site_xy = rng.random((int(count.sum()), 2)) * side_km
    cells = max(int(np.ceil(np.sqrt(places))), 2)
    cell_km = side_km / cells
    axis = (np.arange(cells) + 0.5) * cell_km
    point_xy = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return FieldProblem(
        geometry=Geometry(
            point_xy,
            site_xy,
            network.delay_coefficient,
            network.delay_exponent,
            cell_km * KM if extended else None,
            (side_km, side_km),
        ),
        rate=np.tile(network.request_intensity * cell_km**2 * network.type_probability, (cells**2, 1)),
        profile=np.repeat(np.arange(network.tiers), count),
        prefill_time=network.prefill_time,
        occupancy_time=network.occupancy_time,
        concurrency=network.concurrency,
        hit_tokens=network.hit_tokens.astype(np.float64),
        prompt_tokens=network.prompt_tokens.astype(np.float64),
        full_prefill_time=network.full_prefill_time,
    )
