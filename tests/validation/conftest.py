"""What several validations share: the published end-to-end numbers and the network they are about."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geoedge.theory import TieredNetwork


@pytest.fixture(scope="session")
def end_to_end() -> dict[float, dict[str, Any]]:
    """Coverage of the coupled system, by load and by kind of routing."""
    return {row["request_intensity"]: row for row in _reference()["rows"]}


@pytest.fixture(scope="session")
def end_to_end_network() -> Callable[[float], TieredNetwork]:
    """The network of these numbers under any intensity [1/(s km²)]."""
    given = _reference()["config"]
    length, hit = np.array(given["L"]), np.array(given["d"])

    def prefill(tokens: np.ndarray) -> np.ndarray:
        return given["a"] * tokens + given["b"] * tokens**2

    time = prefill(length - hit)
    density = given["lam_b"] * np.array(given["pi"])
    radio = given["xi"], given["alpha"]
    rest = hit, length, prefill(length)

    def network(intensity: float) -> TieredNetwork:
        return TieredNetwork(
            density, given["c"], given["p"], time, time + given["D"], intensity, *radio, *rest
        )

    return network


def _reference() -> dict[str, Any]:
    return json.loads((Path(__file__).parents[1] / "reference" / "end_to_end.json").read_text())
