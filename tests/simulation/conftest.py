"""A small town with streets, homes, work and leisure, six sites, and a scenario that keeps it busy."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from geoedge.city.city import ATTRIBUTION, BUILDING_KINDS, BuildingTable, City, PlaceTable
from geoedge.city.streets import StreetGraph, polyline_lengths
from geoedge.scenario import Scenario
from geoedge.sites import Layout
from geoedge.study import Study, prepare

SIDE, STEP = 9, 150.0
EAST, NORTH = 500_000.0, 5_500_000.0
"""Where the town lies in UTM zone 32."""


def _streets(mode: str, speed: float) -> StreetGraph:
    number = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    pairs = np.concatenate(
        [
            np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()]),
            np.column_stack([number[:-1].ravel(), number[1:].ravel()]),
        ]
    )
    edges = np.concatenate([pairs, pairs[:, ::-1]])
    xy = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2) * STEP + (
        EAST,
        NORTH,
    )
    offset = np.arange(len(edges) + 1) * 2
    line = np.stack([xy[edges[:, 0]], xy[edges[:, 1]]], axis=1).reshape(-1, 2)
    ends = edges.astype(np.int32)
    return StreetGraph(
        mode,
        xy,
        ends[:, 0],
        ends[:, 1],
        polyline_lengths(offset, line),
        np.full(len(edges), speed),
        offset,
        line,
    )


def make_town() -> City:
    """Homes in the west, offices in the east, shops in the middle."""
    rng = np.random.default_rng(5)
    size = (SIDE - 1) * STEP
    homes = rng.uniform((0.0, 0.0), (0.5 * size, size), (60, 2))
    offices = rng.uniform((0.7 * size, 0.0), (size, size), (20, 2))
    shops = rng.uniform((0.4 * size, 0.3 * size), (0.6 * size, 0.7 * size), (12, 2))
    corner = np.array([EAST, NORTH])
    kinds = [BUILDING_KINDS.index("residential")] * 60 + [BUILDING_KINDS.index("office")] * 20
    buildings = BuildingTable(
        np.concatenate([homes, offices]) + corner,
        np.full(80, 200.0),
        np.full(80, 3.0),
        np.array(kinds),
        np.zeros(80, dtype=bool),
    )
    places = PlaceTable(
        shops + corner, np.full(12, "shop=bakery", dtype=object), np.full(12, "<b>Brot</b>", dtype=object)
    )
    return City(
        "town",
        "EPSG:32632",
        "0" * 64,
        ATTRIBUTION,
        "2020-01-01",
        shapely.box(EAST - 100, NORTH - 100, EAST + size + 100, NORTH + size + 100),
        {"walk": _streets("walk", 1.35), "drive": _streets("drive", 8.0)},
        buildings,
        places,
    )


def make_layout() -> Layout:
    """Six sites: two fallbacks, two shallow, two deep on different branches."""
    xy = np.array([[200, 300], [250, 900], [600, 600], [700, 200], [1000, 400], [1050, 1000]], dtype=float)
    return Layout(
        xy + np.array([EAST, NORTH]),
        np.array([0, 0, 1, 1, 2, 3]),
        tuple(f"site {i}" for i in range(6)),
        ("test",) * 6,
        "six sites of a test",
        "EPSG:32632",
    )


def make_scenario() -> Scenario:
    """Three quarters of an hour in three epochs; work in the east hands over to leisure in the middle."""
    day = [1.0] * 24
    evening = [0.4] * 17 + [0.8] + [1.0] * 6
    return Scenario.from_dict(
        {
            "title": "town",
            "seed": 3,
            "city": {"source": "town"},
            "workload": {
                "prefixes": [
                    {"name": "root", "depth_tokens": 512},
                    {"name": "left", "parent": "root", "depth_tokens": 3072},
                    {"name": "right", "parent": "root", "depth_tokens": 6144},
                ],
                "profiles": [
                    {"name": "fallback", "prefixes": [], "placement_probability": 0.3},
                    {"name": "shallow", "prefixes": ["root"], "placement_probability": 0.3},
                    {"name": "left", "prefixes": ["root", "left"], "placement_probability": 0.2},
                    {"name": "right", "prefixes": ["root", "right"], "placement_probability": 0.2},
                ],
                "requests": [
                    {
                        "name": "chat",
                        "type_probability": 0.4,
                        "prompt_tokens": 1024,
                        "output_tokens": 128,
                        "prefix": "root",
                        "hour_weight": day,
                    },
                    {
                        "name": "office",
                        "type_probability": 0.4,
                        "prompt_tokens": 4096,
                        "output_tokens": 128,
                        "prefix": "left",
                        "place_weight": {"home": 0.5, "work": 3.0, "leisure": 0.2, "street": 0.2},
                    },
                    {
                        "name": "evening",
                        "type_probability": 0.2,
                        "prompt_tokens": 8192,
                        "output_tokens": 128,
                        "prefix": "right",
                        "place_weight": {"home": 1.5, "work": 0.2, "leisure": 4.0, "street": 1.0},
                        "hour_weight": evening,
                    },
                ],
            },
            "demand": {"users": 400, "request_rate_per_user_s": 0.015, "cell_m": 50.0},
            "mobility": {"destinations": 20},
            "control": {"migration_budget_bytes": 4_000_000_000, "backhaul_bytes_per_s": 2e7},
            "simulation": {
                "start_hour": 16.75,
                "duration_s": 2700.0,
                "warm_up_s": 900.0,
                "epoch_s": 900.0,
                "replications": 2,
            },
        }
    )


@pytest.fixture(scope="session")
def study() -> Study:
    """The town's study."""
    return prepare(make_scenario(), city=make_town(), layout=make_layout())
