"""Batch means of a stationary run."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from geoedge.errors import GeoEdgeError
from geoedge.results import batch_interval
from tests.results.made import make_results


def test_batch_interval_covers_the_truth_of_independent_requests() -> None:
    rng = np.random.default_rng(5)
    covered = 0
    for _ in range(100):
        created = np.sort(rng.uniform(10.0, 60.0, 4000))
        ttft = rng.exponential(1.0, 4000)
        records = pa.table({"created_s": created, "ttft_s": ttft})
        _, low, high = batch_interval(make_results(records=records), np.mean)
        covered += low <= 1.0 <= high
    assert 88 <= covered <= 100  # 95 of 100; fewer than 88 has probability below 1e-3


def test_too_few_batches_are_refused() -> None:
    with pytest.raises(GeoEdgeError, match="at least 10"):
        batch_interval(make_results(), np.mean, batches=3)
