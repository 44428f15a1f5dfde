"""Determinantal layouts: sites that repel each other like charges, drawn exactly.

A determinantal process on a torus is a mixture of projections: each eigenfunction of its kernel is taken or left by
a coin of its eigenvalue, and the projection on those taken holds exactly as many sites (Hough, Krishnapur, Peres,
Virág, 2006). Sites of a projection are drawn one after the other by rejection. A window on land lies in a torus so
wide that its opposite ends do not feel each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._windows import whole_number
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from geoedge.sites._windows import DrawingWindow, Floats

    Complexes = NDArray[np.complex128]

__all__ = ["MOST_FUNCTIONS", "gauss_points", "ginibre_points"]

MOST_FUNCTIONS = 4000
"""Functions of a projection at most: the time grows with their cube, 1,000 take 1.6 s and 2,000 9 s of one core."""

LEAST_FUNCTIONS = 8
"""Landau functions on the square of the shorter side from which on their density is even, to exp(−4π) = 3e-6."""

GINIBRE_MARGIN = 2.5
"""Spacings between opposite ends of the land around the torus; the kernel there is exp(−π 2.5²/2) = 5e-5."""

GAUSS_MARGIN = 3.2
"""Ranges α between opposite ends of the land around the torus; the kernel there is exp(−3.2²) = 4e-5."""

GAUSS_TAIL = 32.0
"""Modes whose eigenvalue is exp(−32) of the largest are left out."""

LEAST_POOL = 64
"""Places tried at once, at least."""


def ginibre_points(window: DrawingWindow, density: float, rng: np.random.Generator, *, beta: float) -> Floats:
    """Draw a β-Ginibre process: a Ginibre process of density λ/β of which each site stays with probability β.

    Its pair correlation is 1 − exp(−πλr²/β). The Ginibre process is drawn on a torus as the projection on N = λ/β
    times area Landau functions (the lowest level of a charge in a magnetic field), whose kernel is that of the plane
    but for terms as small as exp(−πNH/2W). On land the torus is 2.5 spacings wider than the land; cut to the land,
    the process is that of the plane up to a kernel of 5e-5 between opposite ends. On a torus N is one of two whole
    numbers. Time and memory grow with N³ and N²; N is at most 4,000.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    beta
        β from 0 (excluded; Poisson) to 1 (the Ginibre process) [–].

    Raises
    ------
    CityError
        If N is above 4,000, or below 8 on a torus.
    """
    full = density / beta
    corner, (width, height) = window.frame(GINIBRE_MARGIN / np.sqrt(full))
    if window.period_m is None:
        width, height = np.maximum((width, height), np.sqrt(LEAST_FUNCTIONS / full))
        count = int(np.ceil(full * width * height))
        height = count / (full * width)
    else:
        count = whole_number(full * width * height, rng)
    _affordable(count, window, f"`beta` = {beta:g}")
    if count < LEAST_FUNCTIONS * max(width / height, height / width):
        msg = (
            f"`window` = {window.period_m}: holds {count} sites of a Ginibre process, at least {LEAST_FUNCTIONS} times "
            "its longer over its shorter side are needed; take a wider torus or more sites"
        )
        raise CityError(msg)
    kept = rng.random(count) < beta
    xy = projection_points(_landau(count, width, height), np.array((width, height)), count, rng)
    return window.cut(corner + xy[kept])


def _landau(count: int, width: float, height: float) -> Callable[[Floats], Complexes]:
    """Return the Landau functions of a torus, orthonormal: a wave in y times a normal curve in x.

    Function j of N is Σ_k exp(2πi (j + kN) y/H − πN/(WH) (x − (j/N + k) W)²), up to a factor.
    """
    density = count / (width * height)
    around = 0 if np.sqrt(density) * width > 8.0 else int(np.ceil(4.0 / (np.sqrt(density) * width))) + 1
    norm = np.sqrt(np.sqrt(2.0 * density) / height)

    def functions(xy: Floats) -> Complexes:
        j = np.arange(count)
        nearest = np.rint(xy[:, :1] / width - j / count)
        total = np.zeros((len(xy), count), dtype=np.complex128)
        for k in range(-around, around + 1):
            image = nearest + k
            off = xy[:, :1] - (j / count + image) * width
            wave = 2.0 * np.pi / height * (j + image * count) * xy[:, 1:]
            total += np.exp(1j * wave - np.pi * density * off**2)
        return np.asarray(norm * total)

    return functions


def gauss_points(
    window: DrawingWindow, density: float, rng: np.random.Generator, *, alpha_m: float
) -> Floats:
    """Draw a Gaussian determinantal process, of kernel λ exp(−r²/α²).

    Its pair correlation is 1 − exp(−2r²/α²). It exists where no eigenvalue λπα² exp(−π²α²f²) is above 1. Drawn on a
    torus from its Fourier modes, exactly; on land the torus is 3.2 α wider than the land, and the process, cut to the
    land, is that of the plane up to a kernel of 4e-5 between opposite ends. Time and memory grow with the cube and
    the square of the number of sites on the torus, at most 4,000.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    alpha_m
        α, range of the repulsion [m], at most 1/√(πλ).

    Raises
    ------
    CityError
        If the process does not exist, or there are more than 4,000 sites on the torus.
    """
    most = density * np.pi * alpha_m**2
    if most > 1.0 + 1e-12:
        msg = (
            f"`alpha_m` = {alpha_m:g}: at most 1/√(πλ) = {1.0 / np.sqrt(np.pi * density):.4g} m at "
            f"{density * M2_PER_KM2:g} sites per km², or the process does not exist; take less"
        )
        raise CityError(msg)
    corner, sides = window.frame(GAUSS_MARGIN * alpha_m)
    _affordable(density * sides.prod(), window, f"`alpha_m` = {alpha_m:g}")
    farthest = np.floor(np.sqrt(GAUSS_TAIL) / (np.pi * alpha_m) * sides).astype(int)
    i, j = np.meshgrid(*(np.arange(-n, n + 1) for n in farthest))
    mode = np.stack((i.ravel(), j.ravel()), axis=1) / sides
    eigenvalue = most * np.exp(-((np.pi * alpha_m) ** 2) * (mode**2).sum(axis=1))
    taken = 2.0 * np.pi * mode[rng.random(len(mode)) < eigenvalue]

    def functions(xy: Floats) -> Complexes:
        return np.asarray(np.exp(1j * (xy @ taken.T)) / np.sqrt(sides.prod()))

    return window.cut(corner + projection_points(functions, sides, len(taken), rng))


def _affordable(functions: float, window: DrawingWindow, given: str) -> None:
    if functions > MOST_FUNCTIONS:
        where = "window" if window.period_m is not None else "window's bounding box"
        msg = (
            f"{given}: needs {functions:.0f} functions on the {where}, at most {MOST_FUNCTIONS}; take a smaller window "
            "or fewer sites, or a process that costs less, such as hard_core"
        )
        raise CityError(msg)


def projection_points(
    functions: Callable[[Floats], Complexes], sides: Floats, count: int, rng: np.random.Generator
) -> Floats:
    """Draw the determinantal process of a projection whose density is even, as many places as functions.

    Uniform places are tried one after the other; each stays with the share of its functions that those before have
    not used up. Places are looked at in pools: what is used up is taken out of the functions once per pool, and
    within a pool by Cholesky's rule.

    Parameters
    ----------
    functions
        Returns the values of the orthonormal functions at places, shape (m, count).
    sides
        Width and height of the torus [m], shape (2,).
    count
        Number of functions.
    rng
        Random generator.

    Returns
    -------
    numpy.ndarray
        Places in order of drawing [m], shape (count, 2).
    """
    from scipy.linalg import qr

    from geoedge.sites._choosing import accepted

    full = count / sides.prod()
    pool = max(LEAST_POOL, count // 2)
    basis: Complexes | None = None
    found: list[Floats] = [np.empty((0, 2))]
    left = count
    while left:
        xy = rng.random((pool, 2)) * sides
        value = functions(xy)
        if basis is not None:
            value = value @ basis.conj().T
        stay = accepted(value @ value.conj().T, full * rng.random(pool), left)
        if not stay.size:
            continue
        found.append(xy[stay])
        left -= len(stay)
        if left:
            used = qr(value[stay].T, mode="full", check_finite=False)[0]
            unused = np.asarray(used[:, len(stay) :].T, dtype=np.complex128)
            basis = unused if basis is None else unused @ basis
    return np.vstack(found)
