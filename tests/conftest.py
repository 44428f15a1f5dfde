"""Fixtures that several rooms share: the shipped city once, and a small study on it."""

from __future__ import annotations

import pytest
from hypothesis import settings

from geoedge.scenario import Scenario, load_scenario
from geoedge.study import Study, prepare

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


@pytest.fixture(scope="session")
def small_scenario() -> Scenario:
    return load_scenario("monaco").override(SMALL)


@pytest.fixture(scope="session")
def small_study(small_scenario: Scenario) -> Study:
    return prepare(small_scenario)
