"""The results of a run that has reached its horizon."""

from __future__ import annotations

from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from geoedge.control.log import decision_frame, journal_frame
from geoedge.errors import GeoEdgeError
from geoedge.results import REDIRECT, Results
from geoedge.simulation.sessions import session_tables
from geoedge.simulation.tables import (
    action_table,
    epoch_frame,
    record_table,
    series_table,
    site_table,
    status_at,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from geoedge.simulation.model import EdgeCity

__all__ = ["results_of"]

PACKAGES = (
    "folium",
    "geoedge",
    "geopandas",
    "mesa",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "scipy",
    "shapely",
)


def results_of(model: EdgeCity) -> Results:
    """Let the queues of a model at its horizon drain and return what it leaves behind.

    Parameters
    ----------
    model
        A model whose run is over.

    Raises
    ------
    GeoEdgeError
        If it is not.
    """
    if model.running:
        msg = f"EdgeCity: the run stands at {model.clock_s:g} s; step it to its horizon before asking for results"
        raise GeoEdgeError(msg)
    tau, start = model.scenario.target.ttft_target_s, model.study.epochs[0][0]
    model.dynamics.find_rest(model)
    model.engine.finish()
    records = model.engine.records()
    used = model.dynamics.used(records.site, records.profile, records.started_s)
    hits = model.study.workload.hit_tokens[used, records.request_type]
    table = record_table(records, _drawn_columns(model), hits, status_at(records, model.clock_s))
    if model.scenario.admission.redirect_s > 0.0:
        table = table.append_column(REDIRECT, [records.redirect_s])
    if model.sessions is not None:
        table = model.sessions.records(table, model.engine)
    epochs = epoch_frame(table, model.epoch_rows, tau)
    sums = epochs.groupby("epoch")[["requests", "missed"]].sum().to_numpy()
    coverage = {k: 1.0 - missed / asked for k, (asked, missed) in enumerate(sums) if asked}
    live = pd.DataFrame(model.datacollector.model_vars)
    return Results(
        label=model.label,
        records=table,
        sites=site_table(model.study.city, model.study.layout),
        epochs=epochs,
        series=series_table(live, table, tau, start),
        actions=action_table(model.operator.log, model.operator.reviews, coverage, model.placement.journal),
        meta=_meta(model, epochs),
        tables=_tables(model, table, tau),
        scenario_toml=model.scenario.to_toml(),
    )


def _tables(model: EdgeCity, records: pa.Table, tau: float) -> dict[str, pd.DataFrame]:
    """Return the tables that runs of every kind do not have in common."""
    tables = {
        "decisions": decision_frame(model.operator.decisions),
        "paths": model.paths.table(model.population),
        "placement": journal_frame(model.placement.journal),
    }
    if model.dynamics.happening:
        tables["events"] = model.dynamics.table(records, tau)
    if model.sessions is not None:
        counted_s = model.study.epochs[0][0] + model.scenario.simulation.warm_up_s
        tables |= session_tables(records, model.engine, tau, counted_s)
    return tables


def _drawn_columns(model: EdgeCity) -> dict[str, NDArray[Any]]:
    asked = [drawn.asked for drawn in model.drawn]
    columns = {
        name: np.concatenate([getattr(part, name) for part in asked])
        for name in ("user", "activity", "x_m", "y_m")
    }
    return columns | {"epoch": np.repeat(np.arange(len(asked)), [len(part.created_s) for part in asked])}


def _meta(model: EdgeCity, epochs: pd.DataFrame) -> dict[str, Any]:
    scenario, study = model.scenario, model.study
    city, workload = study.city, study.workload
    return {
        "title": scenario.title,
        "seed": model.seed,
        "ttft_target_s": scenario.target.ttft_target_s,
        "reliability": scenario.target.reliability,
        "start_s": study.epochs[0][0],
        "horizon_s": study.epochs[-1][1],
        "warm_up_s": scenario.simulation.warm_up_s,
        "users": len(model.population),
        "profile_names": list(workload.profile_names),
        "type_names": list(workload.type_names),
        "prompt_tokens": workload.prompt_tokens.tolist(),
        "full_prefill_s": workload.full_prefill_time.tolist(),
        "crs": city.crs,
        "city": city.name,
        "attribution": city.attribution,
        "extract_date": city.extract_date,
        "layout": study.layout.label,
        "policy": scenario.routing.policy,
        "solved_as": scenario.routing.solved_as,
        "advertise": scenario.routing.advertise,
        "scope": scenario.routing.scope,
        "controller": scenario.control.controller,
        "law": scenario.service.law,
        "service_scv": scenario.service.scv,
        "queue": scenario.service.queue,
        "radio_shifts_arrival": scenario.service.radio_shifts_arrival,
        **({} if model.sessions is None else {"sessions": model.sessions.facts}),
        "unstable": _flagged(epochs, "offered_load", 1.0),
        "prefill_bound": _flagged(epochs, "prefill_s_per_s", 1.0),
        "versions": {"python": python_version()} | {name: version(name) for name in PACKAGES},
        "checksums": {
            "city": city.checksum,
            "enrichment": city.report.get("enrichment_checksum"),
            "buildings": city.report.get("buildings_checksum"),
            "sites": study.layout.report.get("checksum"),
        },
    }


def _flagged(epochs: pd.DataFrame, column: str, limit: float) -> list[dict[str, float]]:
    """Return the epochs and sites at which a column reaches its limit."""
    rows = epochs.loc[epochs[column] >= limit, ["epoch", "site", column]].to_numpy()
    return [{"epoch": int(k), "site": int(i), column: round(float(value), 6)} for k, i, value in rows]
