"""Steps towards the equilibrium: Newton's method on waits, with lengths that pay.

The equilibrium is where the work that comes equals the load that the wait means, by the inverse of the queue curve.
Newton's method stays finite where the work that comes exceeds capacity, and every site is moved along its own queue
curve, so that neither nearly idle nor nearly saturated sites spoil the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from geoedge.field._market import NEGLIGIBLE_WAIT_S, Market, Slopes, State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["FIRST_STRIDE", "advance"]

DENSE = 256
"""Most waits for which Newton's linear system is solved without regard to its zeros."""
STEEP = 0.01
"""Below this slope of wait by load, in occupancies, a site is moved by its load, above it by its wait."""
NEAREST_CAPACITY = 0.7
"""Share of the way to capacity that one step may go."""
FIRST_STRIDE, LEAST_STRIDE, LONGEST_STRIDE = 0.12, 0.01, 0.3
"""Most that a step may change differences of waits, in mean occupancies: at first, at least, at most."""
GROWTH = 2.0
"""How much longer than the last step the next may be."""
LOOSE = 1.0
"""A site whose own wait moves its load by less than this share of what its queue says has lost touch."""
OVERSHOOT = 0.2
"""How far a step may pass the point where it stops paying, relative to its gain at the start."""
SEARCHES = 12
"""Most tries of a step length."""


@dataclass(frozen=True, eq=False)
class _Step:
    """Newton's step from a state: changes of wait, load and mean occupancy as first-order terms have them.

    `by_load` marks sites to move along their load, `loose` those that have lost touch with their neighbours.
    """

    wait: Floats
    load: Floats
    occupancy: Floats
    by_load: NDArray[np.bool_]
    loose: NDArray[np.bool_]


def _linear(diagonal: Floats, slopes: Slopes, entries: Floats, target: Floats) -> Floats:
    """Solve a linear system; large ones, which are sparse because sites compete with neighbours only, as such."""
    from geoedge.field.queues import eliminate

    size = len(target)
    if size <= DENSE:
        matrix = np.diag(diagonal)
        matrix[slopes.row, slopes.column] += entries
        return eliminate(matrix, target)
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    every = np.arange(size)
    place = np.concatenate((slopes.row, every)), np.concatenate((slopes.column, every))
    sparse = coo_array((np.concatenate((entries, diagonal)), place), shape=(size, size))
    return np.asarray(splu(sparse.tocsc()).solve(target), dtype=np.float64)


def _newton(state: State) -> _Step:
    """Linearise wait = curve(work, occupancy) about a state, with work and occupancy as demand answers waits.

    Rows are scaled so that they stay finite at either end of the queue curve.
    """
    _, by_load, by_occupancy = state.curve.wait(state.load, state.servers, state.occupancy)
    slopes, row = state.slopes, state.slopes.row
    busy = state.rate > 0
    per_rate = np.where(busy, 1.0 / np.where(busy, state.rate, 1.0), 0.0)
    occupancy_slope = (slopes.work - state.occupancy[row] * slopes.rate) * per_rate[row]
    scale = 1.0 / (by_load + state.occupancy)
    entries = -(by_load * scale)[row] * slopes.work - (by_occupancy * scale)[row] * occupancy_slope
    wait = _linear(scale, slopes, entries, by_load * scale * (state.work - state.load))
    return _Step(
        wait,
        state.work + slopes.times(slopes.work, wait) - state.load,
        slopes.times(occupancy_slope, wait),
        by_load < STEEP * state.occupancy,
        by_load * np.abs(slopes.diagonal(slopes.work, len(wait))) < LOOSE,
    )


def _moved(state: State, step: _Step, length: float) -> Floats:
    """Return the waits after part of a step, nearly idle sites along their load and the others along their wait."""
    room = np.maximum(state.servers - state.load, 0.0)
    load = np.clip(state.load + length * step.load, 0.1 * state.load, state.load + NEAREST_CAPACITY * room)
    occupancy = np.clip(state.occupancy + length * step.occupancy, 0.5 * state.occupancy, 2 * state.occupancy)
    by_load = state.curve.wait(load, state.servers, occupancy)[0]
    by_wait = np.maximum(state.wait + length * step.wait, 0.2 * state.wait)
    return np.where(step.by_load, by_load, by_wait)


def _limited(step: _Step, stride: float) -> tuple[_Step, float, float]:
    """Return a step whose loose sites stay with the others, the length it may have, and how far it sets waits apart.

    A site that has lost touch with its neighbours knows no more than that its wait is wrong; its step must not
    shorten everybody's.
    """
    middle = float(np.median(step.wait))
    apart = step.wait - middle
    spread = float(np.abs(apart[~step.loose]).max(initial=0.0))
    limit = max(stride, spread)
    wait = np.where(step.loose, middle + np.clip(apart, -limit, limit), step.wait)
    return replace(step, wait=wait), min(1.0, stride / max(spread, NEGLIGIBLE_WAIT_S)), spread


def advance(market: Market, state: State, stride: float) -> tuple[State, int, float]:
    """Take one step of a length that pays; return the new state, the responses it took, and the next stride [s].

    The waits are prices: with service that does not depend on type, the miss in requests per second is the
    gradient of a concave function of them. So a step is short enough when the miss along it has not turned
    round; where the gradient is no guide, the miss itself must shrink.
    """
    step, length, spread = _limited(_newton(state), stride)
    norm, tries = float(np.linalg.norm(state.miss)), 1
    while True:
        after = market.respond(_moved(state, step, length))
        change = (after.wait - state.wait) / length
        before, ahead = float(state.force @ change), float(after.force @ change)
        shrunk = float(np.linalg.norm(after.miss)) / norm
        if before > 0:
            pays = ahead >= -OVERSHOOT * before or shrunk < 0.5
        else:
            pays = shrunk < 0.98 or tries > SEARCHES // 3
        if pays or tries == SEARCHES:
            break
        length *= min(max(before / (before - ahead), 0.1), 0.5) if before > 0 else 0.4
        tries += 1
    unit, reach = float(state.occupancy.mean()), GROWTH * length * spread
    longest = max(stride, reach) if tries == 1 else max(reach, LEAST_STRIDE * unit)
    return after, tries, min(longest, LONGEST_STRIDE * unit)
