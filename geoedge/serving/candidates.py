"""Candidate lists: for every cell of a grid, the sites that can be cheapest somewhere in it.

A site's cost over a cell lies between two bounds, the delay at the cell's nearest and farthest point plus
the site's offset. A site whose lower bound exceeds another's upper bound can never win in that cell. Lists
are sorted by lower bound, so that a search stops as soon as the bound passes the incumbent, and carry the
least bound of what was left out, so that a search knows when its list does not suffice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel

__all__ = [
    "NO_LISTS",
    "CandidateLists",
    "Ground",
    "build_lists",
    "cell_of",
    "delay_power",
    "squared_distance",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CELLS_PER_SITE = 8
BLOCK = 8
"""Cells along the side of a block; blocks are pruned first, and a cell looks at its block's sites only."""
BLOCK_CELLS = BLOCK * BLOCK
STRIP = 8
"""Blocks in a strip; strips are pruned before their blocks."""
LIST_LIMIT = 128
"""Most sites in a list, so that lists stay small where nothing can be pruned."""
PADDING = 1e-9
"""Share by which cells are widened and bounds loosened, far above rounding and far below any cost."""


class Ground(NamedTuple):
    """Where sites are and what distance costs."""

    site_xy: Floats
    """Places of the sites [km], shape (n, 2)."""
    coefficient: float
    """ξ of the radio delay [s/km^α]."""
    exponent: float
    """α of the radio delay."""
    period_x: float
    """Width of the torus window [km], infinite for the plane."""
    period_y: float


class CandidateLists(NamedTuple):
    """Sites worth looking at, by offset class and cell, in compressed rows; `cell_of` numbers the cells."""

    origin_x: float
    origin_y: float
    per_x: float
    """Cells per km."""
    per_y: float
    columns: int
    """Cells from west to east, a multiple of the block's side."""
    rows: int
    class_of_type: Ints
    """Which offset column a request type uses, shape (Q,); equal columns share lists."""
    start: Ints
    """Where each cell's list starts, shape (classes · rows · columns + 1,)."""
    site: npt.NDArray[np.int32]
    bound: Floats
    """Least cost of the site in the cell [s], ascending in each list."""
    tail: Floats
    """Least cost of any site that is not in the cell's list [s]."""


NO_LISTS = CandidateLists(
    0.0,
    0.0,
    1.0,
    1.0,
    0,
    0,
    np.zeros(1, dtype=np.int64),
    np.zeros(1, dtype=np.int64),
    np.zeros(0, dtype=np.int32),
    np.zeros(0),
    np.zeros(0),
)
"""Lists of an empty grid: every search scans all sites."""


@inlined
def delay_power(d2: float, exponent: float) -> float:
    """Return d**exponent from the squared distance, without a general power where roots do."""
    if exponent == 2.0:
        return d2
    if exponent == 2.5:
        return d2 * float(np.sqrt(np.sqrt(d2)))
    if exponent == 3.0:
        return d2 * float(np.sqrt(d2))
    if exponent == 4.0:
        return d2 * d2
    return float(d2 ** (0.5 * exponent))


@inlined
def squared_distance(x: float, y: float, i: int, ground: Ground) -> float:
    """Return the squared distance [km²] from a place in the window to site i, around the torus if shorter."""
    dx = abs(x - ground.site_xy[i, 0])
    dy = abs(y - ground.site_xy[i, 1])
    dx = min(dx, ground.period_x - dx)
    dy = min(dy, ground.period_y - dy)
    return float(dx * dx + dy * dy)


@inlined
def cell_of(x: float, y: float, q: int, lists: CandidateLists) -> int:
    """Return the number of the cell that holds a place, for a request type; -1 outside the grid."""
    column = int(np.floor((x - lists.origin_x) * lists.per_x))
    row = int(np.floor((y - lists.origin_y) * lists.per_y))
    if column < 0 or row < 0 or column >= lists.columns or row >= lists.rows:
        return -1
    block = (int(lists.class_of_type[q]) * lists.rows + row) // BLOCK * (
        lists.columns // BLOCK
    ) + column // BLOCK
    return block * BLOCK_CELLS + (row % BLOCK) * BLOCK + column % BLOCK


@kernel
def _delay_bounds(
    i: int, x: float, y: float, width: float, height: float, ground: Ground
) -> tuple[float, float]:
    """Return the least and the greatest radio delay [s] between site i and the cell centred at (x, y)."""
    half_x = 0.5 * width * (1.0 + PADDING)
    half_y = 0.5 * height * (1.0 + PADDING)
    dx = abs(x - ground.site_xy[i, 0])
    dy = abs(y - ground.site_xy[i, 1])
    dx = min(dx, ground.period_x - dx)
    dy = min(dy, ground.period_y - dy)
    near_x, near_y = max(dx - half_x, 0.0), max(dy - half_y, 0.0)
    far_x, far_y = min(dx + half_x, 0.5 * ground.period_x), min(dy + half_y, 0.5 * ground.period_y)
    least = ground.coefficient * delay_power(near_x * near_x + near_y * near_y, ground.exponent)
    most = ground.coefficient * delay_power(far_x * far_x + far_y * far_y, ground.exponent)
    return least * (1.0 - PADDING), most * (1.0 + PADDING)


@kernel
def _keep(
    pool: Ints,
    n_pool: int,
    x: float,
    y: float,
    width: float,
    height: float,
    ground: Ground,
    offset: Floats,
    slack: float,
    kept: Ints,
    bound: Floats,
) -> tuple[int, float]:
    """Copy to `kept` the sites of a pool that can win in a cell; return how many and the others' least bound."""
    least_most = np.inf
    for k in range(n_pool):
        i = pool[k]
        least, most = _delay_bounds(i, x, y, width, height, ground)
        bound[k] = least + offset[i]
        least_most = min(least_most, most + offset[i])
    limit = least_most + slack + PADDING * abs(least_most)
    count, tail = 0, np.inf
    for k in range(n_pool):
        if bound[k] <= limit:
            kept[count], bound[count] = pool[k], bound[k]
            count += 1
        else:
            tail = min(tail, bound[k])
    return count, tail


@kernel
def _sort_by_bound(sites: Ints, bound: Floats, count: int, tail: float) -> tuple[int, float]:
    """Sort the first sites by bound, at most so many as a list holds; return how many and the others' least bound."""
    kept = 0
    for k in range(count):
        i, b = sites[k], bound[k]
        if kept == LIST_LIMIT:
            tail = min(tail, max(b, bound[kept - 1]))
            if b >= bound[kept - 1]:
                continue
            kept -= 1
        j = kept - 1
        while j >= 0 and bound[j] > b:
            sites[j + 1], bound[j + 1] = sites[j], bound[j]
            j -= 1
        sites[j + 1], bound[j + 1] = i, b
        kept += 1
    return kept, tail


@kernel
def _fill(
    class_offset: Floats,
    ground: Ground,
    low: Floats,
    size: Floats,
    columns: int,
    rows: int,
    slack: float,
) -> tuple[Ints, npt.NDArray[np.int32], Floats, Floats]:
    """Build the lists of all classes, block by block; return start, site, bound and tail of `CandidateLists`."""
    classes, n = class_offset.shape
    start = np.zeros(classes * rows * columns + 1, dtype=np.int64)
    tail = np.empty(classes * rows * columns)
    site, bound = np.empty(8 * tail.size, dtype=np.int32), np.empty(8 * tail.size)
    everyone, kept, kept_bound = np.arange(n), np.empty(n, dtype=np.int64), np.empty(n)
    strip, strip_bound = np.empty(n, dtype=np.int64), np.empty(n)
    pool, pool_bound = np.empty(n, dtype=np.int64), np.empty(n)
    width, height = size
    block_width, block_height, block_columns = BLOCK * width, BLOCK * height, columns // BLOCK
    for cell in range(tail.size):
        k, block_row = divmod(cell // BLOCK_CELLS // block_columns, rows // BLOCK)
        block_column = cell // BLOCK_CELLS % block_columns
        left, bottom = low[0] + block_column * block_width, low[1] + block_row * block_height
        y = bottom + 0.5 * block_height
        if cell % BLOCK_CELLS == 0 and block_column % STRIP == 0:
            wide = min(STRIP, block_columns - block_column) * block_width
            n_strip, strip_tail = _keep(
                everyone,
                n,
                left + 0.5 * wide,
                y,
                wide,
                block_height,
                ground,
                class_offset[k],
                slack,
                strip,
                strip_bound,
            )
        if cell % BLOCK_CELLS == 0:
            x = left + 0.5 * block_width
            n_pool, pool_tail = _keep(
                strip,
                n_strip,
                x,
                y,
                block_width,
                block_height,
                ground,
                class_offset[k],
                slack,
                pool,
                pool_bound,
            )
        x = left + (cell % BLOCK + 0.5) * width
        y = bottom + (cell % BLOCK_CELLS // BLOCK + 0.5) * height
        count, rest = _keep(
            pool, n_pool, x, y, width, height, ground, class_offset[k], slack, kept, kept_bound
        )
        count, rest = _sort_by_bound(kept, kept_bound, count, rest)
        used = start[cell]
        if used + count > site.size:
            site = np.concatenate((site, np.empty(site.size + count, dtype=np.int32)))
            bound = np.concatenate((bound, np.empty(bound.size + count)))
        for j in range(count):
            site[used + j], bound[used + j] = kept[j], kept_bound[j]
        start[cell + 1] = used + count
        tail[cell] = min(strip_tail, pool_tail, rest)
    return start, site[: start[-1]], bound[: start[-1]], tail


def build_lists(x: Floats, y: Floats, ground: Ground, offset: Floats, slack: float = 0.0) -> CandidateLists:
    """Build candidate lists over the bounding box of some points, or over the window of a torus.

    Parameters
    ----------
    x, y
        Places whose bounding box the grid covers [km], shape (m,); in the window of the torus if there is one.
    ground
        Where the sites are and what distance costs.
    offset
        What a site costs beyond the radio delay, at least [s], shape (n, Q).
    slack
        How much above its offset the cheapest site may cost before a list no longer suffices [s].
    """
    class_offset, class_of_type = np.unique(offset, axis=1, return_inverse=True)
    low, high = np.zeros(2), np.array([ground.period_x, ground.period_y])
    if not np.isfinite(high).all():
        low, high = np.array([x.min(), y.min()]), np.array([x.max(), y.max()])
    span = np.maximum(high - low, 1e-6)
    step = BLOCK * np.sqrt(span[0] * span[1] / (CELLS_PER_SITE * len(ground.site_xy)))
    blocks = np.clip(np.round(span / step), 1, len(ground.site_xy)).astype(np.int64)
    columns, rows = (int(count) * BLOCK for count in blocks)
    size = span * (1.0 + PADDING) / (columns, rows)
    return CandidateLists(
        float(low[0]),
        float(low[1]),
        float(1.0 / size[0]),
        float(1.0 / size[1]),
        columns,
        rows,
        class_of_type.reshape(-1).astype(np.int64),
        *_fill(np.ascontiguousarray(class_offset.T), ground, low, size, columns, rows, slack),
    )
