"""Where users are expected to be: at home, at destinations and on the streets, over any part of the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from geoedge.city.trips import DAY_START_S, HOME, HOUR_S, LEISURE, MODES, STREET, WORK, hour_of
from geoedge.errors import ScenarioError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from geoedge.city.trips import MobilityModel

__all__ = ["BIN_S", "Presence", "expected_presence"]

BIN_S = 120.0
"""Default time step of the computation [s].

At 120 s the street cells of Monaco cannot be told from those of three million simulated users, not even in the
three minutes after departures triple; at 300 s they can, there and only there.
"""


@dataclass(frozen=True, eq=False)
class Presence:
    """Expected time that one user spends at each place, in P pieces of time.

    Pieces are epochs cut at full hours, so that hourly rates are constant within them.

    Parameters
    ----------
    mobility
        The model whose expectation this is.
    epochs
        Start and end of each epoch [s since midnight], shape (n, 2).
    piece_start, piece_end
        Start and end of each piece [s since midnight], shape (P,).
    piece_epoch
        The epoch it belongs to, shape (P,).
    home_s, place_s, street_s
        Seconds at each home, shape (H, P), at each destination, shape (K, P), and on each part of each directed
        edge, shape (parts, P).
    part_offset
        Where the parts of each edge of `mobility.routes.streets` begin, shape (E + 1,); they are of equal
        length and take a user no longer than a time step.
    closure
        Street seconds read off the routes over those that time's balance leaves, out and back, before the
        former were scaled to the latter [–], shape (2, P).
    """

    mobility: MobilityModel
    epochs: NDArray[np.float64]
    piece_start: NDArray[np.float64]
    piece_end: NDArray[np.float64]
    piece_epoch: NDArray[np.int64]
    home_s: NDArray[np.float64]
    place_s: NDArray[np.float64]
    street_s: NDArray[np.float64]
    part_offset: NDArray[np.int64]
    closure: NDArray[np.float64]

    @property
    def activity_s(self) -> NDArray[np.float64]:
        """Seconds of one user by activity and piece, shape (4, P)."""
        activity = self.mobility.destination_activity
        spent = np.zeros((4, len(self.piece_start)))
        spent[HOME] = self.home_s.sum(axis=0)
        spent[WORK] = self.place_s[activity == WORK].sum(axis=0)
        spent[LEISURE] = self.place_s[activity == LEISURE].sum(axis=0)
        spent[STREET] = self.street_s.sum(axis=0)
        return spent

    @property
    def activity_shares(self) -> NDArray[np.float64]:
        """Expected share of users by epoch and activity, shape (n, 4); rows sum to 1."""
        spent = self.activity_s
        shares = np.zeros((len(self.epochs), 4))
        np.add.at(shares, self.piece_epoch, spent.T)
        return shares / np.diff(self.epochs, axis=1)


def expected_presence(
    mobility: MobilityModel, epochs: Sequence[tuple[float, float]], *, bin_s: float = BIN_S
) -> Presence:
    """Return the expected presence of a user who was at home at 03:00, exact up to the time step.

    Parameters
    ----------
    mobility
        The mobility model.
    epochs
        Start and end of each epoch [s since midnight], from 03:00 on; they may lie past midnight, overlap
        or leave gaps.
    bin_s
        Time step, a divisor of an hour [s].

    Raises
    ------
    ScenarioError
        If an epoch or the time step is not what it must be.
    """
    from geoedge.city import _flows

    spans = _checked_epochs(epochs, bin_s)
    marks = _marks(spans)
    since = marks - DAY_START_S
    bins = int(np.ceil(since[-1] / bin_s)) + 2
    rate, choice = _hourly_bins(mobility, bins, bin_s)
    dwell_rate = 1.0 / mobility.dwell_s[[WORK, LEISURE]]
    routes = mobility.routes
    node, mass = _node_mass(mobility)
    toward = np.ascontiguousarray(routes.toward_time[:, node].T)
    loop = np.ascontiguousarray(toward + routes.away_time[:, node].T)
    weight, activity = mobility.destination_weight, mobility.destination_activity - WORK

    left, dwelling = _flows.home_renewal(loop, weight, activity, rate, choice, dwell_rate, bin_s)
    at_home, at_place, moving = _flows.visit_times(
        toward, loop, mass, weight, activity, left, dwelling, since, bin_s
    )
    streets = routes.streets
    parts = np.concatenate([[0], np.cumsum(np.maximum(np.ceil(streets.edge_time / bin_s), 1.0))]).astype(
        np.int64
    )
    out, back = (
        _flows.street_flows(
            time, edge, end, parts, outward, node, toward, mass, weight, activity, counts, since, bin_s
        )
        for time, edge, end, outward, counts in (
            (routes.toward_time, routes.toward_edge, streets.edge_to, True, left),
            (routes.away_time, routes.away_edge, streets.edge_from, False, left - dwelling),
        )
    )
    exact = np.diff(moving, axis=1)
    (out, out_ratio), (back, back_ratio) = _close(out, exact[0]), _close(back, exact[1])
    interval, epoch = _intervals(spans, marks)
    return Presence(
        mobility=mobility,
        epochs=spans,
        piece_start=marks[interval],
        piece_end=marks[interval + 1],
        piece_epoch=epoch,
        home_s=_home_seconds(mobility, node, np.diff(at_home, axis=1)[:, interval]),
        place_s=np.diff(at_place, axis=1)[:, interval],
        street_s=(out + back)[:, interval],
        part_offset=parts,
        closure=np.stack([out_ratio, back_ratio])[:, interval],
    )


def _checked_epochs(epochs: Sequence[tuple[float, float]], bin_s: float) -> NDArray[np.float64]:
    spans = np.asarray(epochs, dtype=np.float64).reshape(-1, 2)
    if not len(spans) or not np.isfinite(spans).all() or (spans[:, 0] >= spans[:, 1]).any():
        msg = "`epochs` must be one or more (start, end) pairs in seconds, each with start < end"
        raise ScenarioError(msg)
    if spans.min() < DAY_START_S:
        msg = (
            f"`epochs` start at {spans.min() / HOUR_S:.2f} h: the simulated day begins at 03:00; "
            f"write hours past midnight as 24 to 27"
        )
        raise ScenarioError(msg)
    if not 0.0 < bin_s <= HOUR_S or abs(HOUR_S / bin_s - round(HOUR_S / bin_s)) > 1e-9:
        msg = f"`bin_s` = {bin_s:g}: must divide an hour, for example 60, 120 or 300"
        raise ScenarioError(msg)
    return spans


def _marks(spans: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return all starts and ends of epochs and the full hours between them, ascending."""
    hours = np.arange(np.ceil(spans.min() / HOUR_S), np.floor(spans.max() / HOUR_S) + 1) * HOUR_S
    return np.unique(np.concatenate([spans.ravel(), hours]))


def _hourly_bins(
    mobility: MobilityModel, bins: int, bin_s: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the departure rate [1/s] and the choice of work and leisure of each bin, shapes (B,), (2, B)."""
    hour = hour_of(DAY_START_S + (np.arange(bins) + 0.5) * bin_s)
    return mobility.departures_per_hour[hour] / HOUR_S, mobility.choice()[WORK:STREET, hour]


def _node_mass(mobility: MobilityModel) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nodes of routes at which users live, with the share of users who do."""
    mass = np.zeros(mobility.routes.streets.node_count)
    for code, mode in enumerate(MODES):
        if mode in mobility.streets:
            share = mobility.mode_share(mode) * mobility.home_probability
            np.add.at(mass, mobility.home_node[code], share)
    node = np.flatnonzero(mass > 0.0)
    return node, mass[node]


def _home_seconds(
    mobility: MobilityModel, node: NDArray[np.int64], at_home: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the seconds at each home from those of the users behind each node, shape (H, T - 1)."""
    seconds = np.zeros((len(mobility.home_building), at_home.shape[1]))
    for code, mode in enumerate(MODES):
        if mode in mobility.streets:
            row = np.searchsorted(node, mobility.home_node[code])
            share = mobility.mode_share(mode) * mobility.home_probability
            seconds += share[:, None] * at_home[row]
    return seconds


def _close(
    flow: NDArray[np.float64], exact: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale what was read off the routes to the exact total, and return the ratio there was."""
    found = flow.sum(axis=0)
    ratio = np.divide(found, exact, out=np.ones_like(exact), where=exact > 1e-12)
    scale = np.divide(exact, found, out=np.zeros_like(exact), where=found > 0.0)
    return flow * scale, ratio


def _intervals(
    spans: NDArray[np.float64], marks: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the intervals between marks that make up the epochs, and the epoch of each, both of shape (P,)."""
    first, last = np.searchsorted(marks, spans[:, 0]), np.searchsorted(marks, spans[:, 1])
    interval = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
    return interval, np.repeat(np.arange(len(spans)), last - first)
