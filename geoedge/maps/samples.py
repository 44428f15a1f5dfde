"""What a page keeps of the records: what was asked, how long requests waited at each site, and where people were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from geoedge.maps.levels import LevelScale, encode_digits
from geoedge.maps.rundata import by_site
from geoedge.results import evenly
from geoedge.theory import relaxation_time, transient_wait_tail, wait_cdf
from geoedge.units import M2_PER_KM2

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from geoedge.city import City
    from geoedge.results import Results

__all__ = ["NO_WAIT_S", "SMOOTH_M", "Served", "lattice", "mix", "people", "waits", "with_people"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TIMES = 25
"""Points of a distribution of waits."""
TAIL = 0.99
"""Share of a site's waits that its chart shows in full."""
SHORTEST_S = 0.05
"""What a chart of waits spans at least [s]."""
SMOOTH_M = 100.0
"""Standard deviation by which people are spread around where they are [m]."""
NO_WAIT_S = 1e-9
"""Waits up to this are none: a service that starts on arrival may differ from it in the last digits [s]."""


def waits(results: Results) -> dict[str, Any] | None:
    """Return the distribution of waits at every site, measured and by Erlang's formula; None if no request is recorded.

    The formula is M/M/c with the site's own arrivals, mean service time and servers in each epoch after the
    warm-up; its distributions are averaged over the epochs by requests, as the measured one is. Arrivals come at the
    rate of the time that a site was open: where it failed, or changed its servers, within an epoch, its load in the
    formula is what was asked for over the servers' seconds that there were. Counted beside it are the epochs of which
    the formula knows least: those beyond capacity, and all that are too short for M/M/c to come to rest, in which the
    load that is measured is hardly known either.

    Parameters
    ----------
    results
        The run.
    """
    if results.records.num_rows == 0:
        return None
    served = Served.of(results)
    times = served.tops()[:, None] * (np.arange(TIMES) / (TIMES - 1)) ** 2
    scale = LevelScale.shares()
    measured, formula = served.measured(), served.erlang(times)
    return {
        "top_s": served.tops().tolist(),
        "scale": scale.described(),
        "measured": [scale.encode(row) for row in measured],
        "erlang": [scale.encode(row) for row in formula],
        "requests": served.count.sum(axis=0).tolist(),
        "overloaded": (served.count * (served.offered >= served.servers) > 0).sum(axis=0).tolist(),
        "restless": (served.count * ~served.rests() > 0).sum(axis=0).tolist(),
    }


class Served:
    """Requests that were served, by epoch and site; those after the warm-up count.

    Parameters
    ----------
    site, epoch
        Site and epoch of each request, shape (m,).
    wait_s, service_s
        Its wait at the site, and the time that it held a server [s], shape (m,).
    counts
        Whether it came after the warm-up, shape (m,).
    shape
        Number of epochs and of sites.

    Attributes
    ----------
    site, wait_s
        Site and wait of the requests that count.
    count, waited_s, asked
        Requests that count, their waits together [s], and all requests, shape (epochs, n).
    service_s, service_scv
        Mean of the services [s] and their squared coefficient of variation, of all requests, shape (epochs, n).
    servers, rate, offered
        Servers, requests per second that the site was open [1/s], and busy servers that they ask for, shape (epochs, n).
    open_s
        How long each site was open in each epoch, with so many servers [s], shape (epochs, n).
    """

    def __init__(
        self,
        site: Ints,
        epoch: Ints,
        wait_s: Floats,
        service_s: Floats,
        counts: NDArray[np.bool_],
        shape: tuple[int, int],
    ) -> None:
        key = epoch * shape[1] + site
        self.site, self.wait_s = site[counts], wait_s[counts]
        self.count = _sums(key[counts], None, shape)
        self.waited_s = _sums(key[counts], self.wait_s, shape)
        self.asked = _sums(key, None, shape)
        some = np.maximum(self.asked, 1)
        self.service_s = _sums(key, service_s, shape) / some
        apart = (service_s - self.service_s.ravel()[key]) ** 2
        square = np.where(self.service_s > 0.0, self.service_s, 1.0) ** 2
        self.service_scv = _sums(key, apart, shape) / some / square
        self.servers = np.ones(shape)
        self.offered = np.zeros(shape)
        self.rate = np.zeros(shape)
        self.open_s = np.ones(shape)
        self._tops: Floats | None = None

    @classmethod
    def of(cls, results: Results) -> Served:
        """Return those of a run."""
        names = ("site", "epoch", "created_s", "wait_s", "started_s", "finished_s")
        site, epoch, created, wait, started, finished = (
            results.records.column(name).to_numpy() for name in names
        )
        servers = by_site(results.epochs, "concurrency")
        kept = (site >= 0) & np.isfinite(finished)
        served = cls(
            site[kept].astype(np.int64),
            epoch[kept].astype(np.int64),
            wait[kept].astype(np.float64),
            (finished - started)[kept].astype(np.float64),
            created[kept] >= results.measured_from_s,
            (servers.shape[0], servers.shape[1]),
        )
        served.servers = np.maximum(servers, 1.0)
        served.open_s = np.maximum(by_site(results.epochs, "server_s") / served.servers, NO_WAIT_S)
        served.rate = served.asked / served.open_s
        served.offered = served.rate * served.service_s
        return served

    def tops(self) -> Floats:
        """Return up to which wait the chart of each site goes [s], shape (n,)."""
        if self._tops is None:
            counts = self.count.sum(axis=0)
            sorted_s = np.append(self.wait_s[np.lexsort((self.wait_s, self.site))], 0.0)
            at = np.cumsum(counts) - counts + np.floor(TAIL * np.maximum(counts - 1, 0)).astype(np.int64)
            tail = np.where(counts > 0, sorted_s[at], 0.0)
            self._tops = np.array([_nice(max(wait, SHORTEST_S)) for wait in tail.tolist()])
        return self._tops

    def measured(self) -> Floats:
        """Return the share of each site's requests that waited at most so long, shape (n, times)."""
        n = self.count.shape[1]
        share = np.maximum(self.wait_s - NO_WAIT_S, 0.0) / self.tops()[self.site]
        level = np.minimum(np.ceil(np.sqrt(share) * (TIMES - 1) - 1e-9), TIMES).astype(np.int64)
        found = np.bincount(self.site * (TIMES + 1) + level, minlength=n * (TIMES + 1)).reshape(n, TIMES + 1)
        total = np.maximum(found.sum(axis=1, keepdims=True), 1)
        return np.asarray(np.cumsum(found[:, :-1], axis=1) / total)

    def erlang(self, times: Floats) -> Floats:
        """Return the same by M/M/c at rest, averaged over the epochs by requests, at times of shape (n, times)."""
        mean = np.zeros(times.shape)
        for count, rate, mu, servers in zip(self.count, self.rate, self._mu, self._whole, strict=True):
            mean += count[:, None] * wait_cdf(times, rate[:, None], mu[:, None], servers[:, None])
        return np.asarray(mean / np.maximum(self.count.sum(axis=0)[:, None], 1))

    def in_time(self, times: Floats) -> Floats:
        """Return the share of all requests that wait longer by M/M/c in the time that it has, at times of shape (times,).

        Every site starts empty with the run, has the rates of each epoch for as long as it is open, and hands its queue
        on to the next.

        Parameters
        ----------
        times
            Waits [s].
        """
        longer = np.zeros(times.shape)
        for i in np.flatnonzero(self.count.sum(axis=0)).tolist():
            rates = self.rate[:, i], self._mu[:, i], self._whole[:, i]
            tail = transient_wait_tail(times, *rates, self.open_s[:, i])
            longer += self.count[:, i] @ tail
        return np.asarray(longer / max(self.count.sum(), 1))

    def rests(self) -> NDArray[np.bool_]:
        """Return at which epochs and sites M/M/c comes to rest while the site is open, shape (epochs, n)."""
        return np.asarray(relaxation_time(self.rate, self._mu, self._whole) <= self.open_s)

    def load_errors(self) -> Floats:
        """Return the relative standard error of each load as measured: of arrivals and of services, shape (epochs, n)."""
        return np.asarray(np.sqrt((1.0 + self.service_scv) / np.maximum(self.asked, 1)))

    def waiting_scv(self) -> float:
        """Return the squared coefficient of variation of services, averaged by time waited; NaN if nobody waited."""
        total = float(self.waited_s.sum())
        return float((self.service_scv * self.waited_s).sum() / total) if total > 0.0 else float("nan")

    @property
    def _mu(self) -> Floats:
        """Service rates [1/s], 1 where nobody was served."""
        return np.asarray(1.0 / np.where(self.service_s > 0.0, self.service_s, 1.0))

    @property
    def _whole(self) -> Ints:
        return np.rint(self.servers).astype(np.int64)


def _sums(key: Ints, values: Floats | None, shape: tuple[int, int]) -> NDArray[Any]:
    """Return how many, or the sum of values, by epoch and site."""
    return np.bincount(key, weights=values, minlength=shape[0] * shape[1]).reshape(shape)


def _nice(value: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is at least so much."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value))


def people(results: Results, city: City, number: int) -> dict[str, Any] | None:
    """Return where some people asked last in every epoch, and what they were doing; None without records.

    Parameters
    ----------
    results
        The run.
    city
        Its city.
    number
        How many people, spread evenly over all that ever asked.
    """
    if results.records.num_rows == 0 or number == 0:
        return None
    names = ("user", "epoch", "created_s", "activity", "x_m", "y_m")
    table = results.records.select(names)
    user = table.column("user").to_numpy()
    everybody = np.unique(user[user >= 0])
    if not len(everybody):
        return None
    chosen = everybody[evenly(len(everybody), number)]
    last = _last_seen(table.filter(np.isin(user, chosen)))
    shape = (int(results.epochs["epoch"].max()) + 1, len(chosen))
    lonlat = np.full((*shape, 2), np.nan)
    activity = np.zeros(shape, dtype=np.int64)
    at = last["epoch"].to_numpy(dtype=np.int64), np.searchsorted(chosen, last["user"].to_numpy())
    lonlat[at] = city.to_lonlat(_places(last))
    activity[at] = last["activity"].to_numpy()
    x, y = (LevelScale.between(lonlat[..., axis]) for axis in (0, 1))
    return {
        "x": [x.encode(row) for row in lonlat[..., 0]],
        "y": [y.encode(row) for row in lonlat[..., 1]],
        "activity": [encode_digits(row) for row in activity],
        "scale_x": x.described(),
        "scale_y": y.described(),
    }


def mix(results: Results) -> list[list[float]] | None:
    """Return the share of every request type in the requests of every epoch; None without records.

    Parameters
    ----------
    results
        The run.
    """
    if results.records.num_rows == 0:
        return None
    epoch, kind = (results.records.column(name).to_numpy() for name in ("epoch", "request_type"))
    shape = (int(results.epochs["epoch"].max()) + 1, len(results.meta["type_names"]))
    key = epoch.astype(np.int64) * shape[1] + kind
    count = np.bincount(key, minlength=shape[0] * shape[1]).reshape(shape)
    total = count.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, count / np.maximum(total, 1), count.sum(axis=0) / count.sum())
    return [[round(float(share), 5) for share in row] for row in shares]


def with_people(cells: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return cells with the density of those who asked in each epoch, where each of them last did; as they are without records.

    Everybody is spread around that place by a normal law, over the cells alone, so that nobody is lost at the edge of
    the land.

    Parameters
    ----------
    cells
        One row an epoch and cell: epoch, x_m, y_m, cell_m.
    results
        The run.
    """
    if results.records.num_rows == 0:
        return cells
    from scipy.ndimage import gaussian_filter

    size = float(cells["cell_m"].iloc[0])
    xy = _places(cells)
    last = _last_seen(results.records.select(["user", "epoch", "created_s", "x_m", "y_m"]))
    corner = xy.min(axis=0) - size / 2
    epoch = cells["epoch"].to_numpy(dtype=np.int64)
    row, column = lattice(xy, corner, size)
    land = np.zeros((row.max() + 1, column.max() + 1))
    land[row, column] = 1.0
    count = np.zeros((int(epoch.max()) + 1, *land.shape))
    at = lattice(_places(last), corner, size)
    inside = np.all([(a >= 0) & (a < most) for a, most in zip(at, land.shape, strict=True)], axis=0)
    np.add.at(count, (last["epoch"].to_numpy(dtype=np.int64)[inside], at[0][inside], at[1][inside]), 1.0)
    spread = SMOOTH_M / size
    kept = gaussian_filter(land, spread, mode="constant")
    shared = np.divide(count * land, kept, where=land > 0, out=np.zeros_like(count))
    density: Floats = gaussian_filter(shared, (0.0, spread, spread), mode="constant") * M2_PER_KM2 / size**2
    return cells.assign(people_per_km2=density[epoch, row, column])


def lattice(xy: Floats, corner: Floats, size: float) -> tuple[Ints, Ints]:
    """Return row and column of places on a lattice of square cells.

    Parameters
    ----------
    xy
        Places [m], shape (n, 2).
    corner
        The lattice's lower left corner [m], shape (2,).
    size
        Side of a cell [m].
    """
    column, row = np.floor((xy - corner) / size).astype(np.int64).T
    return row, column


def _places(table: pd.DataFrame) -> Floats:
    return table[["x_m", "y_m"]].to_numpy(dtype=np.float64)


def _last_seen(records: pa.Table) -> pd.DataFrame:
    """Return the last request of each person in each epoch."""
    table = records.to_pandas()
    rows: pd.DataFrame = table[table["user"] >= 0].sort_values("created_s", kind="stable")
    return rows.drop_duplicates(["epoch", "user"], keep="last")
