"""Runs on the small made-up town with everything that a report tells about, and names nobody should trust."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from geoedge.answers import METRICS
from geoedge.city import City
from geoedge.compare.columns import ENSEMBLE, FIELD, STEERED, THEORY, TWINS, interval, long_table
from geoedge.results import RECORD_COLUMNS, Results
from geoedge.scenario import load_scenario
from tests.maps.conftest import EAST, HOSTILE, NORTH, make_events, make_run, town

__all__ = ["HOSTILE", "told_run", "town"]

OWN = "simulation: equilibrium"
LEVELS = {THEORY: 0.83, ENSEMBLE: 0.55, TWINS: 0.53, FIELD: 0.77, OWN: 0.74, STEERED: 0.76}
SEEDS = (7, 11, 13)
REQUESTS = 4000


@pytest.fixture(scope="session")
def one(town: City) -> Results:
    return told_run(town, "one", title="Town </title><script>window.broken=3</script>")


@pytest.fixture(scope="session")
def other(town: City) -> Results:
    """The same people and requests, served a little better by another policy."""
    return told_run(town, "other", gain=0.05, changes={"routing.policy": "nearest"})


def told_run(
    city: City,
    label: str,
    *,
    title: str = "Town",
    gain: float = 0.0,
    seed: int = 7,
    changes: dict[str, object] | None = None,
) -> Results:
    """Return a run of two epochs with all tables; `gain` is what it adds to the coverage of every replication."""
    bare = make_run(city, title=title)
    scenario = load_scenario("monaco").override({"seed": seed, **(changes or {})})
    names = [*HOSTILE[:3], HOSTILE[4]]
    replications = _replications(gain)
    control = pd.DataFrame(
        [("coverage", *interval([0.02, 0.018, 0.022]))], columns=["metric", "change", "low", "high"]
    )
    return replace(
        bare,
        label=label,
        records=_records(np.random.default_rng(seed), gain),
        epochs=bare.epochs.assign(rejected=0, server_s=5 * 3600.0),
        actions=bare.actions.assign(transfer_s=1.0),
        meta=bare.meta
        | {
            "title": title,
            "seed": seed,
            "reliability": 0.9,
            "replications": len(SEEDS),
            "policy": scenario.routing.policy,
            "solved_as": scenario.routing.solved_as,
            "profile_names": names,
            "prompt_tokens": [1024, 2560, 4096, 8192],
            "full_prefill_s": [0.1, 0.3, 0.4, 0.9],
            "layout": "sites of <b>nobody</b>",
            "city": city.name,
            "crs": city.crs,
            "attribution": city.attribution,
            "extract_date": city.extract_date,
            "versions": {"python": "3.11", "geoedge": "0.1.0"},
            "findings": [
                "From Poisson theory to the map -6.0 points: where people and sites are.",
                f"Sites: {HOSTILE[1]}.",
                "UNSTABLE: in the field 1 of 6 sites reach capacity: [5].",
            ],
        },
        tables={
            "cells": bare.tables["cells"],
            "answers": _answers(names, replications),
            "policies": pd.DataFrame({"policy": ["load_aware"], THEORY: [0.83], FIELD: [0.77]}),
            "ensemble": _ensemble(),
            "replications": replications,
            "control": control,
            "control_epochs": _control_epochs(),
            "events": make_events().assign(coverage_of_others=0.7),
            "handovers": pd.DataFrame(
                {
                    "handover": ["stayed", "moved"],
                    "turns": [10, 5],
                    "share": [2 / 3, 1 / 3],
                    "coverage": [0.9, 0.8],
                    "ttft_s": [0.2, 0.6],
                    "moved_bytes": [0, 10**9],
                }
            ),
        },
        scenario_toml=scenario.to_toml(),
    )


def _records(rng: np.random.Generator, gain: float) -> pa.Table:
    """Return requests of which some are rejected; those of one seed are the same whatever the gain."""
    n = REQUESTS
    created = np.sort(25_200.0 + rng.uniform(0, 7_200.0, n))
    columns = {
        "created_s": created,
        "user": rng.integers(0, 50, n),
        "request_type": rng.integers(0, 4, n),
        "activity": rng.integers(0, 4, n),
        "x_m": EAST + rng.uniform(0, 800, n),
        "y_m": NORTH + rng.uniform(0, 800, n),
        "epoch": (created - 25_200.0) // 3_600,
        "site": rng.integers(0, 5, n),
        "distance_km": rng.uniform(0.0, 0.5, n),
        "prefill_s": rng.uniform(0.05, 0.4, n),
        "hit_tokens": rng.integers(0, 1000, n),
    }
    wait = np.where(rng.random(n) < 0.5, 0.0, rng.exponential(0.6, n)) * (1.0 - 2.0 * gain)
    radio = 0.02 * np.ones(n)
    lost = rng.random(n) < 0.01
    columns |= {
        "profile": columns["site"] % 4,
        "radio_s": radio,
        "arrived_s": created + radio,
        "wait_s": wait,
        "started_s": created + radio + wait,
        "ttft_s": radio + wait + columns["prefill_s"],
        "first_token_s": created + radio + wait + columns["prefill_s"],
        "finished_s": created + wait + 2.0,
        "redirects": np.zeros(n),
        "status": np.where(lost, 4, 0),
    }
    columns["ttft_s"] = np.where(lost, np.inf, columns["ttft_s"])
    columns["site"] = np.where(lost, -1, columns["site"])
    return pa.table({name: np.asarray(columns[name]).astype(kind) for name, kind in RECORD_COLUMNS.items()})


def _replications(gain: float) -> pd.DataFrame:
    """Return every metric of each replication; the gain is known to a thousandth from three pairs."""
    rows = []
    for column in (OWN, STEERED):
        for k, seed in enumerate(SEEDS):
            for metric in METRICS:
                value = LEVELS[column] + 0.01 * k + gain + (0.0004 * k if gain else 0.0)
                rows.append((column, k, seed, metric, value))
    return pd.DataFrame(rows, columns=["column", "replication", "seed", "metric", "value"])


def _answers(names: list[str], replications: pd.DataFrame) -> pd.DataFrame:
    shares = {f"share:{name}": (1 / len(names), np.nan, np.nan) for name in names}
    found = {}
    for column, level in LEVELS.items():
        known = replications[replications["column"] == column]
        sample = known[known["metric"] == "coverage"]["value"]
        spread = interval(sample) if len(sample) else (level, np.nan, np.nan)
        if column in (ENSEMBLE, TWINS):
            spread = (level, level - 0.2, level + 0.25)
        found[column] = dict.fromkeys(METRICS, spread) | shares
    return long_table(found)


def _ensemble() -> pd.DataFrame:
    coverage = {"Poisson": np.linspace(0.4, 0.7, 10), "fixed": np.linspace(0.38, 0.68, 10)}
    rows = [{"count": kind, "coverage": value} for kind, values in coverage.items() for value in values]
    return pd.DataFrame(rows)


def _control_epochs() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "epoch": [0, 1],
            "start_s": [25_200.0, 28_800.0],
            "moves": [0.0, 2.0],
            "bytes_moved": [0.0, 2.1e9],
            "predicted_gain": [0.0, 0.013],
            "still": [0.75, 0.73],
            "change": [0.0, 0.02],
            "low": [0.0, 0.015],
            "high": [0.0, 0.025],
        }
    )
