"""Regular layouts: square and hexagonal lattices at a random place and angle, exact or shaken."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.errors import CityError
from geoedge.sites._windows import whole_number

if TYPE_CHECKING:
    from geoedge.sites._windows import DrawingWindow, Floats

__all__ = ["NOISES", "SHAPES", "lattice_points"]

SHAPES = ("hexagonal", "square")
"""Lattices by the shape of their cells; sites with hexagonal cells stand in equilateral triangles."""

NOISES = ("gaussian", "uniform")
"""How sites leave their places: normal in x and in y, or uniform over a disc."""

REACH = 6.0
"""Standard deviations from which a normal error still brings a site into the land; more has probability 1.5e-8."""


def lattice_points(
    window: DrawingWindow,
    density: float,
    rng: np.random.Generator,
    *,
    shape: str,
    noise: str,
    shift_m: float,
) -> Floats:
    """Draw a stationary lattice, each site shifted by an error of its own.

    On land the lattice has a uniform place and angle and reaches beyond the land as far as errors do, so that the
    density is exact (but for 1.5e-8 of normal errors). On a torus a lattice must close: it is stretched by a little
    (by at most half a row), is not turned but lies along either axis, and has one of two numbers of sites whose mean
    is the density asked for.

    Parameters
    ----------
    window
        Where.
    density
        λ [1/m²].
    rng
        Random generator.
    shape
        ``"hexagonal"`` or ``"square"``.
    noise
        ``"gaussian"`` or ``"uniform"``.
    shift_m
        Standard deviation in x and in y of a normal error, or radius of the disc of a uniform one [m].

    Raises
    ------
    CityError
        If a torus is too small for a lattice.
    """
    if window.period_m is not None:
        place = _closed(window, density, shape, rng)
    else:
        reach = shift_m * (REACH if noise == "gaussian" else 1.0)
        place = _turned(window, density, shape, reach, rng)
    return window.cut(place + _errors(len(place), noise, shift_m, rng))


def _errors(count: int, noise: str, shift_m: float, rng: np.random.Generator) -> Floats:
    if shift_m == 0.0:
        return np.zeros((count, 2))
    if noise == "gaussian":
        return rng.normal(0.0, shift_m, (count, 2))
    angle, away = 2.0 * np.pi * rng.random(count), shift_m * np.sqrt(rng.random(count))
    return np.asarray(away[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1))


def _turned(
    window: DrawingWindow, density: float, shape: str, reach_m: float, rng: np.random.Generator
) -> Floats:
    """Return a lattice of any place and angle that covers everything within reach of the land's box [m]."""
    basis = _basis(shape) / np.sqrt(density)
    angle = 2.0 * np.pi * rng.random()
    turn = np.array(((np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))))
    basis = basis @ turn
    half = 0.5 * window.sides + reach_m
    corners = np.array(((-1, -1), (-1, 1), (1, -1), (1, 1))) * half @ np.linalg.inv(basis)
    low, high = np.floor(corners.min(axis=0)).astype(int) - 1, np.ceil(corners.max(axis=0)).astype(int) + 1
    i, j = np.meshgrid(*(np.arange(a, b + 1) for a, b in zip(low, high, strict=True)))
    steps = np.stack((i.ravel(), j.ravel()), axis=1) + rng.random(2)
    place = steps @ basis
    near = (np.abs(place) <= half).all(axis=1)
    return np.asarray(place[near] + window.corner + 0.5 * window.sides)


def _basis(shape: str) -> Floats:
    """Return two steps of a lattice of density 1, shape (2, 2)."""
    if shape == "square":
        return np.eye(2)
    side = (4.0 / 3.0) ** 0.25
    return np.array(((side, 0.0), (0.5 * side, np.sqrt(0.75) * side)))


def _closed(window: DrawingWindow, density: float, shape: str, rng: np.random.Generator) -> Floats:
    """Return a lattice that closes around a torus [m]."""
    along = int(rng.integers(2))
    width, height = window.sides[[along, 1 - along]]
    step = _basis(shape) / np.sqrt(density)
    even = 1 if shape == "square" else 2
    rows = max(even, even * round(height / step[1, 1] / even))
    mean = density * window.area_m2 / rows
    columns = whole_number(mean, rng)
    if mean < 1.0:
        msg = (
            f"`window` = {window.period_m}: holds {mean * rows:.3g} sites, too few for a {shape} lattice that closes "
            "around it; take a wider torus or more sites"
        )
        raise CityError(msg)
    column, row = np.meshgrid(np.arange(columns), np.arange(rows))
    offset = 0.5 * (row % 2) if shape == "hexagonal" else 0.0
    x = (column + offset + rng.random()) / columns * width
    y = (row + rng.random()) / rows * height
    place = np.stack((x.ravel(), y.ravel()), axis=1)
    return place if along == 0 else place[:, ::-1]
