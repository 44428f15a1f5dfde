"""A small made-up run with all that figures draw, its town, and names nobody should trust."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from geoedge.city import ATTRIBUTION, BuildingTable, City, PlaceTable, StreetGraph
from geoedge.results import RECORD_COLUMNS, Results
from geoedge.scenario import load_scenario

EAST, NORTH, START, EPOCH = 373_000.0, 4_843_000.0, 61_200.0, 900.0
HOSTILE = (
    "$\\frac{1}{$ $x_1$",
    "شركة الاتصالات 12",
    "line\nbreak\u202egnp.exe",
    "a very long name " * 12,
    "中文 <b>&amp; ]]> --> </svg>",
    "",
)
SITES, EPOCHS, SERVERS = len(HOSTILE), 4, 3


@pytest.fixture(scope="session")
def town() -> City:
    """Return a town of one crossing."""
    none, names = np.zeros(0), np.array([], dtype=object)
    xy = np.array([(EAST, NORTH), (EAST + 900, NORTH), (EAST + 900, NORTH + 700)])
    ends = np.array([(0, 1), (1, 0), (1, 2), (2, 1)], dtype=np.int32)
    streets = StreetGraph(
        "drive",
        xy,
        ends[:, 0],
        ends[:, 1],
        np.hypot(*(xy[ends[:, 1]] - xy[ends[:, 0]]).T),
        np.full(len(ends), 8.0),
        np.arange(0, 2 * len(ends) + 1, 2),
        xy[ends].reshape(-1, 2),
    )
    return City(
        name="town",
        crs="EPSG:32632",
        checksum="town-1",
        attribution=ATTRIBUTION,
        extract_date="2016-03-05",
        boundary=shapely.box(EAST - 100, NORTH - 100, EAST + 1000, NORTH + 800),
        streets={"drive": streets},
        buildings=BuildingTable(
            np.zeros((0, 2)), none, none, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        ),
        places=PlaceTable(np.zeros((0, 2)), names, names),
    )


@pytest.fixture(scope="session")
def run(town: City) -> Results:
    """Return a run of four quarters of an hour, the first of them warm-up, with a controller."""
    scenario = load_scenario("monaco")
    profiles = [profile.name for profile in scenario.workload.profiles]
    rng = np.random.default_rng(5)
    records = make_records(rng)
    return Results(
        label="simulation",
        records=records,
        sites=_sites(town, rng),
        epochs=make_epochs(records, rng),
        series=_series(rng),
        actions=_actions(),
        meta={
            "title": "Town $x$",
            "seed": 1,
            "replications": 3,
            "ttft_target_s": 0.8,
            "start_s": START,
            "horizon_s": START + EPOCHS * EPOCH,
            "warm_up_s": EPOCH,
            "profile_names": profiles,
            "type_names": [request.name for request in scenario.workload.requests],
            "policy": "load_aware",
            "advertise": "equilibrium",
            "controller": "greedy",
            "checksums": {"city": town.checksum},
        },
        tables={"answers": _answers(profiles), "control_epochs": _paired()},
        scenario_toml=scenario.to_toml(),
    )


@pytest.fixture(scope="session")
def other(run: Results) -> Results:
    """Return a second run, of other rules."""
    times = run.records.column("ttft_s").to_numpy() * 2.0
    place = run.records.column_names.index("ttft_s")
    slower = run.records.set_column(place, "ttft_s", pa.array(times))
    return replace(run, records=slower, tables={}).with_meta(policy="nearest", controller="none")


def make_records(rng: np.random.Generator, n: int = 3000, rejected: float = 0.05) -> pa.Table:
    """Return requests of which a share is rejected and a half waits."""
    created = np.sort(START + rng.uniform(0, EPOCHS * EPOCH, n))
    wait = np.where(rng.random(n) < 0.5, 0.0, rng.exponential(0.6, n))
    radio, prefill = rng.exponential(0.05, n), rng.choice([0.05, 0.1, 0.3], n)
    refused = rng.random(n) < rejected
    started = created + radio + wait
    columns = {
        "created_s": created,
        "user": rng.integers(0, 50, n),
        "request_type": rng.integers(0, 4, n),
        "activity": rng.integers(0, 4, n),
        "x_m": EAST + rng.uniform(0, 900, n),
        "y_m": NORTH + rng.uniform(0, 700, n),
        "epoch": (created - START) // EPOCH,
        "site": np.where(refused, -1, rng.integers(0, SITES - 1, n)),  # the last serves nobody
        "profile": np.where(refused, -1, rng.integers(0, 4, n)),
        "hit_tokens": np.zeros(n),
        "distance_km": rng.uniform(0, 1, n),
        "radio_s": radio,
        "arrived_s": created + radio,
        "started_s": np.where(refused, np.nan, started),
        "wait_s": np.where(refused, np.nan, wait),
        "prefill_s": np.where(refused, np.nan, prefill),
        "ttft_s": np.where(refused, np.inf, radio + wait + prefill),
        "first_token_s": np.where(refused, np.nan, started + prefill),
        "finished_s": np.where(refused, np.nan, started + prefill + rng.exponential(2.0, n)),
        "redirects": np.zeros(n),
        "status": np.where(refused, 4, 0),
    }
    return pa.table({name: columns[name].astype(kind) for name, kind in RECORD_COLUMNS.items()})


def make_epochs(records: pa.Table, rng: np.random.Generator) -> pd.DataFrame:
    """Return one row an epoch and site that fits the records; rejected requests are counted at the first site."""
    frames = []
    for epoch in range(EPOCHS):
        now = records.column("epoch").to_numpy() == epoch
        site, ttft = records.column("site").to_numpy()[now], records.column("ttft_s").to_numpy()[now]
        at = np.maximum(site, 0)
        requests = np.bincount(at, minlength=SITES)
        frames.append(
            pd.DataFrame(
                {
                    "epoch": epoch,
                    "start_s": START + EPOCH * epoch,
                    "end_s": START + EPOCH * (epoch + 1),
                    "site": np.arange(SITES),
                    "concurrency": SERVERS,
                    "profile": np.arange(SITES) % 4,
                    "requests": requests,
                    "missed": np.bincount(at, weights=~(ttft <= 0.8), minlength=SITES).astype(int),
                    "rejected": np.where(np.arange(SITES) == 0, (site < 0).sum(), 0),
                    "utilization": rng.uniform(0.1, 1.0, SITES),
                    "server_s": EPOCH * SERVERS * rng.uniform(0.5, 1.0, SITES),
                    "offered_load": rng.uniform(0.1, 1.1, SITES),
                    "mean_wait_s": 0.3,
                    "advertised_wait_s": 0.2,
                    "prefill_s_per_s": 0.2,
                }
            )
        )
    return pd.concat(frames, ignore_index=True)


def _sites(town: City, rng: np.random.Generator) -> pd.DataFrame:
    xy = np.column_stack([EAST + rng.uniform(0, 900, SITES), NORTH + rng.uniform(0, 700, SITES)])
    lonlat = town.to_lonlat(xy)
    return pd.DataFrame(
        {
            "site": np.arange(SITES),
            "name": list(HOSTILE),
            "kind": "amenity=post",
            "lon": lonlat[:, 0],
            "lat": lonlat[:, 1],
            "x_m": xy[:, 0],
            "y_m": xy[:, 1],
            "profile": np.arange(SITES) % 4,
        }
    )


def _series(rng: np.random.Generator) -> pd.DataFrame:
    ends = START + 60.0 * np.arange(1, EPOCHS * 15 + 1)
    share = rng.uniform(0.6, 0.9, len(ends))
    share[7] = np.nan  # nobody asked
    return pd.DataFrame({"time_s": ends, "coverage": share})


def _actions() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "epoch": [1, 1, 3],
            "time_s": [START + EPOCH, START + EPOCH, START + 3 * EPOCH],
            "action": ["replicate", "migrate", "replicate"],
            "bytes_moved": [2.0e9, 5.0e8, 1.0e9],
            "predicted_gain": [0.01, 0.002, 0.004],
            "realised_gain": [0.008, 0.001, np.nan],
        }
    )


def _paired() -> pd.DataFrame:
    change = np.array([0.0, 0.01, 0.02, 0.015])
    return pd.DataFrame(
        {
            "epoch": np.arange(EPOCHS),
            "start_s": START + EPOCH * np.arange(EPOCHS),
            "still": [0.80, 0.78, 0.75, 0.70],
            "change": change,
            "low": change - 0.005,
            "high": change + 0.005,
        }
    )


def _answers(profiles: list[str]) -> pd.DataFrame:
    """Return the table of four answers; one of them has waits without bound."""
    values = {
        "coverage": [(0.83, None), (0.53, (0.3, 0.7)), (0.77, None), (0.74, (0.73, 0.75))],
        "mean_ttft_s": [(0.5, None), (1.3, (0.6, np.inf)), (0.72, None), (1.1, (0.9, 1.3))],
        "radio_s": [(0.1, None), (0.2, None), (0.1, None), (0.1, None)],
        "wait_s": [(0.3, None), (1.0, None), (0.52, None), (0.9, None)],
        "prefill_s": [(0.1, None), (0.1, None), (0.1, None), (0.1, None)],
        "p95_ttft_s": [(2.2, None), (np.inf, (2.0, np.inf)), (3.2, None), (4.6, (4.3, 4.9))],
    }
    values |= {f"share:{name}": [(1 / len(profiles), None)] * 4 for name in profiles}
    columns = ("theory (PPP)", "PPP ensemble", "field (map)", "simulation: equilibrium")
    rows = [
        (metric, column, value, *(ends or (np.nan, np.nan)))
        for metric, line in values.items()
        for column, (value, ends) in zip(columns, line, strict=True)
    ]
    return pd.DataFrame(rows, columns=["metric", "column", "value", "low", "high"])
