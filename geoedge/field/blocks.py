"""Which sites can matter where: places in blocks, blocks in tiles, and bounds of the radio delay.

A site whose least cost over a tile exceeds another's greatest can serve nobody there. Tiles know bounds of all
sites, and hand the few that are left to their blocks; a block bounds those again, and its places look at what
remains. Every step drops only what cannot win by more than a tie span, so that choices are exact for any offsets,
and nothing has to be built again when waits change. Bounds of a tile along streets are the least and greatest of
its places' own delays, so that pruning does not rest on how streets and straight lines compare.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.serving.candidates import delay_power

__all__ = [
    "Blocks",
    "Scratch",
    "block_candidates",
    "fill_tiles",
    "gathered",
    "radio_of",
    "scratch_for",
    "tile_candidates",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PADDING = 1e-9
"""Share by which bounds are loosened, far above rounding and far below any cost."""
BLOCK_PLACES = 16
"""About how many places make a block."""
TILE_SIDE = 4
"""Blocks along the side of a tile, where bounds for every block and site would be many."""
MANY_BOUNDS = 2_000_000


class Blocks(NamedTuple):
    """Places gathered into blocks and tiles, and what distance costs; what the kernels run over."""

    tile: Ints
    """Tile t holds the blocks ``tile[t]`` to ``tile[t + 1] - 1``, shape (T + 1,)."""
    start: Ints
    """Block b holds the places ``order[start[b] : start[b + 1]]``, shape (B + 1,)."""
    order: Ints
    """Places by block, shape (n_points,)."""
    low: Floats
    """Least radio delay from a tile's places to a site [s], shape (T, n)."""
    high: Floats
    """Greatest radio delay from a tile's places to a site [s], shape (T, n)."""
    point_xy: Floats
    site_xy: Floats
    coefficient: float
    exponent: float
    period_x: float
    period_y: float
    node: Ints
    """Street node nearest to a place, shape (n_points,); empty where radio goes straight."""
    node_km: npt.NDArray[np.float32]
    """Way from a node to a site along the streets [km], shape (nodes, n)."""
    point_gap_km: Floats
    """Way from a place to its node [km], shape (n_points,)."""
    site_gap_km: Floats
    """Way from a site to its node [km], shape (n,)."""


class Scratch(NamedTuple):
    """Working space of the kernels: what is known of the block in hand."""

    pool: Ints
    """Sites that can matter in the tile in hand, by type, shape (Q, n)."""
    pool_size: Ints
    seen: Ints
    """Block for which `low` and `high` of a site were last worked out, shape (n,)."""
    listed: Ints
    """Block for which `slot` and `radio` of a site were last worked out, shape (n,)."""
    slot: Ints
    low: Floats
    high: Floats
    radio: Floats
    """Radio delay of the block's k-th place to the site in a slot [s], shape (largest block, n)."""
    found: Ints
    """Sites that can matter in the block in hand for the type in hand."""
    place: Ints
    """Their slots."""
    offset: Floats
    """Their costs beyond the radio delay [s]."""


@inlined
def radio_of(x: int, i: int, blocks: Blocks) -> float:
    """Return the radio delay between place x and site i [s]."""
    if blocks.node.size:
        way = blocks.point_gap_km[x] + blocks.node_km[blocks.node[x], i] + blocks.site_gap_km[i]
        return blocks.coefficient * delay_power(way * way, blocks.exponent)
    dx = abs(blocks.point_xy[x, 0] - blocks.site_xy[i, 0])
    dy = abs(blocks.point_xy[x, 1] - blocks.site_xy[i, 1])
    dx = min(dx, blocks.period_x - dx)
    dy = min(dy, blocks.period_y - dy)
    return blocks.coefficient * delay_power(dx * dx + dy * dy, blocks.exponent)


@kernel
def _box(members: Ints, blocks: Blocks) -> tuple[float, float, float, float]:
    """Return the centre and the half sizes of the smallest box around places."""
    left, right, bottom, top = np.inf, -np.inf, np.inf, -np.inf
    for x in members:
        left, right = min(left, blocks.point_xy[x, 0]), max(right, blocks.point_xy[x, 0])
        bottom, top = min(bottom, blocks.point_xy[x, 1]), max(top, blocks.point_xy[x, 1])
    return 0.5 * (left + right), 0.5 * (bottom + top), 0.5 * (right - left), 0.5 * (top - bottom)


@inlined
def _bounds(
    i: int, members: Ints, box: tuple[float, float, float, float], blocks: Blocks
) -> tuple[float, float]:
    """Return the least and the greatest radio delay between places in a box and site i [s]."""
    if blocks.node.size:
        least, most = np.inf, 0.0
        for x in members:
            delay = radio_of(x, i, blocks)
            least, most = min(least, delay), max(most, delay)
        return least, most
    dx, dy = abs(blocks.site_xy[i, 0] - box[0]), abs(blocks.site_xy[i, 1] - box[1])
    dx, dy = min(dx, blocks.period_x - dx), min(dy, blocks.period_y - dy)
    near_x, near_y = max(dx - box[2], 0.0), max(dy - box[3], 0.0)
    far_x, far_y = min(dx + box[2], 0.5 * blocks.period_x), min(dy + box[3], 0.5 * blocks.period_y)
    least = delay_power(near_x * near_x + near_y * near_y, blocks.exponent)
    most = delay_power(far_x * far_x + far_y * far_y, blocks.exponent)
    return (
        (1.0 - PADDING) * blocks.coefficient * least,
        (1.0 + PADDING) * blocks.coefficient * most,
    )


@kernel
def fill_tiles(blocks: Blocks) -> None:
    """Fill in the bounds of all tiles."""
    for t in range(blocks.tile.size - 1):
        members = blocks.order[blocks.start[blocks.tile[t]] : blocks.start[blocks.tile[t + 1]]]
        if blocks.node.size:
            blocks.low[t, :], blocks.high[t, :] = np.inf, 0.0
            for x in members:
                for i in range(blocks.low.shape[1]):
                    delay = radio_of(x, i, blocks)
                    blocks.low[t, i], blocks.high[t, i] = (
                        min(blocks.low[t, i], delay),
                        max(blocks.high[t, i], delay),
                    )
        else:
            box = _box(members, blocks)
            for i in range(blocks.low.shape[1]):
                blocks.low[t, i], blocks.high[t, i] = _bounds(i, members, box, blocks)


def square_of(point_xy: Floats, places: float) -> tuple[Ints, Ints]:
    """Return column and row of the square, of about so many places each, that each place lies in, shape (n_points,).

    Parameters
    ----------
    point_xy
        Places [km], shape (n_points, 2).
    places
        About how many places make a square.
    """
    low, high = point_xy.min(axis=0), point_xy.max(axis=0)
    width, height = np.maximum(high - low, 1e-9)
    side = np.sqrt(width * height * places / len(point_xy))
    column, row = np.floor((point_xy - low) / max(side, width / 1e6, height / 1e6)).astype(np.int64).T
    return column, row


def gathered(point_xy: Floats, n_sites: int) -> tuple[Ints, Ints, Ints]:
    """Gather places into square blocks and tiles.

    Parameters
    ----------
    point_xy
        Places [km], shape (n_points, 2).
    n_sites
        Number of sites n.

    Returns
    -------
    tile, start, order
        As in `Blocks`.
    """
    column, row = square_of(point_xy, BLOCK_PLACES)
    across = TILE_SIDE if len(point_xy) * n_sites > MANY_BOUNDS * BLOCK_PLACES else 1
    tile = row // across * (int(column.max()) // across + 1) + column // across
    key = (tile * across + row % across) * across + column % across
    order = np.argsort(key, kind="stable")
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    first = np.flatnonzero(np.diff(tile[order[start]], prepend=-1))
    return (
        np.append(first, len(start)).astype(np.int64),
        np.append(start, len(order)).astype(np.int64),
        order.astype(np.int64),
    )


@kernel
def scratch_for(blocks: Blocks, n_types: int) -> Scratch:
    """Return working space for a run over all blocks."""
    n = blocks.site_xy.shape[0]
    largest = 0
    for b in range(blocks.start.size - 1):
        largest = max(largest, blocks.start[b + 1] - blocks.start[b])
    return Scratch(
        np.empty((n_types, n), dtype=np.int64),
        np.zeros(n_types, dtype=np.int64),
        np.full(n, -1),
        np.full(n, -1),
        np.zeros(n, dtype=np.int64),
        np.empty(n),
        np.empty(n),
        np.empty((largest, n)),
        np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
        np.empty(n),
    )


@kernel
def tile_candidates(t: int, blocks: Blocks, offset: Floats, span: Floats, scratch: Scratch) -> None:
    """Write which sites can matter in a tile, for every type.

    Parameters
    ----------
    t
        Tile.
    blocks
        Places and sites.
    offset
        Cost beyond the radio delay by type and site [s], shape (Q, n).
    span
        Tie span of every place [s], shape (n_points,).
    scratch
        Where to write `pool` and `pool_size`.
    """
    widest = _widest(blocks.start[blocks.tile[t]], blocks.start[blocks.tile[t + 1]], blocks, span)
    low, high = blocks.low[t], blocks.high[t]
    for q in range(offset.shape[0]):
        ceiling = np.inf
        for i in range(low.size):
            ceiling = min(ceiling, high[i] + offset[q, i])
        ceiling += widest + PADDING * abs(ceiling)
        count = 0
        for i in range(low.size):
            if low[i] + offset[q, i] <= ceiling:
                scratch.pool[q, count] = i
                count += 1
        scratch.pool_size[q] = count


@kernel
def _widest(first: int, last: int, blocks: Blocks, span: Floats) -> float:
    widest = 0.0
    for k in range(first, last):
        widest = max(widest, span[blocks.order[k]])
    return widest


@kernel
def block_candidates(
    b: int, q: int, blocks: Blocks, offset: Floats, span: Floats, scratch: Scratch, used: int
) -> tuple[int, int]:
    """Write which sites can matter in a block for a type, and their radio delays to its places.

    Parameters
    ----------
    b, q
        Block and type.
    blocks, offset, span
        As in `tile_candidates`, whose answer for the block's tile must be in `scratch`.
    scratch
        Where to write `found`, `place`, `offset` and `radio`.
    used
        Slots in use in this block so far; 0 for its first type.

    Returns
    -------
    n_found, used
        How many sites can matter, and slots in use.
    """
    first, last = blocks.start[b], blocks.start[b + 1]
    members = blocks.order[first:last]
    widest, ceiling = _widest(first, last, blocks, span), np.inf
    box = _box(members, blocks)
    for k in range(scratch.pool_size[q]):
        i = scratch.pool[q, k]
        if scratch.seen[i] != b:
            scratch.low[i], scratch.high[i] = _bounds(i, members, box, blocks)
            scratch.seen[i] = b
        ceiling = min(ceiling, scratch.high[i] + offset[q, i])
    ceiling += widest + PADDING * abs(ceiling)
    count = 0
    for k in range(scratch.pool_size[q]):
        i = scratch.pool[q, k]
        if scratch.low[i] + offset[q, i] <= ceiling:
            if scratch.listed[i] != b:
                scratch.listed[i], scratch.slot[i] = b, used
                for m in range(members.size):
                    scratch.radio[m, used] = radio_of(members[m], i, blocks)
                used += 1
            scratch.found[count], scratch.place[count] = i, scratch.slot[i]
            scratch.offset[count] = offset[q, i]
            count += 1
    return count, used
