"""Point processes whose pair correlation is known in closed form, per unit density: lengths are in spacings 1/√λ.

Each has K, the mean number of further sites within r of a site per density, and g = K′/(2πr).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Formula: TypeAlias = Callable[..., NDArray[np.float64]]
    """Distances and parameters, in spacings, in; the values out."""

__all__ = ["MODELS", "ProcessModel"]

LATTICE_STEPS = 800
"""Steps of the integral of a shaken lattice's pair correlation."""

HARD_CORE_STEPS = 512
"""Steps of the integral of a hard-core process's pair correlation, from R to 2R."""


@dataclass(frozen=True)
class ProcessModel:
    """A family of processes of density 1.

    Parameters
    ----------
    words
        What it is called in a sentence.
    kind
        ``"poisson"``, ``"regular"`` or ``"clustered"``.
    parameters
        Names of the parameters with their units; ``_m`` are lengths, ``_per_km2`` densities, others plain.
    bounds
        Smallest and largest value of each, in spacings.
    k, g
        K in squared spacings and pair correlation, of the distance in spacings and the parameters.
    """

    words: str
    kind: str
    parameters: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    k: Formula
    g: Formula

    def units(self, density_per_m2: float) -> NDArray[np.float64]:
        """Return the factor from a parameter in spacings to its unit, shape (p,).

        Parameters
        ----------
        density_per_m2
            λ [1/m²].
        """
        factor = {"_m": density_per_m2**-0.5, "_per_km2": density_per_m2 * M2_PER_KM2}
        return np.array(
            [next((f for end, f in factor.items() if name.endswith(end)), 1.0) for name in self.parameters]
        )


def _poisson_k(r: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.pi * r**2


def _poisson_g(r: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.ones(len(r))


def _thomas_k(r: NDArray[np.float64], parents: float, spread: float) -> NDArray[np.float64]:
    return np.asarray(np.pi * r**2 - np.expm1(-(r**2) / (4.0 * spread**2)) / parents)


def _thomas_g(r: NDArray[np.float64], parents: float, spread: float) -> NDArray[np.float64]:
    return np.asarray(1.0 + np.exp(-(r**2) / (4.0 * spread**2)) / (4.0 * np.pi * parents * spread**2))


def _matern_cluster_k(r: NDArray[np.float64], parents: float, radius: float) -> NDArray[np.float64]:
    """Return πr² and the distribution of the distance of two uniform places in a disc, per parent density."""
    z = np.minimum(r / (2.0 * radius), 1.0)
    root = np.sqrt(1.0 - z**2)
    met = (
        2.0
        + ((8.0 * z**2 - 4.0) * np.arccos(z) - 2.0 * np.arcsin(z) + 4.0 * z * root**3 - 6.0 * z * root)
        / np.pi
    )
    return np.asarray(np.pi * r**2 + met / parents)


def _matern_cluster_g(r: NDArray[np.float64], parents: float, radius: float) -> NDArray[np.float64]:
    z = np.minimum(r / (2.0 * radius), 1.0)
    shared = 2.0 / np.pi * (np.arccos(z) - z * np.sqrt(1.0 - z**2))
    return np.asarray(1.0 + shared / (np.pi * parents * radius**2))


def _ginibre_k(r: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
    return np.asarray(np.pi * r**2 + beta * np.expm1(-np.pi * r**2 / beta))


def _ginibre_g(r: NDArray[np.float64], beta: float) -> NDArray[np.float64]:
    return np.asarray(-np.expm1(-np.pi * r**2 / beta))


def _gauss_k(r: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    return _ginibre_k(r, 0.5 * np.pi * alpha**2)


def _gauss_g(r: NDArray[np.float64], alpha: float) -> NDArray[np.float64]:
    return _ginibre_g(r, 0.5 * np.pi * alpha**2)


def _hard_core_g(r: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return g of Matérn's second thinning: a site stays if it is the oldest within R of itself."""
    disc = np.pi * radius**2
    proposed = -np.log1p(-disc) / disc
    z = np.clip(r / (2.0 * radius), 0.5, 1.0)
    both = 2.0 * disc - 2.0 * radius**2 * (np.arccos(z) - z * np.sqrt(1.0 - z**2))
    kept = both * disc + disc * np.expm1(-proposed * both)
    return np.where(r >= radius, 2.0 * kept / (disc * both * (both - disc)), 0.0)


def _hard_core_k(r: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    from scipy.integrate import cumulative_simpson

    at = radius * np.linspace(1.0, 2.0, HARD_CORE_STEPS + 1)
    inside = cumulative_simpson(2.0 * np.pi * at * _hard_core_g(at, radius), x=at, initial=0.0)
    return np.asarray(np.interp(r, at, inside) + np.pi * np.maximum(r**2 - 4.0 * radius**2, 0.0))


def _lattice_shells(reach: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return distances of a triangular lattice of density 1 from one of its places, and how many are at each."""
    side = (4.0 / 3.0) ** 0.25
    steps = np.arange(-int(2.0 * reach) - 3, int(2.0 * reach) + 4)
    i, j = np.meshgrid(steps, steps)
    squared, many = np.unique(i**2 + i * j + j**2, return_counts=True)
    distance = side * np.sqrt(squared[1:])
    return distance[distance <= reach], many[1:][distance <= reach].astype(np.float64)


def _lattice_density(r: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
    """Return K′ of a triangular lattice whose places are all shifted by normal errors: a sum of Rice densities."""
    from scipy.special import i0e

    variance = 2.0 * shift**2
    shell, many = _lattice_shells(float(r[-1]) + 8.0 * np.sqrt(variance))
    at = r[:, None]
    rice = at / variance * np.exp(-((at - shell) ** 2) / (2.0 * variance)) * i0e(at * shell / variance)
    return np.asarray(rice @ many)


def _lattice_k(r: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
    from scipy.integrate import cumulative_simpson

    at = np.linspace(0.0, float(r[-1]), LATTICE_STEPS + 1)
    return np.interp(r, at, cumulative_simpson(_lattice_density(at, shift), x=at, initial=0.0))


def _lattice_g(r: NDArray[np.float64], shift: float) -> NDArray[np.float64]:
    at = np.maximum(r, 1e-9)
    return np.asarray(_lattice_density(at, shift) / (2.0 * np.pi * at))


_PARENTS = (1e-3, 1e3)
_LARGEST_DISC = 1.0 / np.sqrt(np.pi)

MODELS: dict[str, ProcessModel] = {
    "poisson": ProcessModel("Poisson process", "poisson", (), (), _poisson_k, _poisson_g),
    "ginibre": ProcessModel(
        "β-Ginibre process", "regular", ("beta",), ((1e-3, 1.0),), _ginibre_k, _ginibre_g
    ),
    "gauss": ProcessModel(
        "Gaussian determinantal process",
        "regular",
        ("alpha_m",),
        ((1e-2, _LARGEST_DISC),),
        _gauss_k,
        _gauss_g,
    ),
    "hard_core": ProcessModel(
        "Matérn hard-core process",
        "regular",
        ("radius_m",),
        ((1e-2, 0.999 * _LARGEST_DISC),),
        _hard_core_k,
        _hard_core_g,
    ),
    "lattice": ProcessModel(
        "shaken triangular lattice", "regular", ("shift_m",), ((0.05, 1.0),), _lattice_k, _lattice_g
    ),
    "thomas": ProcessModel(
        "Thomas cluster process",
        "clustered",
        ("parents_per_km2", "spread_m"),
        (_PARENTS, (0.02, 4.0)),
        _thomas_k,
        _thomas_g,
    ),
    "matern_cluster": ProcessModel(
        "Matérn cluster process",
        "clustered",
        ("parents_per_km2", "radius_m"),
        (_PARENTS, (0.03, 6.0)),
        _matern_cluster_k,
        _matern_cluster_g,
    ),
}
"""The processes a layout may be described by.

To second order a Gaussian determinantal process is a β-Ginibre process with β = πλα²/2, which stops at 1/2: what fits
both fits them equally well, and is called by the wider family.
"""
