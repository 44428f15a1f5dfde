"""Findings say what field and simulation assume, and what routers go by."""

from __future__ import annotations

import pytest

from geoedge.compare.findings import _guided, _service
from geoedge.scenario.operation import ServiceConfig


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ({}, "service times are not exponential"),
        ({"law": "exponential_mixture"}, ""),
        ({"queue": "service_law"}, "the field knows mean and variance alone"),
        ({"law": "exponential_mixture", "queue": "service_law"}, ""),
    ],
)
def test_what_the_field_leaves_out_of_service_times(service: dict[str, str], words: str) -> None:
    said = _service(ServiceConfig(**service))
    assert words in said
    assert bool(said) == bool(words)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("simulation: equilibrium", "prices follow a demand that moves on, "),
        ("simulation: state", "routers go by queues as sites last reported them, "),
        ("simulation: measured", "routers go by waits as sites last measured them, "),
        ("simulation", ""),
    ],
)
def test_what_routers_go_by_depends_on_what_sites_advertise(column: str, words: str) -> None:
    assert _guided(column) == words
