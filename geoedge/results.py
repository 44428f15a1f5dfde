"""Results: what a run leaves behind, the metrics that follow from it, and its folder on disk."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from geoedge.answers import answer_metrics
from geoedge.errors import GeoEdgeError, OutputError
from geoedge.files import folder_for, has_room

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

__all__ = ["RECORD_COLUMNS", "STATUS", "Results", "batch_interval", "check_writable"]

STATUS = ("served", "in_service", "waiting", "in_flight", "rejected")
"""What a request is at the horizon; the column ``status`` holds the index."""

RECORD_COLUMNS: Mapping[str, str] = {
    "created_s": "float64",
    "user": "int32",
    "request_type": "int16",
    "activity": "int8",
    "x_m": "float64",
    "y_m": "float64",
    "epoch": "int16",
    "site": "int32",
    "profile": "int16",
    "hit_tokens": "int32",
    "distance_km": "float64",
    "radio_s": "float64",
    "arrived_s": "float64",
    "started_s": "float64",
    "wait_s": "float64",
    "prefill_s": "float64",
    "ttft_s": "float64",
    "first_token_s": "float64",
    "finished_s": "float64",
    "redirects": "int16",
    "status": "int8",
}
"""Columns of a run's records, one row a request, and their types; instants and times in seconds."""

_TABLES = ("epochs", "series", "actions")
_RECORDS, _SITES, _META, _SCENARIO = "requests.parquet", "sites.parquet", "provenance.json", "scenario.toml"


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
        One row a site: site, name, kind, lon, lat, x_m, y_m, profile (at the start).
    epochs
        One row an epoch and site.
    series
        One row a step.
    actions
        The controller's log.
    meta
        Seed, window, target, names, versions and checksums.
    tables
        Further tables by name, such as ``answers`` and ``ensemble``.
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
        return self._measured(name)

    def _measured(self, name: str) -> NDArray[Any]:
        return np.asarray(self.records.column(name).to_numpy()[self._window])

    @cached_property
    def _window(self) -> NDArray[np.bool_]:
        return np.asarray(self.records.column("created_s").to_numpy() >= self.measured_from_s)

    def _taken(self, name: str) -> NDArray[Any]:
        """Return one column of the measured requests that were not rejected."""
        return np.asarray(self._measured(name)[self._measured("site") >= 0])

    @property
    def requests(self) -> int:
        """Requests created after the warm-up."""
        return int(self._window.sum())

    # -- the questions all three answers share ---------------------------------------------------

    def ttft_coverage(self, tau: float) -> float:
        """Return the share of requests with TTFT at most `tau` [s]."""
        return float(np.mean(self._measured("ttft_s") <= tau))

    def ttft_quantile(self, probability: float) -> float:
        """Return the TTFT [s] that a share `probability` of requests meets."""
        ttft = self._measured("ttft_s")
        method: Literal["linear", "higher"] = "linear" if np.isfinite(ttft).all() else "higher"
        return float(np.quantile(ttft, probability, method=method))

    @property
    def mean_ttft(self) -> float:
        """Mean TTFT of the requests that were taken [s]; NaN where none was."""
        return _mean(self._taken("ttft_s"))

    def parts(self) -> dict[str, float]:
        """Return the mean radio delay, wait and prefill time [s]; NaN where no request was taken."""
        return {part: _mean(self._taken(f"{part}_s")) for part in ("radio", "wait", "prefill")}

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
        return float(np.mean(self._measured("site") < 0))

    @property
    def mean_serving_distance(self) -> float:
        """Mean distance to the serving site [km]; NaN where no request was taken."""
        return _mean(self._taken("distance_km"))

    @property
    def mean_utilization(self) -> float:
        """Busy servers over servers after the warm-up, all sites together."""
        after = self.measured_epochs
        return float((after.utilization * after.server_s).sum() / after.server_s.sum())

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
        target = Path(folder).expanduser().absolute()
        check_writable(target)
        partial = _beside(target)
        try:
            with folder_for(target):
                self._write_whole(partial, target, pages or {})
        except OSError as error:
            msg = f"`output` {str(target)!r} cannot be written ({error.strerror}); name a folder you may write to"
            raise OutputError(msg) from None
        return target

    def _write_whole(self, partial: Path, target: Path, pages: Mapping[str, str]) -> None:
        try:
            partial.mkdir()
            self._write(partial)
            for name, text in pages.items():
                (partial / name).write_text(text, encoding="utf-8", newline="\n")
            _swap(partial, target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _write(self, folder: Path) -> None:
        import geopandas as gpd
        import pyarrow.parquet as pq

        pq.write_table(self.records, folder / _RECORDS, compression="zstd")
        points = gpd.points_from_xy(self.sites.lon, self.sites.lat)
        gpd.GeoDataFrame(self.sites, geometry=points, crs="EPSG:4326").to_parquet(folder / _SITES)
        tables = self._all_tables()
        for name, table in tables.items():
            table.to_parquet(folder / f"{name}.parquet", index=False)
        (folder / _SCENARIO).write_text(self.scenario_toml, encoding="utf-8")
        sums = self.meta.get("checksums", {}) | {"scenario": sha256(self.scenario_toml.encode()).hexdigest()}
        written = datetime.now(UTC).isoformat(timespec="seconds")
        rows = {name: len(table) for name, table in tables.items()}
        meta = {"label": self.label, **self.meta, "checksums": sums, "tables": rows, "written": written}
        (folder / _META).write_text(json.dumps(meta, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def _all_tables(self) -> dict[str, pd.DataFrame]:
        return {name: getattr(self, name) for name in _TABLES} | dict(sorted(self.tables.items()))

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
        import geopandas as gpd
        import pandas as pd
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = Path(folder)
        try:
            meta = json.loads((path / _META).read_text(encoding="utf-8"))
            for name in ("written", "label", "tables"):
                if name not in meta:
                    msg = f"{_META} does not state {name!r}"
                    raise ValueError(msg)
            del meta["written"]
            tables = {name: pd.read_parquet(path / f"{name}.parquet") for name in meta["tables"]}
            wrong = [name for name, rows in meta.pop("tables").items() if len(tables[name]) != rows]
            if wrong:
                msg = f"{wrong[0]}.parquet has another number of rows than was written"
                raise ValueError(msg)
            records = pq.read_table(path / _RECORDS)
            lacking = [name for name in RECORD_COLUMNS if name not in records.column_names]
            if lacking:
                msg = f"{_RECORDS} of an older version has no column {lacking[0]}; run the scenario again"
                raise ValueError(msg)
            sites = pd.DataFrame(gpd.read_parquet(path / _SITES).drop(columns="geometry"))
            return cls(
                label=meta.pop("label"),
                records=records,
                sites=sites,
                epochs=tables.pop("epochs"),
                series=tables.pop("series"),
                actions=tables.pop("actions"),
                meta=meta,
                tables=tables,
                scenario_toml=(path / _SCENARIO).read_text(encoding="utf-8"),
            )
        except (OSError, KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
            reason = (
                "there is no such folder"
                if not path.is_dir()
                else f"it is incomplete ({error})".splitlines()[0]
            )
            msg = (
                f"`run` {str(folder)!r} is not a run folder: {reason}; give a folder that `geoedge run` wrote"
            )
            raise OutputError(msg) from None


def _busy_share(epochs: pd.DataFrame, count: int) -> NDArray[np.float64]:
    """Return busy seconds over servers' seconds of every site, shape (count,); 0 without servers."""
    parts = (epochs["utilization"] * epochs["server_s"], epochs["server_s"])
    busy, servers = (np.bincount(epochs["site"], weights=part, minlength=count) for part in parts)
    return np.divide(busy, servers, out=np.zeros(count), where=servers > 0)


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else float("nan")


def check_writable(target: Path) -> None:
    """Raise before hours of work are spent where nothing can be written.

    Parameters
    ----------
    target
        The run folder to be.

    Raises
    ------
    OutputError
        If something other than a run folder stands there, or its parent cannot be written.
    """
    if not has_room(target) or (target.is_dir() and not os.access(target, os.R_OK)):
        msg = f"`output` {str(target)!r} cannot be written there; name a folder you may write to"
        raise OutputError(msg)
    strange = sorted(each.name for each in target.iterdir() if not _is_ours(each)) if target.is_dir() else []
    if strange and (target / _META).is_file():
        msg = f"`output` {str(target)!r} holds files that are not of a run ({strange[0]}); move them, or name a new folder"
        raise OutputError(msg)
    if target.exists() and not (target / _META).is_file() and (target.is_file() or any(target.iterdir())):
        msg = f"`output` {str(target)!r} exists and is not a run folder; name a new folder, or an old run to replace"
        raise OutputError(msg)


def _is_ours(path: Path) -> bool:
    return path.suffix == ".parquet" or path.name in (_META, _SCENARIO, "map.html")


def _beside(target: Path) -> Path:
    """Return a new name in the same folder, so that a rename is all that is left to do."""
    return target.with_name(f".{target.name}-{secrets.token_hex(4)}")


def _swap(partial: Path, target: Path) -> None:
    """Put a whole folder in the place of another; whatever happens, one of the two stands there."""
    old = _beside(target)
    try:
        if target.exists():
            target.rename(old)
        partial.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def batch_interval(
    results: Results, metric: Callable[[NDArray[np.float64]], float], *, batches: int = 20
) -> tuple[float, float, float]:
    """Return a mean of TTFT batches and its 95 % interval, for one stationary run.

    Batch means serve stationary runs only; a run whose demand shifts takes paired replications.

    Parameters
    ----------
    results
        The run.
    metric
        A mean over the TTFT [s] of a batch, for example ``lambda ttft: (ttft <= 0.8).mean()``.
    batches
        Batches of equal length in time, at least 10.

    Raises
    ------
    GeoEdgeError
        If there are fewer than 10 batches.
    """
    from scipy.stats import t as student

    if batches < 10:
        msg = f"`batches` must be at least 10, not {batches}: fewer give no trustworthy interval"
        raise GeoEdgeError(msg)
    created, ttft = results.column("created_s"), results.column("ttft_s")
    edges = np.linspace(results.measured_from_s, results.meta["horizon_s"], batches + 1)
    cuts = np.searchsorted(created, edges)
    means = np.array([metric(ttft[a:b]) for a, b in pairwise(cuts) if b > a])
    half = float(student.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means)))
    centre = float(means.mean())
    return centre, centre - half, centre + half
