"""A small made-up town with a run on it: sixteen blocks, six sites, two epochs, and names nobody should trust."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

from geoedge.city import ATTRIBUTION, BuildingTable, City, PlaceTable, StreetGraph
from geoedge.city.names import NamedWay, StreetNames, name_streets
from geoedge.results import PATH_COLUMNS, Results
from geoedge.scenario import Scenario, load_scenario

EAST, NORTH, BLOCK = 373_000.0, 4_843_000.0, 200.0
CELL = 50.0
HOSTILE = (
    "<script>window.broken=1</script>",
    "\"><img src=x onerror='window.broken=2'>",
    "line\u2028break\u202egnp.exe</script>",
    "شركة الاتصالات",
    "{{ 7*7 }} ${7*7} `backtick` \\",
    "",
)
HOSTILE_STREETS = (
    *HOSTILE[:5],
    "x" * 500,
    "bell\x07 and\x1b[31m red\x00",
    "Rue des \u202eegnarO\u202c",
    "नई सड़क",
    "Am Markt",
)


def hostile_streets(
    west: float = EAST, south: float = NORTH, step: float = BLOCK, count: int = 5
) -> StreetNames:
    """Return names that nobody should trust for a square grid of streets; the first column is a main road."""
    along, edge = np.linspace(0.0, (count - 1) * step, 9), np.full(9, 1.0)
    rows = [np.column_stack([west + along, south + edge * step * k]) for k in range(count)]
    columns = [np.column_stack([west + edge * step * k, south + along]) for k in range(count)]
    lines = [*columns, *rows][: len(HOSTILE_STREETS)]
    ways = [
        NamedWay(name, min(k, 1), line)
        for k, (name, line) in enumerate(zip(HOSTILE_STREETS[: len(lines)], lines, strict=True))
    ]
    return name_streets(ways, np.asarray)


def grid_streets(mode: str, speed: float, blocks: int = 4) -> StreetGraph:
    """Return a square grid of two-way streets; the middle column is faster."""
    side = blocks + 1
    node = np.arange(side * side).reshape(side, side)
    xy = np.array([(EAST + BLOCK * c, NORTH + BLOCK * r) for r in range(side) for c in range(side)])
    pairs = [(node[r, c], node[r, c + 1]) for r in range(side) for c in range(blocks)]
    pairs += [(node[r, c], node[r + 1, c]) for r in range(blocks) for c in range(side)]
    ends = np.array([pair for a, b in pairs for pair in ((a, b), (b, a))], dtype=np.int32)
    fast = (xy[ends[:, 0], 0] == xy[ends[:, 1], 0]) & (xy[ends[:, 0], 0] == EAST + BLOCK * (blocks // 2))
    return StreetGraph(
        mode,
        xy,
        ends[:, 0],
        ends[:, 1],
        np.full(len(ends), BLOCK),
        np.where(fast, 2 * speed, speed),
        np.arange(0, 2 * len(ends) + 1, 2),
        xy[ends].reshape(-1, 2),
    )


@pytest.fixture(scope="session")
def town() -> City:
    none = np.zeros(0)
    places = np.array([(EAST + 100, NORTH + 140 * (k + 1)) for k in range(len(HOSTILE) - 1)])
    kinds = ["amenity=townhall", "amenity=cinema", "shop=<b>x</b>", "amenity=townhall", "amenity=theatre"]
    return City(
        name="town",
        crs="EPSG:32632",
        checksum="town-1",
        attribution=ATTRIBUTION,
        extract_date="2016-03-05",
        boundary=shapely.box(EAST - 100, NORTH - 100, EAST + 4 * BLOCK + 100, NORTH + 4 * BLOCK + 100),
        streets={"walk": grid_streets("walk", 1.35), "drive": grid_streets("drive", 8.0)},
        buildings=BuildingTable(
            np.zeros((0, 2)), none, none, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
        ),
        places=PlaceTable(
            np.vstack([places, places[:1]]),
            np.array([*kinds, "amenity=casino"], dtype=object),
            np.array(HOSTILE, dtype=object),  # the last has no name
        ),
        street_names=hostile_streets(),
    )


@pytest.fixture(scope="session")
def run(town: City) -> Results:
    return make_run(town)


def make_run(city: City, *, title: str = "Town </title><script>window.broken=3</script>") -> Results:
    """Return a run of two epochs with tables alone; the map needs no records."""
    scenario = load_scenario("monaco")
    profiles = [profile.name for profile in scenario.workload.profiles]
    rng = np.random.default_rng(5)
    n = len(HOSTILE)
    xy = np.column_stack([EAST + rng.uniform(0, 800, n), NORTH + rng.uniform(0, 800, n)])
    lonlat = city.to_lonlat(xy)
    sites = pd.DataFrame(
        {
            "site": np.arange(n),
            "name": list(HOSTILE),
            "kind": "amenity=<b>post</b>",
            "street": [*HOSTILE[1:], HOSTILE[0]],
            "lon": lonlat[:, 0],
            "lat": lonlat[:, 1],
            "x_m": xy[:, 0],
            "y_m": xy[:, 1],
            "profile": np.arange(n) % len(profiles),
        }
    )
    return Results(
        label="run",
        records=_records(sites, scenario, rng),
        sites=sites,
        epochs=pd.concat([_epoch(k, sites, rng) for k in range(2)], ignore_index=True),
        series=pd.DataFrame(),
        actions=_actions(),
        meta={
            "title": title,
            "ttft_target_s": 0.8,
            "start_s": 25_200.0,
            "horizon_s": 32_400.0,
            "warm_up_s": 3_600.0,
            "profile_names": profiles,
            "type_names": [request.name for request in scenario.workload.requests],
            "policy": "load_aware",
            "advertise": "equilibrium",
            "controller": "greedy",
            "checksums": {"city": city.checksum},
        },
        tables={"cells": _cells(rng), "answers": _answers(), "paths": make_paths()},
        scenario_toml=scenario.to_toml(),
    )


def _epoch(epoch: int, sites: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    n = len(sites)
    load = np.array([0.2, 0.55, 0.7, 0.85, 0.95, 1.1])[rng.permutation(n)]
    requests = rng.poisson(900, n)
    return pd.DataFrame(
        {
            "epoch": epoch,
            "start_s": 25_200.0 + 3_600 * epoch,
            "end_s": 28_800.0 + 3_600 * epoch,
            "site": np.arange(n),
            "concurrency": 5,
            "server_s": 5 * 3600.0,
            "profile": (sites["profile"].to_numpy() + epoch * (np.arange(n) == 1)) % 4,
            "requests": requests,
            "missed": rng.binomial(requests, np.clip(load - 0.5, 0.0, 0.9)),
            "utilization": np.minimum(load, 1.0),
            "offered_load": load,
            "mean_wait_s": load,
            "advertised_wait_s": 0.3 * load**2,
            "prefill_s_per_s": load,
        }
    )


def _records(sites: pd.DataFrame, scenario: Scenario, rng: np.random.Generator) -> pa.Table:
    """Return 4,000 requests: half of them wait, exponentially, and a service takes two seconds."""
    n = 4000
    created = np.sort(25_200.0 + rng.uniform(0, 7_200.0, n))
    wait = np.where(rng.random(n) < 0.5, 0.0, rng.exponential(0.4, n))
    return pa.table(
        {
            "created_s": created,
            "user": rng.integers(0, 50, n).astype(np.int32),
            "activity": rng.integers(0, 4, n).astype(np.int8),
            "request_type": np.random.default_rng(9).choice(4, n, p=[0.1, 0.5, 0.0, 0.4]).astype(np.int16),
            "x_m": EAST + rng.uniform(0, 800, n),
            "y_m": NORTH + rng.uniform(0, 800, n),
            "epoch": ((created - 25_200.0) // 3_600).astype(np.int16),
            "site": rng.integers(0, len(sites) - 1, n).astype(np.int32),  # the last serves nobody
            "started_s": created + wait,
            "wait_s": wait,
            "finished_s": created + wait + 2.0,
        }
    )


def make_events() -> pd.DataFrame:
    """Return a crowd at a place with a hostile name, and two sites that fail for longer than the run."""
    return pd.DataFrame(
        {
            "kind": ["flash_crowd", "site_failure"],
            "start_s": [29_000.0, 31_000.0],
            "end_s": [30_000.0, np.inf],
            "lon": [7.42, np.nan],
            "lat": [43.735, np.nan],
            "radius_m": [150.0, np.nan],
            "sites": ["", "0 3"],
            "people": [800, 0],
            "requests": [1200, 0],
            "coverage": [0.75, np.nan],
            "detail": ["place = <img src=x onerror='window.broken=7'>", ""],
        }
    )


def make_paths() -> pd.DataFrame:
    """Return three trips along the grid: over the turn of the epochs, within the second, and back before the run ends."""
    trips = [
        (3, 0, "walk", "home", "work", [(28_500.0, 0, 0), (28_700.0, 200, 0), (29_100.0, 200, 400)]),
        (3, 1, "walk", "work", "home", [(32_000.0, 200, 400), (32_600.0, 200, 0)]),
        (
            7,
            0,
            "drive",
            "home",
            "leisure",
            [(29_000.0, 800, 800), (29_060.0, 400, 800), (29_120.0, 400, 600)],
        ),
    ]
    rows = [
        (user, trip, mode, start, end, way[0][0], way[-1][0], 600.0, time, EAST + x, NORTH + y)
        for user, trip, mode, start, end, way in trips
        for time, x, y in way
    ]
    return pd.DataFrame(rows, columns=list(PATH_COLUMNS)).astype(dict(PATH_COLUMNS))


def _actions() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "epoch": [1, 1],
            "action": ["replicate", "migrate"],
            "site": [1, 2],
            "partner_site": [-1, 3],
            "from_profile": [1, 2],
            "to_profile": [2, 3],
            "bytes_moved": [2.1e9, 3e6],
            "effective_s": [28_810.0, 28_801.0],
            "predicted_gain": [0.012, 0.001],
            "realised_gain": [0.009, np.nan],
            "time_s": [28_800.0, 28_800.0],
            "reason": ["expected coverage 0.80 -> 0.81; site 1 <b>agent</b> -> guide", ""],
        }
    )


def _answers() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "metric": ["coverage", "coverage", "mean_ttft_s"],
            "column": ["theory", "field", "theory"],
            "value": [0.8, 0.9, 0.5],
        }
    )


def _cells(rng: np.random.Generator) -> pd.DataFrame:
    centres = np.arange(CELL / 2, 4 * BLOCK, CELL)
    x, y = (axis.ravel() for axis in np.meshgrid(EAST + centres, NORTH + centres))
    tables = []
    for epoch in range(2):
        demand = np.where(rng.random(x.size) < 0.1, 0.0, rng.lognormal(0.0, 1.0, x.size))
        local = np.clip(0.8 + 0.2 * np.sin(x / 150 + epoch), 0.0, 1.0)
        tables.append(
            pd.DataFrame(
                {
                    "x_m": x,
                    "y_m": y,
                    "cell_m": CELL,
                    "epoch": epoch,
                    "demand_per_km2_s": demand,
                    "local_coverage": np.where(demand > 0, local, np.nan),
                    "ppp_coverage": 0.8,
                }
            )
        )
    return pd.concat(tables, ignore_index=True)
