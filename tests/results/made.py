"""A run of five requests whose numbers one can work out by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from geoedge.results import RECORD_COLUMNS, Results

# Five requests; the first falls into the warm-up. TTFT = radio + wait + prefill.
CREATED = np.array([5.0, 20.0, 30.0, 40.0, 50.0])
RADIO = np.array([0.01, 0.01, 0.02, 0.03, 0.02])
WAIT = np.array([9.0, 0.0, 0.5, 1.0, 0.0])
PREFILL = np.array([0.1, 0.1, 0.2, 0.4, 0.1])


def make_results(**changes: object) -> Results:
    n = len(CREATED)
    started = CREATED + RADIO + WAIT
    values = {
        "created_s": CREATED,
        "user": np.arange(n),
        "request_type": np.array([0, 0, 1, 1, 0]),
        "activity": np.zeros(n),
        "x_m": np.arange(n),
        "y_m": np.arange(n),
        "epoch": np.zeros(n),
        "site": np.array([0, 0, 1, 1, 0]),
        "profile": np.array([0, 0, 1, 1, 0]),
        "hit_tokens": np.array([0, 0, 300, 300, 0]),
        "distance_km": np.array([9.0, 0.1, 0.2, 0.3, 0.2]),
        "radio_s": RADIO,
        "arrived_s": CREATED + RADIO,
        "started_s": started,
        "wait_s": WAIT,
        "prefill_s": PREFILL,
        "ttft_s": RADIO + WAIT + PREFILL,
        "first_token_s": started + PREFILL,
        "finished_s": started + PREFILL + 1.0,
        "redirects": np.zeros(n),
        "status": np.array([0, 0, 0, 1, 2]),
    }
    records = pa.table({name: pa.array(values[name].astype(kind)) for name, kind in RECORD_COLUMNS.items()})
    epochs = pd.DataFrame(
        {
            "epoch": [0, 0, 1, 1],
            "start_s": [0.0, 0.0, 10.0, 10.0],
            "end_s": [10.0, 10.0, 60.0, 60.0],
            "site": [0, 1, 0, 1],
            "concurrency": [2, 6, 2, 6],
            "server_s": [20.0, 60.0, 100.0, 300.0],
            "utilization": [0.9, 0.9, 0.5, 0.1],
            "prefill_s_per_s": [0.9, 0.9, 0.2, 0.4],
            "rejected": [0, 0, 0, 0],
        }
    )
    sites = pd.DataFrame(
        {
            "site": [0, 1],
            "name": ["<script>", "b"],
            "kind": ["x", "y"],
            "lon": [7.4, 7.5],
            "lat": [43.7, 43.8],
            "x_m": [0.0, 1.0],
            "y_m": [0.0, 1.0],
            "profile": [0, 1],
        }
    )
    meta = {
        "title": "five requests",
        "seed": 1,
        "start_s": 0.0,
        "warm_up_s": 10.0,
        "horizon_s": 60.0,
        "ttft_target_s": 0.8,
        "profile_names": ["fallback", "deep"],
        "type_names": ["short", "long"],
        "prompt_tokens": [100, 400],
        "full_prefill_s": [0.1, 0.5],
        "policy": "nearest",
        "controller": "none",
    }
    series = pd.DataFrame({"time_s": [60.0], "coverage": [0.75]})
    actions = pd.DataFrame({"epoch": [0], "site": [1], "predicted_gain": [0.01]})
    fields = {"records": records, "sites": sites, "epochs": epochs, "series": series, "actions": actions}
    return Results(label="run", meta=meta, scenario_toml='title = "x"\n', **(fields | changes))  # type: ignore[arg-type]
