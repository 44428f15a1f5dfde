"""The compiled work of `_patch`: sites on a torus, who serves each place of demand, and how that answers waits.

Demand of a type comes from a square lattice of places. Each is a small cell, and gives its requests to the sites whose
cost is nearly least, in shares that fall from equal at a tie to none where the cost differs by more than the radio
delays change across the cell: loads are smooth in the waits. Which sites may matter is listed for blocks of places.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel
from geoedge.theory._cells import STRIDE, mixed, uniform

__all__ = ["COARSE", "PLACES", "Rivals", "answer_waits", "list_rivals", "scatter", "winners"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FINE, COARSE = 4, 16  # places along the side of a block, and of a block of blocks
PLACES = FINE * FINE
_CONTENDERS = 48  # sites that one place may be shared by


class Rivals(NamedTuple):
    """Sites that may serve a block of places of one type."""

    start: IntArray
    """Block b has the entries start[b] to start[b + 1], shape (B + 1,)."""
    site: IntArray
    """Site of each entry, shape (E,)."""
    radio: FloatArray
    """Radio delay from each place of the block [s], shape (E, places)."""
    span: FloatArray
    """Excess of the cost over the least at which a site gets nothing of a place [s], shape (E, places)."""


@kernel
def scatter(count: IntArray, side: float) -> FloatArray:
    """Return so many sites of each tier, evenly at random on a torus and always the same [km], shape (n, 2)."""
    xy = np.empty((count.sum(), 2))
    i = 0
    for t in range(count.size):
        key = mixed(STRIDE * np.uint64(t + 1))
        for _ in range(count[t]):
            xy[i, 0], xy[i, 1] = side * uniform(key), side * uniform(key + STRIDE)
            key += STRIDE + STRIDE
            i += 1
    return xy


@kernel
def _apart(x: float, y: float, side: float) -> float:
    gap = abs(x - y)
    return min(gap, side - gap)


@kernel
def _near(
    xy: FloatArray,
    offset: FloatArray,
    among: IntArray,
    count: int,
    x: float,
    y: float,
    half: float,
    side: float,
    coefficient: float,
    exponent: float,
    margin: float,
    low: FloatArray,
    kept: IntArray,
) -> int:
    """Keep those sites that may be cheapest somewhere in a square, and return how many these are."""
    best = np.inf
    for k in range(count):
        i = among[k]
        dx, dy = _apart(xy[i, 0], x, side), _apart(xy[i, 1], y, side)
        near = max(dx - half, 0.0) ** 2 + max(dy - half, 0.0) ** 2
        far = (dx + half) ** 2 + (dy + half) ** 2
        low[k] = offset[i] + coefficient * near ** (0.5 * exponent)
        if low[k] < best:
            best = min(best, offset[i] + coefficient * far ** (0.5 * exponent))
    found = 0
    for k in range(count):
        if low[k] <= best + margin:
            kept[found] = among[k]
            found += 1
    return found


@kernel
def _add_cheapest(
    site: IntArray, radio: FloatArray, span: FloatArray, offset: FloatArray, least: float
) -> None:
    """Add half the change of the cheapest site's delay across a place to that of every site."""
    for p in range(PLACES):
        best = 0
        for e in range(1, site.size):
            if offset[site[e]] + radio[e, p] < offset[site[best]] + radio[best, p]:
                best = e
        half = span[best, p]
        for e in range(site.size):
            span[e, p] = max(span[e, p] + half, least)


@kernel
def list_rivals(
    xy: FloatArray,
    offset: FloatArray,
    side: float,
    across: int,
    shift: FloatArray,
    coefficient: float,
    exponent: float,
    margin: float,
    least_span: float,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Return the parts of `Rivals`, for sites whose offsets may still change by half the margin either way.

    Parameters
    ----------
    xy, offset
        Sites [km], shape (n, 2), and the offsets of their costs [s], shape (n,).
    side, across, shift
        Side of the torus [km], places along it, a multiple of `COARSE`, and where the first one is, in cells, shape (2,).
    coefficient, exponent
        ξ [s/km^α] and α of the radio delay.
    margin
        How much dearer than the cheapest a site may be [s].
    least_span
        Least span of a tie [s].
    """
    n, cell = offset.size, side / across
    wide, fine = across // COARSE, COARSE // FINE
    start = np.zeros(wide * wide * fine * fine + 1, np.int64)
    room = 12 * start.size + n
    site, radio, span = np.empty(room, np.int64), np.empty((room, PLACES)), np.empty((room, PLACES))
    everyone = np.arange(n)
    few, fewer, low = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    block = 0
    reach = 0.5 * FINE * cell
    for column in range(wide):
        for row in range(wide):
            left, bottom = (column * COARSE + shift[0]) * cell, (row * COARSE + shift[1]) * cell
            middle = 0.5 * COARSE * cell
            first = _near(
                xy, offset, everyone, n, (left + middle) % side, (bottom + middle) % side, middle, side,
                coefficient, exponent, margin, low, few,
            )  # fmt: skip
            for a in range(fine):
                for b in range(fine):
                    x, y = left + (2 * a + 1) * reach, bottom + (2 * b + 1) * reach
                    found = _near(
                        xy, offset, few, first, x % side, y % side, reach, side,
                        coefficient, exponent, margin, low, fewer,
                    )  # fmt: skip
                    end = start[block] + found
                    if end > room:
                        room = 2 * end
                        more_site, more_radio = np.empty(room, np.int64), np.empty((room, PLACES))
                        more_span = np.empty((room, PLACES))
                        more_site[: start[block]] = site[: start[block]]
                        more_radio[: start[block]] = radio[: start[block]]
                        more_span[: start[block]] = span[: start[block]]
                        site, radio, span = more_site, more_radio, more_span
                    for k in range(found):
                        entry = start[block] + k
                        site[entry] = fewer[k]
                        for p in range(PLACES):
                            px = (x - reach + (p // FINE + 0.5) * cell) % side
                            py = (y - reach + (p % FINE + 0.5) * cell) % side
                            dx, dy = _apart(xy[fewer[k], 0], px, side), _apart(xy[fewer[k], 1], py, side)
                            square = dx * dx + dy * dy
                            delay = coefficient * square ** (0.5 * exponent)
                            radio[entry, p] = delay
                            span[entry, p] = 0.5 * cell * exponent * delay / np.sqrt(max(square, 1e-300))
                    _add_cheapest(
                        site[start[block] : end],
                        radio[start[block] : end],
                        span[start[block] : end],
                        offset,
                        least_span,
                    )
                    block += 1
                    start[block] = end
    return start, site[: start[block]], radio[: start[block]], span[: start[block]]


@kernel
def _contend(
    b: int, p: int, rivals: Rivals, offset: FloatArray, who: IntArray, share: FloatArray, slope: FloatArray
) -> int:
    """Fill in who shares a place, the cheapest first, with what shares and with what slope by their excess [1/s]."""
    best, least = -1, np.inf
    for e in range(rivals.start[b], rivals.start[b + 1]):
        cost = offset[rivals.site[e]] + rivals.radio[e, p]
        if cost < least:
            best, least = e, cost
    who[0], share[0], slope[0] = best, 1.0, 0.0
    count, total = 1, 1.0
    for e in range(rivals.start[b], rivals.start[b + 1]):
        if e == best or count == _CONTENDERS:
            continue
        excess = offset[rivals.site[e]] + rivals.radio[e, p] - least
        span = rivals.span[e, p]
        if excess < span:
            part = 1.0 - excess / span
            who[count], share[count], slope[count] = e, part * part, -2.0 * part / span
            total += share[count]
            count += 1
    for k in range(count):
        share[k] /= total
        slope[k] /= total
    return count


@kernel
def answer_waits(
    rivals: Rivals, offset: FloatArray, rate: FloatArray
) -> tuple[FloatArray, IntArray, IntArray, FloatArray]:
    """Return each site's requests per second of one type, and their derivatives by waits as triplets.

    Parameters
    ----------
    rivals
        Who may serve whom.
    offset
        Prefill and wait of each site [s], shape (n,).
    rate
        Requests of each place [1/s], shape (blocks, places).
    """
    served = np.zeros(offset.size)
    room, used = 4 * rate.size, 0
    row, column, value = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room)
    who, share, slope = np.empty(_CONTENDERS, np.int64), np.empty(_CONTENDERS), np.empty(_CONTENDERS)
    for b in range(rivals.start.size - 1):
        for p in range(PLACES):
            count = _contend(b, p, rivals, offset, who, share, slope)
            for k in range(count):
                served[rivals.site[who[k]]] += rate[b, p] * share[k]
            if count == 1:
                continue
            if used + count * count > room:
                row = np.concatenate((row, np.empty(room, np.int64)))
                column = np.concatenate((column, np.empty(room, np.int64)))
                value = np.concatenate((value, np.empty(room)))
                room *= 2
            # parts v_k = (1 - excess_k/span)² over their sum; the cheapest one's own excess is always zero
            slope[0] = -slope[1:count].sum()
            for k in range(count):
                for m in range(count):
                    own = 0.0
                    if k == m and k > 0:
                        own = slope[k]
                    elif m == 0 and k > 0:
                        own = -slope[k]
                    row[used], column[used] = rivals.site[who[k]], rivals.site[who[m]]
                    value[used] = rate[b, p] * (own - share[k] * slope[m])
                    used += 1
    return served, row[:used], column[:used], value[:used]


@kernel
def winners(rivals: Rivals, offset: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the cheapest site of each place and the radio delay to it [s]."""
    blocks = rivals.start.size - 1
    site, delay = np.empty(blocks * PLACES, np.int64), np.empty(blocks * PLACES)
    for b in range(blocks):
        for p in range(PLACES):
            least = np.inf
            for e in range(rivals.start[b], rivals.start[b + 1]):
                cost = offset[rivals.site[e]] + rivals.radio[e, p]
                if cost < least:
                    least = cost
                    site[b * PLACES + p], delay[b * PLACES + p] = rivals.site[e], rivals.radio[e, p]
    return site, delay
