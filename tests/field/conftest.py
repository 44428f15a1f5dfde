"""Small fields to test on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from geoedge.field import FieldProblem, Geometry

MakeProblem = Callable[..., FieldProblem]


def make_problem(
    seed: int = 0,
    *,
    n_points: int = 400,
    n_sites: int = 6,
    n_types: int = 3,
    side_km: float = 2.0,
    utilization: float = 0.6,
    cell_m: float | None = 100.0,
    period: bool = False,
    type_free: bool = False,
    delay_exponent: float = 2.5,
) -> FieldProblem:
    """Return a random problem with three profiles; `utilization` is its work per server if all held the worst cache."""
    rng = np.random.default_rng(seed)
    length = np.array([1024.0, 4096.0, 8192.0, 2048.0])[:n_types]
    hit = np.minimum(np.array([[0.0], [512.0], [3072.0]]), length)
    prefill = 1.0e-4 * (length - hit) + 4e-9 * (length - hit) ** 2
    occupancy = np.full(prefill.shape, 2.5) if type_free else prefill + 1.5
    servers = np.array([6, 5, 4])
    profile = rng.integers(0, 3, n_sites)
    rate = rng.random((n_points, n_types))
    rate *= utilization * servers[profile].sum() / (rate.sum(axis=0) @ occupancy.max(axis=0))
    geometry = Geometry(
        rng.random((n_points, 2)) * side_km,
        rng.random((n_sites, 2)) * side_km,
        0.28,
        delay_exponent,
        cell_m,
        (side_km, side_km) if period else None,
    )
    full = 1.0e-4 * length + 4e-9 * length**2
    return FieldProblem(geometry, rate, profile, prefill, occupancy, servers, hit, length, full)


@pytest.fixture(name="make_problem", scope="session")
def _make_problem() -> MakeProblem:
    return make_problem
