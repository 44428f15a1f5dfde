"""Compiled kernels of the field: who serves each place, and what that asks of every site.

A place is a cell of demand or a weighted point. It gives its requests to the sites whose cost, Eq. (22),
lies within the place's tie span of the least, in shares that fall from equal at a tie to none at the span:
``share ∝ (1 − excess/span)²``. For a cell the span is the change of the radio delay across it, so the shares
are close to the parts of the cell on either side of a boundary; and loads are smooth in the waits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geoedge.compiled import kernel
from geoedge.serving.candidates import delay_power

__all__ = ["Blocks", "fill_blocks", "loads", "shares"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PADDING = 1e-9
"""Share by which bounds are loosened, far above rounding and far below any cost."""


class Blocks(NamedTuple):
    """Places gathered into small blocks, each with its nearest sites; what the kernels run over."""

    start: Ints
    """Block b holds the places ``order[start[b] : start[b + 1]]``, shape (B + 1,)."""
    order: Ints
    """Places by block, shape (n_points,)."""
    site: Ints
    """A block's nearest sites, shape (B, kept)."""
    low: Floats
    """Least radio delay from a block to a site of its list [s], ascending, shape (B, kept)."""
    high: Floats
    """Greatest radio delay from a block to a site of its list [s], shape (B, kept)."""
    radio: Floats
    """Radio delay of the k-th place in `order` to the sites of its block's list [s], shape (n_points, kept)."""
    point_xy: Floats
    site_xy: Floats
    coefficient: float
    exponent: float
    period_x: float
    period_y: float


@kernel
def _radio(point: Floats, site: Floats, blocks: Blocks) -> float:
    dx = abs(point[0] - site[0])
    dy = abs(point[1] - site[1])
    dx = min(dx, blocks.period_x - dx)
    dy = min(dy, blocks.period_y - dy)
    return blocks.coefficient * delay_power(dx * dx + dy * dy, blocks.exponent)


@kernel
def fill_blocks(blocks: Blocks) -> Floats:
    """Fill in the lists of all blocks; return every place's radio delay to its nearest listed site [s]."""
    n, kept = blocks.site_xy.shape[0], blocks.site.shape[1]
    nearest = np.empty(blocks.order.size)
    low, high = np.empty(n), np.empty(n)
    for b in range(blocks.start.size - 1):
        members = blocks.order[blocks.start[b] : blocks.start[b + 1]]
        left, right = blocks.point_xy[members, 0].min(), blocks.point_xy[members, 0].max()
        bottom, top = blocks.point_xy[members, 1].min(), blocks.point_xy[members, 1].max()
        for i in range(n):
            dx = abs(blocks.site_xy[i, 0] - 0.5 * (left + right))
            dy = abs(blocks.site_xy[i, 1] - 0.5 * (bottom + top))
            dx, dy = min(dx, blocks.period_x - dx), min(dy, blocks.period_y - dy)
            half_x, half_y = 0.5 * (right - left), 0.5 * (top - bottom)
            near_x, near_y = max(dx - half_x, 0.0), max(dy - half_y, 0.0)
            far_x, far_y = min(dx + half_x, 0.5 * blocks.period_x), min(dy + half_y, 0.5 * blocks.period_y)
            low[i] = (1.0 - PADDING) * delay_power(near_x * near_x + near_y * near_y, blocks.exponent)
            high[i] = (1.0 + PADDING) * delay_power(far_x * far_x + far_y * far_y, blocks.exponent)
        by_low = np.argsort(low)
        for k in range(kept):
            i = by_low[k]
            blocks.site[b, k] = i
            blocks.low[b, k], blocks.high[b, k] = blocks.coefficient * low[i], blocks.coefficient * high[i]
            for p in range(blocks.start[b], blocks.start[b + 1]):
                blocks.radio[p, k] = _radio(blocks.point_xy[blocks.order[p]], blocks.site_xy[i], blocks)
        for p in range(blocks.start[b], blocks.start[b + 1]):
            nearest[blocks.order[p]] = blocks.radio[p].min()
    return nearest


@kernel
def _candidates(
    b: int, q: int, blocks: Blocks, offset: Floats, least_offset: float, span: float, found: Ints
) -> int:
    """Write which sites of a block's list can matter in it, by position; return how many, −1 if others might."""
    n, kept = offset.shape[0], blocks.site.shape[1]
    ceiling, looked = np.inf, 0
    while looked < kept and blocks.low[b, looked] + least_offset <= ceiling + span:
        ceiling = min(ceiling, blocks.high[b, looked] + offset[blocks.site[b, looked], q])
        looked += 1
    if looked == kept and kept < n:
        return -1
    count = 0
    for k in range(looked):
        if blocks.low[b, k] + offset[blocks.site[b, k], q] <= ceiling + span:
            found[count] = k
            count += 1
    return count


@kernel
def _only(
    p: int, b: int, q: int, blocks: Blocks, offset: Floats, span: float, found: Ints, n_found: int
) -> int:
    """Return the site that a place gives all its requests to, −1 if it shares them."""
    best, second, winner = np.inf, np.inf, -1
    for k in range(n_found):
        i = blocks.site[b, found[k]]
        cost = blocks.radio[p, found[k]] + offset[i, q]
        if cost < best:
            second, best, winner = best, cost, i
        elif cost < second:
            second = cost
    return winner if second - best >= span and second > best else -1


@kernel
def _ties(
    p: int,
    b: int,
    q: int,
    blocks: Blocks,
    offset: Floats,
    span: float,
    found: Ints,
    n_found: int,
    site: Ints,
    excess: Floats,
    delay: Floats,
) -> int:
    """Write the sites within a span of a place's least cost, the cheapest first; return how many they are."""
    total = offset.shape[0] if n_found < 0 else n_found
    best, winner = np.inf, -1
    for k in range(total):
        if n_found < 0:
            i, r = k, _radio(blocks.point_xy[blocks.order[p]], blocks.site_xy[k], blocks)
        else:
            i, r = blocks.site[b, found[k]], blocks.radio[p, found[k]]
        site[k], delay[k] = i, r
        excess[k] = r + offset[i, q]
        if excess[k] < best or (excess[k] == best and i < site[winner]):
            best, winner = excess[k], k
    site[0], site[winner] = site[winner], site[0]
    delay[0], delay[winner] = delay[winner], delay[0]
    excess[winner], excess[0] = excess[0], 0.0
    count = 1
    for k in range(1, total):
        over = excess[k] - best
        if over < span:
            site[count], delay[count], excess[count] = site[k], delay[k], over
            count += 1
    return count


@kernel
def loads(
    blocks: Blocks,
    rate: Floats,
    span: Floats,
    offset: Floats,
    occupancy: Floats,
    group: Ints,
    n_groups: int,
    slopes: bool,
) -> tuple[Floats, Floats, Floats]:
    """Return the rate of each site and type, and how each group's rate and work change with every group's wait.

    Parameters
    ----------
    blocks
        Places and sites.
    rate
        Requests of every place and type [1/s], shape (n_points, Q).
    span
        Tie span of every place [s], shape (n_points,).
    offset, occupancy
        Cost beyond the radio delay, and time of a server, by site and type [s], shape (n, Q).
    group
        Which wait a site advertises, shape (n,).
    n_groups
        Number of waits G.
    slopes
        Whether the derivatives are wanted.

    Returns
    -------
    site_rate, rate_slope, work_slope
        [1/s], shape (n, Q); [1/s²], shape (G, G); [1/s], shape (G, G).
    """
    n, n_types = offset.shape
    size = n_groups if slopes else 0
    site_rate = np.zeros((n, n_types))
    rate_slope, work_slope = np.zeros((size, size)), np.zeros((size, size))
    site, excess, delay = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
    found = np.empty(n, dtype=np.int64)
    weight, fall, least_offset = np.empty(n), np.empty(n), _least(offset)
    for b in range(blocks.start.size - 1):
        widest = _widest(b, blocks, span)
        for q in range(n_types):
            n_found = _candidates(b, q, blocks, offset, least_offset[q], widest, found)
            for p in range(blocks.start[b], blocks.start[b + 1]):
                x = blocks.order[p]
                if rate[x, q] == 0.0:
                    continue
                if n_found > 0:
                    single = _only(p, b, q, blocks, offset, span[x], found, n_found)
                    if single >= 0:
                        site_rate[single, q] += rate[x, q]
                        continue
                count = _ties(p, b, q, blocks, offset, span[x], found, n_found, site, excess, delay)
                total = _weights(count, excess, span[x], weight, fall)
                for k in range(count):
                    site_rate[site[k], q] += weight[k] / total * rate[x, q]
                if slopes:
                    scale = rate[x, q] / (span[x] * total)
                    _add_slopes(
                        count, q, site, weight, fall, total, scale, occupancy, group, rate_slope, work_slope
                    )
    return site_rate, rate_slope, work_slope


@kernel
def _least(offset: Floats) -> Floats:
    least = np.empty(offset.shape[1])
    for q in range(offset.shape[1]):
        least[q] = offset[:, q].min()
    return least


@kernel
def _widest(b: int, blocks: Blocks, span: Floats) -> float:
    widest = 0.0
    for p in range(blocks.start[b], blocks.start[b + 1]):
        widest = max(widest, span[blocks.order[p]])
    return widest


@kernel
def _weights(count: int, excess: Floats, span: float, weight: Floats, fall: Floats) -> float:
    """Write unnormalised shares and how fast they fall per span of excess; return the sum of the shares."""
    total = 1.0
    weight[0], fall[0] = 1.0, 0.0
    for k in range(1, count):
        root = 1.0 - excess[k] / span
        weight[k], fall[k] = root * root, 2.0 * root
        total += weight[k]
    return total


@kernel
def _add_slopes(
    count: int,
    q: int,
    site: Ints,
    weight: Floats,
    fall: Floats,
    total: float,
    scale: float,
    occupancy: Floats,
    group: Ints,
    rate_slope: Floats,
    work_slope: Floats,
) -> None:
    """Add what a shared place contributes to the derivatives of rates and work by the waits."""
    falls = fall[:count].sum()
    for k in range(count):
        i, part = site[k], weight[k] / total
        for m in range(count):
            slope = part * fall[m] if m > 0 else fall[k] - part * falls
            if m == k and m > 0:
                slope -= fall[k]
            rate_slope[group[i], group[site[m]]] += scale * slope
            work_slope[group[i], group[site[m]]] += scale * slope * occupancy[i, q]


@kernel
def shares(
    blocks: Blocks, span: Floats, offset: Floats
) -> tuple[npt.NDArray[np.int64], Ints, Ints, Floats, Floats]:
    """Return who serves what.

    Parameters
    ----------
    blocks
        Places and sites.
    span
        Tie span of every place [s], shape (n_points,).
    offset
        Cost beyond the radio delay by site and type [s], shape (n, Q).

    Returns
    -------
    owner, row, site, share, delay
        The cheapest site of every place and type, shape (n_points, Q); then one entry per place, type and
        serving site: ``place * Q + type``, the site, its share, and the radio delay to it [s].
    """
    n_points, (n, n_types) = blocks.order.size, offset.shape
    owner = np.empty((n_points, n_types), dtype=np.int64)
    row = np.empty(2 * n_points * n_types + n, dtype=np.int64)
    serving, share, radio = np.empty_like(row), np.empty(row.size), np.empty(row.size)
    site, excess, delay = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
    found, weight, fall = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
    least_offset, used = _least(offset), 0
    for b in range(blocks.start.size - 1):
        widest = _widest(b, blocks, span)
        for q in range(n_types):
            n_found = _candidates(b, q, blocks, offset, least_offset[q], widest, found)
            for p in range(blocks.start[b], blocks.start[b + 1]):
                x = blocks.order[p]
                count = _ties(p, b, q, blocks, offset, span[x], found, n_found, site, excess, delay)
                total = _weights(count, excess, span[x], weight, fall)
                if used + count > row.size:
                    row, serving = np.concatenate((row, row)), np.concatenate((serving, serving))
                    share, radio = np.concatenate((share, share)), np.concatenate((radio, radio))
                for k in range(count):
                    row[used + k], serving[used + k] = x * n_types + q, site[k]
                    share[used + k], radio[used + k] = weight[k] / total, delay[k]
                used += count
                owner[x, q] = site[0]
    return owner, row[:used].copy(), serving[:used].copy(), share[:used].copy(), radio[:used].copy()
