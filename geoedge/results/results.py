"""What a run says: its records and tables, and the numbers that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from geoedge.answers import answer_metrics
from geoedge.errors import GeoEdgeError
from geoedge.results.folder import read_folder, write_folder
from geoedge.results.records import REDIRECT, STATUS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["Results"]


@dataclass(frozen=True, eq=False)
class Results:
    """A run: one record a request, tables per epoch and step, and where it all came from.

    After the horizon no request is added and the queues drain. Service is first come, first served, so later
    arrivals could hardly have changed a recorded TTFT: only one that is nearer can overtake a request that is on
    the air at the horizon. `status` tells what each request was at that time.

    A request that was rejected has no site (-1) and an infinite TTFT: coverage and quantiles count it as a miss,
    while means of times, shares and distances are those of the requests that were taken.

    Parameters
    ----------
    label
        Name of the run in tables.
    records
        One row a request, columns of ``RECORD_COLUMNS``; times in seconds since midnight.
    sites
        One row a site: site, name, kind, street, lon, lat, x_m, y_m, profile (at the start).
    epochs
        One row an epoch and site.
    series
        One row a step.
    actions
        The controller's log.
    meta
        Seed, window, target, names, versions and checksums.
    tables
        Further tables by name, such as ``answers``, ``ensemble`` and ``paths``.
    scenario_toml
        The scenario as TOML.
    """

    label: str
    records: pa.Table
    sites: pd.DataFrame
    epochs: pd.DataFrame
    series: pd.DataFrame
    actions: pd.DataFrame
    meta: dict[str, Any]
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    scenario_toml: str = ""

    # -- what is measured: all that lies after the warm-up ------------------------------------------

    @property
    def measured_from_s(self) -> float:
        """End of the warm-up [s since midnight]."""
        return float(self.meta["start_s"] + self.meta["warm_up_s"])

    @property
    def measured_epochs(self) -> pd.DataFrame:
        """Rows of the table of epochs that lie after the warm-up, which ends with an epoch."""
        rows: pd.DataFrame = self.epochs[self.epochs["start_s"] >= self.measured_from_s]
        return rows

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of the records after the warm-up.

        Parameters
        ----------
        name
            One of `RECORD_COLUMNS`.
        """
        return np.asarray(self.records.column(name).to_numpy()[self._window])

    @cached_property
    def _window(self) -> NDArray[np.bool_]:
        return np.asarray(self.records.column("created_s").to_numpy() >= self.measured_from_s)

    def _taken(self, name: str) -> NDArray[Any]:
        """Return one column of the measured requests that were not rejected."""
        return np.asarray(self.column(name)[self.column("site") >= 0])

    @property
    def streets(self) -> list[str]:
        """Name of the street at which each site stands; empty where none is near, or the run is older than that."""
        return list(self.sites["street"]) if "street" in self.sites else [""] * len(self.sites)

    @property
    def requests(self) -> int:
        """Requests created after the warm-up."""
        return int(self._window.sum())

    # -- the questions all three answers share ---------------------------------------------------

    def ttft_coverage(self, tau: float) -> float:
        """Return the share of requests with TTFT at most `tau` [s]."""
        return float(np.mean(self.column("ttft_s") <= tau))

    def ttft_quantile(self, probability: float) -> float:
        """Return the TTFT [s] that a share `probability` of requests meets."""
        ttft = self.column("ttft_s")
        method: Literal["linear", "higher"] = "linear" if np.isfinite(ttft).all() else "higher"
        return float(np.quantile(ttft, probability, method=method))

    @property
    def mean_ttft(self) -> float:
        """Mean TTFT of the requests that were taken [s]; NaN where none was."""
        return _mean(self._taken("ttft_s"))

    def parts(self) -> dict[str, float]:
        """Return the mean radio delay, wait and prefill time [s]; NaN where no request was taken.

        Where redirections take time, what they took is there too, as ``redirect``.
        """
        names = ["radio", "wait", "prefill"] + ["redirect"] * (REDIRECT in self.records.column_names)
        return {part: _mean(self._taken(f"{part}_s")) for part in names}

    @property
    def profile_share(self) -> NDArray[np.float64]:
        """Share of requests served by each profile, shape (S,); NaN where none was served."""
        counts = np.bincount(self._taken("profile"), minlength=len(self.meta["profile_names"]))
        return counts / counts.sum() if counts.any() else np.full(len(counts), np.nan)

    def offloading_ratio(self, by: Literal["tokens", "prefill_time"] = "tokens") -> float:
        """Return the share of prompt tokens, or of prefill time, that caches save, Eq. (45); NaN of no request.

        Parameters
        ----------
        by
            What is counted: tokens of the prompts, or their prefill time.
        """
        if by == "tokens":
            full = self._uncached("prompt_tokens", "context_tokens")
            return _share(self._taken("hit_tokens").sum(), full.sum())
        full = self._uncached("full_prefill_s", "full_prefill_s")
        return 1.0 - _share(self._taken("prefill_s").sum(), full.sum())

    def _uncached(self, by_type: str, by_request: str) -> NDArray[np.float64]:
        """Return a number of requests that were taken: their own in a run with sessions, else that of their type."""
        if by_request in self.records.column_names:
            return np.asarray(self._taken(by_request), dtype=np.float64)
        return np.asarray(np.asarray(self.meta[by_type], dtype=np.float64)[self._taken("request_type")])

    @property
    def rejected_share(self) -> float:
        """Share of requests that no site took."""
        return float(np.mean(self.column("site") < 0))

    @property
    def mean_serving_distance(self) -> float:
        """Mean distance to the serving site [km]; NaN where no request was taken."""
        return _mean(self._taken("distance_km"))

    @property
    def mean_utilization(self) -> float:
        """Busy servers over servers after the warm-up, all sites together; NaN where there was none."""
        after = self.measured_epochs
        return _share((after.utilization * after.server_s).sum(), after.server_s.sum())

    def metrics(self) -> dict[str, float]:
        """Return one number for each metric and each profile's share of requests.

        Raises
        ------
        GeoEdgeError
            If no request was created after the warm-up.
        """
        if not self.requests:
            msg = "the run has no request after the warm-up; raise demand.users, their rate, or simulation.duration_s"
            raise GeoEdgeError(msg)
        return answer_metrics(self, self.meta["ttft_target_s"], self.meta["profile_names"])

    def status_counts(self) -> dict[str, int]:
        """Return how many requests were served, in service, waiting, in flight or rejected at the horizon."""
        counts = np.bincount(self.records.column("status").to_numpy(), minlength=len(STATUS))
        return {name: int(count) for name, count in zip(STATUS, counts, strict=True)}

    def site_table(self, tau: float | None = None) -> pd.DataFrame:
        """Return the sites with their requests, misses and load, most misses first.

        ``utilization`` is busy seconds over servers' seconds, 0 where a site never had a server; ``mean_wait_s`` is over
        the requests that the site took, ``prefill_s_per_s`` over epochs, which are equally long.

        Parameters
        ----------
        tau
            TTFT target [s]; the scenario's by default.
        """
        import pandas as pd

        target = self.meta["ttft_target_s"] if tau is None else tau
        site, count = self._taken("site"), len(self.sites)
        after = self.measured_epochs
        prefill = after.groupby("site")["prefill_s_per_s"].mean().reindex(range(count))
        rejected = after.groupby("site")["rejected"].sum().reindex(range(count), fill_value=0).to_numpy()
        taken = np.bincount(site, minlength=count)
        requests = taken + rejected
        missed = np.bincount(site, weights=self._taken("ttft_s") > target, minlength=count) + rejected
        waits = np.bincount(site, weights=self._taken("wait_s"), minlength=count)
        served = np.maximum(requests, 1)
        table = pd.DataFrame(
            {
                "site": self.sites["site"].to_numpy(),
                "name": self.sites["name"].to_numpy(),
                "kind": self.sites["kind"].to_numpy(),
                "street": self.streets,
                "requests": requests,
                "missed": missed.astype(np.int64),
                "missed_share": missed / served,
                "share_of_all_misses": missed / max(missed.sum(), 1.0),
                "mean_wait_s": waits / np.maximum(taken, 1),
                "utilization": _busy_share(after, count),
                "prefill_s_per_s": prefill.to_numpy(),
            }
        )
        return table.sort_values(["missed", "site"], ascending=[False, True], kind="stable").reset_index(
            drop=True
        )

    # -- on disk -----------------------------------------------------------------------------------

    def with_tables(self, **tables: pd.DataFrame) -> Self:
        """Return the same results with further tables.

        Parameters
        ----------
        **tables
            Tables by the name of their file in a run folder.
        """
        return replace(self, tables=self.tables | tables)

    def with_meta(self, **meta: Any) -> Self:
        """Return the same results with further facts.

        Parameters
        ----------
        **meta
            Facts that a run folder keeps with the run, by name.
        """
        return replace(self, meta=self.meta | meta)

    def save(self, folder: str | Path, pages: Mapping[str, str] | None = None) -> Path:
        """Write the run folder, whole or not at all.

        An existing run folder is replaced; anything else that stands there is left alone.

        Parameters
        ----------
        folder
            Where the folder is to be.
        pages
            Further text files of the folder, such as the map, by name.

        Raises
        ------
        OutputError
            If the folder cannot be written, or is not a run folder.
        """
        return write_folder(self, folder, pages or {})

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a run folder.

        Parameters
        ----------
        folder
            A folder that `save` wrote.

        Raises
        ------
        OutputError
            If it is no complete run folder.
        """
        return cls(**read_folder(folder))


def _busy_share(epochs: pd.DataFrame, count: int) -> NDArray[np.float64]:
    """Return busy seconds over servers' seconds of every site, shape (count,); 0 without servers."""
    parts = (epochs["utilization"] * epochs["server_s"], epochs["server_s"])
    busy, servers = (np.bincount(epochs["site"], weights=part, minlength=count) for part in parts)
    return np.divide(busy, servers, out=np.zeros(count), where=servers > 0)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")
