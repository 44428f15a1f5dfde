"""Compiled moves of interacting sites on a torus, with lists of the sites in each cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geoedge.compiled import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["insertion_weight", "move_sites"]


@kernel
def _cell(x: float, y: float, side: NDArray[np.float64], shape: NDArray[np.int64]) -> int:
    i = min(int(x / side[0] * shape[0]), shape[0] - 1)
    j = min(int(y / side[1] * shape[1]), shape[1] - 1)
    return int(i * shape[1] + j)


@kernel
def _near(
    x: float,
    y: float,
    but: int,
    xy: NDArray[np.float64],
    side: NDArray[np.float64],
    shape: NDArray[np.int64],
    first: NDArray[np.int64],
    following: NDArray[np.int64],
    radius: float,
) -> int:
    """Return how many sites but one are within the radius of a place."""
    home = _cell(x, y, side, shape)
    row, column = home // shape[1], home % shape[1]
    found = 0
    # a torus of one or two cells has no third neighbour; looked at twice it would be counted twice
    for a in range(min(shape[0], 3)):
        for b in range(min(shape[1], 3)):
            i, j = (row + a - 1) % shape[0], (column + b - 1) % shape[1]
            k = first[i * shape[1] + j]
            while k >= 0:
                dx, dy = abs(xy[k, 0] - x), abs(xy[k, 1] - y)
                dx, dy = min(dx, side[0] - dx), min(dy, side[1] - dy)
                if k != but and dx * dx + dy * dy < radius * radius:
                    found += 1
                k = following[k]
    return found


@kernel
def _enter(k: int, cell: int, first: NDArray[np.int64], following: NDArray[np.int64]) -> None:
    following[k] = first[cell]
    first[cell] = k


@kernel
def _leave(k: int, cell: int, first: NDArray[np.int64], following: NDArray[np.int64]) -> None:
    if first[cell] == k:
        first[cell] = following[k]
        return
    before = first[cell]
    while following[before] != k:
        before = following[before]
    following[before] = following[k]


@kernel
def move_sites(
    xy: NDArray[np.float64],
    count: int,
    side: NDArray[np.float64],
    shape: NDArray[np.int64],
    radius: float,
    gamma: float,
    activity: float,
    steps: int,
    rng: np.random.Generator,
) -> int:
    """Move sites of a Strauss process in place by Metropolis and Hastings' rule; return how many there are then.

    With a positive activity half of the steps are births or deaths. Other steps move a site, every second time by
    little.

    Parameters
    ----------
    xy
        Sites [m], shape (room, 2), of which the first `count` count.
    count
        Number of sites.
    side
        Width and height of the torus [m], shape (2,).
    shape
        Cells in x and y, none narrower than the radius, shape (2,).
    radius
        Distance below which two sites interact [m].
    gamma
        What a pair within it multiplies the density of a layout by [–].
    activity
        Activity times area [–]; 0 keeps the number of sites.
    steps
        Steps to make.
    rng
        Random generator.
    """
    first = np.full(shape[0] * shape[1], -1)
    following = np.full(len(xy), -1)
    for k in range(count):
        _enter(k, _cell(xy[k, 0], xy[k, 1], side, shape), first, following)
    for _ in range(steps):
        if activity > 0.0 and rng.random() < 0.5:
            if rng.random() < 0.5:
                x, y = rng.random() * side[0], rng.random() * side[1]
                near = _near(x, y, -1, xy, side, shape, first, following, radius)
                if count < len(xy) and rng.random() * (count + 1) < activity * gamma**near:
                    xy[count, 0], xy[count, 1] = x, y
                    _enter(count, _cell(x, y, side, shape), first, following)
                    count += 1
            elif count > 0:
                k = int(rng.random() * count)
                near = _near(xy[k, 0], xy[k, 1], k, xy, side, shape, first, following, radius)
                if rng.random() * activity * gamma**near < count:
                    _leave(k, _cell(xy[k, 0], xy[k, 1], side, shape), first, following)
                    last = count - 1
                    if k != last:
                        cell = _cell(xy[last, 0], xy[last, 1], side, shape)
                        _leave(last, cell, first, following)
                        xy[k] = xy[last]
                        _enter(k, cell, first, following)
                    count = last
        elif count > 0:
            k = int(rng.random() * count)
            if rng.random() < 0.5:
                x = (xy[k, 0] + radius * (rng.random() - 0.5)) % side[0]
                y = (xy[k, 1] + radius * (rng.random() - 0.5)) % side[1]
            else:
                x, y = rng.random() * side[0], rng.random() * side[1]
            before = _near(xy[k, 0], xy[k, 1], k, xy, side, shape, first, following, radius)
            after = _near(x, y, k, xy, side, shape, first, following, radius)
            if after <= before or rng.random() < gamma ** (after - before):
                _leave(k, _cell(xy[k, 0], xy[k, 1], side, shape), first, following)
                xy[k, 0], xy[k, 1] = x, y
                _enter(k, _cell(x, y, side, shape), first, following)
    return count


@kernel
def insertion_weight(
    xy: NDArray[np.float64],
    count: int,
    side: NDArray[np.float64],
    shape: NDArray[np.int64],
    radius: float,
    gamma: float,
    places: int,
    rng: np.random.Generator,
) -> float:
    """Return the mean over uniform places of γ to the number of sites within the radius.

    Parameters
    ----------
    xy, count, side, shape, radius, gamma
        As for `move_sites`.
    places
        How many places.
    rng
        Random generator.
    """
    first = np.full(shape[0] * shape[1], -1)
    following = np.full(len(xy), -1)
    for k in range(count):
        _enter(k, _cell(xy[k, 0], xy[k, 1], side, shape), first, following)
    total = 0.0
    for _ in range(places):
        x, y = rng.random() * side[0], rng.random() * side[1]
        total += gamma ** _near(x, y, -1, xy, side, shape, first, following, radius)
    return total / places
