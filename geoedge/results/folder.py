"""A run's folder on disk: written whole or not at all, and read back with a reason where it is none."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from geoedge.errors import OutputError
from geoedge.files import folder_for, has_room
from geoedge.results.records import PATH_COLUMNS, RECORD_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from geoedge.results.results import Results

__all__ = ["check_writable", "read_folder", "write_folder"]

_TABLES = ("epochs", "series", "actions")
_RECORDS, _SITES, _META, _SCENARIO = "requests.parquet", "sites.parquet", "provenance.json", "scenario.toml"
_STATED = (
    *("written", "label", "tables", "title", "seed", "policy", "controller"),
    *("start_s", "warm_up_s", "horizon_s", "ttft_target_s"),
    *("profile_names", "type_names", "prompt_tokens", "full_prefill_s"),
)
"""Facts without which nothing can be told of a run."""


def write_folder(results: Results, folder: str | Path, pages: Mapping[str, str]) -> Path:
    """Write a run folder and return its path; see `geoedge.results.Results.save`.

    Parameters
    ----------
    results
        The run.
    folder
        Where the folder is to be.
    pages
        Further text files of the folder, by name.

    Raises
    ------
    OutputError
        If the folder cannot be written, or is not a run folder.
    """
    target = _place(folder)
    check_writable(target)
    partial = _beside(target)
    try:
        with folder_for(target):
            _write_whole(results, partial, target, pages)
    except OSError as error:
        msg = f"`output` {str(target)!r} cannot be written ({error.strerror}); name a folder you may write to"
        raise OutputError(msg) from None
    return target


def _place(folder: str | Path) -> Path:
    """Return where a folder is, as a shell finds it: ``~`` is a home if it is somebody's, and a link leads elsewhere."""
    path = Path(os.path.expanduser(folder))
    return Path(os.path.realpath(path)) if path.is_symlink() else path.absolute()


def _write_whole(results: Results, partial: Path, target: Path, pages: Mapping[str, str]) -> None:
    try:
        partial.mkdir()
        _write(results, partial)
        for name, text in pages.items():
            (partial / name).write_text(text, encoding="utf-8", newline="\n")
        _swap(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write(results: Results, folder: Path) -> None:
    import geopandas as gpd
    import pyarrow.parquet as pq

    pq.write_table(results.records, folder / _RECORDS, compression="zstd")
    points = gpd.points_from_xy(results.sites.lon, results.sites.lat)
    gpd.GeoDataFrame(results.sites, geometry=points, crs="EPSG:4326").to_parquet(folder / _SITES)
    tables = {name: getattr(results, name) for name in _TABLES} | dict(sorted(results.tables.items()))
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet", index=False)
    (folder / _SCENARIO).write_text(results.scenario_toml, encoding="utf-8")
    sums = results.meta.get("checksums", {}) | {
        "scenario": sha256(results.scenario_toml.encode()).hexdigest()
    }
    written = datetime.now(UTC).isoformat(timespec="seconds")
    rows = {name: len(table) for name, table in tables.items()}
    meta = {"label": results.label, **results.meta, "checksums": sums, "tables": rows, "written": written}
    (folder / _META).write_text(json.dumps(meta, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_folder(folder: str | Path) -> dict[str, Any]:
    """Return what `geoedge.results.Results` is made from, by parameter.

    Parameters
    ----------
    folder
        A folder that `write_folder` wrote.

    Raises
    ------
    OutputError
        If it is no complete run folder.
    """
    import geopandas as gpd
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = _place(folder)
    try:
        meta = json.loads((path / _META).read_text(encoding="utf-8"))
        for name in _STATED:
            if name not in meta:
                msg = f"{_META} does not state {name!r}"
                raise ValueError(msg)
        del meta["written"]
        lengths = dict(meta.pop("tables"))
        tables = {name: pd.read_parquet(path / f"{name}.parquet") for name in lengths}
        wrong = [name for name, rows in lengths.items() if len(tables[name]) != rows]
        if wrong:
            msg = f"{wrong[0]}.parquet has another number of rows than was written"
            raise ValueError(msg)
        records = pq.read_table(path / _RECORDS)
        lacking = [name for name in RECORD_COLUMNS if name not in records.column_names]
        if lacking:
            msg = f"{_RECORDS} of an older version has no column {lacking[0]}; run the scenario again"
            raise ValueError(msg)
        _refuse_broken_paths(tables.get("paths"))
        sites = pd.DataFrame(gpd.read_parquet(path / _SITES).drop(columns="geometry"))
        return {
            "label": meta.pop("label"),
            "records": records,
            "sites": sites,
            **{name: tables.pop(name) for name in _TABLES},
            "meta": meta,
            "tables": tables,
            "scenario_toml": (path / _SCENARIO).read_text(encoding="utf-8"),
        }
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
        reason = (
            "there is no such folder" if not path.is_dir() else f"it is incomplete ({error})".splitlines()[0]
        )
        msg = f"`run` {str(folder)!r} is not a run folder: {reason}; give a folder that `geoedge run` wrote"
        raise OutputError(msg) from None


def _refuse_broken_paths(paths: pd.DataFrame | None) -> None:
    """Refuse a table of paths, which older runs have none of, without a column or with numbers that are not finite."""
    if paths is None:
        return
    for name, kind in PATH_COLUMNS.items():
        if name not in paths:
            msg = f"paths.parquet has no column {name}"
            raise ValueError(msg)
        if kind != "str" and not np.isfinite(paths[name].to_numpy(dtype=np.float64)).all():
            msg = f"paths.parquet: {name} is not finite"
            raise ValueError(msg)


def check_writable(folder: str | Path) -> None:
    """Raise before hours of work are spent where nothing can be written.

    Parameters
    ----------
    folder
        The run folder to be.

    Raises
    ------
    OutputError
        If something other than a run folder stands there, or its parent cannot be written.
    """
    target = _place(folder)
    if not has_room(target) or (target.is_dir() and not os.access(target, os.R_OK)):
        msg = f"`output` {str(folder)!r} cannot be written there; name a folder you may write to"
        raise OutputError(msg)
    strange = sorted(each.name for each in target.iterdir() if not _is_ours(each)) if target.is_dir() else []
    if strange and (target / _META).is_file():
        msg = f"`output` {str(folder)!r} holds files that are not of a run ({strange[0]}); move them, or name a new folder"
        raise OutputError(msg)
    if target.exists() and not (target / _META).is_file() and (target.is_file() or any(target.iterdir())):
        msg = f"`output` {str(folder)!r} exists and is not a run folder; name a new folder, or an old run to replace"
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
