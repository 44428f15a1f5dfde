"""Compiled kernels of the expected presence of users: departures, visits and flows along route trees.

Cumulative counts stand on a grid of equal bins from the start of the day and are linear in between,
that is, flows are constant within a bin. Every time integral below is exact for such counts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from geoedge.compiled import kernel

__all__ = ["home_renewal", "street_flows", "tree_edges", "visit_times"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@kernel
def tree_edges(start: Ints, column: Ints, edges: NDArray[np.int64], link: Ints, toward: bool) -> Ints:
    """Return the edge between each node and its neighbour on the tree, -1 at the root, shape (K, N).

    Parameters
    ----------
    start, column, edges
        Compressed rows of the graph and the edge behind each entry.
    link
        Next node toward the root, or previous node from it; negative at the root, shape (K, N).
    toward
        Whether the edge leads from a node to its neighbour, or the other way.
    """
    trees, nodes = link.shape
    found = np.full((trees, nodes), -1, dtype=np.int32)
    for k in range(trees):
        for node in range(nodes):
            other = link[k, node]
            if other < 0:
                continue
            tail, head = (node, other) if toward else (other, node)
            for entry in range(start[tail], start[tail + 1]):
                if column[entry] == head:
                    found[k, node] = edges[entry]
                    break
    return found


@kernel
def home_renewal(
    loop_time: Floats,
    weight: Floats,
    activity: NDArray[np.int64],
    rate: Floats,
    choice: Floats,
    dwell_rate: Floats,
    bin_s: float,
) -> tuple[Floats, Floats]:
    """Return the cumulative departures and the untravelled dwellers of each home, both of shape (H, 2, B + 1).

    The share of users at home obeys H(t) = 1 - M(t) + Σ_j w_j R_j(t - L_j): M counts departures, R those who
    left long enough ago to have ended a visit had there been no way to travel, and L_j is the way there and
    back. Within a bin, users leave at a constant rate and return in a constant flow.

    Parameters
    ----------
    loop_time
        Way to each destination and back [s], shape (H, K).
    weight, activity
        Weight of each destination and its activity, 0 or 1, shape (K,).
    rate
        Departure rate in each bin [1/s], shape (B,).
    choice
        Probability of a destination per unit of its weight, by activity and bin, shape (2, B).
    dwell_rate
        Inverse mean of a visit by activity [1/s], shape (2,).
    bin_s
        Length of a bin [s].
    """
    homes, destinations = loop_time.shape
    bins = len(rate)
    left = np.zeros((homes, 2, bins + 1))
    dwelling = np.zeros((homes, 2, bins + 1))
    lags = min(bins, int(loop_time.max() / bin_s) + 1) + 2
    spread = np.empty((2, lags))
    ended = np.empty((2, bins + 1))
    stay = np.exp(-dwell_rate * bin_s)
    fresh = (1.0 - stay) / (dwell_rate * bin_s)
    for h in range(homes):
        spread[:] = 0.0
        for j in range(destinations):
            lag = loop_time[h, j] / bin_s
            whole = int(lag)
            if whole + 1 < lags:
                spread[activity[j], whole] += weight[j] * (whole + 1 - lag)
                spread[activity[j], whole + 1] += weight[j] * (lag - whole)
        ended[:, 0] = 0.0
        home, returned = 1.0, 0.0
        for k in range(bins):
            known, slope = 0.0, 0.0
            for a in range(2):
                for lag_bin in range(1, min(lags, k + 2)):
                    known += spread[a, lag_bin] * ended[a, k + 1 - lag_bin]
                known += spread[a, 0] * (left[h, a, k] - stay[a] * dwelling[h, a, k])
                slope += spread[a, 0] * choice[a, k] * (1.0 - fresh[a])
            gone = -np.expm1(-rate[k] * bin_s)
            also = 1.0 - gone / (rate[k] * bin_s) if rate[k] > 0.0 else 0.0
            leaving = (gone * home + also * (known - returned)) / (1.0 - also * slope)
            back = known + slope * leaving
            home += back - returned - leaving
            returned = back
            for a in range(2):
                left[h, a, k + 1] = left[h, a, k] + choice[a, k] * leaving
                dwelling[h, a, k + 1] = stay[a] * dwelling[h, a, k] + choice[a, k] * leaving * fresh[a]
                ended[a, k + 1] = left[h, a, k + 1] - dwelling[h, a, k + 1]
    return left, dwelling


@kernel
def _integral(values: Floats, integral: Floats, at: float) -> float:
    """Return the integral from the first grid point to `at` [bins] of a linear interpolant, per bin."""
    if at <= 0.0:
        return 0.0
    low = min(int(at), len(values) - 2)
    part = at - low
    return float(integral[low] + part * (values[low] + 0.5 * part * (values[low + 1] - values[low])))


@kernel
def _running_integral(values: Floats, out: Floats) -> None:
    """Write the integral of a linear interpolant up to each grid point, per bin."""
    total = 0.0
    out[0] = 0.0
    for k in range(1, len(values)):
        total += 0.5 * (values[k - 1] + values[k])
        out[k] = total


@kernel
def visit_times(
    toward_time: Floats,
    loop_time: Floats,
    mass: Floats,
    weight: Floats,
    activity: NDArray[np.int64],
    left: Floats,
    dwelling: Floats,
    marks: Floats,
    bin_s: float,
) -> tuple[Floats, Floats, Floats]:
    """Return user-seconds up to each mark: at each home, at each destination, and travelling out and back.

    The first is per user of that home, shape (H, T); the others are weighted by the homes' masses,
    shapes (K, T) and (2, T). Together they make up the time since the start of the day.

    Parameters
    ----------
    toward_time, loop_time
        Way to each destination, and there and back [s], shape (H, K).
    mass
        Share of users who live at each home, shape (H,).
    weight, activity
        Weight of each destination and its activity, 0 or 1, shape (K,).
    left, dwelling
        Results of `home_renewal`, shape (H, 2, B + 1).
    marks
        Instants since the start of the day [s], shape (T,).
    bin_s
        Length of a bin [s].
    """
    homes, destinations = toward_time.shape
    at_home = np.zeros((homes, len(marks)))
    at_place = np.zeros((destinations, len(marks)))
    moving = np.zeros((2, len(marks)))
    left_sum = np.empty((2, left.shape[2]))
    dwelling_sum = np.empty((2, left.shape[2]))
    begun = np.empty(2)
    for h in range(homes):
        for a in range(2):
            _running_integral(left[h, a], left_sum[a])
            _running_integral(dwelling[h, a], dwelling_sum[a])
        for i in range(len(marks)):
            mark = marks[i] / bin_s
            total = mark
            for a in range(2):
                begun[a] = _integral(left[h, a], left_sum[a], mark)
            for j in range(destinations):
                a = activity[j]
                there = mark - toward_time[h, j] / bin_s
                again = mark - loop_time[h, j] / bin_s
                arrived = _integral(left[h, a], left_sum[a], there)
                visiting = _integral(dwelling[h, a], dwelling_sum[a], there)
                back = _integral(left[h, a], left_sum[a], again)
                back -= _integral(dwelling[h, a], dwelling_sum[a], again)
                total += weight[j] * (back - begun[a])
                share = mass[h] * weight[j] * bin_s
                at_place[j, i] += share * visiting
                moving[0, i] += share * (begun[a] - arrived)
                moving[1, i] += share * (arrived - visiting - back)
            at_home[h, i] = total * bin_s
    return at_home, at_place, moving


@kernel
def _add_delayed(counts: Floats, delay: float, first: int, scale: float, fresh: bool, out: Floats) -> None:
    """Add scale × counts, delayed by `delay` [bins], at the grid points from `first` on; overwrite if fresh."""
    whole = int(np.ceil(delay))
    late, early = scale * (1.0 - (whole - delay)), scale * (whole - delay)
    last = len(counts) - 1
    shift = first - whole
    begin = min(max(-shift, 0), len(out))
    end = min(max(last - shift, begin), len(out))
    if fresh:
        out[:] = 0.0
    for k in range(begin, end):
        out[k] += late * counts[k + shift] + early * counts[k + shift + 1]
    for k in range(end, len(out)):
        out[k] += scale * counts[last]


@kernel
def _add_edge_time(
    row: Floats,
    summed: Floats,
    points: Floats,
    first: int,
    far: float,
    near: float,
    scale: float,
    outward: bool,
    out: Floats,
) -> None:
    """Add the user-seconds between marks on each part of an edge that spans `near` to `far` from the root [bins]."""
    sign = 1.0 if outward else -1.0
    parts = len(out)
    for part in range(parts):
        behind, ahead = part / parts, (part + 1) / parts
        if outward:
            behind, ahead = 1.0 - ahead, 1.0 - behind
        low = sign * (near + behind * (far - near)) - first
        high = sign * (near + ahead * (far - near)) - first
        before = 0.0
        for i in range(len(points)):
            value = _integral(row, summed, points[i] + high) - _integral(row, summed, points[i] + low)
            if i > 0:
                out[part, i - 1] += sign * scale * (value - before)
            before = value


@kernel
def _hand_on(row: Floats, fresh: bool, out: Floats) -> None:
    """Add a row to its parent's; overwrite if fresh."""
    if fresh:
        for k in range(len(row)):
            out[k] = row[k]
    else:
        for k in range(len(row)):
            out[k] += row[k]


@kernel
def _farthest(tree_time: Floats, home_node: NDArray[np.int64]) -> float:
    """Return the longest time between a home and the root."""
    longest = 0.0
    for node in home_node:
        longest = max(longest, tree_time[node])
    return longest


@kernel
def _count_children(tree_edge: Ints, edge_end: Ints, children: Ints) -> None:
    children[:] = 0
    for node in range(len(tree_edge)):
        if tree_edge[node] >= 0:
            children[edge_end[tree_edge[node]]] += 1


@kernel
def street_flows(
    tree_time: Floats,
    tree_edge: Ints,
    edge_end: Ints,
    part_offset: NDArray[np.int64],
    outward: bool,
    home_node: NDArray[np.int64],
    toward_time: Floats,
    mass: Floats,
    weight: Floats,
    activity: NDArray[np.int64],
    counts: Floats,
    marks: Floats,
    bin_s: float,
) -> Floats:
    """Return user-seconds on each part of each directed edge between marks, shape (parts, T - 1).

    Counts are indexed by the time at which a user passes the root of the tree. So the flow over an edge
    is the plain sum over the homes behind it, and travel time enters only where an edge is read off.

    Parameters
    ----------
    tree_time
        Time between each node and the root [s], shape (K, N).
    tree_edge
        Edge between each node and its neighbour on the tree, -1 at the root, shape (K, N).
    edge_end
        The end of each edge that is nearer to the root, shape (E,).
    part_offset
        Where the equal parts of each edge begin, shape (E + 1,).
    outward
        Whether users travel to the root, having left home; else they come from it, having ended a visit.
    home_node, toward_time, mass
        Node of each home, its way to each destination [s] and its share of users, shapes (H,), (H, K), (H,).
    weight, activity
        Weight of each destination and its activity, 0 or 1, shape (K,).
    counts
        Departures, or visits that would have ended without any way to travel, shape (H, 2, B + 1).
    marks
        Instants since the start of the day [s], ascending, shape (T,).
    bin_s
        Length of a bin [s].
    """
    destinations, nodes = tree_time.shape
    points = marks / bin_s
    longest = 0.0
    for j in range(destinations):
        longest = max(longest, _farthest(tree_time[j], home_node))
    flow = np.empty((nodes, int(points[-1] - points[0] + longest / bin_s) + 4))
    summed = np.empty(flow.shape[1])
    used = np.zeros(nodes, dtype=np.bool_)
    home_at = np.full(nodes, -1, dtype=np.int64)
    home_at[home_node] = np.arange(len(home_node))
    children = np.empty(nodes, dtype=np.int32)
    spent = np.zeros((part_offset[-1], len(marks) - 1))
    for j in range(destinations):
        reach = _farthest(tree_time[j], home_node) / bin_s
        first = int(points[0] if outward else max(points[0] - reach, 0.0))
        bins = int(points[-1] + (reach if outward else 0.0)) - first + 2
        _count_children(tree_edge[j], edge_end, children)
        for leaf in range(nodes):
            node = leaf
            while children[node] == 0:
                children[node] = -1
                row, h, edge = flow[node, :bins], home_at[node], tree_edge[j, node]
                if h >= 0:
                    delay = toward_time[h, j] / bin_s
                    _add_delayed(
                        counts[h, activity[j]], delay, first, mass[h] * weight[j], not used[node], row
                    )
                    used[node] = True
                if edge < 0:
                    break
                parent = edge_end[edge]
                if used[node]:
                    far, near = tree_time[j, node] / bin_s, tree_time[j, parent] / bin_s
                    begin, end = part_offset[edge], part_offset[edge + 1]
                    _running_integral(row, summed[:bins])
                    _add_edge_time(
                        row, summed[:bins], points, first, far, near, bin_s, outward, spent[begin:end]
                    )
                    _hand_on(row, not used[parent], flow[parent])
                    used[parent] = True
                children[parent] -= 1
                node = parent
        used[:] = False
    return spent
