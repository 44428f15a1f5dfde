"""A town to watch, with names that nobody should trust."""

from __future__ import annotations

from dataclasses import replace

import pytest

from geoedge.app.bench import Bench
from geoedge.app.choices import Choices
from geoedge.app.model import CityModel
from geoedge.scenario import Scenario
from geoedge.sites import Layout
from tests.maps.conftest import HOSTILE, hostile_streets
from tests.simulation import conftest as town

TITLE = "Town </title><script>window.broken=3</script>"
PROFILE = '"><img src=x onerror=window.broken=4>'


def hostile_scenario() -> Scenario:
    """Return the town's scenario, its title and first profile with markup."""
    return town.make_scenario().override({"title": TITLE, "workload.profiles[0].name": PROFILE})


def hostile_layout() -> Layout:
    return replace(town.make_layout(), name=HOSTILE)


@pytest.fixture(scope="session")
def bench() -> Bench:
    streets = hostile_streets(town.EAST, town.NORTH, 2 * town.STEP)
    city = replace(town.make_town(), street_names=streets)
    return Bench(hostile_scenario(), city=city, layout=hostile_layout())


@pytest.fixture
def choices(bench: Bench) -> Choices:
    return Choices.of(bench.scenario)


@pytest.fixture
def model(bench: Bench, choices: Choices) -> CityModel:
    return CityModel(bench, **choices.flat())
