"""Fixtures that several rooms share: the shipped city once, and a small study on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from geoedge.scenario import Scenario, load_scenario
from geoedge.study import Study, prepare
from tests.browser import chromium

settings.register_profile("same every time", derandomize=True, deadline=None)
settings.load_profile("same every time")

SMALL = {
    "simulation.duration_s": 1800.0,
    "simulation.warm_up_s": 600.0,
    "simulation.epoch_s": 600.0,
    "simulation.replications": 2,
    "demand.users": 1500,
    "demand.request_rate_per_user_s": 0.0293,
}
"""Monaco with fewer, busier people and half an hour; the load of the sites is that of the full scenario."""


SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
"""Real networks that may be used beside the project, but not shipped with it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests of data that is not there, saying so; on a build machine they are no part of the suite."""
    if SHARED_DATA.exists():
        return
    without = [item for item in items if item.get_closest_marker("shared_data")]
    if os.environ.get("CI"):
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if item not in without]
    for item in without:
        item.add_marker(pytest.mark.skip(reason="needs the data folder shared/data beside the project"))


@pytest.fixture(scope="session")
def small_scenario() -> Scenario:
    return load_scenario("monaco").override(SMALL)


@pytest.fixture(scope="session")
def small_study(small_scenario: Scenario) -> Study:
    return prepare(small_scenario)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser that reaches nothing."""
    with chromium() as session:
        yield session
