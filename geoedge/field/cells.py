"""Compiled kernels of the field: who serves each place, and what that asks of every site.

A place is a cell of demand or a weighted point. Its requests of a type go to the sites in the shares P that make
``Σ P c + span/2 · Σ P²`` least, c being the costs of Eq. (22): all to the cheapest site where it leads by its tie
span, half and half at a tie, and in between in straight proportion. For a cell the span is the change of the radio
delay across it, so that shares are the parts of the cell on either side of a boundary; a lump of demand, more than
its nearest site can bear, is split between sites whose costs differ by no more than its span. Loads are then
continuous in the waits, and where service does not depend on type, or site, they are the gradient of a concave
function of them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from geoedge.compiled import inlined, kernel
from geoedge.field.blocks import Blocks, Scratch, block_candidates, scratch_for, tile_candidates

__all__ = ["loads", "nearest_delay", "owners", "shares"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@inlined
def _cheapest(m: int, n_found: int, scratch: Scratch) -> tuple[int, float, float]:
    """Return the position of the cheapest site for a block's m-th place, its cost, and the second least [s]."""
    best, second, winner = np.inf, np.inf, 0
    for k in range(n_found):
        cost = scratch.radio[m, scratch.place[k]] + scratch.offset[k]
        if cost < best or (cost == best and scratch.found[k] < scratch.found[winner]):
            second, best, winner = best, cost, k
        elif cost < second:
            second = cost
    return winner, best, second


@kernel
def _shared(
    m: int,
    n_found: int,
    best: float,
    span: float,
    scratch: Scratch,
    member: Ints,
    share: Floats,
) -> int:
    """Write which sites, by position, share a place's requests and in what shares; return how many they are.

    Sites join in order of cost, as long as their share is positive.
    """
    count = 0
    for k in range(n_found):
        excess = scratch.radio[m, scratch.place[k]] + scratch.offset[k] - best
        if excess < span:
            j = count
            while j > 0 and share[j - 1] > excess:
                member[j], share[j] = member[j - 1], share[j - 1]
                j -= 1
            member[j], share[j] = k, excess
            count += 1
    total, joined = 0.0, 0
    while joined < count and share[joined] * joined < span + total:
        total += share[joined]
        joined += 1
    level = (span + total) / joined
    for j in range(joined):
        share[j] = (level - share[j]) / span
    return joined


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
) -> tuple[Floats, Ints, Floats, Floats]:
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
    site_rate, pair, rate_slope, work_slope
        [1/s], shape (n, Q); then the derivatives that are not zero: ``G · changed group + group whose wait
        changes``, that of the rate [1/s²] and that of the work [1/s], each of shape (pairs,).
    """
    n, n_types = offset.shape
    by_type = np.ascontiguousarray(offset.T)
    site_rate = np.zeros((n, n_types))
    scratch = scratch_for(blocks, n_types)
    member, share = np.empty(n, dtype=np.int64), np.empty(n)
    pair, rate_slope, work_slope = np.full(16, -1), np.zeros(16), np.zeros(16)
    filled = 0
    for t in range(blocks.tile.size - 1):
        tile_candidates(t, blocks, by_type, span, scratch)
        for b in range(blocks.tile[t], blocks.tile[t + 1]):
            used = 0
            for q in range(n_types):
                n_found, used = block_candidates(b, q, blocks, by_type, span, scratch, used)
                for m in range(blocks.start[b + 1] - blocks.start[b]):
                    x = blocks.order[blocks.start[b] + m]
                    if rate[x, q] == 0.0:
                        continue
                    winner, best, second = _cheapest(m, n_found, scratch)
                    if second - best >= span[x]:
                        site_rate[scratch.found[winner], q] += rate[x, q]
                        continue
                    count = _shared(m, n_found, best, span[x], scratch, member, share)
                    for k in range(count):
                        site_rate[scratch.found[member[k]], q] += share[k] * rate[x, q]
                    if slopes and count > 1:
                        if 2 * (filled + count * count) > pair.size:
                            pair, rate_slope, work_slope = _grown(
                                pair, rate_slope, work_slope, 4 * (filled + count * count)
                            )
                        filled += _add_slopes(
                            count,
                            q,
                            rate[x, q] / span[x],
                            member,
                            scratch.found,
                            occupancy,
                            group,
                            n_groups,
                            pair,
                            rate_slope,
                            work_slope,
                        )
    kept = pair >= 0
    return site_rate, pair[kept], rate_slope[kept], work_slope[kept]


@inlined
def _slot_of(key: int, pair: Ints) -> int:
    """Return where a key stands, or would stand, in an open table whose size is a power of two."""
    mask = pair.size - 1
    place = (key * 0x9E3779B1 >> 7) & mask
    while pair[place] != key and pair[place] >= 0:
        place = (place + 1) & mask
    return place


@kernel
def _grown(pair: Ints, rate_slope: Floats, work_slope: Floats, least: int) -> tuple[Ints, Floats, Floats]:
    """Return a larger table of derivatives with the same content."""
    size = pair.size
    while size < least:
        size *= 2
    wider, rates, work = np.full(size, -1), np.zeros(size), np.zeros(size)
    for k in range(pair.size):
        if pair[k] >= 0:
            place = _slot_of(pair[k], wider)
            wider[place], rates[place], work[place] = pair[k], rate_slope[k], work_slope[k]
    return wider, rates, work


@kernel
def _add_slopes(
    count: int,
    q: int,
    scale: float,
    member: Ints,
    found: Ints,
    occupancy: Floats,
    group: Ints,
    n_groups: int,
    pair: Ints,
    rate_slope: Floats,
    work_slope: Floats,
) -> int:
    """Add what a shared place contributes to the derivatives of rates and work; return how many pairs are new."""
    added = 0
    for k in range(count):
        i = found[member[k]]
        for j in range(count):
            slope = scale * (1.0 / count - (1.0 if j == k else 0.0))
            key = group[i] * n_groups + group[found[member[j]]]
            place = _slot_of(key, pair)
            if pair[place] < 0:
                pair[place] = key
                added += 1
            rate_slope[place] += slope
            work_slope[place] += slope * occupancy[i, q]
    return added


@kernel
def owners(blocks: Blocks, offset: Floats) -> Ints:
    """Return the site of least cost for every place and type, Eq. (22), the lowest index at a tie.

    Parameters
    ----------
    blocks
        Places and sites.
    offset
        Cost beyond the radio delay by site and type [s], shape (n, Q).

    Returns
    -------
    numpy.ndarray
        Shape (n_points, Q).
    """
    by_type, no_span = np.ascontiguousarray(offset.T), np.zeros(blocks.order.size)
    n_types = offset.shape[1]
    owner = np.empty((blocks.order.size, n_types), dtype=np.int64)
    scratch = scratch_for(blocks, n_types)
    for t in range(blocks.tile.size - 1):
        tile_candidates(t, blocks, by_type, no_span, scratch)
        for b in range(blocks.tile[t], blocks.tile[t + 1]):
            used = 0
            for q in range(n_types):
                n_found, used = block_candidates(b, q, blocks, by_type, no_span, scratch, used)
                for m in range(blocks.start[b + 1] - blocks.start[b]):
                    winner, _, _ = _cheapest(m, n_found, scratch)
                    owner[blocks.order[blocks.start[b] + m], q] = scratch.found[winner]
    return owner


@kernel
def nearest_delay(blocks: Blocks) -> Floats:
    """Return the radio delay of every place to its nearest site [s], shape (n_points,)."""
    free, no_span = np.zeros((1, blocks.site_xy.shape[0])), np.zeros(blocks.order.size)
    nearest, scratch = np.empty(blocks.order.size), scratch_for(blocks, 1)
    for t in range(blocks.tile.size - 1):
        tile_candidates(t, blocks, free, no_span, scratch)
        for b in range(blocks.tile[t], blocks.tile[t + 1]):
            n_found, _ = block_candidates(b, 0, blocks, free, no_span, scratch, 0)
            for m in range(blocks.start[b + 1] - blocks.start[b]):
                _, best, _ = _cheapest(m, n_found, scratch)
                nearest[blocks.order[blocks.start[b] + m]] = best
    return nearest


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
    by_type, scratch = np.ascontiguousarray(offset.T), scratch_for(blocks, n_types)
    owner = np.empty((n_points, n_types), dtype=np.int64)
    row = np.empty(n_points * n_types * 3 // 2 + n, dtype=np.int64)
    serving, part, radio = np.empty_like(row), np.empty(row.size), np.empty(row.size)
    member, share, used_rows = np.empty(n, dtype=np.int64), np.empty(n), 0
    for t in range(blocks.tile.size - 1):
        tile_candidates(t, blocks, by_type, span, scratch)
        for b in range(blocks.tile[t], blocks.tile[t + 1]):
            used = 0
            for q in range(n_types):
                n_found, used = block_candidates(b, q, blocks, by_type, span, scratch, used)
                for m in range(blocks.start[b + 1] - blocks.start[b]):
                    x = blocks.order[blocks.start[b] + m]
                    winner, best, second = _cheapest(m, n_found, scratch)
                    owner[x, q] = scratch.found[winner]
                    if second - best >= span[x]:
                        count, member[0], share[0] = 1, winner, 1.0
                    else:
                        count = _shared(m, n_found, best, span[x], scratch, member, share)
                    if used_rows + count > row.size:
                        row, serving = np.concatenate((row, row)), np.concatenate((serving, serving))
                        part, radio = np.concatenate((part, part)), np.concatenate((radio, radio))
                    for k in range(count):
                        row[used_rows + k] = x * n_types + q
                        serving[used_rows + k] = scratch.found[member[k]]
                        part[used_rows + k] = share[k]
                        radio[used_rows + k] = scratch.radio[m, scratch.place[member[k]]]
                    used_rows += count
    return (
        owner,
        row[:used_rows].copy(),
        serving[:used_rows].copy(),
        part[:used_rows].copy(),
        radio[:used_rows].copy(),
    )
