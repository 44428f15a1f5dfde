"""A queue known by measurement alone: waits tabulated by concurrency and utilisation, and a wait model made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import PchipInterpolator

from geoedge.errors import GeoEdgeError
from geoedge.theory._scale_free import ScaleFreeQueue, load_by_load
from geoedge.theory.checks import shown
from geoedge.theory.queueing import erlang_c, log_wait_and_elasticity

__all__ = ["TabulatedQueue"]

FloatArray = NDArray[np.float64]

_DEPTHS = np.linspace(0.0, 7.0, 57)  # −log of the share of those who wait that waits longer
_TOO_LONG = 1.25  # mean of the waits up to the last quantile, in the mean of all, that cannot be
_TAIL = 3.0  # how much longer or shorter than at the last quantile the tail may be
_BEHIND = 25  # waits that a quantile taken from a sample leaves above itself
_LEAST_WAITS = 200


@dataclass(frozen=True, eq=False)
class _Table:
    """The rows of one concurrency."""

    utilization: FloatArray
    wait: PchipInterpolator
    """log mean wait by that of M/M/c, in services."""
    waiting: PchipInterpolator
    """Probability of waiting by that of M/M/c."""
    profile: FloatArray
    """Waits of those who wait, in their mean, by depth, shape (rows, depths)."""

    def log_wait(self, of_erlang: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log of the mean wait where M/M/c has this one, and its derivative by it."""
        first, last = self.wait.x[0], self.wait.x[-1]
        inside = np.clip(of_erlang, first, last)
        slope = np.where((of_erlang < first) | (of_erlang > last), 1.0, self.wait(inside, 1))
        # a piece may end flat, where Newton must give way to its bracket rather than divide by zero
        return np.asarray(self.wait(inside) + (of_erlang - inside)), np.maximum(slope, 1e-12)

    def depths_at(self, utilization: float) -> FloatArray:
        """Return the waits of those who wait, in their mean, by depth."""
        if len(self.utilization) == 1:
            return np.asarray(self.profile[0])
        rho = min(max(utilization, float(self.utilization[0])), float(self.utilization[-1]))
        k = min(max(int(np.searchsorted(self.utilization, rho)), 1), len(self.utilization) - 1)
        low, high = self.utilization[k - 1], self.utilization[k]
        share = (rho - low) / (high - low)
        return np.asarray((1.0 - share) * self.profile[k - 1] + share * self.profile[k])


@dataclass(frozen=True, eq=False)
class TabulatedQueue(ScaleFreeQueue):
    """A queue from a table of waits; made by `from_rows` or `from_samples`.

    Between rows, log mean waits and probabilities of waiting are monotone cubics of those of M/M/c at the same
    utilisation; the shape of the distribution goes over from row to row. Beyond the rows the ratio to the wait of M/M/c
    stays, so that the wait vanishes with the load and has no bound at capacity.

    Raises
    ------
    GeoEdgeError
        If it is made of anything else than the tables that these two make.
    """

    tables: Mapping[int, _Table]

    def __post_init__(self) -> None:
        """Say in one line that there is no table."""
        known = isinstance(self.tables, Mapping) and all(isinstance(t, _Table) for t in self.tables.values())
        if not known or not self.tables:
            msg = (
                f"TabulatedQueue: `tables` is {shown(self.tables)}, but must be tables of waits; "
                "make them by `from_rows` or `from_samples`"
            )
            raise GeoEdgeError(msg)

    @classmethod
    def from_rows(
        cls,
        concurrency: ArrayLike,
        utilization: ArrayLike,
        mean_wait: ArrayLike,
        waiting_probability: ArrayLike,
        *,
        levels: ArrayLike = (),
        quantiles: ArrayLike | None = None,
    ) -> TabulatedQueue:
        """Return the queue of a table, in any order of its rows.

        Parameters
        ----------
        concurrency
            Servers c of each row, shape (n,).
        utilization
            ρ of each row, in (0, 1), shape (n,).
        mean_wait
            Mean wait of all arrivals in mean service times, positive and growing with ρ, shape (n,).
        waiting_probability
            Probability of any wait, in (0, 1], not falling with ρ, shape (n,).
        levels
            Probabilities of the quantiles, over all arrivals, growing, shape (k,); without them, those who wait do
            so for an exponential time.
        quantiles
            Waits kept with these probabilities, in mean service times, shape (n, k).

        Raises
        ------
        GeoEdgeError
            If rows are missing or contradict each other: two rows of a concurrency at least, waits that grow with ρ.
        """
        columns = [
            np.asarray(x, dtype=np.float64)
            for x in (concurrency, utilization, mean_wait, waiting_probability)
        ]
        level = np.asarray(levels, dtype=np.float64)
        waits = (
            np.empty((columns[0].size, 0)) if quantiles is None else np.asarray(quantiles, dtype=np.float64)
        )
        _check_shapes(columns, level, waits)
        tables = {}
        for c in np.unique(columns[0]):
            mine = np.flatnonzero(columns[0] == c)
            mine = mine[np.argsort(columns[1][mine])]
            rho, mean, waiting = (x[mine] for x in columns[1:])
            tables[int(c)] = _table(int(c), rho, mean, waiting, level, waits[mine])
        return cls(tables)

    @classmethod
    def from_samples(
        cls, samples: Mapping[tuple[int, float], ArrayLike], *, mean_service: float = 1.0
    ) -> TabulatedQueue:
        """Return the queue of measured or simulated waits.

        Parameters
        ----------
        samples
            Waits [s] by concurrency and utilisation, those of zero included, shape (n,) each; free of warm-up.
        mean_service
            Mean service time in all of them [s].

        Raises
        ------
        GeoEdgeError
            If a sample has fewer than 200 waits that are not zero, or the rows contradict each other.
        """
        rows = []
        for (servers, rho), values in samples.items():
            waits = np.asarray(values, dtype=np.float64) / mean_service
            long = np.sort(waits[waits > 0.0])
            if long.size < _LEAST_WAITS or not np.isfinite(long).all():
                msg = (
                    f"TabulatedQueue: the sample of {servers} servers at {rho:g} has {long.size} finite waits above "
                    f"zero, not {_LEAST_WAITS}; give more requests, or leave it out"
                )
                raise GeoEdgeError(msg)
            depth = _DEPTHS[np.log(long.size / _BEHIND) >= _DEPTHS]
            shape = np.interp(-np.expm1(-depth) * (long.size - 1), np.arange(long.size), long)
            rows.append((servers, rho, waits.mean(), long.size / waits.size, depth[1:], shape[1:]))
        return cls(_grouped(rows))

    def _of(self, servers: float) -> _Table:
        table = self.tables.get(int(servers))
        if table is None:
            msg = (
                f"TabulatedQueue: no row for {int(servers)} servers, only for {sorted(self.tables)}; "
                "measure it too, or take another queue"
            )
            raise GeoEdgeError(msg)
        return table

    def _curve(
        self, load: FloatArray, servers: FloatArray, slack: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        of_erlang, elasticity = log_wait_and_elasticity(load, servers, slack)
        value, slope = np.empty(load.shape), np.empty(load.shape)
        for c in np.unique(servers):
            mine = servers == c
            value[mine], slope[mine] = self._of(float(c)).log_wait(of_erlang[mine])
        return value, slope * elasticity

    def _tail(self, time: FloatArray, load: FloatArray, servers: FloatArray) -> FloatArray:
        return load_by_load(self._one_tail, time, load, servers)

    def _one_tail(self, time: FloatArray, load: float, servers: int) -> FloatArray:
        table = self._of(servers)
        waiting = float(np.clip(table.waiting(erlang_c(load, servers)), 0.0, 1.0))
        a, c = np.array(load), np.array(float(servers))
        mean = np.exp(table.log_wait(log_wait_and_elasticity(a, c, c - a)[0])[0])
        if waiting == 0.0:
            return np.zeros(time.shape)
        relative = time * (waiting / mean)
        shape = table.depths_at(load / servers)
        last = (shape[-1] - shape[-2]) / (_DEPTHS[-1] - _DEPTHS[-2])
        beyond = np.maximum(relative - shape[-1], 0.0) / last
        return np.asarray(waiting * np.exp(-np.interp(relative, shape, _DEPTHS) - beyond))


def _grouped(rows: list[tuple[int, float, float, float, FloatArray, FloatArray]]) -> dict[int, _Table]:
    """Return the tables of rows with depths and waits of their own."""
    tables = {}
    for servers in sorted({row[0] for row in rows}):
        mine = sorted((row for row in rows if row[0] == servers), key=lambda row: row[1])
        rho, mean, waiting = (np.array([row[k] for row in mine], dtype=np.float64) for k in (1, 2, 3))
        _check_rows(servers, rho, mean, waiting)
        shapes = [_profile(servers, *row[1:]) for row in mine]
        tables[servers] = _made(servers, rho, mean, waiting, np.array(shapes))
    return tables


def _table(
    servers: int,
    rho: FloatArray,
    mean: FloatArray,
    waiting: FloatArray,
    level: FloatArray,
    quantiles: FloatArray,
) -> _Table:
    """Return the table of one concurrency, its rows in order of utilisation."""
    _check_rows(servers, rho, mean, waiting)
    shapes = []
    for k in range(rho.size):
        long = (1.0 - level) < waiting[k]
        depth = np.log(waiting[k] / (1.0 - level[long]))
        shapes.append(
            _profile(servers, float(rho[k]), float(mean[k]), float(waiting[k]), depth, quantiles[k][long])
        )
    return _made(servers, rho, mean, waiting, np.array(shapes))


def _made(servers: int, rho: FloatArray, mean: FloatArray, waiting: FloatArray, shapes: FloatArray) -> _Table:
    c = np.full(rho.shape, float(servers))
    of_erlang, _ = log_wait_and_elasticity(rho * c, c, c - rho * c)
    erlang = np.concatenate([[0.0], erlang_c(rho * c, c), [1.0]])
    anchored = np.concatenate([[0.0], waiting, [1.0]])
    return _Table(
        rho, PchipInterpolator(of_erlang, np.log(mean)), PchipInterpolator(erlang, anchored), shapes
    )


def _profile(
    servers: int, rho: float, mean: float, waiting: float, depth: FloatArray, waits: FloatArray
) -> FloatArray:
    """Return waits in their mean at the common depths: monotone cubics between quantiles, exponential beyond.

    The tail beyond the last quantile is as long as the mean asks for, within reason, as cubics between few quantiles
    say little of it.
    """
    x, z = np.append(0.0, depth), np.append(0.0, waits) * waiting / mean
    if not ((np.diff(x) > 0.0).all() and (np.diff(z) > 0.0).all()):
        msg = (
            f"TabulatedQueue: quantiles of {servers} servers at {rho:g} must grow with their levels; "
            f"not {np.round(waits, 6).tolist()}"
        )
        raise GeoEdgeError(msg)
    if x.size == 1:
        return _DEPTHS.copy()
    known = np.append(_DEPTHS[x[-1] > _DEPTHS], x[-1])
    shape = PchipInterpolator(x, z)(known)
    reached = float((np.diff(shape) / np.diff(known)) @ -np.diff(np.exp(-known)))
    if reached > _TOO_LONG:
        msg = (
            f"TabulatedQueue: the quantiles of {servers} servers at {rho:g} are too long for a mean wait of {mean:g} "
            "services; check that both are in mean service times"
        )
        raise GeoEdgeError(msg)
    last = (shape[-1] - shape[-2]) / (known[-1] - known[-2])
    tail = np.clip((1.0 - reached) * np.exp(x[-1]), last / _TAIL, last * _TAIL)
    return np.asarray(np.interp(_DEPTHS, known, shape) + np.maximum(_DEPTHS - x[-1], 0.0) * tail)


def _check_shapes(columns: list[FloatArray], level: FloatArray, waits: FloatArray) -> None:
    rows = columns[0].size
    if rows == 0 or any(x.shape != (rows,) for x in columns) or waits.shape != (rows, level.size):
        msg = (
            f"TabulatedQueue: columns must have one length and `quantiles` shape (rows, levels), not "
            f"{[x.shape for x in columns]} and {waits.shape}"
        )
        raise GeoEdgeError(msg)
    if not (((level > 0.0) & (level < 1.0)).all() and (np.diff(level) > 0.0).all()):
        msg = f"TabulatedQueue: `levels` must grow inside (0, 1), not {level.tolist()}"
        raise GeoEdgeError(msg)
    if not (np.isfinite(np.concatenate([*columns, waits.ravel()])).all()):
        msg = "TabulatedQueue: the table holds a value that is not finite; leave such rows out"
        raise GeoEdgeError(msg)
    if not ((columns[0] >= 1.0) & (columns[0] == np.rint(columns[0]))).all():
        msg = f"TabulatedQueue: `concurrency` must hold positive integers, not {columns[0].tolist()}"
        raise GeoEdgeError(msg)


def _check_rows(servers: int, rho: FloatArray, mean: FloatArray, waiting: FloatArray) -> None:
    """Refuse rows of one concurrency that are too few or contradict each other."""
    where = f"TabulatedQueue: for {servers} servers"
    if rho.size < 2:
        msg = f"{where} there is one row, at {rho.tolist()}; give at least two"
    elif not ((rho > 0.0) & (rho < 1.0)).all() or not (np.diff(rho) > 0.0).all():
        msg = f"{where} utilisations must lie in (0, 1), each given once, not {rho.tolist()}"
    elif not (mean > 0.0).all() or not (np.diff(mean) > 0.0).all():
        msg = f"{where} mean waits must be positive and grow with the utilisation, not {np.round(mean, 6).tolist()}"
    elif not ((waiting > 0.0) & (waiting <= 1.0)).all() or not (np.diff(waiting) >= 0.0).all():
        msg = f"{where} probabilities of waiting must lie in (0, 1] and not fall, not {np.round(waiting, 6).tolist()}"
    else:
        return
    raise GeoEdgeError(msg)
